"""Another program's database, in every state it can be found in."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest
from total_recall.notices import Notices, Unreadable
from total_recall.stores import _sqlite
from total_recall.stores._sqlite import Database

STORES = Path(__file__).parents[1] / "fixtures" / "opencode"
NOBODY = 65534

WRITER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    database.execute(statement)
print("ready", flush=True)
sys.stdin.read()
"""
FILL = ("CREATE TABLE words (word)", "INSERT INTO words VALUES ('one')")
WAL = "PRAGMA journal_mode = WAL"


@pytest.fixture
def writer():
    """Start another process that does something to a database and stays, with the database open."""
    running = []

    def start(path, *statements):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), *statements],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch):
    monkeypatch.setattr(_sqlite, "BUSY_SECONDS", 0.1)


def made(path, *statements):
    database = sqlite3.connect(path, isolation_level=None)
    for statement in (*FILL, *statements):
        database.execute(statement)
    database.close()
    return path


def words(connection):
    return [word for (word,) in connection.execute("SELECT word FROM words ORDER BY rowid")]


def looked(path, ask=words):
    return Database(str(path), Notices()).look(ask)


def state_of(folder):
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_without_a_wal_nothing_is_made_beside_the_database(mode, tmp_path):
    path = made(tmp_path / "x.db", f"PRAGMA journal_mode = {mode}")
    before = state_of(tmp_path)
    assert looked(path) == ["one"]
    assert state_of(tmp_path) == before


def test_an_empty_wal_is_none(tmp_path):
    path = made(tmp_path / "x.db", WAL)
    (tmp_path / "x.db-wal").touch()
    before = state_of(tmp_path)
    assert looked(path) == ["one"]
    assert state_of(tmp_path) == before


def test_what_a_running_program_has_committed_is_seen_and_nothing_else(tmp_path, writer):
    path = tmp_path / "x.db"
    writer(path, WAL, *FILL, "BEGIN", "INSERT INTO words VALUES ('not yet')")
    size = path.stat().st_size
    assert looked(path) == ["one"]
    assert path.stat().st_size == size
    assert sorted(os.listdir(tmp_path)) == ["x.db", "x.db-shm", "x.db-wal"]


def test_a_reader_leaves_the_wal_of_a_killed_program_where_it_is(tmp_path, writer):
    path = tmp_path / "x.db"
    process = writer(path, WAL, *FILL)
    process.kill()
    process.wait()
    (tmp_path / "x.db-shm").unlink()
    before = state_of(tmp_path)
    assert looked(path) == ["one"]
    after = state_of(tmp_path)
    after.pop("x.db-shm", None)
    assert after == before


def test_a_database_whose_tables_are_all_in_the_wal(tmp_path):
    """The natural state of OpenCode's store: an empty header page, and everything in the WAL."""
    for name in ("opencode.db", "opencode.db-wal"):
        shutil.copy(STORES / "migrated-1.2.1" / "opencode" / name, tmp_path)
    assert (tmp_path / "opencode.db").stat().st_size == 4096
    count = looked(tmp_path / "opencode.db", lambda c: c.execute("SELECT count(*) FROM session").fetchone())
    assert count == (8,)


def test_a_wal_newer_than_the_database_counts(tmp_path):
    for name in ("opencode.db", "opencode.db-wal"):
        shutil.copy(STORES / "upgraded-1.18.33" / "opencode" / name, tmp_path)
    columns = Database(str(tmp_path / "opencode.db"), Notices()).columns("session")
    assert {"workspace_id", "agent", "model", "time_archived"} <= columns


@pytest.mark.parametrize("name", ["a?mode=rw&x.db", "50%41.db", "a#b.db", "spa ce.db", b"caf\xe9.db"])
@pytest.mark.parametrize("live", [False, True])
def test_a_path_is_no_syntax(name, live, tmp_path, writer):
    folder = tmp_path / "what? 100%#"
    folder.mkdir()
    try:
        path = Path(os.fsdecode(os.path.join(os.fsencode(folder), os.fsencode(name))))
        path.touch()
    except OSError:
        pytest.skip("the file system does not take such a name")
    made(tmp_path / "plain.db", WAL)
    shutil.copy(tmp_path / "plain.db", path)
    if live:
        connection = sqlite3.connect(_sqlite._uri(str(path)), uri=True, isolation_level=None)
        connection.execute("INSERT INTO words VALUES ('two')")
    assert looked(path) == (["one", "two"] if live else ["one"])
    if live:
        connection.close()


def test_the_wal_is_looked_for_beside_the_file_and_not_beside_a_link(tmp_path, writer):
    writer(tmp_path / "x.db", WAL, *FILL)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link.db").symlink_to(tmp_path / "x.db")
    assert looked(tmp_path / "elsewhere" / "link.db") == ["one"]
    assert os.listdir(tmp_path / "elsewhere") == ["link.db"]


def test_what_changes_while_it_is_read_is_read_again(tmp_path, writer):
    """A WAL that appears during an immutable read means that the read may have seen half of something."""
    path = made(tmp_path / "x.db", WAL)
    seen = []

    def ask(connection):
        seen.append(words(connection))
        if len(seen) == 1:
            writer(path, "INSERT INTO words VALUES ('two')")
        return seen[-1]

    assert looked(path, ask) == ["one", "two"]
    assert seen == [["one"], ["one", "two"]]


def test_a_program_that_came_and_went_during_the_read_is_noticed(tmp_path):
    """It left no WAL, but another database."""
    path = made(tmp_path / "x.db", WAL)
    seen = []

    def ask(connection):
        seen.append(words(connection))
        if len(seen) == 1:
            with sqlite3.connect(path) as other:
                other.execute("INSERT INTO words VALUES ('two')")
            other.close()
        return seen[-1]

    assert looked(path, ask) == ["one", "two"]


def test_a_database_that_never_rests_is_given_up(tmp_path):
    path = made(tmp_path / "x.db")

    def ask(connection):
        os.utime(path, ns=(0, len(asked)))
        asked.append(True)

    asked = [True]
    with pytest.raises(Unreadable, match="keeps changing"):
        looked(path, ask)
    assert len(asked) < 10


def test_a_lock_is_waited_for_and_then_named(tmp_path, writer):
    path = made(tmp_path / "x.db", WAL)
    writer(path, "PRAGMA locking_mode = EXCLUSIVE", "INSERT INTO words VALUES ('two')")
    with pytest.raises(Unreadable, match=r"x\.db: database is locked"):
        looked(path)


def test_no_transaction_outlives_the_look_and_nothing_at_all_a_rest(tmp_path):
    path = made(tmp_path / "x.db", WAL)
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    other.execute("INSERT INTO words VALUES ('two')")
    database = Database(str(path), Notices())
    assert database.look(words) == ["one", "two"]
    assert other.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0
    database.rest()
    assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    assert database.look(words) == ["one", "two"]
    other.close()


def test_between_two_looks_at_a_database_at_rest_its_program_can_do_anything(tmp_path):
    """What it did is seen by the next look, whether it left a WAL or not."""
    path = made(tmp_path / "x.db", WAL)
    database = Database(str(path), Notices())
    assert database.look(words) == ["one"]
    database.rest()
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    assert other.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("INSERT INTO words VALUES ('two')")
    other.close()
    assert database.look(words) == ["one", "two"]
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(WAL)
        other.execute("INSERT INTO words VALUES ('three')")
        assert database.look(words) == ["one", "two", "three"]
        database.rest()
    path.with_name("new").write_bytes(made(tmp_path / "y.db").read_bytes())
    path.with_name("new").replace(path)
    assert database.look(words) == ["one"]


def by_one_who_may_only_read(folder, path):
    """What two looks at a database in a folder give, and the notices, for somebody who cannot write there."""
    folder.chmod(0o555)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        notices = Notices()
        database = Database(str(path), notices)
        try:
            answer = [database.look(words) for _ in range(2)]
        except (Unreadable, OSError) as error:
            answer = str(error)
        del database
        os.write(into, json.dumps([answer, list(notices.said)]).encode())
        os._exit(0)
    os.close(into)
    with open(out, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    folder.chmod(0o755)
    return json.loads(told)


@pytest.fixture
def public():
    """A folder that others may enter, which those of the test run are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        folder.mkdir()
        Path(name).chmod(0o755)
        yield folder


def test_where_nothing_can_be_made_a_copy_is_read(public, writer):
    """With a WAL and no -shm in a folder that is read-only: once, said in a notice, and taken away again."""
    path = public / "x.db"
    process = writer(path, WAL, *FILL)
    process.kill()
    process.wait()
    (public / "x.db-shm").unlink()
    before = set(os.listdir(tempfile.gettempdir()))
    answers, notices = by_one_who_may_only_read(public, path)
    assert answers == [["one"], ["one"]]
    assert notices == [f"{path}: read from a temporary copy, because it cannot be read where it is"]
    assert sorted(os.listdir(public)) == ["x.db", "x.db-wal"]
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("total-recall-")]


def test_where_nothing_can_be_made_a_database_without_wal_needs_no_copy(public):
    path = made(public / "x.db", WAL)
    assert by_one_who_may_only_read(public, path) == [[["one"], ["one"]], []]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"no database at all, but long" * 100, "file is not a database"), (b"", "no such table: words")],
)
def test_what_is_no_database_is_named(content, reason, tmp_path):
    path = tmp_path / "x.db"
    path.write_bytes(content)
    with pytest.raises(Unreadable) as error:
        looked(path)
    assert (error.value.place, error.value.reason) == (str(path), reason)


def test_a_truncated_database_is_named(tmp_path):
    path = made(tmp_path / "x.db", "INSERT INTO words VALUES (zeroblob(20000))")
    path.write_bytes(path.read_bytes()[:-9000])
    with pytest.raises(Unreadable, match="malformed"):
        looked(path)


def test_only_regular_files_are_opened(tmp_path):
    os.mkfifo(tmp_path / "fifo.db")
    (tmp_path / "folder.db").mkdir()
    for name in ("fifo.db", "folder.db"):
        with pytest.raises(Unreadable, match="not a regular file"):
            looked(tmp_path / name)


def test_a_database_that_is_gone_is_told_from_a_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        looked(tmp_path / "x.db")


def test_what_cannot_be_decoded_is_replaced(tmp_path):
    path = made(tmp_path / "x.db", "UPDATE words SET word = CAST(x'636166e9' AS TEXT)")
    assert looked(path) == ["caf\ufffd"]


def test_nothing_can_be_written_through_it(tmp_path, writer):
    path = made(tmp_path / "x.db", WAL)
    for live in (False, True):
        if live:
            writer(path, "INSERT INTO words VALUES ('two')")
        with pytest.raises(Unreadable, match="readonly"):
            looked(path, lambda c: c.execute("DELETE FROM words"))


def test_a_tables_columns_are_known(tmp_path):
    database = Database(str(made(tmp_path / "x.db")), Notices())
    assert database.columns("words") == {"word"}
    assert database.columns("no such table") == frozenset()


def test_a_copy_is_private(tmp_path, writer, monkeypatch):
    path = tmp_path / "x.db"
    writer(path, WAL, *FILL)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    database = Database(str(path), Notices())
    assert database._made_copy()
    folder = Path(database._copy).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert database.look(words) == ["one"]
    del database
    assert not folder.exists()


@pytest.mark.parametrize("live", [False, True], ids=["alone", "with a WAL"])
def test_the_version_changes_with_every_commit_and_with_nothing_else(live, tmp_path, writer, monkeypatch):
    monkeypatch.setattr(_sqlite, "_SETTLED_SECONDS", 0)
    path = made(tmp_path / "x.db", WAL)
    if live:
        writer(path, "INSERT INTO words VALUES ('two')")
    database = Database(str(path), Notices())
    before = database.version()
    assert before is not None
    database.look(words)
    assert database.version() == before
    time.sleep(0.02)  # the clock of a file system is no finer
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("INSERT INTO words VALUES ('three')")
    assert database.version() not in (None, before)


def test_a_database_of_the_same_size_and_time_is_another_version(tmp_path, monkeypatch):
    """As a copy that keeps times leaves it, or a program that sets the clock back."""
    monkeypatch.setattr(_sqlite, "_SETTLED_SECONDS", 0)
    path = made(tmp_path / "x.db")
    os.utime(path, ns=(0, 10**18))
    before = Database(str(path), Notices()).version()
    time.sleep(0.02)
    path.write_bytes(path.read_bytes().replace(b"one", b"two"))
    os.utime(path, ns=(0, 10**18))
    assert before != Database(str(path), Notices()).version()


def test_a_database_that_was_written_to_just_now_has_no_version(tmp_path):
    """The next commit may fall into the same tick of the file system's clock."""
    path = made(tmp_path / "x.db")
    database = Database(str(path), Notices())
    assert database.version() is None
    path.unlink()
    assert database.version() is None
