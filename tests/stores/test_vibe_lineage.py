"""Where Vibe's sessions come from: aliases, rewinds, compaction's chains, sub-agents, forks and imports."""

import shutil
from collections import Counter

import pytest

from tests.stores.vibe_stores import (
    LEGACY,
    MIXED,
    TRUTH,
    assistant,
    copied,
    folder,
    keyed,
    opened,
    records,
    said,
    session_of,
    unified,
    user,
)

CHUNKS = [[said("a", "one"), said("b", "two", "assistant")], [said("c", "three")]]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return copied(tmp_path_factory.mktemp("mixed"), LEGACY, MIXED)


@pytest.fixture
def store(root):
    """The folders of the one version beside the unified store of the next."""
    return opened(root)


@pytest.mark.parametrize(("alias", "canonical"), [("git", "git-continued"), ("auto-compact", "auto-compact-continued")])
def test_a_folder_that_another_goes_on_with_is_an_alias(store, alias, canonical):
    alias, canonical = keyed(alias, LEGACY), keyed(canonical, LEGACY)
    session = session_of(store, alias["session_id"])

    assert session.session_id == canonical["session_id"]
    assert {alias["session_id"], alias["dir"], canonical["dir"]} <= set(session.names)
    assert not any(each.get("replayed") for each in store.messages(session))
    assert alias["session_id"] in store.row(session)["aliases"]


@pytest.mark.parametrize(
    ("key", "source", "kind"),
    [
        ("rewind", None, "rewind"),
        ("compact-1", "tui-questions", "compaction"),
        ("compact-2", "compact-1", "compaction"),
        ("u-branch", "u-tui", "fork"),
        ("u-rewind-forked", "u-rewind-kept", "rewind"),
        ("u-import-legacy", "git", "import"),
    ],
)
def test_lineage_is_told_and_is_no_parentage(store, key, source, kind):
    by_key = {name: truth for each in TRUTH.values() for truth in each["sessions"] for name in truth["keys"]}
    first_rewind = next(truth for truth in TRUTH[LEGACY]["sessions"] if "rewind" in truth["keys"])
    row = store.row(session_of(store, by_key[key]["session_id"]))

    origin = (by_key[source] if source else first_rewind)["session_id"]
    assert row["forked_from"] == {"session_id": origin, "kind": kind}
    assert row["parent_session_id"] is None


def test_an_alias_keeps_the_lineage_of_the_folder_it_continues(store):
    """Only the shorter of the two folders names the session whose compaction began it."""
    before = next(truth for truth in TRUTH[LEGACY]["sessions"] if "auto-compact" in truth["keys"])
    row = store.row(session_of(store, keyed("auto-compact-continued", LEGACY)["session_id"]))

    assert row["forked_from"] == {"session_id": before["session_id"], "kind": "compaction"}


def test_the_beginning_that_a_rewind_copied_is_replayed_and_counted_once(store):
    first, second = [truth["session_id"] for truth in TRUTH[LEGACY]["sessions"] if "rewind" in truth["keys"]]

    assert [bool(each.get("replayed")) for each in records(store, first)] == [False] * 4
    assert [bool(each.get("replayed")) for each in records(store, second)] == [True, True, False, False]
    row = store.row(session_of(store, second))
    assert (row["user_count"], row["assistant_count"]) == (1, 1)


@pytest.mark.parametrize(("key", "store_name"), [("subagent", LEGACY), ("u-subagent", MIXED)])
def test_children_are_found_from_their_parents(store, key, store_name):
    parent, child = sorted(
        (truth for truth in TRUTH[store_name]["sessions"] if key in truth["keys"]),
        key=lambda truth: "agents/" in truth["dir"] or "child-" in truth["dir"],
    )
    row = store.row(session_of(store, parent["session_id"]))
    child_row = store.row(session_of(store, child["session_id"]))

    assert row["child_sessions"] == [child["session_id"]]
    assert child_row["parent_session_id"] == parent["session_id"]
    assert "forked_from" not in child_row
    prompts = [each for each in records(store, child["session_id"]) if each["role"] == "user"]
    assert [each["authorship"] for each in prompts] == ["delegated"]
    assert prompts[0]["class"] == "delegated-text"


def test_a_sub_agents_prompt_is_verbatim_and_its_title_is_its_task(store):
    child = next(truth for truth in TRUTH[LEGACY]["sessions"] if "agents/" in truth["dir"])

    assert records(store, child["session_id"])[0]["content"].startswith("Scratchpad directory: /tmp/")
    assert store.row(session_of(store, child["session_id"]))["title"] == "SUB: count the files"


def test_an_imported_session_has_the_tools_of_the_folder_it_came_from(store):
    """Its own copy has the texts alone; the folder is the one named, not the longer one that continues it."""
    git = next(truth for truth in TRUTH[LEGACY]["sessions"] if truth["keys"] == ["git"])
    found = records(store, keyed("u-import-legacy")["session_id"])
    replayed = [each for each in found if each.get("replayed")]

    assert len(replayed) == git["lines"] == 20
    assert Counter(call["name"] for each in replayed for call in each["tool_calls"]) == Counter(git["tool_calls"])
    assert [each["content"] for each in found if each["role"] == "user"][1:] == [
        "Resumed in the new version: what was the tag?"
    ]
    assert {each["session_id"] for each in found} == {keyed("u-import-legacy")["session_id"]}
    row = store.row(session_of(store, keyed("u-import-legacy")["session_id"]))
    assert (row["user_count"], row["assistant_count"], row["tool_count"]) == (1, 1, 0)


def test_two_continuations_of_one_folder_are_two_sessions(tmp_path):
    """The longer one is the session; the other goes its own way after what it copied."""
    base = [user("hi", 1), assistant("ho", 2)]
    begun = (f"2026-01-01T00:00:0{n}" for n in range(3))
    folder(tmp_path, "session_20260101_000000_aaaaaaaa", base, session_id="a", start_time=next(begun))
    folder(
        tmp_path,
        "session_20260101_000001_bbbbbbbb",
        [*base, user("b", 3), user("b", 4)],
        session_id="b",
        start_time=next(begun),
    )
    folder(tmp_path, "session_20260101_000002_cccccccc", [*base, user("c", 5)], session_id="c", start_time=next(begun))
    store = opened(tmp_path)
    rows = {session.session_id: store.row(session) for session in store.sessions()}

    assert sorted(rows) == ["b", "c"]
    assert "a" in rows["b"]["aliases"]
    assert rows["b"]["start_time"] == "2026-01-01T00:00:00.000Z"
    assert rows["c"]["forked_from"] == {"session_id": "b", "kind": "resume"}
    assert [each.get("replayed", False) for each in records(store, "c")] == [True, True, False]


def test_empty_folders_and_equal_texts_are_not_one_session(tmp_path):
    folder(tmp_path, "session_20260101_000000_aaaaaaaa", [], session_id="a")
    folder(tmp_path, "session_20260101_000001_bbbbbbbb", [], session_id="b")
    folder(tmp_path, "session_20260101_000002_cccccccc", [user("hi", 1)], session_id="c")
    folder(tmp_path, "session_20260101_000003_dddddddd", [user("hi", 2)], session_id="d")

    assert sorted(session.session_id for session in opened(tmp_path).sessions()) == ["a", "b", "c", "d"]


def test_a_folder_that_loses_its_older_half_owns_its_records_again(tmp_path):
    base = [user("hi", 1), assistant("ho", 2)]
    older = folder(
        tmp_path, "session_20260101_000000_aaaaaaaa", [*base, user("a", 3)], session_id="a", start_time="2026-01-01"
    )
    folder(tmp_path, "session_20260101_000001_bbbbbbbb", [*base, user("b", 4)], session_id="b", start_time="2026-01-02")
    store = opened(tmp_path)
    before = session_of(store, "b")
    for path in older.iterdir():
        path.unlink()
    after = session_of(store, "b")

    assert store.signature(before) != store.signature(after)
    assert [each.get("replayed", False) for each in store.messages(before)] == [True, True, False]
    assert not any(each.get("replayed") for each in store.messages(after))


@pytest.mark.parametrize("damage", ["missing", "rewritten", "cut"])
def test_an_import_whose_folder_has_changed_falls_back_on_its_own_copy(tmp_path, damage):
    root = copied(tmp_path, LEGACY, MIXED)
    git = next(truth for truth in TRUTH[LEGACY]["sessions"] if truth["keys"] == ["git"])
    messages = root / git["dir"] / "messages.jsonl"
    messages.chmod(0o600)
    match damage:
        case "missing":
            shutil.rmtree(root / git["dir"])
        case "rewritten":
            messages.write_bytes(messages.read_bytes().replace(b"Planning first.", b"Planning last."))
        case "cut":
            messages.write_bytes(b"".join(messages.read_bytes().splitlines(keepends=True)[:3]))
    store = opened(root)
    session = session_of(store, keyed("u-import-legacy")["session_id"])
    entries = list(store.entries(session, {}))
    found = [record for entry in entries for record in entry.messages]

    told = [each["content"] for each in found if each["content"] and each["role"] != "tool"]
    assert told == [text for _, text in keyed("u-import-legacy")["texts"] if text]
    assert [each["id"] for each in found] == list(range(1, len(found) + 1))
    assert "import" in "".join(store.notices.said)
    raw = b"".join(entry.line() for entry in entries)
    assert b"Add word counter" in raw  # the context keeps the tools that the copy left out


def test_lines_added_to_an_imported_folder_later_are_not_the_imports(tmp_path):
    """Only the tools' lines after the last imported message belong to it."""
    call = {"id": "c", "function": {"name": "bash", "arguments": "{}"}, "type": "function"}
    tool = {"role": "tool", "content": "out", "name": "bash", "tool_call_id": "c"}
    lines = [user("hi"), assistant("ho", tool_calls=[call]), tool, user("later", 3)]
    folder(tmp_path, "session_20260101_000000_0123abcd", lines, session_id="0123abcd-x")
    copies = [said("imported-1", "hi", source="harness"), said("imported-2", "ho", "assistant")]
    origin = {"import_provenance": {"source": {"backend": "legacy", "session_id": "0123abcd-x"}}}
    unified(tmp_path, "s", [[*copies, said("own", "new")]], runtime=origin)
    found = records(opened(tmp_path), "s")

    assert [(each["content"], each.get("replayed", False)) for each in found] == [
        ("hi", True),
        ("ho", True),
        ("out", True),
        ("new", False),
    ]


def test_copied_messages_that_the_program_wrote_are_no_prompts(tmp_path):
    """A fork's copies have lost their marks; the program's own envelopes decide, at the beginning of a text only."""
    written = ["<vibe_warning>Plan mode is active.", "Runtime notification:\n{}"]
    quoted = "What does <vibe_warning> mean?"
    copies = [said(f"imported-{n}", text, source="harness") for n, text in enumerate([*written, quoted], 1)]
    unified(tmp_path, "s", [copies])

    assert [each["authorship"] for each in records(opened(tmp_path), "s")] == ["injected", "injected", "human"]


def fork(root, source, *copies, made=1796073009000):
    """A session forked from `source`, which holds copies of these texts."""
    origin = {"import_provenance": {"source": {"backend": "unified", "session_id": source}}}
    roles = ("user", "assistant")
    entries = [
        said(f"imported-{number + 1}", text, roles[number % 2], source="harness", createdAt=made)
        for number, text in enumerate(copies)
    ]
    unified(root, "f", [entries], runtime=origin)
    store = opened(root)
    return store.row(session_of(store, "f"))["forked_from"]["kind"]


LATER = [said("d", "four", createdAt=1796073010000), said("e", "five", "assistant", createdAt=1796073010000)]
INTERRUPTED = said("d", "par", "assistant", outcome={"type": "discarded", "cause": "interrupt"})


@pytest.mark.parametrize(
    ("more", "copies", "kind"),
    [
        ([], ["one", "two", "three"], "fork"),
        (LATER, ["one", "two", "three"], "fork"),
        ([INTERRUPTED], ["one", "two", "three"], "fork"),
        ([], ["one", "two"], "rewind"),
        (LATER, ["one", "two"], "rewind"),
        ([], ["one"], "rewind"),
    ],
)
def test_a_fork_of_less_than_there_was_is_a_rewind(tmp_path, more, copies, kind):
    """The store says `fork` of both. What came after the copy was made, or was no answer, does not count."""
    unified(tmp_path, "s", [*CHUNKS, more])

    assert fork(tmp_path, "s", *copies) == kind


def test_a_fork_whose_source_is_gone_is_a_fork(tmp_path):
    assert fork(tmp_path, "gone", "one") == "fork"


def test_what_a_fork_copied_is_replayed(tmp_path):
    store = opened(copied(tmp_path, MIXED))
    branch = records(store, keyed("u-branch")["session_id"])
    rewound = records(store, keyed("u-rewind-forked")["session_id"])

    assert all(each["replayed"] for each in branch)
    assert [each.get("replayed", False) for each in rewound] == [True, True, False, False]


def known(role, text="", source="history", **told):
    """A message of the model's context."""
    return {"source": source, "message": {"role": role, "content": [{"type": "text", "text": text}]} | told}


FRAME = "You are continuing a trajectory after a context compaction."
TOOL = known("tool", "out", tool_call_id="c", outcome="success")


@pytest.mark.parametrize(
    ("context", "kinds"),
    [
        ([known("user", "one"), known("assistant", "two"), TOOL, known("user", "new")], ["tool"]),
        ([known("user", FRAME, "injection"), known("user", "one"), TOOL], ["system"]),
        ([known("user", "one"), known("assistant", "two"), known("user", "new"), TOOL], []),
    ],
)
def test_tools_of_a_fork_are_in_its_context_until_it_is_compacted(tmp_path, context, kinds):
    """The copied messages are the context's first; a tool that ran later is an effect of the transcript."""
    copies = [said("imported-1", "one", source="harness"), said("imported-2", "two", "assistant")]
    unified(tmp_path, "s", [[*copies, said("own", "new")]], context=context)
    store = opened(tmp_path)
    entries = list(store.entries(session_of(store, "s"), {}))

    assert [each.raw_type() for each in entries[3:]] == kinds
