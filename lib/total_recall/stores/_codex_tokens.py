"""What each response of a Codex thread used, put on the last of its items."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..record import Record
from ._codex_items import mapping
from ._codex_lines import Ahead, Line
from .base import State

_OTHERS = frozenset(("response_item", "compacted"))  # what has usage of its own


class Count(NamedTuple):
    """One line that counts tokens: the thread's total, and what the last response used."""

    total: int
    last: Record


def usage(last: Record) -> Record:
    """What a response used; `input` is without what was read from the cache or written to it."""
    read, written = _tokens(last.get("cached_input_tokens")), _tokens(last.get("cache_write_input_tokens"))
    return {
        "input": max(_tokens(last.get("input_tokens")) - read - written, 0),
        "output": _tokens(last.get("output_tokens")),
        "cache_read": read,
        "cache_write": written,
        "reasoning": _tokens(last.get("reasoning_output_tokens")),
    }


def _tokens(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else 0


class Tokens:
    """The counts of a walk.

    `state` has `total` (of the last count), `usage` (not yet given to an item) and `claimed` (the place of the last
    count that an item before it took).
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._claimed: Count | None = None  # that of the line which `state["claimed"]` tells of

    def meet(self, line: Line, place: int) -> None:
        """A line that counts, at an offset over all files."""
        state = self._state
        claimed = state.get("claimed") == place
        if count := self._claimed if claimed and self._claimed else self._new(line):
            if not claimed:
                state["usage"] = _sum(state.get("usage"), usage(count.last))
            state["total"] = count.total

    def of_item(self, ahead: Ahead) -> Record | None:
        """What the response used whose last item this is.

        The count follows the response's items, before the outputs of its calls. Up to 0.45 it goes before the items:
        the first of them takes it, as the next item takes a count that none before it could.
        """
        owed, count = self._state.pop("usage", None), self._claim(ahead)
        return _sum(owed, usage(count.last)) if count else owed

    def pass_item(self, ahead: Ahead) -> None:
        """The same, where nobody wants to know it."""
        self._state.pop("usage", None)
        self._claim(ahead)

    def _claim(self, ahead: Ahead) -> Count | None:
        for line in ahead.peek():
            if line.kind in _OTHERS:
                break
            if count := self._new(line):
                self._state["claimed"], self._claimed = self._state["start"] + line.start, count
                return count
        return None

    def of_compaction(self) -> Record | None:
        """What the request for the summary used: it was counted just before."""
        return self._state.pop("usage", None)

    def _new(self, line: Line) -> Count | None:
        """The count that a line holds, unless it repeats the one before it.

        A `token_count` event may be repeated, and then has the same total; a token_usage_record (0.171) is written
        once for each response.
        """
        payload = line.payload
        if line.kind == "event_msg" and payload.get("type") == "token_count":
            info = mapping(payload.get("info"))
            total = mapping(info.get("total_token_usage")).get("total_tokens")
            if not isinstance(total, int) or total == self._state.get("total"):
                return None
            return Count(total, mapping(info.get("last_token_usage")))
        if line.kind == "token_usage_record":
            total = mapping(payload.get("thread_token_usage")).get("total_tokens")
            return Count(total, mapping(payload.get("usage"))) if isinstance(total, int) else None
        return None


def _sum(one: Record | None, other: Record) -> Record:
    return {key: one[key] + count for key, count in other.items()} if one else other
