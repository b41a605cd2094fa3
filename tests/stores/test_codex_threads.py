"""The Codex adapter: what single threads hold, forks and rewinds, compressed and running ones."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import orjson
import pytest
from total_recall.stores.base import Tally
from total_recall.stores.codex import Codex
from total_recall.stores.tools import kind_of

from tests.stores.codex_stores import FIXTURES, fixture_store, open_store, reference

TUI = "01a22e59-9767-7f83-aa34-fe3bbc26f27f"  # 0.171, with a rewind in a file of its own
CODE_MODE = "01a22e59-1272-7042-886f-856de125320a"


@pytest.fixture
def codex(request: pytest.FixtureRequest) -> Codex:
    return fixture_store(getattr(request, "param", "codex"))


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
    whole = fixture_store(store)
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


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exec_command", "shell"),
        ("container.exec", "shell"),
        ("apply_patch", "write"),
        ("view_image", "read"),
        ("tool_search", "search"),
        ("exec", None),
        ("write_stdin", None),
    ],
)
def test_tools_are_known_by_what_they_are_for(name: str, kind: str | None) -> None:
    """A script of code mode is no shell command; looking for a tool is not looking into the web."""
    assert kind_of("codex", name) == kind
