"""Which sessions a search looks through, and why others are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .record import Record
from .selection import Sessions, Window, rows
from .stores.base import Reference, Store


class Scope(NamedTuple):
    """The sessions in scope, most recently updated first; why others are not, by number; what to say about it."""

    chosen: list[tuple[Store, Reference]]
    known: int
    skipped: dict[str, int]
    said: list[str]

    def by_store(self, stores: Iterable[Store]) -> Iterator[tuple[Store, list[Reference]]]:
        """Each store with its sessions in scope."""
        for store in stores:
            yield store, [session for owner, session in self.chosen if owner is store]


def scoped(
    sessions: Sessions,
    window: Window,
    now: float,
    *,
    only: tuple[str, ...] = (),
    excluded: tuple[str, ...] = (),
    current: str = "",
    roots: bool = False,
) -> Scope:
    """The sessions of a window, or those named by `only`, without the families of `excluded` and of `current`.

    `current` is the session that asks, if it is known; unlike `excluded` it need not exist. Raises NoSession.
    """
    everything = sessions.all()
    said: list[str] = []
    skipped: dict[str, int] = {}
    chosen = everything
    if only:
        named = {(s.harness, s.session_id): (store, s) for store, s in map(sessions.matching, only)}
        chosen = list(named.values())
    elif window.directory or window.hours:
        chosen = [(store, session) for _, store, session in rows(sessions, window, now)]
    elif window.since:
        start = window.start(now)
        chosen = [pair for pair in everything if pair[1].updated >= start]
    left_out = len(everything) - len(chosen)
    if left_out:
        skipped["session" if only else "window"] = left_out
    for reason, names in (("excluded", excluded), ("current session", (current,) if current else ())):
        family: set[tuple[str, str]] = set()
        for name in names:
            found = _named(sessions, name) if reason == "current session" else sessions.matching(name)
            family |= _family(found, everything) if found else set()
        chosen = _without(chosen, family, reason, skipped)
        if family and reason == "current session" and skipped.get(reason):
            said.append(f"the current session and its family are left out ({skipped[reason]} of them in scope)")
    if roots:
        children = {(s.harness, s.session_id) for store, s in chosen if store.parent(s) is not None}
        chosen = _without(chosen, children, "child session", skipped)
    return Scope(chosen, len(everything), skipped, said)


def _named(sessions: Sessions, name: str) -> tuple[Store, Reference] | None:
    for pair in sessions.all():
        if name == pair[1].session_id or name in pair[1].names:
            return pair
    return None


def _without(
    chosen: list[tuple[Store, Reference]], family: set[tuple[str, str]], reason: str, skipped: dict[str, int]
) -> list[tuple[Store, Reference]]:
    kept = [pair for pair in chosen if (pair[1].harness, pair[1].session_id) not in family]
    if len(kept) < len(chosen):
        skipped[reason] = len(chosen) - len(kept)
    return kept


def _family(found: tuple[Store, Reference], everything: list[tuple[Store, Reference]]) -> set[tuple[str, str]]:
    """A session, its sub-agents, the session that spawned it, and its lineage; the whole tree of each."""
    store, session = found
    known = {s.session_id: s for owner, s in everything if owner is store}
    links: dict[str, set[str]] = {}

    def link(one: str, other: str | None) -> None:
        if other:
            links.setdefault(one, set()).add(other)
            links.setdefault(other, set()).add(one)

    for member in known.values():
        link(member.session_id, store.parent(member))
        link(member.session_id, _origin(store, member, fresh=member is session))
    family, waiting = {session.session_id}, [session.session_id]
    while waiting:
        for other in links.get(waiting.pop(), ()):
            if other not in family:
                family.add(other)
                waiting.append(other)
    return {(store.harness, member) for member in family}


def _origin(store: Store, session: Reference, *, fresh: bool) -> str | None:
    """The session that this one continues or copies, as far as it was learned; `fresh` looks at the session itself."""
    kept = store.remember.get("facts", store.memory_key(session))
    facts: Record | None = kept[1] if kept else None
    if fresh:
        row = store.row(session)
        origin = row.get("forked_from")
    else:
        origin = (facts or {}).get("about", {}).get("forked_from")
    name = origin.get("session_id") if isinstance(origin, dict) else None
    return name if isinstance(name, str) else None
