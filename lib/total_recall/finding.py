"""A search from what was asked to hits and an account of what was looked through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .coverage import Coverage
from .freshness import Indexes, Progress, source
from .index import Index
from .indexed import number_of
from .lexicon import Lexicon
from .notices import Notices
from .patterns import Literal, Regex
from .query import Query, parse
from .reading import Damaged
from .record import Record
from .scan import Scan, grouped
from .scope import Scope, scoped
from .search import A_SESSION, Found, matching, search
from .selection import Sessions, Window
from .sources import Filters, Source
from .stores.base import Reference, Store

_MOST_SUGGESTIONS = 3


class Asked(NamedTuple):
    """The options of a search, under their own names; `current` is the session that asks."""

    query: tuple[str, ...]
    match: str = "words"
    strict: bool = False
    sessions: tuple[str, ...] = ()
    harnesses: tuple[str, ...] = ()
    hours: float = 0
    directory: str = ""
    since: str | None = None
    until: str | None = None
    roles: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    current: str = ""
    roots: bool = False
    limit: int = 20
    group: str = "hit"
    width: int = 200
    explain: bool = False
    refresh: bool = True
    refresh_seconds: float = 0

    @property
    def text(self) -> str:
        return " ".join(self.query)

    @property
    def filters(self) -> Filters:
        return Filters(self.since, self.until, self.roles, self.classes, self.tools)

    def command_line(self) -> str:
        """The command that asks this."""
        from .shell import quoted

        argv = ["tr-search"]
        for field, option in _OPTIONS.items():
            value = getattr(self, field)
            if value == Asked._field_defaults[field]:
                continue
            if value is True:
                argv.append(option)
            else:
                members = value if isinstance(value, tuple) else (value,)
                argv += [f"{option}={f'{member:g}' if isinstance(member, float) else member}" for member in members]
        return quoted([*argv, "--", *self.query])


_OPTIONS = {
    "match": "--match",
    "sessions": "--session",
    "harnesses": "--harness",
    "hours": "--hours",
    "directory": "--directory",
    "since": "--since",
    "until": "--until",
    "roles": "--role",
    "classes": "--class",
    "tools": "--tool",
    "excluded": "--exclude",
    "roots": "--roots",
    "group": "--group",
}
_NARROWING = ("classes", "roles", "tools", "directory", "sessions", "excluded", "roots")


class Finder:
    """One search. `hits` gives the records; `coverage` is complete when they are all taken.

    Raises NoSession, query.Empty, query.BadQuery and scan.BadPattern before anything is looked at.
    """

    def __init__(
        self,
        asked: Asked,
        stores: Sequence[Store],
        notices: Notices,
        folder_of: Callable[[Store], str | None],
        now: float,
        progress: Progress | None = None,
    ) -> None:
        self.asked = asked
        self.stores = stores
        self.notices = notices
        self._folder_of = folder_of
        self._now = now
        self._progress = progress
        self.parsed = parse(asked.text, strict=asked.strict) if asked.match == "words" else None
        self._pattern = self._compiled()
        self._known = Sessions(stores, notices)
        self._scope = self._scoped(asked)
        for sentence in self._scope.said:
            notices.say(sentence)
        self.coverage = self._account()

    def _account(self) -> Coverage:
        asked = self.asked
        read_as = self.parsed.reading() if self.parsed else f"{asked.match} {asked.text!r}"
        return Coverage(self._scope, asked.text, read_as)

    def _compiled(self) -> Literal | Regex | None:
        if self.parsed and not self.parsed.literal:
            return None
        if self.asked.match == "regex":
            return Regex(self.asked.text)
        return Literal(self.asked.text.strip() if self.parsed else self.asked.text)

    def _scoped(self, asked: Asked) -> Scope:
        window = Window(asked.since, asked.until, asked.directory, asked.hours)
        return scoped(
            self._known,
            window,
            self._now,
            only=asked.sessions,
            excluded=asked.excluded,
            current=asked.current,
            roots=asked.roots,
        )

    def hits(self) -> Iterator[Record]:
        """The hits, best first; of a literal or regular expression as they are found, most recent session first."""
        return self._scanned(self._pattern) if self._pattern else self._searched()

    # -- words -------------------------------------------------------------------------------------------------

    def _searched(self) -> Iterator[Record]:
        assert self.parsed is not None
        with Indexes(self.notices, self._folder_of) as indexes:
            try:
                sources, found = self._found(indexes, self.parsed)
            except Damaged as damaged:
                self.notices.say(f"{damaged} and is rebuilt")
                Index.discard(damaged.folder)
                self.coverage = self._account()
                sources, found = self._found(indexes, self.parsed)
            self.coverage.total, self.coverage.records = found.total, found.searched
            self._count_timeless(sum(hit["ts"] is None and hit["id"] > 0 for hit in found.hits))
            if not found.total:
                self.coverage.suggestions = list(self._suggestions(sources, self.parsed))
            yield from found.hits

    def _found(self, indexes: Indexes, parsed: Query) -> tuple[list[Source], Found]:
        asked = self.asked
        sources = [self._source(indexes, store, chosen) for store, chosen in self._scope.by_store(self.stores)]
        found = search(
            sources,
            parsed,
            asked.filters,
            limit=asked.limit,
            group=asked.group == "session",
            width=asked.width,
            explain=asked.explain,
        )
        return sources, found

    def _source(self, indexes: Indexes, store: Store, chosen: list[Reference]) -> Source:
        alive = None
        if self._known.complete(store):
            alive = [session.session_id for owner, session in self._known.all() if owner is store]
        return source(
            indexes,
            store,
            chosen,
            self.coverage,
            self.notices,
            alive=alive,
            whole=alive is not None and len(chosen) == len(alive),
            refresh=self.asked.refresh,
            seconds=self.asked.refresh_seconds,
            now=self._now,
            progress=self._progress,
        )

    def _suggestions(self, sources: Sequence[Source], parsed: Query) -> Iterator[Record]:
        """At most three command lines that find something where this one does not."""
        given = 0
        for reason, asked in self._variants(sources, parsed):
            if given == _MOST_SUGGESTIONS:
                return
            scope = self._scoped(asked)
            chosen = dict(zip((s.harness for s in sources), (c for _, c in scope.by_store(self.stores)), strict=True))
            wider = [s._replace(sessions=chosen[s.harness], whole=False) for s in sources]
            if matching(wider, parse(asked.text), asked.filters):
                given += 1
                yield {"reason": reason, "command": asked.command_line()}

    def _variants(self, sources: Sequence[Source], parsed: Query) -> Iterator[tuple[str, Asked]]:
        asked = self.asked
        lexicon = Lexicon([source.index for source in sources])
        text = asked.text
        for word in parsed.words():
            for term in word.whole:
                if not lexicon.known(term) and (better := lexicon.nearest(term)):
                    text = _replaced(text, term, better)
        if text != asked.text:
            yield "another spelling", asked._replace(query=(text,))
        if asked.hours or asked.since or asked.until:
            yield "a wider window", asked._replace(hours=0, since=None, until=None)
        narrowing = [field for field in _NARROWING if getattr(asked, field)]
        for field in narrowing:
            yield f"without {_OPTIONS[field]}", asked._replace(**{field: Asked._field_defaults[field]})
        words = [word for word in parsed.words() if word.phrase or len(word.whole) > 1]
        if words:
            yield "the words apart", asked._replace(query=tuple(term for word in parsed.words() for term in word.whole))

    # -- literal and regex -------------------------------------------------------------------------------------

    def _scanned(self, pattern: Literal | Regex) -> Iterator[Record]:
        asked, coverage = self.asked, self.coverage
        a_session = A_SESSION if asked.limit and asked.group == "hit" else 0
        limit = asked.limit if asked.group == "hit" else 0
        scan = Scan(
            pattern,
            asked.filters,
            limit=limit,
            a_session=a_session,
            width=asked.width,
            without=lambda store: self._ruled_out(store, pattern),
        )
        total = len(self._scope.chosen)

        def step() -> None:
            if self._progress:
                self._progress(scan.sessions, total)

        hits = scan.hits(self._scope.chosen, step)
        if asked.group == "session":
            hits = _at_most(grouped(hits), asked.limit)
        timeless = 0
        for hit in hits:
            timeless += hit["ts"] is None
            yield hit
        self._count_timeless(timeless)
        for name, error in scan.unreadable.items():
            coverage.unreadable[name] = error.reason
            self.notices.fail(name, error)
        coverage.searched = scan.sessions - len(scan.unreadable)
        coverage.total, coverage.records = scan.found, scan.records
        coverage.unread, coverage.ruled_out = scan.unread, scan.ruled_out

    def _ruled_out(self, store: Store, pattern: Literal | Regex) -> frozenset[str]:
        """The sessions in scope that cannot hold a literal, by an index that has them as they are."""
        from .traces import holding, traces

        wanted = traces(pattern.text) if isinstance(pattern, Literal) else []
        folder = self._folder_of(store) if wanted else None
        index = Index.existing(folder) if folder else None
        if index is None:
            return frozenset()
        try:
            inside = holding(index, wanted)
            if inside is None:
                return frozenset()
            chosen = [session for owner, session in self._scope.chosen if owner is store]
            outside = [session for session in chosen if number_of(session.session_id) not in inside]
            stale = {session.session_id for session in index.stale(store, outside)}
        except Damaged:
            return frozenset()
        return frozenset(session.session_id for session in outside) - stale

    def _count_timeless(self, number: int) -> None:
        if number and (self.asked.since or self.asked.until):
            self.notices.say(f"{number} hits without a time are there whatever --since and --until say")


def _at_most(hits: Iterator[Record], limit: int) -> Iterator[Record]:
    """The first hits; the others are taken too, for what is counted on the way."""
    for number, hit in enumerate(hits, 1):
        if not limit or number <= limit:
            yield hit


def _replaced(text: str, term: str, better: str) -> str:
    place = text.lower().find(term)
    return text if place < 0 else text[:place] + better + text[place + len(term) :]
