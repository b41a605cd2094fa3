"""tr-index: build the search index, or bring it up to date."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from ..command import (
    LOCKED,
    Failure,
    Progress,
    Run,
    directory_option,
    envelope_option,
    executable,
    harness_option,
    hours_option,
    interruptible,
    options,
    report_option,
    session_argument,
)
from ..command import Moment as MomentType
from ..index import Index, Locked
from ..indexed import number_of
from ..notices import Unreadable
from ..output import encoded, lines, write
from ..reading import Damaged
from ..record import Record
from ..report import index_line
from ..selection import NoSession, Sessions, Window, rows, selected
from ..shadow import folder
from ..stores.base import Reference, Store


@executable("tr-index")
@options(
    session_argument,
    harness_option,
    hours_option(),
    click.option(
        "--since", type=MomentType(), help="Only sessions that go on after: RFC 3339, a date, or 12h, 3d ago."
    ),
    directory_option,
    click.option("--rebuild", is_flag=True, help="Begin anew: throw the index away and index everything in scope."),
    click.option("--drop", "dropped", multiple=True, metavar="SESSION", help="Take this session out; repeatable."),
    click.option("--keep-deleted", is_flag=True, help="Keep what is gone from the store."),
    click.option("--wait", type=click.FloatRange(min=0), default=30, help="Seconds to wait for another writer (30)."),
    report_option,
    envelope_option,
)
def main(
    run: Run,
    sessions: tuple[str, ...],
    harnesses: tuple[str, ...],
    hours: float,
    since: str | None,
    directory: str,
    rebuild: bool,
    dropped: tuple[str, ...],
    keep_deleted: bool,
    wait: float,
    report: bool,
    envelope: bool,
) -> int | None:
    """Build or refresh the search index; by default everything that changed."""
    interruptible()
    stores = run.stores(harnesses)
    known = Sessions(stores, run.notices)
    everything = known.all()
    if sessions:
        chosen = [(pair.store, pair.session) for pair in selected(known, sessions, run.stdin, run.now)]
    elif hours or since or directory:
        chosen = [(store, session) for _, store, session in rows(known, Window(since, None, directory, hours), run.now)]
    else:
        chosen = everything

    left: list[str] = []

    def done() -> Iterator[Record]:
        for store in stores:
            if store.harness in run.notices.failures:
                continue  # a store that cannot be listed has not lost its sessions
            path = folder(store.harness, store.place, run.environ, run.notices)
            index = Index.open(path, run.notices) if path else None
            if path is None or index is None:
                run.notices.fail(store.harness, Unreadable(f"the index of {store.harness}", "see the notice"))
                continue
            if rebuild:
                index.clear(wait)
            mine = [session for owner, session in chosen if owner is store]
            if dropped:
                leaving = list(_indexed(known, store, index, dropped))
                if leaving:
                    left.extend(leaving)
                    yield from index.drop(store.harness, leaving, wait)
                continue
            alive = None
            if not keep_deleted and known.complete(store):
                alive = [session.session_id for owner, session in everything if owner is store]
            try:
                yield from _refreshed(run, store, index, mine, alive, wait)
            except Damaged as damaged:
                run.notices.say(f"{damaged} and is rebuilt")
                Index.discard(damaged.folder)
                if anew := Index.open(path, run.notices):
                    yield from _refreshed(run, store, anew, mine, alive, wait)
            except Unreadable as error:
                run.notices.fail(store.harness, error)

    try:
        if envelope:
            write([encoded({**run.facts(), "indexed": list(done())})])
        else:
            write((index_line(row).encode() for row in done()) if report else lines(done()))
        if dropped and not left:
            raise Failure(f"no indexed session matching {', '.join(map(repr, dropped))} - see tr-list")
    except Locked as locked:
        raise Failure(f"{locked} - wait for it to end, or raise --wait", LOCKED) from None
    return None


def _refreshed(
    run: Run, store: Store, index: Index, sessions: list[Reference], alive: Iterable[str] | None, wait: float
) -> Iterator[Record]:
    progress = Progress(run, f"indexing {store.harness}")
    changed = set()
    for row in index.refresh(store, sessions, alive=alive, wait=wait, progress=progress):
        changed.add(row["session_id"])
        if row["status"] == "failed":
            run.notices.fail(row["session_id"], Unreadable(row["session_id"], row["error"]))
        yield row
    progress.clear()
    known = index.sessions()
    for session in sessions:
        if session.session_id not in changed and (entry := known.get(number_of(session.session_id))):
            yield {
                "harness": store.harness,
                "session_id": session.session_id,
                "docs": entry.documents,
                "added": 0,
                "seconds": 0.0,
                "status": "unchanged",
            }


def _indexed(known: Sessions, store: Store, index: Index, names: tuple[str, ...]) -> Iterator[str]:
    """The indexed ids that these names mean in a store; a session that is gone from it goes by its whole id."""
    for name in names:
        try:
            name = known.matching(name, store.harness)[1].session_id
        except NoSession:
            pass
        if number_of(name) in index.sessions():
            yield name
