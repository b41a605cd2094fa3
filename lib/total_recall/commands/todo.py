"""tr-todo: how the todo list of a session changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from ..command import (
    WRONG,
    Failure,
    Run,
    envelope_option,
    executable,
    harness_option,
    options,
    report_option,
    session_argument,
)
from ..extraction import chosen, guarded
from ..output import encoded, write
from ..record import Record
from ..stores.base import Reference, Store
from ..todos import NoTodoTool, events


@executable("tr-todo")
@options(
    session_argument,
    harness_option,
    click.option("--full/--no-full", default=True, help="The whole session, or only from its last compaction on."),
    report_option,
    envelope_option,
)
def main(
    run: Run, sessions: tuple[str, ...], harnesses: tuple[str, ...], full: bool, report: bool, envelope: bool
) -> int | None:
    """Print the history of a session's todo list, as the edits between its states."""
    refused: list[str] = []

    def edits(store: Store, session: Reference) -> Iterable[Record]:
        messages = store.messages(session) if full else store.since_compaction(session)
        return events(messages, store.harness, run.notices)

    def printed() -> Iterator[bytes]:
        for store, session in chosen(run, sessions, harnesses):
            try:
                found = guarded(run, store, session, edits)
                if not (report or envelope):
                    yield from map(encoded, found)
                    continue
                rows = list(found)
            except NoTodoTool as error:
                if len(sessions) < 2 and "-" not in sessions:
                    raise Failure(str(error)) from error
                refused.append(f"{session.session_id}: {error}")
                run.notices.say(refused[-1])
                continue
            head = {"session_id": session.session_id, "harness": session.harness, "full": full}
            if envelope:
                yield encoded({**head, **run.facts(), "events": rows})
            else:
                yield b"# " + encoded({**head, "events": len(rows), **run.facts()})
                yield from map(encoded, rows)

    write(printed())
    return WRONG if refused else None
