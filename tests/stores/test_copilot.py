"""GitHub Copilot CLI: its real store against what is known to be in it, and what that one does not show."""

import os

import orjson
import pytest
from total_recall.notices import Notices
from total_recall.questions import pairs
from total_recall.todos import events

from tests.stores.rich_transcripts import ID, copilot, event
from tests.stores.transcripts import Session, contents, messages, moment, opened, real, shapes

SESSION = "6a993b45-8751-48dd-85f2-5b6eca4149fb"
OTHER = "22222222-2222-4222-8222-222222222222"


@pytest.fixture(scope="module")
def delta():
    store = real("copilot")
    [session] = store.sessions()
    return store, session, messages(store, session)


def start(folder, id=ID, path=None, number=0, **more):
    session = Session("copilot", folder, path or f"{id}/events.jsonl")
    return session.add(event(number, "session.start", sessionId=id, startTime=moment(number), **more))


def prompt(number, text, **more):
    return event(number, "user.message", content=text, **more)


def said(number, text="", **more):
    return event(number, "assistant.message", content=text, messageId=f"m{number}", **more)


def call(id, name, arguments):
    return {"toolCallId": id, "name": name, "arguments": arguments}


# -- the real store ------------------------------------------------------------------------------------------------


def test_the_real_conversation(delta):
    """Prompts as they were typed, without what the program put around them."""
    _, _, found = delta

    assert [m["content"] for m in found if m["role"] == "user"] == [
        "Copilot: make a note, please.",
        "Copilot: and what now?",
    ]
    assert [m["content"] for m in found if m["role"] == "assistant" and m["content"]] == [
        "I will write the note.",
        "The note is written. Copilot needle: tapirville. Emoji 🦒 and 漢字.",
        "Nothing is left to do.",
    ]
    assert [m["thinking"] for m in found if m["thinking"]] == ["A small file is enough."]
    [prompt] = [m["content"] for m in found if m["role"] == "system"]
    assert prompt.startswith("You are the GitHub Copilot CLI")


def test_real_calls_and_their_results(delta):
    """Whether a call failed is what the event says, whatever a shell's exit status."""
    _, _, found = delta
    calls = [call for m in found for call in m["tool_calls"]]
    results = [m for m in found if m["role"] == "tool"]

    assert [call["name"] for call in calls] == ["create", "bash", "view"]
    assert [(m["tool_call_id"], m["tool_name"]) for m in results] == [(call["id"], call["name"]) for call in calls]
    assert [m["is_error"] for m in results] == [False, False, True]
    assert "exit code 3" in results[1]["content"]
    assert results[2]["content"] == "Path does not exist"


def test_real_usage_is_counted_once_a_response(delta):
    _, _, found = delta
    used = [m["usage"] for m in found if m.get("usage")]

    assert len(used) == 5
    assert sum(each["input"] + each["cache_read"] + each["cache_write"] for each in used) == 32_326
    assert sum(each["output"] for each in used) == 126


def test_the_real_row(delta):
    store, session, _ = delta
    row = store.row(session)

    assert (row["session_id"], row["directory"], row["git_branch"]) == (SESSION, "/home/dev/projects/delta", "master")
    assert (row["user_count"], row["assistant_count"], row["tool_count"]) == (2, 3, 3)
    assert (row["title"], row["model"], row["origin"]) == ("Copilot: make a note, please.", "gpt-5", "cli")
    assert store.resume(row) == ["copilot", "--resume", SESSION]


# -- events --------------------------------------------------------------------------------------------------------


def test_every_kind_of_event(tmp_path):
    """Who said what: the program, skills, sub-agents and commands of the person are told apart from typed prompts."""
    found = messages(*copilot(tmp_path).write())

    assert shapes(found, "class", "authorship", "agent", "content") == [
        ("human-text", "human", None, "Look, please\n[file /x]"),
        ("injected-text", "injected", None, "You are a program"),
        ("model-text", "model", None, "I look."),
        ("tool-output", "tool", None, "a file"),
        ("file-read", "tool", None, "not there"),
        ("tool-output", "tool", None, "ok"),
        ("skill", "injected", None, "A skill speaks"),
        ("skill", "injected", None, "How to read PDF"),
        ("injected-text", "injected", None, "A shell ended"),
        ("command", "injected", None, "git status"),
        ("command", "injected", None, "clean"),
        ("delegated-text", "delegated", "sidechain", "Find it"),
        ("model-text", "model", "sidechain", "Found."),
        ("injected-text", "injected", None, "The quota is used up"),
        ("compaction", "injected", None, "What was done"),
        ("model-text", "model", None, "Done."),
    ]
    assert found[2]["usage"] == {"input": 58, "output": 10, "cache_read": 40, "cache_write": 2, "reasoning": 0}
    assert found[2]["tool_calls"][1]["arguments"] == {"path": "/x"}
    assert (found[14]["trigger"], found[14]["tokens_before"]) == ("auto", 900)


@pytest.mark.parametrize(
    ("marks", "authorship"),
    [
        ({}, "human"),
        ({"source": "user"}, "human"),
        ({"source": "system"}, "injected"),
        ({"source": "skill-pdf"}, "injected"),
        ({"source": 7}, "injected"),
        ({"isAutopilotContinuation": True}, "injected"),
        ({"inputOrigin": "remote"}, "injected"),
        ({"parentToolCallId": "k"}, "delegated"),
    ],
)
def test_who_wrote_a_user_message(tmp_path, marks, authorship):
    assert shapes(start(tmp_path).add(prompt(1, "Look", **marks)).read(), "authorship", "content") == [
        (authorship, "Look")
    ]


def test_attachments_are_markers(tmp_path):
    session = start(tmp_path).add(
        prompt(
            1,
            "Look",
            attachments=[
                {"type": "directory", "path": "/d"},
                {"type": "blob", "mimeType": "image/png", "data": "aGk="},
            ],
            imageAttachments=[{"mimeType": "image/jpeg", "data": "aGk="}, 7],
        )
    )

    assert contents(session.read()) == ["Look\n[directory /d]\n[image image/png 2 bytes]\n[image image/jpeg 2 bytes]"]


def test_the_checklist_is_a_todo_list(tmp_path):
    """`update_todo` gives it as a Markdown text; a list whose call failed does not count."""
    session = start(tmp_path).add(prompt(1, "Look"))
    lists = ("- [ ] Look\n- [ ] Tell", "# Plan\n* [x] Look\n  - [~] Tell\n- Rest", "- [x] All")
    for number, todos in enumerate(lists):
        session.add(
            said(number, toolRequests=[call(f"k{number}", "update_todo", {"todos": todos})]),
            event(number, "tool.execution_complete", toolCallId=f"k{number}", success=number < 2),
        )

    assert [(e["action"], e["todo"]) for e in events(session.read(), "copilot", Notices())] == [
        ("added", "Look"),
        ("added", "Tell"),
        ("completed", "Look"),
        ("in_progress", "Tell"),
    ]


def test_an_answered_question(tmp_path):
    session = start(tmp_path)
    for number, text in enumerate(("User selected: Red", "User responded: none")):
        arguments = {"question": "Which?", "choices": ["Red", "Blue"]}
        session.add(
            said(number, toolRequests=[call(f"k{number}", "ask_user", arguments)]),
            event(number, "tool.execution_complete", toolCallId=f"k{number}", success=True, result={"content": text}),
        )

    found = [(pair["question"], pair["answers"]) for pair in pairs(session.read())]
    assert found == [("Which?", ["Red"]), ("Which?", ["none"])]


def test_thinking_stands_once(tmp_path):
    """As an event of its own, and again in the message; streamed pieces are not kept."""
    session = start(tmp_path).add(
        event(1, "assistant.reasoning", content="Hm", reasoningId="r"),
        said(1, "Well.", reasoningText="Hm"),
        said(2, "Then.", reasoningText="Aha"),
        event(3, "assistant.reasoning", content="Streamed") | {"ephemeral": True},
    )

    assert shapes(session.read(), "thinking", "content") == [("Hm", ""), (None, "Well."), ("Aha", "Then.")]


def test_usage_goes_to_the_message_of_its_response(tmp_path):
    """By the response's id; without it the message's own number counts."""

    def used(id, output):
        return event(1, "session.usage_record", usage={"apiCallId": id, "inputTokens": 5, "outputTokens": output})

    session = start(tmp_path).add(
        used("a", 1),
        used("b", 2),
        said(1, "B", apiCallId="b"),
        said(2, "A", apiCallId="a"),
        said(3, "C", outputTokens=3),
    )

    assert [m["usage"]["output"] for m in session.read()] == [2, 1, 3]


def test_a_call_that_no_message_requested_is_told_where_it_starts(tmp_path):
    start_of = {"toolCallId": "k1", "toolName": "bash", "arguments": {"command": "ls"}}
    session = start(tmp_path).add(
        event(1, "tool.execution_start", **start_of),
        event(2, "tool.execution_complete", toolCallId="k1", success=True, result={"content": "a"}),
    )

    assert shapes(session.read(), "role", "tool_name", "content") == [("assistant", None, ""), ("tool", "bash", "a")]


@pytest.mark.parametrize(
    ("held", "text"),
    [
        ({"result": {"content": "short", "detailedContent": "long"}}, "short"),
        ({"result": {"detailedContent": "long"}}, "long"),
        (
            {"result": {"contents": [{"type": "text", "text": "a"}, {"type": "image", "data": "aGk="}]}},
            "a\n[image 2 bytes]",
        ),
        ({"error": {"message": "no"}}, "no"),
        ({}, ""),
    ],
)
def test_what_a_result_says(tmp_path, held, text):
    session = start(tmp_path).add(event(1, "tool.execution_complete", toolCallId="k", success=True, **held))

    assert contents(session.read()) == [text]


def test_a_compaction_that_failed_is_none(tmp_path):
    """What starts one is not its summary either."""
    session = start(tmp_path).add(
        prompt(1, "Look"),
        event(2, "session.compaction_start"),
        event(3, "session.compaction_complete", success=False, error="no"),
    )
    store, reference = session.write()

    assert contents(messages(store, reference)) == ["Look"]
    assert store.row(reference)["has_compaction"] is False


def test_where_it_was_and_on_which_model(tmp_path):
    """The first directory is the session's; the branch and the model are the last ones."""
    session = start(tmp_path, selectedModel="one", context={"cwd": "/a", "branch": "main"}).add(
        prompt(1, "Look"),
        event(2, "session.context_changed", cwd="/b", branch="other"),
        event(3, "session.resume", context={"cwd": "/a"}),
        event(4, "session.model_change", newModel="two"),
    )
    store, reference = session.write()
    row = store.row(reference)

    assert (row["directory"], row["git_branch"], row["model"]) == ("/a", "other", "two")
    assert store.directories(reference) == ["/a", "/b"]


# -- what stands beside the log ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("name: A plain one\n", "A plain one"),
        ("summary: Summed up\n", "Summed up"),
        ("name: Named\nsummary: Summed up\n", "Named"),
        ("name: 'It''s here'\n", "It's here"),
        ('name: "Tab\\there \\u00e9"\n', "Tab here é"),
        ('name: "bad \\x41"\n', "bad"),
        ("name: |-\n  First line\n  second\n", "First line"),
        ("summary: >\n\n  Folded\n", "Folded"),
        ("name: null\nsummary: ~\n", "Look"),
        ("name:\n", "Look"),
        ("other:\n  name: inside\n", "Look"),
        ("\x00\xff: [", "Look"),
        ("", "Look"),
    ],
)
def test_the_title_stands_in_a_small_file_of_yaml(tmp_path, text, title):
    """Without one the first prompt is the title."""
    session = start(tmp_path).add(prompt(1, "Look"))
    store, reference = session.write()
    (session.path.parent / "workspace.yaml").write_text(text, "latin-1")

    assert store.row(reference)["title"].strip() == title


def test_a_row_follows_its_title(tmp_path):
    session = start(tmp_path).add(prompt(1, "Look"))
    store, reference = session.write()
    before = store.surroundings(reference)
    (session.path.parent / "workspace.yaml").write_text("name: Later\ncwd: /home/y\nclient_name: vscode-chat\n")

    assert store.surroundings(reference) != before
    row = opened("copilot", store.root).row(reference)
    assert (row["title"], row["directory"], row["origin"]) == ("Later", "/home/y", "ide")


# -- forks ---------------------------------------------------------------------------------------------------------


def test_what_a_fork_copied_is_marked(tmp_path):
    """It begins with the other session's events, under the same ids and times, behind a start of its own."""
    copied = [prompt(1, "One"), said(2, "1.")]
    start(tmp_path, OTHER).add(*copied, prompt(20, "Another")).write()
    fork = start(tmp_path, number=9).add(*copied, prompt(10, "Two"))
    store, reference = fork.write()
    origin = next(s for s in store.sessions() if s.session_id == OTHER)

    assert shapes(messages(store, reference), "content", "replayed") == [("One", True), ("1.", True), ("Two", None)]
    assert store.row(reference)["forked_from"] == {"session_id": OTHER, "kind": "fork"}
    assert store.row(origin).get("forked_from") is None
    assert not any(m.get("replayed") for m in messages(store, origin))
    state = {}
    next(store.entries(reference, state))
    assert [m.get("replayed") for m in messages(store, reference, state)] == [True, True, None]


def test_old_events_alone_are_no_fork(tmp_path):
    """Without the other session nothing says whose they are."""
    store, reference = start(tmp_path, number=9).add(prompt(1, "One")).write()

    assert not messages(store, reference)[0].get("replayed")
    assert store.row(reference).get("forked_from") is None


# -- files ---------------------------------------------------------------------------------------------------------


def timeline(folder, *entries, id=ID):
    path = folder / f".copilot/history-session-state/session_{id}_1764532800000.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        orjson.dumps({"sessionId": id, "startTime": moment(0), "chatMessages": [7], "timeline": list(entries)})
    )
    return opened("copilot", folder / ".copilot/session-state")


def test_a_session_before_there_were_events(tmp_path):
    """One document with what was on the screen."""
    store = timeline(
        tmp_path,
        {"type": "user", "text": "Look", "timestamp": moment(1), "imageAttachments": []},
        {"type": "copilot", "text": "I look.", "timestamp": moment(2)},
        {"type": "tool_call_requested", "id": "t1", "callId": "k1", "name": "bash", "arguments": {"command": "ls"}},
        {
            "type": "tool_call_completed",
            "id": "t1",
            "callId": "k1",
            "name": "bash",
            "result": {"type": "failure", "log": "no"},
        },
        {"type": "info", "text": "Hello", "timestamp": moment(3)},
        {"type": "of a later version", "text": "?"},
    )
    [session] = store.sessions()
    found = messages(store, session)

    assert store.exists()
    assert session.session_id == ID
    assert shapes(found, "role", "authorship", "content", "is_error") == [
        ("user", "human", "Look", None),
        ("assistant", "model", "I look.", None),
        ("assistant", "model", "", None),
        ("tool", "tool", "no", True),
        ("system", "injected", "Hello", None),
    ]
    row = store.row(session)
    assert (row["title"], row["user_count"], row["start_time"]) == ("Look", 1, moment(0))
    for message in found:
        [again] = store.entry_at(session, message["ref"] | {"id": message["id"]}).messages
        assert again["content"] == message["content"]


def test_the_folder_around_the_sessions_is_a_root_too(tmp_path):
    store, session = start(tmp_path).add(prompt(1, "Look")).write()
    around = opened("copilot", tmp_path / ".copilot")

    assert (around.root, around.place.shadow) == (store.root, str(tmp_path / ".copilot/.tantivy"))
    assert around.sessions() == [session]


def test_a_log_without_a_folder(tmp_path):
    store, session = start(tmp_path, path=f"{ID}.jsonl").add(prompt(1, "Look")).write()

    assert session.session_id == ID
    assert contents(messages(store, session)) == ["Look"]


def test_a_session_in_several_forms_is_its_newest(tmp_path):
    """Resuming made the newer form of the older one; the other names resolve."""
    timeline(tmp_path, {"type": "user", "text": "oldest"})
    start(tmp_path, path=f"{ID}.jsonl").add(prompt(1, "older, and longer than the newest")).write()
    start(tmp_path).add(prompt(1, "newest")).write()
    store = opened("copilot", tmp_path / ".copilot/session-state")
    [session] = store.sessions()

    assert contents(messages(store, session)) == ["newest"]
    assert session.names == (f"session_{ID}_1764532800000",)


def test_the_database_is_no_source(tmp_path):
    """It is an index that the program makes of the logs, and may be torn or gone."""
    session = start(tmp_path).add(prompt(1, "Look"))
    store, _ = session.write()
    (session.root.parent / "session-store.db").write_bytes(b"no database")
    (session.root / "no-log").mkdir()
    (session.root / ".hidden").mkdir()

    assert [s.session_id for s in store.sessions()] == [ID]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_entered_is_a_session_that_cannot_be_read(tmp_path):
    session = start(tmp_path).add(prompt(1, "Look"))
    store, _ = session.write()
    session.path.parent.chmod(0)
    try:
        [reference] = store.sessions()
        assert store.row(reference)["read_error"]
    finally:
        session.path.parent.chmod(0o700)


def test_what_the_log_is_may_be_a_circle_of_links(tmp_path):
    """That is a log that cannot be read, which is said."""
    session = start(tmp_path)
    session.path.parent.mkdir(parents=True)
    session.path.symlink_to(session.path)
    store = opened("copilot", session.root)
    [reference] = store.sessions()

    assert store.row(reference)["read_error"]
