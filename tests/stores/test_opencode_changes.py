"""OpenCode's store while it changes, and when it is damaged."""

import hashlib
import json
import os
import random
import shutil
import sqlite3
from functools import partial
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from total_recall.notices import Notices, Unreadable
from total_recall.stores import _opencode_pages
from total_recall.stores.base import Memory, Tally
from total_recall.stores.opencode import OpenCode

STORES = Path(__file__).parents[1] / "fixtures" / "opencode"
SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, revert text,
    time_created integer, time_updated integer, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
    time_updated integer, data text);
CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
"""
USER = {"role": "user", "time": {"created": 1796072258000}}
STEP = {"role": "assistant", "parentID": "m1", "time": {"created": 1796072259000}}
DONE = {**STEP, "time": {"created": 1796072259000, "completed": 1796072260000}, "finish": "stop"}


class Program:
    """A store of one session, written to as the program does."""

    def __init__(self, folder):
        self.path = folder / "opencode.db"
        self.database = sqlite3.connect(self.path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.executescript(SCHEMA)
        self.database.execute(
            "INSERT INTO session VALUES ('s', NULL, '/d', 'T', NULL, 1796072257000, 1796072257000, NULL)"
        )

    def message(self, id, data, at=None):
        at = at or data["time"]["created"]
        self.put("message", id, (id, "s", at, at), data)

    def part(self, id, message, data):
        self.put("part", id, (id, message, "s", 1, self.number(id) + 1), data)

    def put(self, table, id, columns, data):
        self.database.execute(f"DELETE FROM {table} WHERE id = ?", (id,))
        text = data if isinstance(data, (str, bytes, int)) else json.dumps(data, separators=(",", ":"))
        marks = ", ".join("?" * (len(columns) + 1))
        self.database.execute(f"INSERT INTO {table} VALUES ({marks})", (*columns, text))

    def number(self, id):
        return self.database.execute("SELECT total(time_updated) FROM part WHERE id = ?", (id,)).fetchone()[0]


@pytest.fixture
def program(tmp_path):
    writer = Program(tmp_path)
    yield writer
    writer.database.close()


def opened(root):
    return OpenCode(OpenCode.locate({"TOTAL_RECALL_OPENCODE_ROOT": str(root)}), Notices())


def only(store):
    (session,) = store.sessions()
    return session


def tool(status, **state):
    return {
        "type": "tool",
        "tool": "bash",
        "callID": "c",
        "state": {"status": status, "input": {"command": "x"}, **state},
    }


def text(words, **marks):
    return {"type": "text", "text": words, **marks}


def said(records):
    return [(record["id"], record["role"], record["content"] or record["thinking"] or "") for record in records]


def test_a_call_is_told_when_it_runs_and_its_result_when_it_is_there(program):
    """One state, walked on again and again, gives every record once, under the id of a walk from the beginning."""
    store, state = opened(program.path.parent), {}
    program.message("m1", USER)
    program.part("p1", "m1", text("go"))
    program.message("m2", STEP)
    program.part(
        "p2", "m2", {"type": "tool", "tool": "bash", "callID": "c", "state": {"status": "pending", "input": {}}}
    )
    session = only(store)
    assert said(store.messages(session, state, whole=True)) == [(1, "user", "go")]
    program.part("p2", "m2", tool("running"))
    assert said(store.messages(session, state, whole=True)) == [(2, "assistant", "")]
    program.part("p3", "m2", text(""))
    assert said(store.messages(session, state, whole=True)) == []
    program.part("p3", "m2", text("meanwhile"))
    program.part("p2", "m2", tool("completed", output="out", metadata={"exit": 0}))
    assert said(store.messages(session, state, whole=True)) == [(3, "tool", "out"), (4, "assistant", "meanwhile")]
    program.message("m2", {**STEP, "error": {"name": "APIError", "data": {"message": "no"}}})
    assert said(store.messages(session, state, whole=True)) == [(5, "system", "APIError: no")]
    assert said(store.messages(session, state, whole=True)) == []
    assert [record["id"] for record in store.messages(session)] == [1, 2, 3, 4, 5]
    assert store.continues(session, {"state": state})


def test_a_walk_that_takes_all_there_is_tells_a_pending_call(program):
    program.message("m2", STEP)
    program.part(
        "p2", "m2", {"type": "tool", "tool": "bash", "callID": "c", "state": {"status": "pending", "input": {}}}
    )
    store = opened(program.path.parent)
    assert said(store.messages(only(store))) == [(1, "assistant", "")]


def test_a_step_that_grows_behind_a_queued_prompt_is_noticed(program):
    store, state = opened(program.path.parent), {}
    program.message("m1", USER)
    program.part("p1", "m1", text("go"))
    program.message("m2", STEP)
    program.message("m3", {**USER, "time": {"created": 1796072269000}})
    program.part("p5", "m3", text("and then"))
    session = only(store)
    assert len(list(store.messages(session, state))) == 2
    assert store.continues(session, {"state": state})
    program.part("p2", "m2", text("on it"))
    assert not store.continues(session, {"state": state})


def test_a_walk_goes_on_with_a_step_that_grows_behind_a_queued_prompt(program):
    """Whoever follows the session is told everything once, in the order of its appearance."""
    store, state = opened(program.path.parent), {}
    program.message("m1", USER)
    program.part("p1", "m1", text("go"))
    program.message("m2", STEP)
    program.message("m3", {**USER, "time": {"created": 1796072269000}})
    program.part("p5", "m3", text("and then"))
    session = only(store)
    told = [record["content"] for record in store.messages(session, state)]
    for words, number in (("one", 2), ("two", 3)):
        program.part(f"p{number}", "m2", text(words))
        told += [record["content"] for record in store.messages(session, orjson.loads(orjson.dumps(state)))]
        told += [record["content"] for record in store.messages(session, state)]
    program.message("m2", {**DONE, "error": {"name": "APIError", "data": {"message": "no"}}})
    program.message("m4", {**DONE, "parentID": "m3", "time": {"created": 1796072270000, "completed": 1}})
    program.part("p6", "m4", text("last"))
    told += [record["content"] for record in store.messages(session, state)]
    assert told == ["go", "and then", "one", "one", "two", "two", "APIError: no", "last"]
    assert not store.rewritten(session, state)
    assert list(store.messages(session, state)) == []


def test_a_revert_that_was_made_is_noticed(program):
    store, state = opened(program.path.parent), {}
    for number in range(1, 4):
        program.message(f"m{number}", {**USER, "time": {"created": 1796072258000 + number}})
        program.part(f"p{number}", f"m{number}", text("go"))
    session = only(store)
    list(store.messages(session, state))
    program.database.execute("DELETE FROM part WHERE id = 'p2'")
    program.database.execute("DELETE FROM message WHERE id = 'm2'")
    assert not store.continues(session, {"state": state})


def test_the_facts_of_a_session_that_grew_are_those_of_a_new_read(program):
    """With a catalogue, only what is new is read; the result is the same as without."""
    kept = Memory()
    place = OpenCode.locate({"TOTAL_RECALL_OPENCODE_ROOT": str(program.path.parent)})
    program.message("m1", USER)
    program.part("p1", "m1", text("go"))
    program.message("m2", STEP)
    for number, data in enumerate((tool("running"), tool("completed", output="o"), text("done")), 2):
        program.part(f"p{min(number, 3)}" if number < 4 else "p4", "m2", data)
        with_catalogue, alone = OpenCode(place, Notices(), kept), OpenCode(place, Notices())
        (session,) = with_catalogue.sessions()
        facts, fresh = with_catalogue.facts(session), alone.facts(session)
        assert orjson.loads(orjson.dumps(facts["counts"])) == fresh["counts"]
    assert fresh["counts"]["tool_count"] == 2


def test_a_part_that_changes_in_place_changes_the_signature(program):
    program.message("m1", USER)
    program.part("p1", "m1", text("go"))
    program.message("m2", STEP)
    program.part("p2", "m2", tool("running"))
    store = opened(program.path.parent)
    session = only(store)
    before = store.signature(session)
    assert store.signature(session) == before
    program.part("p2", "m2", tool("completed", output="o"))
    assert store.signature(session) != before
    program.message("m3", {**USER, "time": {"created": 1796072269000}})
    program.part("p9", "m3", text("queued"))
    before = store.signature(session)
    program.part("p2", "m2", tool("completed", output="more"))
    assert store.signature(session) != before
    for _ in range(20):
        store.signature(session)
    listed = store.signature(only(store))
    program.part("p3", "m2", text("done"))
    assert store.signature(session) != listed


def test_many_signatures_are_those_of_each(tmp_path):
    shutil.copy(STORES / "main-1.18.33" / "opencode" / "opencode.db", tmp_path)
    store, other = opened(tmp_path), opened(tmp_path)
    sessions = store.sessions()
    assert [store.signature(s) for s in sessions] == [other._tables.signature(s.session_id) for s in sessions]


def compacted(program, **summary):
    program.message("m1", USER)
    program.part("p1", "m1", text("long talk"))
    program.message("m2", {**USER, "time": {"created": 1796072261000}})
    program.part("p2", "m2", {"type": "compaction", "auto": False})
    program.message("m3", {**DONE, "parentID": "m2", "summary": True, "time": {"created": 1796072262000}, **summary})
    program.part("p3", "m3", text("what was said"))
    program.message("m4", {**USER, "time": {"created": 1796072263000}})
    program.part("p4", "m4", text("go on"))


def test_a_finished_summary_is_told_in_the_compactions_place(program):
    compacted(program)
    store = opened(program.path.parent)
    expected = [(1, "user", "long talk"), (2, "system", "what was said"), (4, "user", "go on")]
    assert said(store.messages(only(store))) == expected
    assert said(store.since_compaction(only(store))) == expected[1:]


@pytest.mark.parametrize("failure", [{"error": {"name": "APIError"}}, {"finish": None}, {"finish": "", "error": {}}])
def test_a_compaction_that_failed_is_no_boundary(failure, program):
    compacted(program, **failure)
    store = opened(program.path.parent)
    records = list(store.messages(only(store)))
    assert [record["class"] for record in records if record["class"] == "compaction"] == []
    assert (3, "system", "what was said") in said(records)
    assert list(store.since_compaction(only(store))) == records
    assert not store.row(only(store))["has_compaction"]


def test_a_hidden_compaction_is_no_boundary(program):
    compacted(program)
    program.database.execute("UPDATE session SET revert = ?", (json.dumps({"messageID": "m2"}),))
    store = opened(program.path.parent)
    assert list(store.since_compaction(only(store))) == list(store.messages(only(store)))


def test_a_revert_within_a_message_hides_the_rest_of_it(program):
    program.message("m1", USER)
    program.part("p1", "m1", text("go"))
    program.message("m2", DONE)
    for number in (2, 3):
        program.part(f"p{number}", "m2", text(f"step {number}"))
    program.database.execute("UPDATE session SET revert = ?", (json.dumps({"messageID": "m2", "partID": "p3"}),))
    store = opened(program.path.parent)
    assert [r["content"] for r in store.messages(only(store)) if "branch" in r] == ["step 3"]
    assert store.abandoned(only(store)) == [(3, 3)]


def test_an_unknown_mark_is_not_taken_for_a_person(program):
    program.message("m1", USER)
    program.part("p1", "m1", text("by whom?", synthetic="perhaps"))
    program.message("m2", {"role": "critic", "time": {"created": 1796072259000}})
    program.part("p2", "m2", text("who speaks?"))
    store = opened(program.path.parent)
    assert [(r["role"], r["authorship"]) for r in store.messages(only(store))] == [
        ("user", "injected"),
        ("system", "injected"),
    ]
    assert store.row(only(store))["user_count"] == 0


def test_what_a_person_merely_quotes_is_a_prompt(program):
    program.message("m1", USER)
    program.part("p1", "m1", text("The following tool was executed by the user"))
    store = opened(program.path.parent)
    assert [r["class"] for r in store.messages(only(store))] == ["human-text"]


def test_damaged_rows_are_counted_shown_raw_and_the_rest_is_read(program):
    program.message("m1", USER)
    for number, data in enumerate(
        ('{"type":"text","text":"torn', "", "null", "[1]", b"\xff\xfe", 7, '{"type":"tool"}'), 1
    ):
        program.part(f"p{number}", "m1", data)
    program.part("p8", "m1", text("whole"))
    store = opened(program.path.parent)
    records = list(store.messages(only(store)))
    assert records[-1]["content"] == "whole"
    assert store.notices.said == {
        f"{program.path}: session s: 6 damaged rows, the first is p1; everything else was read": None
    }
    lines = [orjson.loads(entry.line()) for entry in store.entries(only(store), {})]
    assert [line["id"] for line in lines] == [f"p{number}" for number in range(1, 9)]
    assert lines[0]["data"] == '{"type":"text","text":"torn'


def test_a_damaged_row_keeps_the_ids_of_what_follows(program):
    program.message("m1", USER)
    program.part("p1", "m1", text("one"))
    program.part("p2", "m1", text("two"))
    store = opened(program.path.parent)
    before = list(store.messages(only(store)))
    program.part("p1", "m1", json.dumps(text("one"), separators=(",", ":"))[:-3])
    assert list(store.messages(only(store))) == before[1:]


def test_text_is_kept_to_the_last_byte(program):
    """NUL, lone surrogates (as U+FFFD), any line separator, and what is no UTF-8."""
    program.message("m1", USER)
    program.part("p1", "m1", '{"type":"text","text":"a\\u0000b\\u2028c\\ud800d"}')
    program.part("p2", "m1", b'{"type":"text","text":"caf\xe9"}')
    store = opened(program.path.parent)
    assert [r["content"] for r in store.messages(only(store))] == ["a\0b\u2028c\ufffdd", "caf\ufffd"]
    assert all(b"\n" not in entry.line() for entry in store.entries(only(store), {}))


def test_numbers_and_layout_of_a_raw_line_are_those_of_the_store(program):
    program.message("m1", USER)
    program.part("p1", "m1", '{"type":"text","text":"x","n":1.0,"big":12345678901234567890123}')
    program.part("p2", "m1", '{ "type": "text",\n "text": "y" }')
    store = opened(program.path.parent)
    first, second = (entry.line() for entry in store.entries(only(store), {}))
    assert first.endswith(b'"type":"text","text":"x","n":1.0,"big":12345678901234567890123}')
    assert second == b'{"id":"p2","message_id":"m1","role":"user","type":"text","text":"y"}'


def test_a_message_without_parts_is_not_lost(program):
    program.message("m1", {**DONE, "error": {"name": "APIError", "data": {"message": "refused"}}})
    program.message("m2", STEP, at=1796072260000)
    program.message("m3", '{"role":"user"', at=1796072261000)
    store = opened(program.path.parent)
    entries = list(store.entries(only(store), {}))
    assert [orjson.loads(entry.line())["id"] for entry in entries] == ["m1", "m2", "m3"]
    assert said(entries[0].messages) == [(1, "system", "APIError: refused")]
    assert "1 damaged row" in next(iter(store.notices.said))


def test_attachments_of_results_are_markers(program):
    image = {"mime": "image/png", "url": "data:image/png;base64," + "A" * 400}
    program.message("m2", DONE)
    program.part("p1", "m2", tool("completed", output="seen", attachments=[image, 3, {"mime": "text/plain"}]))
    store = opened(program.path.parent)
    assert list(store.messages(only(store)))[1]["content"] == "seen\n[image image/png 300 bytes]\n[file text/plain]"


def test_listing_loads_no_tool_output_and_no_data_url(program):
    program.message("m1", USER)
    program.part("p1", "m1", {"type": "file", "mime": "image/png", "url": "data:image/png;base64," + "A" * 4000})
    program.message("m2", DONE)
    program.part("p2", "m2", tool("completed", output="o" * 4000))
    store = opened(program.path.parent)
    batches = store._tables.batches("s", None, bodies=False)
    assert [part.raw for batch in batches for part in batch.parts] == [None, None]
    row = store.row(only(store))
    assert (row["user_count"], row["tool_count"], row["line_count"]) == (1, 1, 2)


def test_memory_is_bounded_by_the_page_not_by_the_message(program, monkeypatch):
    monkeypatch.setattr(_opencode_pages, "_PAGE_BYTES", 10_000)
    program.message("m2", DONE)
    for number in range(50):
        program.part(f"p{number:02}", "m2", tool("completed", output="o" * 4000))
    store = opened(program.path.parent)
    batches = list(store._tables.batches("s", None))
    assert max(sum(part.size for part in batch.parts) for batch in batches) < 20_000
    assert len(list(store.messages(only(store)))) == 100


def test_odd_columns_do_not_stop_a_listing(program):
    program.database.execute("INSERT INTO session VALUES ('b', 7, x'2f64', NULL, 'x', 'yesterday', 'today', 'never')")
    program.database.execute("INSERT INTO session VALUES ('c', NULL, '', '', '[]', -5, 1e300, NULL)")
    program.database.execute(
        "INSERT INTO session VALUES ('d', NULL, NULL, 'one' || char(10) || 'line', 3, 1796072258, 1796072258, 0)"
    )
    program.message("m1", USER)
    program.database.execute("INSERT INTO message VALUES ('x', 'c', 'noon', 0, '{}'), ('y', 'c', NULL, 0, NULL)")
    store = opened(program.path.parent)
    rows = {session.session_id: store.row(session) for session in store.sessions()}
    assert set(rows) == {"s", "b", "c", "d"}
    assert not any("read_error" in row for row in rows.values())
    assert rows["d"]["title"] == "one"
    assert rows["d"]["start_time"] == "2026-11-30T20:57:38.000Z"
    assert [s.session_id for s in store.sessions(since=1796072000)] == ["d", "s"]


def test_an_older_schema_lacks_columns(tmp_path):
    database = sqlite3.connect(tmp_path / "opencode.db")
    database.executescript(
        """CREATE TABLE session (id text, title text); CREATE TABLE message (id text, session_id text, data text);
        CREATE TABLE part (id text, message_id text, session_id text, data text);
        INSERT INTO session VALUES ('s', 'T'); INSERT INTO message VALUES ('m', 's', '{"role":"user"}');
        INSERT INTO part VALUES ('p', 'm', 's', '{"type":"text","text":"hi"}');"""
    )
    database.close()
    store = opened(tmp_path)
    row = store.row(only(store))
    assert (row["title"], row["directory"], row["user_count"], row["end_time"]) == ("T", None, 1, None)
    assert said(store.since_compaction(only(store))) == [(1, "user", "hi")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PARTS = [
    text("words", synthetic=False, metadata={}),
    {"type": "reasoning", "text": "hm", "time": {"start": 1}},
    tool("completed", output="o", metadata={"exit": 0, "todos": []}, time={"start": 1, "end": 2}, attachments=[{}]),
    {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA", "filename": "f"},
    {"type": "compaction", "auto": True, "overflow": True, "tail_start_id": "m1"},
    {"type": "subtask", "prompt": "p"},
]


@st.composite
def mutated(draw, samples):
    """A stored object with one of its values, at any depth, replaced by anything."""
    value = json.loads(json.dumps(draw(st.sampled_from(samples))))
    inner = value
    while True:
        key = draw(st.sampled_from(sorted(inner) if isinstance(inner, dict) else range(len(inner))))
        if isinstance(inner[key], (dict, list)) and inner[key] and draw(st.booleans()):
            inner = inner[key]
            continue
        inner[key] = draw(JSON)
        return value


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    message=mutated([USER, DONE, {**DONE, "tokens": {"input": 1, "cache": {}}, "error": {"name": "E", "data": {}}}]),
    parts=st.lists(mutated(PARTS), max_size=4),
)
def test_any_value_of_any_type_is_read(program, message, parts):
    """No type of any field raises, the ids are those the database counts, and every part is shown raw."""
    for table in ("message", "part"):
        program.database.execute(f"DELETE FROM {table}")
    program.message("m1", USER)
    program.message("m2", message, at=1796072259000)
    for number, part in enumerate(parts):
        program.part(f"p{number}", "m2", part)
    store, state = opened(program.path.parent), {}
    session = only(store)
    entries = list(store.entries(session, state))
    records = [record for entry in entries for record in entry.messages]
    assert orjson.dumps(records)
    ids = [record["id"] for record in records]
    assert ids == sorted(set(ids))
    assert sum(orjson.loads(entry.line())["id"].startswith("p") for entry in entries) == len(parts)
    position = tuple(state["after"])
    assert store._tables.ids_before("s", position) == state["id"]
    assert "read_error" not in store.row(session)
    assert list(store.since_compaction(session)) is not None
    counted, read = Tally(), Tally()
    for tally, walk in ((counted, store.skimmed), (read, partial(store.entries, whole=True))):
        for entry in walk(session, tally.state):
            tally.add(entry)
    assert counted.state == read.state
    assert {**counted.counts, "start_time": 0, "end_time": 0} == {**read.counts, "start_time": 0, "end_time": 0}


def corrupted(path, seed):
    """Overwrite one page in the middle of a database."""
    data = bytearray(path.read_bytes())
    pages = len(data) // 4096
    page = random.Random(seed).randrange(pages // 4, pages)
    data[page * 4096 : page * 4096 + 4096] = b"\xa5" * 4096
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(12))
def test_a_database_with_a_bad_page_is_read_round_it(seed, tmp_path):
    """Every session either says what is wrong with it or is read; what is lost is counted."""
    path = tmp_path / "opencode.db"
    shutil.copy(STORES / "main-1.18.33" / "opencode" / "opencode.db", path)
    whole = opened(tmp_path)
    known = {session.session_id: len(list(whole.messages(session))) for session in whole.sessions()}
    corrupted(path, seed)
    store, read, reasons = opened(tmp_path), 0, []
    try:
        for session in store.sessions():
            try:
                read += len(list(store.messages(session)))
            except (Unreadable, FileNotFoundError) as error:
                reasons.append(str(error))
    except Unreadable as error:
        read, reasons = sum(known.values()), [str(error)]
    assert all("malformed" in reason or reason.startswith("ses_") for reason in reasons)
    assert read > 0.9 * sum(known.values())
    assert reasons or "damaged row" in "".join(store.notices.said)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"no database" * 1000, "file is not a database"), (None, "not a database of OpenCode")],
)
def test_what_is_no_store_of_opencode_is_named(content, reason, tmp_path):
    path = tmp_path / "opencode.db"
    if content is None:
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE cookies (name)")
        database.close()
    else:
        path.write_bytes(content)
    with pytest.raises(Unreadable) as error:
        opened(tmp_path).sessions()
    assert str(path) in str(error.value)
    assert error.value.reason == reason


def test_an_unreadable_database_does_not_hide_the_json_tree(tmp_path):
    shutil.copytree(STORES / "json-1.1.65" / "opencode", tmp_path / "opencode")
    (tmp_path / "opencode" / "opencode.db").write_bytes(b"no database" * 1000)
    store = opened(tmp_path / "opencode")
    assert len(store.sessions()) == 7
    assert "file is not a database" in store.notices.failures["opencode"]


def test_an_empty_database_is_an_empty_store(tmp_path):
    (tmp_path / "opencode.db").touch()
    store = opened(tmp_path)
    assert store.exists()
    assert store.sessions() == []


def test_damage_in_the_json_tree_costs_what_is_damaged(tmp_path):
    root = tmp_path / "opencode"
    shutil.copytree(STORES / "json-1.1.65" / "opencode", root)
    storage = root / "storage"
    sessions = sorted(storage.glob("session/*/*.json"))
    whole = opened(root)
    before = {s.session_id: list(whole.messages(s)) for s in whole.sessions()}
    sessions[0].write_text("{")
    (storage / "session" / "global" / "ses_x.json").mkdir()
    part = next(path for path in sorted(storage.glob("part/*/*.json")) if b'"text"' in path.read_bytes())
    part.write_bytes(part.read_bytes()[:30])
    os.remove(next(iter(sorted(storage.glob("message/*/*.json")))))
    (storage / "session" / "stray").write_text("not a folder")
    store = opened(root)
    listed = store.sessions()
    assert {s.session_id for s in listed} == {*before, "ses_x"}
    read = sum(len(list(store.messages(s))) for s in listed)
    assert sum(map(len, before.values())) - 6 < read < sum(map(len, before.values()))
    said = "\n".join(store.notices.said)
    assert f"{sessions[0]}: damaged" in said
    assert "1 damaged row" in said


def test_an_id_from_a_damaged_file_never_becomes_a_path(tmp_path):
    root = tmp_path / "opencode"
    shutil.copytree(STORES / "json-1.1.65" / "opencode", root)
    path = next(root.glob("storage/session/*/ses_dd1aa321dffejsy9IgIUQyl0xe.json"))
    session = json.loads(path.read_text())
    (tmp_path / "secret.json").write_text('{"role":"user","time":{"created":1}}')
    path.write_text(json.dumps({**session, "revert": {"messageID": "../../../../secret"}}))
    store = opened(root)
    (found,) = (s for s in store.sessions() if s.session_id == session["id"])
    assert not any("branch" in record for record in store.messages(found))


def test_a_session_that_is_gone_by_the_time_it_is_read(program):
    store = opened(program.path.parent)
    session = only(store)
    program.database.execute("DELETE FROM session")
    assert store.row(session)["read_error"] == "gone"
    assert store.entry_at(session, {"table": "part", "id": "p1"}) is None


def tree(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


def test_sessions_that_may_mention_a_word_are_told_by_the_database(tmp_path):
    shutil.copytree(STORES / "main-1.18.33" / "opencode", tmp_path / "opencode")
    store = opened(tmp_path / "opencode")
    for words in (
        ["pelican"],
        ["HERON", "teal"],
        ["東京タワー"],
        ['"k": "v'],
        ["two_txt", "a.txt"],
        ["v2 API"],
        ["nowhere"],
    ):
        may = store.mentioning(words)
        for session in store.sessions():
            texts = orjson.dumps([[m["content"], m["thinking"], m["tool_calls"]] for m in store.messages(session)])
            if any(word.lower() in texts.decode().replace('\\"', '"').lower() for word in words):
                assert session.session_id in may
    assert store.mentioning(["nowhere"]) == frozenset()
    assert 0 < len(store.mentioning(["pelican"])) < 4
    assert store.mentioning(["Größe"]) is not None
    assert store.mentioning(["ß"]) is None


@pytest.mark.parametrize("version", ["main-1.18.33", "json-1.1.65", "migrated-1.2.1", "upgraded-1.18.33"])
def test_nothing_is_written_into_a_store(version, tmp_path):
    root = tmp_path / "opencode"
    shutil.copytree(STORES / version / "opencode", root)
    before = tree(root)
    store = opened(root)
    for session in store.sessions():
        store.row(session)
        list(store.since_compaction(session))
        for record in store.messages(session):
            store.entry_at(session, record["ref"])
    assert tree(root) == before
    made = {path.name for path in root.iterdir()} - {name.split("/")[0] for name in before}
    assert made <= {"opencode.db-shm"}


def test_no_lock_is_held_while_a_reader_takes_its_time(program):
    """Between two records the program can do what needs the database for itself."""
    for number in range(3):
        program.message(f"m{number}", {**USER, "time": {"created": 1796072258000 + number}})
        program.part(f"p{number}", f"m{number}", text("go"))
    store = opened(program.path.parent)
    records = store.messages(only(store))
    next(records)
    program.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert program.database.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    assert len(list(records)) == 2
