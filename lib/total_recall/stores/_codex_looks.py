"""What only the lines to come tell of an item of a Codex thread."""

from __future__ import annotations

from typing import Any

from ._codex_items import prompt_event, squeezed
from ._codex_lines import Ahead


def is_typed(ahead: Ahead, text: str, *, shown: bool) -> bool | None:
    """Whether the next UI prompt event shows this text; None when nothing can be told from the lines to come.

    `shown` is whether any UI event has shown a prompt so far.
    """
    others = set()
    for line in ahead.peek():
        if line.value is None:
            return None
        payload = line.payload
        if line.kind == "event_msg" and (prompt := prompt_event(payload)) is not None:
            return True if prompt == text else False if prompt in others else None
        if line.kind == "response_item":
            if payload.get("role") == "user":
                others.add(squeezed(payload.get("content")))
            elif payload.get("role") not in ("developer", "system"):
                return False if shown else None
    return None


def is_summary(ahead: Ahead, text: str, id: Any, said: str | None) -> bool:
    """Whether an answer is the summary that a compaction wrote: no UI item shows it, and `compacted` follows.

    `said` is the id of the last answer that a UI item has shown.
    """
    seen = 0
    if not text or (said is not None and said == id):
        return False
    for line in ahead.peek():
        if line.kind == "compacted":
            return text in str(line.payload.get("message"))
        if (
            line.value is None
            or line.kind == "response_item"
            or line.payload.get("type") in ("task_complete", "turn_aborted")
        ):
            return False
        seen += 1
    # The end of a file that is being written: what no UI item shows is the summary of a compaction under way.
    return said is not None and isinstance(id, str) and ahead.is_last(seen)


def is_compacted(ahead: Ahead) -> bool:
    """Whether a `compacted` line follows, before any other item."""
    for line in ahead.peek():
        if line.kind in ("compacted", "response_item"):
            return line.kind == "compacted"
    return False
