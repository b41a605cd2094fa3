"""Another program's SQLite database, read without touching it.

Every look is short and ends its transaction, so that the program that owns the database is never held up; a reader
that may be slow in taking what it asked for calls `rest` in between, and then holds nothing at all.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ..notices import Notices, Unreadable

Answer = TypeVar("Answer")

BUSY_SECONDS = 5.0
_COPY_SECONDS = 10.0  # for so long a temporary copy is as good as the original
_SETTLED_SECONDS = 2.0  # no file system's clock is coarser: what is older than that has its last time
_TRIES = 5
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~")

# What SQLite says when it may read the database but cannot have the shared memory file that a WAL needs.
_NO_SHARED_MEMORY = frozenset((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL))
_IOERR_SHM = frozenset(
    (
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_SHMMAP,
    )
)


class _Stamp(NamedTuple):
    """What changes whenever the database does; `wal` is the size of its WAL."""

    inode: int
    size: int
    mtime: int
    wal: int


class Database:
    """One database file; `look` is the only way in.

    Without a WAL the file is opened as immutable, which creates nothing beside it; what changed meanwhile is noticed
    afterwards and read again. With a WAL it is opened in place, read-only: that takes part in the owner's locking
    and may create the `-shm` file, nothing else. Where the folder does not even allow that, a temporary copy is read.
    `functions` are our own ones of one value, by the names that they have in statements.
    """

    def __init__(
        self, path: str, notices: Notices, functions: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})
    ) -> None:
        self.path = os.path.abspath(path)
        self._file = os.path.realpath(path)  # the WAL lies beside the file, not beside a link to it
        self._notices = notices
        self._functions = functions
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[Any, ...] = ()
        self._unchanged: _Stamp | None = None  # of an immutable file, at the end of the last look
        self._close: Callable[[], object] | None = None
        self._copy: str | None = None
        self._copied = -_COPY_SECONDS
        self._columns: dict[str, frozenset[str]] = {}

    def look(self, ask: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What `ask` returns; it may be called again with another connection, so it must have no other effect.

        Raises Unreadable, and FileNotFoundError when the database is gone.
        """
        for _ in range(_TRIES):
            before = self._unchanged or self._stamp()
            try:
                answer = (
                    self._with_wal(ask, before) if before.wal else ask(self._open(self._file, "immutable=1", *before))
                )
            except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter for names in a damaged schema
                self._let_go()
                if self._stamp() == before:
                    raise Unreadable(self.path, str(error) or type(error).__name__) from error
                continue
            if before.wal:
                return answer
            if self._stamp() == before:
                self._unchanged = before
                return answer
            self._unchanged = None
        raise Unreadable(self.path, "it keeps changing while it is read")

    def rest(self) -> None:
        """Hold nothing of the database until the next look: what is read as immutable is never locked."""
        if self._unchanged is None:
            self._let_go()

    def _let_go(self) -> None:
        if self._close is not None:
            self._close()
        self._connection = self._close = self._unchanged = None

    def version(self) -> tuple[int, ...] | None:
        """What changes whenever the database does, without a look into it.

        None while nothing can tell: it was written to only just now, is gone, or a temporary copy is read instead.
        """
        try:
            found = os.stat(self._file)
        except OSError:
            return None
        version, latest = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns], found.st_ctime_ns
        try:
            wal = os.stat(self._file + "-wal")
        except OSError:
            pass
        else:  # whoever opens it as root changes its ctime
            version += (wal.st_ino, wal.st_size, wal.st_mtime_ns)
            latest = max(latest, wal.st_mtime_ns)
        settled = latest < time.time_ns() - _SETTLED_SECONDS * 1e9
        return tuple(version) if settled and self._copy is None else None

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns; none when there is no such table. Asked once."""
        if table not in self._columns:
            sql = "SELECT name FROM pragma_table_info(?)"
            self._columns[table] = frozenset(self.look(lambda c: [name for (name,) in c.execute(sql, (table,))]))
        return self._columns[table]

    def _with_wal(self, ask: Callable[[sqlite3.Connection], Answer], stamp: _Stamp) -> Answer:
        if time.monotonic() - self._copied >= _COPY_SECONDS:
            try:
                return ask(self._open(self._file, "mode=ro", stamp.inode))
            except sqlite3.Error as error:
                self._let_go()
                code = getattr(error, "sqlite_errorcode", 0)
                if (code & 0xFF not in _NO_SHARED_MEMORY and code not in _IOERR_SHM) or not self._made_copy():
                    raise
        return ask(self._open(self._copy or self._file, "mode=ro", self._copied))

    def _open(self, path: str, how: str, *identity: Any) -> sqlite3.Connection:
        """The connection to what `identity` tells apart: the one that is open, or a new one."""
        wanted = (path, how, *identity)
        if self._connection is None or self._opened != wanted:
            self._let_go()
            uri = f"{_uri(path)}?{how}"
            connection = sqlite3.connect(
                uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._close = weakref.finalize(self, connection.close)
            self._connection, self._opened = connection, wanted
            connection.text_factory = _text
            connection.execute("PRAGMA trusted_schema = OFF")
            for name, function in self._functions.items():
                connection.create_function(name, 1, function, deterministic=True)
        return self._connection

    def _made_copy(self) -> bool:
        """Copy the database with its WAL to a private folder; False when they changed under the copying."""
        import shutil
        import tempfile

        if self._copy is None:
            folder = tempfile.mkdtemp(prefix="total-recall-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._copy = os.path.join(folder, "copy.db")
        before = self._stamp()
        try:
            for end in ("-wal", ""):
                shutil.copyfile(self._file + end, self._copy + end)
        except OSError as error:
            raise Unreadable(self.path, error) from error
        if self._stamp() != before:
            return False
        self._copied = time.monotonic()
        self._notices.say(f"{self.path}: read from a temporary copy, because it cannot be read where it is")
        return True

    def _stamp(self) -> _Stamp:
        try:
            found = os.stat(self._file)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Unreadable(self.path, error) from error
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(self.path, "not a regular file")
        try:
            wal = os.stat(self._file + "-wal").st_size
        except OSError:
            wal = 0
        return _Stamp(found.st_ino, found.st_size, found.st_mtime_ns, wal)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _uri(path: str) -> str:
    """The path as a `file:` URI, in which `?`, `#` and `%` are no syntax."""
    return "file://" + "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in os.fsencode(path))
