"""The account of a search: what was looked through, what could not be, and what to try when nothing was found."""

from __future__ import annotations

from collections.abc import Sequence

from .record import Record
from .scope import Scope

_NAMED = 20
_SHOWN = 300  # characters of a query on the line


class Coverage:
    """Fields of the envelope's `coverage`, filled as the search goes on."""

    def __init__(self, scope: Scope, given: str, parsed_as: str) -> None:
        self.known = scope.known
        self.in_scope = len(scope.chosen)
        self.skipped = scope.skipped
        self.given = given
        self.parsed_as = parsed_as
        self.searched = 0
        self.indexed_now = 0
        self.stale: list[str] = []
        self.missing: list[str] = []
        self.unreadable: dict[str, str] = {}
        self.records = 0
        self.total = 0
        self.unread = 0
        self.ruled_out = 0
        self.outputs_cut = 0
        self.index_age: float | None = None
        self.suggestions: list[Record] = []

    @property
    def complete(self) -> bool:
        """Whether everything in scope was looked through as it is now."""
        return not (self.stale or self.missing or self.unreadable)

    def record(self) -> Record:
        """The account as fields."""
        found: Record = {
            "sessions_known": self.known,
            "in_scope": self.in_scope,
            "searched": self.searched,
            "indexed_now": self.indexed_now,
            "stale": len(self.stale),
            "missing": len(self.missing),
            "unreadable": [{"session_id": name, "error": error} for name, error in self.unreadable.items()],
            "skipped": self.skipped,
            "records_searched": self.records,
            "total_hits": self.total,
            "complete": self.complete,
            "query": {"given": self.given, "parsed_as": self.parsed_as},
        }
        for key, names in (("stale_sessions", self.stale), ("missing_sessions", self.missing)):
            if names:
                found[key] = names[:_NAMED]
        if self.outputs_cut:
            found["outputs_cut"] = self.outputs_cut
        if self.unread:
            found["ruled_out_by_index"] = self.unread
        if self.ruled_out:
            found["ruled_out_by_bytes"] = self.ruled_out
        if self.index_age is not None:
            found["index_age_seconds"] = round(self.index_age)
        if self.suggestions:
            found["suggestions"] = self.suggestions
        return found

    def line(self) -> str:
        """The account on one line."""
        text = f"{_counted(self.total, 'hit')}; searched {self.searched} of {_counted(self.in_scope, 'session')}"
        text += f", {_counted(self.records, 'record')}"
        if self.in_scope != self.known:
            text += f" ({self.known} known)"
        notes = [f"{self.indexed_now} indexed now"] if self.indexed_now else []
        if self.unread:
            notes.append(f"{self.unread} ruled out by the index")
        if self.ruled_out:
            notes.append(f"{self.ruled_out} ruled out by their bytes")
        if self.outputs_cut:
            notes.append(f"{_counted(self.outputs_cut, 'long output')} searched in part")
        notes += [f"{len(names)} {what}" for what, names in self._lacking() if names]
        if self.index_age is not None:
            notes.append(f"the index is {_span(self.index_age)} old")
        if notes:
            text += f"; {', '.join(notes)}"
        if self.parsed_as != self.given:
            read_as = self.parsed_as
            text += f"; read as: {read_as if len(read_as) <= _SHOWN else read_as[:_SHOWN] + '…'}"
        for suggestion in self.suggestions:
            text += f"; try ({suggestion['reason']}): {suggestion['command']}"
        return text

    def _lacking(self) -> tuple[tuple[str, Sequence[str]], ...]:
        return ("stale", self.stale), ("not indexed", self.missing), ("unreadable", tuple(self.unreadable))


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
