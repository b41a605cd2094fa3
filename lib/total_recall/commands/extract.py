"""tr-extract: the messages of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from ..command import (
    Failure,
    Run,
    bounds_options,
    envelope_option,
    executable,
    harness_option,
    limits,
    options,
    session_argument,
    since_until,
)
from ..extraction import each
from ..record import ROLES, Record
from ..selection import Passed, picked
from ..stores.base import Reference, Store


@executable("tr-extract")
@options(
    session_argument,
    harness_option,
    click.option("--full", is_flag=True, help="The whole session, not only what follows its last compaction."),
    click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only this role; repeatable."),
    since_until,
    click.option("--branches", is_flag=True, help="Mark records of abandoned branches (one more pass)."),
    click.option("--with-history", is_flag=True, help="First the records that a fork inherits by reference."),
    click.option("--follow", is_flag=True, help="Keep running, and print messages as they are written."),
    bounds_options,
    envelope_option,
)
def main(
    run: Run,
    sessions: tuple[str, ...],
    harnesses: tuple[str, ...],
    full: bool,
    roles: tuple[str, ...],
    since: str | None,
    until: str | None,
    branches: bool,
    with_history: bool,
    follow: bool,
    envelope: bool,
    **bounds: Any,
) -> int | None:
    """Print the messages of a session from its last compaction on."""
    limited = limits(bounds)
    if follow and (envelope or not limited.none or len(sessions) > 1 or "-" in sessions):
        raise Failure("--follow prints one session as it grows - leave out bounds, --envelope and other sessions")
    passed = Passed()

    def messages(store: Store, session: Reference) -> Iterable[Record]:
        stream = _followed(store, session, full) if follow else walked(store, session)
        return picked(stream, roles, since, until, passed)

    def walked(store: Store, session: Reference) -> Iterator[Record]:
        if with_history:
            yield from store.history(session)
        stream = store.messages(session) if full else store.since_compaction(session)
        ranges = store.branches(session, look=branches)
        yield from store.marked(stream, ranges) if ranges else stream

    each(run, sessions, harnesses, messages, limited, "messages" if envelope else None, full=full, flush=follow)
    if passed.timeless:
        run.notices.say(f"{passed.timeless} records without a time are printed whatever --since and --until say")
    return None


def _followed(store: Store, session: Reference, full: bool) -> Iterator[Record]:
    """The messages as they are written: from the end on, or from the beginning with `full`."""
    from ..follow import follow

    return follow(store, session, full)
