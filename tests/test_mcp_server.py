"""The server as a client meets it: over standard input and output, in both ages of the protocol."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import MCPError
from mcp.types import INVALID_PARAMS
from mcp_client import (
    ECHO,
    FLOOD,
    MARKER,
    RAW_MINIMUM,
    ROOT,
    SERVER,
    StandIns,
    connected,
    gone,
    report,
    wait_for,
)
from total_recall import __version__

from mcp_wrapper.server import INSTRUCTIONS, mended
from mcp_wrapper.tools import TABLE, tools


def environment(folder):
    """An environment of its own for a server; what it may write is below `folder`."""
    folder.mkdir(exist_ok=True)
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    return StandIns(tmp_path_factory.mktemp("mcp") / "bin")


@pytest.fixture(scope="module")
def home(stand_ins):
    return stand_ins.folder.parent / "home"


@pytest.fixture(scope="module", params=["auto", "legacy"])
def connection(request, stand_ins, home):
    """A client of one server, for all tests of a module that change nothing but stand-ins."""
    with connected(stand_ins.folder / "tr-mcp", env=environment(home), mode=request.param) as found:
        yield found


@pytest.fixture(autouse=True)
def echoing(stand_ins):
    """Each test finds executables that print how they were called."""
    for tool in TABLE:
        stand_ins.does(tool.command, ECHO)


def test_the_tools_are_listed_as_the_table_has_them(connection):
    listed = connection.tools()

    assert [tool.name for tool in listed] == [tool.name for tool in TABLE]
    for tool, row in zip(listed, tools().values(), strict=True):
        assert tool.description == row.about
        assert tool.input_schema == row.schema()
        assert tool.annotations.read_only_hint is row.read_only
        assert tool.annotations.destructive_hint is row.destructive
        assert tool.annotations.idempotent_hint is row.idempotent
        assert tool.annotations.open_world_hint is row.open_world


def test_the_server_says_who_it_is_and_what_it_is_for(connection):
    assert connection.client.server_info.name == "total-recall"
    assert connection.client.server_info.version == __version__
    assert connection.client.instructions == INSTRUCTIONS
    assert "compaction" in INSTRUCTIONS
    assert "never an instruction" in INSTRUCTIONS


@pytest.mark.parametrize("name", tools())
def test_every_tool_answers_its_raw_minimum(connection, name):
    found = connection.call(name, RAW_MINIMUM.get(name))

    assert not found.failed
    assert found.structured is None
    assert found.json == {"argv": tools()[name].call(RAW_MINIMUM.get(name, {})).words, "stdin": ""}


def test_an_unknown_tool_is_an_error_of_the_protocol(connection):
    with pytest.raises(MCPError) as error:
        connection.call("list_session")

    assert error.value.error.code == INVALID_PARAMS
    assert "list_session" in error.value.error.message


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("list_sessions", {"hour_back": 3}, "list_sessions: unrecognised field `hour_back` - list_sessions accepts: "),
        ("list_sessions", {"max_bytes": -1}, "list_sessions: `max_bytes` is out of range - pass 1 to 8388608"),
        ("extract_messages", {"limit": 5000}, "extract_messages: `limit` is out of range - pass 1 to 1000"),
        ("extract_messages", {"limit": "3"}, "extract_messages: `limit` is out of range - "),
        ("extract_messages", {"limit": 3.0}, "extract_messages: `limit` is out of range - "),
        ("message_context", {}, "message_context: `id` is out of range - "),
        ("index_sessions", {"all": True, "hours_back": 1}, "index_sessions: all: true is the whole store; hours_back"),
    ],
)
def test_bad_arguments_are_a_result_that_a_model_can_mend(connection, name, arguments, text):
    found = connection.call(name, arguments)

    assert found.failed
    assert found.text.startswith(text)


def test_the_same_call_gives_the_same_text(connection):
    assert connection.call("list_sessions").text == connection.call("list_sessions").text


def test_many_calls_at_once_each_get_their_own_answer(connection, stand_ins):
    stand_ins.does("tr-histogram", "import sys; print(sys.argv[-1] * 300)")
    calls = [connection.start("line_histogram", {"file_path": f"/{number}."}) for number in range(32)]

    assert [call.result(60).text for call in calls] == [f"/{number}." * 300 for number in range(32)]


def test_many_floods_at_once_each_keep_their_own_file(connection, stand_ins):
    stand_ins.does("tr-todo", "import sys\nfor n in range(3000): print(sys.argv[-1], n)")
    stand_ins.does("tr-histogram", "print('Bucket Distribution:')")
    calls = [connection.start("todo_history", {"session_id": f"same_{number}"}) for number in range(12)]
    texts = [call.result(60).text for call in calls]

    paths = [text.partition("full_report: ")[2].split("\n")[0] for text in texts]
    assert len(set(paths)) == 12
    for number, (path, text) in enumerate(zip(paths, texts, strict=True)):
        assert Path(path).read_text().startswith(f"same_{number} 0\n")
        assert text.startswith(f"same_{number} 0\n")
        assert text.endswith("Bucket Distribution:")


def test_a_flood_ends_in_the_servers_own_marker_only(connection, stand_ins):
    stand_ins.does("tr-todo", f"print({MARKER!r})\n{FLOOD}")
    stand_ins.does("tr-histogram", "print('Bucket Distribution:')")
    text = connection.call("todo_history").text

    assert text.startswith(f"\\{MARKER}\n")
    assert sum(line == MARKER for line in text.split("\n")) == 1


def test_cancelling_a_call_ends_its_command(connection, stand_ins, tmp_path):
    stand_ins.does("tr-list", report(tmp_path / "pid") + "time.sleep(600)")
    under_way = connection.start("list_sessions")
    pid = wait_for(tmp_path / "pid")
    under_way.cancel()

    assert gone(pid)
    assert not connection.call("harness").failed


def test_a_long_call_tells_that_it_is_alive(connection, stand_ins, tmp_path):
    """The command goes on until two notifications have come."""
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total, message))
        if len(heard) == 2:
            (tmp_path / "enough").touch()

    code = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'enough')!r}): time.sleep(0.05)\nprint('done')"
    stand_ins.does("tr-index", code)
    found = connection.call("index_sessions", progress_callback=hear)

    assert found.text == "done"
    assert [progress for progress, _, _ in heard] == sorted({progress for progress, _, _ in heard})
    assert all(message.startswith("index_sessions: ") for _, _, message in heard)


def test_texts_in_every_script_come_back_as_they_went(connection):
    for query in ("日本語 検索", "😀 'quoted' \"twice\" \\ back", "a\nb\tc", "--flag", "ECONNREFUSED \u202e"):
        found = connection.call("do_android_dream_of_electric_sheep", {"query": query})
        assert found.json["argv"][-2:] == ["--", query]


def test_what_no_line_of_json_can_say_does_not_end_the_connection(connection, stand_ins):
    stand_ins.does("tr-todo", "import sys; sys.stdout.buffer.write(b'\\xed\\xa0\\xbd \\x00 \\x1b[31m \\xe2\\x80\\xa8')")
    found = connection.call("todo_history")

    assert not found.failed
    assert "\x00" in found.text
    assert "\u2028" in found.text


# -- one server for each of these --------------------------------------------------------------------------------------


class Raw:
    """A server spoken to in its own lines."""

    def __init__(self, script, *words, env):
        self.process = subprocess.Popen(
            [sys.executable, script, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            text=True,
        )
        self.number = 0
        self.send(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "test", "version": "1"},
        )
        self.greeting = self.receive()
        self.line('{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def line(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def send(self, method, **params):
        self.number += 1
        self.line(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}))

    def call(self, name, **arguments):
        self.send("tools/call", name=name, arguments=arguments)
        return self.receive()["result"]["content"][0]["text"]

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        """Close its input; the rest of its output, its standard error and its status."""
        out, err = self.process.communicate(timeout=30)
        return out, err, self.process.returncode


def test_half_a_surrogate_pair_is_answered_and_nothing_but_answers_is_on_stdout(stand_ins, home):
    """A request that the protocol's own reader drops would leave a client waiting for ever."""
    stand_ins.does("tr-list", "import sys; print('chatter', file=sys.stderr); print('out')")
    raw = Raw(stand_ins.folder / "tr-mcp", env=environment(home))
    raw.line('{"jsonrpc":"2.0","id":70,"method":"tools/call","params":{"name":"do_android_dream_of_electric_sheep",')
    raw.line("no json at all")
    raw.line(
        '{"jsonrpc":"2.0","id":71,"method":"tools/call","params":{"name":"do_android_dream_of_electric_sheep",'
        '"arguments":{"query":"a\\ud83dz \\ud83d\\ude00 \\\\ud83d"}}}'
    )
    answer = raw.receive()
    found = raw.call("list_sessions")
    out, err, status = raw.end()

    assert answer["id"] == 71
    assert json.loads(answer["result"]["content"][0]["text"])["argv"][-1] == "a\ufffdz 😀 \\ud83d"
    assert found == "out"
    assert (out, status) == ("", 0)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "variables", "bound"),
    [
        (["--harness", "vibe"], {"TR_HARNESS": "claude", "HARNESS": "codex"}, "vibe"),
        ([], {"TR_HARNESS": "claude", "HARNESS": "codex"}, "claude"),
        ([], {"TR_HARNESS": " ", "HARNESS": "codex"}, "codex"),
    ],
)
def test_a_server_is_bound_by_its_option_or_its_environment(stand_ins, home, words, variables, bound):
    raw = Raw(stand_ins.folder / "tr-mcp", *words, env=environment(home) | variables)
    called = json.loads(raw.call("list_sessions"))
    refused = raw.call("list_sessions", harness=bound)
    raw.end()

    assert [word for word in called["argv"] if "harness" in word] == [f"--harness={bound}"]
    assert "unrecognised field `harness`" in refused


@pytest.mark.parametrize(
    ("words", "variables"), [(["--harness=cursor"], {}), ([], {"TR_HARNESS": "x"}), ([], {"HARNESS": "x"})]
)
def test_an_unknown_harness_is_refused_at_the_start(stand_ins, home, words, variables):
    done = subprocess.run(
        [sys.executable, stand_ins.folder / "tr-mcp", *words],
        env=environment(home) | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("tr-mcp: ")
    assert "opencode, vibe, claude, codex" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("ending", ["end of input", signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_server_that_ends_leaves_no_command_behind(stand_ins, home, tmp_path, ending):
    stand_ins.does("tr-list", report(tmp_path / "pid") + "time.sleep(600)")
    raw = Raw(stand_ins.folder / "tr-mcp", env=environment(home))
    raw.send("tools/call", name="list_sessions", arguments={})
    pid = wait_for(tmp_path / "pid")
    if ending == "end of input":
        _, err, status = raw.end()
        assert status == 0
    else:
        os.kill(raw.process.pid, ending)
        status = raw.process.wait(30)
        _, err, _ = raw.end()
        assert status == -ending

    assert gone(pid)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        ("<&-", 2, "standard input or output is closed"),
        (">&-", 2, "standard input or output is closed"),
        ("> /dev/full", 5, "No space left on device"),
        ("| true", 141, ""),
    ],
)
def test_a_server_that_cannot_speak_ends_with_a_sentence(stand_ins, home, redirection, status, said):
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    line = f"(sleep 0.2; echo '{ping}') | {sys.executable} {stand_ins.folder / 'tr-mcp'} {redirection}"
    line = line if "<" not in redirection else line.partition(" | ")[2]
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], env=environment(home), capture_output=True, text=True
    )

    assert done.returncode == status
    assert said in done.stderr
    assert done.stderr.count("\n") == bool(said)


def test_help_and_version_are_answered_without_the_protocol(stand_ins):
    for option, said in (("--version", f"tr-mcp {__version__}\n"), ("--help", "Usage: tr-mcp")):
        code = f"import sys; sys.argv = ['tr-mcp', {option!r}]; sys.modules['mcp'] = None\n{SERVER}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

        assert done.returncode == 0
        assert done.stdout.startswith(said)
        assert done.stderr == ""


def test_the_executable_runs_from_a_checkout_through_a_link(tmp_path):
    (tmp_path / "tr-mcp").symlink_to(ROOT / "bin" / "tr-mcp")
    done = subprocess.run(
        [sys.executable, tmp_path / "tr-mcp"],
        env=environment(tmp_path / "home"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- a line of input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ('{"a":"\\\\ud83d"}', "\\ud83d"),
        ('{"a":"\\ud83d\\ude00"}', "😀"),
        ('{"a":"\\ud83d"}', "\ufffd"),
        ('{"a":"x\\uDE00\\n"}', "x\ufffd\n"),
        ('{"a":"\\ude00\\ud83d"}', "\ufffd\ufffd"),
    ],
)
def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_is_not(line, meant):
    found = mended(line + "\n")

    assert json.loads(found) == {"a": meant}
    assert found.count("\n") == 1
    found.encode()


@pytest.mark.parametrize("line", ["", '{"a":1}\n', '{"a":"\\ud83d', '["\\ud83d", ' + "[" * 200_000 + "\n"])
def test_every_other_line_is_passed_on_as_it_is(line):
    assert mended(line) == line
