"""Damaged Claude Code transcripts: everything that can still be read is read."""

import os
import random

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from total_recall.notices import Unreadable
from total_recall.stores._jsonl import parse

from tests.stores.claude_transcripts import FIXTURES, Transcript, messages, opened

PROJECTS = FIXTURES / "claude" / ".claude" / "projects"
A6 = PROJECTS / "-home-dev-projects-beta" / "d6213968-d16e-4cc8-94ed-6dc91dc0c568.jsonl"
UNICODE = PROJECTS / "-home-dev-projects-gamma" / "7e6f58a9-d1b7-415b-9e52-cd1e89983b4d.jsonl"


@pytest.fixture
def transcript(tmp_path):
    found = Transcript(tmp_path)
    for number in range(4):
        found.typed(f"prompt {number}")
    return found


def prompts(transcript, end=b"\n"):
    store, session = transcript.write(end)
    return store, [m["content"] for m in messages(store, session)]


def test_a_torn_line(transcript):
    """The rest of the file is read, and one notice names the line."""
    transcript.lines[1] = transcript.lines[1][:-30]
    store, found = prompts(transcript)

    assert found == ["prompt 0", "prompt 2", "prompt 3"]
    assert list(store.notices.said) == [
        f"{transcript.path}:2: 1 damaged line, this is the first; everything else was read"
    ]


def test_a_torn_last_line_may_still_be_written(transcript):
    """It costs itself only, and is read when it is whole."""
    store, session = transcript.write()
    whole = transcript.path.read_bytes()
    transcript.path.write_bytes(whole[:-30])
    state = {}

    assert [m["content"] for m in store.messages(session, state, whole=True)] == ["prompt 0", "prompt 1", "prompt 2"]
    transcript.path.write_bytes(whole)
    assert [m["content"] for m in store.messages(session, state, whole=True)] == ["prompt 3"]


def test_a_record_glued_to_the_stub_of_another(transcript):
    """The whole one is found, by its reference too; blocks of the torn one are no records of their own."""
    transcript.assistant("x")
    transcript.assistant("y")
    stub = transcript.lines.pop(4)[:-40]
    transcript.lines[4] = stub + transcript.lines[4]
    store, session = transcript.write()
    found = messages(store, session)

    assert [m["content"] for m in found] == ["prompt 0", "prompt 1", "prompt 2", "prompt 3", "y"]
    [again] = store.entry_at(session, found[-1]["ref"] | {"id": 5}).messages
    assert again == found[-1]


def test_a_walk_goes_on_within_a_damaged_line(transcript):
    """Of two records recovered from one line none is lost or given twice when the walk stops between them."""
    stub = transcript.lines[0][:50]
    transcript.lines[1] = stub + transcript.lines[1] + b"garbage" + transcript.lines[2]
    del transcript.lines[2]
    store, session = transcript.write()
    state = {}
    walk = store.entries(session, state)
    cuts = [(orjson.dumps(state), [m["content"] for m in entry.messages]) for entry in walk]
    texts = [text for _, found in cuts for text in found]

    assert texts == ["prompt 0", "prompt 1", "prompt 2", "prompt 3"]
    for place, (cut, _) in enumerate(cuts):
        assert [m["content"] for m in store.messages(session, orjson.loads(cut))] == texts[place + 1 :]
    for message in messages(store, session):
        assert store.entry_at(session, message["ref"] | {"id": message["id"]}).messages == [message]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\n\0\0\0\0", 1),
        lambda data: data.replace(b"\n", b"\n\0\0\0\0\n", 1),
        lambda data: data.replace(b"\n", b"\n\n  \n"),
        lambda data: data.rstrip(b"\n"),
        lambda data: data.replace(b"\n", b"\n7\n[]\nnull\n", 1),
        lambda data: data.replace(b"\n", b"\n" + b"[" * 100_000 + b"\n", 1),
    ],
    ids=["crlf", "bom", "nul-run", "nul-line", "blank", "no-last-line-end", "no-objects", "deep"],
)
def test_other_damage(transcript, spoil):
    """Line ends, byte order marks, runs of NUL and lines of other things lose no record; references stay right."""
    store, session = transcript.write()
    transcript.path.write_bytes(spoil(transcript.path.read_bytes()))
    found = messages(store, session)

    assert [m["content"] for m in found] == ["prompt 0", "prompt 1", "prompt 2", "prompt 3"]
    for message in found:
        [again] = store.entry_at(session, message["ref"] | {"id": message["id"]}).messages
        assert again == message
    assert "read_error" not in store.row(session)


def test_lone_surrogates_and_invalid_utf8(transcript):
    """They become U+FFFD in the text; everything can be encoded."""
    transcript.lines[0] = transcript.lines[0].replace(b"prompt 0", rb"high \ud83d low \ude00")
    transcript.lines[1] = transcript.lines[1].replace(b"prompt 1", b"bad \xff byte")
    _, found = prompts(transcript)

    assert found[:2] == ["high \ufffd low \ufffd", "bad \ufffd byte"]
    assert orjson.dumps(found)


def test_a_huge_line(transcript):
    """There is no limit to a line."""
    transcript.call("toolu_1", "Read")
    transcript.result("toolu_1", "x" * 20_000_000)
    transcript.typed("after")
    store, session = transcript.write()
    found = messages(store, session)

    assert [len(m["content"]) for m in found[-2:]] == [20_000_000, 5]


def test_a_session_that_is_gone(transcript):
    """Its row says so."""
    store, session = transcript.write()
    os.unlink(session.path)

    assert store.row(session)["read_error"] == "gone"
    assert store.entry_at(session, {"path": session.path, "offset": 0, "length": 9}) is None


def test_a_folder_in_the_place_of_a_session(transcript):
    """It cannot be read, and that is said."""
    store, session = transcript.write()
    os.unlink(session.path)
    os.mkdir(session.path)

    with pytest.raises(Unreadable):
        messages(store, session)
    assert store.row(session)["read_error"]


def test_a_shorter_file_than_before(transcript):
    """References into what is no longer there lead to nothing."""
    store, session = transcript.write()
    last = messages(store, session)[-1]
    transcript.path.write_bytes(transcript.lines[0] + b"\n")

    assert store.entry_at(session, last["ref"] | {"id": 4}) is None
    assert len(messages(store, session)) == 1


# -- any value in any place -----------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(["user", "assistant", "system", "attachment", "tool_result", "tool_use", "text", "image"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["type", "text", "content", "id", "kind", "name", "x"]), inner, max_size=3),
    ),
    max_leaves=6,
)

# Short lines of many transcripts, none of them twice.
LINES = list(
    dict.fromkeys(
        line
        for path in (A6, UNICODE, *sorted(PROJECTS.glob("*/*.jsonl")))
        for line in path.read_bytes().split(b"\n")[:: 1 if path in (A6, UNICODE) else 6]
        if 0 < len(line) < 4000
    )
)


def places(value, way=()):
    """Every way into a JSON value."""
    yield way
    if isinstance(value, dict):
        for key, held in value.items():
            yield from places(held, (*way, key))
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from places(held, (*way, number))


def replaced(value, way, new):
    """The value with another one at the end of `way`."""
    if not way:
        return new
    held = dict(value) if isinstance(value, dict) else list(value)
    held[way[0]] = replaced(value[way[0]], way[1:], new)
    return held


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), VALUES, VALUES)
def test_any_value_anywhere_loses_no_other_line(tmp_path, seed, one, two):
    """Whatever stands in one record, no error comes of it, and every other line gives what it gave."""
    chance = random.Random(seed)
    start = chance.randrange(len(LINES) - 12)
    lines = LINES[start : start + 12]
    victim = chance.randrange(12)
    record = parse(lines[victim])
    for new in (one, two):
        record = replaced(record, chance.choice(list(places(record))), new)
    path = tmp_path / "project" / "session.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = given_by(path)
    spoiled = orjson.dumps(record, default=str) if not big(record) else str(record).encode()
    path.write_bytes(b"\n".join([*lines[:victim], spoiled.replace(b"\n", b" "), *lines[victim + 1 :]]) + b"\n")
    after = given_by(path)

    assert [row for place, row in enumerate(after) if place != victim] == [
        row for place, row in enumerate(before) if place != victim
    ]


def big(value):
    """Whether a value holds an integer that JSON of 64 bits cannot."""
    if isinstance(value, int):
        return abs(value) >= 2**63
    return any(map(big, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()))


def given_by(path):
    """What each line of a transcript gives; everything else that reads it must not fail."""
    store = opened(path.parent.parent)
    [session] = store.sessions()
    entries = list(store.entries(session, {}))
    row = store.row(session)
    store.abandoned(session)

    assert orjson.dumps([row, [m for entry in entries for m in entry.messages]], option=orjson.OPT_NON_STR_KEYS)
    assert "read_error" not in row
    # A compaction, and what came before a boundary or a summary, may be told by another line.
    return [
        [(m["role"], m["content"], m["tool_calls"]) for m in entry.messages if m["class"] != "compaction"]
        for entry in entries
    ]
