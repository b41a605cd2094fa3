"""The Codex adapter on damaged, copied, moved and made-up files: nothing readable is lost, and nothing raises."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from total_recall.notices import Unreadable
from total_recall.stores import _codex_files
from total_recall.stores.base import Memory, Reference
from total_recall.stores.codex import Codex

from tests.stores.codex_stores import FIXTURES, fixture_store, open_store, reference, rollout

EXEC = "01a22e58-e296-7693-abea-cc584a97ff3d"  # 0.171
LEGACY = "01a22e59-610d-78f2-a614-24a63d0305f0"  # 0.98
BARE = "8f1c7b9f-5cdc-4693-9836-c233f615e185"  # 0.20
REWOUND = "01a22e5c-5229-71a2-bbf5-5e3203d86409"  # 0.45, copies of the next
ORIGINAL = "01a22e5b-ef54-78b2-ab41-91429ae0f711"
OTHER = "11111111-2222-4333-8444-555555555555"


def lines_of(session_id: str) -> list[bytes]:
    return rollout(session_id).read_bytes().splitlines(keepends=True)


def put(root: Path, session_id: str, content: bytes, suffix: str = ".jsonl") -> Path:
    """Write a rollout into a scratch store."""
    path = root / "sessions" / f"rollout-2026-11-30T21-00-00-{session_id}{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def store_of(root: Path) -> Codex:
    return open_store(root / "sessions")


def contents(codex: Codex, session_id: str) -> list[str]:
    return [m["content"] for m in codex.messages(reference(codex, session_id))]


def envelope(kind: str, payload: Any, ordinal: int = 0, ts: str = "2026-11-30T21:00:00.000Z") -> bytes:
    return orjson.dumps({"timestamp": ts, "ordinal": ordinal, "type": kind, "payload": payload}) + b"\n"


def user(text: str, kinds: list[Any] | None = None) -> dict:
    payload: dict[str, Any] = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    if kinds:
        payload["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds}
    return payload


def answer(text: str) -> dict:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


# Where the store is, and what is in it.


@pytest.mark.parametrize(
    ("environ", "root", "overridden"),
    [
        ({"TOTAL_RECALL_CODEX_ROOT": "/a/sessions", "CODEX_HOME": "/b", "HOME": "/c"}, "/a/sessions", True),
        ({"TOTAL_RECALL_CODEX_ROOT": " ", "CODEX_HOME": "/b", "HOME": "/c"}, "/b/sessions", False),
        ({"CODEX_HOME": "", "HOME": "/c"}, "/c/.codex/sessions", False),
    ],
)
def test_the_store_is_where_the_environment_says(environ: dict, root: str, overridden: bool) -> None:
    """The override, then CODEX_HOME, then the home directory; blank is unset; the shadow stands beside it."""
    place = Codex.locate(environ)

    assert place is not None
    assert (place.root, place.overridden, place.variable) == (root, overridden, "TOTAL_RECALL_CODEX_ROOT")
    assert place.shadow == os.path.join(os.path.dirname(root), ".tantivy")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_a_home_there_is_no_place(environ: dict) -> None:
    """Nothing is guessed."""
    assert Codex.locate(environ) is None


def test_the_archive_alone_is_a_store(tmp_path: Path) -> None:
    """A store whose threads were all archived exists, and lists them."""
    (tmp_path / "archived_sessions").mkdir()
    shutil.copy(rollout(EXEC), tmp_path / "archived_sessions")
    codex = store_of(tmp_path)

    assert codex.exists()
    assert codex.row(reference(codex, EXEC))["archived"] is True


def test_a_missing_store_is_empty_and_a_file_in_its_place_is_an_error(tmp_path: Path) -> None:
    """Nothing there is nothing to list; what cannot be listed is said."""
    assert not store_of(tmp_path).exists()
    assert store_of(tmp_path).sessions() == []

    (tmp_path / "sessions").write_text("")
    with pytest.raises(Unreadable, match="sessions"):
        store_of(tmp_path).sessions()


def test_only_rollouts_that_are_regular_files_count(tmp_path: Path) -> None:
    """Pipes, folders, dangling and looping links, and other files neither hang the listing nor appear in it."""
    path = put(tmp_path, EXEC, b"".join(lines_of(EXEC)))
    folder = path.parent
    os.mkfifo(folder / f"rollout-2026-11-30T21-00-00-{OTHER}.jsonl")
    (folder / "rollout-folder.jsonl").mkdir()
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "rollout-gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "notes.jsonl").write_text("{}\n")

    assert [session.session_id for session in store_of(tmp_path).sessions()] == [EXEC]


def test_old_and_linked_folders_are_walked(tmp_path: Path) -> None:
    """Flat files, deep files and a linked folder are all found, each once."""
    put(tmp_path, EXEC, b"".join(lines_of(EXEC)))
    shutil.copytree(FIXTURES / "codex-migrated" / ".codex" / "sessions", tmp_path / "sessions" / "a")
    (tmp_path / "sessions" / "b").symlink_to(tmp_path / "sessions" / "a", target_is_directory=True)

    assert len(store_of(tmp_path).sessions()) == 6


def test_a_window_leaves_out_older_sessions(tmp_path: Path) -> None:
    """Sessions are listed newest first, from a time on."""
    for age, session_id in ((100, EXEC), (300, LEGACY)):
        os.utime(put(tmp_path, session_id, b"".join(lines_of(session_id))), (1000 - age, 1000 - age))
    codex = store_of(tmp_path)

    assert [session.session_id for session in codex.sessions()] == [EXEC, LEGACY]
    assert [session.session_id for session in codex.sessions(since=800)] == [EXEC]


# One thread in several places.


def test_the_id_is_that_of_the_first_line(tmp_path: Path) -> None:
    """A renamed file keeps its session's id; the id in its name still resolves to it."""
    put(tmp_path, OTHER, b"".join(lines_of(EXEC)))
    session = store_of(tmp_path).sessions()[0]

    assert (session.session_id, session.names) == (EXEC, (OTHER,))


@pytest.mark.parametrize(
    "first", [b'{"timestamp":"2026-11-30T21:25:06.9\n', b"\0\0\0\0\n", b"[]\n", b"{}\n", b"null\n"]
)
def test_the_name_stands_in_for_a_damaged_first_line(tmp_path: Path, first: bytes) -> None:
    """Without its first line a session is listed under the id in its name, and everything else is read."""
    whole = fixture_store("codex")
    put(tmp_path, OTHER, first + b"".join(lines_of(EXEC)[1:]))
    codex = store_of(tmp_path)
    row = codex.row(reference(codex, OTHER))

    assert contents(codex, OTHER) == contents(whole, EXEC)
    assert (row["directory"], row["user_count"], row["model"]) == ("/home/dev/projects/alpha", 2, "gpt-5.5")


def test_a_plain_file_wins_over_its_compressed_copy(tmp_path: Path) -> None:
    """While Codex unpacks a rollout both are there: it is one session, read from the plain file."""
    text = b"".join(lines_of(EXEC))
    path = put(tmp_path, EXEC, text)
    put(tmp_path, EXEC, zstandard.compress(text), ".jsonl.zst")
    sessions = store_of(tmp_path).sessions()

    assert [session.files for session in sessions] == [(str(path),)]


def test_a_live_file_wins_over_an_archived_one(tmp_path: Path) -> None:
    """A thread that lies in both places is one session, and not archived."""
    path = put(tmp_path, EXEC, b"".join(lines_of(EXEC)))
    (tmp_path / "archived_sessions").mkdir()
    shutil.copy(path, tmp_path / "archived_sessions")
    codex = store_of(tmp_path)

    assert [session.files for session in codex.sessions()] == [(str(path),)]
    assert "archived" not in codex.row(reference(codex, EXEC))


def test_heads_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is remembered, a listing opens no file, not even of sessions that have grown."""
    path = put(tmp_path, OTHER, b"".join(lines_of(EXEC)))
    remember = Memory()

    first = open_store(path.parent, remember).sessions()
    path.write_bytes(path.read_bytes() + lines_of(EXEC)[-1])
    monkeypatch.setattr(_codex_files, "open_session", None)
    again = open_store(path.parent, remember).sessions()

    assert [s.session_id for s in first] == [s.session_id for s in again] == [EXEC]


# Damage inside a file.


def test_every_cut_of_a_line_costs_at_most_that_line(tmp_path: Path) -> None:
    """A record glued to the stub of a torn one is recovered, and all others are read."""
    lines = lines_of(LEGACY)
    whole = contents(fixture_store("codex"), LEGACY)
    torn = 10  # the reasoning's UI event is before it, the answer after it
    for cut in range(1, len(lines[torn]) - 1, 7):
        put(tmp_path, LEGACY, b"".join([*lines[:torn], lines[torn][:cut], *lines[torn + 1 :]]))

        assert contents(store_of(tmp_path), LEGACY) == whole


def test_a_torn_compaction_gives_no_copies(tmp_path: Path) -> None:
    """What is found inside a torn line is not taken for lines: the copies that a compaction holds stay copies."""
    session_id = "01a22e59-1b39-71d0-aecb-c04d9508c4d4"
    lines = lines_of(session_id)
    place = next(i for i, line in enumerate(lines) if b'"type":"compacted"' in line)
    put(tmp_path, session_id, b"".join([*lines[:place], lines[place][:-40] + b"\n", *lines[place + 1 :]]))
    codex = store_of(tmp_path)
    typed = [m["content"] for m in codex.messages(reference(codex, session_id)) if m["authorship"] == "human"]

    assert len(typed) == len(set(typed)) == 3
    assert any("1 damaged line" in notice for notice in codex.notices.said)


@pytest.mark.parametrize("session_id", [EXEC, LEGACY, BARE])
@pytest.mark.parametrize(
    "bad",
    [
        b"\0" * 500 + b"\n",
        b"\xff\xfe broken\n",
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        b'{"type":"response_item","payload":[]}\n',
        b'{"type":"response_item","payload":{"type":"message","role":"\\ud800","content":"\\udc00"}}\n',
        b'{"type":["a"],"payload":{"type":{}}}\n',
        b'"text"\n',
        b"\n \n\r\n",
    ],
)
def test_bad_lines_cost_nothing_but_themselves(tmp_path: Path, session_id: str, bad: bytes) -> None:
    """Whatever stands between two records, both are read."""
    lines = lines_of(session_id)
    middle = len(lines) // 2
    put(tmp_path, session_id, b"".join([*lines[:middle], bad, *lines[middle:]]))
    codex = store_of(tmp_path)
    found = [m["content"] for m in codex.messages(reference(codex, session_id)) if m["content"] != "\ufffd"]

    assert found == contents(fixture_store("codex"), session_id)
    assert "read_error" not in codex.row(reference(codex, session_id))


@pytest.mark.parametrize("session_id", [EXEC, LEGACY, BARE])
def test_a_byte_order_mark_and_carriage_returns_are_accepted(tmp_path: Path, session_id: str) -> None:
    """A file that went through another system's hands reads the same."""
    put(tmp_path, session_id, b"\xef\xbb\xbf" + b"".join(line.replace(b"\n", b"\r\n") for line in lines_of(session_id)))

    assert contents(store_of(tmp_path), session_id) == contents(fixture_store("codex"), session_id)


def test_an_empty_file_is_an_empty_session(tmp_path: Path) -> None:
    """No line is no damage."""
    put(tmp_path, OTHER, b"")
    row = (codex := store_of(tmp_path)).row(reference(codex, OTHER))

    assert row["empty"] is True
    assert "read_error" not in row


def test_a_file_that_is_gone_is_said_in_its_row(tmp_path: Path) -> None:
    """A session that vanished between listing and reading leaves a row, not a traceback."""
    path = put(tmp_path, EXEC, b"".join(lines_of(EXEC)))
    codex = store_of(tmp_path)
    session = reference(codex, EXEC)
    ref = next(codex.messages(session))["ref"]
    path.unlink()

    assert codex.row(session)["read_error"] == "gone"
    assert codex.entry_at(session, ref) is None


def test_an_unfinished_last_line_waits(tmp_path: Path) -> None:
    """A line that is being written is left for the next read, which takes it up whole."""
    lines = lines_of(EXEC)
    path = put(tmp_path, EXEC, b"".join(lines[:-4]) + lines[-4][:100])
    codex = store_of(tmp_path)
    session, state = reference(codex, EXEC), {}
    first = list(codex.entries(session, state, whole=True))
    path.write_bytes(b"".join(lines))
    then = list(codex.entries(session, state, whole=True))

    assert [entry.line() + b"\n" for entry in first + then] == lines


# Compressed files.


def compressed(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


def test_a_cut_compressed_file_gives_what_it_has(tmp_path: Path) -> None:
    """The frames before the cut are read, then the damage is said: the row has a read_error."""
    lines = lines_of(EXEC)
    text = compressed(b"".join(lines[:40])) + compressed(b"".join(lines[40:]))[:-20]
    put(tmp_path, EXEC, text, ".jsonl.zst")
    codex = store_of(tmp_path)
    session = reference(codex, EXEC)
    entries = codex.entries(session, {})

    assert [next(entries).line() + b"\n" for _ in range(40)] == lines[:40]
    with pytest.raises(Unreadable, match="cut short"):
        list(entries)
    assert "cut short" in codex.row(session)["read_error"]


def test_a_damaged_compressed_file_is_said(tmp_path: Path) -> None:
    """Bytes that are no zstd at all are an error of that session alone."""
    put(tmp_path, EXEC, b"no zstd", ".jsonl.zst")
    put(tmp_path, LEGACY, b"".join(lines_of(LEGACY)))
    codex = store_of(tmp_path)
    rows = {session.session_id: codex.row(session) for session in codex.sessions()}

    assert "damaged zstd stream" in rows[EXEC]["read_error"]
    assert "read_error" not in rows[LEGACY]


def test_without_the_library_the_row_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed session is listed all the same, and its row says what is missing."""
    put(tmp_path, EXEC, compressed(b"".join(lines_of(EXEC))), ".jsonl.zst")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    monkeypatch.delitem(sys.modules, "total_recall.stores._zstd", raising=False)
    codex = store_of(tmp_path)

    assert "zstandard is missing" in codex.row(reference(codex, EXEC))["read_error"]


def test_a_compressed_session_is_read_from_any_place(tmp_path: Path) -> None:
    """Refs into a compressed file are places in its plain text."""
    put(tmp_path, EXEC, compressed(b"".join(lines_of(EXEC))), ".jsonl.zst")
    codex = store_of(tmp_path)
    session = reference(codex, EXEC)
    last = list(codex.messages(session))[-1]
    found = codex.entry_at(session, last["ref"])

    assert found is not None
    assert found.messages[0]["content"] == last["content"]


# Forms that no fixture has.


def test_a_session_document_of_the_first_cli_is_read(tmp_path: Path) -> None:
    """The TypeScript CLI wrote one JSON document a session, with the items of today."""
    items = [
        user("Rename the module"),
        {"type": "function_call", "name": "shell", "arguments": '{"command":["bash","-lc","ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a\\n","metadata":{"exit_code":1}}'},
        answer("Renamed."),
    ]
    document = {"session": {"id": OTHER, "timestamp": "2025-05-01T10:00:00.000Z", "instructions": ""}, "items": items}
    put(tmp_path, OTHER, json.dumps(document, indent=2).encode(), ".json")
    codex = store_of(tmp_path)
    session = reference(codex, OTHER)
    messages = list(codex.messages(session))

    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", "Rename the module"),
        ("assistant", ""),
        ("tool", "a\n"),
        ("assistant", "Renamed."),
    ]
    assert messages[2]["is_error"] is True
    assert codex.row(session)["start_time"] == "2025-05-01T10:00:00.000Z"
    found = codex.entry_at(session, messages[3]["ref"])
    assert found is not None
    assert found.messages[0]["content"] == "Renamed."


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"items":{}}', b""])
def test_a_document_that_is_none_is_said(tmp_path: Path, text: bytes) -> None:
    """A .json file of another shape is a row with its error."""
    put(tmp_path, OTHER, text, ".json")
    codex = store_of(tmp_path)

    assert codex.row(reference(codex, OTHER))["read_error"] == "not a session document"


def test_a_sub_agent_with_its_parent_s_history_counts_only_its_own(tmp_path: Path) -> None:
    """What stands before the ordinal at which a sub-agent begins is replayed, the parent's prompt too."""
    spawn = {"parent_thread_id": EXEC, "agent_path": "/root/one", "depth": 1}
    meta = {"id": OTHER, "source": {"subagent": {"thread_spawn": spawn}}, "subagent_history_start_ordinal": 4}
    task = [{"type": "input_text", "text": "Message Type: NEW_TASK\nTask name: /root/one\nSender: /root\nPayload:\n"}]
    lines = [
        envelope("session_meta", meta, 0),
        envelope("session_meta", {"id": EXEC, "cwd": "/elsewhere"}, 1),
        envelope("response_item", user("What the person typed", ["user.text"]), 2),
        envelope("response_item", answer("What the parent said"), 3),
        envelope(
            "response_item",
            {
                "type": "agent_message",
                "author": "/root",
                "recipient": "/root/one",
                "content": [*task, {"type": "encrypted_content", "encrypted_content": "Count the lines"}],
            },
            4,
        ),
        envelope("response_item", answer("Forty-two."), 5),
    ]
    put(tmp_path, OTHER, b"".join(lines))
    codex = store_of(tmp_path)
    row = codex.row(reference(codex, OTHER))
    messages = list(codex.messages(reference(codex, OTHER)))

    assert [(m["content"], m.get("replayed", False), m["authorship"]) for m in messages] == [
        ("What the person typed", True, "human"),
        ("What the parent said", True, "model"),
        ("Count the lines", False, "delegated"),
        ("Forty-two.", False, "model"),
    ]
    assert (row["user_count"], row["assistant_count"], row["title"]) == (1, 1, "Count the lines")
    assert row["parent_session_id"] == EXEC
    assert "forked_from" not in row


def test_an_encrypted_task_is_told_by_its_head(tmp_path: Path) -> None:
    """Cipher text is not shown: what can be read of the message is."""
    spawn = {"parent_thread_id": EXEC, "agent_path": "/root/one"}
    text = "Message Type: NEW_TASK\nTask name: /root/one\nSender: /root\nPayload:\n"
    content = [
        {"type": "input_text", "text": text},
        {"type": "encrypted_content", "encrypted_content": "gAAAAABo" * 20},
    ]
    message = {"type": "agent_message", "author": "/root", "recipient": "/root/one", "content": content}
    meta = envelope("session_meta", {"id": OTHER, "source": {"subagent": {"thread_spawn": spawn}}})
    put(tmp_path, OTHER, meta + envelope("response_item", message, 1))

    assert contents(store_of(tmp_path), OTHER) == [text]


def test_copies_are_known_by_their_original(tmp_path: Path) -> None:
    """What a fork writes at once after the copies is its own where the original shows that it has no such item."""
    lines = lines_of(REWOUND)
    soon = [line.replace(b"21:28:55.", b"21:28:52.0") for line in lines]
    put(tmp_path, REWOUND, b"".join(soon))
    put(tmp_path, ORIGINAL, b"".join(lines_of(ORIGINAL)))
    codex = store_of(tmp_path)
    session = reference(codex, REWOUND)

    assert [m["id"] for m in codex.messages(session) if not m.get("replayed")] == [8, 9]


def test_without_the_original_the_time_tells_copies(tmp_path: Path) -> None:
    """The copies were written in one go: what came later is the thread's own."""
    put(tmp_path, REWOUND, b"".join(lines_of(REWOUND)))
    codex = store_of(tmp_path)
    session = reference(codex, REWOUND)

    assert [m["id"] for m in codex.messages(session) if not m.get("replayed")] == [8, 9]


def test_a_rewind_without_its_first_line_keeps_its_name_s_id(tmp_path: Path) -> None:
    """The second session_meta is the other thread's: it never becomes the session's id."""
    put(tmp_path, REWOUND, lines_of(REWOUND)[0][:50] + b"\n" + b"".join(lines_of(REWOUND)[1:]))
    codex = store_of(tmp_path)
    row = codex.row(reference(codex, REWOUND))

    assert row["forked_from"] == {"session_id": ORIGINAL, "kind": "rewind"}
    assert row["user_count"] == 1


def test_a_fork_of_a_missing_thread_says_so(tmp_path: Path) -> None:
    """The inherited records that are gone are a notice."""
    fork = "01a22e58-e892-7303-9227-b6937abe33d5"
    put(tmp_path, fork, b"".join(lines_of(fork)))
    codex = store_of(tmp_path)

    assert list(codex.history(reference(codex, fork))) == []
    assert any(EXEC in notice for notice in codex.notices.said)


def test_threads_that_go_on_from_each_other_end(tmp_path: Path) -> None:
    """A circle of forks is followed once."""
    for one, other in ((EXEC, OTHER), (OTHER, EXEC)):
        meta = {"id": one, "history_base": {"thread_id": other, "end_ordinal_exclusive": 9}}
        put(tmp_path, one, envelope("session_meta", meta) + envelope("response_item", user(one, ["user.text"]), 1))
    codex = store_of(tmp_path)

    assert [m["content"] for m in codex.history(reference(codex, EXEC))] == [OTHER]


def test_nested_rollbacks_are_taken_from_what_is_left(tmp_path: Path) -> None:
    """A second rollback counts the turns that the first one left."""

    def back(turns: int) -> bytes:
        return envelope("event_msg", {"type": "thread_rolled_back", "num_turns": turns})

    turns = [envelope("response_item", user(text)) for text in "abcd"]
    put(tmp_path, OTHER, b"".join([envelope("session_meta", {"id": OTHER}), *turns[:3], back(1), turns[3], back(2)]))
    codex = store_of(tmp_path)

    assert codex.abandoned(reference(codex, OTHER)) == [[2, 4]]


def test_a_message_of_two_kinds_gives_a_record_for_each(tmp_path: Path) -> None:
    """What the harness put into a person's message is not the person's."""
    payload = user("# AGENTS.md instructions\n\nBe brief.", ["agents_md.instructions", "user.text"])
    payload["content"].append({"type": "input_text", "text": "Say it"})
    put(tmp_path, OTHER, envelope("session_meta", {"id": OTHER}) + envelope("response_item", payload))
    codex = store_of(tmp_path)

    assert [(m["content"][:8], m["authorship"]) for m in codex.messages(reference(codex, OTHER))] == [
        ("# AGENTS", "injected"),
        ("Say it", "human"),
    ]


@pytest.mark.parametrize(
    ("kinds", "authorship"), [(["user.text"], "human"), (["new.kind"], "injected"), ([7], "injected")]
)
def test_an_unknown_kind_is_not_a_person_s(tmp_path: Path, kinds: list, authorship: str) -> None:
    """A mark that is not known fails closed."""
    put(tmp_path, OTHER, envelope("session_meta", {"id": OTHER}) + envelope("response_item", user("x", kinds)))
    codex = store_of(tmp_path)

    assert [m["authorship"] for m in codex.messages(reference(codex, OTHER))] == [authorship]


SHOWN = envelope("event_msg", {"type": "user_message", "message": "<skill> is a tag"})
OTHER_SHOWN = envelope("event_msg", {"type": "user_message", "message": "typed before"})
SAID = envelope("response_item", answer("ok"))


@pytest.mark.parametrize(
    ("text", "before", "after", "authorship"),
    [
        ("<skill> is a tag", b"", SHOWN + SAID, "human"),  # quoting an envelope
        ("<skill> is a tag", b"", SAID, "injected"),
        ("<skill> is a tag", b"", b"", "injected"),
        ("no envelope", b"", b"", "human"),  # the event may still come
        ("no envelope", OTHER_SHOWN, SAID, "injected"),  # this version shows what was typed
        ("no envelope", b"", SAID, "human"),  # no event was ever seen
        ("no envelope", OTHER_SHOWN, b"{torn\n" + SAID, "human"),  # its event may be the torn line
    ],
)
def test_ui_events_tell_what_was_typed(tmp_path: Path, text: str, before: bytes, after: bytes, authorship: str) -> None:
    """The prompt that an event shows is a person's; envelopes decide only where no event does."""
    meta = envelope("session_meta", {"id": OTHER})
    put(tmp_path, OTHER, meta + before + envelope("response_item", user(text)) + after)
    codex = store_of(tmp_path)
    messages = [m for m in codex.messages(reference(codex, OTHER)) if m["role"] == "user"]

    assert [m["authorship"] for m in messages] == [authorship]


def test_an_encrypted_compaction_is_one_without_a_summary(tmp_path: Path) -> None:
    """A compaction made by the provider has no readable summary, and is still one."""
    item = {"type": "compaction", "encrypted_content": "gAAAA"}
    text = envelope("session_meta", {"id": OTHER}) + envelope("response_item", item) + SAID
    put(tmp_path, OTHER, text + envelope("response_item", item) + envelope("compacted", {"message": "S"}))
    codex = store_of(tmp_path)

    assert [(m["class"], m["content"]) for m in codex.messages(reference(codex, OTHER))] == [
        ("compaction", ""),
        ("model-text", "ok"),
        ("compaction", "S"),
    ]


SUMMARY = {**answer("It went well."), "id": "msg_2"}
COUNT = envelope("event_msg", {"type": "token_count", "info": None})
LATE = envelope("event_msg", {"type": "item_completed", "item": {"type": "CommandExecution", "id": "call_1"}})
COMPACTED = envelope("compacted", {"message": "A summary: It went well."})
COMPLETE = envelope("event_msg", {"type": "task_complete", "last_agent_message": "It went well."})


@pytest.mark.parametrize(
    ("after", "classes"),
    [
        (COUNT + COMPACTED, ["compaction"]),
        (COUNT + LATE + COMPACTED, ["compaction"]),
        (COUNT, []),  # the file ends while the compaction is under way
        (COUNT + COMPLETE, ["model-text"]),  # an answer whose UI item was lost
        (COUNT + SAID, ["model-text", "model-text"]),
        (COUNT + COMPLETE + COMPACTED, ["model-text", "compaction"]),
    ],
)
def test_a_summary_is_told_from_an_answer(tmp_path: Path, after: bytes, classes: list[str]) -> None:
    """The text of a compaction is no answer; an answer that no UI item shows stays one."""
    shown = envelope("event_msg", {"type": "item_completed", "item": {"type": "AgentMessage", "id": "msg_1"}})
    text = envelope("session_meta", {"id": OTHER}) + shown + envelope("response_item", SUMMARY) + after
    put(tmp_path, OTHER, text)
    codex = store_of(tmp_path)

    assert [m["class"] for m in codex.messages(reference(codex, OTHER))] == classes


def test_web_searches_and_local_shells_are_calls(tmp_path: Path) -> None:
    """The provider's own tools are calls with their action as arguments."""
    items = [
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "tern"}},
        {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["bash", "-lc", "ls"]}},
    ]
    put(tmp_path, OTHER, b"".join(envelope("response_item", item) for item in items))
    codex = store_of(tmp_path)
    calls = [m["tool_calls"][0] for m in codex.messages(reference(codex, OTHER))]

    assert [(call["name"], call["arguments"].get("query")) for call in calls] == [
        ("web_search", "tern"),
        ("local_shell", None),
    ]


def test_deep_arguments_can_be_printed(tmp_path: Path) -> None:
    """A record can always be written as JSON, however deep what the model sent."""
    deep = "[" * 500 + "]" * 500
    items = [
        {"type": "function_call", "name": "t", "call_id": "a", "arguments": deep},
        {"type": "web_search_call", "id": "b", "action": json.loads(deep)},
        {"type": "function_call_output", "call_id": "a", "output": json.loads(deep)},
    ]
    text = b"".join(
        json.dumps({"timestamp": "", "type": "response_item", "payload": i}).encode() + b"\n" for i in items
    )
    put(tmp_path, OTHER, text)
    codex = store_of(tmp_path)
    messages = list(codex.messages(reference(codex, OTHER)))

    assert orjson.dumps(messages)
    assert messages[0]["tool_calls"][0]["arguments"] == deep


# Any JSON in any place.

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places_of(value: Any, path: tuple = ()) -> list[tuple]:
    found = [path]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found += places_of(inner, (*path, key))
    return found


def replaced(value: Any, path: tuple, new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


SAMPLES = [
    line
    for session_id in (EXEC, LEGACY, BARE, "01a22e59-9767", "01a22e59-1272", "01a22e59-0ff9", REWOUND)
    for line in {line[:24] + line[60:110]: line for line in lines_of(session_id)}.values()
    if len(line) < 9000
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_in_any_field_is_survived(tmp_path: Path, data: st.DataObject) -> None:
    """A field may hold any JSON: nothing raises, every record can be printed, and the lines round it are read."""
    lines = [json.loads(data.draw(st.sampled_from(SAMPLES))) for _ in range(6)]
    mutated = [replaced(line, data.draw(st.sampled_from(places_of(line))), data.draw(VALUES)) for line in lines]
    first = envelope("session_meta", {"id": OTHER})
    last = envelope("response_item", user("the last word", ["user.text"]), 10**6)
    put(tmp_path, OTHER, first + b"".join(json.dumps(line).encode() + b"\n" for line in mutated) + last)
    codex = store_of(tmp_path)
    session = reference(codex, OTHER)
    messages = list(codex.messages(session))

    assert orjson.dumps([codex.row(session), messages, codex.abandoned(session), list(codex.history(session))])
    assert messages[-1]["content"] == "the last word"
    assert [m["id"] for m in messages] == list(range(1, len(messages) + 1))
    for message in messages:
        assert isinstance(message["content"], str)
        assert codex.entry_at(session, message["ref"]) is not None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_walk_over_damage_goes_on_from_any_entry(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes lost, doubled or overwritten anywhere: nothing raises, and the state after any entry continues the walk."""
    session_id = data.draw(st.sampled_from((LEGACY, BARE, REWOUND)))
    text = b"".join(line for line in lines_of(session_id) if len(line) < 5000)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(start + data.draw(st.integers(0, 300)), len(text))
        text = (
            text[:start]
            + data.draw(st.sampled_from((b"", text[start:end] * 2, b"\0" * 9, b'{"a"', b"\n")))
            + text[end:]
        )
    put(tmp_path, session_id, text)
    codex = store_of(tmp_path)
    session, state = codex.sessions()[0], {}
    walked = [(entry.messages, entry.line(), orjson.dumps(state)) for entry in codex.entries(session, state)]
    for place, (_, _, kept) in enumerate(walked):
        rest = [(entry.messages, entry.line()) for entry in codex.entries(session, orjson.loads(kept))]

        assert rest == [(messages, line) for messages, line, _ in walked[place + 1 :]]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(head=VALUES, key=st.sampled_from(["id", "source", "history_base", "forked_from_id", "git", "cwd", "agent_path"]))
def test_any_head_is_survived(tmp_path: Path, head: Any, key: str) -> None:
    """A session is listed whatever its first line says."""
    put(tmp_path, OTHER, envelope("session_meta", {"id": OTHER, "thread_source": "subagent", key: head}) + SAID)
    codex = store_of(tmp_path)
    session: Reference = codex.sessions()[0]

    assert orjson.dumps(codex.row(session))
    assert [m["content"] for m in codex.messages(session)] == ["ok"]
    assert isinstance(codex.resume(codex.row(session)), list)
