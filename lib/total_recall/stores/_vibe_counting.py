"""The walks over Vibe's sessions that only count.

Their state is the same as that of the walks that read, so that those can go on behind any record.
"""

from __future__ import annotations

from typing import Any

from ..record import Record, countable
from . import tools
from ._vibe_legacy import Folder, calls_of
from ._vibe_text import HARNESS, fields, string, text_of
from ._vibe_transcript import Placed
from ._vibe_unified import Unified, imported, unfinished
from .base import State


class CountingFolder(Folder):
    """Makes of the stored messages only what counting needs: nothing of results, of calls how many there are."""

    def _assistant(self, line: dict[str, Any], state: State, common: Record) -> list[Record]:
        state["begun"] = True
        calls = calls_of(line)
        for call in calls:
            if call.id:
                arguments = call.arguments if tools.is_shell(HARNESS, call.name) else None
                state["calls"][call.id] = [call.name, tools.is_own(HARNESS, call.name, arguments)]
        content = text_of(line.get("content"))
        return [countable(state["id"], "assistant", content, "model", calls, None, common["replayed"])]

    def _tool(self, line: dict[str, Any], state: State, common: Record) -> list[Record]:
        state["begun"] = True
        state["calls"].pop(string(line.get("tool_call_id")), None)
        return []


class CountingUnified(Unified):
    """Makes of effects only what counting needs: that there was a call."""

    def _effect(self, placed: Placed, state: State) -> list[Record]:
        entry = placed.entry
        if fields(entry.get("detail")).get("kind") == "shell":
            return [self._command(placed, state)]
        state["id"] += 2
        if unfinished(entry):
            self._wait(placed, state)
        return [countable(state["id"] - 1, "assistant", "", "model", (entry,), None, imported(entry) > 0)]
