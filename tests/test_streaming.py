"""A session is a stream: memory does not grow with it, and its first record does not wait for its last."""

import os
import subprocess
import sys

import orjson
import pytest
from sample import FIXTURES, ROOT, isolated

SOURCE = FIXTURES / "claude/.claude/projects/-home-dev-projects-alpha/c43b9ab4-2438-44a1-855f-324659f7d1f7.jsonl"
SESSION = "33333333-2222-4333-8444-555555555555"


def giant(folder, megabytes):
    """A Claude Code session of that size: a real one's lines again and again, under new ids."""
    project = folder / "projects" / "p"
    project.mkdir(parents=True)
    lines = [orjson.loads(line) for line in SOURCE.read_bytes().splitlines()]
    size, turn = 0, 0
    with open(project / f"{SESSION}.jsonl", "wb") as file:
        while size < megabytes * 1_000_000:
            turn += 1
            for number, line in enumerate(lines):
                if "uuid" in line:
                    line["uuid"] = f"{turn:08x}-0000-4000-8000-{number:012x}"
                data = orjson.dumps(line) + b"\n"
                size += len(data)
                file.write(data)
    return project.parent


def environment(root, tmp_path):
    return isolated(tmp_path) | {
        "TOTAL_RECALL_CLAUDE_ROOT": str(root),
        "TOTAL_RECALL_SHADOW_ROOT": str(tmp_path / "shadow"),
    }


def peak(root, tmp_path, *words):
    """The most memory that a command held, in bytes."""
    child = subprocess.Popen(
        [sys.executable, ROOT / "bin" / words[0], *words[1:]],
        env=environment(root, tmp_path),
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_maxrss * 1024


@pytest.mark.parametrize("words", [("tr-extract", "--full"), ("tr-user",), ("tr-raw",), ("tr-profile", "--no-cache")])
def test_memory_does_not_grow_with_the_session(words, tmp_path):
    small, large = giant(tmp_path / "a", 4), giant(tmp_path / "b", 40)

    assert peak(large, tmp_path, *words, SESSION) < peak(small, tmp_path, *words, SESSION) * 1.25


def test_the_first_record_is_there_before_the_last_is_read(tmp_path):
    root = giant(tmp_path, 10)
    pipe = root / "p" / f"{SESSION}.jsonl"
    reader = subprocess.Popen(
        [sys.executable, ROOT / "bin" / "tr-extract", "--full", SESSION],
        env=environment(root, tmp_path),
        stdout=subprocess.PIPE,
    )
    first = orjson.loads(reader.stdout.readline())
    # What is not read yet is cut off: had it all been read, all of it would still come.
    os.truncate(pipe, 9_000_000)
    rest = reader.stdout.read()
    reader.stdout.close()

    assert first["id"] == 1
    assert reader.wait() == 0
    assert len(rest) < pipe.stat().st_size


def test_a_slow_reader_gets_every_byte(tmp_path):
    root = giant(tmp_path, 3)
    line = f"tr-extract --full {SESSION} > fast; tr-extract --full {SESSION} | (sleep 0.5; cat) > slow; cmp fast slow"

    assert subprocess.run(["bash", "-c", line], env=environment(root, tmp_path), cwd=tmp_path).returncode == 0
