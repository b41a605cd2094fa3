"""Bringing an index up to date before it is searched, and saying what could not be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from .coverage import Coverage
from .index import Index, Locked
from .indexed import number_of
from .notices import Notices, Unreadable
from .sources import Source
from .stores.base import Reference, Store

Progress = Callable[[int, int], None]


class Indexes:
    """The indexes of a run's stores, opened as they are needed; a store without one gets it for the run alone."""

    def __init__(self, notices: Notices, folder_of: Callable[[Store], str | None]) -> None:
        self._notices = notices
        self._folder_of = folder_of
        self._temporary = ExitStack()

    def __enter__(self) -> Indexes:
        return self

    def __exit__(self, *error: object) -> None:
        self._temporary.close()

    def opened(self, store: Store) -> tuple[Index, bool]:
        """A store's index, and whether it lasts."""
        folder = self._folder_of(store)
        index = Index.open(folder, self._notices) if folder else None
        if index is not None:
            return index, True
        import tempfile

        self._notices.say(f"{store.harness}: what is in scope is indexed for this search alone")
        made = self._temporary.enter_context(tempfile.TemporaryDirectory(prefix="total-recall-"))
        return Index.temporary(made), False


def source(
    indexes: Indexes,
    store: Store,
    sessions: Sequence[Reference],
    coverage: Coverage,
    notices: Notices,
    *,
    alive: Iterable[str] | None,
    whole: bool,
    refresh: bool = True,
    seconds: float = 0.0,
    now: float = 0.0,
    progress: Progress | None = None,
) -> Source:
    """The store's index, up to date for `sessions`; the coverage is told what is not.

    `alive` are all ids of the store, or None when it could not be listed. Without `refresh`, and when another process
    is writing, what is there is searched. `seconds` bounds the time spent, 0 is no bound.
    """
    index, lasting = indexes.opened(store)
    if refresh or not lasting:
        done, gone = 0, set()
        try:
            for row in index.refresh(store, sessions, alive=alive, seconds=seconds, progress=progress):
                if row["status"] == "failed":
                    coverage.unreadable[row["session_id"]] = row["error"]
                    notices.fail(row["session_id"], Unreadable(row["session_id"], row["error"]))
                elif row["status"] == "removed":
                    gone.add(row["session_id"])
                done += row["status"] in ("indexed", "appended")
            coverage.indexed_now += done
        except Locked as locked:
            notices.say(f"{locked}; what it holds so far is searched")
        except Unreadable as error:
            notices.fail(
                store.harness,
                Unreadable(f"all of the store, for its index cannot be written ({error.place})", error.reason),
            )
        sessions = [session for session in sessions if session.session_id not in gone]
    else:
        coverage.index_age = max(coverage.index_age or 0.0, index.age(now))
    _account(index, store, sessions, coverage)
    return Source(store.harness, index, sessions, whole, store.entry_at)


def _account(index: Index, store: Store, sessions: Sequence[Reference], coverage: Coverage) -> None:
    known = index.sessions()
    missing = 0
    for session in index.stale(store, sessions):
        name = session.session_id
        indexed = number_of(name) in known
        missing += not indexed
        if name not in coverage.unreadable:
            (coverage.stale if indexed else coverage.missing).append(name)
    coverage.searched += len(sessions) - missing
    there = (known.get(number_of(session.session_id)) for session in sessions)
    coverage.outputs_cut += sum(entry.cut for entry in there if entry)
