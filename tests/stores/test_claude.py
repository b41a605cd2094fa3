"""Claude Code's real transcripts, each against what is known to be in it."""

from collections import Counter

import orjson
import pytest
from total_recall.stores._jsonl import parse

from tests.stores.claude_transcripts import FIXTURES, messages, real, session_of, transcripts

pytestmark = pytest.mark.parametrize(("name", "file"), transcripts(), ids=lambda value: value[-46:-6])

ONE_SUMMARY_WITHOUT_BOUNDARY = "132262bd-16fc-48a6-afe1-c4044b2958a0"


@pytest.fixture
def store(name):
    return real(name)[0]


@pytest.fixture
def truth(name, file):
    return real(name)[1][file]


@pytest.fixture
def session(store, file):
    return session_of(store, file)


@pytest.fixture
def records(name, file):
    """The stored records, read without the adapter."""
    lines = (FIXTURES / name / ".claude" / "projects" / file).read_bytes().split(b"\n")
    return [parse(line) for line in lines if line]


def shown(prompt):
    for tag in ('<pasted_content id="ecc4">\n', '</pasted_content id="ecc4">\n'):
        prompt = prompt.replace(tag, "")
    return prompt.replace("[image]", "[image image/png 70 bytes]")


def is_agent(session):
    return session.session_id.startswith("agent-")


def test_prompts_are_verbatim_and_in_order(store, session, truth):
    """What a person typed is there to the letter, queued prompts too, and nothing else counts as typed."""
    human = [m["content"] for m in messages(store, session) if m["authorship"] == "human"]

    assert [text for text in human if text not in truth["queued_prompts"]] == list(map(shown, truth["typed_prompts"]))
    assert [text for text in human if text in truth["queued_prompts"]] == truth["queued_prompts"]


def test_the_rest_of_the_user_role_is_injected(store, session, truth):
    """Commands, their output, interrupts, reminders and summaries are not the person's, and none is lost."""
    injected = Counter()
    for message in messages(store, session):
        text = message["content"].lstrip()
        if message["injected"]:
            assert message["authorship"] == "injected"
            kind = text[1 : text.index(">")] if text.startswith("<") else ""
            injected[kind if message["class"] == "command" else message["class"]] += 1
            injected["interrupt"] += text.startswith("[Request interrupted by user")
    known = truth["injected_user_lines"]
    commands = injected["command-name"] + injected["command-message"]

    assert injected["interrupt"] == known.get("interrupt marker", 0) == truth["interrupts"]
    assert injected["bash-input"] == len(truth["bang_commands"])
    assert injected["bash-stdout"] == known.get("<bash-stdout>", 0)
    assert commands == len(truth["slash_commands"])
    assert injected["injected-text"] + injected["skill"] == (
        known.get("isMeta", 0) + known.get("interrupt marker", 0) + known.get("<task-notification>", 0)
    )


def test_delegated_prompts(store, session, truth):
    """The prompts of sub-agents are the other agent's, in files of their own and inline."""
    delegated = [m for m in messages(store, session) if m["authorship"] == "delegated"]

    assert len(delegated) == truth["injected_user_lines"].get("sidechain prompt", 0)
    assert all(m["role"] == "user" and m["class"] == "delegated-text" and not m["injected"] for m in delegated)
    assert all(("agent" in m) != is_agent(session) for m in delegated)


def test_thinking(store, session, truth):
    """Every thinking text is a record's thinking."""
    found = [m for m in messages(store, session) if m["thinking"]]

    assert [m["thinking"] for m in found] == truth["thinking"]
    assert all(m["class"] == "reasoning" and m["content"] == "" for m in found)


def test_texts_and_api_errors(store, session, truth):
    """Every text of the model is there; what the program says of a failed request is no answer of the model."""
    found = messages(store, session)
    answers = [m for m in found if m["role"] == "assistant" and m["content"]]
    errors = [m for m in found if m["role"] == "system" and m["class"] == "injected-text"]

    assert len(errors) == truth["api_error_messages"]
    assert all(m["content"].startswith("API Error") for m in errors)
    assert len(answers) == truth["assistant_text_blocks"] - len(errors)
    assert all(m["class"] == "model-text" for m in answers)


def test_tool_calls_and_results(store, session, truth):
    """Calls are there with their arguments, results name their tool and say whether they failed."""
    found = messages(store, session)
    calls = [call for m in found for call in m["tool_calls"]]
    results = [m for m in found if m["role"] == "tool"]
    named = {call["id"]: call["name"] for call in calls}

    assert Counter(call["name"] for call in calls) == truth["tool_calls"]
    assert all(isinstance(call["arguments"], dict) for call in calls)
    assert sum(m["is_error"] for m in results) == truth["tool_results_with_error"]
    assert all(m["is_error"] in (True, False) for m in results)
    assert [m["tool_name"] for m in results] == [named[m["tool_call_id"]] for m in results]


def test_todos_questions_and_git_are_within_reach(store, session, truth):
    """What todo, question and git events are made from stands in arguments and structured results, whole."""
    found = messages(store, session)
    calls = [call for m in found for call in m["tool_calls"]]
    lists = [call["arguments"] for call in calls if call["name"] == "TodoWrite"]
    tasks = [[call["name"], call["arguments"]] for call in calls if call["name"] in ("TaskCreate", "TaskUpdate")]
    shell = "\n".join(call["arguments"]["command"] for call in calls if call["name"] == "Bash")
    given = [m["tool_result"] for m in found if m["tool_name"] == "AskUserQuestion"]

    assert [[[todo["content"], todo["status"]] for todo in held["todos"]] for held in lists] == truth["todo_flushes"]
    assert tasks == truth["task_events"]
    assert all(command in shell for command in truth["git_commands"])
    assert [held["answers"] for held in given if "answers" in held] == [
        pair for pair in truth["qa"] if "declined" not in pair
    ]
    for message in found:
        if message["tool_name"] == "TaskCreate" and not message["is_error"]:
            assert message["tool_result"]["task"]["id"].isdigit()


def test_compactions(store, session, truth):
    """A boundary and its summary are one record; so is a summary without a boundary."""
    found = [m for m in messages(store, session) if m["class"] == "compaction"]
    triggers = [trigger for _, trigger in truth["compactions"]]
    if session.session_id == ONE_SUMMARY_WITHOUT_BOUNDARY:
        triggers = [None]

    assert [m.get("trigger") for m in found] == triggers
    for message in found:
        assert message["role"] == "system"
        assert message["content"].startswith("This session is being continued from a previous conversation")
        assert message.get("tokens_before", 1) > 0
    assert store.row(session)["has_compaction"] is bool(triggers)


def test_counts(store, session, truth, records):
    """The row counts prompts, records of answers and calls; copies of another session's count there."""
    row = store.row(session)
    found = messages(store, session)
    own = [m for m in found if not m.get("replayed")]
    prompts = truth["typed_prompts"] + truth["queued_prompts"]
    copied = [m for m in found if m.get("replayed") and m["authorship"] == "human"]
    answers = truth["assistant_text_blocks"] - truth["api_error_messages"]
    replayed = {m["ref"]["offset"] for m in found if m.get("replayed")}

    assert row["user_count"] == (1 if is_agent(session) else len(prompts) - len(copied))
    assert row["tool_count"] == sum(len(m["tool_calls"]) for m in own)
    if not replayed:
        assert row["assistant_count"] == answers
    assert row["line_count"] == truth["records"]
    assert row["file_size"] == truth["bytes"]


def test_the_row(store, session, truth, records):
    """Directory, branch, model, times and origin come from the records."""
    row = store.row(session)
    about = store.describe(session, store.facts(session))
    branches = [branch for branch in truth["git_branches"] if branch not in ("", "HEAD")]
    models = [model for model in truth["models"] if model != "<synthetic>"]
    times = [record["timestamp"] for record in records if "timestamp" in record]
    entrypoints = {record["entrypoint"] for record in records if "entrypoint" in record}

    assert row["directory"] == next(iter(truth["cwds"]), None)
    assert about["directories"] == (truth["cwds"] or [None])
    assert row.get("git_branch") == next(iter(branches), None)
    assert row.get("model") == next(iter(models), None)
    assert row["end_time"] == (truth["last"] if times else row["end_time"])
    assert row["start_time"] == min(times, default=None)
    assert row.get("origin") == ({"cli": "cli", "sdk-cli": "sdk"}[entrypoints.pop()] if entrypoints else None)
    assert bool(row.get("empty")) is (not models)
    assert "read_error" not in row


def test_titles_in_the_transcript(store, session, truth):
    """The last name given wins, else the last generated title."""
    given = [title for kind, title in truth["titles"] if kind == "custom-title"]
    generated = [title for kind, title in truth["titles"] if kind == "ai-title"]
    if given or generated:
        assert store.row(session)["title"] == (given or generated)[-1]


def test_sub_agents_belong_to_their_session(store, session, truth):
    """The three places where sub-agents were written all lead to the session that spawned them."""
    parent = store.parent(session)

    if is_agent(session):
        assert parent in truth["session_ids"]
        assert session in store.children(parent)
    else:
        assert parent is None


def test_usage_is_counted_once(store, session, records):
    """The usage of a response is what its last record says, however many records repeat it."""
    last = {}
    for record in records:
        if record["type"] == "assistant" and not record.get("isApiErrorMessage"):
            usage = record["message"]["usage"]
            last[record["message"]["id"]] = (usage["input_tokens"], usage["output_tokens"])
    found = [m["usage"] for m in messages(store, session) if "usage" in m]

    assert sum(usage["output"] for usage in found) == sum(pair[1] for pair in last.values())
    assert sum(usage["input"] for usage in found) == sum(pair[0] for pair in last.values())


def test_every_line_is_an_entry(store, session, name, file):
    """The entries are the lines of the file, byte for byte and in order."""
    lines = (FIXTURES / name / ".claude" / "projects" / file).read_bytes().split(b"\n")

    assert [entry.line() for entry in store.entries(session, {})] == [line for line in lines if line]


def test_ids_count_the_stream(store, session):
    """Record ids are 1, 2, 3, ... in the order of the file."""
    assert [m["id"] for m in messages(store, session)] == list(range(1, len(messages(store, session)) + 1))


def test_a_walk_can_be_taken_up_anywhere(store, session):
    """A copy of the state, taken behind any entry, continues exactly there."""
    state, cuts, walked = {}, [b"{}"], []
    for entry in store.entries(session, state):
        walked.append((entry.line(), entry.ts, entry.messages, entry.raw_type(), entry.group, entry.slice))
        cuts.append(orjson.dumps(state))
    for place, cut in enumerate(cuts):
        rest = [
            (entry.line(), entry.ts, entry.messages, entry.raw_type(), entry.group, entry.slice)
            for entry in store.entries(session, orjson.loads(cut))
        ]

        assert rest == walked[place:]


def test_a_record_is_found_again_by_its_reference(store, session):
    """A reference leads back to the text, the calls and the role of its record."""
    for message in messages(store, session):
        entry = store.entry_at(session, message["ref"] | {"id": message["id"]})
        [found] = entry.messages

        for key in ("id", "role", "ts", "content", "thinking", "tool_calls", "tool_call_id", "authorship", "ref"):
            assert found[key] == message[key]


def test_only_a_rewind_leaves_a_branch(store, session):
    """Parallel calls, late commands, compactions and records out of order make no abandoned branch."""
    left = store.abandoned(session)
    texts = [m["content"] for m in messages(store, session) if any(a <= m["id"] <= b for a, b in left)]

    if session.session_id.startswith("d6213968"):
        assert texts == ["Original version of the question", "This is the answer on the old branch: gannet."]
    else:
        assert left == []
