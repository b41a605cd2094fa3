"""tr-search: find anything that was said or done in any session."""

from __future__ import annotations

from typing import Any

import click

from ..command import (
    COUNT,
    NOTHING,
    Failure,
    Progress,
    Run,
    directory_option,
    envelope_option,
    executable,
    harness_option,
    hours_option,
    interruptible,
    options,
    report_option,
    since_until,
)
from ..finding import Asked, Finder
from ..output import encoded, lines, write
from ..patterns import BadPattern
from ..query import BadQuery, Empty
from ..record import CLASSES, ROLES
from ..shadow import folder

_KINDS = click.Choice(CLASSES[:-1])


@executable("tr-search")
@options(
    click.argument("query", nargs=-1, required=True, metavar="QUERY..."),
    click.option("--session", "sessions", multiple=True, metavar="ID", help="Only this session; repeatable."),
    harness_option,
    hours_option(),
    directory_option,
    since_until,
    click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only this role; repeatable."),
    click.option("--class", "classes", multiple=True, type=_KINDS, help="Only text of this class; repeatable."),
    click.option("--human", is_flag=True, help="Only what a person typed: --class human-text."),
    click.option(
        "--tool", "tools", multiple=True, metavar="NAME", help="Only this tool's calls and results; repeatable."
    ),
    click.option(
        "--exclude", "excluded", multiple=True, metavar="SESSION", help="Not this session's family; repeatable."
    ),
    click.option("--include-current", is_flag=True, help="Also the session that asks, $TR_CURRENT_SESSION."),
    click.option("--roots", is_flag=True, help="No child sessions."),
    click.option("--match", type=click.Choice(("words", "literal", "regex")), default="words", help="How to match."),
    click.option("--strict", is_flag=True, help="A query that does not parse is an error."),
    click.option("--limit", type=COUNT, default=20, help="At most so many hits (20); 0 is all."),
    click.option(
        "--group", type=click.Choice(("hit", "session")), default="hit", help="One result a hit or a session."
    ),
    click.option("--width", type=click.IntRange(min=20), default=200, help="Characters of a snippet (200)."),
    click.option("--explain", is_flag=True, help="Add what each score is made of."),
    click.option("--no-refresh", is_flag=True, help="Search the index as it is."),
    click.option("--refresh-seconds", type=click.FloatRange(min=0), default=0, help="Index for at most so long."),
    report_option,
    envelope_option,
)
def main(
    run: Run, human: bool, include_current: bool, no_refresh: bool, report: bool, envelope: bool, **given: Any
) -> int | None:
    """Find anything ever said or done in the sessions, best first."""
    interruptible()
    if human:
        given["classes"] += ("human-text",)
    current = "" if include_current else run.environ.get("TR_CURRENT_SESSION", "").strip()
    asked = Asked(**given, current=current, refresh=not no_refresh)
    progress = Progress(run, "indexing" if asked.match == "words" else "searching")
    try:
        finder = Finder(
            asked,
            run.stores(asked.harnesses),
            run.notices,
            lambda store: folder(store.harness, store.place, run.environ, run.notices),
            run.now,
            progress,
        )
    except (Empty, BadQuery, BadPattern) as error:
        raise Failure(str(error)) from error
    hits = finder.hits()
    if envelope:
        found = list(hits)
        write([encoded({"coverage": finder.coverage.record(), **run.facts(), "hits": found})])
    elif report:
        from ..report import found as reported

        write(reported(hits, finder.coverage, run.notices))
    else:
        write(lines(hits), flush=asked.match != "words")
    progress.clear()
    run.notices.say(finder.coverage.line())
    return None if finder.coverage.total else NOTHING
