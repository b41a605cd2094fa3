"""Sessions that are being written: listed, searched and followed while a writer appends, rewrites, moves, deletes."""

import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import orjson
import pytest
import zstandard
from sample import ROOT

from .layouts import LAYOUTS, told
from .programs import environment, run

GROWING = ["claude", "claude 2.0", "codex", "codex 0.45", "vibe", "gemini", "qwen", "pi", "copilot"]


def _append(path, data):
    with path.open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("name", GROWING)
def test_a_session_read_after_every_line_of_it_is_the_session_read_at_once(name, tmp_path):
    """Whatever was learned of its beginning, and wherever the writer stopped: also within a line."""
    laid = LAYOUTS[name](tmp_path / "store")
    whole = laid.path.read_bytes()
    expected = told(laid.messages())
    env = environment(tmp_path, laid)
    row = run("tr-list", laid.target, env=environment(tmp_path / "other", laid)).records[0]
    steps = [0]
    for number, line in enumerate(whole.splitlines(keepends=True)):
        steps += [steps[-1] + len(line)] if number % 3 else [steps[-1] + len(line) // 2, steps[-1] + len(line)]
    laid.path.write_bytes(b"")
    for start, end in itertools.pairwise(steps):
        _append(laid.path, whole[start:end])
        if end % 4 == 0 or end == len(whole):
            assert run("tr-list", env=env).status == 0
            assert run("tr-index", env=env).status == 0

    assert told(run("tr-extract", "--full", laid.target, env=env).records) == orjson.loads(orjson.dumps(expected))
    now = run("tr-list", laid.target, env=env).records[0]
    changing = ("has_tantivy_index", "path", "end_time")
    assert {k: v for k, v in now.items() if k not in changing} == {k: v for k, v in row.items() if k not in changing}
    found = {(h["session_id"], h["id"]) for h in run("tr-search", "the", "--limit", "0", env=env).records}
    anew = {
        (h["session_id"], h["id"])
        for h in run("tr-search", "the", "--limit", "0", env=environment(tmp_path / "other", laid)).records
    }
    assert found == anew


@pytest.mark.parametrize("name", ["claude", "codex", "vibe"])
def test_commands_run_well_while_a_writer_is_at_work(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    whole = laid.path.read_bytes()
    env = environment(tmp_path, laid)
    ended = threading.Event()

    def write():
        number = 0
        while not ended.is_set():
            number += 1
            if number % 7 == 0:
                laid.path.with_name("new").write_bytes(whole)
                os.replace(laid.path.with_name("new"), laid.path)
            elif number % 11 == 0:
                laid.path.write_bytes(whole[: len(whole) // 2])
            else:
                _append(laid.path, whole[(number * 997) % len(whole) :][:3000])
            time.sleep(0.001)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(4):
            for words in (
                ["tr-list"],
                ["tr-index"],
                ["tr-search", "the"],
                ["tr-extract", "--full", laid.target],
                ["tr-profile", laid.target],
                ["tr-said", "--words", "the", "--hours", "0"],
            ):
                ran = run(*words, env=env)
                assert ran.status in (0, 1), ran
                assert "unexpected" not in ran.err
                assert not [line for line in ran.out.splitlines() if not orjson.loads(line)]
    finally:
        ended.set()
        writer.join()


# -- following -------------------------------------------------------------------------------------------------


class Follower:
    """A running `tr-extract --follow`."""

    def __init__(self, laid, env, output):
        self.output = output
        self._file = output.open("wb")
        words = [sys.executable, ROOT / "bin" / "tr-extract", "--follow", "--full", laid.target]
        self.process = subprocess.Popen(words, env=env, stdout=self._file, stderr=subprocess.PIPE)

    def ids(self):
        return [orjson.loads(line)["id"] for line in self.output.read_bytes().split(b"\n")[:-1]]

    def wait(self, condition):
        for _ in range(600):
            if condition():
                return
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.02)
        raise AssertionError(f"it did not come; printed: {self.ids()}")

    def end(self):
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=60)
        self._file.close()
        return self.process.returncode, err.decode()


@pytest.fixture
def followed(tmp_path):
    """Lay a store, keep back the second half of its target, and follow it."""
    started = []

    def start(name):
        laid = LAYOUTS[name](tmp_path / "store")
        whole = laid.path.read_bytes()
        lines = whole.splitlines(keepends=True)
        laid.path.write_bytes(b"".join(lines[: len(lines) // 2]))
        before = [message["id"] for message in laid.messages()]
        laid.path.write_bytes(whole)
        after = [message["id"] for message in laid.messages()]
        laid.path.write_bytes(b"".join(lines[: len(lines) // 2]))
        follower = Follower(laid, environment(tmp_path, laid), tmp_path / "out")
        started.append(follower)
        follower.wait(lambda: follower.ids() == before)
        return laid, lines[len(lines) // 2 :], follower, after

    yield start
    for follower in started:
        follower.process.kill()
        follower.process.communicate()


def _all_at_once(laid, rest):
    _append(laid.path, b"".join(rest))


def _torn(laid, rest):
    data = b"".join(rest)
    for start in range(0, len(data), 1 + len(data) // 17):
        _append(laid.path, data[start : start + 1 + len(data) // 17])
        time.sleep(0.02)


def _replaced(laid, rest):
    laid.path.with_name("new").write_bytes(laid.path.read_bytes() + b"".join(rest))
    os.replace(laid.path.with_name("new"), laid.path)


def _emptied_and_written_again(laid, rest):
    whole = laid.path.read_bytes() + b"".join(rest)
    laid.path.write_bytes(b"")
    time.sleep(0.3)
    laid.path.write_bytes(whole)


def _deleted_and_back(laid, rest):
    whole = laid.path.read_bytes() + b"".join(rest)
    laid.path.unlink()
    time.sleep(0.5)
    laid.path.write_bytes(whole)


def _compressed(laid, rest):
    whole = laid.path.read_bytes() + b"".join(rest)
    laid.path.with_name(laid.path.name + ".zst").write_bytes(zstandard.compress(whole))
    laid.path.unlink()


def _archived(laid, rest):
    archive = laid.root.parent / "archived_sessions"
    archive.mkdir()
    _append(laid.path, b"".join(rest))
    shutil.move(laid.path, archive / laid.path.name)


HAPPENINGS = [
    *(
        (name, what)
        for name in ("claude 2.0", "codex", "vibe", "gemini", "qwen", "pi", "copilot")
        for what in (_all_at_once, _torn, _replaced, _emptied_and_written_again, _deleted_and_back)
    ),
    ("codex", _compressed),
    ("codex", _archived),
]


@pytest.mark.parametrize(
    ("name", "what"), HAPPENINGS, ids=lambda value: value if isinstance(value, str) else value.__name__[1:]
)
def test_every_record_is_printed_once_and_in_order(name, what, followed):
    laid, rest, follower, expected = followed(name)

    what(laid, rest)
    follower.wait(lambda: len(follower.ids()) >= len(expected))
    time.sleep(0.3)

    assert follower.ids() == expected
    status, err = follower.end()
    assert status == 130
    assert "Traceback" not in err
    assert "unexpected" not in err


def test_a_follower_that_was_stopped_goes_on_where_it_was(followed):
    laid, rest, follower, expected = followed("claude 2.0")

    follower.process.send_signal(signal.SIGTSTP)
    follower.process.send_signal(signal.SIGSTOP)
    _all_at_once(laid, rest)
    time.sleep(0.3)
    assert len(follower.ids()) < len(expected)
    follower.process.send_signal(signal.SIGCONT)
    follower.wait(lambda: len(follower.ids()) >= len(expected))

    assert follower.ids() == expected
    assert follower.end()[0] == 130


def test_rows_that_are_added_to_a_database_are_printed_once_they_are_there(tmp_path):
    laid = LAYOUTS["opencode"](tmp_path / "store")
    env = environment(tmp_path, laid)
    expected = [message["id"] for message in laid.messages()]
    with closing(sqlite3.connect(laid.path, isolation_level=None)) as database:
        messages, parts = (_rows(database, table, laid.target) for table in ("message", "part"))
        later = [message[0] for message in messages[len(messages) // 2 :]]
        for table, key in (("part", "message_id"), ("message", "id")):
            database.executemany(f"DELETE FROM {table} WHERE {key} = ?", [(id,) for id in later])
        before = [message["id"] for message in laid.messages()]
        follower = Follower(laid, env, tmp_path / "out")
        follower.wait(lambda: follower.ids() == before)
        for message in messages[len(messages) // 2 :]:
            database.execute("BEGIN")
            _insert(database, "message", message)
            for part in [part for part in parts if part[1] == message[0]]:
                _insert(database, "part", part)
            database.execute("UPDATE session SET time_updated = time_updated + 1 WHERE id = ?", (laid.target,))
            database.execute("COMMIT")
            time.sleep(0.05)
        follower.wait(lambda: len(follower.ids()) >= len(expected))

    assert follower.ids() == expected
    assert follower.end()[0] == 130


def test_a_session_that_is_deleted_for_good_leaves_the_follower_waiting(followed):
    laid, _, follower, _ = followed("claude 2.0")
    before = follower.ids()

    laid.path.unlink()
    time.sleep(1.0)

    assert follower.process.poll() is None
    assert follower.ids() == before
    assert follower.end()[0] == 130


# -- OpenCode, whose rows change in place ----------------------------------------------------------------------


def _rows(database, table, session):
    order = "id" if table == "part" else "time_created, id"
    rows = database.execute(f"SELECT * FROM {table} WHERE session_id = ? ORDER BY {order}", (session,))
    return rows.fetchall()


def _insert(database, table, row):
    database.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def test_a_database_read_after_every_row_of_it_is_the_database_read_at_once(tmp_path):
    laid = LAYOUTS["opencode"](tmp_path / "store")
    expected = run("tr-extract", "--full", laid.target, env=environment(tmp_path / "other", laid)).out
    row = run("tr-list", laid.target, env=environment(tmp_path / "other", laid)).records[0]
    env = environment(tmp_path, laid)
    with closing(sqlite3.connect(laid.path, isolation_level=None)) as database:
        messages, parts = (_rows(database, table, laid.target) for table in ("message", "part"))
        for table in ("part", "message"):
            database.execute(f"DELETE FROM {table} WHERE session_id = ?", (laid.target,))
        for number, message in enumerate(messages):
            _insert(database, "message", message)
            for part in [part for part in parts if part[1] == message[0]]:
                _insert(database, "part", part)
                if number % 3 == 0:
                    assert run("tr-list", env=env).status == 0
            database.execute("UPDATE session SET time_updated = time_updated + 1 WHERE id = ?", (laid.target,))
            assert run("tr-index", env=env).status == 0

    assert run("tr-extract", "--full", laid.target, env=env).out == expected
    now = run("tr-list", laid.target, env=env).records[0]
    changing = ("has_tantivy_index", "end_time")
    assert {k: v for k, v in now.items() if k not in changing} == {k: v for k, v in row.items() if k not in changing}
    found = [hit["id"] for hit in run("tr-search", "the", "--limit", "0", env=env).records]
    other = environment(tmp_path / "other", laid)
    assert sorted(found) == sorted(hit["id"] for hit in run("tr-search", "the", "--limit", "0", env=other).records)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_session_that_is_deleted_is_found_no_more_and_leaves_the_index(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    env = environment(tmp_path, laid)
    before = {row["session_id"]: row["status"] for row in run("tr-index", env=env).records}
    assert before.pop(laid.target) == "indexed"
    assert laid.witness in before

    laid.remove()

    indexed = {row["session_id"]: row["status"] for row in run("tr-index", env=env).records}
    assert indexed == {laid.target: "removed", **dict.fromkeys(before, "unchanged")}
    hits = run("tr-search", "a", "the", "--limit", "0", env=env).records
    assert {hit["session_id"] for hit in hits} <= set(before)
    assert {row["session_id"] for row in run("tr-list", env=env).records} == set(before)
    assert laid.target not in {row["session_id"] for row in run("tr-index", env=env).records}
