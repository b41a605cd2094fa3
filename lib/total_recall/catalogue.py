"""The catalogue: what was learned about each session, kept between runs so that a listing costs what changed.

A SQLite file in the shadow folder. It can be deleted at any moment; it is rebuilt when it is damaged, foreign or
older, and left alone when it is newer.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from contextlib import closing, suppress
from typing import Any

from .locking import alone
from .notices import Notices
from .record import packed, unpacked
from .stores.base import Kept, Memory

_STAMP = 0x7472_4341  # application_id: ours
_VERSION = 4  # raised with every change of what is kept
_SUM_BYTES = 4
_PATIENCE = 5.0  # seconds to wait for another process
_WAITING = 2048  # how many facts one transaction takes


class Newer(Exception):
    """The file was made by a newer version."""


class Catalogue(Memory):
    """A memory that outlives the run. Facts that cannot be written are only forgotten, never an error."""

    def __init__(self, folder: str, notices: Notices) -> None:
        super().__init__()
        self._path = os.path.join(folder, "catalogue.db")
        self._notices = notices
        self._fault: str | None = None
        self._inode = 0
        self._database = self._open()
        self._unwritten: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._loaded: dict[str, dict[str, tuple[str, bytes]]] = {}

    def _open(self) -> sqlite3.Connection | None:
        try:
            return self._current() or self._made()
        except (sqlite3.Error, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self._notices.say(f"{self._path}: {reason}; this run goes on without the catalogue")
        except Newer:
            self._notices.say(f"{self._path} was made by a newer version; this run goes on without the catalogue")
        return None

    def _current(self) -> sqlite3.Connection | None:
        """The file as it is, opened; None where it is not there, damaged or of another making (see `_fault`)."""
        try:
            handle = os.open(self._path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            return None
        found = os.fstat(handle)
        os.close(handle)
        self._inode = found.st_ino
        if found.st_size == 0:
            return None
        database = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
        database.text_factory = _decoded
        try:
            self._fault = _fault(database)
        except (sqlite3.OperationalError, Newer):
            database.close()
            raise
        except sqlite3.DatabaseError as error:
            self._fault = str(error)
        if self._fault is None:
            return database
        database.close()
        return None

    def _made(self) -> sqlite3.Connection | None:
        """A new file in the place of what `_current` refused, made by one process only: others find it whole."""
        with alone(self._path + ".lock", _PATIENCE):
            if database := self._current():
                return database
            if self._fault is not None:
                self._notices.say(f"{self._path} is damaged ({self._fault}) and is rebuilt")
            _discard(self._path)
            new = self._path + ".new"
            _discard(new)
            os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # by us, so that it is private
            with closing(sqlite3.connect(new, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode=WAL")
                database.executescript(
                    "CREATE TABLE fact (kind TEXT, key TEXT, signature TEXT, value BLOB, PRIMARY KEY (kind, key))"
                    f" WITHOUT ROWID; PRAGMA application_id={_STAMP}; PRAGMA user_version={_VERSION};"
                )
            os.replace(new, self._path)
            return self._current()

    def get(self, kind: str, key: str) -> Kept | None:
        """(signature, value) as last kept."""
        if self._database is None:
            return super().get(kind, key)
        key = _text(key)
        found = self._unwritten.get((kind, key))
        if found is None and kind in self._loaded:
            found = self._loaded[kind].get(key)
        elif found is None:
            query = "SELECT signature, value FROM fact WHERE kind = ? AND key = ?"
            try:
                found = self._database.execute(query, (kind, key)).fetchone()
            except sqlite3.Error as error:
                self._give_up(error)
        if found is None:
            return None
        was, value = found
        if not isinstance(value, bytes) or value[:_SUM_BYTES] != _sum(kind, key, was, value[_SUM_BYTES:]):
            return None
        return was, unpacked(value[_SUM_BYTES:])

    def put(self, kind: str, key: str, signature: str, value: Any) -> None:
        """Keep a value; written a few hundred at a time, and at the end."""
        if self._database is None:
            super().put(kind, key, signature, value)
            return
        key, data = _text(key), packed(value)
        self._unwritten[kind, key] = signature, _sum(kind, key, signature, data) + data
        if len(self._unwritten) >= _WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting, in one transaction."""
        if self._database is None or not self._unwritten:
            return
        rows = [(kind, key, signature, value) for (kind, key), (signature, value) in self._unwritten.items()]
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT OR REPLACE INTO fact VALUES (?, ?, ?, ?)", rows)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)
        self._unwritten.clear()

    def expect(self, kind: str) -> None:
        """Read all values of a kind at once: a query for each costs several times as much."""
        if self._database is None or kind in self._loaded:
            return
        query = "SELECT key, signature, value FROM fact WHERE kind = ?"
        try:
            self._loaded[kind] = {key: (was, value) for key, was, value in self._database.execute(query, (kind,))}
        except sqlite3.Error as error:
            self._give_up(error)

    def forget(self, kind: str, key: str) -> None:
        """Forget a value."""
        super().forget(kind, key)
        self.put(kind, key, "", None)

    def keep_only(self, kind: str, keys: set[str]) -> None:
        """Forget the facts of sessions that are gone."""
        if self._database is None:
            return
        try:
            known = {key for (key,) in self._database.execute("SELECT key FROM fact WHERE kind = ?", (kind,))}
            gone = [(kind, key) for key in known - set(map(_text, keys))]
            if gone:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany("DELETE FROM fact WHERE kind = ? AND key = ?", gone)
                self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)

    def close(self) -> None:
        """Write what is waiting, and let go of the file."""
        self.flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _give_up(self, error: sqlite3.Error) -> None:
        self._notices.say(f"{self._path}: {error}; this run goes on without the catalogue")
        database, self._database = self._database, None
        if database is not None:
            database.close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError), alone(self._path + ".lock", _PATIENCE):
                if os.stat(self._path).st_ino == self._inode:  # and not what another process made meanwhile
                    _discard(self._path)


def _fault(database: sqlite3.Connection) -> str | None:
    """What is wrong with an opened file, None where it is ours as we write it now; raises Newer."""
    stamp = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    if stamp != _STAMP or version < _VERSION:
        return "made by an older version or by another program"
    if version > _VERSION:
        raise Newer
    return None


def _discard(path: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            os.unlink(path + suffix)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _sum(kind: str, key: str, signature: str, data: bytes) -> bytes:
    """A checksum that stands before each value: SQLite has none, and nothing must believe what damage left."""
    return zlib.crc32(data, zlib.crc32(f"{kind} {key} {signature}".encode())).to_bytes(_SUM_BYTES, "big")


def _text(key: str) -> str:
    """A key as SQLite takes it: the name of a file that is no UTF-8 is written out."""
    return key if key.isascii() else key.encode("utf-8", "backslashreplace").decode()
