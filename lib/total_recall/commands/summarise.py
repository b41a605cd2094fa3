"""tr-summarise: let a model summarise what is not summarised yet."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..command import Run, executable, options
from ..ledger import Locked, NotWritten
from ..llm import ServiceFailed, complete, provider
from ..output import write_text
from ..stores.registry import Refused
from ..summarise import preview, rest, summarise
from ..summarising import failure, provider_option, session_options, summarised


@executable("tr-summarise")
@options(
    session_options,
    click.option("--from-id", type=int, help="The first id to summarise: it must be the first not summarised yet."),
    provider_option,
    click.option("--dry-run", is_flag=True, help="Print what would be sent, and ask nobody."),
)
def main(
    run: Run, session: str | None, harnesses: tuple[str, ...], from_id: int | None, asked: str | None, dry_run: bool
) -> int | None:
    """Let a model summarise the part of a session that is not summarised yet."""
    found = summarised(run, session, harnesses)

    def ask(questions: Sequence[tuple[str, str]]) -> list[str]:
        return complete(provider(asked, run.environ), questions, say=run.notices.say)

    try:
        if dry_run:
            write_text(preview(rest(found.ledger, found.messages, from_id).prompt))
            return None
        summarise(found.ledger, found.messages, ask, from_id)
    except (Locked, NotWritten, Refused, ServiceFailed) as error:
        raise failure(error) from error
    write_text("".join((*found.ledger.composed(), found.ledger.footer(found.tail()))))
    return None
