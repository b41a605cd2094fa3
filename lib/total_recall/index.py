"""The index of one store: a tantivy index in its shadow folder, one document for each text of a record.

What is known of a session (how far it is indexed, what it looked like then, its title) is a document of the index
itself, so that it can never disagree with what was committed. A session is replaced as a whole, or added to, in one
commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep

import orjson
import tantivy

from . import analysis
from .indexed import is_published, number_of, publish
from .indexing import Indexed, delete, row_of, signature_of
from .notices import Notices, Unreadable
from .reading import Reader
from .record import Record
from .stores.base import GONE, Reference, Store

FORMAT = "total-recall index"
VERSION = 2

_SMALL = 64_000_000  # bytes of source for which one commit will do
_COMMIT_BYTES = 256_000_000
_COMMIT_SECONDS = 20.0
_HEAP = 50_000_000


class Locked(Exception):
    """Another process writes to the index."""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name=analysis.NAME)
    for name in ("role", "class", "tool_name"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    # Only for what rules sessions out of a scan: the names of arguments, and what is left out of long outputs.
    for name in ("keys", "rest"):
        builder.add_text_field(name, tokenizer_name=analysis.NAME, index_option="basic")
    # key - session = 16 * id + class, so that two numbers say which text of which record this is.
    for name in ("session", "key"):
        builder.add_unsigned_field(name, fast=True, indexed=True)
    builder.add_unsigned_field("about", indexed=True)
    for name in ("weight", "signature", "records", "documents", "cut", "opaque"):
        builder.add_unsigned_field(name, fast=True)
    for name in ("ts", "start", "end"):
        builder.add_integer_field(name, fast=True)
    builder.add_bytes_field("stored", stored=True)
    return builder.build()


class Index(Reader):
    """An open index. Readers never wait; a writer is alone (see `writing`)."""

    def __init__(self, folder: str, index: tantivy.Index) -> None:
        super().__init__(folder, index)
        self._signatures: dict[str, int] = {}

    @classmethod
    def open(cls, shadow: str, notices: Notices) -> Index | None:
        """The index in a shadow folder, made if there is none; what cannot be used is rebuilt, and said.

        None when it must be left alone: made by a newer version, or not to be written.
        """
        folder = os.path.join(shadow, "index")
        state = _stamp(folder)
        if state == "newer":
            notices.say(f"{folder} was made by a newer version; this run goes on without it")
            return None
        if os.path.isdir(folder) and not os.access(folder, os.W_OK | os.X_OK):
            notices.say(f"{folder} cannot be written; this run goes on without it")
            return None
        if state == "older":
            notices.say(f"{folder} was made by an older version or another program and is rebuilt")
        if state == "ours":
            try:
                return cls(folder, tantivy.Index.open(folder))
            except PermissionError as error:
                notices.say(f"{folder}: {error.strerror}; this run goes on without it")
                return None
            except (ValueError, OSError) as error:
                notices.say(f"{folder} is damaged ({_first_line(error)}) and is rebuilt")
        try:
            cls.discard(folder)
            return cls._made(folder)
        except (ValueError, OSError) as error:
            notices.say(f"{folder}: {_first_line(error)}; this run goes on without it")
            return None

    @classmethod
    def existing(cls, shadow: str) -> Index | None:
        """The index in a shadow folder, where there is one that can be read as it is; nothing is said."""
        folder = os.path.join(shadow, "index")
        try:
            return cls(folder, tantivy.Index.open(folder)) if _stamp(folder) == "ours" else None
        except (ValueError, OSError):
            return None

    @classmethod
    def temporary(cls, folder: str) -> Index:
        """An index in a folder of the caller's, who removes it."""
        return cls(folder, tantivy.Index(_schema(), folder))

    @classmethod
    def _made(cls, folder: str) -> Index:
        """A new index, made beside its place and moved there, so that no reader sees half of one."""
        import shutil

        _sweep(folder)
        made = f"{folder}.{os.getpid()}"
        os.makedirs(made, mode=0o700)
        try:
            with _private():
                tantivy.Index(_schema(), made)
                with open(os.path.join(made, "stamp.json"), "wb") as file:
                    file.write(orjson.dumps({"format": FORMAT, "version": VERSION}))
            with suppress(OSError):  # another process was faster
                os.rename(made, folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return cls(folder, tantivy.Index.open(folder))

    @staticmethod
    def discard(folder: str) -> None:
        """Throw an index away: move the folder, then remove it; readers that have it open read on."""
        with suppress(OSError):
            os.rename(folder, f"{folder}.old.{os.getpid()}")
            _sweep(folder)

    # -- reading -----------------------------------------------------------------------------------------------

    def age(self, now: float) -> float:
        """Seconds since the last commit."""
        try:
            return max(0.0, now - os.stat(os.path.join(self.folder, "meta.json")).st_mtime)
        except OSError:
            return 0.0

    def stale(self, store: Store, sessions: Iterable[Reference]) -> list[Reference]:
        """The sessions that are not indexed as they were when first asked about."""
        known = self.sessions()
        stale = []
        for session in sessions:
            entry = known.get(number_of(session.session_id))
            if entry is None or entry.signature != self._signature(store, session):
                stale.append(session)
        return stale

    def _signature(self, store: Store, session: Reference) -> int:
        """What changes when the session does, as a number other than 0; -1 where that cannot be told."""
        name = session.session_id
        if name not in self._signatures:
            try:
                self._signatures[name] = signature_of(store, session)
            except (Unreadable, FileNotFoundError):
                return -1
        return self._signatures[name]

    # -- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, wait: float = 0.0, *, threads: int = 1) -> Iterator[tantivy.IndexWriter]:
        """The index's one writer; what it was not made to commit is dropped at the end.

        Raises Locked when another process still has it after `wait` seconds, and Unreadable when the index cannot be
        written.
        """
        until = monotonic() + wait
        with _private():
            while True:
                try:
                    writer = self._index.writer(_HEAP * threads, threads)
                    break
                except ValueError as error:
                    if "LockBusy" not in str(error):
                        raise Unreadable(self.folder, _first_line(error)) from error
                if monotonic() >= until:
                    raise Locked(f"the index {self.folder} is being written by {self._holder()}")
                sleep(0.1)
            note = os.path.join(self.folder, "writer.pid")
            try:
                with open(note, "w") as file:
                    file.write(str(os.getpid()))
                # What a killed writer left would be in the way: the next one gives its files the same names.
                writer.garbage_collect_files()
                yield writer
                writer.wait_merging_threads()
            except (ValueError, OSError) as error:
                raise Unreadable(self.folder, _first_line(error)) from error
            finally:
                try:
                    os.unlink(note)
                except OSError:
                    pass
                self.renew()

    def _holder(self) -> str:
        try:
            with open(os.path.join(self.folder, "writer.pid")) as file:
                return f"process {int(file.read(20))}"
        except (OSError, ValueError):
            return "another process"

    def refresh(
        self,
        store: Store,
        sessions: Iterable[Reference],
        *,
        alive: Iterable[str] | None = None,
        wait: float = 0.0,
        seconds: float = 0.0,
        again: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[Record]:
        """Bring sessions up to date; yields a row for each that was not, as it is done.

        `alive` are all session ids of the store: others leave the index. `seconds` bounds the time that may be
        spent, between two sessions; what is left out stays stale. `again` indexes unchanged sessions too. `progress`
        is told how many of how many sessions are done. Raises Locked, before anything is done, and Unreadable when
        the index cannot be written; what was committed before stays.
        """
        sessions = list(sessions)
        todo = sessions if again else self.stale(store, sessions)
        gone = self._gone(alive)
        if not todo and not gone:
            self._publish()
            return
        total = sum(session.size for session in todo)
        until = monotonic() + seconds if seconds else float("inf")
        with self.writing(wait, threads=2 if total >= _SMALL else 1) as writer:
            yield from self._removed(writer, store.harness, gone)
            uncommitted, done, written, last = bool(gone), 0, 0, monotonic()
            for number, session in enumerate(todo, 1):
                if monotonic() >= until:
                    break
                row, size = self._session(writer, store, session, again)
                yield row
                uncommitted = True
                done += size
                if progress:
                    progress(number, len(todo))
                waited = monotonic() - last >= _COMMIT_SECONDS and done >= _SMALL
                if done - written >= _COMMIT_BYTES or waited:
                    writer.commit()
                    uncommitted, written, last = False, done, monotonic()
            if uncommitted:
                writer.commit()
        self._publish()

    def _publish(self) -> None:
        """Tell listings which sessions are here, where that is not told yet."""
        if not is_published(self.folder):
            with _private(), suppress(OSError):  # only a flag of their rows hangs on it
                publish(self.folder, self.sessions())

    def _gone(self, alive: Iterable[str] | None) -> list[str]:
        if alive is None:
            return []
        left = dict(self.sessions())
        for session_id in alive:
            left.pop(number_of(session_id), None)
        return [self.stored(entry.address)["session_id"] for entry in left.values()]

    def clear(self, wait: float = 0.0) -> None:
        """Forget everything. Raises Locked."""
        with self.writing(wait) as writer:
            writer.delete_all_documents()
            writer.commit()

    def drop(self, harness: str, session_ids: Iterable[str], wait: float = 0.0) -> Iterator[Record]:
        """Take sessions out of the index."""
        with self.writing(wait) as writer:
            yield from self._removed(writer, harness, session_ids)
            writer.commit()
        self._publish()

    def _removed(self, writer: tantivy.IndexWriter, harness: str, session_ids: Iterable[str]) -> Iterator[Record]:
        for session_id in session_ids:
            delete(writer, self.schema, session_id, whole=True)
            yield row_of(harness, session_id, 0, 0, 0.0, "removed")

    def _session(
        self, writer: tantivy.IndexWriter, store: Store, session: Reference, again: bool
    ) -> tuple[Record, int]:
        """Index one session: what it grew by if that is all, else the whole of it. Gives its row and bytes of text."""
        began = monotonic()
        known = None if again else self.sessions().get(number_of(session.session_id))
        kept = self.stored(known.address) if known else None
        if kept and not (kept.get("facts") and store.continues(session, kept["facts"])):
            kept = None
        indexed = Indexed(writer, self.schema, store, session, kept, new=known is None and not again)
        error = indexed.read()
        if error == GONE:
            delete(writer, self.schema, session.session_id, whole=True)
            return row_of(session.harness, session.session_id, 0, 0, monotonic() - began, "removed"), 0
        if not error or indexed.begun:
            self._signatures[session.session_id] = indexed.finish(error)
        status = "failed" if error else "appended" if kept else "indexed"
        row = row_of(session.harness, session.session_id, indexed.documents, indexed.added, monotonic() - began, status)
        if error:
            row["error"] = error
        return row, indexed.size


def _sweep(folder: str) -> None:
    """Remove what processes that were killed left beside an index: half made ones, and such as were thrown away."""
    import shutil

    parent, name = os.path.split(folder)
    for entry in os.scandir(parent):
        match = re.fullmatch(re.escape(name) + r"\.(old\.)?(\d+)", entry.name)
        if match is None or not (match[1] or int(match[2]) == os.getpid() or _is_dead(int(match[2]))):
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            with suppress(OSError):
                os.unlink(entry.path)


def _is_dead(process: int) -> bool:
    if os.name == "nt":  # where the call below would end the process
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _stamp(folder: str) -> str:
    """`ours`, `older`, `newer`, or `none` when there is nothing."""
    try:
        with open(os.path.join(folder, "stamp.json"), "rb") as file:
            stamp = orjson.loads(file.read(1000))
        version = stamp["version"] if stamp["format"] == FORMAT else 0
    except FileNotFoundError:
        return "older" if os.path.lexists(folder) else "none"
    except (OSError, ValueError, KeyError, TypeError):
        version = 0
    if not isinstance(version, int) or version < VERSION:
        return "older"
    return "newer" if version > VERSION else "ours"


@contextmanager
def _private() -> Iterator[None]:
    """Files made meanwhile are the user's alone."""
    mask = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(mask)


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "strerror", None) or error).split("\n", 1)[0]
    return "its writer stopped - is the disk full?" if "index writer was killed" in text else text
