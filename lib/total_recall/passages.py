"""The texts of a message: what is indexed, what is searched, what a snippet is cut from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .analysis import LONGEST
from .record import Record, encoded
from .stores.tools import is_own

# Of a longer tool output the beginning and the end are indexed, in characters.
OUTPUT_HEAD, OUTPUT_TAIL = 48 * 1024, 16 * 1024


class Passage(NamedTuple):
    """One text of a message with its class, and what was left out of it, with the words at either end."""

    kind: str
    text: str
    left_out: str = ""

    @property
    def cut(self) -> bool:
        return bool(self.left_out)


def passages(message: Record) -> list[Passage]:
    """The texts of a message that a search looks through, one for each class.

    None for what a fork or resume copied, and for the calls and results of our own tools.
    """
    if message["class"] == "self" or message.get("replayed"):
        return []
    found = []
    if content := message["content"]:
        left_out = ""
        if message["role"] == "tool" and len(content) > OUTPUT_HEAD + OUTPUT_TAIL:
            left_out = content[OUTPUT_HEAD - LONGEST : LONGEST - OUTPUT_TAIL]
            content = f"{content[:OUTPUT_HEAD]}\n{content[-OUTPUT_TAIL:]}"
        found.append(Passage(message["class"], content, left_out))
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
        yield encoded(value).decode()


def keys(value: Any) -> Iterator[str]:
    """The names of arguments, at every depth of a JSON value."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield key
            if isinstance(member, dict | list):
                yield from keys(member)
    elif isinstance(value, list):
        for member in value:
            if isinstance(member, dict | list):
                yield from keys(member)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else encoded(value).decode()
