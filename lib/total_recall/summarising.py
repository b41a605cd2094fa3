"""What the summary commands share: one session, its ledger, and its messages up to the last whole record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import click

from .command import LOCKED, SERVICE, Failure, Run, harness_option, options
from .extraction import chosen, guarded
from .ledger import Ledger, Locked
from .record import Record
from .shadow import folder
from .stores.base import Reference, Store
from .stores.registry import Refused

session_options = options(click.argument("session", required=False, metavar="[SESSION]"), harness_option)
provider_option = click.option(
    "--provider", metavar="NAME", help="Who answers: mercury, mistral, openai; default $TR_LLM_PROVIDER, else mercury."
)


class Summarised(NamedTuple):
    """A session with its ledger."""

    run: Run
    store: Store
    session: Reference
    ledger: Ledger

    def messages(self) -> Iterator[Record]:
        """The session's messages; what cannot be read ends them, and is a failure of the run."""
        return guarded(self.run, self.store, self.session, lambda store, session: store.messages(session, whole=True))

    def tail(self) -> Record | None:
        """What is not summarised yet. Raises Failure when the session cannot be read: nothing is known then."""
        tail = self.ledger.tail(self.messages())
        if error := self.run.notices.failures.get(self.session.session_id):
            self.run.notices.failures.clear()
            raise Failure(f"{error}; its summaries are left alone", 3)
        return tail


def summarised(run: Run, session: str | None, harnesses: tuple[str, ...]) -> Summarised:
    """The session that an operand means, with its ledger."""
    store, found = next(iter(chosen(run, (session,) if session else (), harnesses)))
    path = folder(store.harness, store.place, run.environ, run.notices)
    if path is None:
        raise Failure(f"there is no place for the summaries of {found.session_id} - set TOTAL_RECALL_SHADOW_ROOT")
    return Summarised(run, store, found, Ledger(path, store.harness, found.session_id, run.notices))


def failure(error: Exception) -> Failure:
    """How a run ends when asking or writing failed: the sentence with its status."""
    if isinstance(error, Locked):
        return Failure(str(error), LOCKED)
    return Failure(str(error)) if isinstance(error, Refused) else Failure(str(error), SERVICE)
