"""OpenCode's database (1.2 and later): the tables session, message and part.

Columns are asked for by name, since their order and number differ between versions and between fresh and upgraded
databases. Times are milliseconds. Rows are read in pages, each in a look of its own: memory depends (a little) on how
many messages a session has, not on what it says.
"""
# ruff: noqa: S608 - only constants and names of columns are put into statements, values never

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record
from . import _opencode_v2 as v2
from ._opencode_pages import FAILED, FORGIVING, PAGE_ROWS, PART, WIDTH, Key, Pages, message_of
from ._opencode_rows import END, Batch, Message, Part, Position, Session, json_object, model_name, reverted, seconds
from ._sqlite import Database

_FIRST_ROWS = 20
_SCANNED_ROWS = 20_000
_LIVE_ROWS = 8  # so many messages at the end of a session may still change

_NEWER = "SELECT id, seq, time_created, type, CAST(data AS BLOB) FROM session_message"

_SESSION = ("id", "parent_id", "directory", "title", "time_created", "time_updated", "time_archived", "model")


class Tables:
    """The database as a source of sessions (see `Source`)."""

    def __init__(self, path: str, notices: Notices) -> None:
        self.database = Database(path, notices, FORGIVING)
        self.path = path

    def usable(self) -> bool:
        """Whether there is something in it; raises Unreadable when that is not OpenCode's."""
        tables = {name for (name,) in self._all("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and not {"session", "message", "part"} <= tables:
            raise Unreadable(self.path, "not a database of OpenCode")
        return bool(tables)

    def ids(self) -> frozenset[str]:
        """The ids of all sessions."""
        return frozenset(str(id) for (id,) in self._all("SELECT id FROM session"))

    def sessions(self, since: float, directory: str, known: frozenset[str] = frozenset()) -> list[Session]:
        columns = self.database.columns("session")
        chosen, values = ["id IS NOT NULL"], list[Any]()
        if directory and "directory" in columns:
            chosen.append("(instr(directory, ?) > 0 OR ifnull(directory, '') = '')")
            values.append(directory)
        if since > 0 and "time_updated" in columns:
            # Seconds, where another program filled the table, are below any milliseconds.
            chosen.append("(time_updated >= ? OR time_updated BETWEEN ? AND 100000000000)")
            values += [int(since * 1000), int(since)]
        rows = self._all(f"SELECT {self._columns(*_SESSION)} FROM session WHERE {' AND '.join(chosen)}", *values)
        found = map(_session, rows)
        return [
            session
            for session in found
            if session.updated >= since and directory in (session.directory or directory) and session.id not in known
        ]

    def session(self, session_id: str) -> Session | None:
        rows = self._all(f"SELECT {self._columns(*_SESSION, 'revert')} FROM session WHERE id = ?", session_id)
        if not rows:
            return None
        revert = rows[0][-1]
        raw = revert.encode() if isinstance(revert, str) else revert
        return _session(rows[0][:-1])._replace(revert=reverted(json_object(raw) if isinstance(raw, bytes) else None))

    def batches(self, session_id: str, after: Position | None, *, bodies: bool = True) -> Iterator[Batch]:
        inside = after is not None and after[2] != END
        keys = self._keys(session_id, after and after[:2], including=inside)
        if not keys and self.is_newer(session_id):
            yield from self._newer(session_id, after)
            return
        start = after[2] if after and inside and keys and keys[0][1] == after[1] else ""
        index = 0
        while index < len(keys):
            here = (keys, index, start)
            try:
                page, index, start = self.database.look(lambda c: self._pages.page(c, session_id, *here, bodies))  # noqa: B023
            except Unreadable as error:
                if not _is_damage(error):
                    raise
                yield from self._salvaged(session_id, *here)
                return
            if bodies:
                self.database.rest()
            yield from page

    def _salvaged(self, session_id: str, keys: Sequence[Key], index: int, start: str) -> Iterator[Batch]:
        """What can still be had of a damaged file: each row asked for by itself, an empty one for what is lost."""
        for at, id in keys[index:]:
            message = _or_none(lambda: self.message(session_id, id)) or message_of((id, at, b""))  # noqa: B023
            sql = "SELECT id FROM part WHERE message_id = ? AND id > ? ORDER BY id"
            ids = _or_none(lambda: self._all(sql, id, start)) or []  # noqa: B023
            refs = [{"table": "part", "id": part_id} for (part_id,) in ids]
            found = [(_or_none(lambda: self.part(ref)) or (None, None))[1] for ref in refs]  # noqa: B023
            parts = [part or Part(None, ref["id"], None, b"") for part, ref in zip(found, refs, strict=True)]
            yield Batch(message, parts, True)
            start = ""

    def messages(self, session_id: str, at: Any, id: str, *, backwards: bool = False) -> Iterator[Message]:
        place, rows = None if at is None else (at, id), _FIRST_ROWS
        while keys := self._keys(session_id, place, backwards=backwards, limit=rows):
            page = self.database.look(lambda c: self._pages.messages(c, keys))
            yield from (message for message in page if message is not None)
            place, rows = keys[len(page) - 1], PAGE_ROWS

    def message(self, session_id: str, message_id: str) -> Message | None:
        rows = self._all(f"{self._pages.message} AND session_id = ?", message_id, session_id)
        return message_of(rows[0]) if rows else None

    def parts(self, message_id: str) -> list[Part]:
        return self.database.look(lambda c: self._pages.of(c, message_id))

    def part(self, ref: Record) -> tuple[Message, Part | None] | None:
        table, id = ref.get("table"), str(ref.get("id"))
        if table == v2.TABLE:
            batch = next((v2.batch(*row) for row in self._all(f"{_NEWER} WHERE id = ?", id)), None)
            return None if batch is None else (batch.message, batch.parts[0])
        sql = self._pages.message
        if table == "part":
            sql = f"""SELECT m.id, m.{self._at}, CAST(m.data AS BLOB), {PART}
                FROM part p JOIN message m ON m.id = p.message_id WHERE p.id = ?"""
        for row in self._all(sql, id):
            return message_of(row[:3]), Part._make(row[3:]) if row[3:] else None
        return None

    def ids_before(self, session_id: str, position: Position) -> int:
        before = f"m.session_id = :s AND (m.{self._at}, m.id) < (:t, :m)"
        joined = f"FROM message m CROSS JOIN part p ON p.message_id = m.id WHERE {before}"
        return self._total(
            f"""(SELECT total({WIDTH}) {joined}) + (SELECT total({FAILED}) FROM message m WHERE {before})
            + (SELECT total({WIDTH}) FROM part p WHERE p.message_id = :m AND p.id <= :p)
            + (SELECT total({FAILED}) FROM message m WHERE m.id = :m AND :p = '{END}')""",
            session_id,
            position,
        )

    def parts_before(self, session_id: str, position: Position) -> int:
        if self.is_newer(session_id):
            return -1  # a row of these changes as a whole, so that none is ever passed for good
        before = f"m.session_id = :s AND (m.{self._at}, m.id) < (:t, :m)"
        return self._total(
            f"""(SELECT count(*) FROM message m CROSS JOIN part p ON p.message_id = m.id WHERE {before})
            + (SELECT count(*) FROM part p WHERE p.message_id = :m AND p.id <= :p)""",
            session_id,
            position,
        )

    def _total(self, sum: str, session_id: str, position: Position) -> int:
        named = {"s": session_id, "t": position[0], "m": position[1], "p": position[2]}
        return int(self.database.look(lambda c: c.execute(f"SELECT {sum}", named).fetchone()[0]))

    def order(self, session_id: str) -> list[Key]:
        return self._keys(session_id, None)

    def first(self, session_id: str) -> Key | None:
        return next(iter(self._keys(session_id, None, limit=1)), None)

    def heads(self, directory: str) -> dict[str, Any]:
        first = f"SELECT {self._at} FROM message WHERE session_id = s.id ORDER BY {self._at}, id LIMIT 1"
        rows = self._all(f"SELECT s.id, ({first}) FROM session s WHERE s.directory = ?", directory)
        return {id: at for id, at in rows if at is not None}

    def signature(self, session_id: str) -> tuple[Any, ...]:
        return self.signatures([session_id]).get(session_id, ())

    def signatures(self, session_ids: Iterable[str]) -> dict[str, tuple[Any, ...]]:
        """The signatures of many sessions at once.

        The session's own time is touched when a turn begins and ends, not while it runs: so the number of parts, and
        the last message with its parts, which change in place, belong to it. Where that is a prompt, it may be
        waiting for a step that is still at work: then the messages before it belong to it as well.
        """

        def newest(table: str, chosen: str) -> str:
            known = "time_updated" in self.database.columns(table)
            return f"(SELECT max({'time_updated' if known else 'NULL'}) FROM {table} WHERE {chosen})"

        ends = f"SELECT id FROM message WHERE session_id = s.id ORDER BY {self._at} DESC, id DESC LIMIT"
        marks = [
            "(SELECT count(*) FROM part WHERE session_id = s.id)",
            "m.id",
            newest("session", "id = s.id"),
            newest("message", "id = m.id"),
            f"""CASE WHEN instr(substr(m.data, 1, 300), '"role":"user"')
                THEN {newest("part", f"message_id IN ({ends} {_LIVE_ROWS})")}
                ELSE {newest("part", "message_id = m.id")} END""",
        ]
        if self.database.columns(v2.TABLE):
            marks.append(newest(v2.TABLE, "session_id = s.id"))
        sql = f"SELECT {', '.join(marks)} FROM session s LEFT JOIN message m ON m.id = ({ends} 1) WHERE s.id = ?"
        ids = list(session_ids)

        def ask(c: sqlite3.Connection) -> dict[str, tuple[Any, ...]]:
            found = ((id, c.execute(sql, (id,)).fetchone()) for id in ids)
            return {id: tuple(map(_mark, row)) for id, row in found if row}

        return self.database.look(ask)

    def mentioning(self, words: Sequence[str]) -> frozenset[str] | None:
        """The sessions with a row in which one of `words` may stand, in any case; None when only reading tells."""
        pieces = [_plain_piece(word) for word in words]
        if None in pieces:
            return None
        found: set[str] = set()
        for table in ("part", "message", v2.TABLE):
            if not self.database.columns(table):
                continue
            # Two characters beyond ASCII are, in lower case, an ASCII letter.
            wanted = " OR ".join(["data LIKE ? ESCAPE '\\'"] * len(pieces) + ["instr(data, ?)"] * 2)
            sql = f"SELECT DISTINCT session_id FROM {table} WHERE rowid BETWEEN ? AND ? AND ({wanted})"
            values = (*(f"%{piece}%" for piece in pieces), "\u212a", "\u0130")
            last = self._all(f"SELECT max(rowid) FROM {table}")[0][0] or 0
            for first in range(0, last + 1, _SCANNED_ROWS):
                found.update(str(id) for (id,) in self._all(sql, first, first + _SCANNED_ROWS - 1, *values))
        return frozenset(found)

    def is_newer(self, session_id: str) -> bool:
        """Whether the session has been written in the newer form, without rows in message and part."""
        if not self.database.columns(v2.TABLE):
            return False
        return not self._all("SELECT 1 FROM message WHERE session_id = ? LIMIT 1", session_id) and bool(
            self._all("SELECT 1 FROM session_message WHERE session_id = ? LIMIT 1", session_id)
        )

    def _newer(self, session_id: str, after: Position | None) -> Iterator[Batch]:
        seq = None if after is None else after[0]
        sql = f"{_NEWER} WHERE session_id = ? AND (? IS NULL OR seq > ?) ORDER BY seq LIMIT {_FIRST_ROWS}"
        while rows := self._all(sql, session_id, seq, seq):
            yield from (v2.batch(*row) for row in rows)
            seq = rows[-1][1]

    def _keys(
        self,
        session_id: str,
        place: Key | None,
        *,
        including: bool = False,
        backwards: bool = False,
        limit: int = -1,
    ) -> list[Key]:
        """The messages of a session after (or before) a place in their order; where an index has it, no row is read."""
        beyond = ("<" if backwards else ">") + ("=" if including else "")
        bound = f"AND ({self._at}, id) {beyond} (?, ?)" if place else ""
        order = "DESC" if backwards else "ASC"
        sql = f"SELECT {self._at}, id FROM message WHERE session_id = ? {bound} ORDER BY 1 {order}, 2 {order}"
        return self._all(f"{sql} LIMIT ?", session_id, *(place or ()), limit)

    @cached_property
    def _at(self) -> str:
        """What orders messages; without the column they go by their ids alone."""
        return "time_created" if "time_created" in self.database.columns("message") else "rowid * 0"

    @cached_property
    def _pages(self) -> Pages:
        return Pages(self._at)

    def _columns(self, *names: str) -> str:
        known = self.database.columns("session")
        return ", ".join(name if name in known else "NULL" for name in names)

    def _all(self, sql: str, *values: Any) -> list[Any]:
        return self.database.look(lambda c: c.execute(sql, values).fetchall())


def _mark(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _session(row: tuple[Any, ...]) -> Session:
    id, parent, directory, title, created, updated, archived, model = row
    return Session(
        id=str(id),
        parent=_name(parent),
        directory=_name(directory),
        title=_name(title),
        created=seconds(created),
        updated=seconds(updated),
        archived=bool(archived),
        model=model_name(json_object(model.encode()) or {}) if isinstance(model, str) else None,
    )


def _name(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value if isinstance(value, str) and value else None


def _plain_piece(word: str) -> str | None:
    """The longest piece of a word that stands in JSON as it is, as a pattern for LIKE."""
    pieces = re.findall(r"[A-Za-z0-9_]+", word)
    if pieces:
        return max(pieces, key=len).replace("_", "\\_")
    return word if word.isalnum() and word == word.swapcase() else None


def _is_damage(error: Unreadable) -> bool:
    return getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def _or_none(ask: Any) -> Any:
    """What a look at a damaged file gives; None where it meets the damage."""
    try:
        return ask()
    except Unreadable as error:
        if not _is_damage(error):
            raise
        return None
