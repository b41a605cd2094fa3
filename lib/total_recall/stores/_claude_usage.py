"""What the model's responses of a Claude transcript used."""

from __future__ import annotations

from typing import Any

from ..record import Record
from .base import State

_RESPONSES = 4  # that may be interleaved


class Usages:
    """The usage of each response, counted once; `state["responses"]` has the last few, by the ids they have."""

    def __init__(self, state: State) -> None:
        self._known: dict[str, list[int]] = state.setdefault("responses", {})

    def added(self, response: Record, request: Any) -> Record | None:
        """What a record adds to the usage of its response, so that the sum is the last snapshot.

        Every record of a response repeats its usage, and early ones may hold less than the last.
        """
        usage = response.get("usage")
        if not isinstance(usage, dict):
            return None
        counts = _counts(usage)
        key = f"{response.get('id')} {request}"
        known = self._known.get(key) if response.get("id") else None
        if known == counts:
            return None
        if known is None:
            self._known[key] = counts
            if len(self._known) > _RESPONSES:
                del self._known[next(iter(self._known))]
        else:
            self._known[key] = list(map(max, counts, known))
            counts = [max(0, new - old) for new, old in zip(counts, known, strict=True)]
        return _usage(*counts) if any(counts) else None


def _counts(usage: Record) -> list[int]:
    details = usage.get("output_tokens_details")
    return [
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(usage.get("cache_read_input_tokens")),
        count(usage.get("cache_creation_input_tokens")),
        count(details.get("thinking_tokens")) if isinstance(details, dict) else 0,
    ]


def _usage(input: int, output: int, cache_read: int, cache_write: int, reasoning: int) -> Record:
    return {
        "input": input,
        "output": output,
        "cache_read": cache_read,
        "cache_write": cache_write,
        "reasoning": reasoning,
    }


def count(value: Any) -> int:
    """A number of tokens; 0 for what is none."""
    return value if type(value) is int and value > 0 else 0
