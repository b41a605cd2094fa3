"""Which sessions and which records: partial ids, references from stdin, windows, directories, times and roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from typing import IO, NamedTuple

import orjson

from .notices import Notices, Unreadable
from .record import Record, scrubbed
from .stores.base import GONE, Reference, Store
from .times import epoch, from_epoch

_CLOCKS = 2  # seconds that a harness's clock and a file's may differ by
_MANY = 100  # rows of a store after which all of them are fetched at once


class NoSession(Exception):
    """No session matches; the sentence says what was asked for and where it was looked for."""


class Selected(NamedTuple):
    """A session to visit."""

    store: Store
    session: Reference


class Sessions:
    """The sessions of a run's stores, listed once."""

    def __init__(self, stores: Iterable[Store], notices: Notices, looked: Callable[[], list[str]] = list) -> None:
        self.stores = list(stores)
        self._looked = looked
        self.notices = notices
        self._listed: list[tuple[Store, Reference]] | None = None
        self._partly: set[str] = set()

    def complete(self, store: Store) -> bool:
        """Whether nothing kept the store from being listed: what is not among its sessions is not there."""
        return store.harness not in self.notices.failures and store.harness not in self._partly

    def listed(self, since: float = 0.0, directory: str = "") -> Iterator[tuple[Store, Reference]]:
        """Every session of every store; a store that cannot be listed is remembered as a failure."""
        if self._listed is not None:
            yield from (pair for pair in self._listed if pair[1].updated >= since)
            return
        for store in self.stores:
            try:
                store.remember.expect("head")
                failures = len(self.notices.failures)
                sessions = store.sessions(since, directory)
                if len(self.notices.failures) > failures:
                    self._partly.add(store.harness)
                if not (since or directory):
                    store.adopt(sessions)
                for session in sessions:
                    yield store, session
            except Unreadable as error:
                self.notices.fail(store.harness, error)

    def all(self) -> list[tuple[Store, Reference]]:
        """Every session, most recently updated first."""
        if self._listed is None:
            self._listed = sorted(self.listed(), key=_newest)
        return self._listed

    def matching(self, asked: str, harness: str | None = None) -> tuple[Store, Reference]:
        """The session that a (partial) id means: an exact id wins, then a prefix, then a substring.

        Among several the most recent is taken, and a notice counts the others. Raises NoSession.
        """
        listed = [pair for pair in self.all() if harness in (None, pair[1].harness)]
        asked = scrubbed(asked)
        tests: tuple[Callable[[str], bool], ...] = (
            lambda name: scrubbed(name) == asked,
            lambda name: scrubbed(name).startswith(asked),
            lambda name: asked in scrubbed(name),
        )
        for test in tests if asked else ():
            found = [pair for pair in listed if test(pair[1].session_id)]
            found = found or [pair for pair in listed if any(map(test, names_of(pair[1])))]
            if not found:
                continue
            if len(found) > 1:
                others = ", ".join(f"{s.session_id} ({s.harness})" for _, s in found[1:4])
                self.notices.say(
                    f"{asked!r} matches {len(found)} sessions, the most recent is taken: {found[0][1].session_id}"
                    f" ({found[0][1].harness}); others: {others}{', ...' if len(found) > 4 else ''}"
                )
            return found[0]
        raise NoSession(f"no session matching {asked!r} under {self._roots()}")

    def latest(self, now: float) -> tuple[Store, Reference]:
        """The session with the latest end time. Raises NoSession."""
        best: tuple[float, Store, Reference] | None = None
        restored = False
        for store, session in self.all():
            # As in `rows`, nothing later can follow. A session without any time (nothing but a title in it, say) is
            # the last to be meant.
            if best and not restored and session.updated < best[0]:
                break
            row = store.row(session, now)
            moment = recency(row, session, now) if row["end_time"] else 0.0
            restored = restored or _is_restored(moment, session)
            if best is None or moment > best[0]:
                best = (moment, store, session)
        if best is None:
            raise NoSession(f"no sessions found under {self._roots()}")
        return best[1:]

    def _roots(self) -> str:
        return ", ".join([store.root for store in self.stores] or self._looked()) or "any known store (see tr-stores)"


def names_of(session: Reference) -> list[str]:
    """The other names that mean a session: aliases, and the names of files that are its alone."""
    files = (path.rsplit("/", 1)[-1] for path in session.files)
    return [*session.names, *(name for name in files if session.session_id[:8] in name)]


def selected(sessions: Sessions, asked: tuple[str, ...], stdin: IO[bytes] | None, now: float) -> Iterator[Selected]:
    """The sessions that a command's operands mean: each once, in the order of its first reference.

    None is the latest session; `-` reads references from stdin as they come. Raises NoSession.
    """
    if not asked:
        yield Selected(*sessions.latest(now))
        return
    seen: set[tuple[str, str]] = set()
    for word in asked:
        for name, harness, _ in references(stdin, sessions.notices) if word == "-" else ((word, None, None),):
            store, session = sessions.matching(name, harness)
            if (session.harness, session.session_id) not in seen:
                seen.add((session.harness, session.session_id))
                yield Selected(store, session)


def references(stdin: IO[bytes] | None, notices: Notices) -> Iterator[tuple[str, str | None, int | None]]:
    """(session id, harness, record id) of each line: a bare id, or a JSON object with these keys."""
    for number, line in enumerate(stdin or (), 1):
        line = line.strip()
        if not line:
            continue
        if not line.startswith(b"{"):
            yield line.decode("utf-8", "replace"), None, None
            continue
        try:
            value = orjson.loads(line)
        except ValueError:
            notices.say(f"line {number} of standard input is no reference and is passed over")
            continue
        name, harness, record = (value.get(key) for key in ("session_id", "harness", "id"))
        if not isinstance(name, str) or not name:
            notices.say(f"line {number} of standard input names no session_id and is passed over")
            continue
        yield name, harness if isinstance(harness, str) else None, record if type(record) is int else None


class Window(NamedTuple):
    """A stretch of time and a directory; moments are RFC 3339 or None, `directory` a literal substring."""

    since: str | None = None
    until: str | None = None
    directory: str = ""
    hours: float = 0

    def start(self, now: float) -> float:
        """The earliest update time that can be in the window, in seconds since 1970."""
        moments = [epoch(self.since) or 0.0] if self.since else [0.0]
        if self.hours:
            moments.append(max(0.0, now - self.hours * 3600))
        return max(moments)

    def holds(self, row: Record, now: float) -> bool:
        """Whether the session's span overlaps the window and its end lies within the hours."""
        start, end = row["start_time"] or row["end_time"], row["end_time"] or row["start_time"]
        if self.hours and (end is None or end < (from_epoch(now - self.hours * 3600) or "")):
            return False
        if self.since and (end is None or end < self.since):
            return False
        return not (self.until and (start is None or start > self.until))


def rows(sessions: Sessions, window: Window, now: float) -> Iterator[tuple[Record, Store, Reference]]:
    """The rows of the sessions in the window, most recently updated first, as soon as their order is certain.

    No session ends after its file was last written, so a row is due when it ended later than what is still to come.
    Where one does (files put back with other times), the times of files say nothing and all rows are read first.
    """
    waiting: list[tuple[float, str, str, int, tuple[Record, Store, Reference]]] = []
    restored = False
    for number, found in enumerate(recent(sessions, window, now)):
        row, _, session = found
        moment = recency(row, session, now)
        restored = restored or _is_restored(moment, session)
        while waiting and not restored and -waiting[0][0] > session.updated:
            yield heappop(waiting)[-1]
        heappush(waiting, (-moment, row["session_id"], row["harness"], number, found))
    while waiting:
        yield heappop(waiting)[-1]


def recent(sessions: Sessions, window: Window, now: float) -> Iterator[tuple[Record, Store, Reference]]:
    """The sessions in the window, most recently updated first, each looked at only when it is its turn."""
    homeless = 0
    start = window.start(now)
    listed = (
        sorted(sessions.listed(start, window.directory), key=_newest) if start or window.directory else sessions.all()
    )
    asked = dict.fromkeys((store.harness for store in sessions.stores), 0)
    for store, session in listed:
        asked[store.harness] += 1
        if asked[store.harness] == _MANY:
            store.remember.expect("row")
        row = store.row(session, now)
        if row.get("read_error") == GONE:
            continue
        homeless += bool(window.directory) and row["directory"] is None
        if within(window, row, store, session, now):
            yield row, store, session
    _say_homeless(sessions, homeless)


def within(window: Window, row: Record, store: Store, session: Reference, now: float) -> bool:
    """Whether a session is in the window: by its times, and by any directory that it was in."""
    if not window.holds(row, now):
        return False
    if window.directory in (row["directory"] or ""):
        return True
    try:
        return any(window.directory in other for other in store.directories(session))
    except (Unreadable, FileNotFoundError):
        return False


def _newest(pair: tuple[Store, Reference]) -> tuple[float, str, str]:
    return -pair[1].updated, pair[1].session_id, pair[1].harness


def _say_homeless(sessions: Sessions, homeless: int) -> None:
    if homeless:
        told = (
            "1 session records no directory and is"
            if homeless == 1
            else f"{homeless} sessions record no directory and are"
        )
        sessions.notices.say(f"{told} not selected by --directory")


def recency(row: Record, session: Reference, now: float) -> float:
    """The moment that orders a session among others: its end, or the file's time where the end lies ahead of now."""
    end = epoch(row["end_time"])
    if end is None:
        return session.updated
    return min(end, session.updated) if end > now else end


def _is_restored(moment: float, session: Reference) -> bool:
    """Whether a file's time lies before its session's end: it is not when the harness last wrote it."""
    return moment > session.updated + _CLOCKS


class Passed:
    """Counts what a selection of messages lets through by default: those without a time."""

    def __init__(self) -> None:
        self.timeless = 0


def picked(
    messages: Iterable[Record], roles: tuple[str, ...], since: str | None, until: str | None, passed: Passed
) -> Iterable[Record]:
    """The messages of these roles within these moments; one without a time goes with its session and is counted."""
    if roles:
        messages = (message for message in messages if message["role"] in roles)
    if not (since or until):
        return messages

    def within(message: Record) -> bool:
        ts = message["ts"]
        if ts is None:
            passed.timeless += 1
            return True
        return not ((since and ts < since) or (until and ts > until))

    return filter(within, messages)
