"""A run of an executable: how it is read, bounded, stopped, and what its end means to a model."""

import os
import sys
from functools import partial

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_client import FLOOD, RAW_MINIMUM, StandIns, gone, report, wait_for

from mcp_wrapper import answer, child
from mcp_wrapper.answer import answered
from mcp_wrapper.overflow import MARKER, MARKER_BYTES, Spool
from mcp_wrapper.tools import tools

HISTOGRAM = """
print("File: x\\nTotal bytes: 1\\nTotal lines: 1\\n\\nBucket Distribution:\\n\\n1-10 | 340 | ####")
"""


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """Executables beside the one that this process claims to be started from."""
    found = StandIns(tmp_path / "bin")
    found.does("tr-histogram", HISTOGRAM)
    monkeypatch.setattr(sys, "argv", [str(found.folder / "tr-mcp")])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return found


def call(name, **arguments):
    """The text of a tool's result; the tool's time limit is `seconds`."""
    tool = tools()[name]._replace(seconds=arguments.pop("seconds", 60))
    checked = tool.call({**RAW_MINIMUM.get(name, {}), **arguments})
    return anyio.run(answered, tool, checked)


# -- what an exit status means -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["list_sessions", "todo_history", "extract_by_type"])
def test_status_0_is_the_output_without_its_final_newline(stand_ins, name):
    stand_ins.does(tools()[name].command, "print('the answer')")

    assert call(name) == ("the answer", False)


@pytest.mark.parametrize("name", ["extract_qa_pairs", "she_said_he_said_action", "do_android_dream_of_electric_sheep"])
def test_status_1_is_no_match_where_something_is_looked_for(stand_ins, name):
    stand_ins.does(tools()[name].command, "print('0 of 5 sessions'); raise SystemExit(1)")

    assert call(name) == ("0 of 5 sessions", False)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("list_sessions", "print('half'); raise ValueError('broken')"),
        ("do_android_dream_of_electric_sheep", "raise ValueError('broken')"),
    ],
)
def test_a_crash_is_never_taken_for_no_match(stand_ins, name, code):
    stand_ins.does(tools()[name].command, code)

    assert call(name) == (f"{name}: ValueError: broken", True)


@pytest.mark.parametrize("status", [2, 4, 5, 6, 130, 3, 77])
def test_a_failure_is_the_commands_own_sentence_under_the_tools_name(stand_ins, status):
    code = "import sys; print('tr-list: a notice\\ntr-list: no session matching x', file=sys.stderr); sys.exit({})"
    stand_ins.does("tr-list", code.format(status))

    text, failed = call("list_sessions")

    assert failed
    assert text.startswith("list_sessions: ")
    assert text.endswith("no session matching x")
    assert ("a notice" in text) == (status == 3)
    assert "tr-list" not in text


def test_a_failure_says_fields_for_options(stand_ins):
    said = "tr-summarise: --from-id 3 is not the first unsummarised id - pass --from-id 7"
    stand_ins.does("tr-summarise", f"import sys; print({said!r}, file=sys.stderr); sys.exit(2)")

    assert call("summarise_from") == (
        "summarise_from: `from_id` 3 is not the first unsummarised id - pass `from_id` 7",
        True,
    )


def test_a_failure_without_a_word_is_still_one(stand_ins):
    stand_ins.does("tr-list", "raise SystemExit(4)")

    assert call("list_sessions") == ("list_sessions: the command ended with status 4 and gave no reason", True)


def test_a_killed_command_is_said_to_be_killed(stand_ins):
    stand_ins.does("tr-list", "import os; print('half', flush=True); os.kill(os.getpid(), 9)")

    assert call("list_sessions") == ("list_sessions: the command was killed by signal 9 (Killed)", True)


def test_a_missing_executable_is_named(stand_ins):
    (stand_ins.folder / "tr-list").unlink()
    text, failed = call("list_sessions")

    assert failed
    assert text.startswith(f"list_sessions: {stand_ins.folder / 'tr-list'} is missing")


def test_an_environment_too_large_to_start_anything_is_a_result(stand_ins, monkeypatch):
    for number in range(40):
        monkeypatch.setenv(f"FILLER_{number}", "x" * 100_000)
    text, failed = call("list_sessions")

    assert failed
    assert text == "list_sessions: tr-list cannot be run: Argument list too long"


# -- status 3: some of it could not be read ----------------------------------------------------------------------------

UNREAD = """
import sys
print({!r})
print("tr-x: cannot read s1: denied\\ntr-x: cannot read s2: gone", file=sys.stderr)
sys.exit(3)
"""


def unread(name, printed):
    return UNREAD.format(printed).replace("tr-x", tools()[name].command)


def test_what_could_not_be_read_stands_after_a_report(stand_ins):
    stand_ins.does("tr-todo", unread("todo_history", "one\ntwo"))

    assert call("todo_history") == ("one\ntwo\n# note: cannot read s1: denied\n# note: cannot read s2: gone", False)


def test_what_could_not_be_read_is_in_the_document(stand_ins):
    stand_ins.does("tr-cache", unread("summary_cache", '{"session_id":"s"}'))

    assert call("summary_cache") == (
        '{"session_id":"s","unreadable":["cannot read s1: denied","cannot read s2: gone"]}',
        False,
    )


def test_a_document_that_says_it_itself_is_left_alone(stand_ins):
    said = '{"unreadable":[{"session_id":"s1","error":"denied"}],"sessions":[]}'
    stand_ins.does("tr-list", unread("list_sessions", said))

    assert call("list_sessions") == (said, False)


def test_nothing_printed_and_something_unread_is_a_failure(stand_ins):
    stand_ins.does("tr-extract", unread("extract_messages", "x").replace("print('x')", ""))

    assert call("extract_messages") == ("extract_messages: cannot read s1: denied; cannot read s2: gone", True)


@pytest.mark.parametrize("most", [60, 100, 300, 2000])
def test_notes_are_within_the_bound_and_the_rest_is_counted(stand_ins, most):
    code = """
import sys
for n in range(500):
    print("line", n)
    print(f"tr-todo: cannot read session {n}: denied", file=sys.stderr)
sys.exit(3)
"""
    stand_ins.does("tr-todo", code)

    text, failed = call("todo_history", max_bytes=most)
    head = text[: text.index(MARKER)]

    assert not failed
    assert len(head.encode()) <= most
    assert head.startswith("line 0\n")
    assert most < 100 or " more\n" in head


@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.sampled_from([b"\n", b"\xff\n", f"{MARKER}\n".encode()])), max_size=12
    ),
    st.lists(st.text(max_size=40), max_size=30),
    st.integers(1, 300),
    st.sampled_from(sorted(answer._SHAPES)),
)
@settings(deadline=None)
def test_an_answer_and_its_notes_are_together_within_the_bound(chunks, notes, most, shape):
    spool = Spool(most, "property_all")
    spool.unkept = "no file for a property test"
    for chunk in chunks:
        spool.take(chunk)

    text, is_cut = answer._SHAPES[shape](spool, notes)

    assert len(text.encode("utf-8", "replace")) <= most
    assert not is_cut or text == "" or text.endswith("\n")


# -- floods ------------------------------------------------------------------------------------------------------------


def test_a_flood_is_cut_at_a_line_and_kept_whole(stand_ins, tmp_path):
    stand_ins.does("tr-todo", FLOOD)

    text, failed = call("todo_history", session_id="ses_1")
    head, _, facts = text.partition(MARKER)
    found = dict(line.split(": ", 1) for line in facts.split("\n\n")[0].strip().split("\n"))

    assert not failed
    assert len(head.encode()) <= 16_384
    assert head.split("\n")[:2] == ["line 0", "line 1"]
    assert head.endswith("\n")
    assert len((MARKER + facts).encode()) <= MARKER_BYTES
    assert found["tool"] == "todo_history"
    assert int(found["returned_bytes"]) == len(head.encode()) - 1
    assert found["total_lines"] == "5000"
    with open(found["full_report"]) as file:
        whole = file.read()
    assert int(found["total_bytes"]) == len(whole.encode()) - 1
    assert whole.startswith(head)
    assert os.path.basename(found["full_report"]).startswith("todo_history_ses_1_")
    assert "24 hours" in found["note"]
    assert "line_histogram" in found["note"]
    assert "mode: extract" in found["note"]
    assert text.endswith("Bucket Distribution:\n\n1-10 | 340 | ####")


def test_a_document_that_floods_is_the_marker_alone(stand_ins):
    stand_ins.does("tr-list", "print('{\"sessions\":[' + ','.join(['1'] * 20000) + ']}')")

    text, failed = call("list_sessions")

    assert not failed
    assert text.startswith(MARKER)
    assert "returned_bytes: 0\n" in text


def test_json_lines_are_cut_at_a_line_although_they_begin_with_a_brace(stand_ins):
    stand_ins.does("tr-histogram", "import json\nfor n in range(3000): print(json.dumps({'n': n}))")

    head = call("line_histogram", mode="extract", start=1, end=3000).text.partition(MARKER)[0]

    assert head.startswith('{"n": 0}\n{"n": 1}\n')
    assert head.endswith("}\n")


def test_an_answer_goes_on_when_the_histogram_cannot_be_had(stand_ins):
    stand_ins.does("tr-todo", FLOOD)
    stand_ins.does("tr-histogram", "raise SystemExit(2)")

    assert call("todo_history").text.endswith("histogram unavailable: tr-histogram ended with status 2")


def test_a_file_that_cannot_be_kept_costs_only_the_file(stand_ins, monkeypatch):
    stand_ins.does("tr-todo", FLOOD)
    monkeypatch.setenv("TMPDIR", "/proc")

    text, failed = call("todo_history")

    assert not failed
    assert text.startswith("line 0\nline 1\n")
    assert "\nfull_report: not kept - " in text
    assert "Bucket" not in text


def test_a_command_that_never_stops_printing_is_stopped(stand_ins, monkeypatch, tmp_path):
    monkeypatch.setattr("mcp_wrapper.overflow.MOST_KEPT", 1 << 20)
    stand_ins.does("tr-todo", report(tmp_path / "pid") + "while True: print('x' * 1000)")

    text, failed = call("todo_history")

    assert not failed
    assert "stopped when it had printed this much" in text
    assert gone(wait_for(tmp_path / "pid"))


def test_one_endless_line_is_no_harm(stand_ins):
    stand_ins.does("tr-todo", "import sys; sys.stdout.write('é' * 3_000_000)")

    head = call("todo_history", max_bytes=999).text.partition(MARKER)[0]

    assert head == "é" * 499 + "\n"


def test_a_flood_on_standard_error_blocks_nothing_and_keeps_its_end(stand_ins):
    code = "import sys\nfor n in range(40000): print('tr-list: chatter', n, file=sys.stderr)\n"
    stand_ins.does("tr-list", code + "print('tr-list: the reason', file=sys.stderr); print('out'); sys.exit(2)")

    assert call("list_sessions") == ("list_sessions: the reason", True)


def test_what_is_not_utf8_is_shown_as_replaced(stand_ins):
    stand_ins.does("tr-todo", "import sys; sys.stdout.buffer.write(b'a\\xffb\\xed\\xa0\\x80c')")

    text = call("todo_history").text

    assert text.replace("\ufffd", "") == "abc"
    text.encode()


def test_a_bound_of_an_extraction_holds_for_bytes_that_are_no_text(stand_ins):
    stand_ins.does("tr-raw", "import sys; sys.stdout.buffer.write(b'\\xff' * 50)")

    assert call("extract_by_type", max_bytes=50) == ("?" * 50, False)


def test_a_child_reads_nothing(stand_ins):
    stand_ins.does("tr-list", "import sys; print(repr(sys.stdin.read()))")

    assert call("list_sessions").text == "''"


# -- time, cancellation, and nobody left behind ------------------------------------------------------------------------


def with_grandchild(path, ignoring=False):
    """Code that starts a process of its own, says its number and goes on for ever."""
    trap = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" if ignoring else ""
    return f"""
import subprocess, sys, time
{trap}
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(path)!r}, "w").write(str(child.pid))
print("half", flush=True)
time.sleep(600)
"""


def cancel_once(path, name):
    """Call a tool, and cancel the call when the file is there."""
    tool = tools()[name]

    async def cancelled():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answered, tool, tool.call({}))
            with anyio.fail_after(60):
                while not (path.exists() and path.read_text()):
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    anyio.run(cancelled)


def test_a_time_limit_ends_the_command_and_all_it_started(stand_ins, tmp_path):
    stand_ins.does("tr-list", with_grandchild(tmp_path / "pid"))

    text, failed = call("list_sessions", seconds=3)

    assert failed
    assert text.startswith("list_sessions: no answer within 3 seconds, so the command was stopped")
    assert gone(wait_for(tmp_path / "pid"))


@pytest.mark.parametrize("ignoring", [False, True])
def test_cancelling_ends_the_command_and_all_it_started(stand_ins, tmp_path, ignoring):
    stand_ins.does("tr-list", with_grandchild(tmp_path / "pid", ignoring))
    cancel_once(tmp_path / "pid", "list_sessions")

    assert gone(wait_for(tmp_path / "pid"))


def test_a_command_may_tidy_up_when_it_is_stopped(stand_ins, tmp_path):
    stand_ins.does(
        "tr-index",
        f"""
import time
try:
    open({str(tmp_path / "pid")!r}, "w").write("1")
    time.sleep(600)
except KeyboardInterrupt:
    open({str(tmp_path / "tidy")!r}, "w")
""",
    )
    cancel_once(tmp_path / "pid", "index_sessions")

    assert (tmp_path / "tidy").exists()


def test_a_descendant_that_holds_the_output_open_is_ended_too(stand_ins, tmp_path):
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
print("done")
"""
    stand_ins.does("tr-list", code)
    cancel_once(tmp_path / "pid", "list_sessions")

    assert gone(wait_for(tmp_path / "pid"))


def test_cancelling_takes_the_overflow_file_back(stand_ins, tmp_path):
    folder = tmp_path / "total-recall"
    ready = f"\nsys.stdout.flush()\nwhile not os.path.isdir({str(folder)!r}): time.sleep(0.01)\n"
    stand_ins.does("tr-todo", f"import os, sys, time\n{FLOOD}{ready}{report(tmp_path / 'pid')}time.sleep(600)")
    cancel_once(tmp_path / "pid", "todo_history")

    assert list(folder.iterdir()) == []


def test_many_runs_at_once_each_get_their_own_output(stand_ins):
    stand_ins.does("tr-histogram", "import sys; print(sys.argv[-1] * 2000)")
    texts = {}

    async def one(number):
        chunks = []
        await child.run("tr-histogram", ["--", f"{number}."], lambda chunk: not chunks.append(chunk), 60)
        texts[number] = b"".join(chunks).decode()

    async def all_of_them():
        async with anyio.create_task_group() as tasks:
            for number in range(32):
                tasks.start_soon(partial(one, number))

    anyio.run(all_of_them)

    assert texts == {number: f"{number}." * 2000 + "\n" for number in range(32)}


def test_no_descriptor_is_left_open(stand_ins):
    def count():
        return len(os.listdir("/proc/self/fd"))

    async def several():
        tool = tools()["todo_history"]
        await answered(tool, tool.call({}))
        before = count()
        stand_ins.does("tr-todo", FLOOD)
        for _ in range(5):
            await answered(tool, tool.call({}))
        await anyio.sleep(0.1)
        return count() - before

    assert anyio.run(several) <= 0
