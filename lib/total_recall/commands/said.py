"""tr-said: HE SAID, SHE SAID, THEY DID."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..command import (
    Failure,
    Run,
    directory_option,
    envelope_option,
    executable,
    harness_option,
    hours_option,
    options,
    report_option,
    session_argument,
    since_until,
)
from ..dialogue import NoWords, said, terms
from ..extraction import Scope, guarded
from ..output import encoded, lines, write
from ..patterns import Literal
from ..record import Record
from ..report import said as reported
from ..report import spooled
from ..selection import Passed, picked
from ..stores.base import Reference, Store


@executable("tr-said")
@options(
    session_argument,
    click.option("--words", required=True, help="What to look for, separated by commas; any of them matches."),
    harness_option,
    hours_option(48),
    since_until,
    directory_option,
    report_option,
    envelope_option,
)
def main(
    run: Run,
    sessions: tuple[str, ...],
    words: str,
    harnesses: tuple[str, ...],
    hours: float,
    since: str | None,
    until: str | None,
    directory: str,
    report: bool,
    envelope: bool,
) -> int | None:
    """Find words in what the person said, what the assistant said, and what tools were told to do."""
    try:
        wanted = terms(word.strip() for word in words.split(","))
    except NoWords as error:
        raise Failure(str(error)) from error
    scope = Scope(run, sessions, harnesses, hours, directory, since, until)
    literals = [Literal(word) for word in wanted]
    titles: dict[str, str | None] = {}
    passed = Passed()

    def matching(store: Store, session: Reference) -> Iterator[Record]:
        return said(picked(store.messages(session), (), since, until, passed), wanted)

    def found() -> Iterator[Record]:
        for store, session in scope.mentioning(wanted):
            files = store.text_files(session)
            if files and not any(literal.may_stand_in(path) for path in files for literal in literals):
                continue
            count = 0
            for hit in guarded(run, store, session, matching, named=bool(sessions)):
                if not count and report:
                    titles[session.session_id] = store.row(session)["title"]
                count += 1
                yield hit
            scope.matched += count > 0

    def head() -> Iterator[str]:
        yield f"# she-said-he-said-action — terms: {', '.join(wanted)}"
        yield scope.account()
        yield ""

    if envelope:
        rows = list(found())
        write([encoded({"terms": wanted, **scope.facts(), **run.facts(), "hits": rows})])
    elif report:
        write(spooled(head, reported(found(), titles)))
    else:
        write(lines(found()))
    if passed.timeless:
        run.notices.say(f"{passed.timeless} records without a time were looked at whatever --since and --until say")
    return scope.status()
