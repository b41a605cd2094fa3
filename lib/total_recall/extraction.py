"""The flow that every session command shares: sessions -> a stream of each -> bounds -> output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .bounds import Account, Limits, bounded, clamped, enveloped
from .command import DONE, NOTHING, Run
from .notices import Unreadable
from .output import encoded, write
from .record import Record
from .selection import Selected, Sessions, Window, recent, selected
from .stores.base import Reference, Store

Stream = Callable[[Store, Reference], Iterable[Any]]


def chosen(run: Run, asked: tuple[str, ...], harnesses: tuple[str, ...]) -> Iterator[Selected]:
    """The sessions that the operands mean. Raises NoSession as they are looked for."""
    return selected(Sessions(run.stores(harnesses), run.notices, run.looked), asked, run.stdin, run.now)


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


def guarded(run: Run, store: Store, session: Reference, stream: Stream, *, named: bool = True) -> Iterator[Any]:
    """The session's stream, up to where it can be read; the rest is a failure.

    One that is gone meanwhile is a failure only if it was `named`, and not merely one of many.
    """
    try:
        yield from stream(store, session)
    except Unreadable as error:
        run.notices.fail(session.session_id, error)
    except FileNotFoundError as error:
        if named:
            run.notices.fail(session.session_id, Unreadable(session.path, error))


class Scope:
    """The sessions that a window command looks at: those named, whatever the window, else the window's, newest first.

    Iterating gives them, one at a time; `scanned` and `matched` count, for the account of the run.
    """

    def __init__(
        self,
        run: Run,
        asked: tuple[str, ...],
        harnesses: tuple[str, ...],
        hours: float,
        directory: str,
        since: str | None = None,
        until: str | None = None,
    ) -> None:
        self.run = run
        self.scanned = self.matched = 0
        self._asked = asked
        self._sessions = Sessions(run.stores(harnesses), run.notices, run.looked)
        self._window = Window(since, until, directory, 0 if asked else hours)

    def __iter__(self) -> Iterator[Selected]:
        return self.mentioning(())

    def mentioning(self, words: Sequence[str]) -> Iterator[Selected]:
        """Those in which any of `words` may stand, where a store can tell that by itself; all are counted."""
        mentions: dict[str, frozenset[str] | None] = {}
        for store, session in self._chosen():
            self.scanned += 1
            if words and store.harness not in mentions:
                mentions[store.harness] = store.mentioning(words)
            inside = mentions.get(store.harness)
            if inside is None or session.session_id in inside:
                yield Selected(store, session)

    def _chosen(self) -> Iterator[Selected]:
        run = self.run
        if self._asked:
            yield from selected(self._sessions, self._asked, run.stdin, run.now)
        elif self._window == Window():
            for store, session in self._sessions.all():
                yield Selected(store, session)
        else:
            for _, store, session in recent(self._sessions, self._window, run.now):
                yield Selected(store, session)

    def account(self) -> str:
        """How many sessions were looked at, and in how many something was found, as a sentence."""
        text = f"{self.scanned} sessions scanned, {self.matched} with hits"
        if failed := self.run.notices.failures:
            text += f", {len(failed)} unreadable: {', '.join(failed)}"
        return text

    def facts(self) -> Record:
        """The same as the fields of an envelope."""
        return {"scanned": self.scanned, "matched": self.matched, "unmatched": self.scanned - self.matched}

    def status(self) -> int:
        """1 when nothing was found, as grep has it."""
        return DONE if self.matched else NOTHING
