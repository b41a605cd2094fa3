"""The Codex adapter against what real programs wrote and what is known to be in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import orjson
import pytest
from total_recall.notices import Notices
from total_recall.stores.base import Tally
from total_recall.stores.codex import Codex

FIXTURES = Path(__file__).parent.parent / "fixtures"
STORES = ("codex", "codex-migrated", "codex-zst")
TUI = "01a22e59-9767-7f83-aa34-fe3bbc26f27f"  # 0.171, with a rewind in a file of its own
CODE_MODE = "01a22e59-1272-7042-886f-856de125320a"
# The summary of a compaction is stored among the answers too, but it is none.
SUMMARY = re.compile(r"Summary of the work so far: ")


def open_store(root: Path) -> Codex:
    place = Codex.locate({"TOTAL_RECALL_CODEX_ROOT": str(root)})
    assert place is not None
    return Codex(place, Notices())


def truths() -> dict[tuple[str, str], list[dict]]:
    """(store, session id) -> what is known about each of its files, in the order of writing."""
    found: dict[tuple[str, str], list[dict]] = {}
    for store in STORES[:2]:
        for truth in json.loads((FIXTURES / store / "TRUTH.json").read_text()):
            name = truth["file"].rsplit("/", 1)[1]
            found.setdefault((store, name[28:64]), []).append(truth)
    return found


TRUTHS = truths()
SESSIONS = [
    (store, session.session_id)
    for store in STORES
    for session in open_store(FIXTURES / store / ".codex" / "sessions").sessions()
]


@pytest.fixture
def codex(request: pytest.FixtureRequest) -> Codex:
    return open_store(FIXTURES / getattr(request, "param", "codex") / ".codex" / "sessions")


def reference(store: Codex, session_id: str):
    return next(session for session in store.sessions() if session.session_id == session_id)


class Known:
    """One session and its truth."""

    def __init__(self, store: str, session_id: str) -> None:
        self.codex = open_store(FIXTURES / store / ".codex" / "sessions")
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
    codex = open_store(FIXTURES / store / ".codex" / "sessions")
    session = reference(codex, session_id)
    state: dict = {}
    walked = [(entry.messages, entry.line(), orjson.dumps(state)) for entry in codex.entries(session, state)]

    for place, (_, _, kept) in enumerate(walked):
        rest = [(entry.messages, entry.line()) for entry in codex.entries(session, orjson.loads(kept))]

        assert rest == [(messages, line) for messages, line, _ in walked[place + 1 :]]


@pytest.mark.parametrize(("store", "session_id"), SESSIONS)
def test_a_record_is_found_again_by_its_ref(store: str, session_id: str) -> None:
    """The place that a record names holds its line, and reading it there tells the same."""
    codex = open_store(FIXTURES / store / ".codex" / "sessions")
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


# -- what single sessions hold ---------------------------------------------------------------------------------------


def test_what_a_script_ran_becomes_calls_and_results(codex: Codex) -> None:
    """In code mode the commands and patches of a script are records, made from UI items that no call names."""
    nested = [m for m in codex.messages(reference(codex, CODE_MODE)) if _nested(m)]

    assert [(m["role"], m["tool_name"]) for m in nested] == [
        ("assistant", None),
        ("tool", "exec_command"),
        ("assistant", None),
        ("tool", "apply_patch"),
    ]
    assert nested[0]["tool_calls"][0]["arguments"] == {
        "cmd": "git log --oneline | head -3; echo code-mode-ran",
        "workdir": "/home/dev/projects/alpha",
    }
    assert nested[1]["content"].endswith("code-mode-ran\n")
    assert nested[2]["tool_calls"][0]["arguments"]["changes"].keys() == {"/home/dev/projects/alpha/codemode.txt"}


def _nested(message: dict) -> bool:
    calls = message["tool_calls"]
    return (calls[0]["id"] if calls else message["tool_call_id"] or "").startswith("exec-")


def test_a_command_that_ended_late_is_not_told_twice(codex: Codex) -> None:
    """The UI item of a command that went on after its turn was aborted has no record: its call has one."""
    outputs = [m for m in codex.messages(reference(codex, TUI)) if m["tool_name"] == "exec_command"]

    assert [m["content"] for m in outputs] == ["Wall time: 4.5 seconds\naborted by user"]


@pytest.mark.parametrize(
    ("session_id", "failed"),
    [
        ("01a22e58-ede0-7341-a4ff-62a4b1c824a7", [True, True, True, True]),  # exit 3, patch, unknown tool, arguments
        ("01a22e59-8ec3-7d02-b463-9c84e5f8d3ba", [False, False, True]),  # 0.45: exit code in a JSON wrapper
        ("8f1c7b9f-5cdc-4693-9836-c233f615e185", [False, False, True]),  # 0.20
        ("01a22e58-f7cd-7a92-ba48-97536266e4e6", [True]),  # interrupted
        ("01a22e58-e296-7693-abea-cc584a97ff3d", [False] * 8),
    ],
)
def test_failures_are_told_from_successes(codex: Codex, session_id: str, failed: list[bool]) -> None:
    """An output is an error by its exit code or by what the harness says in its place."""
    outputs = [m for m in codex.messages(reference(codex, session_id)) if m["role"] == "tool"]

    assert [m["is_error"] for m in outputs] == failed


def test_arguments_that_do_not_parse_stay_text(codex: Codex) -> None:
    """Broken JSON and free-form input are the string that the model sent."""
    calls = [
        call["arguments"]
        for m in codex.messages(reference(codex, "01a22e58-ede0-7341-a4ff-62a4b1c824a7"))
        for call in m["tool_calls"]
    ]

    assert calls[3] == '{"cmd": broken json'
    assert calls[1].startswith("*** Begin Patch\n")


def test_a_json_wrapper_round_an_output_is_taken_off(codex: Codex) -> None:
    """Up to 0.98 some outputs are JSON texts with metadata: the content is what the tool printed."""
    outputs = [
        m for m in codex.messages(reference(codex, "8f1c7b9f-5cdc-4693-9836-c233f615e185")) if m["role"] == "tool"
    ]

    assert outputs[0]["content"] == "hello-from-shell\n"


def test_strange_characters_survive(codex: Codex) -> None:
    """Emoji, controls, NUL and line separators are what was stored; the record can be printed."""
    messages = list(codex.messages(reference(codex, "01a22e58-ea6c-7c73-9ede-4824c6bf0a44")))

    assert any("\0" in m["content"] and "🦉" in m["content"] for m in messages)
    assert orjson.loads(orjson.dumps(messages)) == messages


@pytest.mark.parametrize(
    ("session_id", "trigger"),
    [(TUI, "manual"), ("01a22e59-1b39-71d0-aecb-c04d9508c4d4", "auto"), ("01a22e5a-d8df-7e32-ac8a-3efe6201f0f6", None)],
)
def test_the_trigger_of_a_compaction_is_told_where_it_is_known(
    codex: Codex, session_id: str, trigger: str | None
) -> None:
    """0.171 lets a compaction that was asked for be told from an automatic one; older versions do not."""
    compaction = next(m for m in codex.messages(reference(codex, session_id)) if m["class"] == "compaction")

    assert compaction.get("trigger") == trigger


def test_the_tail_since_a_compaction_begins_with_it(codex: Codex) -> None:
    """What came after the last compaction is reached, summary first."""
    tail = list(codex.since_compaction(reference(codex, TUI)))

    assert tail[0]["class"] == "compaction"
    assert [m["content"] for m in tail if m["authorship"] == "human"] == [
        "Which bird did you say?",
        "Original codex question",
        "Edited codex question",
    ]


def test_sub_agents_name_their_parent_and_their_task(codex: Codex) -> None:
    """A child has the session that spawned it as its parent; its task is delegated, a report to a parent injected."""
    parent, child = "01a22e59-0f35-7ca2-90e3-1d9d13dba91f", "01a22e59-0ff9-79e0-9556-3ffed02dc159"
    task = [m for m in codex.messages(reference(codex, child)) if m["authorship"] == "delegated"]
    reports = [m for m in codex.messages(reference(codex, parent)) if m.get("agent")]

    assert [m["content"] for m in task] == [
        "SUBTASK-CX-LINES count the lines of convert.py in /home/dev/projects/alpha"
    ]
    assert codex.row(reference(codex, child))["user_count"] == 1
    assert {child.session_id for child in codex.children(parent)} == {child, "01a22e59-102b-7f92-b765-29e5083ecd6f"}
    assert [(m["agent"], m["authorship"]) for m in reports] == [
        ("/root/list_functions", "injected"),
        ("/root/count_lines", "injected"),
    ]


@pytest.mark.parametrize(
    ("session_id", "title"),
    [
        (TUI, "unit decisions, v1"),
        ("01a22e5a-7a00-7481-bfe6-a2894e051e49", "unit decisions, v1"),
        ("01a22e59-19ae-7bd3-ae57-da7bd4d7ba23", "What does the image show?"),
        ("01a22e59-1892-75a1-a2b0-197438b44fe4", "Follow the house rules."),
        (
            "01a22e59-102b-7f92-b765-29e5083ecd6f",
            "SUBTASK-CX-FUNCS list functions of convert.py in /home/dev/projects/alpha",
        ),
    ],
)
def test_titles(codex: Codex, session_id: str, title: str) -> None:
    """The last name given to a thread is its title, else the first words typed in it."""
    assert codex.row(reference(codex, session_id))["title"] == title


@pytest.mark.parametrize(
    ("session_id", "facts"),
    [
        (TUI, {"git_branch": "feature/shelves", "model": "gpt-5.5", "origin": "cli"}),
        (CODE_MODE, {"git_branch": "feature/shelves", "model": "gpt-6.2-sol", "origin": "sdk"}),
        ("01a22e59-8ec3-7d02-b463-9c84e5f8d3ba", {"git_branch": None, "model": "gpt-5.5", "origin": "sdk"}),
        ("8f1c7b9f-5cdc-4693-9836-c233f615e185", {"git_branch": None, "model": None, "origin": None}),
    ],
)
def test_branch_model_and_origin(codex: Codex, session_id: str, facts: dict) -> None:
    """They are those of the first session_meta and of the last turn."""
    row = codex.row(reference(codex, session_id))

    assert {key: row.get(key) for key in facts} == facts


def test_an_image_becomes_a_marker(codex: Codex) -> None:
    """An attached image, with the parts that wrap it, is one marker; a viewed one is the content of its result."""
    messages = list(codex.messages(reference(codex, "01a22e59-19ae-7bd3-ae57-da7bd4d7ba23")))

    assert [m["content"] for m in messages if m["authorship"] == "human"] == [
        "[image image/png 70 bytes]\nWhat does the image show?"
    ]
    assert [(m["content"], m["class"]) for m in messages if m["role"] == "tool"] == [
        ("[image image/png 70 bytes]", "file-read")
    ]


# -- forks and rewinds -----------------------------------------------------------------------------------------------


def test_a_fork_yields_only_its_own_records(codex: Codex) -> None:
    """A thread that goes on from another one by reference says so, and its stream is its own turns."""
    fork = reference(codex, "01a22e58-e892-7303-9227-b6937abe33d5")

    assert [m["content"] for m in codex.messages(fork)] == [
        "Forked codex question: what next?",
        "In this fork: Kelvin would be next.",
    ]
    assert codex.row(fork)["forked_from"] == {"session_id": "01a22e58-e296-7693-abea-cc584a97ff3d", "kind": "fork"}


def test_history_is_what_a_fork_inherits(codex: Codex) -> None:
    """The inherited records come in order, replayed, with the session and the ids that they have at home."""
    parent = reference(codex, "01a22e58-e296-7693-abea-cc584a97ff3d")
    inherited = list(codex.history(reference(codex, "01a22e58-e892-7303-9227-b6937abe33d5")))

    assert inherited == [{**m, "replayed": True} for m in codex.messages(parent)]
    assert list(codex.history(parent)) == []


def test_history_follows_a_rewound_parent(codex: Codex) -> None:
    """A fork of a rewound thread inherits the branch that it was forked from, not the one left behind."""
    inherited = list(codex.history(reference(codex, "01a22e5a-7a00-7481-bfe6-a2894e051e49")))
    texts = [m["content"] for m in inherited]

    assert {m["session_id"] for m in inherited} == {TUI}
    assert [m["id"] for m in inherited] == [*range(1, 28), 30, 31]
    assert texts[-2:] == ["Edited codex question", "Answer on the new branch: dunlin."]
    assert "Original codex question" not in texts


@pytest.mark.parametrize(
    ("session_id", "left", "first"),
    [
        (TUI, [[28, 29]], "Original codex question"),
        ("01a22e5a-d8df-7e32-ac8a-3efe6201f0f6", [[13, 14]], "Original codex question"),
        ("01a22e5b-78bc-7c61-8bee-9d1689a0e120", [[13, 14]], "Original codex question"),
        ("01a22e58-e296-7693-abea-cc584a97ff3d", [], None),
    ],
)
def test_abandoned_turns_are_named(codex: Codex, session_id: str, left: list, first: str | None) -> None:
    """What a rewind left behind stays in the stream; its ids are known, by a new segment or by a rollback event."""
    session = reference(codex, session_id)
    texts = {m["id"]: m["content"] for m in codex.messages(session)}

    assert codex.abandoned(session) == left
    assert [texts[ids[0]] for ids in left] == ([first] if first else [])


def test_a_rewind_with_a_new_id_marks_its_copies(codex: Codex) -> None:
    """0.45 copies the kept lines into a new thread: they are replayed, only what is new counts."""
    session = reference(codex, "01a22e5c-5229-71a2-bbf5-5e3203d86409")
    row = codex.row(session)

    assert [m["content"] for m in codex.messages(session) if not m.get("replayed")] == [
        "Edited codex questionOriginal codex question",
        "Answer on the old branch: bittern.",
    ]
    assert row["forked_from"] == {"session_id": "01a22e5b-ef54-78b2-ab41-91429ae0f711", "kind": "rewind"}
    assert (row["user_count"], row["assistant_count"]) == (1, 1)


def test_the_alias_of_a_segment_resolves_to_its_thread(codex: Codex) -> None:
    """The id of a segment file is another name of the thread."""
    assert reference(codex, TUI).names == ("01a22e5a-5b06-79f3-8032-b2e4e810e4e7",)


# -- compressed, running --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codex", ["codex-zst"], indirect=True)
@pytest.mark.parametrize(
    ("session_id", "prompts", "calls", "answers"),
    [
        ("01a22e57-6d26-7473-8cd4-2abce1356902", ["Drucke bitte seltsame Zeichen tail probe"], {"exec_command": 2}, 2),
        (
            "01a22e57-7287-7f62-bd80-d1b3cd0277e7",
            ["Build the temperature converter tail probe"],
            {"update_plan": 3, "exec_command": 2, "apply_patch": 1},
            2,
        ),
        ("01a22e59-3796-7890-af3f-c64ad910449e", ["Just say toucan"], {}, 1),
    ],
)
def test_compressed_threads_are_read(codex: Codex, session_id: str, prompts: list, calls: dict, answers: int) -> None:
    """A rollout that Codex compressed is a session like any other."""
    messages = list(codex.messages(reference(codex, session_id)))

    assert [m["content"] for m in messages if m["authorship"] == "human"] == prompts
    assert Counter(call["name"] for m in messages for call in m["tool_calls"]) == calls
    assert len([m for m in messages if m["role"] == "assistant" and m["content"]]) == answers


@pytest.mark.parametrize("name", ["running-turn", "running-tool"])
def test_a_running_turn_is_read_as_far_as_it_is_written(tmp_path: Path, name: str) -> None:
    """Before the answer is there, the prompt is; a call without output is the normal tail."""
    lines = (FIXTURES / "codex" / "live-sample" / f"{name}.jsonl").read_bytes()
    session_id = json.loads(lines.splitlines()[0])["payload"]["id"]
    (tmp_path / f"rollout-2026-11-30T21-00-00-{session_id}.jsonl").write_bytes(lines)
    codex = open_store(tmp_path)
    messages = list(codex.messages(reference(codex, session_id)))

    assert messages[-1]["class"] == {"running-turn": "reasoning", "running-tool": "tool-input"}[name]
    assert codex.row(reference(codex, session_id))["user_count"] == {"running-turn": 1, "running-tool": 2}[name]
    assert codex.notices.said == {}


GROWING = [
    ("codex", TUI),
    ("codex", CODE_MODE),
    ("codex", "01a22e59-1b39-71d0-aecb-c04d9508c4d4"),
    ("codex", "01a22e5a-d8df-7e32-ac8a-3efe6201f0f6"),
    ("codex", "01a22e5b-ef54-78b2-ab41-91429ae0f711"),
    ("codex", "01a22e59-0ff9-79e0-9556-3ffed02dc159"),
    ("codex-migrated", "01a22e50-e986-7ff0-b086-10bc747677c8"),
]


@pytest.mark.parametrize(("store", "session_id"), GROWING)
def test_a_growing_thread_is_never_renumbered(tmp_path: Path, store: str, session_id: str) -> None:
    """At any line end, what can be read is the beginning of what can be read later, and counts go on from there."""
    whole = open_store(FIXTURES / store / ".codex" / "sessions")
    source = Path(reference(whole, session_id).files[0])
    lines = source.read_bytes().splitlines(keepends=True)
    (tmp_path / source.name).write_bytes(b"".join(lines))
    codex = open_store(tmp_path)
    session = reference(codex, session_id)
    full = [{key: m[key] for key in ("id", "role", "content", "class", "tool_name")} for m in codex.messages(session)]
    tally = Tally()
    for end in range(1, len(lines) + 1):
        (tmp_path / source.name).write_bytes(
            b"".join(lines[:end]) + lines[end][:20] if end < len(lines) else b"".join(lines)
        )
        part = [{key: m[key] for key in full[0]} for m in codex.messages(session, whole=True)]
        for entry in codex.entries(session, tally.state, whole=True):
            tally.add(entry)

        assert part == full[: len(part)]

    assert len(part) == len(full)
    assert tally.counts == codex.facts(session)["counts"]
