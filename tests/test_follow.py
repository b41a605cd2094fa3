"""Following a session while it is written: every record once, whatever happens to the file."""

import os
import shutil
import subprocess
import sys
import time

import orjson
import pytest
from sample import FIXTURES, ROOT, isolated

SESSION = "d6213968-d16e-4cc8-94ed-6dc91dc0c568"
SOURCE = FIXTURES / "claude/.claude/projects/-home-dev-projects-beta" / f"{SESSION}.jsonl"


@pytest.fixture
def live(tmp_path):
    """A store of one session that has only its first lines yet, and the lines to come."""
    project = tmp_path / "projects" / "p"
    project.mkdir(parents=True)
    lines = SOURCE.read_bytes().splitlines(keepends=True)
    path = project / SOURCE.name
    path.write_bytes(b"".join(lines[:40]))
    return path, lines[40:]


@pytest.fixture
def follower(live, tmp_path):
    path, _ = live
    environment = isolated(tmp_path) | {
        "TOTAL_RECALL_CLAUDE_ROOT": str(path.parent.parent),
        "TOTAL_RECALL_SHADOW_ROOT": str(tmp_path / "shadow"),
    }
    output = tmp_path / "out"
    started = []

    def start(*words):
        with open(output, "wb") as file:
            command = [sys.executable, ROOT / "bin" / "tr-extract", "--follow", *words, SESSION]
            started.append(subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.PIPE))
        return output, started[0]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def ids(output):
    return [orjson.loads(line)["id"] for line in output.read_bytes().splitlines()]


def wait(condition):
    """Poll, for as long as a loaded machine may take."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def test_what_is_appended_is_printed_and_a_torn_line_only_when_it_is_whole(live, follower):
    path, rest = live
    output, _ = follower("--full")
    wait(lambda: output.stat().st_size > 0)
    seen = len(ids(output))

    torn = next(n for n, line in enumerate(rest) if b'"type":"assistant"' in line)
    with open(path, "ab") as file:
        file.write(b"".join(rest[:torn]) + rest[torn][:50])
        file.flush()
        time.sleep(0.5)
        before = ids(output)
        file.write(rest[torn][50:])
    wait(lambda: len(ids(output)) > len(before))

    assert ids(output) == list(range(1, len(ids(output)) + 1))
    assert len(ids(output)) > seen


def test_a_file_that_is_replaced_goes_on_where_it_was(live, follower, tmp_path):
    path, rest = live
    output, _ = follower("--full")
    wait(lambda: output.stat().st_size > 0)
    seen = len(ids(output))

    whole = tmp_path / "whole"
    whole.write_bytes(path.read_bytes() + b"".join(rest))
    os.replace(whole, path)
    wait(lambda: len(ids(output)) > seen)
    time.sleep(0.5)

    assert ids(output) == list(range(1, len(ids(output)) + 1))


def test_interrupted_it_ends_with_130(follower):
    output, process = follower("--full")
    wait(lambda: output.stat().st_size > 0)
    process.send_signal(2)

    assert process.wait(20) == 130


def test_it_ends_when_its_reader_goes(live, tmp_path):
    path, _ = live
    environment = isolated(tmp_path) | {
        "TOTAL_RECALL_CLAUDE_ROOT": str(path.parent.parent),
        "TOTAL_RECALL_SHADOW_ROOT": str(tmp_path / "shadow"),
    }
    line = f"tr-extract --follow --full {SESSION} | head -n 1 > /dev/null"

    assert subprocess.run(["bash", "-c", line], env=environment, timeout=60).returncode == 0


def test_bounds_and_follow_exclude_each_other(tr):
    ran = tr("tr-extract", "--follow", "--limit", "3")

    assert (ran.status, ran.out) == (2, b"")
    assert "--follow" in ran.err


def test_the_fixture_is_there():
    assert shutil.which("bash")
    assert SOURCE.exists()
