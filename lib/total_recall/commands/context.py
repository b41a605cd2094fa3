"""tr-context: the messages round a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from ..command import COUNT, Failure, Run, envelope_option, executable, harness_option, options
from ..context import around
from ..notices import Unreadable
from ..output import encoded, lines, write
from ..record import Record
from ..selection import Sessions, references
from ..stores.base import Reference, Store


@executable("tr-context")
@options(
    click.argument("places", nargs=-1, metavar="[SESSION:ID]..."),
    harness_option,
    click.option("-A", "--after", type=COUNT, default=None, metavar="N", help="So many messages after it (3)."),
    click.option("-B", "--before", type=COUNT, default=None, metavar="N", help="So many messages before it (3)."),
    click.option("-C", "--context", type=COUNT, default=3, metavar="N", help="So many on both sides; 0 is it alone."),
    click.option("--human", is_flag=True, help="The whole turn: from the last prompt before it to the next one."),
    click.option("--header", is_flag=True, help="First a line of facts; our own tools' output is left out."),
    envelope_option,
)
def main(
    run: Run,
    places: tuple[str, ...],
    harnesses: tuple[str, ...],
    after: int | None,
    before: int | None,
    context: int,
    human: bool,
    header: bool,
    envelope: bool,
) -> int | None:
    """Print the messages round a search hit or another reference, whole."""
    sessions = Sessions(run.stores(harnesses), run.notices, run.looked)
    sides = (context if before is None else before, context if after is None else after)

    def messages(store: Store, session: Reference, number: int) -> Iterator[Record]:
        there, printed = not number, False
        try:
            for message in around(store, session, number, *sides, turn=human):
                there = there or message["id"] == number
                yield message
                printed = True
            if not there:
                missing = f"{session.session_id} has no record {number}"
                if not printed:
                    raise Failure(f"{missing} - tr-extract --full prints those that there are")
                run.notices.say(missing)
        except (Unreadable, FileNotFoundError) as error:
            reason = error.reason if isinstance(error, Unreadable) else error
            run.notices.fail(session.session_id, Unreadable(session.path, reason))

    def printed() -> Iterator[bytes]:
        for store, session, number in _places(run, sessions, places):
            found = messages(store, session, number)
            head = {"session_id": session.session_id, "harness": store.harness, "id": number}
            if envelope:
                yield encoded({**head, "messages": list(found), **run.facts()})
                continue
            if header:
                found = map(_without_own, found)
                yield b"# " + encoded({**head, "before": sides[0], "after": sides[1]})
            yield from lines(found)

    write(printed())
    return None


def _places(run: Run, sessions: Sessions, asked: Iterable[str]) -> Iterator[tuple[Store, Reference, int]]:
    """The records meant by SESSION:ID operands, and with `-` or without operands by references on stdin."""
    for word in asked or ("-",):
        if word != "-":
            name, colon, number = word.rpartition(":")
            if not colon or not number.isascii() or not number.isdigit():
                raise Failure(f"{word!r} is no SESSION:ID - give a session, a colon and a record's number")
            yield *(sessions.matching(name) if name else sessions.latest(run.now)), int(number)
            continue
        for name, harness, record in references(run.stdin, sessions.notices):
            if record is None:
                run.notices.say(f"the reference to {name} has no id and is passed over")
                continue
            yield *sessions.matching(name, harness), record


def _without_own(message: Record) -> Record:
    if message["class"] != "self":
        return message
    size = len(message["content"].encode())
    return {**message, "content": f"[total-recall output, {size} bytes]" if size else ""}
