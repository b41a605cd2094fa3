"""tr-cache-drop: take the newest summary of a session back."""

from __future__ import annotations

from ..command import Run, executable
from ..ledger import Locked, NotWritten
from ..output import encoded, write_text
from ..stores.registry import Refused
from ..summarising import failure, session_options, summarised


@executable("tr-cache-drop")
@session_options
def main(run: Run, session: str | None, harnesses: tuple[str, ...]) -> int | None:
    """Remove the newest summary of a session, and print what is left, as tr-cache does."""
    found = summarised(run, session, harnesses)
    try:
        with found.ledger.locked() as ledger:
            found.tail()  # a ledger that no longer fits its session counts as empty
            ledger.drop()
    except (Locked, NotWritten, Refused) as error:
        raise failure(error) from error
    write_text(encoded(found.ledger.status(found.tail())).decode())
    return None
