"""tr-mcp: the MCP server on standard input and output."""

from __future__ import annotations

import os
import sys

from ..command import Failure, Run, complain, executable, harness_option, options
from ..output import die_of_sigpipe
from ..stores.registry import HARNESSES


@executable("tr-mcp")
@options(harness_option)
def main(run: Run, harnesses: tuple[str, ...]) -> int | None:
    """Serve the sessions of coding agents to an agent, by the Model Context Protocol on stdin and stdout."""
    names = harnesses or _named(run, "TR_HARNESS") or _named(run, "HARNESS")
    if sys.stdin is None or sys.stdout is None:
        raise Failure("standard input or output is closed - an MCP client holds both")
    if sys.stdin.isatty():
        complain(run.name, "waiting for an MCP client on standard input - see man tr-mcp for how to register it")

    _find_wrapper()
    from mcp_wrapper.server import serve

    try:
        serve(tuple(dict.fromkeys(names)))
    except BrokenPipeError:
        die_of_sigpipe()
    return None


def _named(run: Run, variable: str) -> tuple[str, ...]:
    """The harnesses that an environment variable names. Raises Failure for one that is not known."""
    names = tuple(run.environ.get(variable, "").replace(",", " ").split())
    for name in names:
        if name not in HARNESSES:
            raise Failure(f"unknown harness {name!r} in ${variable} - known: {', '.join(HARNESSES)}")
    return names


def _find_wrapper() -> None:
    """In a checkout mcp_wrapper stands beside lib/; installed, it stands beside total_recall."""
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    if os.path.isfile(os.path.join(root, "mcp_wrapper", "server.py")):
        sys.path.append(root)
