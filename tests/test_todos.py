"""The todo list's history: flushes as edits, and edits as flushes again."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import called, ran, recorded, result
from total_recall.notices import Notices
from total_recall.todos import Item, NoTodoTool, events, fold, keyed


def edits(messages, harness="opencode", notices=None):
    return list(events(messages, harness, notices or Notices()))


def short(found):
    return [(event["action"], event["todo"], event["status"]) for event in found]


def flushes(*lists, harness="opencode", tool="todowrite"):
    """Messages that write each of the lists, given as (content, status) or whole items."""
    messages = []
    for number, items in enumerate(lists):
        todos = [item if isinstance(item, dict) else {"content": item[0], "status": item[1]} for item in items]
        messages += ran(tool, {"todos": todos}, harness=harness, number=2 * number + 1)
    return messages


NOTES = [
    [("Write notes", "pending"), ("Check notes", "pending"), ("Archive notes", "pending")],
    [("Write notes", "in_progress"), ("Check notes", "pending"), ("Archive notes", "pending")],
    [("Write notes", "completed"), ("Check notes", "in_progress")],
    [("Write notes", "completed"), ("Check notes", "completed"), ("Publish notes, maybe", "pending")],
    [],
]
RECIPES = [
    "added Sketch the page layout",
    "added Write the recipe parser",
    "added Add a search box",
    "added Set up analytics",
    "in_progress Sketch the page layout",
    "completed Sketch the page layout",
    "in_progress Write the recipe parser",
    "removed Set up analytics",
    "updated Add a search box, with fuzzy matching",
    "completed Write the recipe parser",
    "in_progress Add a search box, with fuzzy matching",
    "completed Add a search box, with fuzzy matching",
    "added Write release notes",
]


@pytest.mark.parametrize(
    ("session", "harness", "lists"),
    [
        ("claude-todowrite", "claude", NOTES),
        ("claude-failed-todowrite", "claude", []),
        (
            "codex-plan-and-git",
            "codex",
            [
                [
                    ("Create the repository", "in_progress"),
                    ("Write convert.py", "pending"),
                    ("Tag a release", "pending"),
                    ("Write a GUI", "pending"),
                ],
                [
                    ("Create the repository", "completed"),
                    ("Write convert.py", "completed"),
                    ("Tag a release", "in_progress"),
                ],
                [
                    ("Create the repository", "completed"),
                    ("Write convert.py", "completed"),
                    ("Tag a release", "completed"),
                ],
            ],
        ),
        (
            "opencode-todos-and-git",
            "opencode",
            [
                [
                    ("Initialise the git repository", "in_progress"),
                    ("Write greet.py", "pending"),
                    ("Write tests", "pending"),
                    ("Publish to PyPI", "pending"),
                ],
                [
                    ("Initialise the git repository", "completed"),
                    ("Write greet.py", "completed"),
                    ("Write tests", "in_progress"),
                    ("Publish to PyPI", "pending"),
                ],
                [
                    ("Initialise the git repository", "completed"),
                    ("Write greet.py", "completed"),
                    ("Write tests", "completed"),
                ],
            ],
        ),
        ("opencode-running", "opencode", [[("Slow thing", "in_progress"), ("Report", "pending")]]),
        *(
            (
                session,
                "vibe",
                [
                    [("Create repository", "in_progress"), ("Write wc.py", "pending"), ("Benchmark it", "pending")],
                    [
                        ("Create repository", "completed"),
                        ("Write wc.py", "in_progress"),
                        ("Benchmark it", "pending"),
                        ("Tag a release", "pending"),
                    ],
                    [
                        ("Create repository", "completed"),
                        ("Write wc.py", "completed"),
                        ("Tag a release", "in_progress"),
                    ],
                    [("Write wc.py", "completed"), ("Tag a release", "completed")],
                ],
            )
            for session in ("vibe-todos-and-git", "vibe-unified-todos-and-git")
        ),
        ("vibe-unified-killed", "vibe", [[("Sleep", "in_progress")]]),
        ("claude-git", "claude", []),
    ],
)
def test_real_sessions_give_back_their_flushes(session, harness, lists):
    found = edits(recorded(session), harness)

    assert [sorted(state.values()) for state in fold(found)] == [sorted(items) for items in lists]


def test_the_edits_of_a_real_session_of_task_tools():
    """Ids come from the results; a deleted task is removed; a new subject is an update."""
    found = edits(recorded("claude-tasks"), "claude")

    assert [f"{event['action']} {event['todo']}" for event in found] == RECIPES
    assert [event["item"] for event in found] == list("1234112432335")


def test_calls_count_in_their_order_whatever_that_of_the_results():
    found = edits(recorded("claude-parallel-tasks"), "claude")

    assert short(found)[2:] == [
        ("in_progress", "Alpha task", "in_progress"),
        ("completed", "Alpha task", "completed"),
        ("removed", "Beta task", None),
    ]


def test_an_event_has_the_documented_keys_in_their_order():
    (event,) = edits(flushes([("A", "pending")]))

    assert list(event) == ["ts", "action", "todo", "status", "item", "id", "session_id", "harness"]
    assert event == {
        "ts": "2026-11-30T10:00:01.000Z",
        "action": "added",
        "todo": "A",
        "status": "pending",
        "item": "A",
        "id": 1,
        "session_id": "s1",
        "harness": "opencode",
    }


def test_edits_of_one_flush_in_item_order_and_then_what_is_gone():
    found = edits(
        flushes([("A", "pending"), ("B", "pending"), ("C", "pending")], [("D", "pending"), ("B", "cancelled")])
    )

    assert short(found)[3:] == [
        ("added", "D", "pending"),
        ("cancelled", "B", "cancelled"),
        ("removed", "A", None),
        ("removed", "C", None),
    ]


def test_a_flush_that_changes_nothing_gives_nothing():
    assert edits(flushes([("A", "pending")], [("A", "pending")]))[1:] == []


def test_a_slug_identifies_an_item_whose_text_changes():
    first, second = [("item07: ship it", "pending")], [("item07: ship it today", "pending")]
    third = [("item07.1: ship it", "pending")]

    assert short(edits(flushes(first, second)))[1:] == [("updated", "item07: ship it today", "pending")]
    assert [event["action"] for event in edits(flushes(first, third))] == ["added", "added", "removed"]


def test_an_id_of_the_harness_identifies_an_item_whose_text_changes():
    first, second = {"id": "1", "content": "A", "status": "pending"}, {"id": "1", "content": "B", "status": "completed"}

    found = edits(flushes([first], [second], harness="vibe", tool="todo"), "vibe")

    assert short(found) == [("added", "A", "pending"), ("completed", "B", "completed")]
    assert [event["item"] for event in found] == ["1", "1"]


def test_the_same_text_twice_is_two_items():
    found = edits(flushes([("A", "pending"), ("A", "completed")], [("A", "completed")]))

    assert [event["item"] for event in found] == ["A", "A #2", "A", "A #2"]
    assert [event["action"] for event in found] == ["added", "added", "completed", "removed"]


def test_a_status_that_is_missing_is_null():
    assert short(edits(flushes([{"content": "A"}], [{"content": "A", "status": "pending"}], [{"content": "A"}]))) == [
        ("added", "A", None),
        ("pending", "A", "pending"),
        ("updated", "A", None),
    ]


def test_arguments_and_lists_given_as_json_texts_are_parsed():
    todos = [{"content": "A", "status": "pending"}]
    for arguments in (
        {"todos": orjson.dumps(todos).decode()},
        orjson.dumps({"todos": todos}).decode(),
        orjson.dumps({"todos": orjson.dumps(todos).decode()}).decode(),
    ):
        assert short(edits(ran("todowrite", arguments, harness="opencode"))) == [("added", "A", "pending")]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"todos": [',
        {"todos": "[{"},
        {"todos": {"content": "A"}},
        {"todos": 5},
        {"todos": ["A"]},
        {"todos": [{"status": "pending"}]},
        {"todos": [{"content": ["A"]}]},
    ],
)
def test_a_broken_flush_is_passed_over_with_a_notice(arguments):
    notices = Notices()
    messages = ran("todowrite", arguments, harness="opencode") + [
        {**message, "id": message["id"] + 2} for message in flushes([("B", "pending")])
    ]

    assert short(edits(messages, notices=notices)) == [("added", "B", "pending")]
    (notice,) = notices.said
    assert notice.startswith("s1:1: a call of todowrite is passed over")


@pytest.mark.parametrize("arguments", [{}, None, [], {"todos": None}])
def test_a_call_without_a_list_is_passed_over_quietly(arguments):
    notices = Notices()

    assert edits(ran("todowrite", arguments, harness="opencode"), notices=notices) == []
    assert not notices.said


def test_the_list_that_the_tool_returned_stands_in_for_a_broken_one():
    call = called(1, "todowrite", '{"todos": [', harness="opencode")
    answer = result(2, call, tool_result=[{"content": "A", "status": "pending"}])

    assert short(edits([call, answer])) == [("added", "A", "pending")]


def test_failed_and_unanswered_calls_do_not_count():
    written = flushes([("A", "pending")])
    failed = ran("todowrite", {"todos": [{"content": "B", "status": "pending"}]}, "refused", True, "opencode", 3)

    assert short(edits([*written, *failed, failed[0]])) == [("added", "A", "pending")]


def test_a_call_that_only_reads_is_no_flush():
    messages = flushes([("A", "pending")], harness="vibe", tool="todo")
    messages += ran("todo", {"action": "read", "todos": []}, harness="vibe", number=3)

    assert short(edits(messages, "vibe")) == [("added", "A", "pending")]


def test_an_inline_sub_agent_has_a_list_of_its_own():
    messages = flushes([("A", "pending")], harness="claude", tool="TodoWrite")
    inside = called(3, "TodoWrite", {"todos": []}, agent="sidechain")

    assert short(edits([*messages, inside, result(4, inside)], "claude")) == [("added", "A", "pending")]


def tasks(*calls):
    messages = []
    for number, (name, arguments, content, structured) in enumerate(calls):
        messages += ran(name, arguments, content, number=2 * number + 1, tool_result=structured)
    return messages


def test_an_id_used_again_after_a_deletion_is_a_new_item():
    found = edits(
        tasks(
            ("TaskCreate", {"subject": "A"}, "Task #1 created successfully: A", None),
            ("TaskUpdate", {"taskId": "1", "status": "deleted"}, "", {"success": True}),
            ("TaskCreate", {"subject": "B"}, "", {"task": {"id": "1"}}),
            ("TaskUpdate", {"taskId": "1", "status": "completed"}, "", {"success": True}),
        ),
        "claude",
    )

    assert [(event["action"], event["todo"], event["item"]) for event in found] == [
        ("added", "A", "1"),
        ("removed", "A", "1"),
        ("added", "B", "1 #2"),
        ("completed", "B", "1 #2"),
    ]


def test_a_task_made_before_the_records_given_is_known_by_its_id():
    found = edits(tasks(("TaskUpdate", {"taskId": "7", "status": "completed"}, "", {"success": True})), "claude")

    assert short(found) == [("added", "#7", "completed")]


def test_a_task_update_that_did_not_succeed_changes_nothing():
    made = ("TaskCreate", {"subject": "A"}, "Task #1 created successfully: A", None)
    missed = ("TaskUpdate", {"taskId": "1", "status": "completed"}, "Task not found", {"success": False})

    assert short(edits(tasks(made, missed), "claude")) == [("added", "A", "pending")]


@pytest.mark.parametrize("arguments", [None, "{", {"subject": 5}, {"taskId": None}, {"taskId": ["1"], "status": 5}])
def test_broken_task_calls_never_raise(arguments):
    for name in ("TaskCreate", "TaskUpdate"):
        edits(tasks((name, arguments, "", {"task": 5})), "claude")


def test_a_harness_without_a_todo_tool_is_refused_by_name():
    with pytest.raises(NoTodoTool, match=r"^emacs has no todo tool - tr-todo works on claude, codex"):
        next(events([], "emacs", Notices()))


texts = st.sampled_from(["A", "B", "item1: x", "item1: y", "A #2", "1", ""])
items = st.fixed_dictionaries(
    {"content": texts},
    optional={
        "status": st.sampled_from(["pending", "completed", "removed", "added", ""]),
        "id": st.sampled_from(["1", "2", 1]),
    },
)


@given(st.lists(st.lists(items, max_size=6), max_size=8))
def test_folding_the_events_gives_the_flushes_back(lists):
    """Up to order, and to flushes that changed nothing."""
    states = []
    for flush in lists:
        state = keyed(
            Item(item["content"], item.get("status") or None, str(item["id"]) if "id" in item else None)
            for item in flush
        )
        assert len(state) == len(flush)
        if state != (states[-1] if states else {}):
            states.append(state)

    assert list(fold(edits(flushes(*lists)))) == states
