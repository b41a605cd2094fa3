"""The Codex adapter against what real programs wrote and what is known to be in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import orjson
import pytest
from total_recall.stores.codex import Codex

from tests.stores.codex_stores import FIXTURES, fixture_store, reference

STORES = ("codex", "codex-migrated", "codex-zst")
TUI = "01a22e59-9767-7f83-aa34-fe3bbc26f27f"  # 0.171, with a rewind in a file of its own
# The summary of a compaction is stored among the answers too, but it is none.
SUMMARY = re.compile(r"Summary of the work so far: ")


def truths() -> dict[tuple[str, str], list[dict]]:
    """(store, session id) -> what is known about each of its files, in the order of writing."""
    found: dict[tuple[str, str], list[dict]] = {}
    for store in STORES[:2]:
        for truth in json.loads((FIXTURES / store / "TRUTH.json").read_text()):
            name = truth["file"].rsplit("/", 1)[1]
            found.setdefault((store, name[28:64]), []).append(truth)
    return found


TRUTHS = truths()
SESSIONS = [(store, session.session_id) for store in STORES for session in fixture_store(store).sessions()]


@pytest.fixture
def codex() -> Codex:
    return fixture_store("codex")


class Known:
    """One session and its truth."""

    def __init__(self, store: str, session_id: str) -> None:
        self.codex = fixture_store(store)
        self.session = reference(self.codex, session_id)
        self.truth = TRUTHS[store, session_id]
        self.messages = list(self.codex.messages(self.session))

    def all(self, key: str) -> list:
        return [value for truth in self.truth for value in truth[key]]

    def count(self, key: str) -> Counter:
        return sum((Counter(truth[key]) for truth in self.truth), Counter())

    def own(self, role: str) -> list[dict]:
        """The records of a role that stand for response items, not for what a script of code mode ran."""
        calls = ((m, m["tool_calls"][0]["id"] if m["tool_calls"] else m["tool_call_id"]) for m in self.messages)
        return [m for m, call_id in calls if m["role"] == role and not (call_id or "").startswith("exec-")]


@pytest.fixture(params=sorted(TRUTHS), ids=lambda key: f"{key[0]}-{key[1][:13]}")
def known(request: pytest.FixtureRequest) -> Known:
    return Known(*request.param)


def agree(texts: list[str], truth: list[str]) -> bool:
    """Whether the texts are those of the truth, where long ones are given by their beginning and length."""
    return len(texts) == len(truth) and all(map(_agrees, texts, truth))


def _agrees(text: str, truth: str) -> bool:
    cut = re.fullmatch(r"(.*)…\[(\d+) chars\]", truth, re.DOTALL)
    return text.startswith(cut[1]) and len(text) == int(cut[2]) if cut else text == truth


def test_every_session_of_the_truth_is_listed_once(codex: Codex) -> None:
    """A thread is one session, however many files it has and wherever they lie."""
    listed = Counter(session.session_id for session in codex.sessions())

    assert listed == Counter(session_id for store, session_id in TRUTHS if store == "codex")


def test_typed_prompts_are_verbatim_and_in_order(known: Known) -> None:
    """What a person typed, or the orchestrator of a sub-agent, is told from what the harness put in the user role."""
    typed = [m["content"] for m in known.messages if m["authorship"] in ("human", "delegated") and "agent" not in m]
    image = re.compile(r"<image [^\n]*>\n\[input_image\]\n</image>")

    assert agree(typed, [image.sub("[image image/png 70 bytes]", text) for text in known.all("typed_prompts")])


def test_injected_texts_are_marked(known: Known) -> None:
    """Developer messages are the system's; every other injected text is in the user role and injected."""
    truth = known.count("injected_user_messages")
    developer = truth.pop("developer", 0)
    injected = [m for m in known.messages if m["injected"] and "agent" not in m]

    assert len([m for m in known.messages if m["role"] == "system" and m["class"] == "injected-text"]) == developer
    assert len(injected) == truth.total()
    assert len([m for m in injected if m["class"] == "command"]) == truth["shell.user_command"]


def test_answers_are_verbatim_and_in_order(known: Known) -> None:
    """Every answer is there once, and the summary that a compaction wrote is none of them."""
    answers = [m["content"] for m in known.messages if m["role"] == "assistant" and m["content"]]

    assert agree(answers, [text for text in known.all("assistant_texts") if not SUMMARY.match(text)])


def test_thinking_is_read(known: Known) -> None:
    """Readable reasoning gives a record of its own; encrypted reasoning gives none."""
    assert agree([m["thinking"] for m in known.messages if m["thinking"]], known.all("thinking"))


def test_tool_calls_and_outputs_are_linked(known: Known) -> None:
    """Each call is named, and each output names the call that it belongs to."""
    calls = [call for m in known.own("assistant") for call in m["tool_calls"]]
    outputs = known.own("tool")
    names = {call["id"]: call["name"] for call in calls}

    assert Counter(call["name"] for call in calls) == known.count("tool_calls")
    assert len(outputs) == sum(truth["tool_outputs"] for truth in known.truth)
    assert all(m["tool_name"] == names[m["tool_call_id"]] for m in outputs)
    assert all(isinstance(m["is_error"], bool) and m["authorship"] == "tool" for m in outputs)


def test_plans_can_be_replayed(known: Known) -> None:
    """The arguments of update_plan are the JSON that the model sent."""
    plans = [
        {
            "explanation": call["arguments"].get("explanation"),
            "plan": [[item["step"], item["status"]] for item in call["arguments"]["plan"]],
        }
        for m in known.messages
        for call in m["tool_calls"]
        if call["name"] == "update_plan"
    ]

    assert plans == known.all("plans")


def test_questions_come_with_their_answers(known: Known) -> None:
    """A question's output is the text that was stored; an answered one has the answers as an object beside it."""
    outputs = [m for m in known.messages if m["tool_name"] == "request_user_input"]

    assert [m["content"] for m in outputs] == [pair["output"] for pair in known.all("qa")]
    for m in outputs:
        if m["content"].startswith("{"):
            assert m["tool_result"] == json.loads(m["content"])
        else:
            assert "tool_result" not in m
            assert m["is_error"]


def test_compactions_are_one_record_each(known: Known) -> None:
    """A compaction is a system record with the summary; its UI marker and the copies it holds are nothing."""
    compactions = [m["content"] for m in known.messages if m["class"] == "compaction"]

    assert agree(compactions, [text for _, text, *_ in known.all("compactions")])


def test_interrupts_leave_their_marker(known: Known) -> None:
    """Where the harness told the model of an interrupt, that is an injected record."""
    markers = [m for m in known.messages if m["content"].startswith("<turn_aborted>")]
    truth = known.count("injected_user_messages")

    assert len(markers) == truth["generic.turn_aborted"] + truth["<turn_aborted>"]
    assert all(m["injected"] for m in markers)


def test_the_row_tells_what_the_files_say(known: Known) -> None:
    """Directory, times, sizes and lines are those of the files; an archived thread is marked."""
    row = known.codex.row(known.session)

    assert row["directory"] == known.truth[0]["cwd"]
    assert row["line_count"] == sum(truth["records"] for truth in known.truth)
    assert row["file_size"] == sum(truth["bytes"] for truth in known.truth)
    assert row["start_time"] == min(truth["first"] for truth in known.truth)
    assert row["end_time"] == max(truth["last"] for truth in known.truth)
    assert row["parent_session_id"] == (known.truth[0]["parent_thread"] or _spawner(known.truth[0]["source"]))
    assert row.get("archived", False) is known.truth[0]["file"].startswith("archived_sessions/")
    assert row["has_compaction"] is bool(known.all("compactions"))
    assert "read_error" not in row


def _spawner(source: object) -> str | None:
    return source["subagent"]["thread_spawn"]["parent_thread_id"] if isinstance(source, dict) else None


def test_ids_are_the_places_in_the_stream(known: Known) -> None:
    """Records are numbered from 1 without gaps, over all files of a thread."""
    assert [m["id"] for m in known.messages] == list(range(1, len(known.messages) + 1))


DROPPED = {"01a22e50-e986-7ff0-b086-10bc747677c8": 5516}  # the response of a turn that the migration left out


def counted(files: tuple[str, ...]) -> int:
    """All tokens that the responses of some files used, by the totals that the lines tell."""
    responses, spent, last = {}, 0, 0
    for path in files:
        for line in Path(path).read_bytes().splitlines():
            value = json.loads(line)
            payload = value.get("payload", {})
            if value.get("type") == "token_usage_record":
                responses[payload["response_id"]] = payload["usage"]["total_tokens"]
            elif payload.get("type") == "token_count" and payload["info"]:
                total = payload["info"]["total_token_usage"]["total_tokens"]
                spent += total - last if total >= last else total  # 0.45 begins again when it is resumed
                last = total
    return sum(responses.values()) or spent


def test_usage_stands_once_for_each_response(known: Known) -> None:
    """Added up, the records' usage is what the thread used: nothing twice, nothing lost."""
    usage = [m["usage"] for m in known.messages if "usage" in m]
    total = sum(u["input"] + u["cache_read"] + u["cache_write"] + u["output"] for u in usage)

    assert total == counted(known.session.files) - DROPPED.get(known.session.session_id, 0)


@pytest.mark.parametrize(("store", "session_id"), SESSIONS)
def test_a_walk_goes_on_from_any_entry(store: str, session_id: str) -> None:
    """A copy of the state, taken after any entry and kept as JSON, continues the walk exactly there."""
    codex = fixture_store(store)
    session = reference(codex, session_id)
    state: dict = {}
    walked = [(entry.messages, entry.line(), orjson.dumps(state)) for entry in codex.entries(session, state)]

    for place, (_, _, kept) in enumerate(walked):
        rest = [(entry.messages, entry.line()) for entry in codex.entries(session, orjson.loads(kept))]

        assert rest == [(messages, line) for messages, line, _ in walked[place + 1 :]]


@pytest.mark.parametrize(("store", "session_id"), SESSIONS)
def test_a_record_is_found_again_by_its_ref(store: str, session_id: str) -> None:
    """The place that a record names holds its line, and reading it there tells the same."""
    codex = fixture_store(store)
    session = reference(codex, session_id)
    for entry in codex.entries(session, {}):
        for place, message in enumerate(entry.messages):
            found = codex.entry_at(session, message["ref"])

            assert found is not None
            assert found.line() == entry.line()
            for key in ("role", "ts", "content", "thinking", "tool_calls", "authorship", "ref"):
                assert found.messages[place][key] == message[key]


@pytest.mark.parametrize(
    "ref", [{}, {"path": "/x"}, {"offset": "1"}, {"offset": -1}, {"offset": 10**12}, {"length": 3}]
)
def test_a_ref_that_points_nowhere_finds_nothing(codex: Codex, ref: dict) -> None:
    """A place that is no longer there is None, never an error."""
    session = reference(codex, TUI)
    good = next(m for m in codex.messages(session))["ref"]

    assert codex.entry_at(session, {**good, **ref} if ref else {}) is None


def test_raw_lines_are_the_stored_ones(codex: Codex) -> None:
    """The entries are the lines of the files, byte for byte and in order."""
    session = reference(codex, TUI)

    lines = b"".join(entry.line() + b"\n" for entry in codex.entries(session, {}))

    assert lines == b"".join(Path(path).read_bytes() for path in session.files)


def test_raw_types_follow_from_the_messages(codex: Codex) -> None:
    """UI events and state are `system`; every item has the type of what it says."""
    types = Counter(entry.raw_type() for entry in codex.entries(reference(codex, TUI), {}))

    assert types == {"user": 14, "assistant": 11, "thinking": 1, "tool": 3, "system": 95}
