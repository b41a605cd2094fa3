"""Which lines of a Codex thread are copies of another thread's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..notices import Notices, Unreadable
from ..record import Record
from ..times import epoch
from ._codex_lines import unwrapped
from ._jsonl import Lines
from .base import State

_GAP = 0.5  # seconds: a fork writes all its copies in one go


class Copies:
    """The copied lines at the beginning of a thread, while they last.

    A sub-agent that was given its parent's history says at which ordinal its own begins: `state["replay"]`. A legacy
    fork, and the rewind of old versions, is known by a second session_meta, the other thread's. Then the copies are
    the items that the other thread has too, one after the other, written at the moment of the fork (their own times
    are lost); where its file is gone, the time alone tells. `state["copy"]` is `{"from", "ts", "offset"}`: the other
    thread's id, the time of the last line, and the place reached in the other file (None: there is none).

    `original(id)` gives the path of a thread's file, or None.
    """

    def __init__(self, state: State, original: Callable[[str], str | None]) -> None:
        self.active = "replay" in state or "copy" in state  # whether there may be copies to come
        self._state = state
        self._original = original
        self._items: Iterator[tuple[Record, int]] | None = None

    def begin_before(self, ordinal: int) -> None:
        """What comes now was copied, up to that ordinal."""
        self.active = True
        self._state["replay"] = ordinal

    def begin(self, other: str, ts: str | None) -> None:
        """What comes now was copied from the thread `other`."""
        self.active = True
        self._state["copy"] = {"from": other, "ts": ts, "offset": 0}

    def hold(self, kind: str | None, payload: Record, ordinal: object, ts: str | None) -> bool:
        """Whether this line is a copy."""
        state = self._state
        if "replay" in state and kind != "session_meta":
            if isinstance(ordinal, int) and ordinal < state["replay"]:
                return True
            del state["replay"]
        if "copy" in state:
            if self._is_copy(state["copy"], kind, payload, ts):
                return True
            del state["copy"]
        self.active = "replay" in state
        return False

    def _is_copy(self, copy: Record, kind: str | None, payload: Record, ts: str | None) -> bool:
        before, now = epoch(copy["ts"]), epoch(ts)
        if before is not None and now is not None and not 0 <= now - before < _GAP:
            return False
        copy["ts"] = ts or copy["ts"]
        if kind not in ("response_item", "compacted"):
            return True
        if self._items is None:
            self._items = self._originals(copy)
        for original, offset in self._items:
            copy["offset"] = offset
            try:
                return original == payload
            except RecursionError:
                return False
        return copy["offset"] is None

    def _originals(self, copy: Record) -> Iterator[tuple[Record, int]]:
        path = self._original(copy["from"]) if copy["offset"] is not None else None
        if path is None or path.endswith(".json"):
            copy["offset"] = None
            return
        source = Lines(path, Notices(), lambda value: False, offset=copy["offset"])
        try:
            for _, _, value in source:
                kind, payload = unwrapped(value)
                if kind in ("response_item", "compacted"):
                    yield payload, source.offset
        except (OSError, Unreadable):
            copy["offset"] = None
