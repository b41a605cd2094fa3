"""Reading an index: every call into the engine, so that damage in its files is one kind of error and not a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import tantivy

from . import analysis
from .record import Record, unpacked

_MANY = 1_000_000

Method = TypeVar("Method", bound=Callable[..., Any])


class Damaged(Exception):
    """The engine stumbled over the files of an index."""

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(f"{folder} is damaged ({reason})")
        self.folder = folder


class Known(NamedTuple):
    """What the index says of a session, cheaply: times in milliseconds since 1970."""

    address: Any
    signature: int
    start: int
    end: int
    records: int
    documents: int
    cut: int
    opaque: int


def _guarded(method: Method) -> Method:
    @wraps(method)
    def guarded(self: Reader, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        except ValueError as error:
            raise Damaged(self.folder, str(error).split("\n", 1)[0]) from error
        except BaseException as error:
            # The engine's panics are no Exception.
            if type(error).__name__ == "PanicException":
                raise Damaged(self.folder, "the engine gave up") from None
            raise

    return guarded  # type: ignore[return-value]


class Reader:
    """What was committed to an index when it was first asked for."""

    def __init__(self, folder: str, index: tantivy.Index) -> None:
        self.folder = folder
        self.schema = index.schema
        self._index = index
        self._index.register_tokenizer(analysis.NAME, analysis.analyzer())
        self._searcher: tantivy.Searcher | None = None
        self._sessions: dict[int, Known] | None = None

    def renew(self) -> None:
        """Look at what has been committed since."""
        self._searcher = self._sessions = None

    @property
    def _committed(self) -> tantivy.Searcher:
        if self._searcher is None:
            self._index.reload()
            self._searcher = self._index.searcher()
        return self._searcher

    @property
    def size(self) -> int:
        """How many texts there are."""
        return self._total()

    @_guarded
    def _total(self) -> int:
        return self._committed.num_docs

    @_guarded
    def sessions(self) -> dict[int, Known]:
        """What is known of each indexed session, by `number_of(session_id)`."""
        if self._sessions is None:
            searcher = self._committed
            found = searcher.search(tantivy.Query.term_query(self.schema, "class", "title"), _MANY, count=False)
            addresses = [address for _, address in found.hits]
            columns = [searcher.fast_field_values(name, addresses) for name in ("session", *Known._fields[1:])]
            rows = zip(addresses, *columns, strict=True)
            self._sessions = {number: Known(address, *facts) for address, number, *facts in rows}
        return self._sessions

    @_guarded
    def stored(self, address: Any) -> Record:
        """What a document holds for display: of a text its record's fields and place, of a session its facts."""
        found: Any = self._committed.doc(address).get_first("stored")
        return unpacked(bytes(found))

    @_guarded
    def count(self, query: tantivy.Query) -> int:
        """How many texts a query matches."""
        found: Any = self._committed.search(query, 1)
        return found.count or 0

    @_guarded
    def sessions_of(self, query: tantivy.Query) -> frozenset[int]:
        """The numbers of the sessions with a text that a query matches."""
        addresses = [address for _, address in self.best(query, max(1, self.count(query)))]
        return frozenset(self.column("session", addresses))

    @_guarded
    def best(self, query: tantivy.Query, limit: int, **how: Any) -> list[tuple[Any, Any]]:
        """The best texts of a query: (score or key, address)."""
        return self._committed.search(query, limit, count=False, **how).hits

    @_guarded
    def column(self, name: str, addresses: Sequence[Any]) -> list[Any]:
        """The values of a fast field for texts."""
        return self._committed.fast_field_values(name, list(addresses))

    @_guarded
    def frequency(self, term: str) -> int:
        """In how many texts a term stands."""
        return self._committed.doc_freq("text", term)

    @_guarded
    def terms(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """The most frequent terms that begin like this, with how many texts have them."""
        return self._committed.terms_with_prefix("text", prefix, limit=limit)
