"""What the summary commands share: one session, its ledger, and its messages up to the last whole record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import click

from .command import LOCKED, OUTPUT, SERVICE, WRONG, Failure, Run, harness_option, options
from .extraction import chosen
from .ledger import Ledger, Locked, NotWritten
from .record import Record
from .shadow import folder
from .stores.base import Reference, Store
from .stores.registry import Refused

session_options = options(click.argument("session", required=False, metavar="[SESSION]"), harness_option)
provider_option = click.option(
    "--provider",
    "asked",
    metavar="NAME",
    help="Who answers: mercury, mistral, openai; default $TR_LLM_PROVIDER, else mercury.",
)


class Summarised(NamedTuple):
    """A session with its ledger."""

    store: Store
    session: Reference
    ledger: Ledger

    def messages(self, first: int = 1) -> Iterator[Record]:
        """The session's messages from record id `first` on. Raises Unreadable: of a part nothing is summarised."""
        return (m for m in self.store.messages(self.session, whole=True) if m["id"] >= first)

    def tail(self) -> Record | None:
        """What is not summarised yet; the ledger is checked against the session on the way."""
        return self.ledger.tail(self.messages())


def summarised(run: Run, session: str | None, harnesses: tuple[str, ...]) -> Summarised:
    """The session that an operand means, with its ledger."""
    store, found = next(iter(chosen(run, (session,) if session else (), harnesses)))
    path = folder(store.harness, store.place, run.environ, run.notices)
    if path is None:
        raise Failure(f"there is no place for the summaries of {found.session_id} - set TOTAL_RECALL_SHADOW_ROOT")
    return Summarised(store, found, Ledger(path, store.harness, found.session_id, run.notices))


def failure(error: Exception) -> Failure:
    """How a run ends when asking or writing failed: the sentence with its status."""
    statuses = {Locked: LOCKED, Refused: WRONG, NotWritten: OUTPUT}
    return Failure(str(error), statuses.get(type(error), SERVICE))
