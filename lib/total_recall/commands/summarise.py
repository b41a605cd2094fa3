"""tr-summarise: let a model summarise what is not summarised yet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import click

from .. import prompts
from ..command import Failure, Run, executable, options
from ..ledger import Locked, Slice
from ..llm import ServiceFailed, complete, provider
from ..output import write_text
from ..prompts import Prompt, Verbatim
from ..record import Record
from ..stores.registry import Refused
from ..summarising import Summarised, failure, provider_option, session_options, summarised


@executable("tr-summarise")
@options(
    session_options,
    click.option("--from-id", type=int, help="The first id to summarise: it must be the first not summarised yet."),
    provider_option,
    click.option("--dry-run", is_flag=True, help="Print what would be sent, and ask nobody."),
)
def main(
    run: Run,
    session: str | None,
    harnesses: tuple[str, ...],
    from_id: int | None,
    provider: str | None,
    dry_run: bool,
) -> int | None:
    """Let a model summarise the part of a session that is not summarised yet."""
    found = summarised(run, session, harnesses)
    try:
        if dry_run:
            write_text(_shown(_prepared(found, from_id)[0]))
            return None
        with found.ledger.locked():
            _summarise(found, from_id, provider)
    except (Locked, Refused, ServiceFailed) as error:
        raise failure(error) from error
    write_text("".join(chain(found.ledger.composed(), (found.ledger.footer(found.tail()),))))
    return None


def _prepared(found: Summarised, from_id: int | None) -> tuple[Prompt, Slice, Verbatim]:
    """What is sent for the tail, with what the tail amounts to and what the person typed last in it."""
    tail = found.tail()
    expected = found.ledger.next_id
    if from_id is not None and from_id != expected:
        raise Failure(f"from-id must be {expected}, the first id that is not summarised, not {from_id}")
    if tail is None:
        raise Failure(f"nothing is left to summarise: {expected - 1} is the last id - see tr-cache")
    part, verbatim = Slice(expected), Verbatim()

    def rest() -> Iterator[Record]:
        return (message for message in found.messages() if message["id"] >= expected)

    return prompts.summary(verbatim.noted(part.counted(rest()))), part, verbatim


def _summarise(found: Summarised, from_id: int | None, asked: str | None) -> None:
    who = provider(asked, found.run.environ)
    prompt, part, verbatim = _prepared(found, from_id)
    (text,) = complete(who, [(prompt.system, prompt.user)], say=found.run.notices.say)
    typed = verbatim.section("#### What the person typed last, verbatim")
    found.ledger.append(part, f"{text.strip()}\n\n{typed}".strip() + "\n")


def _shown(prompt: Prompt) -> str:
    figures = f"{prompt.bytes} bytes, about {prompt.tokens} tokens, {prompt.records} records"
    if prompt.dropped_records:
        figures += f", {prompt.dropped_records} not in full ({prompt.dropped_bytes} bytes)"
    return f"# {figures}\n\n## system\n\n{prompt.system}\n\n## user\n\n{prompt.user}"
