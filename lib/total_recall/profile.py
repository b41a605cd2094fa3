"""The profile of a session: how much of what is in it, and where the turning points are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from . import git
from .calls import Call, answered, files_of
from .notices import Notices
from .record import ROLES, Record, one_line
from .stores.tools import kind_of
from .todos import History, is_todo

_USAGE = ("input", "output", "cache_read", "cache_write", "reasoning")
_CALLS = frozenset(("shell", "read", "write"))
_TODO_EVENTS = {"added": "TodoCreate", "removed": "TodoDelete"}

Numbered = tuple[int, Record]


class _Event(NamedTuple):
    line_number: int
    id: int
    type: str
    ts: str | None
    summary: str


def numbered(entries: Iterable[Any]) -> Iterator[Numbered]:
    """The messages of a store's entries, each with the number of the stored record that holds it, from 1."""
    for number, entry in enumerate(entries, 1):
        for record in entry.messages:
            yield number, record


def profiled(messages: Iterable[Numbered], row: Record, notices: Notices) -> Record:
    """The profile of the session that `row` describes, in one pass over its numbered messages.

    What a fork or a resume copied from an earlier session is counted and told of there, not here; a call without a
    result does not count among the events. Events are in the order of the records they stand in.
    """
    profile = _Profile(notices)
    for call in answered(profile.counting(messages), _is_wanted):
        profile.add(call)
    return {
        "harness": row["harness"],
        "session_id": row["session_id"],
        "file_size": row["file_size"],
        "line_count": row["line_count"],
        "first_ts": profile.first_ts or row["start_time"],
        "last_ts": profile.last_ts or row["end_time"],
        "role_counts": profile.roles,
        "has_tantivy_index": row["has_tantivy_index"],
        "interesting_events": profile.events(),
        "tools": dict(profile.tools),
        "files": [{"path": path, "reads": r, "writes": w} for path, (r, w) in profile.files.items()],
        "usage": profile.usage if profile.has_usage else None,
    }


def _is_wanted(harness: str, name: str) -> bool:
    return kind_of(harness, name) in _CALLS or is_todo(harness, name)


class _Profile:
    def __init__(self, notices: Notices) -> None:
        self.first_ts: str | None = None
        self.last_ts: str | None = None
        self.roles = dict.fromkeys(ROLES, 0)
        self.tools: Counter[str] = Counter()
        self.files: dict[str, list[int]] = {}
        self.usage: dict[str, int | float] = dict.fromkeys(_USAGE, 0)
        self.has_usage = False
        self._todos = History(notices)
        self._events: list[_Event] = []
        self._lines: dict[int, int] = {}  # of the records whose calls wait for a result

    def counting(self, messages: Iterable[Numbered]) -> Iterator[Record]:
        """The messages as they are, counted on the way."""
        for line, record in messages:
            if record["tool_calls"]:
                self._lines[record["id"]] = line
            if ts := record["ts"]:
                self.first_ts = ts if self.first_ts is None or ts < self.first_ts else self.first_ts
                self.last_ts = ts if self.last_ts is None or ts > self.last_ts else self.last_ts
            if not record.get("replayed"):
                self._count(line, record)
            yield record

    def _count(self, line: int, record: Record) -> None:
        self.roles[record["role"]] = self.roles.get(record["role"], 0) + 1
        self._add_usage(record.get("usage"))
        if record["class"] == "compaction":
            self._note(line, record, "Compaction", _compaction(record))
        author = record["authorship"]
        if author in ("tool", "injected"):
            return
        self.tools.update(call["name"] for call in record["tool_calls"])
        if record["role"] == "user" and record.get("agent") != "sidechain" and record["content"].strip():
            self._note(line, record, "UserMessage", one_line(record["content"]))

    def _add_usage(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        self.has_usage = True
        for key in _USAGE:
            amount = usage.get(key)
            if isinstance(amount, (int, float)) and not isinstance(amount, bool):
                self.usage[key] += amount

    def _note(self, line: int, record: Record, type: str, summary: str) -> None:
        self._events.append(_Event(line, record["id"], type, record["ts"], summary))

    def add(self, call: Call) -> None:
        """Take up an answered call: its edits of the todo list, what git did, the files it names."""
        record = call.record
        edits = list(self._todos.edits(call)) if call.kind == "todo" else []
        if record.get("replayed"):
            return
        line = self._line(record)
        for edit in edits:
            summary = f"{edit['status']}: {edit['todo']}" if edit["status"] else edit["todo"]
            self._note(line, record, _TODO_EVENTS.get(edit["action"], "TodoUpdate"), one_line(summary, 200))
        for event in git.events(call):
            self._note(line, record, event.type, event.summary)
        if call.result is not None and call.result.get("is_error"):
            return
        for path, writes in files_of(record["harness"], call.name, call.arguments):
            self.files.setdefault(path, [0, 0])[writes] += 1

    def _line(self, record: Record) -> int:
        # Calls come in the order of their records: those before this one are done with.
        while self._lines and next(iter(self._lines)) < record["id"]:
            del self._lines[next(iter(self._lines))]
        return self._lines.get(record["id"], 0)

    def events(self) -> list[Record]:
        """The events in the order of the records, each with its distance from the one before."""
        before = 0
        events = []
        for event in sorted(self._events, key=lambda event: (event.line_number, event.id)):
            events.append(
                {
                    "line_number": event.line_number,
                    "id": event.id,
                    "gap_lines": event.line_number - before,
                    "event_type": event.type,
                    "ts": event.ts,
                    "summary": event.summary,
                }
            )
            before = event.line_number
        return events


def _compaction(record: Record) -> str:
    """How a compaction came about, where the harness says so; else the first line of its summary."""
    known = [str(record["trigger"])] if record.get("trigger") else []
    if record.get("tokens_before") is not None:
        known.append(f"{record['tokens_before']} tokens before")
    return ", ".join(known) or one_line(record["content"])
