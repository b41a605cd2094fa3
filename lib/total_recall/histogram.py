"""Big files by line size and position, and single lines of them: awk/line_histogram.awk, run the same everywhere."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from .notices import Unreadable

_PROGRAM = "line_histogram.awk"
_CHUNK = 1 << 20
_NAME_WIDTH = 120
# Some awks end a line at a NUL byte. They are given another byte for it: to measure lines, any of the same size;
# to print them, one that is told from itself by an escape.
_ESCAPED = re.compile(b"\x01([\x01\x02])")


def histogram(
    path: str,
    *,
    line: int | None = None,
    start: int | None = None,
    end: int | None = None,
    awk: Sequence[str] = ("awk",),
) -> bytes:
    """The profile of a file, at most 2,000 bytes of ASCII but for its name; or its line `line`, or `start` to `end`.

    Raises ValueError, with a sentence, for a request that cannot be answered, and Unreadable.
    """
    variables = _checked(line, start, end)
    size, has_nul = _measured(path)
    variables += [f"size={size}", f"name={_name(path)}"]
    if not has_nul:
        return _run(awk, variables, path)
    printing = line is not None or start is not None
    with tempfile.NamedTemporaryFile(prefix="total-recall-", suffix=".txt") as copy:
        with open(path, "rb") as source:
            for chunk in iter(lambda: source.read(_CHUNK), b""):
                if printing:
                    chunk = chunk.replace(b"\x01", b"\x01\x01").replace(b"\0", b"\x01\x02")
                copy.write(chunk if printing else chunk.replace(b"\0", b"\x01"))
        copy.flush()
        found = _run(awk, variables, copy.name)
    return _ESCAPED.sub(lambda match: b"\x01" if match[1] == b"\x01" else b"\0", found) if printing else found


def _checked(line: int | None, start: int | None, end: int | None) -> list[str]:
    """The awk variables for the lines that are asked for. Raises ValueError."""
    for name, number in (("line", line), ("start", start), ("end", end)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be 1 or more, not {number} - lines are counted from 1")
    if line is not None and (start is not None or end is not None):
        raise ValueError("line is one line, start and end are a range - give one or the other")
    if line is not None:
        return [f"line={line}"]
    if start is None and end is None:
        return []
    if start is None or end is None:
        given, missing = ("end", "start") if start is None else ("start", "end")
        raise ValueError(f"{given} needs {missing} - a range is start and end, one line is line")
    if start > end:
        raise ValueError(f"start {start} is past end {end} - the first line of a range comes first")
    return [f"start={start}", f"end={end}"]


def _measured(path: str) -> tuple[int, bool]:
    """The size of a regular file, and whether there is a NUL byte in it."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb", buffering=0) as source:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ValueError(f"{path} is not a regular file - give a file")
            size, has_nul = 0, False
            for chunk in iter(lambda: source.read(_CHUNK), b""):
                size += len(chunk)
                has_nul = has_nul or b"\0" in chunk
            return size, has_nul
    except IsADirectoryError as error:
        raise ValueError(f"{path} is a directory - give a file") from error
    except FileNotFoundError as error:
        raise ValueError(f"no file at {path}: cannot histogram") from error
    except OSError as error:
        raise Unreadable(path, error) from error


def _name(path: str) -> str:
    """The path as the report calls it: its end, if it is long, without what could break a line or awk's -v."""
    name = "".join(c if c.isprintable() else "?" for c in path)
    while len(name.encode("utf-8", "replace")) > _NAME_WIDTH:
        name = "..." + name.removeprefix("...")[1:]
    return name.replace("\\", "\\\\")


def _run(awk: Sequence[str], variables: list[str], path: str) -> bytes:
    settings = [word for variable in variables for word in ("-v", variable)]
    # An absolute path begins with no dash and is called nothing that awk or the system has a meaning for.
    words = [*awk, *settings, "-f", os.path.join(folder(), _PROGRAM), os.path.abspath(path)]
    try:
        done = subprocess.run(words, capture_output=True, env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise ValueError("there is no awk on the PATH - install mawk, gawk, busybox or the original awk") from error
    if done.returncode == 0:
        return done.stdout
    reason = done.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
    raise ValueError(reason or f"awk ended with status {done.returncode}")


def folder() -> str:
    """Where the awk programs are: beside lib/ in a checkout, in share/total-recall/awk where it is installed.

    Raises ValueError when they are in neither place.
    """
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    places = [os.path.join(top, "awk"), os.path.join(sys.prefix, "share", "total-recall", "awk")]
    for place in places:
        if os.path.isfile(os.path.join(place, _PROGRAM)):
            return place
    import site

    place = os.path.join(site.getuserbase(), "share", "total-recall", "awk")
    if os.path.isfile(os.path.join(place, _PROGRAM)):
        return place
    raise ValueError(f"{_PROGRAM} is missing: looked in {', '.join([*places, place])} - install total-recall again")
