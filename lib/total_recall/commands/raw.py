"""tr-raw: the stored records themselves, as `type,timestamp,json`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click
import orjson

from ..bounds import Account, Limits, TooLarge, bounded, clamped_value
from ..command import (
    Run,
    bounds_options,
    envelope_option,
    executable,
    harness_option,
    limits,
    options,
    session_argument,
)
from ..extraction import chosen, each, guarded
from ..output import encoded, write
from ..record import RAW_TYPES
from ..stores._jsonl import parse
from ..stores.base import Entry, Reference, Store

Raw = tuple[bytes, bytes, bytes]  # type, timestamp, json


@executable("tr-raw")
@options(
    session_argument,
    harness_option,
    click.option(
        "--type",
        "types",
        multiple=True,
        type=click.Choice([*RAW_TYPES, "all"]),
        help="Only records of this type; repeatable. The default, all, has also those of no other type.",
    ),
    click.option("--include-injected", is_flag=True, help="Also what the user role holds that nobody typed."),
    click.option("--header", is_flag=True, help="A first line # {json} with the run's facts, and a last one when cut."),
    bounds_options,
    envelope_option,
)
def main(
    run: Run,
    sessions: tuple[str, ...],
    harnesses: tuple[str, ...],
    types: tuple[str, ...],
    include_injected: bool,
    header: bool,
    envelope: bool,
    **bounds: Any,
) -> int | None:
    """Print a session's stored records as type,timestamp,json, whatever state they are in."""
    limited = limits(bounds)
    wanted = frozenset() if not types or "all" in types else frozenset(types)

    def records(store: Store, session: Reference) -> Iterator[Raw]:
        return raw(store, session, wanted, include_injected)

    if header and not envelope:
        write(_with_headers(run, sessions, harnesses, records, types, limited))
        return None
    key, encode = ("records", as_json) if envelope else (None, b",".join)
    each(run, sessions, harnesses, records, limited, key, full=True, encode=encode, clamp=clamped)
    return None


def raw(store: Store, session: Reference, wanted: frozenset[str], include_injected: bool) -> Iterator[Raw]:
    """(type, timestamp, json) of each stored record of the wanted types; none named is all of them."""
    for entry in store.entries(session, {}):
        kind = entry.raw_type()
        if not include_injected and kind == "user" and all(m["injected"] for m in entry.messages):
            continue
        if wanted and kind not in wanted and not ("thinking" in wanted and _thinks(entry)):
            continue
        yield kind.encode(), (entry.ts or "0").encode(), entry.line()


def _thinks(entry: Entry) -> bool:
    return any(message["thinking"] for message in entry.messages)


def as_json(record: Raw) -> bytes:
    """A raw record as one JSON object, for an envelope.

    A line that its harness wrote with half a character in it, or in no UTF-8, would spoil the whole envelope.
    """
    try:
        orjson.loads(record[2])
    except ValueError:
        record = (*record[:2], encoded(parse(record[2])))
    return b'{"type":"%b","timestamp":"%b","json":%b}' % record


def clamped(record: Raw, size: int) -> tuple[Raw, bool]:
    """The record with every string inside its JSON cut to `size` bytes; it stays valid JSON."""
    try:
        value = orjson.loads(record[2])
    except ValueError:
        value = parse(record[2])
    short = clamped_value(value, size)
    return (record, False) if short == value else ((record[0], record[1], encoded(short)), True)


def _with_headers(
    run: Run,
    sessions: tuple[str, ...],
    harnesses: tuple[str, ...],
    records: Callable[[Store, Reference], Iterator[Raw]],
    types: tuple[str, ...],
    limited: Limits,
) -> Iterator[bytes]:
    """Each session's lines under a `# {header}`; all of it, header and trailer too, is within max_bytes."""
    for store, session in chosen(run, sessions, harnesses):
        head = {"session_id": session.session_id, "harness": session.harness, "full": True, "types": types or ["all"]}
        stream = guarded(run, store, session, records)
        if limited.none:
            # Nothing can be cut, so the header need not wait for the count.
            yield b"# " + encoded(head | {"bounds": Account(limited).bounds()})
            yield from map(b",".join, stream)
        else:
            yield from _headed(run, head, list(stream), limited)
        run.tell()


def _headed(run: Run, head: dict[str, Any], records: list[Raw], limited: Limits) -> list[bytes]:
    room = limited.max_bytes
    while True:
        account = Account(limited._replace(max_bytes=room))
        body = list(bounded(records, account.limits, account, b",".join, clamped, count_all=True))
        account.limits = limited
        text = [b"# " + encoded(head | {"bounds": account.bounds()} | run.facts()), *body]
        if notice := account.notice():
            text.append(b"# " + notice.encode())
        size = sum(map(len, text)) + len(text) - 1
        if not limited.max_bytes or size <= limited.max_bytes:
            return text
        room -= size - limited.max_bytes
        if room <= 0 or not body:
            raise TooLarge(size, limited)
