"""What a search looks through: the indexes with the sessions in scope, and the filters that hold on every path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tantivy

from .index import Index
from .indexed import number_of
from .indexing import UNTIMED
from .record import Record
from .stores.base import Entry, Reference
from .times import epoch

Must, Should, MustNot = tantivy.Occur.Must, tantivy.Occur.Should, tantivy.Occur.MustNot
Fetch = Callable[[Reference, Record], "Entry | None"]


class Source(NamedTuple):
    """One store to search: its index, its sessions in scope, whether these are all, and how a record is read again."""

    harness: str
    index: Index  # type: ignore[assignment]  # tuple.index is not missed
    sessions: Sequence[Reference]
    whole: bool
    fetch: Fetch


class Filters(NamedTuple):
    """Which records: RFC 3339 moments or None; roles, classes and tool names, one of which must hold if given."""

    since: str | None = None
    until: str | None = None
    roles: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


EVERYTHING = Filters()


class Part:
    """One source with what this search needs of it."""

    def __init__(self, source: Source, filters: Filters) -> None:
        self.source = source
        self.index = source.index
        self.schema = source.index.schema
        self.known = source.index.sessions()
        self.sessions = {number_of(session.session_id): session for session in source.sessions}
        self.scope = [number for number in self.sessions if number in self.known and self._overlaps(number, filters)]
        self.records = sum(self.known[number].records for number in self.scope)
        self._facts: dict[int, Record] = {}

    def _overlaps(self, number: int, filters: Filters) -> bool:
        known = self.known[number]
        since, until = (_milliseconds(moment) for moment in filters[:2])
        return not ((since is not None and known.end < since) or (until is not None and known.start > until))

    def facts(self, number: int) -> Record:
        """What is stored of a session: title, directory, start_time."""
        if number not in self._facts:
            self._facts[number] = self.index.stored(self.known[number].address)
        return self._facts[number]

    def filters(self, filters: Filters) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """The clauses that every match must hold to; none of them scores."""
        clauses = []
        for field, values in (("role", filters.roles), ("class", filters.classes), ("tool_name", filters.tools)):
            if values:
                clauses.append((Must, tantivy.Query.term_set_query(self.schema, field, list(values))))
        clauses += self._scope()
        since, until = (_milliseconds(moment) for moment in filters[:2])
        if since is not None or until is not None:
            clauses.append((Must, self._within(since, until)))
        return [(occur, tantivy.Query.const_score_query(query, 0.0)) for occur, query in clauses]

    def _scope(self) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        outside = set(self.known) - set(self.sessions)
        if self.source.whole and not outside:
            return []
        inside = [number for number in self.sessions if number in self.known]
        if len(outside) < len(inside):
            return [(MustNot, tantivy.Query.term_set_query(self.schema, "session", list(outside)))]
        return [(Must, tantivy.Query.term_set_query(self.schema, "session", inside))]

    def _within(self, since: int | None, until: int | None) -> tantivy.Query:
        """Texts of these moments; one without a time goes with its session."""
        timed = self._range(max(since or 0, 0), until)
        untimed = tantivy.Query.boolean_query(
            [
                (Must, self._range(UNTIMED, UNTIMED)),
                (Must, tantivy.Query.term_set_query(self.schema, "session", self.scope)),
            ]
        )
        return tantivy.Query.boolean_query([(Should, timed), (Should, untimed)])

    def _range(self, low: int | None, high: int | None) -> tantivy.Query:
        return tantivy.Query.range_query(self.schema, "ts", tantivy.FieldType.Integer, low, high)


def _milliseconds(moment: str | None) -> int | None:
    seconds = epoch(moment) if moment else None
    return None if seconds is None else round(seconds * 1000)
