"""What each response of a Codex thread used, put on the last of its items."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..record import Record
from ._codex_items import mapping
from ._codex_lines import Ahead, Line
from .base import State

_OTHERS = frozenset(("response_item", "compacted"))  # what has usage of its own


class Count(NamedTuple):
    """One line that counts tokens: the thread's total, and what the last response used.

    A `token_count` event may be repeated, and then has the total of the one before it; a token_usage_record (0.171)
    is written once for each response, `certain`.
    """

    total: int
    last: Record
    certain: bool


def count_of(kind: str | None, payload: Record) -> Count | None:
    """The token count that a line holds."""
    if kind == "token_usage_record":
        total, last = payload.get("thread_token_usage"), payload.get("usage")
    elif kind == "event_msg" and payload.get("type") == "token_count":
        info = mapping(payload.get("info"))
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
    else:
        return None
    total = mapping(total).get("total_tokens")
    return Count(total, mapping(last), kind == "token_usage_record") if isinstance(total, int) else None


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

    def meet(self, line: Line, place: int) -> None:
        """A line that counts, at an offset over all files."""
        state = self._state
        if count := self._new(line):
            if state.get("claimed") != place:
                state["usage"] = _sum(state.get("usage"), usage(count.last))
            state["total"] = count.total

    def of_item(self, ahead: Ahead) -> Record | None:
        """What the response used whose last item this is.

        The count follows the response's items, before the outputs of its calls. Up to 0.45 it goes before the items:
        the first of them takes it, as the next item takes a count that none before it could.
        """
        state = self._state
        owed = state.pop("usage", None)
        for line in ahead.peek():
            if line.kind in _OTHERS:
                break
            if count := self._new(line):
                state["claimed"] = state["start"] + line.start
                return _sum(owed, usage(count.last))
        return owed

    def of_compaction(self) -> Record | None:
        """What the request for the summary used: it was counted just before."""
        return self._state.pop("usage", None)

    def _new(self, line: Line) -> Count | None:
        count = count_of(line.kind, line.payload)
        return count if count and (count.certain or count.total != self._state.get("total")) else None


def _sum(one: Record | None, other: Record) -> Record:
    return {key: one[key] + count for key, count in other.items()} if one else other
