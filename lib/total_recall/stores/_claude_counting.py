"""What counting needs of the records of a Claude transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..record import Record, countable
from ._claude_content import Block
from ._claude_records import Reader


class Counter(Reader):
    """Makes of the records only what counting needs: nothing of results, and of the others no more than is counted.

    Its state is the same, so that a Reader can go on behind any record.
    """

    def _message(
        self,
        role: str,
        content: str,
        authorship: str,
        kind: str | None = None,
        thinking: str | None = None,
        tool_calls: Sequence[Any] | None = None,
        model: str | None = None,
        usage: Record | None = None,
        **known: Any,
    ) -> Record:
        self.state["id"] += 1
        calls = tool_calls or ()
        return countable(self.state["id"], role, content, authorship, calls, kind, self._replayed, self._sidechain)

    def _answer(
        self,
        text: str,
        thoughts: list[Block],
        calls: list[Block],
        kind: str | None,
        model: str | None,
        usage: Record | None,
    ) -> Record:
        return self._message("assistant", text, "model", tool_calls=calls)

    def _results(self, results: list[Block], record: Record) -> list[Record]:
        self.state["id"] += len(results)
        for block in results:
            if isinstance(call := block.get("tool_use_id"), str):
                self.calls.pop(call, None)
        return []
