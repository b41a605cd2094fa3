"""Following a session while its harness writes it."""

from __future__ import annotations

import select
from collections.abc import Iterator
from time import sleep

from .output import die_of_sigpipe
from .record import Record
from .stores.base import Reference, State, Store

_PAUSE = 0.2  # seconds between two looks at the store


def follow(store: Store, session: Reference, full: bool) -> Iterator[Record]:
    """Messages as they are written, for ever: from the end on, or from the beginning with `full`.

    A session whose file was rewritten, compressed or moved is read again from its beginning, and goes on after the
    last record that was passed on. Otherwise all that the walk gives is new, also a result whose id was kept for it.
    An unterminated last line waits until it is whole. Ends when the reader goes.
    """
    state: State = {}
    last = known = 0
    for message in store.messages(session, state, whole=True):
        last = message["id"]
        if full:
            yield message
    signature = store.signature(session)
    while True:
        _pause()
        now = store.signature(session)
        if now == signature:
            continue
        signature = now
        if store.rewritten(session, state):
            session = _found_again(store, session)
            signature = store.signature(session)
            state, known = {}, last
        try:
            for message in store.messages(session, state, whole=True):
                if message["id"] > known:
                    last = max(last, message["id"])
                    yield message
        except FileNotFoundError:
            signature = ()


def _found_again(store: Store, session: Reference) -> Reference:
    for candidate in store.sessions():
        if candidate.session_id == session.session_id:
            return candidate
    return session


def _pause() -> None:
    if not hasattr(select, "poll"):
        sleep(_PAUSE)
        return
    gone = select.poll()
    gone.register(1, select.POLLERR)
    for _, event in gone.poll(_PAUSE * 1000):
        if event & (select.POLLERR | select.POLLHUP):
            die_of_sigpipe()
        sleep(_PAUSE)
