"""Pi: its real store against what is known to be in it, and what that one does not show."""

import pytest

from tests.stores.rich_transcripts import ID, pi, pi_entry, pi_message
from tests.stores.transcripts import Session, contents, messages, moment, opened, real, shapes

DELTA = "01a22e4e-cc36-73e9-bcc0-d0fa39f461d3"
ALPHA = "01a22e4f-dcc5-70c5-a2bf-744187390d7b"
OTHER = "22222222-2222-4222-8222-222222222222"


@pytest.fixture(scope="module")
def delta():
    store = real("pi")
    session = next(s for s in store.sessions() if s.session_id == DELTA)
    return store, session, messages(store, session)


def start(folder, id=ID, version=3, **more):
    session = Session("pi", folder, f"--home-p--/2026-11-30T20-00-00-000Z_{id}.jsonl")
    head = {"type": "session", "version": version, "id": id, "timestamp": moment(0), "cwd": "/home/p"}
    return session.add(head | more)


def prompt(id, parent, number, text, **more):
    return pi_message(id, parent, number, "user", text, **more)


def said(id, parent, number, text):
    return pi_message(id, parent, number, "assistant", [{"type": "text", "text": text}])


# -- the real store ------------------------------------------------------------------------------------------------


def test_the_real_conversation(delta):
    _, _, found = delta

    assert [m["content"] for m in found if m["role"] == "user"] == ["Pi: make a note, please.", "Pi: and what now?"]
    assert [m["content"] for m in found if m["role"] == "assistant" and m["content"]] == [
        "I will write the note.",
        "The note is written. Pi needle: aardvarkham. Emoji 🦒 and 漢字.",
        "Nothing is left to do.",
    ]
    assert [m["thinking"] for m in found if m["thinking"]] == ["A small file is enough."]
    assert len([m for m in found if m["role"] == "assistant"]) == 6
    assert all(m["usage"]["output"] for m in found if m["role"] == "assistant")


def test_real_calls_and_their_results(delta):
    _, _, found = delta
    calls = [call for m in found for call in m["tool_calls"]]
    results = [m for m in found if m["role"] == "tool"]

    assert [call["name"] for call in calls] == ["write", "bash", "read", "edit"]
    assert [(m["tool_call_id"], m["tool_name"]) for m in results] == [(call["id"], call["name"]) for call in calls]
    assert [m["is_error"] for m in results] == [False, True, True, False]
    assert results[1]["content"].endswith("Command exited with code 3")
    assert results[2]["content"].startswith("ENOENT")


def test_the_real_rows(delta):
    store, session, _ = delta
    row = store.row(session)
    other = next(s for s in store.sessions() if s.session_id == ALPHA)

    assert (row["user_count"], row["assistant_count"], row["tool_count"]) == (2, 3, 4)
    assert (row["directory"], row["model"]) == ("/home/dev/projects/delta", "mock-1")
    assert row["aliases"] == [f"2026-11-30T21-14-05-752Z_{DELTA}"]
    assert store.resume(row) == ["pi", "--session", DELTA]
    assert store.abandoned(session) == []
    assert contents(messages(store, other)) == ["Pi: say ibis, please 🦩", "ibis"]
    assert store.row(other)["directory"] == "/home/dev/projects/alpha"


# -- entries -------------------------------------------------------------------------------------------------------


def test_every_kind_of_entry(tmp_path):
    """What the person ran, what an extension or a skill said, a failure, summaries; a label is no message."""
    found = messages(*pi(tmp_path).write())

    assert shapes(found, "role", "class", "content")[4:] == [
        ("user", "command", "git status\nclean"),
        ("user", "injected-text", "Mind the gap"),
        ("user", "skill", '<skill name="s" location="/s">\nbody\n</skill>'),
        ("system", "injected-text", "The service is down"),
        ("system", "compaction", "What was done"),
        ("user", "injected-text", "Another way"),
        ("assistant", "model-text", "Done."),
    ]
    assert found[0]["content"] == "Look, please\n[image image/png 12 bytes]"
    assert found[1]["usage"] == {"input": 60, "output": 10, "cache_read": 40, "cache_write": 2, "reasoning": 0}
    assert (found[3]["content"], found[3]["is_error"]) == ("not there", True)


def test_roles_of_other_versions(tmp_path):
    """Summaries as messages, what hooks said, one that is not known."""
    session = start(tmp_path).add(
        pi_message("e1", None, 1, "hookMessage", "From a hook"),
        pi_message("e2", "e1", 2, "custom", [{"type": "text", "text": "From an extension"}]),
        pi_message("e3", "e2", 3, "branchSummary", None, summary="Another way"),
        pi_message("e4", "e3", 4, "compactionSummary", None, summary="What was done", tokensBefore=9),
        pi_message("e5", "e4", 5, "of a later version", "?"),
    )

    assert shapes(session.read(), "authorship", "class", "content") == [
        ("injected", "injected-text", "From a hook"),
        ("injected", "injected-text", "From an extension"),
        ("injected", "injected-text", "Another way"),
        ("injected", "compaction", "What was done"),
    ]


def test_the_last_name_is_the_title(tmp_path):
    store, session = pi(tmp_path).add(pi_entry("ee", "ed", 9, "session_info", name="Looked")).write()

    assert store.row(session)["title"] == "Looked"


def test_what_a_compaction_keeps(tmp_path):
    """The first entry that the model still sees, although entries without records stand between."""
    session = start(tmp_path).add(
        prompt("e1", None, 1, "One"),
        pi_entry("e2", "e1", 2, "model_change", modelId="m"),
        prompt("e3", "e2", 3, "Two"),
        pi_entry("e4", "e3", 4, "compaction", summary="S", firstKeptEntryId="e2"),
        pi_entry("e5", "e4", 5, "compaction", summary="S", firstKeptEntryId="gone"),
    )
    store, reference = session.write()

    assert [entry.slice for entry in store.entries(reference, {})] == [None, None, None, None, 2, None]


# -- the tree ------------------------------------------------------------------------------------------------------


def test_only_the_path_to_the_last_entry_is_alive(tmp_path):
    """Back to an earlier entry, twice; records stay in the order of the file."""
    session = start(tmp_path).add(
        prompt("e1", None, 1, "One"),
        said("e2", "e1", 2, "1."),
        prompt("e3", "e2", 3, "Two"),
        said("e4", "e3", 4, "2."),
        prompt("e5", "e2", 5, "Three"),
        pi_entry("e6", "e2", 6, "branch_summary", fromId="e5", summary="Three was tried"),
        prompt("e7", "e6", 7, "Four"),
    )
    store, reference = session.write()

    assert contents(messages(store, reference)) == ["One", "1.", "Two", "2.", "Three", "Three was tried", "Four"]
    assert store.abandoned(reference) == [[3, 5]]


def test_a_new_root_leaves_all_behind(tmp_path):
    session = start(tmp_path).add(prompt("e1", None, 1, "One"), prompt("e2", None, 2, "Another"))
    store, reference = session.write()

    assert store.abandoned(reference) == [[1, 1]]


@pytest.mark.parametrize("parents", [("e2", "e1"), ("e1", "e2"), ("gone", "gone"), (7, [])])
def test_circles_and_missing_parents_end(tmp_path, parents):
    session = start(tmp_path).add(prompt("e1", parents[0], 1, "One"), prompt("e2", parents[1], 2, "Two"))
    store, reference = session.write()

    assert store.abandoned(reference) in ([], [[1, 1]])


def test_the_first_version_had_no_tree(tmp_path):
    """Entries have no ids; a compaction names the first entry that it keeps by its number, the header being 0."""
    session = Session("pi", tmp_path, f"--home-p--/2026-11-30T20-00-00-000Z_{ID}.jsonl").add(
        {"type": "session", "id": ID, "timestamp": moment(0), "cwd": "/home/p", "provider": "x", "modelId": "m1"},
        {"type": "message", "timestamp": moment(1), "message": {"role": "user", "content": "One"}},
        {"type": "message", "timestamp": moment(2), "message": {"role": "user", "content": "Two"}},
        {"type": "compaction", "timestamp": moment(3), "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 5},
        {"type": "message", "timestamp": moment(4), "message": {"role": "user", "content": "Three"}},
    )
    store, reference = session.write()

    assert shapes(messages(store, reference), "id", "class", "content") == [
        (1, "human-text", "One"),
        (2, "human-text", "Two"),
        (3, "compaction", "S"),
        (4, "human-text", "Three"),
    ]
    assert [entry.slice for entry in store.entries(reference, {})][3] == 2
    assert store.abandoned(reference) == []
    assert store.row(reference)["model"] == "m1"


# -- forks and files -----------------------------------------------------------------------------------------------


def forked(folder, **header):
    return start(folder, timestamp=moment(9), **header).add(
        prompt("e1", None, 1, "One"), said("e2", "e1", 2, "1."), prompt("e3", "e2", 10, "Two")
    )


def test_what_a_fork_copied_is_marked(tmp_path):
    """Copies have the old times; the origin is the session in the file that the header names, wherever that lay."""
    start(tmp_path, OTHER).add(prompt("e1", None, 1, "One"), said("e2", "e1", 2, "1.")).write()
    origin = f"/elsewhere/2026-11-30T20-00-00-000Z_{OTHER}.jsonl"
    store, reference = forked(tmp_path, parentSession=origin).write()

    assert shapes(messages(store, reference), "content", "replayed") == [("One", True), ("1.", True), ("Two", None)]
    assert store.row(reference)["forked_from"] == {"session_id": OTHER, "kind": "fork"}
    assert store.row(reference)["user_count"] == 1


@pytest.mark.parametrize(
    ("origin", "id"),
    [
        (f"C:\\s\\2026-11-30T20-00-00-000Z_{OTHER}.jsonl", OTHER),
        ("/s/mine.jsonl", None),
        (7, None),
    ],
)
def test_an_origin_that_is_gone_is_known_by_its_name(tmp_path, origin, id):
    store, reference = forked(tmp_path, parentSession=origin).write()
    row = opened("pi", store.root).row(reference)

    assert row.get("forked_from") == (id and {"session_id": id, "kind": "fork"})


def test_a_file_without_a_header_is_known_by_its_name(tmp_path):
    session = Session("pi", tmp_path, f"--home-p--/2026-11-30T20-00-00-000Z_{OTHER}.jsonl")
    _, reference = session.add(prompt("e1", None, 1, "One")).write()

    assert reference.session_id == OTHER


def test_what_has_neither_header_nor_name_is_no_session(tmp_path):
    store, _ = start(tmp_path).write()
    (start(tmp_path).root / "notes.jsonl").write_bytes(b'{"type":"message"}\n')

    assert len(opened("pi", store.root).sessions()) == 1


def test_a_session_under_another_name_is_found(tmp_path):
    """`--session-dir` and imports make files of any name, in any folder."""
    session = Session("pi", tmp_path, "mine.jsonl").add({"type": "session", "version": 3, "id": ID})
    _, reference = session.add(prompt("e1", None, 1, "One")).write()

    assert (reference.session_id, reference.names) == (ID, ("mine",))
