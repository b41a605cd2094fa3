"""The only writer of standard output: lines of records, at once when they come slowly, in blocks when they don't."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any

from .record import encoded

_BLOCK = 1 << 16
_SLOW = 0.005  # a line that was waited for longer than this, in seconds, is passed on at once


class OutputFailed(Exception):
    """Standard output cannot be written (a full disk, a closed descriptor)."""


def lines(records: Iterable[Any]) -> Iterator[bytes]:
    """Records as JSON lines."""
    return map(encoded, records)


def write(lines: Iterable[bytes], flush: bool = False, end: bytes = b"\n") -> int:
    """Print each line with `end`, and return how many there were; `flush` passes on every line at once.

    When the reader has gone the process dies of SIGPIPE, as a C program would. Raises OutputFailed.
    """
    waiting: list[bytes] = []
    size = count = 0
    before = 0.0
    for line in lines:
        count += 1
        waiting += (line, end)
        size += len(line) + 1
        now = monotonic()
        if flush or size >= _BLOCK or now - before > _SLOW:
            _put(b"".join(waiting))
            waiting.clear()
            size = 0
            now = monotonic()
        before = now
    _put(b"".join(waiting))
    return count


def write_text(text: str) -> None:
    """Print a text, ended by a newline."""
    try:
        data = text.encode("utf-8", "surrogateescape")  # a file is called what it is called
    except UnicodeEncodeError:
        data = text.encode("utf-8", "replace")
    _put(data + (b"" if text.endswith("\n") or not text else b"\n"))


def _put(data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(1, view) :]
        except BlockingIOError:
            # A reader that made the pipe non-blocking still gets every byte.
            select.select((), (1,), ())
        except BrokenPipeError:
            die_of_sigpipe()
        except OSError as error:
            if error.errno == errno.EINTR:
                continue
            raise OutputFailed(f"cannot write to standard output: {error.strerror}") from error


def die_of_sigpipe() -> None:
    """End as the shell expects of a filter whose reader has gone: silently, by the signal (status 141)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    os._exit(141)
