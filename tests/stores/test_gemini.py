"""Gemini CLI: its real store against what is known to be in it, and what that one does not show."""

import hashlib
import os
import shutil

import orjson
import pytest
from total_recall.notices import Notices
from total_recall.questions import pairs
from total_recall.todos import events

from tests.stores.rich_transcripts import ID, gemini, gemini_call, gemini_message, gemini_response
from tests.stores.transcripts import FIXTURES, Session, contents, messages, moment, opened, real, shapes

SESSION = "6d6adfca-0030-4b33-b040-b63202ed4a5a"
CONTEXT = gemini_message("c" * 32, 0, "user", [{"text": "<session_context>\nhere"}])


@pytest.fixture(scope="module")
def delta():
    store = real("gemini")
    [session] = store.sessions()
    return store, session, messages(store, session)


def start(folder, name="session-2026-11-30T20-00-11111111.jsonl", **head):
    """A session with nothing but its header and the context."""
    session = Session("gemini", folder, f"p/chats/{name}")
    head = {"sessionId": ID, "projectHash": "0" * 64, "startTime": moment(0), "kind": "main"} | head
    return session.add(head, set_messages(CONTEXT))


def set_messages(*given, **more):
    return {"$set": {"messages": list(given), **more}}


def prompt(id, number, text):
    return gemini_message(id, number, "user", [{"text": text}])


def said(id, number, text, **more):
    return gemini_message(id, number, "gemini", text, **more)


# -- the real store ------------------------------------------------------------------------------------------------


def test_the_real_conversation_is_told_once(delta):
    """Turns written twice, results beside their calls and as messages, the conversation as a whole: each once."""
    _, _, found = delta

    assert [m["content"] for m in found if m["authorship"] == "human"] == [
        "Gemini: make a note, please.",
        "Gemini: and what now?",
    ]
    [context] = [m["content"] for m in found if m["injected"]]
    assert context.startswith("<session_context>")
    assert [m["content"] for m in found if m["role"] == "assistant" and m["content"]] == [
        "I will write the note.",
        "The note is written. Gemini needle: okapitown. Emoji 🦒 and 漢字.",
        "Nothing is left to do.",
    ]
    assert len({(m["role"], m["content"], m["tool_call_id"]) for m in found if m["role"] != "assistant"}) == 8
    assert [m["thinking"] for m in found if m["thinking"]] == ["Planning the note\nA small file is enough."]


def test_real_calls_and_their_results(delta):
    _, _, found = delta
    names = ["write_todos", "write_file", "run_shell_command", "read_file", "write_todos"]
    calls = [call for m in found for call in m["tool_calls"]]
    results = [m for m in found if m["role"] == "tool"]

    assert [call["name"] for call in calls] == names
    assert [(m["tool_call_id"], m["tool_name"]) for m in results] == [(call["id"], call["name"]) for call in calls]
    assert [m["is_error"] for m in results] == [False, False, False, True, False]
    assert "Exit Code: 3" in results[2]["content"]
    assert results[3]["content"] == "File not found: /home/dev/projects/delta/missing.txt"


def test_real_usage_is_counted_once_a_response(delta):
    """Seven responses, although six of them stand twice; what the cache gave is apart."""
    _, session, found = delta
    used = [m["usage"] for m in found if m.get("usage")]
    with open(session.path, "rb") as file:
        turns = [record for record in map(orjson.loads, file) if record.get("type") == "gemini"]
    truth = {turn["id"]: turn["tokens"] for turn in turns}.values()

    assert len(turns) > len(used) == 7
    assert [each["input"] + each["cache_read"] for each in used] == [tokens["input"] for tokens in truth]
    assert sum(each["reasoning"] for each in used) == 5


def test_the_real_todos(delta):
    _, _, found = delta
    told = [(e["action"], e["todo"]) for e in events(found, "gemini", Notices())]

    assert told == [
        ("added", "Write note"),
        ("added", "Check note"),
        ("completed", "Write note"),
        ("completed", "Check note"),
    ]


def test_the_real_row(delta):
    """What `--resume` left behind is another name of the session; its directory is the one with the right SHA-256."""
    store, session, _ = delta
    row = store.row(session)

    assert row["aliases"] == ["session-2026-11-30T21-13-6d6adfca", "session-2026-11-30T21-14-6d6adfca"]
    assert (row["session_id"], row["directory"]) == (SESSION, "/home/dev/projects/delta")
    assert (row["user_count"], row["assistant_count"], row["tool_count"]) == (2, 3, 5)
    assert (row["title"], row["model"]) == ("Gemini: make a note, please.", "gemini-2.5-pro")
    assert store.resume(row) == ["gemini", "--resume", SESSION]


# -- turns that are written again ----------------------------------------------------------------------------------


def test_a_turn_that_grows_gives_what_is_new_where_it_is_written(tmp_path):
    """Text, then a call without its result, then the result and another call; the whole again adds nothing."""
    pending = {"id": "k1", "name": "read_file", "args": {}, "status": "executing"}
    first = gemini_call("k1", "read_file", {}, "one", 3)
    second = gemini_call("k2", "read_file", {}, "two", 4)
    turn = said("t1", 2, "I look.", model="g", tokens={"input": 9, "output": 1, "total": 10})
    session = start(tmp_path).add(
        prompt("u1", 1, "Look"), turn, turn, turn | {"toolCalls": [pending]}, turn | {"toolCalls": [first, second]}
    )
    session.add(turn | {"toolCalls": [first, second]})
    found = session.read()[1:]

    assert shapes(found, "id", "role", "content", "tool_call_id") == [
        (2, "user", "Look", None),
        (3, "assistant", "I look.", None),
        (4, "assistant", "", None),
        (5, "assistant", "", None),
        (6, "tool", "one", "k1"),
        (7, "tool", "two", "k2"),
    ]
    assert [len(m["tool_calls"]) for m in found] == [0, 0, 1, 1, 0, 0]
    assert len([m for m in found if m.get("usage")]) == 1
    store, session = session.write()
    assert store.row(session)["assistant_count"] == 1


def test_usage_of_a_turn_that_says_nothing_goes_to_the_next_record(tmp_path):
    """A turn's first version is often empty, with its tokens."""
    used = {"input": 7, "output": 1, "cached": 2, "total": 8}
    turn = said("t1", 2, "", tokens=used)
    other = said("t2", 3, "Well.", tokens=used)

    assert [m.get("usage") for m in start(tmp_path).add(prompt("u1", 1, "Look"), turn, other).read()][2:] == [
        {"input": 10, "output": 2, "cache_read": 4, "cache_write": 0, "reasoning": 0}
    ]


def test_results_that_stand_only_in_a_message_are_results(tmp_path):
    """Such a message is a copy where the turn has them; one of a call that was not answered is not."""
    open_call = {"id": "k1", "name": "read_file", "args": {}}
    refused = {"functionResponse": {"id": "k1", "name": "read_file", "response": {"error": "no"}}}
    session = start(tmp_path).add(
        prompt("u1", 1, "Look"),
        said("t1", 2, "", toolCalls=[open_call]),
        gemini_message("r1", 3, "user", [refused, {"text": "The user interrupted"}]),
        gemini_message("r2", 3, "user", [gemini_response("k1", "again")]),
    )

    assert shapes(session.read()[3:], "role", "content", "is_error", "tool_name") == [
        ("tool", "no", True, "read_file"),
        ("user", "The user interrupted", None, None),
    ]


def test_a_call_in_the_content_is_a_call(tmp_path):
    content = [
        {"text": "Hm", "thought": True},
        {"functionCall": {"id": "k1", "name": "glob", "args": {"pattern": "*"}}},
    ]
    [turn] = start(tmp_path).add(said("t1", 2, content)).read()[1:]

    assert turn["thinking"] == "Hm"
    assert turn["tool_calls"] == [{"id": "k1", "name": "glob", "arguments": {"pattern": "*"}}]


def test_a_cancelled_call_failed(tmp_path):
    """Its result may be missing; what the person was shown stands for it."""
    call = {"id": "k1", "name": "glob", "args": {}, "status": "cancelled", "resultDisplay": "Cancelled by the user"}
    found = start(tmp_path).add(said("t1", 2, "", toolCalls=[call])).read()

    assert (found[-1]["content"], found[-1]["is_error"]) == ("Cancelled by the user", True)


def test_copies_of_what_is_long_gone_are_found(tmp_path):
    """A message that was written again after a hundred others is one nevertheless, also where a walk is taken up."""
    session = start(tmp_path)
    for number in range(100):
        session.add(prompt(f"u{number}", number + 1, f"Say {number}"), said(f"t{number}", number + 1, f"{number}."))
    whole = contents(session.read())
    session.add(prompt("u3", 4, "Say 3"), said("t3", 4, "3."), prompt("new", 3, "Late"))
    store, reference = session.write()

    assert contents(messages(store, reference)) == [*whole, "Late"]
    state = {}
    for entry in store.entries(reference, state):
        if any(m["content"] == "99." for m in entry.messages):
            break
    assert contents(messages(store, reference, orjson.loads(orjson.dumps(state)))) == ["Late"]
    assert len(state["turns"]) <= 64


# -- the conversation as a whole -----------------------------------------------------------------------------------


def conversation(folder):
    return start(folder).add(
        prompt("u1", 1, "One"),
        said("t1", 2, "1."),
        prompt("u2", 3, "Two"),
        said("t2", 4, "2."),
        prompt("u3", 5, "Three"),
    )


def test_the_whole_conversation_again_adds_only_what_is_new(tmp_path):
    """Made-up ids of results, and what the program slipped in; the prompts are not said again."""
    session = conversation(tmp_path)
    whole = session.read()
    session.add(
        set_messages(
            CONTEXT,
            prompt("u1", 1, "One"),
            gemini_message("k1_response", 2, "user", [gemini_response("k1", "x")]),
            prompt("new", 2, "I ran the following shell command:\nls"),
            said("t1", 2, "1."),
            said("bare", 2, "Thank you."),
        )
    )

    assert shapes(session.read()[len(whole) :], "role", "class", "authorship", "content") == [
        ("user", "command", "injected", "I ran the following shell command:\nls"),
        ("system", "injected-text", "injected", "Thank you."),
    ]


def test_a_compaction_is_known_by_what_is_no_longer_there(tmp_path):
    """The model sees a summary in the place of the first prompt; `slice` is the first message that it still sees."""
    session = conversation(tmp_path)
    session.add(
        set_messages(
            CONTEXT | {"id": "d" * 32},
            prompt("s1", 6, "<state_snapshot>what was done"),
            said("s2", 6, "Got it."),
            prompt("u3", 5, "Three"),
        ),
        prompt("u4", 7, "Four"),
        set_messages(prompt("s3", 8, "<state_snapshot>again"), prompt("u4", 7, "Four")),
    )
    store, reference = session.write()
    found = messages(store, reference)
    after = next(m for m in found if m["content"] == "Three")["id"]

    assert shapes(found[after:], "class", "content") == [
        ("injected-text", "<session_context>\nhere"),
        ("compaction", "<state_snapshot>what was done"),
        ("injected-text", "Got it."),
        ("human-text", "Four"),
        ("compaction", "<state_snapshot>again"),
    ]
    slices = [entry.slice for entry in store.entries(reference, {}) if entry.slice is not None]
    assert slices == [after, found[-2]["id"]]
    assert store.row(reference)["has_compaction"] is True
    for message in found:
        [again] = store.entry_at(reference, message["ref"] | {"id": message["id"]}).messages
        assert (again["class"], again["content"]) == (message["class"], message["content"])


def test_a_rewind_leaves_behind_the_message_that_it_names_and_all_after_it(tmp_path):
    session = conversation(tmp_path).add({"$rewindTo": "u2"}, prompt("u4", 6, "Another"), said("t4", 7, "4."))
    store, reference = session.write()
    found = messages(store, reference)
    gone = {n for first, last in store.abandoned(reference) for n in range(first, last + 1)}

    assert contents([m for m in found if m["id"] in gone]) == ["Two", "2.", "Three"]
    assert "Another" in contents(found)


def test_a_rewind_to_what_is_not_there_leaves_all_behind(tmp_path):
    """That is how Gemini CLI reads it."""
    store, reference = conversation(tmp_path).add({"$rewindTo": "gone"}, prompt("u4", 6, "Another")).write()

    assert store.abandoned(reference) == [[1, 6]]


# -- what a person said and saw ------------------------------------------------------------------------------------


def test_a_prompt_is_what_was_typed(tmp_path):
    """Files that `@` put into it are left out where the program kept what it showed; a picture is a marker."""
    store, session = gemini(tmp_path).write()

    assert [m["content"] for m in messages(store, session) if m["authorship"] == "human"] == [
        "Look, please\n[image image/png 12 bytes]",
        "@a",
    ]


def test_answers_are_told_by_the_questions(tmp_path):
    """Gemini CLI keeps them by number."""
    found = messages(*gemini(tmp_path).write())

    [pair] = pairs(found)
    assert (pair["question"], pair["answers"]) == ("Tea?", ["Yes"])


def test_the_title_is_the_summary_and_added_directories_are_known(tmp_path):
    store, session = gemini(tmp_path).write()
    row = store.row(session)

    assert (row["title"], row["directory"]) == ("Looking", None)
    assert store.directories(session) == ["/added"]


# -- files ---------------------------------------------------------------------------------------------------------


def document(folder, name, *held, **head):
    path = folder / ".gemini/tmp/p/chats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    value = {"sessionId": ID, "projectHash": "0" * 64, "startTime": moment(0), "lastUpdated": moment(9), **head}
    path.write_bytes(orjson.dumps(value | {"messages": list(held)}, option=orjson.OPT_INDENT_2))
    return opened("gemini", folder / ".gemini/tmp")


def test_an_older_session_is_one_document(tmp_path):
    """Read as if each message were a line; turns stand once, with their calls and results."""
    turn = said("t1", 2, "I look.", toolCalls=[gemini_call("k1", "read_file", {}, "one", 3)])
    store = document(tmp_path, "session-2026-11-30T20-00-11111111.json", prompt("u1", 1, "Look"), turn, summary="Seen")
    [session] = store.sessions()
    found = messages(store, session)

    assert session.session_id == ID
    assert shapes(found, "id", "role", "content") == [
        (1, "user", "Look"),
        (2, "assistant", "I look."),
        (3, "tool", "one"),
    ]
    assert store.row(session)["title"] == "Seen"
    assert store.fingerprint(session, {}) is None
    for message in found:
        [again] = store.entry_at(session, message["ref"] | {"id": message["id"]}).messages
        assert again["content"] == message["content"]
    state = {}
    for given, entry in enumerate(store.entries(session, state)):
        rest = messages(store, session, orjson.loads(orjson.dumps(state)))
        assert contents(rest) == (["Look", "I look.", "one"], ["I look.", "one"], [])[given]
        assert orjson.loads(entry.line())


def test_a_document_that_was_made_json_lines_is_another_name(tmp_path):
    name = "session-2026-11-30T20-00-11111111"
    document(tmp_path, f"{name}.json", prompt("u1", 1, "Look"))
    store, session = start(tmp_path, f"{name}.jsonl").add(prompt("u1", 1, "Look"), prompt("u2", 3, "More")).write()

    assert len(store.sessions()) == 1
    assert contents(messages(store, session)) == ["<session_context>\nhere", "Look", "More"]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"messages": 7}', b'{"sessionId": "x", "messages": [', b"\xff"])
def test_a_document_that_is_none_or_cut_says_so(tmp_path, text):
    store = document(tmp_path, "session-2026-11-30T20-00-11111111.json")
    [session] = store.sessions()
    with open(session.path, "wb") as file:
        file.write(text)
    store = opened("gemini", store.root)
    [session] = store.sessions()

    assert "document" in store.row(session)["read_error"]


def test_the_id_of_a_document_may_stand_anywhere(tmp_path):
    path = tmp_path / ".gemini/tmp/p/chats/session-2026-11-30T20-00-aaaaaaaa.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(orjson.dumps({"messages": [prompt("u1", 1, "x" * 9000)], "sessionId": ID}))

    assert [s.session_id for s in opened("gemini", tmp_path / ".gemini/tmp").sessions()] == [ID]


def test_a_sub_agent_belongs_to_the_session_whose_folder_it_lies_in(tmp_path):
    """Its prompt was typed by no one; reopened is the session that called it."""
    conversation(tmp_path).write()
    path = f"p/chats/{ID}/22222222-2222-4222-8222-222222222222.jsonl"
    agent = Session("gemini", tmp_path, path)
    head = {"sessionId": "22222222-2222-4222-8222-222222222222", "projectHash": "0" * 64, "kind": "subagent"}
    store, child = agent.add(head, prompt("a1", 2, "Find it"), said("a2", 3, "Found.")).write()
    [parent] = [s for s in store.sessions() if s.session_id == ID]

    assert shapes(messages(store, child), "authorship", "content") == [("delegated", "Find it"), ("model", "Found.")]
    assert store.parent(child) == ID
    assert store.row(parent)["child_sessions"] == [child.session_id]
    assert store.resume(store.row(child)) == ["gemini", "--resume", ID]


def test_other_files_of_the_program_are_no_sessions(tmp_path):
    store, session = start(tmp_path).write()
    folder = os.path.dirname(session.path)
    for path in ("../logs.json", "../checkpoint-a.json", "notes.jsonl", "../tool-outputs/session-x/a.txt"):
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("[]")

    assert len(opened("gemini", store.root).sessions()) == 1


def test_a_torn_header_still_says_the_id(tmp_path):
    """As long as the id is in what is left; what stands in a text is not taken for it."""
    session = start(tmp_path)
    session.records = [orjson.dumps(session.records[0])[:80], prompt("u1", 1, '{"sessionId":"another"}')]
    _, reference = session.write()
    assert reference.session_id == ID

    session.records = session.records[1:]
    _, reference = session.write()
    assert reference.session_id == "session-2026-11-30T20-00-11111111"


def test_a_file_without_a_header_is_known_by_its_name(tmp_path):
    session = Session("gemini", tmp_path, "p/chats/session-2026-11-30T20-00-33333333.jsonl")
    _, reference = session.add(prompt("u1", 1, "Look")).write()

    assert reference.session_id == "session-2026-11-30T20-00-33333333"


def placed(folder, project, text=None, names=None):
    """The directory of a session with this hash."""
    session = start(folder, projectHash=project)
    store, reference = session.write()
    if text is not None:
        (session.root / "p/.project_root").write_text(text)
    if names is not None:
        (session.root.parent / "projects.json").write_bytes(orjson.dumps(names))
    store = opened("gemini", session.root)
    return store.row(reference).get("directory")


def test_the_directory_is_the_one_with_the_sessions_hash(tmp_path):
    """A project's folder may have been given to another directory since."""
    right = hashlib.sha256(b"/home/p").hexdigest()
    names = {"projects": {"/home/other": "q", "/home/p": "elsewhere"}}

    assert placed(tmp_path / "a", right, "/home/p\n") == "/home/p"
    assert placed(tmp_path / "b", right, "/home/other", names) == "/home/p"
    assert placed(tmp_path / "c", right, None, names) == "/home/p"


def test_a_directory_without_proof_is_what_the_folder_says(tmp_path):
    assert placed(tmp_path / "a", "0" * 64, "/home/p") == "/home/p"
    assert placed(tmp_path / "b", "0" * 64, None, {"projects": {"/home/p": "p"}}) == "/home/p"
    assert placed(tmp_path / "c", "0" * 64) is None
    for number, names in enumerate((7, {"projects": []}, {"projects": {"/home/p": {}}})):
        assert placed(tmp_path / f"d{number}", "0" * 64, None, names) is None


def test_a_row_follows_what_names_the_project(tmp_path):
    """A folder that is named later is seen, although the session is unchanged."""
    copy = tmp_path / "copy"
    shutil.copytree(FIXTURES / "gemini", copy)
    store = opened("gemini", copy / ".gemini/tmp")
    [session] = store.sessions()
    before = store.surroundings(session)
    (copy / ".gemini/tmp/delta/.project_root").unlink()

    assert store.surroundings(session) != before
