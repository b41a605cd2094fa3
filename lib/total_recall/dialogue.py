"""HE SAID, SHE SAID, THEY DID: where words occur in what was said, and in what tools were told to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .calls import call_summary
from .record import Record
from .stores.tools import is_own

TEXT_BYTES = 1500
_CUT = "…"


class NoWords(ValueError):
    """There is nothing to look for."""


def terms(words: Iterable[str]) -> list[str]:
    """The words to look for, each once, without the empty ones. Raises NoWords when none is left."""
    found = list(dict.fromkeys(word for word in words if word.strip()))
    if not found:
        raise NoWords("no words to look for - give one or more, as in --words deploy,rollback")
    return found


def said(messages: Iterable[Record], words: Iterable[str]) -> Iterator[Record]:
    """The texts and tool calls in which any of `words` occurs, whatever the case of letters.

    `he` is the person, `she` the assistant (what an orchestrator tells a sub-agent is composed by the assistant),
    `they` a tool call, matched by its name and the values of its arguments, never by its output. Injected text,
    summaries, thinking, copies of earlier sessions' records and calls of total-recall itself are passed over, and so
    is a call that repeats the hit before it. A text longer than 1,500 bytes is cut at a character, with what
    matched in sight. Raises NoWords.
    """
    wanted = [(word, word.casefold()) for word in terms(words)]
    last: tuple[str, str, str] | None = None
    for record in messages:
        if record.get("replayed") or record["class"] in ("self", "command", "compaction"):
            continue
        if (who := _speaker(record)) and (matched := _matched(record["content"], wanted)):
            yield _hit(record, who, record["content"], matched)
        for call in record["tool_calls"]:
            name, arguments = call["name"], call["arguments"]
            matched = _matched(f"{name}\n{_values(arguments)}", wanted)
            if not matched or is_own(record["harness"], name, arguments):
                continue
            text = call_summary(name, arguments)
            this = (record["session_id"], text, _values(arguments))
            if this != last:
                yield _hit(record, "they", text, matched)
            last = this


def _speaker(record: Record) -> str | None:
    if not record["content"]:
        return None
    if record["authorship"] == "human" and record["role"] == "user":
        return "he"
    if record["authorship"] == "delegated" or (record["authorship"] == "model" and record["role"] == "assistant"):
        return "she"
    return None


def _matched(text: str, wanted: list[tuple[str, str]]) -> list[str]:
    folded = text.casefold()
    return [word for word, form in wanted if form in folded]


def _values(arguments: Any) -> str:
    """The values among a call's arguments as text, one a line; the names of arguments are the tool's, not a saying."""
    texts: list[str] = []
    waiting = [arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += reversed(value.values())
        elif isinstance(value, list):
            waiting += reversed(value)
        elif value is not None:
            texts.append(value if isinstance(value, str) else str(value))
    return "\n".join(texts)


def _hit(record: Record, who: str, text: str, matched: list[str]) -> Record:
    return {
        "harness": record["harness"],
        "session_id": record["session_id"],
        "id": record["id"],
        "ts": record["ts"],
        "who": who,
        "text": cut(text, matched),
        "matched": matched,
    }


def cut(text: str, words: Iterable[str], size: int = TEXT_BYTES) -> str:
    """At most `size` UTF-8 bytes of a text, whole characters, `…` where something was left out.

    The beginning, unless none of `words` would be in it: then as much on both sides of the first of them.
    """
    if len(text) <= size // 4 or len(text.encode("utf-8", "replace")) <= size:
        return text
    room = size - len(_CUT.encode())
    head = _within(text, room)
    start, end = _first(text, words)
    if end <= len(head):
        return head + _CUT
    room -= len(_CUT.encode())
    around = room - len(text[start:end].encode("utf-8", "replace"))
    if around <= 0:
        return _CUT + _within(text[start:], room) + _CUT
    before = _within(text[max(0, start - around) : start][::-1], around // 2)[::-1]
    after = _within(text[start:], room - len(before.encode("utf-8", "replace")))
    if start + len(after) == len(text):  # the rest of the room goes to what stands before
        before = _within(text[:start][::-1], room + len(_CUT.encode()) - len(after.encode("utf-8", "replace")))[::-1]
        return _CUT + before + after
    return _CUT + before + after + _CUT


def _within(text: str, size: int) -> str:
    """As many characters from the front as fit into `size` bytes."""
    return text[:size].encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def _first(text: str, words: Iterable[str]) -> tuple[int, int]:
    """Where the first of the words stands in the text, in characters; (0, 0) if none does."""
    folded = text.casefold()
    found = [(at, at + len(form)) for word in words if (at := folded.find(form := word.casefold())) >= 0]
    if not found:
        return 0, 0
    start, end = min(found)
    if len(folded) == len(text):
        return start, end
    # Folding makes some characters longer: count back to those of the text.
    place = 0
    begin = None
    for number, character in enumerate(text):
        place += len(character.casefold())
        if begin is None and place > start:
            begin = number
        if place >= end:
            return begin if begin is not None else number, number + 1
    return 0, 0
