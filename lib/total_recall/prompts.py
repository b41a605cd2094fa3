"""Prompts: a stream of message records as text for a model, bounded in bytes, its newest part kept.

The wording is in `prompts/*.md`: the system message, a line `---`, and the user's, in which `$records` stands for the
records. Every text loses its terminal escapes, then its credentials, and is cut only then.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from string import Template
from typing import NamedTuple

from .output import encoded
from .record import Record, one_line
from .redact import redact_lines, redacted
from .terminal import clean

BUDGET = 204_800  # bytes of the user's message
RESULT_CHARACTERS = 500
TEXT_CHARACTERS = 1500
CALL_CHARACTERS = 500
_MARKER_BYTES = 256
_VERBATIM_BYTES = 16_384


class Prompt(NamedTuple):
    """What is sent, and what of the records is in it; `bytes` are those of `user`.

    `dropped_records` are not shown in full, and `dropped_bytes` of them not at all, measured as they would be shown.
    """

    system: str
    user: str
    records: int
    bytes: int
    dropped_records: int
    dropped_bytes: int

    @property
    def empty(self) -> bool:
        """Whether there was nothing to ask about."""
        return not (self.records or self.dropped_records)

    @property
    def tokens(self) -> int:
        """About how many tokens the user's message has."""
        return self.bytes // 4


def wording(name: str) -> str:
    """A text of the package's `prompts` folder."""
    with open(os.path.join(os.path.dirname(__file__), "prompts", f"{name}.md"), encoding="utf-8") as file:
        return file.read()


def summary(records: Iterable[Record], budget: int = BUDGET) -> Prompt:
    """Asks for the summary of a block."""
    return _asked("summary", records, budget)


def state(records: Iterable[Record], budget: int = BUDGET) -> Prompt:
    """Asks where the work stands."""
    return _asked("state", records, budget)


def _asked(name: str, records: Iterable[Record], budget: int) -> Prompt:
    question = _Question(name, "record", budget)
    for block in map(shown, records):
        if block:
            question.blocks.add(block)
    return question.prompt()


class Goals:
    """Asks for goals, tasks, steers and corrections, from the prompts among the records of a whole session.

    What the person typed is not cut but by the budget; each prompt has its ordinal, that of its line in tr-user.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self._question = _Question("goals", "message", budget)
        self._ordinal = 0

    def noted(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records as they are; the prompts among them are taken up as they pass."""
        for record in records:
            if is_typed(record):
                self._ordinal += 1
                self._question.blocks.add(f"{self._ordinal}. ({_where(record)})\n{_barred(_safe(record['content']))}")
            yield record

    def prompt(self) -> Prompt:
        return self._question.prompt()


def is_typed(record: Record) -> bool:
    """Whether a message is of the user role and not injected."""
    return record["role"] == "user" and not record["injected"]


class _Question:
    """A wording, and the blocks that will stand in it."""

    def __init__(self, name: str, noun: str, budget: int) -> None:
        system, _, user = wording(name).partition("\n---\n")
        self._system, self._frame = system.strip(), Template(user.strip())
        self._noun, self._budget = noun, budget
        self.blocks = Newest(budget - len(self._frame.substitute(records="").encode()) - _MARKER_BYTES)

    def prompt(self) -> Prompt:
        kept = self.blocks
        lines = kept.text().rstrip("\n")
        if kept.dropped_bytes:
            what = f"{kept.dropped} older {self._noun}{'s' * (kept.dropped != 1)}"
            lines = (
                f"[total-recall: {what} not shown in full, {kept.dropped_bytes} bytes dropped;"
                f" the newest are kept, and this prompt is held to {self._budget} bytes]\n{lines}"
            )
        text = self._frame.substitute(records=lines)
        size = len(text.encode("utf-8", "replace"))
        return Prompt(self._system, text, kept.whole, size, kept.dropped, kept.dropped_bytes)


class Newest:
    """The newest of the blocks added, whole, as many as fit into `room` bytes.

    A newest block that is larger by itself keeps its tail, cut at a character boundary.
    """

    def __init__(self, room: int) -> None:
        self._room = max(0, room)
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._seen = 0
        self._seen_bytes = 0
        self._cut = False

    def add(self, block: str) -> None:
        data = block.encode("utf-8", "replace") + b"\n"
        self._seen += 1
        self._seen_bytes += len(data)
        while self._kept and (self._cut or self._size + len(data) > self._room):
            self._size -= len(self._kept.popleft())
            self._cut = False
        if len(data) > self._room:
            self._cut = True
            data = data[len(data) - self._room :]
            data = data.lstrip(bytes(range(0x80, 0xC0)))
        self._kept.append(data)
        self._size += len(data)

    @property
    def whole(self) -> int:
        """How many blocks are there in full."""
        return len(self._kept) - self._cut

    @property
    def dropped(self) -> int:
        return self._seen - self.whole

    @property
    def dropped_bytes(self) -> int:
        return self._seen_bytes - self._size

    def text(self) -> str:
        return b"".join(self._kept).decode("utf-8", "replace")


# -- one record ------------------------------------------------------------------------------------------------


def shown(record: Record) -> str:
    """A record as a model sees it; "" for one with nothing to see, and for total-recall's own output.

    Who speaks is said by the line's first character, which no recorded text can have.
    """
    if record["class"] == "self":
        return ""
    result = record["role"] == "tool"
    text = _safe(record["content"])
    lines = [_barred(_cut(text, RESULT_CHARACTERS if result else TEXT_CHARACTERS))] if text.strip() else []
    lines += [_call(call["name"], call["arguments"]) for call in record["tool_calls"]]
    return "\n".join([f"{_where(record)} {_speaker(record)}", *lines]) if lines else ""


def _where(record: Record) -> str:
    return f"#{record['id']} {record['ts']}" if record["ts"] else f"#{record['id']}"


def _speaker(record: Record) -> str:
    words = [str(record["role"])]
    if record["role"] == "tool":
        words = ["result of", one_line(clean(record["tool_name"] or "a tool"))]
        words += ["(failed)"] if record["is_error"] else []
    elif record["class"] == "compaction":
        words = ["summary by the harness"]
    elif record["injected"]:
        words = ["text put in by the harness"]
    elif record["role"] == "user":
        words = ["the person"] if record["authorship"] == "human" else ["whoever delegated this"]
    if record.get("branch"):
        words.append(f"({record['branch']} branch)")
    return " ".join(words)


def _call(name: str, arguments: object) -> str:
    text = b"".join(redact_lines([encoded(arguments)])).decode("utf-8", "replace")
    return f"-> {one_line(clean(name))} {_cut(clean(text).replace(chr(10), ' '), CALL_CHARACTERS)}"


def _safe(text: str) -> str:
    return redacted(clean(text))


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters] + "…"


def _barred(text: str) -> str:
    return "\n".join(f"| {line}" for line in text.strip("\n").split("\n"))


# -- verbatim --------------------------------------------------------------------------------------------------


class Verbatim:
    """The person's last messages among the records that pass, word for word but for credentials."""

    def __init__(self) -> None:
        self._newest = Newest(_VERBATIM_BYTES)

    def noted(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records as they are; the prompts among them are kept when they are asked for."""
        for record in records:
            if is_typed(record) and record["content"].strip():
                text = _safe(record["content"]).strip("\n").replace("\n", "\n  > ")
                self._newest.add(f"- {_where(record)}\n  > {text}")
            yield record

    def section(self, heading: str) -> str:
        """The messages under a heading; "" when there are none."""
        if not (text := self._newest.text()):
            return ""
        dropped = self._newest.dropped
        note = f"\n{dropped} earlier or longer not shown in full.\n" if dropped else ""
        return f"{heading}\n{note}\n{text}"
