"""What Claude Code's records mean, on small transcripts of our own."""

import orjson
import pytest

from tests.stores.claude_transcripts import SESSION, Transcript, messages

OTHER = "00000000-0000-4000-8000-000000000002"
THIRD = "00000000-0000-4000-8000-000000000003"
COMMAND = (
    "<command-name>/greet</command-name>\n<command-message>greet</command-message>\n<command-args>Ada</command-args>"
)


@pytest.fixture
def transcript(tmp_path):
    return Transcript(tmp_path)


# -- who composed a text in the user role ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "marks",
    [
        {"origin": {"kind": "human"}, "promptSource": "typed"},
        {"origin": {"kind": "human"}},
        {"promptSource": "sdk", "turnOrigin": "sdk"},
        {"promptSource": "queued"},
        {"origin": None, "promptSource": None, "isMeta": False, "turnOrigin": "human"},
        {},
    ],
)
def test_a_prompt_is_human(transcript, marks):
    """A positive mark makes a prompt a person's, and in versions that write none, the absence of all others."""
    transcript.user("hello", **marks)
    [found] = transcript.read()

    assert (found["authorship"], found["class"], found["injected"]) == ("human", "human-text", False)


@pytest.mark.parametrize(
    "marks",
    [
        {"isMeta": True, "origin": {"kind": "human"}},
        {"isMeta": "yes"},
        {"isVisibleInTranscriptOnly": True},
        {"rowSource": "harness"},
        {"origin": {"kind": "task-notification"}, "promptSource": "system"},
        {"origin": {"kind": "something new"}, "promptSource": "typed"},
        {"origin": "human"},
        {"origin": {"kind": ["human"]}},
        {"promptSource": "something new"},
        {"promptSource": 1},
        {"promptSource": ["typed"]},
        {"turnOrigin": "something new"},
        {"turnOrigin": {}},
    ],
)
def test_an_unknown_mark_is_the_harness(transcript, marks):
    """A mark with a value that is not known never makes a text a person's."""
    transcript.user("hello", **marks)
    [found] = transcript.read()

    assert (found["authorship"], found["class"], found["injected"]) == ("injected", "injected-text", True)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (COMMAND, "command"),
        ("<command-message>greet</command-message>\n<command-name>/greet</command-name>", "command"),
        ("<bash-input>ls</bash-input>", "command"),
        ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", "command"),
        ("<local-command-stdout>Bye!</local-command-stdout>", "command"),
        ("<local-command-stderr>no</local-command-stderr>", "command"),
        ("<local-command-stdout>never closed", "command"),
        ("<task-notification>\n<task-id>1</task-id>", "injected-text"),
        ("<system-reminder>\nhello</system-reminder>", "injected-text"),
        ("<local-command-caveat>Caveat", "injected-text"),
        ("[Request interrupted by user]", "injected-text"),
        ("[Request interrupted by user for tool use]", "injected-text"),
    ],
)
def test_an_envelope_counts_where_there_is_no_mark(transcript, text, kind):
    """The fixed envelopes of older versions begin the record."""
    transcript.user(text)
    transcript.user([{"type": "text", "text": text}])
    for found in transcript.read():
        assert (found["authorship"], found["class"]) == ("injected", kind)


@pytest.mark.parametrize(
    "text",
    [
        f"Why is this in my file? {COMMAND}",
        "see <task-notification> in the docs",
        "What does [Request interrupted by user] mean?",
        "[Request interrupted by user] is what it said",
    ],
)
def test_quoting_an_envelope_is_human(transcript, text):
    """Words that a person merely quotes make nothing injected."""
    transcript.user(text)

    assert transcript.read()[0]["authorship"] == "human"


def test_a_command_is_no_prompt_even_with_a_persons_marks(transcript):
    """Commands that expand to a prompt carry a person's marks; a person who quotes one writes on after it."""
    transcript.typed(COMMAND)
    transcript.typed(f"{COMMAND} does not work, why?")
    transcript.typed("<task-notification> is a tag, what for?")

    assert [m["authorship"] for m in transcript.read()] == ["injected", "human", "human"]


def test_commands_of_newer_versions_are_like_those_of_older_ones(transcript):
    """A command that newer versions write as a system record is an injected record of the user role."""
    transcript.add("system", subtype="local_command", content=COMMAND)
    transcript.add("system", subtype="turn_duration", durationMs=1)
    [found] = transcript.read()

    assert (found["role"], found["injected"], found["class"], found["content"]) == ("user", True, "command", COMMAND)


def test_a_skills_body_is_a_skill(transcript):
    """The text that a skill call brings in is of class skill; other injected companions are not."""
    transcript.call("toolu_1", "Skill", {"skill": "house-style"})
    transcript.result("toolu_1", "Launching skill: house-style")
    transcript.user([{"type": "text", "text": "# House style"}], isMeta=True, sourceToolUseID="toolu_1")
    transcript.user([{"type": "text", "text": "a note"}], isMeta=True, sourceToolUseID="toolu_9")

    assert [m["class"] for m in transcript.read()] == ["tool-input", "skill", "skill", "injected-text"]


def test_queued_prompts(transcript):
    """A prompt typed while the model worked stands only in an attachment; what the harness queued is not a person's."""
    queued = {"type": "queued_command", "commandMode": "prompt"}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    transcript.add("attachment", attachment=queued | {"prompt": "one", "origin": {"kind": "human"}})
    transcript.add("attachment", attachment=queued | {"prompt": [{"type": "text", "text": "two"}, picture]})
    transcript.add("attachment", attachment=queued | {"prompt": "three", "commandMode": "task-notification"})
    transcript.add("attachment", attachment={"type": "file", "content": "not a message"})
    transcript.side("queue-operation", operation="enqueue", content="one")
    found = transcript.read()

    assert [m["content"] for m in found] == ["one", "two\n[image image/png 3 bytes]", "three"]
    assert [m["authorship"] for m in found] == ["human", "human", "injected"]


def test_a_paste_is_shown_without_its_tags(transcript):
    """The tags that the terminal puts round a pasted text are taken out of a prompt, and of nothing else."""
    pasted = 'see\n\n<pasted_content id="ecc4">\none\n  two\n</pasted_content id="ecc4">\n'
    transcript.typed(pasted)
    transcript.assistant(pasted)

    assert [m["content"] for m in transcript.read()] == ["see\n\none\n  two\n", pasted]


# -- messages, calls and results ---------------------------------------------------------------------------------


def test_a_line_with_several_results_gives_one_record_each(transcript):
    """Each result has an id and a reference of its own, and is found again by it."""
    for number in (1, 2, 3):
        transcript.call(f"toolu_{number}", ("Bash", "Read", "WebFetch")[number - 1])
    blocks = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"r{n}"} for n in (3, 1, 2)]
    transcript.user([*blocks, {"type": "text", "text": "and a word"}])
    store, session = transcript.write()
    found = messages(store, session)[3:]

    assert [(m["id"], m["role"], m["tool_name"], m["class"], m["content"]) for m in found] == [
        (4, "tool", "WebFetch", "web-fetch", "r3"),
        (5, "tool", "Bash", "tool-output", "r1"),
        (6, "tool", "Read", "file-read", "r2"),
        (7, "user", None, "human-text", "and a word"),
    ]
    for message in found:
        [again] = store.entry_at(session, message["ref"] | {"id": message["id"]}).messages
        assert (again["id"], again["content"]) == (message["id"], message["content"])


def test_a_line_with_several_blocks_is_one_record(transcript):
    """Clients that write a whole response on a line give one record with all of it."""
    transcript.assistant(
        [
            {"type": "thinking", "thinking": "first", "signature": "x"},
            {"type": "thinking", "thinking": "second", "signature": "y"},
            {"type": "text", "text": "one"},
            {"type": "text", "text": "two"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": "not parsed"},
        ]
    )
    [found] = transcript.read()

    assert (found["thinking"], found["content"], found["class"]) == ("first\nsecond", "one\ntwo", "model-text")
    assert found["tool_calls"] == [
        {"id": "toolu_1", "name": "Bash", "arguments": {"command": "ls"}},
        {"id": "toolu_2", "name": "Bash", "arguments": "not parsed"},
    ]


def test_thinking_that_is_not_shown(transcript):
    """A thinking block without its text is a record all the same, and no answer."""
    transcript.assistant([{"type": "thinking", "thinking": "", "signature": "x"}])
    transcript.assistant([{"type": "redacted_thinking", "data": "AAAA"}])
    store, session = transcript.write()

    assert [(m["thinking"], m["class"]) for m in messages(store, session)] == [
        (None, "reasoning"),
        ("[redacted thinking]", "reasoning"),
    ]
    assert store.row(session)["assistant_count"] == 0


def test_what_is_no_text_is_a_marker(transcript):
    """Images and files become a short marker, never base64."""
    data = {"type": "base64", "media_type": "application/pdf", "data": "A" * 400}
    transcript.call("toolu_1")
    transcript.result(
        "toolu_1",
        [
            {"type": "text", "text": "a page"},
            {"type": "document", "source": data},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "tool_reference", "tool_name": "WebFetch"},
        ],
    )

    assert transcript.read()[1]["content"].split("\n") == [
        "a page",
        "[document application/pdf 300 bytes]",
        "[image]",
        "[tool_reference WebFetch]",
    ]


def test_tools_that_the_provider_runs(transcript):
    """A call and result inside a response are a call and text of that record."""
    transcript.assistant(
        [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "quokka"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [{"type": "web_search_result", "title": "Quokka", "url": "https://example.org"}],
            },
        ]
    )
    [found] = transcript.read()

    assert found["tool_calls"][0]["name"] == "web_search"
    assert found["content"] == "[web_search_result Quokka https://example.org]"


def test_a_failed_request_is_no_answer(transcript):
    """What the program says of a failed request is there, but nothing that the model said; a partial answer is."""
    transcript.typed("hello")
    transcript.assistant("API Error: 400", isApiErrorMessage=True, held={"model": "<synthetic>"})
    transcript.assistant("Once upon a", isApiErrorMessage=False, held={"model": "<synthetic>"})
    store, session = transcript.write()
    found = messages(store, session)

    assert [(m["role"], m["authorship"]) for m in found[1:]] == [("system", "injected"), ("assistant", "model")]
    assert store.row(session)["assistant_count"] == 1
    assert "model" not in store.row(session)


def test_usage_grows_to_the_last_snapshot(transcript):
    """Records of one response repeat its usage, and early ones may hold less: the sum is the last, also interleaved."""

    def part(response, output, **more):
        usage = {"input_tokens": 7, "output_tokens": output, "cache_read_input_tokens": 5, **more}
        transcript.assistant("text", response, requestId="req_1", held={"usage": usage})

    part("msg_1", 1)
    part("msg_2", 9, output_tokens_details={"thinking_tokens": 4})
    part("msg_1", 166)
    part("msg_1", 166)
    found = [m.get("usage") for m in transcript.read()]

    assert found == [
        {"input": 7, "output": 1, "cache_read": 5, "cache_write": 0, "reasoning": 0},
        {"input": 7, "output": 9, "cache_read": 5, "cache_write": 0, "reasoning": 4},
        {"input": 0, "output": 165, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        None,
    ]


def test_own_tools_are_self(transcript):
    """Calls of total-recall's own tools, and what they gave back, are of class self."""
    transcript.call("toolu_1", "mcp__total-recall__extract_messages", {"session_id": "x"})
    transcript.result("toolu_1", "[]")

    assert [m["class"] for m in transcript.read()] == ["self", "self"]


def test_a_result_before_its_call_is_named(transcript):
    """Some versions write the result first; it names its tool all the same."""
    transcript.result("toolu_1", "it ran")
    transcript.call("toolu_1", "Read")
    transcript.result("toolu_2", "whose?")

    assert [m["tool_name"] for m in transcript.read()] == ["Read", None, None]


def test_each_record_with_text_is_an_answer(transcript):
    """Two text records of one response are two: the record is Claude Code's own message."""
    transcript.typed("hello")
    transcript.assistant("one", "msg_1")
    transcript.assistant("two", "msg_1")
    transcript.assistant("three", "msg_2")
    store, session = transcript.write()

    assert store.row(session)["assistant_count"] == 3


# -- records that stand twice ------------------------------------------------------------------------------------


def test_a_record_that_stands_twice_counts_once(transcript):
    """The same uuid again gives no message, close by or far away, but stays a line."""
    first = transcript.typed("hello")
    transcript.raw(transcript.lines[0])
    for number in range(60):
        transcript.assistant(f"answer {number} {'x' * 40000}")
    transcript.raw(transcript.lines[0].replace(b'"gitBranch":"main"', b'"gitBranch":"other"'))
    transcript.raw(transcript.lines[5])
    transcript.typed("bye", parent=first)
    store, session = transcript.write()
    found = messages(store, session)

    assert [m["content"][:9] for m in found] == ["hello", *(f"answer {n} "[:9] for n in range(60)), "bye"]
    assert [m["id"] for m in found] == list(range(1, 63))
    assert store.row(session)["line_count"] == len(transcript.lines)
    assert store.row(session)["user_count"] == 2
    kinds = [entry.raw_type() for entry in store.entries(session, {}) if not entry.messages]
    assert kinds == ["user", "user", "assistant"]


def test_history_written_again_counts_once(transcript):
    """A compaction that writes all records again, with their uuids and times, adds none of them."""
    for number in range(300):
        transcript.typed(f"prompt {number}")
        transcript.assistant(f"answer {number} {'x' * 8000}")
    for line in list(transcript.lines):
        transcript.raw(line)

    assert len(transcript.read()) == 600


def test_a_late_record_with_an_old_time_is_no_copy(transcript):
    """Records with a time before the newest, or none, are all there when their uuids are new."""
    for number in range(100):
        transcript.typed(f"prompt {number}", timestamp="2026-11-30T20:00:00.000Z" if number % 2 else None)
        transcript.assistant("x" * 30000)

    assert len(transcript.read()) == 200


# -- compaction --------------------------------------------------------------------------------------------------


def boundary(transcript, **data):
    last = transcript.last
    return transcript.add(
        "system",
        parent=None,
        logicalParentUuid=last,
        subtype="compact_boundary",
        content="Conversation compacted",
        compactMetadata={"trigger": "auto", "preTokens": 1000} | data,
    )


def test_a_compaction_is_one_record(transcript):
    """Boundary and summary are one record, also with attachments in between."""
    transcript.typed("hello")
    boundary(transcript)
    transcript.add("attachment", attachment={"type": "date"})
    transcript.user("the summary", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    transcript.typed("bye")
    found = transcript.read()

    assert [m["content"] for m in found] == ["hello", "the summary", "bye"]
    assert (found[1]["role"], found[1]["authorship"], found[1]["injected"]) == ("system", "injected", False)
    assert (found[1]["trigger"], found[1]["tokens_before"]) == ("auto", 1000)


def test_what_a_compaction_keeps_in_sight(transcript):
    """Since the last compaction begins with the records that the model still sees beside the summary."""
    transcript.typed("gone")
    transcript.assistant("gone too")
    kept = [transcript.typed("kept"), transcript.assistant("kept too")]
    boundary(transcript, preservedMessages={"uuids": kept})
    transcript.user("the summary", isCompactSummary=True)
    transcript.typed("bye")
    store, session = transcript.write()

    assert [m["content"] for m in store.since_compaction(session)] == ["kept", "kept too", "the summary", "bye"]


def test_a_boundary_without_a_summary(transcript):
    """It is a compaction without a text, before what comes next."""
    transcript.typed("hello")
    boundary(transcript)
    transcript.add("attachment", attachment={"type": "date"})
    transcript.typed("bye")
    store, session = transcript.write()
    found = messages(store, session)

    assert [(m["class"], m["content"]) for m in found] == [
        ("human-text", "hello"),
        ("compaction", ""),
        ("human-text", "bye"),
    ]
    assert store.row(session)["has_compaction"]
    [again] = store.entry_at(session, found[1]["ref"] | {"id": 2}).messages
    assert (again["id"], again["class"], again["ts"]) == (2, "compaction", found[1]["ts"])


def test_a_boundary_at_the_end(transcript):
    """Its summary may still come: it is shown without one, and keeps its id when it has come."""
    transcript.typed("hello")
    boundary(transcript)
    transcript.side("mode", mode="normal")
    store, session = transcript.write()
    state = {}
    waiting = list(store.messages(session, state, whole=True))
    shown = messages(store, session)
    transcript.user("the summary", isCompactSummary=True)
    store, session = transcript.write()

    assert [(m["id"], m["content"]) for m in waiting] == [(1, "hello")]
    assert [(m["id"], m["class"], m["content"]) for m in shown[1:]] == [(2, "compaction", "")]
    assert [(m["id"], m["content"]) for m in store.messages(session, state, whole=True)] == [(2, "the summary")]
    assert [(m["id"], m["content"]) for m in messages(store, session)] == [(1, "hello"), (2, "the summary")]


# -- forks and resumed copies --------------------------------------------------------------------------------------


def forked(origin, session_id, upto):
    """A fork as the program writes it: the first lines of the origin with the session id rewritten."""
    fork = Transcript(origin.root, session_id)
    fork.side("queue-operation", operation="enqueue", timestamp=f"2026-11-30T21:{session_id[-2:]}:00.000Z")
    fork.lines += [line.replace(origin.session_id.encode(), session_id.encode()) for line in origin.lines[:upto]]
    fork.count = 3000
    return fork


def test_a_forks_copies_are_replayed(transcript):
    """Records that a fork copied are marked and counted in the origin only."""
    for number in range(3):
        transcript.typed(f"prompt {number}")
        transcript.assistant(f"answer {number}")
    fork = forked(transcript, OTHER, 4)
    fork.typed("another way")
    fork.assistant("so be it")
    store, origin = transcript.write()
    _, session = fork.write()
    row = store.row(session)

    assert [m.get("replayed") for m in messages(store, session)] == [True] * 4 + [None] * 2
    assert (row["user_count"], row["assistant_count"]) == (1, 1)
    assert row["forked_from"] == {"session_id": SESSION, "kind": "fork"}
    assert row["parent_session_id"] is None
    assert not any(m.get("replayed") for m in messages(store, origin))
    assert "forked_from" not in store.row(origin)


def test_a_fork_of_a_fork(transcript):
    """Its origin is the session that its last copied record belongs to."""
    transcript.typed("prompt")
    fork = forked(transcript, OTHER, 1)
    fork.typed("of the fork")
    third = forked(fork, THIRD, 0)
    third.lines += [line.replace(OTHER.encode(), THIRD.encode()) for line in fork.lines[1:]]
    third.typed("of the third")
    transcript.write()
    fork.write()
    store, session = third.write()

    assert [m.get("replayed") for m in messages(store, session)] == [True, True, None]
    assert store.row(session)["forked_from"]["session_id"] == OTHER
    assert store.row(session)["user_count"] == 1


def test_a_fork_that_says_so(transcript):
    """The harness's own mark is enough, also when the origin is gone."""
    transcript.typed("prompt", forkedFrom={"sessionId": OTHER, "messageUuid": "x"})
    transcript.typed("own")
    store, session = transcript.write()

    assert [m.get("replayed") for m in messages(store, session)] == [True, None]
    assert store.row(session)["forked_from"] == {"session_id": OTHER, "kind": "fork"}


def resumed(tmp_path):
    """A session of 1.0 and its resumed copy, with new uuids and times."""
    origin = Transcript(tmp_path, SESSION, version="1.0.51")
    origin.user("yes")
    origin.assistant("really?", "msg_a")
    origin.add("user", message={"content": "look"}, isSidechain=True, parent=None)
    origin.user("go on")
    origin.assistant("done", "msg_b")
    copy = Transcript(tmp_path, OTHER, version="1.0.51")
    copy.count = 600
    copy.user([{"type": "text", "text": "yes"}])
    copy.assistant("really?", "msg_a")
    copy.user("go on")
    copy.assistant("done", "msg_b")
    return origin, copy


def test_a_resumed_copy_is_replayed(tmp_path):
    """What 1.x copied under new uuids is known by position, texts and response ids; a repeated word is new."""
    origin, copy = resumed(tmp_path)
    copy.user("yes")
    copy.assistant("again?", "msg_c")
    origin.write()
    store, session = copy.write()

    assert [m.get("replayed") for m in messages(store, session)] == [True] * 4 + [None] * 2
    assert store.row(session)["forked_from"] == {"session_id": SESSION, "kind": "resume"}
    assert store.row(session)["user_count"] == 1


def test_strangers_are_not_compared(transcript, monkeypatch):
    """Sessions that do not begin alike are no copies, and are not read for it."""
    other = Transcript(transcript.root, OTHER)
    other.typed("prompt", timestamp="2026-11-30T19:00:00.000Z")
    for number in range(2000):
        other.assistant(f"answer {number} {'x' * 1000}")
    other.write()
    transcript.typed("prompt")
    store, session = transcript.write()
    monkeypatch.setattr("total_recall.stores._claude_copies.open_regular", None)
    monkeypatch.setattr("total_recall.stores._claude_copies.Lines", None)

    assert [m.get("replayed") for m in messages(store, session)] == [None]


# -- titles --------------------------------------------------------------------------------------------------------


def test_the_order_of_titles(transcript):
    """A given name, else the one kept beside the transcript, else the generated one, else the first prompt."""
    transcript.typed("the prompt\nand more")
    store, session = transcript.write()
    assert store.row(session)["title"] == "the prompt"

    transcript.side("ai-title", aiTitle="generated")
    transcript.side("ai-title", aiTitle="generated later")
    transcript.side("ai-title", aiTitle=" ")
    store, session = transcript.write()
    assert store.row(session)["title"] == "generated later"

    beside = transcript.path.with_suffix("") / "custom-title.json"
    beside.parent.mkdir()
    beside.write_text('{"customTitle":"kept beside","by":"user"}')
    assert store.row(session)["title"] == "kept beside"

    transcript.side("custom-title", customTitle="given")
    transcript.side("custom-title", customTitle="given later")
    store, session = transcript.write()
    assert store.row(session)["title"] == "given later"


@pytest.mark.parametrize("kept", ["", "{", "[1]", '{"customTitle":7}', "{}"])
def test_a_damaged_title_file(transcript, kept):
    """It is as if there were none."""
    transcript.typed("the prompt")
    store, session = transcript.write()
    transcript.path.with_suffix("").mkdir()
    (transcript.path.with_suffix("") / "custom-title.json").write_text(kept)

    assert store.row(session)["title"] == "the prompt"


def test_summaries_are_about_other_sessions(transcript):
    """A summary titles the session that holds its record; the last such record wins; strangers get nothing."""
    first = transcript.typed("first")
    last = transcript.assistant("last")
    transcript.write()
    writer = Transcript(transcript.root, OTHER, version="1.0.128")
    writer.lines = [
        orjson.dumps({"type": "summary", "summary": title, "leafUuid": leaf})
        for title, leaf in (("about the last", last), ("about the first", first), ("about nobody", "x"))
    ]
    writer.typed("in the old program", uuid="11111111-0000-4000-8000-000000000000")
    store, _ = writer.write()
    titles = {session.session_id: store.row(session)["title"] for session in store.sessions()}

    assert titles == {SESSION: "about the last", OTHER: "in the old program"}


# -- rewinds -------------------------------------------------------------------------------------------------------


def texts_left(transcript):
    store, session = transcript.write()
    left = store.abandoned(session)
    return [m["content"] for m in messages(store, session) if any(a <= m["id"] <= b for a, b in left)]


def test_a_rewind_leaves_a_branch(transcript):
    """What was typed and answered before the rewind is left, all of it."""
    transcript.typed("one")
    place = transcript.assistant("two")
    transcript.typed("wrong")
    transcript.call("toolu_1")
    transcript.result("toolu_1", "wrong too")
    transcript.typed("right", parent=place)
    transcript.assistant("yes")

    assert texts_left(transcript) == ["wrong", "", "wrong too"]


def test_a_rewind_before_the_next_prompt(transcript):
    """The program's own mark says where the conversation goes on."""
    transcript.typed("one")
    place = transcript.assistant("two")
    transcript.typed("wrong")
    transcript.side("last-prompt", leafUuid=place, explicit=True)

    assert texts_left(transcript) == ["wrong"]


def test_a_broken_chain_abandons_nothing(transcript):
    """A missing parent, a circle, a parent of a wrong type or a new root leave all that stands before."""
    first = transcript.typed("one")
    transcript.assistant("two", parent="gone")
    transcript.typed("three", parent=7)
    transcript.typed("four", parent=None)
    transcript.typed("five", uuid="circle", parent="circle")
    transcript.typed("six", uuid="a", parent="b")
    transcript.typed("seven", uuid="b", parent="a")
    transcript.typed("eight")

    assert first
    assert texts_left(transcript) == []


def test_parallel_calls_are_no_branch(transcript):
    """Each result hangs on its own call; only one of them leads on."""
    transcript.typed("one")
    first = transcript.call("toolu_1", response="msg_1")
    transcript.call("toolu_2", response="msg_1")
    transcript.result("toolu_2", "second")
    last = transcript.last
    transcript.result("toolu_1", "first", parent=first)
    transcript.assistant("done", parent=last)

    assert texts_left(transcript) == []


# -- the rest ------------------------------------------------------------------------------------------------------


def test_the_directory_moves_on(transcript):
    """The row's directory is the first; all are known."""
    transcript.typed("one")
    transcript.assistant("two", cwd="/home/someone/p/sub")
    store, session = transcript.write()

    assert store.row(session)["directory"] == "/home/someone/p"
    assert store.describe(session, store.facts(session))["directories"] == ["/home/someone/p", "/home/someone/p/sub"]


def test_the_command_that_reopens_a_session(transcript):
    """A sub-agent is reopened with its session."""
    transcript.typed("one")
    store, _ = transcript.write()

    assert store.resume({"session_id": SESSION}) == ["claude", "--resume", SESSION]
    assert store.resume({"session_id": "agent-1", "parent_session_id": SESSION}) == ["claude", "--resume", SESSION]


def test_a_grown_session_is_read_on(transcript):
    """What was learned of the first part stays, and the counts are those of a read from the beginning."""
    transcript.typed("one")
    transcript.call("toolu_1", "Read")
    store, session = transcript.write()
    store.row(session)
    transcript.result("toolu_1", "text")
    transcript.assistant("two")
    fresh, again = transcript.write()

    assert store.row(again) == fresh.row(again)
    assert store.row(again)["assistant_count"] == 1
