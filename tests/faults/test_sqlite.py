"""OpenCode's database: in use, locked, read-only, damaged, another program's, of an older or a newer schema."""

import contextlib
import random
import shutil
import sqlite3
import tracemalloc
from contextlib import closing, contextmanager

import orjson
import pytest

from .layouts import LAYOUTS, OPENCODE, small_database
from .programs import agree, environment, run, run_all
from .test_files import _nobody, open_to_all  # noqa: F401


@pytest.fixture
def laid(tmp_path):
    return LAYOUTS["opencode"](tmp_path / "store")


@contextmanager
def _changed(laid):
    """The database, open for a change."""
    with closing(sqlite3.connect(laid.path, isolation_level=None)) as database:
        yield database


def _say(database, laid, text):
    """Write an answer into the target, as its last part."""
    query = "SELECT message_id FROM part WHERE session_id = ? ORDER BY id DESC LIMIT 1"
    (message,) = database.execute(query, (laid.target,)).fetchone()
    database.execute(
        "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?)",
        ("prt_zzzz", message, laid.target, 1796073638123, 1796073638123, _json({"type": "text", "text": text})),
    )


def _json(value):
    return orjson.dumps(value).decode()


def _texts(found):
    return [message["content"] for message in found["tr-extract --full -- {id}"].records]


# -- in use ----------------------------------------------------------------------------------------------------


def _with_wal(laid, text):
    """Leave the last answer in a WAL, as a program that was killed does."""
    with _changed(laid) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")
        _say(database, laid, text)
        kept = {end: laid.path.with_name(f"opencode.db{end}").read_bytes() for end in ("", "-wal")}
    for end, data in kept.items():
        laid.path.with_name(f"opencode.db{end}").write_bytes(data)


def test_what_a_running_writer_has_in_its_wal_is_seen_and_stays_there(laid, tmp_path):
    with _changed(laid) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")
        _say(database, laid, "the answer in the WAL")
        assert laid.path.with_name("opencode.db-wal").stat().st_size > 0

        found = run_all(laid, tmp_path)

        assert "the answer in the WAL" in _texts(found)
        agree(found, laid)


@pytest.mark.parametrize("mode", ["WAL", "DELETE", "TRUNCATE", "MEMORY"])
@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_writer_in_the_midst_of_a_transaction_holds_nobody_up(mode, begin, laid, tmp_path):
    before = [message["content"] for message in laid.messages()]
    with _changed(laid) as database:
        database.execute(f"PRAGMA journal_mode = {mode}")
        database.execute(begin)
        _say(database, laid, "not yet written")

        found = run_all(laid, tmp_path)

        assert _texts(found) == before
        database.execute("ROLLBACK")


def test_a_wal_that_was_left_behind_without_its_shared_memory_is_read(laid, tmp_path):
    _with_wal(laid, "the answer in the WAL")

    assert "the answer in the WAL" in _texts(run_all(laid, tmp_path))


@pytest.mark.parametrize("wal", [False, True], ids=["alone", "with a WAL"])
def test_a_database_in_a_folder_that_cannot_be_written_is_read(wal, open_to_all):  # noqa: F811
    laid = LAYOUTS["opencode"](open_to_all / "store")
    if wal:
        _with_wal(laid, "the last answer")
    else:
        with _changed(laid) as database:
            _say(database, laid, "the last answer")
    other = LAYOUTS["opencode"](open_to_all / "other")
    run("tr-list", env=environment(open_to_all / "other", other))  # every module is loaded
    env = environment(open_to_all, laid)
    for folder in (open_to_all / "shadow", open_to_all / "home"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    laid.root.chmod(0o555)
    with _nobody():
        ran = run("tr-extract", "--full", laid.target, env=env)
        listed = run("tr-list", env=env)

    laid.root.chmod(0o755)
    assert (ran.status, listed.status) == (0, 0)
    assert ran.records[-1]["content"] == "the last answer"
    assert ("temporary copy" in ran.err) == wal
    assert sorted(path.name for path in laid.root.iterdir()) == ["opencode.db", "opencode.db-wal"][: 1 + wal]


@pytest.mark.parametrize("moment", range(4))
def test_a_database_that_is_deleted_or_replaced_between_two_looks_is_no_traceback(moment, laid):
    store = laid.store()
    session = laid.session(store)
    messages = iter(store.messages(session))
    found = [next(messages) for _ in range(moment)]
    if moment % 2:
        laid.path.unlink()
    else:
        laid.path.with_name("new").write_bytes(small_database())
        laid.path.with_name("new").replace(laid.path)
    with contextlib.suppress(*((FileNotFoundError,) if moment % 2 else ())):
        found += messages

    assert [m["id"] for m in found] == sorted({m["id"] for m in found})
    assert store.row(session)["session_id"] == laid.target


# -- damaged ---------------------------------------------------------------------------------------------------

NO_DATABASES = {
    "empty": lambda data: b"",
    "one byte": lambda data: b"S",
    "a page of zeros": lambda data: bytes(4096),
    "zeros": lambda data: bytes(len(data)),
    "a header alone": lambda data: data[:100],
    "its first page alone": lambda data: data[:4096],
    "zeros after the header": lambda data: data[:100] + bytes(len(data) - 100),
    "zeros after the first page": lambda data: data[:4096] + bytes(len(data) - 4096),
    "another file": lambda data: b"<!doctype html>" * 4000,
    "compressed": lambda data: b"\x1f\x8b\x08" + data[::-1],
    "without its header": lambda data: data[100:],
    "half of it": lambda data: data[: len(data) // 2],
    "all but its last page": lambda data: data[:-4096],
    "all but its last byte": lambda data: data[:-1],
    "one page too many": lambda data: data + bytes(4096),
}


@pytest.mark.parametrize("what", NO_DATABASES)
def test_what_is_no_whole_database_is_said_or_read_and_never_a_traceback(what, laid, tmp_path):
    env = environment(tmp_path / "before", laid)
    before = {row["session_id"]: row["user_count"] for row in run("tr-list", env=env).records}
    laid.path.write_bytes(NO_DATABASES[what](laid.path.read_bytes()))

    found = run_all(laid, tmp_path, also=(2, 3))

    listed = found["tr-list"]
    rows = {row["session_id"]: row["user_count"] for row in listed.records}
    whole = rows == before and not any(row.get("read_error") for row in listed.records)
    # Fewer sessions, or less of them, only with a reason. What is no page long SQLite takes for an empty database.
    assert whole or listed.status == 3 or what in ("empty", "one byte"), listed


@pytest.mark.parametrize("seed", range(12))
def test_any_pages_of_a_database_may_be_damaged(seed, laid, tmp_path):
    chance = random.Random(seed)
    data = bytearray(laid.path.read_bytes())
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(100, len(data))
        size = chance.choice((1, 16, 512, 4096))
        data[place : place + size] = chance.randbytes(len(data[place : place + size]))
    laid.path.write_bytes(data)

    found = run_all(laid, tmp_path, also=(2, 3))

    assert found["tr-list"].status in (0, 3)


# -- schemas ---------------------------------------------------------------------------------------------------


def _columns(database, table):
    return [name for (name,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def _without(database, table, column):
    """The table without a column, and without keys and constraints."""
    left = ", ".join(name for name in _columns(database, table) if name != column)
    database.execute(f"CREATE TABLE rebuilt AS SELECT {left} FROM {table}")
    database.execute(f"DROP TABLE {table}")
    database.execute(f"ALTER TABLE rebuilt RENAME TO {table}")


OPTIONAL = [
    *(("session", c) for c in ("parent_id", "directory", "title", "time_created", "time_updated", "time_archived")),
    *(("session", c) for c in ("project_id", "version", "revert", "share_url", "slug")),
    *((table, column) for table in ("message", "part") for column in ("time_created", "time_updated")),
]
NEEDED = [
    ("session", "id"),
    *(("message", column) for column in ("id", "session_id", "data")),
    *(("part", column) for column in ("id", "message_id", "session_id", "data")),
]


@pytest.mark.parametrize(("table", "column"), OPTIONAL)
def test_a_column_that_a_version_has_not_costs_no_record(table, column, laid, tmp_path):
    before = [message["content"] for message in laid.messages()]
    with _changed(laid) as database:
        _without(database, table, column)

    found = run_all(laid, tmp_path)

    assert sorted(_texts(found)) == sorted(before)
    agree(found, laid)


@pytest.mark.parametrize(("table", "column"), NEEDED)
def test_a_column_that_cannot_be_missed_is_named(table, column, laid, tmp_path):
    with _changed(laid) as database:
        _without(database, table, column)

    found = run_all(laid, tmp_path, also=(2, 3))

    said = found["tr-extract --full -- {id}"]
    assert said.status == 0 or f"no such column: {column}" in said.err.replace("p.", "").replace("m.", ""), said


def test_a_newer_schema_with_more_columns_tables_and_types_of_parts_is_read(laid, tmp_path):
    before = [message["content"] for message in laid.messages()]
    with _changed(laid) as database:
        for table in ("session", "message", "part"):
            database.execute(f"ALTER TABLE {table} ADD COLUMN novelty TEXT DEFAULT 'x'")
        database.execute("CREATE TABLE novelty (id TEXT)")
        database.execute("CREATE VIEW sessions AS SELECT * FROM session")
        database.execute("PRAGMA user_version = 999")
        _say(database, laid, "x")
        database.execute("""UPDATE part SET data = '{"type":"hologram","text":"?"}' WHERE id = 'prt_zzzz'""")

    found = run_all(laid, tmp_path)

    assert _texts(found) == before
    agree(found, laid)


FOREIGN = {
    "no table at all": "SELECT 1",
    "another program's tables": "CREATE TABLE messages (id, body)",
    "a table of the same name": "CREATE TABLE session (sid INTEGER, cookie BLOB)",
    "tables of the same names": "CREATE TABLE session (a); CREATE TABLE message (b); CREATE TABLE part (c)",
    "tables of other columns": "CREATE TABLE session (id); CREATE TABLE message (b); CREATE TABLE part (c);"
    "INSERT INTO session VALUES (1)",
    "views of the same names": "CREATE TABLE x (id, data, session_id, message_id); CREATE VIEW part AS SELECT * FROM x;"
    "CREATE VIEW session AS SELECT * FROM x; CREATE VIEW message AS SELECT * FROM x",
    "tables without rows": "CREATE TABLE session (id); CREATE TABLE message (id, session_id, data);"
    "CREATE TABLE part (id, message_id, session_id, data)",
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_database_of_another_program_is_said_to_be_one(what, laid, tmp_path):
    laid.path.unlink()
    with _changed(laid) as database:
        database.executescript(FOREIGN[what])

    found = run_all(laid, tmp_path, also=(2, 3))

    assert not [row for row in found["tr-list"].records if not row.get("read_error")]
    assert found["tr-list"].status == 3 or what in ("no table at all", "tables without rows"), found["tr-list"]


ROWS = {
    "a part without a message": "UPDATE part SET message_id = 'gone' WHERE id = :part",
    "a message without a session": "UPDATE message SET session_id = 'gone' WHERE id = :message",
    "a session without a project": "UPDATE session SET project_id = 'gone'",
    "a parent that is not there": "UPDATE session SET parent_id = 'gone' WHERE id = :session",
    "its own parent": "UPDATE session SET parent_id = id",
    "parents in a circle": "UPDATE session SET parent_id = (SELECT id FROM session s WHERE s.id <> session.id)",
    "a part in another session": "UPDATE part SET session_id = :witness WHERE id = :part",
    "no directory": "UPDATE session SET directory = ''",
    "blobs for texts": "UPDATE part SET data = CAST(data AS BLOB); UPDATE message SET data = CAST(data AS BLOB);"
    "UPDATE session SET title = CAST(title AS BLOB), directory = CAST(directory AS BLOB)",
    "no UTF-8": "UPDATE part SET data = CAST(x'7b2274797065223a2274657874222c2274657874223a22ff227d' AS TEXT)"
    " WHERE id = :part; UPDATE session SET title = CAST(x'ff00fe' AS TEXT), directory = CAST(x'ff' AS TEXT)",
    "numbers for texts": "UPDATE part SET data = 17 WHERE id = :part;"
    "UPDATE message SET data = 1.5 WHERE id = :message; UPDATE session SET title = 17, directory = 3.5, parent_id = 9",
    "nothing for texts": "UPDATE part SET data = '' WHERE id = :part; UPDATE message SET data = '' WHERE id = :message;"
    "UPDATE session SET title = '', directory = '', parent_id = ''",
    "NULs in texts": "UPDATE session SET title = 'a' || char(0) || 'b', directory = '/x' || char(0)",
    "a revert to nowhere": """UPDATE session SET revert = '{"messageID":"gone","partID":[]}'""",
    "a revert that is none": "UPDATE session SET revert = '[[['",
    "a model that is none": "UPDATE session SET model = '7'",
}


@pytest.mark.parametrize("what", ROWS)
def test_rows_that_fit_nothing_hide_no_other(what, laid, tmp_path):
    with _changed(laid) as database:
        query = "SELECT id, message_id FROM part WHERE session_id = ? ORDER BY id LIMIT 1 OFFSET 9"
        part, message = database.execute(query, (laid.target,)).fetchone()
        names = {"part": part, "message": message, "session": laid.target, "witness": laid.witness}
        for statement in ROWS[what].split(";"):
            used = {name: value for name, value in names.items() if f":{name}" in statement}
            database.execute(statement, used)

    found = run_all(laid, tmp_path)

    agree(found, laid)
    assert len(_texts(found)) > 20


PATHS = ["a b", "who?", "50%", "a#b", "%41", "\u00fc", "a&mode=rwc", "file:x", ":memory:", "it's", "two\nlines"]


@pytest.mark.parametrize("name", PATHS)
def test_the_path_of_a_database_is_no_syntax(name, tmp_path):
    laid = LAYOUTS["opencode"](tmp_path / "store")
    folder = laid.root.with_name(name)
    laid.root.rename(folder)
    laid.root, laid.path = folder, folder / "opencode.db"

    agree(run_all(laid, tmp_path), laid)
    assert [path.name for path in (tmp_path / "store").iterdir()] == [name]


_HUGE = "data:image/png;base64," + "A" * 24_000_000
_DONE = {"status": "completed", "input": {}}
HUGE = {
    "the attachments of a tool": {
        "state": _DONE | {"output": "", "attachments": [{"mime": "image/png", "url": _HUGE}]}
    },
    "the output of a tool": {"state": _DONE | {"output": _HUGE}},
    "a file": {"type": "file", "mime": "image/png", "url": _HUGE},
}


@pytest.mark.parametrize("what", HUGE)
def test_a_huge_value_is_not_loaded_to_list_its_session(what, laid, tmp_path):
    with _changed(laid) as database:
        _say(database, laid, "x")
        part = {"type": "tool", "tool": "bash", "callID": "c"} | HUGE[what]
        database.execute("UPDATE part SET data = ? WHERE id = 'prt_zzzz'", (_json(part),))
        # A step that has ended changes no more.
        database.execute("UPDATE message SET data = json_set(data, '$.time.completed', 1796073638123)")
    store = laid.store()
    session = laid.session(store)

    tracemalloc.start()
    row = store.row(session)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert row["file_size"] > 24_000_000
    assert peak < 8_000_000
    ran = run("tr-extract", "--full", laid.target, env=environment(tmp_path, laid))
    assert ran.status == 0
    assert len(ran.out) < 1_000_000 or what == "the output of a tool"


def test_both_layouts_are_one_store_and_each_session_is_in_it_once(laid, tmp_path):
    shutil.copytree(OPENCODE / "json-1.1.65" / "opencode" / "storage", laid.root / "storage")
    before = {row["session_id"] for row in run("tr-list", env=environment(tmp_path / "before", laid)).records}
    assert len(before) == 9
    with _changed(laid) as database:  # a session of the tree is taken into the database
        columns = ", ".join(name for name in _columns(database, "session") if name != "id")
        copy = f"INSERT INTO session (id, {columns}) SELECT ?, {columns} FROM session WHERE id = ?"
        database.execute(copy, ("ses_dd1aa124fffesPaxbryO5vvjFK", laid.witness))

    rows = [row["session_id"] for row in run_all(laid, tmp_path)["tr-list"].records]

    assert sorted(rows) == sorted(before)
