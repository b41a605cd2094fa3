"""The pass over a Codex thread that only counts."""

from __future__ import annotations

from typing import Any

from ..record import Record, countable
from ._codex_items import arguments_of, called, string
from ._codex_walk import Walk
from .tools import is_shell


class CountingWalk(Walk):
    """Makes of the lines only what counting needs: nothing of outputs, and of the others no more than is counted.

    Its state is the same, so that a Walk can go on behind any line.
    """

    def _say(
        self,
        role: str,
        ts: str | None,
        content: str,
        authorship: str,
        kind: str | None = None,
        thinking: str | None = None,
        tool_calls: list[Record] | None = None,
        model: str | None = None,
        usage: Record | None = None,
        **known: Any,
    ) -> Record:
        self.state["id"] += 1
        return countable(self.state["id"], role, content, authorship, tool_calls or (), kind, self._replayed)

    def _by_model(
        self,
        ts: str | None,
        content: str = "",
        kind: str | None = None,
        thinking: str | None = None,
        tool_calls: list[Record] | None = None,
    ) -> list[Record]:
        self._tokens.pass_item(self._ahead)
        self.state["id"] += 1
        calls = tool_calls or ()
        return [countable(self.state["id"], "assistant", content, "model", calls, kind, self._replayed)]

    def _call(self, payload: Record, ts: str | None) -> list[Record]:
        call_id, name = called(payload)
        arguments = arguments_of(payload) if is_shell("codex", name) else None
        return self._by_model(ts, "", self._opened(call_id, name, arguments), None, [payload])

    def _output(self, payload: Record, ts: str | None) -> list[Record]:
        self.state["id"] += 1
        self.state["calls"].pop(string(payload.get("call_id")), None)
        return []
