"""tr-cache: what of a session is summarised, and what a summary of the rest would cost."""

from __future__ import annotations

import click

from ..command import Run, executable, options
from ..output import encoded, write_text
from ..summarising import session_options, summarised


@executable("tr-cache")
@options(session_options, click.option("--text", is_flag=True, help="Below it, the summaries themselves."))
def main(run: Run, session: str | None, harnesses: tuple[str, ...], text: bool) -> int | None:
    """Print what of a session is summarised, and what a summary of the rest would cost."""
    found = summarised(run, session, harnesses)
    tail = found.tail()
    write_text(encoded(found.ledger.status(tail)).decode())
    if text:
        write_text("".join((*found.ledger.composed(), found.ledger.footer(tail))))
    return None
