"""OpenCode: one database for all sessions, and the JSON tree that versions up to 1.1 wrote.

A session that is in both is read from the database; its messages are ordered by (time, id), their parts by id.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from ..notices import Notices, Unreadable
from ..record import Record, packed
from ..times import from_epoch
from ._opencode_db import Tables
from ._opencode_json import Tree
from ._opencode_parts import HARNESS
from ._opencode_rows import END, Position, Session, Source, json_object, place
from ._opencode_walk import Walk, fresh_state
from .base import Entry, Kept, Memory, Place, Reference, State, Store, newest_first, stamp, stands

_SINGLY = 8  # so many signatures are asked for one by one before those of all sessions are read at once


class OpenCode(Store):
    """The sessions of OpenCode; `Reference.key` is the `Session` as it was listed."""

    harness = HARNESS

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        super().__init__(place, notices, remember)
        self._listed: dict[str, Reference] = {}
        self._signatures: dict[str, tuple[Any, ...]] = {}
        self._asked = 0
        self._origins: dict[str, State] = {}

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        variable = "TOTAL_RECALL_OPENCODE_ROOT"
        if named := environ.get(variable, "").strip():
            named = os.path.abspath(named)
            return Place(named, variable, True, os.path.join(os.path.dirname(named), ".tantivy"))
        home, data = environ.get("HOME", ""), environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(data):
            data = os.path.join(home, ".local", "share") if home else ""
        root = os.path.join(data, "opencode") if data else ""
        database = environ.get("OPENCODE_DB", "").strip()
        if database and database != ":memory:" and (root or os.path.isabs(database)):
            root = os.path.join(root, database)
            return Place(root, variable, False, os.path.join(os.path.dirname(root), ".tantivy"))
        return Place(root, variable, False, os.path.join(root, ".tantivy")) if root else None

    def exists(self) -> bool:
        return self._database_file is not None or stands(os.path.join(self._folder, "storage", "session"))

    @cached_property
    def _folder(self) -> str:
        """The data folder: the root, or where a named database lies."""
        named = os.path.isfile(self.root) or self.root.endswith(".db")
        return os.path.dirname(self.root) if named else self.root

    @cached_property
    def _database_file(self) -> str | None:
        """The database: the named one, else `opencode.db`, else the newest of another channel's that is one."""
        if self._folder != self.root:
            return self.root if stands(self.root) else None
        plain = os.path.join(self.root, "opencode.db")
        if stands(plain):
            return plain
        try:
            names = [name for name in os.listdir(self.root) if name.startswith("opencode") and name.endswith(".db")]
        except OSError:
            return None
        paths = [os.path.join(self.root, name) for name in names]
        for path in sorted(paths, key=lambda path: (-max(stamp(path)[1], stamp(path + "-wal")[1]), path)):
            try:
                if Tables(path, self.notices).usable():
                    return path
            except (Unreadable, FileNotFoundError):
                continue
        return None

    @cached_property
    def _tables(self) -> Tables | None:
        return Tables(self._database_file, self.notices) if self._database_file else None

    @cached_property
    def _tree(self) -> Tree | None:
        """The JSON tree; a database that the override names is taken alone."""
        if self.place.overridden and self._folder != self.root:
            return None
        return Tree(os.path.join(self._folder, "storage"), self.notices)

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        found: list[Reference] = []
        failed = None
        known: frozenset[str] = frozenset()
        if self._tables:
            try:
                if self._tables.usable():
                    tables = self._tables
                    found += [self._reference(tables.path, s) for s in tables.sessions(since, directory)]
                    known = tables.ids()
            except FileNotFoundError:
                pass  # gone since it was found
            except Unreadable as error:
                failed = error
        if self._tree:
            try:
                in_tree = self._tree.sessions(since, directory, known)
                found += [self._reference(session.file or "", session) for session in in_tree]
            except Unreadable as error:
                failed = failed or error
        if failed and not found:
            raise failed
        if failed:
            self.notices.fail(HARNESS, failed)
        self._listed = {session.session_id: session for session in found}
        self._signatures, self._asked = {}, 0
        return newest_first(found)

    def _reference(self, path: str, session: Session) -> Reference:
        return Reference(HARNESS, session.id, path, session.updated, 0, files=(path,), key=session)

    def _source(self, session: Reference) -> Source:
        source = self._tables if session.key.file is None else self._tree
        return cast(Source, source)

    def parent(self, session: Reference) -> str | None:
        return session.key.parent

    def signature(self, session: Reference) -> tuple[Any, ...]:
        kept = self._read_ahead(session)
        self._signatures.pop(session.session_id, None)  # given out once, since it grows old
        return self._source(session).signature(session.session_id) if kept is None else kept

    def _read_ahead(self, session: Reference) -> tuple[Any, ...] | None:
        """The signature, where those that a listing needs were read for all of its sessions at once."""
        if session.key.file is not None or self._tables is None:
            return None
        self._asked += 1
        if self._asked == _SINGLY and session.session_id in self._listed:
            self._signatures = self._all_signatures(self._tables)
        return self._signatures.get(session.session_id)

    def _all_signatures(self, tables: Tables) -> dict[str, tuple[Any, ...]]:
        """The signatures of the listed sessions, as they were last time if nobody has written to the database."""
        version = tables.database.version()
        kept = None if version is None else self.remember.get("signatures", tables.path)
        unchanged = kept is not None and kept[0] == packed(version).decode()
        known = {id: tuple(marks) for id, marks in kept[1].items()} if kept and unchanged else {}
        new = [id for id, session in self._listed.items() if session.key.file is None and id not in known]
        if new:
            known |= tables.signatures(new)
            if version is not None and tables.database.version() == version:
                self.remember.put("signatures", tables.path, packed(version).decode(), dict(known))
        return known

    def seen(self, session: Reference) -> tuple[Any, ...]:
        kept = self._read_ahead(session)  # and left for the facts
        return (session.updated, *(self._source(session).signature(session.session_id) if kept is None else kept))

    def entries(self, session: Reference, state: State, *, whole: bool = False) -> Iterator[Entry]:
        return iter(self._walk(session, state, settled=whole))

    def messages(self, session: Reference, state: State | None = None, *, whole: bool = False) -> Iterator[Record]:
        walk = self._walk(session, {} if state is None else state, settled=whole, only_told=True)
        for entry in walk:
            yield from entry.messages

    def _walk(
        self,
        session: Reference,
        state: State,
        *,
        settled: bool = False,
        bodies: bool = True,
        only_told: bool = False,
    ) -> Walk:
        source = self._source(session)
        now = source.session(session.session_id)
        if now is None:
            raise FileNotFoundError(errno.ENOENT, "the session is gone", session.session_id)
        if not state:
            state.update(fresh_state(), **self._origin(source, now))
        return Walk(source, now, state, self.notices, settled=settled, bodies=bodies, only_told=only_told)

    def continues(self, session: Reference, facts: Record) -> bool:
        """Whether what was read up to the state in `facts` still stands, so that a walk can go on from it.

        A prompt may be queued behind a step that is still at work: then parts appear before the prompt, and all ids
        after them are other ones. A revert takes messages away.
        """
        state = facts["state"]
        if not state.get("after"):
            return True
        at, message_id, part_id = state["after"]
        source = self._source(session)
        return source.parts_before(session.session_id, (at, message_id, part_id)) == state["parts"]

    def rewritten(self, session: Reference, state: State) -> bool:
        """Never: a walk goes by the time and id of messages, and tells what has become of those it has passed."""
        return False

    def fingerprint(self, session: Reference, state: State) -> list[int] | None:
        """None: `continues` asks the database."""
        return None

    def memory_key(self, session: Reference) -> str:
        return session.session_id

    def skimmed(self, session: Reference, state: State) -> Iterator[Entry]:
        return iter(self._walk(session, state, settled=True, bodies=False))

    def mentioning(self, words: Sequence[str]) -> frozenset[str] | None:
        if self._tables is None:
            return None
        try:
            found = self._tables.mentioning(words)
        except (Unreadable, FileNotFoundError):
            return None
        listed = self._listed or {session.session_id: session for session in self.sessions()}
        # What the tree alone has is small and old: it is read.
        return None if found is None else found | {id for id, s in listed.items() if s.key.file is not None}

    def describe(self, session: Reference, facts: Record) -> Record:
        known: Session = session.key
        return {
            "title": known.title,
            "directory": known.directory,
            "archived": known.archived,
            "model": known.model,
            "start_time": from_epoch(known.created) or facts["counts"]["start_time"],
            "end_time": from_epoch(known.updated) or facts["counts"]["end_time"],
            "file_size": facts["state"]["offset"],
            "line_count": facts["state"]["parts"],
            **facts["about"],
        }

    def beside(self, session: Reference) -> tuple[Any, ...]:
        """What a listing reads anyway: it may change without the session's time."""
        known: Session = session.key
        return (known.title, known.directory, known.archived, known.model)

    def since_compaction(self, session: Reference) -> Iterator[Record]:
        state: State = {}
        walk = self._walk(session, state, only_told=True)
        source = self._source(session)
        if source.is_newer(session.session_id):
            return super().since_compaction(session)
        found = walk.last_compaction()
        if found is not None:
            message, part = found
            tail = part.get("tail_start_id")
            first = source.message(session.session_id, tail) if isinstance(tail, str) else None
            if first is None or place(first.at, first.id) > place(message.at, message.id):
                first = message
            state.update(self._reached(session, (first.at, first.id, "")))
        return (message for entry in walk for message in entry.messages)

    def _reached(self, session: Reference, position: Position) -> State:
        """Where a walk stands at a position, remembered: the ids before it are told by the rows before it."""
        signature = (*self.signature(session), *position)
        before: Callable[[Kept | None], int] = lambda _: self._source(session).ids_before(session.session_id, position)  # noqa: E731
        return {"id": self.remember("tail", session.session_id, signature, before), "after": list(position)}

    def abandoned(self, session: Reference) -> list[tuple[int, int]]:
        """The ranges of record ids that a staged revert hides."""
        source = self._source(session)
        now = source.session(session.session_id)
        first = source.message(session.session_id, now.revert[0]) if now and now.revert else None
        if now is None or now.revert is None or first is None:
            return []
        last = next(source.messages(session.session_id, None, "", backwards=True))
        before = source.ids_before(session.session_id, (first.at, first.id, ""))
        for part in source.parts(first.id):
            if now.revert[1] and part.id < now.revert[1]:
                before += part.width
        through = source.ids_before(session.session_id, (last.at, last.id, END))
        return [(before + 1, through)] if through > before else []

    def entry_at(self, session: Reference, ref: Record) -> Entry | None:
        """As in Store; its records are numbered from 1, for what is before them is not read."""
        found = self._source(session).part(ref)
        if found is None:
            return None
        return self._walk(session, {}).one(*found)

    def resume(self, row: Record) -> list[str]:
        return ["opencode", "--session", row["session_id"]]

    def _origin(self, source: Source, session: Session) -> State:
        """The part of a fresh state that says what a fork has in common with the session it was made from.

        A fork is a new session with copies of the messages, under new ids but with their times: so its first
        message is older than itself. The oldest of those that share the most with it is taken for the origin.
        """
        if session.id not in self._origins:
            self._origins[session.id] = _origin(source, session)
        return self._origins[session.id]


def _origin(source: Source, session: Session) -> State:
    first = source.first(session.id)
    if first is None or place(*first) >= place(session.created * 1000, ""):
        return {}
    order = source.order(session.id)
    shared, origin = 0, None
    for other in _older(source, session, order[0][0]):
        theirs = source.order(other.id)
        common = _common([at for at, _ in order], [at for at, _ in theirs])
        if common > shared and _texts(source, theirs[0][1]) == _texts(source, order[0][1]):
            shared, origin = common, other.id
    if origin is None:
        return {}
    return {"copied": list(order[shared - 1]), "about": {"forked_from": {"session_id": origin, "kind": "fork"}}}


def _older(source: Source, session: Session, head: Any) -> list[Session]:
    """The older sessions of the same directory whose first message has the same time, oldest first."""
    heads = source.heads(session.directory or "")
    others = [source.session(id) for id, at in heads.items() if at == head and id != session.id]
    older = [other for other in others if other and (other.created, other.id) < (session.created, session.id)]
    return sorted(older, key=lambda other: (other.created, other.id))


def _common(times: list[Any], others: list[Any]) -> int:
    """How many leading items two lists share."""
    pairs = enumerate(zip(times, others, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(times), len(others)))


def _texts(source: Source, message_id: str) -> list[Any]:
    values = (json_object(part.raw or b"") for part in source.parts(message_id))
    return [value.get("text") for value in values if value and value.get("type") == "text"]
