"""Qwen Code: its real store against what is known to be in it, and what that one does not show."""

import orjson
import pytest
from total_recall.notices import Notices
from total_recall.questions import pairs
from total_recall.todos import events

from tests.stores.rich_transcripts import ID, QwenChain, qwen
from tests.stores.transcripts import contents, messages, opened, real, shapes

SESSION = "81ae830b-c7d6-49bc-9849-6b3c0df2eacb"
OTHER = "22222222-2222-4222-8222-222222222222"


@pytest.fixture(scope="module")
def delta():
    store = real("qwen")
    [session] = store.sessions()
    return store, session, messages(store, session)


def text(said):
    return [{"text": said}]


# -- the real store ------------------------------------------------------------------------------------------------


def test_the_real_conversation(delta):
    """Of the telemetry that the program writes between, nothing."""
    _, _, found = delta

    assert [m["content"] for m in found if m["role"] == "user"] == ["Qwen: make a note, please.", "Qwen: and what now?"]
    assert not any(m["injected"] for m in found)
    assert [m["content"] for m in found if m["role"] == "assistant" and m["content"]] == [
        "I will write the note.",
        "The note is written. Qwen needle: gerenukton. Emoji 🦒 and 漢字.",
        "Nothing is left to do.",
    ]
    assert [m["thinking"] for m in found if m["thinking"]] == ["A small file is enough."]
    assert len([m for m in found if m["role"] == "assistant"]) == 7
    assert all(m.get("usage") for m in found if m["role"] == "assistant")
    assert [m for m in found if m["role"] == "system"] == []


def test_real_calls_and_their_results(delta):
    _, _, found = delta
    calls = [call for m in found for call in m["tool_calls"]]
    results = [m for m in found if m["role"] == "tool"]

    assert [call["name"] for call in calls] == [
        "todo_write",
        "write_file",
        "run_shell_command",
        "read_file",
        "todo_write",
    ]
    assert [(m["tool_call_id"], m["tool_name"]) for m in results] == [(call["id"], call["name"]) for call in calls]
    assert [m["is_error"] for m in results] == [False, False, False, True, False]
    assert results[3]["content"] == "File not found: /home/dev/projects/delta/missing.txt"


def test_the_real_todos(delta):
    """The second list has only one item: the other was taken out."""
    _, _, found = delta

    assert [(e["action"], e["todo"]) for e in events(found, "qwen", Notices())] == [
        ("added", "Write note"),
        ("added", "Check note"),
        ("completed", "Write note"),
        ("removed", "Check note"),
    ]


def test_the_real_row(delta):
    store, session, _ = delta
    row = store.row(session)

    assert (row["session_id"], row["directory"], row["git_branch"]) == (SESSION, "/home/dev/projects/delta", "master")
    assert (row["user_count"], row["assistant_count"], row["tool_count"]) == (2, 3, 5)
    assert (row["title"], row["model"]) == ("Qwen: make a note, please.", "qwen3-coder-plus")
    assert store.resume(row) == ["qwen", "--resume", SESSION]


# -- records -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "authorship"),
    [
        ({}, "human"),
        ({"subtype": "mid_turn_user_message"}, "human"),
        ({"provenance": "real_user"}, "human"),
        ({"subtype": "notification"}, "injected"),
        ({"subtype": "cron"}, "injected"),
        ({"subtype": "of a later version"}, "injected"),
        ({"subtype": 7}, "injected"),
        ({"provenance": "system"}, "injected"),
        ({"externalInputKind": "webhook"}, "injected"),
        ({"isSidechain": True}, "delegated"),
    ],
)
def test_who_wrote_a_user_record(tmp_path, marks, authorship):
    """A prompt has no subtype, or one that says so; what is not known is the program's."""
    session = QwenChain(tmp_path)
    session.put("user", 1, text("Look"), **marks)

    assert shapes(session.read(), "authorship", "content") == [(authorship, "Look")]


def test_a_prompt_is_what_was_typed(tmp_path):
    session = QwenChain(tmp_path)
    session.put("user", 1, text("@a and its text"), systemPayload={"displayText": "@a"})

    assert contents(session.read()) == ["@a"]


def test_what_the_program_writes_into_the_conversation(tmp_path):
    """Commands and what they showed, the summary of a compression; titles and telemetry are no messages."""
    found = messages(*qwen(tmp_path).write())

    assert [(m["role"], m["class"], m["content"]) for m in found if m["class"] in ("command", "compaction")] == [
        ("user", "command", "/about"),
        ("user", "command", "0.15"),
        ("system", "compaction", "What was done"),
    ]
    assert [m["tokens_before"] for m in found if m["class"] == "compaction"] == [900]


def test_the_last_title_is_the_sessions(tmp_path):
    session = QwenChain(tmp_path)
    session.put("user", 1, text("Look"))
    for number, title in enumerate(("One", "Two", "", None)):
        session.put("system", number + 2, subtype="custom_title", systemPayload={"customTitle": title})
    store, reference = session.write()

    assert store.row(reference)["title"] == "Two"


def test_states_of_results(tmp_path):
    """The status decides; without one, whether the response is an error; parts beside a response are the program's."""
    session = QwenChain(tmp_path)
    calls = [{"functionCall": {"id": f"k{n}", "name": "read_file", "args": {}}} for n in range(4)]
    session.put("assistant", 1, calls)

    def response(number, **held):
        return {"functionResponse": {"id": f"k{number}", "name": "read_file", "response": held}}

    session.put("tool_result", 2, [response(0, output="fine")], toolCallResult={"status": "success"})
    session.put("tool_result", 3, [response(1, output="stopped")], toolCallResult={"status": "cancelled"})
    session.put("tool_result", 4, [response(2, error="no"), response(3, output="yes"), {"text": "Mind this"}])
    session.put("tool_result", 5, None, toolCallResult={"callId": "k9", "resultDisplay": {"output": "shown"}})

    assert shapes(session.read()[1:], "role", "tool_call_id", "content", "is_error") == [
        ("tool", "k0", "fine", False),
        ("tool", "k1", "stopped", True),
        ("tool", "k2", "no", True),
        ("tool", "k3", "yes", False),
        ("user", None, "Mind this", None),
        ("tool", "k9", "shown", False),
    ]


def test_answered_questions(tmp_path):
    """The result is a text for the model; a dialogue that was closed is a cancelled call."""
    session = QwenChain(tmp_path)
    options = [{"label": "Tea", "description": "hot"}, {"label": "Milk", "description": "cold"}]
    asked = {"questions": [{"question": "A drink?", "header": "Drink", "options": options, "multiSelect": False}]}
    said = "User has provided the following answers:\n\n**Drink**: Tea"
    for number, (status, held) in enumerate((("success", {"output": said}), ("cancelled", {"error": "cancelled"}))):
        call = {"id": f"k{number}", "name": "ask_user_question"}
        session.put("assistant", number, [{"functionCall": call | {"args": asked}}])
        response = {"functionResponse": call | {"response": held}}
        session.put("tool_result", number, [response], toolCallResult={"callId": f"k{number}", "status": status})

    assert [(pair["question"], pair["answers"]) for pair in pairs(session.read())] == [("A drink?", ["Tea"])]


def test_a_record_that_stands_twice_counts_once(tmp_path):
    """Next to the first, and far behind it where its old time gives it away."""
    session = QwenChain(tmp_path)
    for number in range(40):
        session.put("user", number, text(f"Say {number}"))
    expected = [f"Say {number}" for number in range(40)]
    session.add(session.records[39], session.records[3])

    store, reference = session.write()
    assert contents(messages(store, reference)) == expected
    assert store.row(reference)["user_count"] == 40


# -- branches, forks, families ------------------------------------------------------------------------------------


def test_a_rewind_goes_on_from_an_earlier_record(tmp_path):
    """What is not on the way up from the last record was left behind; ids stay."""
    session = QwenChain(tmp_path)
    session.put("user", 1, text("One"))
    first = session.put("assistant", 2, text("1."))
    session.put("user", 3, text("Two"))
    session.put("assistant", 4, text("2."))
    session.put("system", 5, parent=first, subtype="rewind", systemPayload={"truncatedCount": 2})
    session.put("user", 6, text("Another"))
    store, reference = session.write()

    assert store.abandoned(reference) == [[3, 4]]
    assert contents(messages(store, reference)) == ["One", "1.", "Two", "2.", "Another"]


def test_the_first_prompt_may_be_taken_back(tmp_path):
    session = QwenChain(tmp_path)
    session.put("user", 1, text("One"))
    session.put("user", 2, text("Another"), parent=None)
    store, reference = session.write()

    assert store.abandoned(reference) == [[1, 1]]


def test_records_that_a_fork_copied_are_marked(tmp_path):
    origin = QwenChain(tmp_path, f"-home-p/chats/{OTHER}.jsonl")
    origin.put("user", 1, text("One"))
    origin.write()
    session = QwenChain(tmp_path)
    session.put("user", 1, text("One"), forkedFrom={"sessionId": OTHER, "messageUuid": "x"})
    session.put("user", 2, text("Two"))
    store, reference = session.write()

    assert shapes(messages(store, reference), "content", "replayed") == [("One", True), ("Two", None)]
    assert store.row(reference)["forked_from"] == {"session_id": OTHER, "kind": "fork"}


def test_a_sub_agent_in_a_file_of_its_own(tmp_path):
    parent = QwenChain(tmp_path)
    parent.put("user", 1, text("Look"))
    parent.write()
    agent = QwenChain(tmp_path, f"-home-p/subagents/{ID}/agent-a1.jsonl")
    agent.put("user", 2, text("Find it"), subtype="agent_launch_prompt", isSidechain=True)
    agent.put("assistant", 3, text("Found."), isSidechain=True)
    store, child = agent.write()
    [reference] = [s for s in store.sessions() if s.session_id == ID]

    assert shapes(messages(store, child), "authorship", "agent", "content") == [
        ("delegated", None, "Find it"),
        ("model", None, "Found."),
    ]
    assert (child.session_id, store.parent(child)) == ("agent-a1", ID)
    assert store.row(reference)["child_sessions"] == ["agent-a1"]
    assert store.resume(store.row(child)) == ["qwen", "--resume", ID]


def test_a_session_may_say_who_spawned_it(tmp_path):
    session = QwenChain(tmp_path)
    session.put("system", 1, subtype="parent_session", systemPayload={"parentSessionId": OTHER})
    session.put("user", 2, text("Look"))
    store, reference = session.write()

    assert store.parent(reference) == OTHER
    assert opened("qwen", store.root).parent(reference) == OTHER


def test_one_session_in_two_folders_is_its_longest_file(tmp_path):
    """Both under `chats`, in the folders of two projects; the path of the other resolves to the session."""
    for folder, number in (("-a", 1), ("-b", 2)):
        session = QwenChain(tmp_path, f"{folder}/chats/{ID}.jsonl")
        for count in range(number):
            session.put("user", count, text(f"Say {count}"))
        store, _ = session.write()
    [reference] = store.sessions()

    assert "/-b/" in reference.path
    assert [name for name in reference.names if "/-a/" in name]


def test_other_files_of_the_program_are_no_sessions(tmp_path):
    session = QwenChain(tmp_path)
    session.put("user", 1, text("Look"))
    store, _ = session.write()
    for path in (f"-home-p/chats/{ID}.runtime.json", "-home-p/memory/notes.jsonl", f"-home-p/subagents/{ID}/log.jsonl"):
        (session.root / path).parent.mkdir(parents=True, exist_ok=True)
        (session.root / path).write_bytes(orjson.dumps({"type": "user"}))

    assert len(opened("qwen", store.root).sessions()) == 1
