"""Complete search: the text of every record in scope is tested for a literal or a regular expression."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from .notices import Unreadable
from .passages import Passage, searched
from .patterns import Literal, Regex
from .record import Record
from .snippets import cut
from .sources import Filters
from .stores.base import Reference, Store


class Scan:
    """The matching records of sessions, in the order of the sessions and of their streams.

    Afterwards `records` tells how many records were tested, `found` how many match (also those past the limits),
    `sessions` how many sessions were looked through, `unread` how many of them by the index alone, `ruled_out` how many
    by the bytes of their files, and `unreadable` which could not be. `without` gives the ids of a store's sessions that
    the index rules out.
    """

    def __init__(
        self,
        pattern: Literal | Regex,
        filters: Filters,
        *,
        limit: int = 0,
        a_session: int = 0,
        width: int = 200,
        without: Callable[[Store], Collection[str]] = lambda store: (),
    ) -> None:
        self.pattern = pattern
        self.filters = filters
        self.limit = limit
        self.a_session = a_session
        self.width = width
        self.records = self.found = self.sessions = self.ruled_out = self.unread = 0
        self.unreadable: dict[str, Unreadable] = {}
        self._shown = 0
        self._without = without
        self._outside: dict[str, Collection[str]] = {}
        self._mentions: dict[str, frozenset[str] | None] = {}

    def hits(
        self, chosen: Iterable[tuple[Store, Reference]], step: Callable[[], None] = lambda: None
    ) -> Iterator[Record]:
        """The hits as they are found; `step` is called after each session."""
        for store, session in chosen:
            self.sessions += 1
            try:
                if session.session_id in self._left_out(store):
                    self.unread += 1
                elif self._is_ruled_out(store, session):
                    self.ruled_out += 1
                else:
                    yield from self._session(store, session)
            except Unreadable as error:
                self.unreadable.setdefault(session.session_id, error)
            except FileNotFoundError:
                self.sessions -= 1  # gone since it was listed
            step()

    def _left_out(self, store: Store) -> Collection[str]:
        if store.harness not in self._outside:
            self._outside[store.harness] = self._without(store)
        return self._outside[store.harness]

    def _is_ruled_out(self, store: Store, session: Reference) -> bool:
        """Whether it is certain, without reading the session, that nothing in it matches."""
        if not isinstance(self.pattern, Literal):
            return False
        if store.harness not in self._mentions:
            self._mentions[store.harness] = store.mentioning([self.pattern.text])
        inside = self._mentions[store.harness]
        if inside is not None:
            return session.session_id not in inside
        files = store.text_files(session)
        return bool(files) and not any(map(self.pattern.may_stand_in, files))

    def _session(self, store: Store, session: Reference) -> Iterator[Record]:
        about: Record | None = None
        shown = 0
        for message in store.messages(session, whole=True):
            if not self._asked_for(message):
                continue
            texts = searched(message)
            self.records += bool(texts)
            match = self._match(texts)
            if match is None:
                continue
            self.found += 1
            if (self.limit and self._shown >= self.limit) or (self.a_session and shown >= self.a_session):
                continue
            if about is None:
                about = store.row(session)
            shown += 1
            self._shown += 1
            yield self._hit(message, about, *match)

    def _asked_for(self, message: Record) -> bool:
        filters = self.filters
        if filters.roles and message["role"] not in filters.roles:
            return False
        ts = message["ts"]
        if ts and ((filters.since and ts < filters.since) or (filters.until and ts > filters.until)):
            return False
        if filters.tools:
            names = {message["tool_name"], *(call["name"] for call in message["tool_calls"])}
            return not names.isdisjoint(filters.tools)
        return True

    def _match(self, texts: list[Passage]) -> tuple[Passage, int, int] | None:
        for passage in texts:
            if self.filters.classes and passage.kind not in self.filters.classes:
                continue
            if span := self.pattern.find(passage.text):
                return passage, *span
        return None

    def _hit(self, message: Record, about: Record, passage: Passage, start: int, end: int) -> Record:
        text = passage.text
        margin = max(0, self.width - (end - start)) // 2
        left = max(0, min(start - margin, len(text) - self.width))
        hit = {
            "harness": message["harness"],
            "session_id": message["session_id"],
            "id": message["id"],
            "ts": message["ts"],
            "role": message["role"],
            "class": passage.kind,
            "authorship": message["authorship"],
            "tool_name": message["tool_name"],
            "score": 1.0,
            "snippet": cut(text, left, min(len(text), left + self.width), start, end),
            "matched": [text[start:end][:1000]],
            "title": about["title"],
            "directory": about["directory"],
        }
        if passage.kind == "reasoning":
            hit["thinking"] = True
        return hit


def grouped(hits: Iterable[Record]) -> Iterator[Record]:
    """One hit a session, of consecutive ones: the first, with the true number and up to three further ones."""
    best: Record | None = None
    for hit in hits:
        if best is None or (hit["harness"], hit["session_id"]) != (best["harness"], best["session_id"]):
            if best is not None:
                yield best
            best = {**hit, "hit_count": 0, "classes": [], "hits": []}
        elif len(best["hits"]) < 3:
            best["hits"].append({"id": hit["id"], "class": hit["class"], "snippet": hit["snippet"]})
        best["hit_count"] += 1
        if hit["class"] not in best["classes"]:
            best["classes"].append(hit["class"])
    if best is not None:
        yield best
