"""Records for people: columns for rows, a transcript for messages, as text or markdown.

What is printed here has no terminal escapes, no control characters and no bidirectional overrides in it, whatever the
session held.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

import orjson

from . import report
from .calls import call_summary
from .record import Record, encoded
from .terminal import clean, fitted, flat, tail

_NARROW = 110  # columns from which whole ids fit beside the rest
_OUTPUT_LINES = 20


class Page:
    """How to print: the form, the width in columns, colour; and what has been printed before."""

    def __init__(self, markdown: bool, width: int | None, environ: Mapping[str, str], terminal: bool) -> None:
        self.markdown = markdown
        self.width = width or _terminal_width(environ)
        self.colour = terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb" and not markdown
        self.last = ""
        self._waiting: list[Record] = []

    def bold(self, text: str) -> str:
        """`text` in bold, where the terminal takes colour."""
        return f"\x1b[1m{text}\x1b[0m" if self.colour else text

    def dim(self, text: str) -> str:
        """`text` set back, where the terminal takes colour."""
        return f"\x1b[2m{text}\x1b[0m" if self.colour else text

    def begins(self, kind: str) -> bool:
        """Whether a run of records of this kind begins here."""
        new, self.last = self.last != kind, kind
        return new

    def holds_back(self, hit: Record) -> Iterator[str]:
        """A dialogue hit waits for the others of its session; those of another one are printed now."""
        if self._waiting and self._waiting[-1]["session_id"] != hit["session_id"]:
            yield from self.rest()
        self._waiting.append(hit)

    def rest(self) -> Iterator[str]:
        """What was held back."""
        waiting, self._waiting = self._waiting, []
        return report.said(waiting)


def _terminal_width(environ: Mapping[str, str]) -> int:
    if environ.get("COLUMNS", "").isdigit() and int(environ["COLUMNS"]) > 0:
        return int(environ["COLUMNS"])
    # In `tr-list | tr-fmt | less` only standard error is the terminal.
    for number in (1, 2, 0):
        try:
            return os.get_terminal_size(number).columns or 80
        except OSError:
            continue
    return 80


def rendered(lines: Iterable[bytes], page: Page) -> Iterator[bytes]:
    """The lines that stand for the lines of the input; one that is none of our records is itself."""
    for line in lines:
        line = line.rstrip(b"\n")
        try:
            record = orjson.loads(line) if line.startswith(b"{") else None
        except ValueError:
            record = None
        texts = _rendered(record, page) if isinstance(record, dict) else None
        if texts is None:
            texts = iter((*page.rest(), clean(line.decode("utf-8", "replace"))))
        for text in texts:
            yield text.encode("utf-8", "replace")
    for text in page.rest():
        yield text.encode("utf-8", "replace")


_LISTS = (
    "stores",
    "sessions",
    "messages",
    "user_messages",
    "records",
    "pairs",
    "events",
    "hits",
    "indexed",
)


def _rendered(record: Record, page: Page) -> Iterator[str] | None:
    for key in _LISTS:
        if isinstance(record.get(key), list):
            return _envelope(record, key, page)
    if isinstance(record.get("profile"), dict):
        return _rendered(record["profile"], page)
    for keys, render in _KINDS:
        if all(key in record for key in keys):
            waiting = () if render is _dialogue else tuple(page.rest())
            return chain(waiting, _trusting(render, record, page))
    return None


def _trusting(render: Callable[[Record, Page], Iterator[str]], record: Record, page: Page) -> Iterator[str]:
    """The rendered record; one that has our keys but not our values is printed as it is."""
    try:
        yield from list(render(record, page))
    except (TypeError, KeyError, ValueError, AttributeError):
        yield flat(encoded(record).decode())


def _envelope(record: Record, key: str, page: Page) -> Iterator[str]:
    for item in record[key]:
        texts = _rendered(item, page) if isinstance(item, dict) else None
        yield from texts if texts is not None else (flat(encoded(item).decode()),)
    notice = record.get("notice") or (record.get("bounds") or {}).get("notice")
    for text in (notice, *record.get("notices", ()), *(f"{u}" for u in record.get("unreadable", ()))):
        if text:
            yield page.dim(f"({flat(text)})")


# -- stores and sessions ---------------------------------------------------------------------------------------


def _store(record: Record, page: Page) -> Iterator[str]:
    state = record["root"] or ""
    if record["error"]:
        state += f" ({record['error']})"
    elif not record["exists"]:
        state += " (not there)"
    columns = (
        ("HARNESS", 9, record["harness"]),
        ("SESSIONS", 8, record["sessions"]),
        ("NEWEST", 16, _moment(record["newest"])),
        ("ROOT", 0, state),
    )
    return _table("store", columns, page)


def _session(record: Record, page: Page) -> Iterator[str]:
    title = flat(record["title"]) or "-"
    if record["parent_session_id"]:
        title = "↳ " + title
    if flags := [name for name in ("archived", "empty", "clock", "read_error") if record.get(name)]:
        title += f" [{', '.join(flags)}]"
    counts = f"{record['user_count']}/{record['assistant_count']}/{record['tool_count']}"
    session, directory = flat(record["session_id"]), flat(record["directory"])
    wide = page.width >= _NARROW or page.markdown
    if not wide:
        session = session[-12:]  # any part of an id names its session
    room = page.width - (16 + 8 + 9 + (36 if wide else 12) + 2 * (5 if wide else 4))
    home = max(12, room // 3) if wide else 0
    columns = [
        ("UPDATED", 16, _moment(record["end_time"])),
        ("HARNESS", 8, record["harness"]),
        ("U/A/T", 9, counts),
        ("TITLE", max(10, room - home), title),
        ("SESSION", 0, session),
    ]
    if wide:
        columns.insert(4, ("DIRECTORY", home, directory if page.markdown else tail(directory, home)))
    return _table("session", columns, page)


Column = tuple[str, int, object]  # head, width (0 for as long as it is), cell


def _table(kind: str, columns: Sequence[Column], page: Page) -> Iterator[str]:
    """A row of a table, after its head when the table begins."""
    begins = page.begins(kind)
    if page.markdown:
        if begins:
            yield f"| {' | '.join(head.capitalize() for head, _, _ in columns)} |"
            yield f"|{' --- |' * len(columns)}"
        yield f"| {' | '.join(flat(cell).replace('|', chr(92) + '|') for _, _, cell in columns)} |"
        return
    if begins:
        yield page.bold(_row((head, width) for head, width, _ in columns))
    yield _row((flat(cell), width) for _, width, cell in columns)


def _row(cells: Iterable[tuple[str, int]]) -> str:
    return "  ".join(fitted(text, width) if width else text for text, width in cells).rstrip()


def _moment(ts: str | None) -> str:
    return ts[:16].replace("T", " ") if ts else "-"


# -- messages --------------------------------------------------------------------------------------------------


_PLAIN = ("human-text", "model-text", "tool-input", "tool-output")


def _message(record: Record, page: Page) -> Iterator[str]:
    who = flat((record["role"] == "tool" and record.get("tool_name")) or record["role"])
    marks = [] if record.get("class") in _PLAIN else [str(record.get("class"))]
    marks += [name for name in ("is_error", "replayed", "branch") if record.get(name)]
    head = " · ".join([who, _moment(record["ts"]), str(record["id"]), *map(flat, marks)])
    if page.begins(f"message {record['session_id']}"):
        title = f"{flat(record['harness'])} {flat(record['session_id'])}"
        yield f"# {title}" if page.markdown else page.bold(title)
        yield ""
    yield f"## {head}" if page.markdown else page.bold(f"── {head}")
    if page.markdown:
        yield ""
    if record.get("thinking"):
        for line in clean(record["thinking"]).split("\n"):
            yield f"> {line}" if page.markdown else page.dim(f"  · {line}")
    if record["content"]:
        yield from _body(record, page)
    for call in record.get("tool_calls") or ():
        yield f"- `{_call(call, 400)}`" if page.markdown else f"→ {_call(call, page.width * 3)}"
    yield ""


def _body(record: Record, page: Page) -> Iterator[str]:
    lines = clean(record["content"]).rstrip("\n").split("\n")
    if record["role"] != "tool":
        yield from lines
        return
    cut = len(lines) - _OUTPUT_LINES
    if page.markdown:
        fence = "`" * max(3, *(1 + len(run) for run in re.findall("`+", record["content"]) or [""]))
        yield fence
    for line in lines[:_OUTPUT_LINES]:
        yield line if page.markdown else f"  {line}"
    if page.markdown:
        yield fence
    if cut > 0:
        yield f"  [{cut} more lines: tr-context -C 0 {flat(record['session_id'])}:{record['id']}]"


def _call(call: Record, width: int) -> str:
    """A tool call on one line of at most `width` characters."""
    text = flat(call_summary(str(call.get("name")), call.get("arguments")))
    return text if len(text) <= width else text[: width - 1] + "…"


# -- what happened, and what was found --------------------------------------------------------------------------


def _dialogue(record: Record, page: Page) -> Iterator[str]:
    return page.holds_back(record)


def _pair(record: Record, page: Page) -> Iterator[str]:
    lines = report.answered([record])
    heading = next(lines)
    if page.begins(f"pair {record['session_id']}"):
        yield heading
    yield from lines


def _event(record: Record, page: Page) -> Iterator[str]:
    status = record.get("status") or ""
    columns = (
        ("TIME", 16, _moment(record["ts"])),
        ("ACTION", 11, record["action"]),
        ("STATUS", 11, status if status != record["action"] else ""),
        ("ID", 6, record["id"]),
        ("TODO", 0, record["todo"]),
    )
    return _table("event", columns, page)


def _hit(record: Record, page: Page) -> Iterator[str]:
    if page.begins(f"hit {record['session_id']}"):
        title = f"{flat(record['session_id'])}  {flat(record.get('title')) or '-'}"
        yield f"## {title}" if page.markdown else page.bold(title)
    role = str(record["role"] or "title").upper() + (" (thinking)" if record["class"] == "reasoning" else "")
    parts = (str(record["id"]), f"{record['score'] or 0:.2f}", _moment(record["ts"]), role, flat(record["snippet"]))
    yield f"- {' | '.join(parts)}" if page.markdown else " | ".join(parts)


def _indexed(record: Record, page: Page) -> Iterator[str]:
    yield report.index_line(record)


def _profile(record: Record, page: Page) -> Iterator[str]:
    head = f"{flat(record['harness'])} {flat(record['session_id'])}"
    yield f"# {head}" if page.markdown else page.bold(head)
    yield f"{record['file_size']} bytes, {record['line_count']} records, {record['first_ts']} to {record['last_ts']}"
    for title, counts in (("roles", record["role_counts"]), ("tools", record.get("tools") or {})):
        yield f"{title}: " + ", ".join(f"{flat(name)} {count}" for name, count in counts.items())
    for file in record.get("files") or ():
        yield f"file: {flat(file['path'])} (read {file['reads']}, written {file['writes']})"
    for event in record["interesting_events"]:
        when = f"{event['id']:>6}  {_moment(event['ts'])}  {event['event_type']:<12}  "
        yield when + flat(event["summary"])[: max(20, page.width - len(when))]
    yield ""


_KINDS: tuple[tuple[tuple[str, ...], Callable[[Record, Page], Iterator[str]]], ...] = (
    (("harness", "root", "shadow_root", "exists", "error", "newest", "sessions"), _store),
    (("harness", "session_id", "title", "file_size", "user_count", "end_time", "directory"), _session),
    (("harness", "session_id", "id", "role", "content", "ts"), _message),
    (("session_id", "id", "ts", "who", "text"), _dialogue),
    (("session_id", "id", "ts", "question", "answers"), _pair),
    (("session_id", "id", "ts", "action", "todo"), _event),
    (("session_id", "id", "ts", "snippet", "score"), _hit),
    (("session_id", "docs", "status"), _indexed),
    (("session_id", "role_counts", "interesting_events"), _profile),
)
