"""The flow that every session command shares: sessions -> a stream of each -> bounds -> output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .bounds import Account, Limits, bounded, clamped, enveloped
from .command import Run
from .notices import Unreadable
from .output import encoded, write
from .selection import Selected, Sessions, selected
from .stores.base import Reference, Store

Stream = Callable[[Store, Reference], Iterable[Any]]


def chosen(run: Run, asked: tuple[str, ...], harnesses: tuple[str, ...]) -> Iterator[Selected]:
    """The sessions that the operands mean. Raises NoSession as they are looked for."""
    return selected(Sessions(run.stores(harnesses), run.notices), asked, run.stdin, run.now)


def each(
    run: Run,
    asked: tuple[str, ...],
    harnesses: tuple[str, ...],
    stream: Stream,
    limits: Limits,
    envelope: str | None,
    *,
    full: bool,
    encode: Callable[[Any], bytes] = encoded,
    clamp: Callable[[Any, int], tuple[Any, bool]] = clamped,
    flush: bool = False,
) -> int:
    """Print the stream of each session within the bounds, as lines or as one envelope a session.

    `envelope` is the key of the records in it. A session that cannot be read is a failure of its own: what could be
    read of it is printed, and the others are. Returns the number of lines.
    """

    def printed() -> Iterator[bytes]:
        for store, session in chosen(run, asked, harnesses):
            records = guarded(run, store, session, stream)
            try:
                if envelope:
                    head = {"session_id": session.session_id, "harness": session.harness, "full": full}
                    yield enveloped(head, envelope, records, limits, run.facts, encode, clamp)
                    continue
                account = Account(limits)
                yield from bounded(records, limits, account, encode, clamp)
                if notice := account.notice():
                    run.notices.say(f"{session.session_id}: {notice}")
            finally:
                run.tell()

    return write(printed(), flush=flush)


def guarded(run: Run, store: Store, session: Reference, stream: Stream) -> Iterator[Any]:
    """The session's stream, up to where it can be read; the rest is a failure. A session that is gone says nothing."""
    try:
        yield from stream(store, session)
    except Unreadable as error:
        run.notices.fail(session.session_id, error)
    except FileNotFoundError as error:
        run.notices.fail(session.session_id, Unreadable(session.path, error))
