"""The messages round a record, reached without reading the session from its beginning."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .record import Record
from .stores.base import Reference, Store

_GAP = 2  # ids of messages may be missing, one for each call that has no result yet


def around(
    store: Store, session: Reference, number: int, before: int, after: int, *, turn: bool = False
) -> Iterator[Record]:
    """The messages before a record, the record, and those after it; 0 means the session's beginning.

    With `turn` from the person's last prompt at or before it to the next one, whatever the numbers. Raises Unreadable.
    """
    if turn:
        yield from _turn(store, session, max(number, 1))
        return
    waiting: deque[Record] = deque(maxlen=before)
    left = None if number else after + 1
    for message in _from(store, session, number - _GAP * before - 1):
        if left is None and message["id"] < number:
            waiting.append(message)
            continue
        if left is None:
            yield from waiting
            # A record that is gone or reserved has neighbours all the same.
            left = after + 1 if message["id"] == number else after
        if not left:
            return
        left -= 1
        yield message
    if left is None:
        yield from waiting


def _turn(store: Store, session: Reference, number: int) -> Iterator[Record]:
    waiting: list[Record] = []
    for message in store.messages(session):
        prompt = message["class"] in ("human-text", "delegated-text")
        if prompt and message["id"] > number:
            break
        if prompt:
            waiting.clear()
        if message["id"] <= number:
            waiting.append(message)
            continue
        yield from waiting
        waiting.clear()
        yield message
    yield from waiting


def _from(store: Store, session: Reference, first: int) -> Iterator[Record]:
    return store.messages_from(session, first) if first > 1 else store.messages(session)
