"""The messages of a session in OpenCode's database with their parts, in order and a page at a time.

What a page holds is bounded by its bytes, so that memory does not depend on what a session says. Where indexes have
the order, one statement reads all messages of a page and one all their parts; in the first versions with a database
each message is asked for by itself, because sorting would take the bodies along.
"""
# ruff: noqa: S608 - only constants and names of columns are put into statements, values never

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from ._opencode_rows import WIDTHS, Batch, Message, Part, json_object

_PAGE_BYTES = 2 << 20
PAGE_ROWS = 500

Key = tuple[Any, str]  # a message's time and id

# How many ids a part takes, NULL when it is damaged. Most rows begin with their type, and those need no parsing.
_BY_START = " ".join(f"""WHEN '{f'{{"type":"{kind}"'[:14]}' THEN {width}""" for kind, width in WIDTHS.items())
_BY_TYPE = " ".join(f"WHEN '{kind}' THEN {width}" for kind, width in WIDTHS.items())
WIDTH = f"""CASE substr(p.data, 1, 14) {_BY_START} ELSE
    CASE WHEN json_valid(CAST(p.data AS TEXT)) AND json_type(CAST(p.data AS TEXT)) = 'object'
    THEN CASE json_extract(CAST(p.data AS TEXT), '$.type') {_BY_TYPE} ELSE 0 END
    ELSE width_of_damaged(CAST(p.data AS BLOB)) END END"""
FAILED = """CASE WHEN json_valid(CAST(m.data AS TEXT))
    THEN coalesce(json_type(CAST(m.data AS TEXT), '$.error'), 'null') <> 'null'
    ELSE failure_of_damaged(CAST(m.data AS BLOB)) END"""
_BODY = "CAST(p.data AS BLOB)"
_UNREAD = """substr(p.data, 1, 14) IN ('{"type":"tool"', '{"type":"file"')"""
PART = f"NULL, p.id, {WIDTH}, {_BODY}, NULL, NULL"  # the fields of a Part
_LIGHT_PART = PART.replace(f"{_BODY}, NULL", f"CASE WHEN {_UNREAD} THEN NULL ELSE {_BODY} END, length({_BODY})")
_OF_ONE = "FROM part p WHERE p.message_id = ? AND p.id > ? ORDER BY p.id"


class Pages:
    """The statements for it; `at` is what orders messages."""

    def __init__(self, at: str) -> None:
        self.message = f"SELECT m.id, m.{at}, CAST(m.data AS BLOB) FROM message m WHERE m.id = ?"
        place = f"(m.{at}, m.id)"
        within = f"m.session_id = ? AND {place} >= (?, ?) AND {place} <= (?, ?) ORDER BY m.{at}, m.id"
        self._messages = f"SELECT m.id, m.{at}, CAST(m.data AS BLOB), m.rowid FROM message m WHERE {within}"
        # With the rowid in between, SQLite sees that the two indexes have the order.
        self._parts = f"FROM message m CROSS JOIN part p ON p.message_id = m.id WHERE {within}, m.rowid, p.id"
        self._in_order: bool | None = None

    def page(
        self, c: sqlite3.Connection, session_id: str, keys: Sequence[Key], index: int, start: str, bodies: bool
    ) -> tuple[list[Batch], int, str]:
        """The batches from keys[index] on, after its part `start`, and where the next page begins."""
        page, room = list[Batch](), _PAGE_BYTES
        chunk = keys[index : index + (1 if start else PAGE_ROWS)]
        places = {id: number for number, (_, id) in enumerate(chunk, index)}
        columns = PART if bodies else _LIGHT_PART
        for row, rows in self._rows(c, session_id, chunk, start, columns):
            if row[0] not in places:
                continue  # new since the keys were read
            message = message_of(row)
            if not bodies and message.growing:
                rows = c.execute(f"SELECT {PART} {_OF_ONE}", (message.id, start))
            room -= len(message.raw)
            parts, used, last = _taken(rows, room)
            page.append(Batch(message, parts, last))
            if not last:
                return page, places[message.id], parts[-1].id
            room -= used
            if room <= 0:
                return page, places[message.id] + 1, ""
        return page, index + len(chunk), ""

    def _rows(
        self, c: sqlite3.Connection, session_id: str, keys: Sequence[Key], start: str, columns: str
    ) -> Iterator[tuple[Any, Iterable[Any]]]:
        """(row of a message, rows of its parts) for each of `keys`; the latter last until the next is asked for."""
        if start or keys[0][0] is None or not self._ordered(c):
            for _, id in keys:
                row = c.execute(self.message, (id,)).fetchone()
                if row is not None:
                    yield row, c.execute(f"SELECT {columns} {_OF_ONE}", (id, start))
            return
        within = (session_id, *keys[0], *keys[-1])
        columns = columns.replace("NULL", "m.rowid", 1)
        parts = groupby(c.execute(f"SELECT {columns} {self._parts}", within), itemgetter(0))
        owner, rows = next(parts, (None, ()))
        for *row, number in c.execute(self._messages, within):
            if number == owner:
                yield row, rows
                owner, rows = next(parts, (None, ()))
            else:
                yield row, ()

    def _ordered(self, c: sqlite3.Connection) -> bool:
        """Whether indexes have the order of messages and of their parts."""
        if self._in_order is None:
            try:
                plan = c.execute(f"EXPLAIN QUERY PLAN SELECT p.data {self._parts}", ("", 0, "", 0, "")).fetchall()
            except sqlite3.OperationalError:  # no rowid
                self._in_order = False
            else:
                self._in_order = not any("TEMP B-TREE" in step[3] or "SCAN" in step[3] for step in plan)
        return self._in_order

    def messages(self, c: sqlite3.Connection, keys: Iterable[Key]) -> list[Message | None]:
        """The messages of some keys, as many as a page holds; None for one that is gone."""
        page, room = list[Message | None](), _PAGE_BYTES
        for _, id in keys:
            row = c.execute(self.message, (id,)).fetchone()
            page.append(None if row is None else message_of(row))
            room -= 0 if row is None else len(row[2] or b"")
            if room <= 0:
                break
        return page

    def of(self, c: sqlite3.Connection, message_id: str) -> list[Part]:
        """All parts of a message, however many bytes they have."""
        return [Part._make(row) for row in c.execute(f"SELECT {PART} {_OF_ONE}", (message_id, ""))]


def message_of(row: Sequence[Any]) -> Message:
    """A row of `id`, time and data."""
    id, at, raw = row
    return Message(id, at, raw or b"", {"table": "message", "id": id})


def _taken(rows: Iterable[Any], room: int) -> tuple[list[Part], int, bool]:
    """Parts until `room` bytes are used; those bytes; whether these were all."""
    parts, used, part = list[Part](), 0, Part._make
    for row in rows:
        if used >= room and parts:
            return parts, used, False
        parts.append(part(row))
        if raw := row[3]:
            used += len(raw)
    return parts, used, True


def _width(raw: Any) -> int | None:
    """How many ids a part takes that SQLite takes for no JSON; None when nothing can be made of it."""
    value = json_object(raw or b"")
    return None if value is None else WIDTHS.get(str(value.get("type")), 0)


def _failure(raw: Any) -> bool:
    """Whether a message failed that SQLite takes for no JSON."""
    return (json_object(raw or b"") or {}).get("error") is not None


FORGIVING: Mapping[str, Any] = {"width_of_damaged": _width, "failure_of_damaged": _failure}
