"""Tool calls: paired with their results, told on one line, and the files they name."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import called, ran, recorded, result, said
from total_recall import dialogue, git, todos
from total_recall.calls import answered, call_summary, files_of
from total_recall.notices import Notices
from total_recall.profile import profiled


def pairs(messages):
    return [
        (call.record["id"], call.result and call.result["id"])
        for call in answered(messages, lambda harness, name: True)
    ]


def test_results_are_found_by_the_calls_id_and_calls_keep_their_order():
    first, second, third = called(1, "Bash", {}), called(2, "Bash", {}), called(3, "Bash", {})

    assert pairs([first, second, third, result(4, third), result(5, first), result(6, second)]) == [
        (1, 5),
        (2, 6),
        (3, 4),
    ]


def test_a_call_comes_as_soon_as_its_result_is_known():
    call = called(1, "Bash", {})

    def messages():
        yield call
        yield result(2, call)
        pytest.fail("nothing more had to be read")

    assert next(answered(messages(), lambda harness, name: True)).result["id"] == 2


def test_what_was_never_answered_comes_without_a_result_in_its_place():
    killed, later = called(1, "Bash", {}), called(3, "Bash", {})

    assert pairs([killed, said(2, "go on"), later, result(4, later)]) == [(1, None), (3, 4)]


def test_an_unanswered_call_does_not_hold_back_a_long_session():
    messages = [called(1, "Bash", {})]
    for number in range(2, 1002, 2):
        messages += ran("Bash", {}, number=number)
    calls = answered(iter(messages), lambda harness, name: True)

    assert next(calls).result is None
    assert [call.record["id"] for call in calls] == list(range(2, 1002, 2))


def test_a_call_without_an_id_is_answered_by_the_next_result_of_its_tool():
    call = called(1, "Bash", {})
    call["tool_calls"][0]["id"] = None

    assert pairs([call, result(2, call)]) == [(1, 2)]


def test_two_calls_with_one_id_are_answered_one_after_the_other():
    first, second = called(1, "Bash", {}, "same"), called(3, "Bash", {}, "same")

    assert pairs([first, result(2, first), second, result(4, second)]) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    ("name", "arguments", "summary"),
    [
        ("bash", {"command": "make\n  test", "timeout": 5}, "bash: make test"),
        ("shell", {"command": ["bash", "-lc", "make test"]}, "shell: make test"),
        ("shell", {"command": ["git", "commit", "-m", "a b"]}, "shell: git commit -m 'a b'"),
        ("edit", {"filePath": "src/a.py", "oldString": "x", "newString": "y"}, "edit src/a.py"),
        ("Read", {"file_path": "a b.txt", "limit": 10}, "Read a b.txt"),
        ("Grep", {"pattern": "def ", "path": "src"}, "Grep: def src"),
        ("webfetch", {"url": "https://example.org", "prompt": "read"}, "webfetch: https://example.org"),
        ("task", {"description": "Count files", "prompt": "long"}, "task: Count files"),
        (
            "todowrite",
            {"todos": [{"content": "A", "status": "completed"}, {"content": "B"}]},
            "todowrite: 1 of 2 done: A / B",
        ),
        ("update_plan", {"plan": [{"step": "A", "status": "pending"}]}, "update_plan: 0 of 1 done: A"),
        ("TaskUpdate", {"taskId": "3", "status": "completed"}, "TaskUpdate: #3 completed"),
        ("question", {"questions": [{"question": "Why?"}, {"question": "When?"}]}, "question: Why? / When?"),
        ("apply_patch", "*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n", "apply_patch a.py b.py"),
        ("other", {"a": [1, None]}, 'other: {"a":[1,null]}'),
        ("other", {}, "other"),
        ("other", None, "other"),
        ("bash", '{"command": "ls"}', "bash: ls"),
        ("bash", '{"command": "ls', 'bash: {"command": "ls'),
        ("other", 5, "other: 5"),
    ],
)
def test_a_call_on_one_line(name, arguments, summary):
    assert call_summary(name, arguments) == summary


@pytest.mark.parametrize(
    ("harness", "name", "arguments", "files"),
    [
        ("claude", "Read", {"file_path": "a"}, [("a", False)]),
        ("claude", "NotebookEdit", {"notebook_path": "a.ipynb"}, [("a.ipynb", True)]),
        ("opencode", "edit", {"filePath": "a"}, [("a", True)]),
        ("vibe", "write_file", {"path": "a", "content": ""}, [("a", True)]),
        ("codex", "view_image", {"path": "a.png"}, [("a.png", False)]),
        (
            "codex",
            "apply_patch",
            "*** Update File: a\n*** Move to: b\n*** Delete File: c d\n",
            [("a", True), ("b", True), ("c d", True)],
        ),
        ("codex", "apply_patch", {"changes": {"a": {"type": "add"}}}, [("a", True)]),
        ("opencode", "apply_patch", {"patchText": "*** Add File: a"}, [("a", True)]),
        ("codex", "shell", {"command": ["bash", "-lc", "apply_patch <<'E'\n*** Add File: a\nE\n"]}, [("a", True)]),
        ("codex", "shell", {"command": ["bash", "-lc", "echo apply_patch '*** Add File: a'"]}, []),
        ("claude", "Grep", {"path": "src"}, []),
        ("claude", "Read", {"file_path": None}, []),
        ("claude", "Read", {"file_path": ["a"]}, []),
        ("claude", "Read", None, []),
        ("claude", "Bash", {"command": "cat a"}, []),
    ],
)
def test_the_files_that_a_call_names(harness, name, arguments, files):
    assert list(files_of(harness, name, arguments)) == files


def test_a_patch_in_a_shell_call_of_an_old_codex_is_found():
    calls = answered(recorded("codex-patch-in-shell"), lambda harness, name: True)

    assert [file for call in calls for file in files_of("codex", call.name, call.arguments)] == [
        ("oldest-codex.txt", True)
    ]


KEYS = ["command", "cmd", "todos", "plan", "questions", "taskId", "subject", "path", "file_path", "pattern", "input"]
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats()
    | st.text(max_size=4)
    | st.just("*** Add File: a"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "changes", "status"]), inner),
    max_leaves=8,
)
TOOLS = ["Bash", "Read", "Write", "TodoWrite", "TaskCreate", "TaskUpdate", "AskUserQuestion", "Other"]


@given(st.sampled_from(TOOLS), anything, anything, st.booleans())
def test_arguments_and_results_of_any_shape_are_read_without_an_error(name, arguments, structured, as_text):
    """By every stream."""
    if as_text:
        arguments = orjson.dumps(arguments).decode()
    messages = ran(name, arguments, "text", tool_result=structured)
    row = {"harness": "claude", "session_id": "s1", "file_size": 0, "line_count": 0, "has_tantivy_index": False}

    summary = call_summary(name, arguments)
    list(files_of("claude", name, arguments))
    list(dialogue.said(messages, ["a"]))
    list(todos.events(messages, "claude", Notices()))
    for call in answered(messages, lambda harness, name: True):
        git.events(call)
    profiled(((m["id"], m) for m in messages), row | {"start_time": None, "end_time": None}, Notices())

    assert summary.startswith(name)
    assert "\n" not in summary


def test_arguments_nested_deeper_than_any_encoder_goes_are_read():
    deep = orjson.loads(b"[" * 900 + b"]" * 900)

    assert call_summary("other", deep).startswith("other: [[[")
    assert list(dialogue.said([called(1, "other", deep)], ["other"]))
