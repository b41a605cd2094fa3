"""The texts of a message: what is indexed, what is searched, what a snippet is cut from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .record import Record, encoded
from .stores.tools import is_own

# Of a longer tool output the beginning and the end are indexed, in characters.
OUTPUT_HEAD, OUTPUT_TAIL = 48 * 1024, 16 * 1024


class Passage(NamedTuple):
    """One text of a message with its class; `cut` when some of it was left out."""

    kind: str
    text: str
    cut: bool = False


def passages(message: Record) -> list[Passage]:
    """The texts of a message that a search looks through, one for each class.

    None for what a fork or resume copied, and for the calls and results of our own tools.
    """
    if message["class"] == "self" or message.get("replayed"):
        return []
    found = []
    if content := message["content"]:
        cut = message["role"] == "tool" and len(content) > OUTPUT_HEAD + OUTPUT_TAIL
        if cut:
            content = f"{content[:OUTPUT_HEAD]}\n{content[-OUTPUT_TAIL:]}"
        found.append(Passage(message["class"], content, cut))
    if thinking := message["thinking"]:
        found.append(Passage("reasoning", thinking))
    if calls := [text for call in message["tool_calls"] if (text := _call(message["harness"], call))]:
        found.append(Passage("tool-input", "\n".join(calls)))
    return found


def searched(message: Record) -> list[Passage]:
    """The same texts uncut, arguments as JSON text: what a complete scan tests."""
    if message["class"] == "self" or message.get("replayed"):
        return []
    found = []
    if message["content"]:
        found.append(Passage(message["class"], message["content"]))
    if message["thinking"]:
        found.append(Passage("reasoning", message["thinking"]))
    found += [
        Passage("tool-input", f"{call['name']} {_written(call['arguments'])}")
        for call in message["tool_calls"]
        if not is_own(message["harness"], call["name"], call["arguments"])
    ]
    return found


def _call(harness: str, call: Record) -> str:
    if is_own(harness, call["name"], call["arguments"]):
        return ""
    return "\n".join((call["name"], *_values(call["arguments"])))


def _values(value: Any) -> Iterator[str]:
    """The texts in a JSON value; the keys are the tool's words, not the model's."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _values(member)
    elif isinstance(value, list):
        for member in value:
            yield from _values(member)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else encoded(value).decode()
