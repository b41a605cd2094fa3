"""tr-list: session rows, most recently updated first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import click

from ..command import (
    Run,
    directory_option,
    envelope_option,
    executable,
    harness_option,
    hours_option,
    limit_option,
    options,
    session_argument,
    since_until,
)
from ..output import encoded, lines, write
from ..record import Record
from ..selection import Sessions, Window, rows, selected, within


@executable("tr-list")
@options(
    session_argument,
    harness_option,
    hours_option(),
    since_until,
    directory_option,
    click.option("--parent", metavar="ID", help="Only the children of this session."),
    click.option("--roots", is_flag=True, help="No child sessions."),
    limit_option,
    click.option("--max-bytes", type=click.IntRange(min=0), default=0, help="At most so many bytes of output."),
    envelope_option,
)
def main(
    run: Run,
    sessions: tuple[str, ...],
    harnesses: tuple[str, ...],
    hours: float,
    since: str | None,
    until: str | None,
    directory: str,
    parent: str | None,
    roots: bool,
    limit: int,
    max_bytes: int,
    envelope: bool,
) -> int | None:
    """List sessions, the most recently updated first; with SESSION, just those."""
    known = Sessions(run.stores(harnesses), run.notices, run.looked)
    window = Window(since, until, directory, hours)
    found = _rows(run, known, sessions, window)
    if parent is not None:
        store, session = known.matching(parent)
        below = {child.session_id for child in store.children(session.session_id)}
        found = (row for row in found if row["harness"] == store.harness and row["session_id"] in below)
    if roots:
        found = (row for row in found if row["parent_session_id"] is None)
    found = run.damaged(found)
    if envelope:
        write([_enveloped(list(found), limit, max_bytes, run)])
    else:
        count = write(_fitting(lines(islice(found, limit or None)), max_bytes))
        everything = not (sessions or roots or parent is not None or window != Window())
        # How many there are is known without their rows, unless something selects among them.
        held_back = len(known.all()) - count if everything else sum(1 for _ in found)
        if held_back and limit:
            run.notices.say(f"TRUNCATED: {held_back} more sessions are held back by --limit {limit}")
    return None


def _rows(run: Run, known: Sessions, sessions: tuple[str, ...], window: Window) -> Iterator[Record]:
    if not sessions:
        yield from (row for row, _, _ in rows(known, window, run.now))
        return
    for store, session in selected(known, sessions, run.stdin, run.now):
        row = store.row(session, run.now)
        if within(window, row, store, session, run.now):
            yield row


def _fitting(printed: Iterable[bytes], max_bytes: int) -> Iterable[bytes]:
    size = 0
    for line in printed:
        size += len(line) + 1
        if max_bytes and size > max_bytes:
            return
        yield line


def _enveloped(found: list[Record], limit: int, max_bytes: int, run: Run) -> bytes:
    """As many of the first rows as fit; the first one always."""
    count = min(len(found), limit or len(found))
    rows = [encoded(row) for row in found[:count]]
    while True:
        held_back = len(found) - count
        notice = (
            f"TRUNCATED: {count} of the {len(found)} rows the window holds; raise limit or max_bytes,"
            " or narrow the window with hours or directory"
            if held_back
            else ""
        )
        head = {"window_count": len(found), "held_back": held_back, "max_bytes": max_bytes, "notice": notice}
        front = encoded({**head, **run.facts()})[:-1]
        document = front + b',"sessions":[' + b",".join(rows[:count]) + b"]}"
        if not max_bytes or len(document) <= max_bytes or count <= 1:
            return document
        count = max(1, min(count - 1, count * max_bytes // len(document)))
