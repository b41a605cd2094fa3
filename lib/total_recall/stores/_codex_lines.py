"""The lines of a Codex session file: their envelope, and a look at those to come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..notices import Unreadable
from ..record import Record
from ._codex_files import Document, is_bare_meta
from ._codex_items import ITEMS
from ._jsonl import Lines

_AHEAD_LINES = 64
_AHEAD_BYTES = 1 << 20


def unwrapped(value: Record | None) -> tuple[str | None, Record]:
    """(type, payload) of a line; 0.20.0 writes session_meta and response items without an envelope."""
    if value is None:
        return None, {}
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(payload, dict):
        return kind if isinstance(kind, str) else None, payload
    if is_bare_meta(value):
        return "session_meta", value
    return "response_item" if isinstance(kind, str) and kind in ITEMS else None, value


class Line:
    """One JSON line: where it begins and ends in its file, its text, its object (None when damaged), its number.

    `kind` and `payload` are what is in its envelope.
    """

    __slots__ = ("end", "kind", "number", "payload", "start", "text", "value")

    def __init__(self, start: int, text: bytes, value: Record | None, end: int, number: int) -> None:
        self.start = start
        self.text = text
        self.value = value
        self.end = end
        self.number = number
        self.kind, self.payload = unwrapped(value)


class Ahead:
    """The lines of one file, with a look at those to come. Damage that the look meets is raised in its turn."""

    def __init__(self, source: Lines | Document) -> None:
        self._lines = self._read(source)
        self._waiting: deque[Line] = deque()
        self._ended = False
        self._error: Unreadable | None = None

    def __iter__(self) -> Iterator[Line]:
        waiting, lines = self._waiting, self._lines
        while line := waiting.popleft() if waiting else next(lines, None):
            yield line
        if self._error:
            raise self._error

    def peek(self) -> Iterator[Line]:
        """The lines to come, as far as a look may go."""
        size = place = 0
        while place < _AHEAD_LINES and size < _AHEAD_BYTES:
            if place == len(self._waiting):
                line = next(self._lines, None)
                if line is None:
                    return
                self._waiting.append(line)
            line = self._waiting[place]
            yield line
            place += 1
            size += len(line.text)

    def is_last(self, seen: int) -> bool:
        """Whether a look that saw so many lines saw all there are."""
        return self._ended and seen == len(self._waiting)

    def _read(self, source: Lines | Document) -> Iterator[Line]:
        try:
            for start, text, value in source:
                yield Line(start, text, value, source.offset, source.number)
        except Unreadable as error:
            self._error = error
        self._ended = True
