"""tr-qa: what the person was asked, and answered."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import click

from ..command import (
    COUNT,
    Run,
    directory_option,
    envelope_option,
    executable,
    harness_option,
    hours_option,
    options,
    report_option,
    session_argument,
)
from ..extraction import Scope, guarded
from ..output import encoded, lines, write
from ..questions import pairs
from ..record import Record
from ..report import answered, spooled
from ..stores.base import Reference, Store


@executable("tr-qa")
@options(
    session_argument,
    harness_option,
    hours_option(48),
    directory_option,
    click.option("--limit", type=COUNT, default=100, help="At most so many pairs a session, the last ones (100)."),
    report_option,
    envelope_option,
)
def main(
    run: Run,
    sessions: tuple[str, ...],
    harnesses: tuple[str, ...],
    hours: float,
    directory: str,
    limit: int,
    report: bool,
    envelope: bool,
) -> int | None:
    """Print the questions that were asked through a question tool, with their answers."""
    scope = Scope(run, sessions, harnesses, hours, directory)
    held_back = 0

    def asked(store: Store, session: Reference) -> Iterator[Record]:
        # Named, a session's copies of an earlier one's questions are wanted too; in a window they count once.
        return pairs(store.messages(session), replayed=bool(sessions))

    def found() -> Iterator[Record]:
        nonlocal held_back
        for store, session in scope:
            last: deque[Record] = deque(maxlen=limit or None)
            count = 0
            for pair in guarded(run, store, session, asked, named=bool(sessions)):
                count += 1
                last.append(pair)
            scope.matched += count > 0
            held_back += count - len(last)
            yield from last

    def head() -> Iterator[str]:
        yield f"# questions and answers — {scope.account()}"
        if held_back:
            yield f"# {held_back} earlier pairs held back"
        yield ""

    if envelope:
        rows = list(found())
        write([encoded({**scope.facts(), "held_back": held_back, **run.facts(), "pairs": rows})])
    elif report:
        write(spooled(head, answered(found())))
    else:
        write(lines(found()))
    if held_back:
        run.notices.say(f"{held_back} earlier pairs are held back by --limit {limit}")
    return scope.status()
