"""What a run of an executable means to a model: its output within the bound, or why there is none."""

from __future__ import annotations

import os
import re
import signal
from typing import NamedTuple

import orjson

from . import child
from .child import COMPLAINT_BYTES, Ended
from .overflow import Cut, Spool, marker, prune, report_name
from .tool import Call, Tool

UNREAD = 3  # some of what was asked for could not be read
NOTE_BYTES = 1024
_NAMED = 5  # how many things that could not be read a failure names
HISTOGRAM_BYTES = 8192
HISTOGRAM_SECONDS = 10.0

_KEPT = (
    "overflow files older than 24 hours are pruned on every capped call; page this one with line_histogram"
    " (file_path, mode: extract, start, end), or narrow the request"
)


class Text(NamedTuple):
    """The text of a tool's result, and whether the call failed."""

    text: str
    failed: bool = False


async def answered(tool: Tool, call: Call) -> Text:
    """Run the command of a checked call and make the result of it."""
    prune()
    spool = Spool(call.max_bytes, report_name(tool.name, call.scope))
    text = None
    try:
        text = await _answered(tool, call, spool)
    except OSError as error:
        text = Text(f"{tool.name}: {tool.command} cannot be run: {error.strerror or error}", failed=True)
    finally:
        if text is None or text.failed:
            spool.discard()
        else:
            spool.close()
    return text


async def _answered(tool: Tool, call: Call, spool: Spool) -> Text:
    path = child.executable(tool.command)
    if not os.path.exists(path):
        return Text(f"{tool.name}: {path} is missing - install total-recall again", failed=True)
    ended = await child.run(tool.command, call.words, spool.take, tool.seconds)
    if why := failure(tool, ended, printed=spool.written > 0):
        return Text(f"{tool.name}: {why}", failed=True)
    notes = sentences(tool, ended) if ended.status == UNREAD else []
    cut = _SHAPES[tool.shape](spool, notes)
    if not cut.is_cut:
        return Text(cut.text)
    spool.close()
    note = _KEPT + (", or raise max_bytes" if "max_bytes" in tool.fields else "")
    if ended.stopped:
        note += "; the command was stopped when it had printed this much"
    histogram = await _histogram(spool.path) if spool.path else ""
    returned = len(cut.text.removesuffix("\n").encode())
    return Text(cut.text + marker(tool.name, returned, spool, note, histogram))


def failure(tool: Tool, ended: Ended, printed: bool) -> str | None:
    """Why a run has no answer; None when it has one."""
    if ended.stopped == "size":
        return None
    if ended.stopped == "time":
        return f"no answer within {tool.seconds} seconds, so the command was stopped - narrow the request, or try again"
    if ended.status < 0:
        return f"the command was killed by signal {-ended.status} ({signal.strsignal(-ended.status)})"
    if ended.status == 0 or (printed and (ended.status == UNREAD or (ended.status == 1 and tool.may_miss))):
        return None
    said = sentences(tool, ended)
    if not said:
        return f"the command ended with status {ended.status} and gave no reason"
    if ended.status != UNREAD:
        return said[-1]
    return "; ".join(said[:_NAMED]) + (f"; and {len(said) - _NAMED} more" if len(said) > _NAMED else "")


def sentences(tool: Tool, ended: Ended) -> list[str]:
    """What a run said on standard error, in the tool's terms; of anything but our own sentences the last line."""
    complaint = ended.complaint
    if len(complaint.encode()) >= COMPLAINT_BYTES:
        complaint = complaint.partition("\n")[2]
    lines = [line for line in complaint.split("\n") if line.strip()]
    prefix = f"{tool.command}: "
    ours = [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]
    return [tool.reworded(line) for line in ours or lines[-1:]]


def _document(spool: Spool, notes: list[str]) -> Cut:
    """One JSON value; it says itself what could not be read, and where it does not, that is added to it."""
    cut = spool.text(spool.most, whole_only=True)
    if cut.is_cut or not notes or '"unreadable":' in cut.text or not re.fullmatch(r"(?s)\{.+\}", cut.text):
        return cut
    longer = f"{cut.text[:-1]},{orjson.dumps({'unreadable': notes}).decode()[1:]}"
    return Cut(longer, False) if len(longer.encode()) <= spool.most else cut


def _bounded(spool: Spool, notes: list[str]) -> Cut:
    """Lines that the command has counted, so that what stands for a broken byte may not be longer than it.

    Their header says what could not be read.
    """
    return spool.text(spool.most, whole_only=False, broken="question")


def _lines(spool: Spool, notes: list[str]) -> Cut:
    """Lines, and after them what could not be read; both within the bound."""
    note = _noted(notes, min(NOTE_BYTES, spool.most // 2))
    cut = spool.text(spool.most - len(note.encode()), whole_only=False)
    if not note:
        return cut
    if cut.is_cut:
        return Cut(cut.text + note, True)
    return Cut(f"{cut.text}\n{note}"[:-1] if cut.text else note[:-1], False)


_SHAPES = {"document": _document, "lines": _lines, "bounded": _bounded}


def _noted(notes: list[str], room: int) -> str:
    """A line for each note, as many as fit, the others counted."""
    text = ""
    for index, note in enumerate(notes):
        line, more = f"# note: {note}\n", f"# note: {len(notes) - index} more\n"
        if len(f"{text}{line}{more}".encode()) > room:
            return text + more if len(f"{text}{more}".encode()) <= room else text
        text += line
    return text


async def _histogram(path: str) -> str:
    """Where the bytes of an overflow file are, as tr-histogram draws it; its head repeats our facts and is left out."""
    drawn = bytearray()

    def take(chunk: bytes) -> bool:
        drawn.extend(chunk)
        return len(drawn) < HISTOGRAM_BYTES

    try:
        ended = await child.run("tr-histogram", ["--", path], take, HISTOGRAM_SECONDS)
    except OSError as error:
        return f"histogram unavailable: {error.strerror or error}"
    if ended.status or ended.stopped == "time":
        return f"histogram unavailable: tr-histogram ended with status {ended.status}"
    text = drawn.decode("utf-8", "replace")
    return text[max(0, text.find("Bucket Distribution")) :].rstrip("\n")
