"""Vibe's store under damage: torn lines, broken metadata, files that are none, every JSON type anywhere."""

import copy
import os

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from total_recall.notices import Unreadable

from tests.stores.vibe_stores import (
    FIXTURES,
    LEGACY,
    MIXED,
    append,
    assistant,
    effect,
    folder,
    opened,
    records,
    said,
    session_of,
    unified,
    user,
)

NAME = "session_20260101_000000_0123abcd"
LINES = [user("hi"), assistant("ho")]


def contents(root, session_id):
    return [each["content"] for each in records(opened(root), session_id)]


def test_a_torn_last_line_costs_that_line_alone(tmp_path):
    folder(tmp_path, NAME, [*LINES, b'{"role":"assistant","content":"Ans'], session_id="s")
    store = opened(tmp_path)
    session = session_of(store, "s")

    assert [each["content"] for each in store.messages(session)] == ["hi", "ho"]
    assert "incomplete" in "".join(store.notices.said)
    assert len(list(store.entries(session, {}, whole=True))) == 2


@pytest.mark.parametrize("bad", [b"{broken\n", b"\0" * 300 + b"\n", b"[1]\n", b"\xff\xfe\n"])
def test_bad_lines_between_good_ones_are_counted_and_passed_over(tmp_path, bad):
    folder(tmp_path, NAME, [LINES[0], bad, LINES[1]], session_id="s")
    store = opened(tmp_path)

    assert [each["content"] for each in records(store, "s")] == ["hi", "ho"]
    [notice] = store.notices.said
    assert ":2: 1 damaged line" in notice


def test_a_record_glued_to_a_torn_one_is_recovered(tmp_path):
    folder(tmp_path, NAME, [LINES[0], b'{"role":"user","cont' + orjson.dumps(LINES[1]) + b"\n"], session_id="s")

    assert contents(tmp_path, "s") == ["hi", "ho"]


@pytest.mark.parametrize("meta", [None, b"", b"{", b"[]", b'"x"', b"null"])
def test_without_metadata_the_folders_name_is_the_id(tmp_path, meta):
    path = folder(tmp_path, NAME, LINES)
    if meta is not None:
        (path / "meta.json").write_bytes(meta)
    store = opened(tmp_path)
    [session] = store.sessions()
    row = store.row(session)

    assert session.session_id == NAME
    assert (row["title"], row["user_count"], row["directory"]) == ("hi", 1, None)
    assert row["end_time"] is not None  # the file's time, so that a window can select it
    assert "read_error" not in row
    assert bool(store.notices.said) is (meta is not None)


def test_naive_times_are_utc(tmp_path):
    folder(tmp_path, NAME, LINES, session_id="s", start_time="2026-01-02T03:04:05.678901", end_time=1767323046)
    row = opened(tmp_path).row(session_of(opened(tmp_path), "s"))

    assert row["start_time"] == "2026-01-02T03:04:05.678Z"
    assert row["end_time"] == "2026-01-02T03:04:06.000Z"


def test_files_that_are_no_files_are_listed_with_the_reason(tmp_path):
    """A folder, a FIFO or a loop in place of the messages: a row with read_error, and other sessions untouched."""
    (tmp_path / "session_20260101_000000_aaaaaaaa" / "messages.jsonl").mkdir(parents=True)
    (tmp_path / "session_20260101_000000_bbbbbbbb").mkdir()
    os.mkfifo(tmp_path / "session_20260101_000000_bbbbbbbb" / "messages.jsonl")
    (tmp_path / "session_20260101_000000_cccccccc").mkdir()
    (tmp_path / "session_20260101_000000_cccccccc" / "messages.jsonl").symlink_to("messages.jsonl")
    folder(tmp_path, NAME, LINES, session_id="s")
    store = opened(tmp_path)
    rows = {session.session_id: store.row(session) for session in store.sessions()}

    assert len(rows) == 4
    assert [bool(rows[name].get("read_error")) for name in sorted(rows)] == [False, True, True, True]
    for session in store.sessions():
        if session.session_id != "s":
            with pytest.raises(Unreadable):
                list(store.entries(session, {}))


def test_an_empty_file_is_an_empty_session(tmp_path):
    folder(tmp_path, NAME, [], session_id="s")
    row = opened(tmp_path).row(session_of(opened(tmp_path), "s"))

    assert row["empty"] is True
    assert "read_error" not in row


def test_other_things_in_the_store_are_no_sessions(tmp_path):
    for name in (
        "active",
        "plugins",
        ".last_session",
        "unified/.x",
        "unified/notes",
        "session_20260101_000000_eeeeeeee",
    ):
        (tmp_path / name).mkdir(parents=True)
    for name in (".session_index.json", "notes.json", "session_x.json.tmp", "active/s.lock.json"):
        (tmp_path / name).write_bytes(b"{}")
    store = opened(tmp_path)

    assert store.sessions() == []
    assert not store.notices.said


def test_a_store_that_cannot_be_listed_is_unreadable(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(Unreadable):
        opened(tmp_path / "file").sessions()
    assert opened(tmp_path / "nothing").sessions() == []


def test_a_session_gone_after_it_was_listed_is_no_traceback(tmp_path):
    path = folder(tmp_path, NAME, LINES, session_id="s")
    store = opened(tmp_path)
    [session] = store.sessions()
    (path / "messages.jsonl").unlink()

    assert store.row(session)["read_error"] == "gone"


def test_links_in_a_circle_end(tmp_path):
    """A sub-agents' folder that leads back to the store lists nothing twice."""
    path = folder(tmp_path, NAME, LINES, session_id="s")
    (path / "agents").symlink_to(tmp_path)

    assert [session.session_id for session in opened(tmp_path).sessions()] == ["s"]


def test_sub_agents_of_sub_agents_are_found(tmp_path):
    path = folder(tmp_path, NAME, LINES, session_id="s")
    child = folder(path / "agents", "explore_20260101_000001_11111111", [user("a", 5)], session_id="c")
    folder(child / "agents", "explore_20260101_000002_22222222", [user("b", 6)], session_id="g")
    store = opened(tmp_path)

    parents = {session.session_id: store.parent(session) for session in store.sessions()}
    assert parents == {"s": None, "c": "s", "g": "c"}


def test_a_configured_prefix_is_no_hindrance(tmp_path):
    folder(tmp_path, "work_20260101_000000_0123abcd", LINES, session_id="s")

    assert contents(tmp_path, "s") == ["hi", "ho"]


def test_a_document_of_1_x_is_read_and_one_that_was_converted_is_not_read_twice(tmp_path):
    document = {"metadata": {"session_id": "old", "start_time": "2025-01-01T12:00:00"}, "messages": LINES}
    (tmp_path / "session_20250101_120000_0a0b0c0d.json").write_bytes(orjson.dumps(document))
    (tmp_path / f"{NAME}.json").write_bytes(orjson.dumps(document))
    folder(tmp_path, NAME, LINES, session_id="s")
    store = opened(tmp_path)

    assert sorted(session.session_id for session in store.sessions()) == ["old", "s"]
    old = session_of(store, "old")
    found = list(store.messages(old))
    assert [each["content"] for each in found] == ["hi", "ho"]
    assert store.entry_at(old, found[1]["ref"]).messages[0]["content"] == "ho"
    assert store.row(old)["start_time"] == "2025-01-01T12:00:00.000Z"


def test_a_broken_document_of_1_x_is_unreadable_not_empty(tmp_path):
    (tmp_path / "session_20250101_120000_0a0b0c0d.json").write_bytes(b'{"metadata": {}, "mess')
    store = opened(tmp_path)
    [session] = store.sessions()

    assert store.row(session)["read_error"] == "not JSON"


# -- which texts are whose -------------------------------------------------------------------------------------

FRAME = (
    "You are continuing a trajectory after a context compaction.\n\n<previous_user_messages>\n<previous_user_message>\n"
    "old\n</previous_user_message>\n</previous_user_messages>\n\n<compaction_summary>\nSUM\n</compaction_summary>"
)


@pytest.mark.parametrize(
    ("lines", "classes"),
    [
        ([user(FRAME, injected=True), user("x", 2)], ["compaction", "human-text"]),
        ([user("x"), user(FRAME, 2, injected=True, context_boundary="compaction")], ["human-text", "compaction"]),
        ([user("x"), user(FRAME, 2, injected=True)], ["human-text", "injected-text"]),
        ([user(FRAME)], ["human-text"]),
        ([user("Look: " + FRAME)], ["human-text"]),
        ([user("x", injected="yes")], ["injected-text"]),
        ([{"role": "user", "content": "typed", "message_id": "a"}], ["human-text"]),
        ([{"role": "user", "content": FRAME, "message_id": "a"}], ["compaction"]),
        ([{"role": "user", "content": "<vibe_warning>Plan", "message_id": "a"}], ["injected-text"]),
        ([user("ran it", injected=True, manual_shell={"command": "ls"})], ["command"]),
    ],
)
def test_marks_come_first_and_envelopes_count_only_in_their_place(tmp_path, lines, classes):
    folder(tmp_path, NAME, lines, session_id="s")
    found = records(opened(tmp_path), "s")

    assert [each["class"] for each in found] == classes
    assert [each["content"] for each in found if each["class"] == "compaction"] in ([], ["SUM"])


def test_structured_results_of_2_26_are_preferred(tmp_path):
    result = {"role": "tool", "content": "cancelled: False", "name": "ask_user_question", "tool_call_id": "c"}
    output = {"answers": [{"question": "Which?", "answer": "a, b", "is_other": False}], "cancelled": False}
    shell = {
        "role": "tool",
        "content": "no",
        "name": "bash",
        "tool_call_id": "d",
        "tool_result": {"output": {"returncode": 2}},
    }
    folder(tmp_path, NAME, [LINES[0], result | {"tool_result": {"output": output}}, shell], session_id="s")
    found = records(opened(tmp_path), "s")

    assert found[1]["tool_result"] == output
    assert [each["is_error"] for each in found] == [None, False, True]
    assert "tool_result" not in found[2]


def test_images_of_a_prompt_are_markers(tmp_path):
    images = [
        {"source": {"kind": "file", "path": "/a.png"}, "alias": "a", "mime_type": "image/png"},
        {"data": "AAAA", "mime_type": "image/jpeg"},
    ]
    folder(tmp_path, NAME, [user("see", images=images)], session_id="s")

    assert contents(tmp_path, "s") == ["see\n[image image/png]\n[image image/jpeg 3 bytes]"]


def test_arguments_nested_beyond_the_encoder_stay_text(tmp_path):
    deep = "[" * 500 + "]" * 500
    call = {"id": "c", "function": {"name": "bash", "arguments": deep}, "type": "function"}
    folder(tmp_path, NAME, [LINES[0], assistant("", tool_calls=[call])], session_id="s")
    found = records(opened(tmp_path), "s")

    assert found[1]["tool_calls"][0]["arguments"] == deep
    assert orjson.dumps(found)


# -- every JSON type anywhere ----------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def spots(value, path=()):
    """Every place in a JSON value."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from spots(part, (*path, key))


@st.composite
def mutated(draw, samples):
    """A real record with one to three of its values replaced by something else, or taken out."""
    value = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(spots(value))))
        if not path:
            continue
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        if draw(st.booleans()):
            holder[path[-1]] = draw(VALUES)
        elif isinstance(holder, dict):
            del holder[path[-1]]
    return value


def stored(pattern):
    """Real records out of the fixtures: lines, or the values of chunks."""
    for path in sorted(FIXTURES.glob(pattern)):
        if path.suffix == ".jsonl":
            yield from (orjson.loads(line) for line in path.read_bytes().split(b"\n") if line)
        else:
            yield from orjson.loads(path.read_bytes())


LEGACY_LINES = [line for line in stored(f"{LEGACY}/logs/session/*/messages.jsonl") if len(str(line)) < 2000]
ENTRIES = [entry for entry in stored(f"{MIXED}/logs/session/unified/*/chunks/*.json") if len(str(entry)) < 3000]
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def sound(store):
    """Walk everything, print everything, find everything again."""
    for session in store.sessions():
        state = {}
        for entry in store.entries(session, state):
            assert isinstance(entry.line(), bytes)
            assert entry.raw_type() in ("user", "assistant", "tool", "thinking", "system")
            assert orjson.dumps([entry.messages, state])
            for record in entry.messages:
                assert isinstance(record["content"], str)
                if "ref" in record:
                    store.entry_at(session, record["ref"])
        assert orjson.dumps(store.row(session))
        assert "read_error" not in store.row(session)


@QUICK
@given(line=mutated(LEGACY_LINES), meta=mutated([{"session_id": "s", "title": "t", "config": {"active_model": "m"}}]))
def test_any_json_type_in_a_folders_line_is_borne(tmp_path_factory, line, meta):
    root = tmp_path_factory.mktemp("folders")
    folder(root, NAME, [LINES[0], line, LINES[1]], **meta)

    sound(opened(root))


@QUICK
@given(entry=mutated(ENTRIES), known=mutated(ENTRIES), session=VALUES, origin=VALUES)
def test_any_json_type_in_a_transcript_or_context_is_borne(tmp_path_factory, entry, known, session, origin):
    root = tmp_path_factory.mktemp("unified")
    runtime = {"identity": session, "session_metadata": session, "import_provenance": {"source": origin}}
    entries = [said("imported-1", "hi"), entry, effect("e")]
    path = unified(root, "s", [entries], context=[entry, known], runtime=runtime, session={"title": session})
    append(
        path, 2, [[{"op": "replace_entry", "id": "e", "entry": known}, {"op": "append_entry", "entry": entry}, session]]
    )

    sound(opened(root))


@QUICK
@given(data=st.data())
def test_any_json_type_in_the_documents_of_a_session_is_borne(tmp_path_factory, data):
    root = tmp_path_factory.mktemp("documents")
    path = unified(root, "s", [[said("a", "one")]], [[{"op": "append_entry", "entry": said("b", "two")}]])
    document = data.draw(
        st.sampled_from(sorted(each for each in path.rglob("*") if each.suffix in (".json", ".jsonl")))
    )
    value = orjson.loads(document.read_bytes().strip())
    document.write_bytes(orjson.dumps(data.draw(mutated([value]))) + b"\n")
    store = opened(root)
    [session] = store.sessions()

    if "read_error" in store.row(session):
        with pytest.raises(Unreadable):
            list(store.entries(session, {}))
    else:
        list(store.entries(session, {}))
