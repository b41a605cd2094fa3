"""What the shadow folder adds to a session row: whether it is indexed, and how far it is summarised."""

from __future__ import annotations

from .indexed import indexed, number_of
from .notices import Notices
from .record import Record, session_row


class Derived:
    """The derived state of one store, looked at once in a run."""

    def __init__(self, folder: str, notices: Notices) -> None:
        self._folder = folder
        self._notices = notices
        self._indexed: frozenset[int] | None = None
        self._summarised: frozenset[str] | None = None

    @property
    def indexed(self) -> frozenset[int]:
        """The numbers of the indexed sessions (see indexed.number_of)."""
        if self._indexed is None:
            self._indexed = indexed(self._folder)
        return self._indexed

    def __call__(self, row: Record) -> Record:
        """The row with has_tantivy_index and summary_cache as they are now."""
        if self.indexed:
            row["has_tantivy_index"] = number_of(row["session_id"]) in self.indexed
        if self._summarised is None:
            from .ledger import sessions_with_summaries

            self._summarised = sessions_with_summaries(self._folder)
        if self._summarised:
            from .ledger import Ledger
            from .shadow import safe_name

            if safe_name(row["session_id"]) in self._summarised:
                through = Ledger(self._folder, row["harness"], row["session_id"], self._notices).through()
                row = session_row(**{**row, "summary_cache": through})
        return row
