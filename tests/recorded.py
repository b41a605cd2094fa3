"""Message records for the tests of the streams: those of real sessions, and such as a test makes up."""

import orjson
from sample import ROOT
from total_recall import record


def recorded(name):
    """The message records of a real session (see streams_data/README.md)."""
    lines = (ROOT / "tests" / "streams_data" / f"{name}.jsonl").read_bytes().splitlines()
    return [orjson.loads(line) for line in lines]


def said(number, content, role="user", authorship="human", harness="claude", **known):
    """A text that somebody wrote."""
    return record.message(
        harness, "s1", number, role, f"2026-11-30T10:00:{number % 60:02}.000Z", content, authorship=authorship, **known
    )


def called(number, name, arguments, call_id="", harness="claude", **known):
    """A message with one tool call."""
    call = record.tool_call(call_id or f"call-{number}", name, arguments)
    return said(number, "", "assistant", "model", harness, tool_calls=[call], **known)


def result(number, call, content="", is_error=False, **known):
    """The answer to the call of a message."""
    made = call["tool_calls"][0]
    known = {"tool_call_id": made["id"], "tool_name": made["name"], "is_error": is_error} | known
    return said(number, content, "tool", "tool", call["harness"], **known)


def ran(name, arguments, content="", is_error=False, harness="claude", number=1, **known):
    """A call and its result."""
    call = called(number, name, arguments, harness=harness)
    return [call, result(number + 1, call, content, is_error, **known)]
