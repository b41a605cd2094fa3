"""What holds for every store of transcripts: Gemini CLI, Qwen Code, Pi, GitHub Copilot CLI."""

import os
import random
import shutil

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from total_recall.notices import Unreadable
from total_recall.record import AUTHORSHIPS, CLASSES, ROLES
from total_recall.stores.registry import adapter

from tests.stores.rich_transcripts import RICH
from tests.stores.transcripts import FIXTURES, NAMES, ROOTS, contents, messages, opened, real

EACH = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def rich(name, tmp_path):
    return RICH[name](tmp_path)


def sessions(name, tmp_path):
    """Every session that tests have of a harness, real and made."""
    store = real(name)
    yield from ((store, session) for session in store.sessions())
    yield RICH[name](tmp_path).write()


@EACH
def test_records_are_well_formed_and_numbered_from_one(name, tmp_path):
    """Ids rise by one, names are those of the manual, nothing of a picture's data is left."""
    for store, session in sessions(name, tmp_path):
        found = messages(store, session)

        assert [m["id"] for m in found] == list(range(1, len(found) + 1))
        for message in found:
            assert message["role"] in ROLES
            assert message["class"] in CLASSES
            assert message["authorship"] in AUTHORSHIPS
            assert message["injected"] == (message["role"] == "user" and message["authorship"] == "injected")
            assert message["session_id"] == session.session_id
        assert b"aGVsbG8gd29ybGQh" not in orjson.dumps(found)


@EACH
def test_a_walk_goes_on_from_behind_any_record(name, tmp_path):
    """A copy of the state taken between two entries gives the rest, and nothing twice."""
    for store, session in sessions(name, tmp_path):
        whole = messages(store, session)
        state, given = {}, 0
        for entry in store.entries(session, state):
            given += len(entry.messages)
            cut = orjson.loads(orjson.dumps(state))
            assert messages(store, session, cut) == whole[given:]


@EACH
def test_facts_of_a_growing_file_are_those_of_the_whole(name, rich, tmp_path):
    """A session that is read each time it has grown by a line has the same row in the end."""
    store, session = rich.write()
    lines = rich.path.read_bytes().splitlines(keepends=True)
    whole = store.row(session)
    rich.path.write_bytes(b"")
    growing = opened(name, rich.root)
    for line in lines:
        with rich.path.open("ab") as file:
            file.write(line)
        [session] = growing.sessions()
        row = growing.row(session)

    assert row == whole


@EACH
def test_every_record_is_found_again_by_its_reference(name, tmp_path):
    """One seek gives the record back; the name of a result's tool and what only other records tell may be missing."""
    for store, session in sessions(name, tmp_path):
        for message in messages(store, session):
            [again] = store.entry_at(session, message["ref"] | {"id": message["id"]}).messages
            loose = {"tool_name", "class", "usage", "tool_result", "replayed"}
            assert {k: v for k, v in again.items() if k not in loose} == {
                k: v for k, v in message.items() if k not in loose
            }


@EACH
def test_the_row_counts_what_the_records_say(name, rich, tmp_path):
    """Prompts, answers with text, and calls; a session of a person and a model is not empty."""
    store, session = rich.write()
    found = messages(store, session)
    row = store.row(session)

    assert row["user_count"] == sum(m["authorship"] == "human" for m in found)
    assert row["assistant_count"] == sum(m["role"] == "assistant" and bool(m["content"]) for m in found)
    assert row["tool_count"] == sum(len(m["tool_calls"]) for m in found)
    assert row["has_compaction"] == any(m["class"] == "compaction" for m in found)
    assert "empty" not in row
    assert row["title"].startswith("Look")


@EACH
def test_raw_lines_are_the_lines_of_the_file(name, rich):
    """Each stored record once, byte for byte."""
    store, session = rich.write()

    assert b"".join(entry.line() + b"\n" for entry in store.entries(session, {})) == rich.path.read_bytes()
    types = {entry.raw_type() for entry in store.entries(session, {})}
    assert types == {"user", "assistant", "tool", "system"}


# -- places --------------------------------------------------------------------------------------------------------

OWN = {
    "gemini": ({"GEMINI_CLI_HOME": "/g"}, "/g/.gemini/tmp"),
    "qwen": ({"QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "/r"}, "/r/projects"),
    "pi": ({"PI_CODING_AGENT_DIR": "/a"}, "/a/sessions"),
    "copilot": ({"COPILOT_HOME": "/c"}, "/c/session-state"),
}


@EACH
def test_where_a_store_is_looked_for(name):
    """The override wins, then the harness's own variable, then the home directory; the shadow lies beside the store."""
    kind, variable = adapter(name), f"TOTAL_RECALL_{name.upper()}_ROOT"
    own, place = OWN[name]

    assert kind.locate({}) is None
    assert kind.locate({"HOME": "/h"}).root == os.path.join("/h", ROOTS[name])
    assert kind.locate({"HOME": "/h", variable: "  "}).overridden is False
    assert kind.locate({"HOME": "/h", **own}).root == place
    named = kind.locate({"HOME": "/h", **own, variable: "/x/y"})
    assert (named.root, named.overridden, named.shadow) == ("/x/y", True, "/x/.tantivy")


def test_pi_and_qwen_name_their_folders_in_more_than_one_way():
    """The nearer variable wins."""
    assert adapter("pi").locate({"PI_CODING_AGENT_SESSION_DIR": "/s", "PI_CODING_AGENT_DIR": "/a"}).root == "/s"
    assert adapter("pi").locate({"HOME": "/h", "PI_CODING_AGENT_SESSION_DIR": "~/s"}).root == "/h/s"
    assert adapter("qwen").locate({"QWEN_HOME": "/q"}).root == "/q/projects"


@EACH
def test_a_store_that_is_not_there_has_no_sessions(name, tmp_path):
    store = opened(name, tmp_path / "nothing")

    assert not store.exists()
    assert store.sessions() == []


@EACH
def test_a_root_that_cannot_be_listed_is_said(name, tmp_path):
    (tmp_path / "root").write_text("a file")

    with pytest.raises(Unreadable):
        opened(name, tmp_path / "root").sessions()


@EACH
def test_special_files_and_circles_of_links_do_no_harm(name, rich):
    """A FIFO is never opened, a folder in the place of a file is no session, a circle is walked once."""
    _, session = rich.write()
    beside = rich.path.parent
    os.mkfifo(beside / "session-2026-11-30T20-00-22222222.jsonl")
    (beside / "session-2026-11-30T20-00-33333333.jsonl").mkdir()
    (beside / "round").symlink_to(rich.root)
    (rich.root / "round").symlink_to(rich.root)
    (rich.root / "nowhere").symlink_to(rich.root / "gone")

    assert [s.session_id for s in opened(name, rich.root).sessions()] == [session.session_id]


@EACH
def test_a_session_that_is_gone_or_no_file_says_so_in_its_row(name, rich):
    store, session = rich.write()
    os.unlink(session.path)
    assert store.row(session)["read_error"] == "gone"
    assert store.entry_at(session, {"path": session.path, "offset": 0, "length": 9}) is None
    os.mkdir(session.path)
    assert opened(name, rich.root).row(session)["read_error"]


@EACH
def test_an_empty_file_is_an_empty_session(name, rich):
    """It is listed by its name."""
    rich.write()
    rich.path.write_bytes(b"")
    store = opened(name, rich.root)
    [session] = store.sessions()
    row = store.row(session)

    assert (row["line_count"], row["title"], row["empty"]) == (0, None, True)
    assert session.session_id in str(rich.path)


@EACH
def test_nothing_is_written_into_a_store(name, tmp_path):
    """Listing, reading, following branches: the files stay as they were, and there are no others."""
    copy = tmp_path / "copy"
    shutil.copytree(FIXTURES / name, copy)
    before = {path: path.stat().st_mtime_ns for path in sorted(copy.rglob("*"))}
    store = opened(name, copy / ROOTS[name])
    for session in store.sessions():
        store.row(session)
        store.abandoned(session)

    assert {path: path.stat().st_mtime_ns for path in sorted(copy.rglob("*"))} == before


# -- damage --------------------------------------------------------------------------------------------------------


@EACH
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
        lambda data: data.replace(b"\n", b'\n{"type":"new in a later version","data":{}}\n'),
        lambda data: data.replace(b"\n", b"\n" + b"[" * 100_000 + b"\n", 1),
    ],
    ids=["crlf", "bom", "nul-run", "nul-line", "blank", "no-last-line-end", "no-objects", "unknown", "deep"],
)
def test_damage_between_records_loses_none(name, rich, spoil):
    store, session = rich.write()
    expected = contents(messages(store, session))
    rich.path.write_bytes(spoil(rich.path.read_bytes()))
    store = opened(name, rich.root)
    [session] = store.sessions()
    found = messages(store, session)

    assert contents(found) == expected
    for message in found:
        [again] = store.entry_at(session, message["ref"] | {"id": message["id"]}).messages
        assert again["content"] == message["content"]
    assert "read_error" not in store.row(session)


@EACH
def test_a_torn_record_costs_itself_only_and_is_said(name, rich):
    """What is glued to its stub is found, and a walk goes on between the two."""
    lines = [orjson.dumps(record) for record in rich.records]
    rich.records = [*lines[:2], *lines[3:]]
    without = contents(rich.read())
    rich.records = [*lines[:2], lines[2][:60] + lines[3], *lines[4:]]
    store, session = rich.write()
    found = messages(store, session)

    assert contents(found) == without
    assert [said for said in store.notices.said if "1 damaged line" in said]
    state, given = {}, 0
    for entry in store.entries(session, state):
        given += len(entry.messages)
        assert messages(store, session, orjson.loads(orjson.dumps(state))) == found[given:]


@EACH
def test_an_unterminated_last_line_waits_for_its_end(name, rich):
    store, session = rich.write()
    whole = rich.path.read_bytes()
    expected = messages(store, session)
    rich.path.write_bytes(whole[:-20])
    state = {}

    begun = list(store.messages(session, state, whole=True))
    rich.path.write_bytes(whole)
    assert begun + list(store.messages(session, state, whole=True)) == expected


@EACH
def test_lone_surrogates_and_invalid_utf8_become_replacement_characters(name, rich):
    store, session = rich.write()
    rich.path.write_bytes(rich.path.read_bytes().replace(b"Done.", rb"Do\ud83dne" + b"\xff."))

    assert contents(messages(store, session))[-1] == "Do\ufffdne\ufffd."


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**60), 2**60),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(
            ["user", "gemini", "assistant", "system", "message", "session", "tool_result", "text", "parts"]
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["type", "text", "content", "id", "parts", "name", "messages", "functionResponse"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


def places(value, way=()):
    yield way
    if isinstance(value, dict):
        for key, held in value.items():
            yield from places(held, (*way, key))
    elif isinstance(value, list):
        for number, held in enumerate(value):
            yield from places(held, (*way, number))


def replaced(value, way, new):
    if not way:
        return new
    held = dict(value) if isinstance(value, dict) else list(value)
    held[way[0]] = replaced(value[way[0]], way[1:], new)
    return held


@EACH
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), one=VALUES, two=VALUES)
def test_any_value_anywhere_is_no_error(name, tmp_path, seed, one, two):
    """Whatever stands in two of the records, the session is listed and read to its end, again from any place."""
    chance = random.Random(seed)
    session = RICH[name](tmp_path)
    for new in (one, two):
        victim = chance.randrange(len(session.records))
        record = session.records[victim]
        session.records[victim] = replaced(record, chance.choice(list(places(record))), new)
    store, reference = session.write()
    state = {}
    found = [message for entry in store.entries(reference, state) for message in entry.messages]

    assert orjson.dumps([state, found], option=orjson.OPT_NON_STR_KEYS)
    assert "read_error" not in store.row(reference)
    store.abandoned(reference)
    for message in found:
        assert isinstance(message["content"], str)
        store.entry_at(reference, message["ref"] | {"id": message["id"]})
    assert store.parent(reference) is None or isinstance(store.parent(reference), str)
