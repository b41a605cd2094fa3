"""Lines of JSON, forgiving: every byte of a damaged file that can still be read is read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import IO, Any

import orjson

from ..notices import Notices, Unreadable
from ..record import encoded, scrubbed
from ..regular import BUFFER, open_regular

_RECOVERY_TRIES = 1000
_LEAST = 4096


def open_session(path: str, buffer: int = BUFFER) -> IO[bytes]:
    """Open a session file, decompressed if its name ends in .zst; offsets are those of the plain text."""
    source = open_regular(path, buffer)
    if not path.endswith(".zst"):
        return source
    try:
        from ._zstd import Plain
    except ImportError as error:
        source.close()
        raise Unreadable(path, "compressed with zstd, and the Python package zstandard is missing") from error
    import io

    return io.BufferedReader(Plain(source), buffer)


def buffer_for(length: int) -> int:
    """What to read at a time of a file of which one line of so many bytes is wanted."""
    return min(max(length + 2, _LEAST), BUFFER)


class Lines:
    """The JSON lines of one file, from `offset` on.

    Iterating gives `(offset, line, value)` for each line that holds something: `value` is the object (a dict), or None
    where nothing could be made of it. `line` is always one line of JSON: the source's own bytes without the line end
    where they are that, else the value written anew, else the damaged text as a JSON string. The attribute `offset` is
    always the start of the next line to read, so it can be kept and read on from. `known` tells a whole record of this
    harness from a piece of one; it decides what may be recovered from a line on which a record is glued to the stub of
    a torn one.

    With `whole`, an unterminated last line is left for the next read, as it may still be growing, unless it is a whole
    object: nothing that could follow would change that. `buffer` is how much is read at a time: less than a whole
    buffer is wanted where only the first lines are.
    At the end one notice is said for all bad lines of the file.
    """

    def __init__(
        self,
        path: str,
        notices: Notices,
        known: Callable[[dict[str, Any]], bool],
        *,
        offset: int = 0,
        number: int = 0,
        whole: bool = False,
        buffer: int = BUFFER,
    ) -> None:
        self.path = path
        self.offset = offset
        self.number = number
        self._notices = notices
        self._known = known
        self._whole = whole
        self._buffer = buffer
        self._bad = 0
        self._first_bad = 0
        self._partial = False

    def __iter__(self) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
        source = open_session(self.path, self._buffer)
        try:
            if self.offset:
                source.seek(self.offset - 1)
                if source.read(1) not in (b"\n", b""):
                    self.number -= 1  # the rest of a line that was read without its end
            yield from self._lines(source)
        except (OSError, EOFError) as error:
            raise Unreadable(self.path, error) from error
        finally:
            source.close()
            self._report()

    def _lines(self, source: IO[bytes]) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
        loads = orjson.loads
        for line in source:
            start = self.offset
            ended = line.endswith(b"\n")
            if not ended and self._whole and not _is_object(line):
                return
            self.number += 1
            self.offset = start + len(line)
            line = line.rstrip(b"\r\n")
            if not line:
                continue
            try:
                value = loads(line)
            except ValueError:
                text = line.strip(b"\0 \t\r")
                if start == 0:
                    text = text.removeprefix(b"\xef\xbb\xbf").lstrip()
                if not text:
                    if line.strip(b" \t\r"):
                        self._count_bad()
                    continue
                value = parse(text, strict=True)
                if value is None:
                    value = parse(text)
                    if value is None:
                        yield from self._recovered(start, text, ended)
                        continue
                    text = encoded(value)
                line = text
            if isinstance(value, dict):
                yield start, line, value
            else:
                self._count_bad()
                yield start, line, None

    def _recovered(self, start: int, text: bytes, ended: bool) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
        found = False
        for piece, value in objects(text):
            if self._known(value):
                found = True
                yield start, piece, value
        if ended or found:
            self._count_bad()
        else:
            self._partial = True
        if not found:
            yield start, orjson.dumps(text.decode("utf-8", "replace")), None

    def _count_bad(self) -> None:
        self._bad += 1
        self._first_bad = self._first_bad or self.number

    def _report(self) -> None:
        if self._bad:
            lines = "1 damaged line" if self._bad == 1 else f"{self._bad} damaged lines"
            self._notices.say(f"{self.path}:{self._first_bad}: {lines}, this is the first; everything else was read")
        elif self._partial:
            self._notices.say(f"{self.path}:{self.number}: the last line is incomplete (still being written, or cut)")


def _is_object(line: bytes) -> bool:
    return line.rstrip().endswith(b"}") and isinstance(parse(line), dict)


def parse(text: bytes, strict: bool = False) -> Any:
    """The JSON value of a text that the fast parser refused, or None.

    Takes what JavaScript writes and damage leaves: lone surrogates and invalid UTF-8 become U+FFFD, numbers beyond
    all bounds null. Not `strict`, also what is not JSON: bare control characters inside a string, blanks of all kinds
    around the value, NaN and Infinity.
    """
    decoder, blanks = (_DECODER, " \t\r\n") if strict else (_LENIENT, None)
    try:
        return _clean(decoder.decode(text.decode("utf-8", "replace").strip(blanks)))
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _whole(text: str) -> float | None:
    return int(text) if len(text) < 400 else _finite(text)  # int() refuses thousands of digits


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=_no_constant)
_LENIENT = json.JSONDecoder(parse_float=_finite, parse_int=_whole, parse_constant=lambda _: None, strict=False)


def _clean(value: Any) -> Any:
    return orjson.loads(scrubbed(json.dumps(value, ensure_ascii=False)))


def objects(text: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Every complete JSON object on a damaged line, from left to right, with its own text."""
    string = text.decode("utf-8", "replace")
    position = string.find("{")
    for _ in range(_RECOVERY_TRIES):
        if position < 0:
            return
        try:
            value, end = _DECODER.raw_decode(string, position)
            cleaned = _clean(value)
        except (ValueError, RecursionError):
            position = string.find('{"', position + 1)
            continue
        if isinstance(value, dict):
            piece = string[position:end].encode("utf-8", "replace")
            yield piece, cleaned
        position = string.find("{", end)
