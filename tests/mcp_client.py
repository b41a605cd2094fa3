"""For the tests of the MCP server: stand-in executables, and a client that plain test functions can call."""

import json
import os
import stat
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters

from mcp_wrapper.tools import TABLE

ROOT = Path(__file__).parent.parent
MARKER = "--- [EOF-TRUNCATED] ---"

SERVER = f"""
import sys
sys.path.insert(0, {str(ROOT / "lib")!r})
from total_recall.commands.mcp import main
main()
"""

# Prints how it was called.
ECHO = """
import json, sys
print(json.dumps({"argv": sys.argv[1:], "stdin": sys.stdin.read()}))
"""

FLOOD = "for n in range(5000): print('line', n)"

# The least that each tool can be called with.
RAW_MINIMUM = {
    "she_said_he_said_action": {"words": ["x"]},
    "do_android_dream_of_electric_sheep": {"query": "x"},
    "message_context": {"id": 1},
    "summarise_from": {"from_id": 1},
    "line_histogram": {"file_path": "/x"},
}


class StandIns:
    """A folder of executables that do what a test says; at first each prints how it was called."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True)
        (folder / "tr-mcp").write_text(SERVER)
        for tool in TABLE:
            self.does(tool.command, ECHO)

    def does(self, name, code):
        """Let an executable run this Python code."""
        path = self.folder / name
        path.write_text(code)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


class Answered:
    """The result of a call."""

    def __init__(self, result):
        [block] = result.content
        self.text = block.text
        self.failed = result.is_error
        self.structured = result.structured_content

    @property
    def json(self):
        return json.loads(self.text)


class Connection:
    """A connected client whose calls wait for their answers."""

    def __init__(self, portal, client):
        self.portal = portal
        self.client = client

    def call(self, name, arguments=None, **options):
        return self.start(name, arguments, **options).result(60)

    def start(self, name, arguments=None, **options):
        """A call under way, as a future."""

        async def calling():
            return Answered(await self.client.call_tool(name, arguments, **options))

        return self.portal.start_task_soon(calling)

    def tools(self):
        return self.portal.call(self.client.list_tools).tools


@contextmanager
def connected(script, *words, env, mode="auto"):
    """A server started from `script`, and a client of it."""
    parameters = StdioServerParameters(command=sys.executable, args=[str(script), *words], env=env)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(parameters, mode=mode)) as client:
        yield Connection(portal, client)


def alive(pid):
    """Whether a process is there and has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return not os.path.isdir("/proc/self")


def wait_for(path, seconds=20):
    """The number that a stand-in writes once it runs."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text()).strip():
            return int(text)
        time.sleep(0.01)
    pytest.fail(f"{path} was never written")


def gone(pid, seconds=20):
    """Whether a process ends soon."""
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(pid)


def report(path):
    """Code that says in a file which process runs it."""
    return f"import os, sys, time\nopen({str(path)!r}, 'w').write(str(os.getpid()))\n"
