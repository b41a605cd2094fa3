"""Codex CLI: rollouts, one JSONL file a thread (or several, after a rewind), with the formats of 0.20 to 0.171."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from ..notices import Notices, Unreadable
from ..record import Record
from ._codex_files import Heads, rollout_id, rollouts, threads
from ._codex_items import string
from ._codex_lines import Line, unwrapped
from ._codex_walk import Walk
from ._jsonl import Lines
from .base import Entry, Memory, Place, Reference, State, Store, newest_first, stands

_ROOT = "TOTAL_RECALL_CODEX_ROOT"


class Part(NamedTuple):
    """A rollout as far as it counts: a session's file (its place among the session's files) and what comes after.

    `ordinal` and `offset` are those of its first line that does not count; both None when all of it does.
    """

    session: Reference
    file: int
    ordinal: int | None = None
    offset: int | None = None

    def holds(self, line: Line) -> bool:
        """Whether a line of this rollout is part of it."""
        ordinal = (line.value or {}).get("ordinal")
        if self.ordinal is not None and isinstance(ordinal, int):
            return ordinal < self.ordinal
        return self.offset is None or line.start < self.offset


class Codex(Store):
    """The threads below `sessions/` and its sibling `archived_sessions/`."""

    harness = "codex"

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        super().__init__(place, notices, remember)
        self._home = os.path.dirname(self.root)
        self._archive = os.path.join(self._home, "archived_sessions")
        self._heads = Heads(self.root, self.remember)
        self._head: dict[str, Record] = {}
        self._names: dict[str, str] | None = None
        self._by_rollout: dict[str, tuple[Reference, int]] | None = None

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        named = environ.get(_ROOT, "").strip()
        if named:
            root = named
        elif home := environ.get("CODEX_HOME"):
            root = os.path.join(home, "sessions")
        elif home := environ.get("HOME"):
            root = os.path.join(home, ".codex", "sessions")
        else:
            return None
        root = os.path.abspath(root)
        return Place(root, _ROOT, bool(named), os.path.join(os.path.dirname(root), ".tantivy"))

    def exists(self) -> bool:
        return stands(self.root) or stands(self._archive)

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """All threads, newest first. A file's first line, which has the id, is read when the file is new, then kept."""
        found = rollouts(self.root, self._archive, self.notices)
        self._head = self._heads.of(found)
        return newest_first(threads(self.harness, found, self._head), since)

    def entries(self, session: Reference, state: State, *, whole: bool = False) -> Iterator[Entry]:
        return iter(self._walk(session, state, whole=whole))

    def _walk(self, session: Reference, state: State, *, whole: bool = False) -> Walk:
        return Walk(session, state, self.notices, self._original, whole=whole)

    def parent(self, session: Reference) -> str | None:
        return self._said(session.path).get("parent")

    def _said(self, path: str) -> Record:
        """What the first lines of a file say; the files are listed for it only once."""
        if path not in self._head:
            self.sessions()
        return self._head.get(path, {})

    def entry_at(self, session: Reference, ref: Record) -> Entry | None:
        """The entry at a place; the ids of its messages count from 1, and what only the walk knows is missing."""
        path, offset, length = ref.get("path"), ref.get("offset"), ref.get("length")
        if path not in session.files or not isinstance(offset, int) or offset < 0:
            return None
        head = self._said(path)
        state: State = {"file": session.files.index(path), "offset": offset, "head": True, "bare": True}
        state.update((key, head[key]) for key in ("child", "agent") if key in head)
        try:
            for entry in (walk := self._walk(session, state)):
                if walk.line.start != offset:
                    break
                if len(walk.line.text) == length:
                    return entry
        except FileNotFoundError:
            pass
        return None

    def text_files(self, session: Reference) -> tuple[str, ...]:
        """Every letter is written as it is; a compressed file shows none of them."""
        return () if any(path.endswith(".zst") for path in session.files) else session.files

    def resume(self, row: Record) -> list[str]:
        return ["codex", "resume", row["session_id"]]

    def describe(self, session: Reference, facts: Record) -> Record:
        known = dict(facts["about"])
        known["title"] = self._thread_names().get(session.session_id) or known.get("title")
        known["archived"] = all(path.startswith(self._archive + os.sep) for path in session.files)
        return known

    def beside(self, session: Reference) -> tuple[Any, ...]:
        """The thread's name, which is in no rollout."""
        return (self._thread_names().get(session.session_id),)

    def _thread_names(self) -> dict[str, str]:
        """The threads' names: Codex appends one line for each naming, the last one counts."""
        if self._names is None:
            self._names = {}
            try:
                for _, _, value in Lines(os.path.join(self._home, "session_index.jsonl"), self.notices, _is_naming):
                    if value and _is_naming(value):
                        self._names[value["id"]] = value["thread_name"]
            except (OSError, Unreadable):
                pass  # only names: the sessions are there without them
        return self._names

    # -- forks, rewinds -----------------------------------------------------------------------------------------

    def history(self, session: Reference) -> Iterator[Record]:
        """The records that a fork inherits without holding copies: those of the threads it goes on from, oldest first.

        They keep the session_id and id that they have in their own session, and are all `replayed`.
        """
        parts, missing = self._lineage(session)
        if missing:
            self.notices.say(f"{session.session_id}: the thread that it goes on from is not in the store ({missing})")
        inherited = [part for part in parts if part.session.session_id != session.session_id]
        for _, some in groupby(reversed(inherited), key=lambda part: part.session.session_id):
            by_file = {part.file: part for part in some}
            origin = next(iter(by_file.values())).session
            state: State = {}
            for entry in (walk := self._walk(origin, state)):
                part = by_file.get(state["file"])
                if part and part.holds(walk.line):
                    yield from ({**record, "replayed": True} for record in entry.messages)
                elif state["file"] >= max(by_file):
                    break

    def abandoned(self, session: Reference) -> list[list[int]]:
        """The ranges of record ids, [first, last], that a rewind left behind."""

        def read(_: Any) -> list[list[int]]:
            parts, _ = self._lineage(session)
            kept = {part.file: part for part in parts if part.session.path == session.path}
            left: list[list[int]] = []
            prompts: list[int] = []  # the first ids of the turns that still count
            state: State = {}
            for entry in (walk := self._walk(session, state)):
                part = kept.get(state["file"])
                if part is None or not part.holds(walk.line):
                    left += [[message["id"], message["id"]] for message in entry.messages]
                    continue
                if turns := _rolled_back(walk.line):
                    first = prompts[-turns:][:1]
                    left += [[first[0], state["id"]]] if first else []
                    del prompts[-turns:]
                prompts += [m["id"] for m in entry.messages if m["authorship"] in ("human", "delegated")]
            return _merged(left)

        return self.remember("abandoned", session.path, self.signature(session), read)

    def _lineage(self, session: Reference) -> tuple[list[Part], str | None]:
        """What a session's present branch is made of, newest first, and the rollout it needs that is not there."""
        parts = [Part(session, len(session.files) - 1)]
        met = set()
        while True:
            path = parts[-1].session.files[parts[-1].file]
            base = self._said(path).get("base")
            if base is None or path in met:
                return parts, None
            met.add(path)
            found = self._rollout(base[0])
            if found is None:
                return parts, base[0]
            parts.append(Part(*found, base[1], base[2]))

    def _rollout(self, name: str) -> tuple[Reference, int] | None:
        """Where the rollout of that id stands: its session, and its place among the session's files."""
        if self._by_rollout is None:
            self._by_rollout = {}
            for session in self.sessions():
                for place, path in enumerate(session.files):
                    self._by_rollout.setdefault(rollout_id(path) or session.session_id, (session, place))
                self._by_rollout.setdefault(session.session_id, (session, 0))
        return self._by_rollout.get(name)

    def _original(self, thread: str) -> str | None:
        found = self._rollout(thread)
        return found[0].files[found[1]] if found else None


def _is_naming(value: Record) -> bool:
    return bool(string(value.get("id")) and string(value.get("thread_name")))


def _rolled_back(line: Line) -> int:
    """How many turns a thread_rolled_back event takes back; 0 for any other line."""
    kind, payload = unwrapped(line.value)
    if kind != "event_msg" or payload.get("type") != "thread_rolled_back":
        return 0
    turns = payload.get("num_turns")
    return turns if isinstance(turns, int) and turns > 0 else 0


def _merged(ranges: list[list[int]]) -> list[list[int]]:
    """Ranges in order, with those that touch or overlap made one."""
    merged: list[list[int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return merged
