"""OpenCode's real stores, of four versions, against what is known to be in them."""

import json
import os
import re
import shutil
import sqlite3
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import orjson
import pytest
from total_recall.notices import Notices
from total_recall.stores import _opencode_pages, _sqlite
from total_recall.stores._opencode_db import Tables
from total_recall.stores.base import Memory, Tally
from total_recall.stores.opencode import OpenCode

STORES = Path(__file__).parents[1] / "fixtures" / "opencode"
TRUTH = {
    (store.parent.name, truth["id"]): truth
    for store in sorted(STORES.glob("*/truth.json"))
    for truth in json.loads(store.read_text())
}
VERSIONS = sorted({version for version, _ in TRUTH})
MARKER = re.compile(r"\[(image|file)\b[^\]]*\]$")


def opened(root, **environ):
    store = OpenCode.locate({"TOTAL_RECALL_OPENCODE_ROOT": str(root), **environ})
    assert store is not None
    return OpenCode(store, Notices())


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """A copy of all stores, since a database with a WAL cannot be read without a -shm beside it."""
    folder = tmp_path_factory.mktemp("opencode")
    for version in VERSIONS:
        shutil.copytree(STORES / version / "opencode", folder / version)
    return folder


@pytest.fixture(scope="module")
def stores(copies):
    return {version: opened(copies / version) for version in VERSIONS}


@pytest.fixture(scope="module")
def sessions(stores):
    return {(version, session.session_id): session for version in VERSIONS for session in stores[version].sessions()}


def each(choose=lambda version, truth: True):
    """A fixture: (store, session, truth) of every session that is known to exist and is chosen."""
    keys = [key for key, truth in sorted(TRUTH.items()) if choose(key[0], truth)]

    @pytest.fixture(params=keys, ids=lambda key: f"{key[0]}-{'+'.join(TRUTH[key]['keys']) or key[1][-8:]}")
    def of(request, stores, sessions):
        return stores[request.param[0]], sessions[request.param], TRUTH[request.param]

    return of


known = each()
with_parts = each(lambda version, truth: truth["keys"] != ["v2-api"])
in_tables = each(lambda version, truth: truth["keys"] != ["v2-api"] and not version.startswith("json"))


def key_of(version, key):
    return next(id for (store, id), truth in TRUTH.items() if store == version and key in truth["keys"])


@pytest.fixture
def main(stores, sessions):
    """Sessions of the newest store by the key that names what they are for: (store, session, records)."""

    def find(key, version="main-1.18.33"):
        store, session = stores[version], sessions[version, key_of(version, key)]
        return store, session, list(store.messages(session))

    return find


@pytest.fixture
def asked(monkeypatch):
    """Every statement that is carried out from now on."""
    statements = []

    class Heard(sqlite3.Connection):
        def execute(self, sql, *values):
            statements.append(sql)
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Heard))
    return statements


def test_a_database_that_nobody_wrote_to_is_not_read_again_to_list_it(copies, tmp_path, asked, monkeypatch):
    """All that is asked is the table of sessions, and a few signatures before it is known that many are needed."""
    monkeypatch.setattr(_sqlite, "_SETTLED_SECONDS", 0)
    shutil.copy(copies / "main-1.18.33" / "opencode.db", tmp_path)
    place, kept = OpenCode.locate({"TOTAL_RECALL_OPENCODE_ROOT": str(tmp_path)}), Memory()

    def listed():
        asked.clear()
        store = OpenCode(place, Notices(), kept)
        rows = [store.row(session) for session in store.sessions()]
        return rows, [sql for sql in asked if re.search(r"FROM (part|message|session_message)\b", sql)]

    first, read = listed()
    again, read_again = listed()
    assert (again, len(first)) == (first, 30)
    assert len(read_again) < 8 < len(read)
    time.sleep(0.02)  # the clock of a file system is no finer
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as database, database:
        database.execute("UPDATE part SET id = id || 'z' WHERE id = (SELECT max(id) FROM part)")
    _, read_anew = listed()
    assert len(read_anew) > 30


def test_what_is_before_the_last_compaction_is_numbered_once(main, copies, monkeypatch):
    _, session, records = main("compaction")
    place, kept = OpenCode.locate({"TOTAL_RECALL_OPENCODE_ROOT": str(copies / "main-1.18.33")}), Memory()
    numbered = []
    count = Tables.ids_before
    monkeypatch.setattr(Tables, "ids_before", lambda *given: numbered.append(given) or count(*given))
    tails = [list(OpenCode(place, Notices(), kept).since_compaction(session)) for _ in range(3)]
    assert tails[0] == tails[1] == tails[2] == records[-len(tails[0]) :]
    assert len(numbered) == 1


def same_text(given, known):
    """Whether a text is the known one, which is cut when it is long."""
    if cut := re.search(r"\.\.\.\((\d+) chars\)$", known):
        return len(given) == int(cut[1]) and given.startswith(known[: cut.start()])
    return given == known


def calls_of(records):
    return [(call, record) for record in records for call in record["tool_calls"]]


def results_of(records):
    return {record["tool_call_id"]: record for record in records if record["role"] == "tool"}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_session_is_listed_once(version, stores):
    listed = [session.session_id for session in stores[version].sessions()]
    assert sorted(listed) == sorted(id for store, id in TRUTH if store == version)


def test_rows_say_what_the_store_says(known):
    store, session, truth = known
    row = store.row(session)
    assert "read_error" not in row
    assert row["title"] == truth["title"]
    assert row["directory"] == truth["directory"]
    assert row["parent_session_id"] == truth["parent"]
    assert bool(row.get("archived")) == (truth["archived"] is not None)
    assert row["has_compaction"] == any(compaction["summary_ok"] for compaction in truth["compactions"])


def test_children_are_named_by_their_parents(known):
    store, session, truth = known
    mine = [id for (version, id), other in TRUTH.items() if other["parent"] == truth["id"] and (version, id) in TRUTH]
    assert sorted(store.row(session)["child_sessions"]) == sorted(set(mine))


def test_texts_are_verbatim_in_order_and_by_their_authors(with_parts):
    store, session, truth = with_parts
    given = []
    for record in store.messages(session):
        if MARKER.match(record["content"]) or not record["content"]:
            continue
        if record["class"] == "compaction" or record["authorship"] == "model":
            given.append(("assistant", record["content"]))
        elif record["role"] == "user" and not record["injected"]:
            assert record["authorship"] == ("delegated" if truth["parent"] else "human")
            given.append(("user", record["content"]))
        elif record["role"] == "user" and record["ref"]["id"] not in subtasks(store, session):
            given.append(("marked", record["content"]))
    expected = [("marked" if "/" in who else who, text) for who, text in truth["texts"]]
    assert [who for who, _ in given] == [who for who, _ in expected]
    assert all(same_text(text, known) for (_, text), (_, known) in zip(given, expected, strict=True))


def subtasks(store, session):
    lines = (orjson.loads(entry.line()) for entry in store.entries(session, {}))
    return {line["id"] for line in lines if line.get("type") == "subtask"}


def test_thinking_is_complete_and_in_order(known):
    store, session, truth = known
    assert [record["thinking"] for record in store.messages(session) if record["thinking"]] == truth["reasoning"]


def test_every_tool_call_has_its_state(known):
    store, session, truth = known
    records = list(store.messages(session))
    results = results_of(records)
    states = {}
    for call, _ in calls_of(records):
        result = results.get(call["id"])
        state = "running" if result is None else "error" if result["is_error"] else "completed"
        if call["name"] in ("bash", "invalid") and state == "error":
            state = "completed"  # the program calls a command that failed, and a call that was none, completed
        states.setdefault(call["name"], Counter())[state] += 1
    assert states == truth["tool_calls"]


def test_calls_and_results_take_neighbouring_ids(known):
    store, session, _ = known
    records = list(store.messages(session))
    ids = [record["id"] for record in records]
    assert ids == sorted(set(ids))
    results = results_of(records)
    for call, record in calls_of(records):
        if call["id"] in results:
            assert results[call["id"]]["id"] == record["id"] + 1


def test_commands_carry_what_was_run_and_whether_it_failed(known):
    store, session, truth = known
    records = list(store.messages(session))
    results = results_of(records)
    given = []
    for call, record in calls_of(records):
        if call["name"] == "bash":
            result = results.get(call["id"])
            given.append([call["arguments"]["command"], result and result["is_error"], record["class"]])
    expected = []
    for state, exit, command in truth["bash"]:
        own = command == "ls *.py; git tag --list"
        failed = None if state == "running" or own else exit != 0
        expected.append([command, failed, "command" if own else "tool-input"])
    assert given == expected


def test_todo_flushes_are_both_in_the_call_and_in_its_result(known):
    store, session, truth = known
    records = list(store.messages(session))
    results = results_of(records)
    flushes = [
        (call["arguments"]["todos"], results[call["id"]]["tool_result"])
        for call, _ in calls_of(records)
        if call["name"] == "todowrite" and not results[call["id"]]["is_error"]
    ]
    keys = ("content", "status", "priority")
    for side in (0, 1):
        assert [[[todo[key] for key in keys] for todo in flush[side]] for flush in flushes] == truth["todo_flushes"]


def test_answers_belong_to_questions_in_their_order(known):
    store, session, truth = known
    records = list(store.messages(session))
    results = results_of(records)
    pairs = []
    for call, _ in calls_of(records):
        if call["name"] == "question":
            result = results.get(call["id"])
            answers = result.get("tool_result") if result else None
            for number, question in enumerate(call["arguments"]["questions"]):
                pairs.append((question["question"], answers[number] if answers else None))
    assert pairs == [(pair["question"], pair["answer"]) for pair in truth["qa"]]


def test_failures_are_told(with_parts):
    store, session, truth = with_parts
    failures = [record for record in store.messages(session) if record["role"] == "system" and record["is_error"]]
    assert [record["content"].split(":")[0] for record in failures] == truth["errors"]
    assert all(": " in record["content"] for record in failures)


def test_a_compaction_is_one_record_with_the_summary(known):
    store, session, truth = known
    records = [record for record in store.messages(session) if record["class"] == "compaction"]
    expected = [compaction for compaction in truth["compactions"] if compaction["summary_ok"]]
    assert [record["trigger"] for record in records] == ["auto" if c["auto"] else "manual" for c in expected]
    assert all(record["role"] == "system" and not record["injected"] for record in records)
    summaries = [text for _, text in truth["texts"] if text.startswith(("## Goal", "Summary:"))]
    assert [record["content"] for record in records] == summaries


def test_line_count_is_the_parts_and_file_size_their_bytes(in_tables):
    store, session, _ = in_tables
    row = store.row(session)
    sql = """SELECT (SELECT count(*) FROM part WHERE session_id = :s),
        (SELECT total(length(CAST(data AS BLOB))) FROM part WHERE session_id = :s) +
        (SELECT total(length(CAST(data AS BLOB))) FROM message WHERE session_id = :s)"""
    counted = store._tables.database.look(lambda c: c.execute(sql, {"s": session.session_id}).fetchone())
    assert (row["line_count"], row["file_size"]) == counted


def test_counts_are_those_of_the_records(known):
    store, session, _ = known
    row = store.row(session)
    records = [record for record in store.messages(session) if not record.get("replayed")]
    groups = {entry.messages[0]["id"]: entry.group for entry in store.entries(session, {}) if entry.messages}
    typed = [record for record in records if record["authorship"] in ("human", "delegated")]
    prompts = {groups[record["id"]] for record in typed if record["role"] == "user"}
    spoken = [record for record in records if record["authorship"] == "model" and record["content"]]
    answers = {groups[record["id"]] for record in spoken}
    assert (row["user_count"], row["assistant_count"]) == (len(prompts), len(answers))
    assert row["tool_count"] == len(calls_of(records))


def test_a_walk_for_counting_counts_what_a_walk_for_reading_does(known):
    store, session, _ = known
    counted, read = Tally(), Tally()
    for entry in store.skimmed(session, counted.state):
        counted.add(entry)
    for entry in store.entries(session, read.state, whole=True):
        read.add(entry)
    assert counted.state == read.state
    assert (counted.slice, counted.first_prompt) == (read.slice, read.first_prompt)
    times = {"start_time": None, "end_time": None}  # those of the session are told
    assert counted.counts | times == read.counts | times


def test_the_tokens_of_a_message_are_told_once(in_tables):
    store, session, _ = in_tables
    told = [record["usage"] for record in store.messages(session) if "usage" in record]
    sql = """SELECT total(json_extract(data, '$.tokens.input')), total(json_extract(data, '$.tokens.output'))
        FROM message WHERE session_id = ?"""
    stored = store._tables.database.look(lambda c: c.execute(sql, (session.session_id,)).fetchone())
    assert (sum(usage["input"] for usage in told), sum(usage["output"] for usage in told)) == stored


def test_raw_lines_are_the_stored_parts_once_each(with_parts):
    store, session, truth = with_parts
    entries = list(store.entries(session, {}))
    lines = [orjson.loads(entry.line()) for entry in entries]
    assert all(b"\n" not in entry.line() for entry in entries)
    ids = [line["id"] for line in lines]
    assert len(ids) == len(set(ids))
    parts = [line for line in lines if line["id"].startswith("prt_")]
    assert all(list(line)[:3] == ["id", "message_id", "role"] for line in parts)
    assert sum(line["type"] == "tool" for line in parts) == sum(sum(c.values()) for c in truth["tool_calls"].values())


def test_raw_types_follow_the_parts(main):
    store, session, _ = main("fork")
    types = Counter((orjson.loads(entry.line()).get("type"), entry.raw_type()) for entry in store.entries(session, {}))
    assert set(types) == {
        ("text", "user"),
        ("text", "assistant"),
        ("reasoning", "thinking"),
        ("tool", "tool"),
        ("step-start", "system"),
        ("step-finish", "system"),
        ("patch", "system"),
    }


def test_since_the_last_compaction_is_the_end_of_the_whole(known):
    store, session, _ = known
    whole = list(store.messages(session))
    first = store.facts(session)["slice"] or 1
    assert list(store.since_compaction(session)) == [record for record in whole if record["id"] >= first]


def test_a_kept_tail_is_seen_with_the_summary(main):
    """After a compaction with a tail the model sees the summary and the messages from the tail on."""
    store, session, records = main("compaction-tail")
    first, last = (record for record in records if record["class"] == "compaction")
    entry = next(entry for entry in store.entries(session, {}) if first in entry.messages)
    assert next(r for r in records if r["id"] == entry.slice)["content"] == "Chapter 3, please"
    assert next(store.since_compaction(session)) == last


def test_a_prompt_repeated_after_an_overflow_counts_once(main):
    store, session, records = main("compaction-tail")
    typed = [record for record in records if record["content"] == "Overflow now"]
    assert [record.get("replayed") for record in typed] == [None, True]
    assert store.row(session)["user_count"] == 9


def test_any_position_can_be_gone_on_from(known):
    """A copy of the state taken between two entries, kept as JSON, continues the walk there."""
    store, session, _ = known
    state, kept, seen = {}, [], []
    for entry in store.entries(session, state):
        seen.append((entry.messages, entry.line()))
        kept.append(orjson.dumps(state))
    for number, text in enumerate(kept):
        state = orjson.loads(text)
        assert store.continues(session, {"state": state}) or store._source(session).is_newer(session.session_id)
        rest = [(entry.messages, entry.line()) for entry in store.entries(session, state)]
        assert rest == seen[number + 1 :]
    offsets = [orjson.loads(text)["offset"] for text in kept]
    assert offsets == sorted(offsets)


def test_ids_before_a_position_are_those_of_the_walk(with_parts):
    store, session, _ = with_parts
    source, state = store._source(session), {}
    for _ in store.entries(session, state):
        assert source.ids_before(session.session_id, tuple(state["after"])) == state["id"]


@pytest.mark.parametrize("size", [1, 3000])
def test_pages_make_no_difference(size, main, monkeypatch):
    keys = ("alpha-git", "compaction-tail", "errors", "pruned")
    whole = {key: main(key)[2] for key in keys}
    monkeypatch.setattr(_opencode_pages, "_PAGE_BYTES", size)
    monkeypatch.setattr(_opencode_pages, "PAGE_ROWS", 2)
    assert {key: main(key)[2] for key in keys} == whole


def test_a_page_is_read_with_one_statement_for_all_messages_and_one_for_all_parts(main, asked):
    store, session, _ = main("alpha-git")
    opened(store.root)._tables.database.look(lambda c: None)
    asked.clear()
    batches = list(opened(store.root)._tables.batches(session.session_id, None))
    assert len(batches) == 13
    assert len([sql for sql in asked if " part " in sql and not sql.startswith("EXPLAIN")]) == 1
    assert len([sql for sql in asked if "FROM message m WHERE" in sql]) == 1


@pytest.mark.parametrize("key", ["alpha-git", "compaction-tail", "errors"])
def test_a_version_without_the_indexes_gives_the_same(key, main, tmp_path):
    store, session, records = main(key)
    shutil.copy(os.path.join(store.root, "opencode.db"), tmp_path)
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as database:
        for name in ("message_session_time_created_id_idx", "part_message_id_id_idx"):
            database.execute(f"DROP INDEX {name}")
    other = opened(tmp_path)
    assert list(other.messages(session)) == records
    assert other.facts(session) == store.facts(session)


def test_a_record_is_found_again_by_its_ref(known):
    store, session, _ = known
    for entry in store.entries(session, {}):
        if not entry.messages:
            continue
        found = store.entry_at(session, entry.messages[0]["ref"])
        assert found is not None
        assert [{**m, "id": 0} for m in found.messages] == [{**m, "id": 0} for m in entry.messages]
        assert found.line() == entry.line()


def test_a_record_from_the_middle_is_reached_by_a_bookmark(main):
    store, session, records = main("pruned")
    store.facts(session)
    assert store._bookmarks(session)
    assert list(store.messages_from(session, 12)) == [record for record in records if record["id"] >= 12]


def test_forks_are_told_by_what_they_share(main):
    """A title is no evidence; copied records are marked, and count in the session that had them first."""
    _, origin, originals = main("alpha-git")
    for key, shared in (("fork-full", None), ("fork", "All done: two commits and the tag v0.1.0.")):
        store, session, records = main(key)
        assert store.row(session)["forked_from"] == {"session_id": origin.session_id, "kind": "fork"}
        copied = [record for record in records if record.get("replayed")]
        assert [r["content"] for r in copied] == [r["content"] for r in originals[: len(copied)]]
        assert copied[-1]["content"] == (shared or records[-1]["content"])
        assert store.row(session)["user_count"] == (1 if shared else 0)
    assert not any("replayed" in record for record in originals)


@pytest.mark.parametrize("version", ["json-1.1.65", "migrated-1.2.1", "upgraded-1.18.33"])
def test_forks_are_told_in_older_stores(version, main):
    store, session, records = main("fork", version)
    assert store.row(session)["forked_from"]["session_id"] == key_of(version, "git-todo")
    assert all(record["replayed"] for record in records)


@pytest.mark.parametrize(
    ("key", "version", "typed"),
    [("revert-staged", "main-1.18.33", ["Create two.txt", "Create three.txt"]), ("git-todo", "json-1.1.65", None)],
)
def test_what_a_staged_revert_hides_is_an_abandoned_branch(key, version, typed, main):
    store, session, records = main(key, version)
    hidden = [record for record in records if record.get("branch") == "abandoned"]
    assert hidden == records[-len(hidden) :]
    ((first, last),) = store.abandoned(session)
    assert [record for record in records if first <= record["id"] <= last] == hidden
    if typed:
        assert [record["content"] for record in hidden if record["authorship"] == "human"] == typed


def test_a_revert_that_was_taken_back_hides_nothing(main):
    store, session, records = main("unreverted")
    assert store.abandoned(session) == []
    assert not any("branch" in record for record in records)


def test_a_prompt_of_the_newer_form_is_read(main):
    """A session of the newer API has no messages and parts, but rows that hold both."""
    store, session, records = main("v2-api")
    assert [(r["role"], r["authorship"], r["content"]) for r in records] == [
        ("user", "human", "Say hello through the v2 API"),
        ("system", "injected", "unknown: HTTP transport failed"),
    ]
    assert store.row(session)["user_count"] == 1
    assert list(store.since_compaction(session)) == records


def test_attachments_are_markers(main):
    _, _, records = main("attachments-agents")
    assert [record["content"] for record in records if MARKER.match(record["content"])] == [
        "[file notes.md text/plain]",
        "[image image/png 73 bytes]",
    ]


def test_a_persons_own_command_is_no_prompt_and_no_call_of_the_model(main):
    _, _, records = main("shell-and-commands")
    prompt, call, result = records[:3]
    assert (prompt["class"], prompt["injected"]) == ("command", True)
    assert (call["class"], call["authorship"]) == ("command", "human")
    assert (result["class"], result["is_error"]) == ("command", None)


def test_models_and_agents_are_named(main):
    _, _, records = main("attachments-agents")
    spoken = [record for record in records if record["authorship"] == "model"]
    assert {record["model"] for record in spoken} == {"mock/mock-large", "mock/mock-small"}
    assert {record["agent"] for record in spoken} == {"build", "plan"}


def test_the_database_wins_over_the_json_tree(copies, tmp_path):
    """A session in both is one; one that only the tree has is listed beside those of the database."""
    root = tmp_path / "opencode"
    shutil.copytree(copies / "migrated-1.2.1", root)
    kept = key_of("migrated-1.2.1", "question")
    with sqlite3.connect(root / "opencode.db") as database:
        database.execute("DELETE FROM session WHERE id = ?", (kept,))
    database.close()
    store = opened(root)
    paths = {session.session_id: session.path for session in store.sessions()}
    assert len(paths) == 8
    assert [id for id, path in paths.items() if path.endswith(".json")] == [kept]
    tree = opened(STORES / "json-1.1.65" / "opencode")
    alone = {session.session_id: session for session in tree.sessions()}
    for session in store.sessions():
        if session.session_id in alone:
            there = [{**r, "ref": None} for r in tree.messages(alone[session.session_id])]
            assert [{**r, "ref": None} for r in store.messages(session)] == there


def test_a_window_and_a_directory_are_left_to_the_database(stores):
    store = stores["main-1.18.33"]
    everything = store.sessions()
    since = everything[4].updated
    assert [s.session_id for s in store.sessions(since)] == [s.session_id for s in everything if s.updated >= since]
    found = store.sessions(directory="ünï/pkg")
    assert [session.key.directory for session in found] == ["/home/dev/projects/gamma-ünï/pkg/core"]
    assert store.sessions(directory="/HOME") == store.sessions(directory="pkg_core") == []


def test_the_command_that_resumes(stores, sessions):
    store = stores["main-1.18.33"]
    id = key_of("main-1.18.33", "alpha-git")
    assert store.resume(store.row(sessions["main-1.18.33", id])) == ["opencode", "--session", id]


@pytest.mark.parametrize(
    ("environ", "root", "shadow"),
    [
        ({"HOME": "/h"}, "/h/.local/share/opencode", "/h/.local/share/opencode/.tantivy"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/x"}, "/x/opencode", "/x/opencode/.tantivy"),
        ({"HOME": "/h", "XDG_DATA_HOME": "x"}, "/h/.local/share/opencode", "/h/.local/share/opencode/.tantivy"),
        ({"HOME": "/h", "OPENCODE_DB": "/d/my.db"}, "/d/my.db", "/d/.tantivy"),
        ({"HOME": "/h", "OPENCODE_DB": "my.db"}, "/h/.local/share/opencode/my.db", "/h/.local/share/opencode/.tantivy"),
        ({"HOME": "/h", "OPENCODE_DB": ":memory:"}, "/h/.local/share/opencode", "/h/.local/share/opencode/.tantivy"),
        ({"HOME": "/h", "TOTAL_RECALL_OPENCODE_ROOT": "/n/opencode"}, "/n/opencode", "/n/.tantivy"),
        ({"TOTAL_RECALL_OPENCODE_ROOT": "/n/x.db", "OPENCODE_DB": "/d/my.db"}, "/n/x.db", "/n/.tantivy"),
        (
            {"HOME": "/h", "TOTAL_RECALL_OPENCODE_ROOT": " "},
            "/h/.local/share/opencode",
            "/h/.local/share/opencode/.tantivy",
        ),
    ],
)
def test_where_the_store_is_looked_for(environ, root, shadow):
    place = OpenCode.locate(environ)
    assert (place.root, place.shadow) == (root, shadow)
    assert place.overridden == bool(environ.get("TOTAL_RECALL_OPENCODE_ROOT", "").strip())


def test_without_a_home_there_is_no_place():
    assert OpenCode.locate({}) is None
    assert OpenCode.locate({"XDG_DATA_HOME": "relative", "OPENCODE_DB": "my.db"}) is None


def test_another_channels_database_is_found_and_backups_are_not_merged(copies, tmp_path):
    database = copies / "main-1.18.33" / "opencode.db"
    for name in ("opencode-backup.db", "opencode-beta.db"):
        shutil.copy(database, tmp_path / name)
    os.utime(tmp_path / "opencode-backup.db", (1, 1))
    (tmp_path / "opencode-newest.db").write_bytes(b"not a database" * 100)
    assert {session.path for session in opened(tmp_path).sessions()} == {str(tmp_path / "opencode-beta.db")}
    shutil.copy(database, tmp_path / "opencode.db")
    assert {session.path for session in opened(tmp_path).sessions()} == {str(tmp_path / "opencode.db")}


def test_a_database_can_be_named_alone(copies):
    root = copies / "migrated-1.2.1" / "opencode.db"
    store = opened(root)
    assert store.exists()
    assert len(store.sessions()) == 8


def test_a_folder_without_sessions_is_no_store(tmp_path):
    (tmp_path / "auth.json").write_text("{}")
    assert not opened(tmp_path).exists()
    assert opened(tmp_path).sessions() == []
