"""What a store offers. An adapter is one subclass of Store; everything else works on what it yields.

The one thing an adapter must do is `entries`: walk the stored records of a session in the order of writing and say
which messages each one holds. Listing facts, raw lines, extraction and the index are all made from that walk.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import orjson

from ..notices import Notices, Unreadable
from ..record import Record, one_line, session_row
from ..times import from_epoch

State = dict[str, Any]
Remember = Callable[[str, str, "tuple[Any, ...]", Callable[[Any], Any]], Any]

_LISTED = 10  # how many children and aliases a row names
_BOOKMARK_BYTES = 256 * 1024


class Place(NamedTuple):
    """Where a store is looked for: its root, the variable that overrides it, whether that is set, its shadow folder."""

    root: str
    variable: str
    overridden: bool
    shadow: str


class Reference(NamedTuple):
    """One session, as cheaply as it can be named.

    `updated` is in seconds since 1970 and `size` in bytes: the newest mtime and the sum of its files, or what the
    database says. `files` are the session's files in reading order (for a database, the database). `names` are the
    other ids, file and folder names that resolve to the session. `key` is the adapter's own.
    """

    harness: str
    session_id: str
    path: str
    updated: float
    size: int
    files: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    key: Any = None


class Entry:
    """One stored record: a line, a part, a transcript entry.

    `messages` are the message records it holds, often none. `source` is its text for tr-raw: one line of bytes, or a
    function that makes it. `type` is the raw type, or None to let it follow from the messages. `group` names the
    harness's own message when several entries make up one, so that it is counted once. `slice` goes with a
    compaction that keeps records from before it in the model's sight: the first such record's id.
    """

    __slots__ = ("group", "messages", "slice", "source", "ts", "type")

    def __init__(
        self,
        source: bytes | Callable[[], bytes],
        ts: str | None = None,
        messages: list[Record] | None = None,
        type: str | None = None,
        group: str | None = None,
        slice: int | None = None,
    ) -> None:
        self.source = source
        self.ts = ts
        self.messages = messages or []
        self.type = type
        self.group = group
        self.slice = slice

    def line(self) -> bytes:
        """The source record as one line of bytes."""
        return self.source if isinstance(self.source, bytes) else self.source()

    def raw_type(self) -> str:
        """`tool`, `user`, `assistant`, `thinking` or `system`: the first that applies."""
        if self.type is not None:
            return self.type
        for kind, applies in _RAW_TYPES:
            if any(applies(message) for message in self.messages):
                return kind
        return "system"


_RAW_TYPES: tuple[tuple[str, Callable[[Record], bool]], ...] = (
    ("tool", lambda m: m["role"] == "tool"),
    ("user", lambda m: m["role"] == "user"),
    ("assistant", lambda m: m["role"] == "assistant" and bool(m["content"] or m["tool_calls"] or not m["thinking"])),
    ("thinking", lambda m: m["role"] == "assistant"),
)


def recomputed(kind: str, key: str, signature: tuple[Any, ...], compute: Callable[[Any], Any]) -> Any:
    """The `Remember` of a run without a catalogue: nothing is remembered, everything is computed."""
    return compute(None)


class Store:
    """One harness's store, read-only.

    `remember(kind, key, signature, compute)` returns the JSON value kept for (kind, key) while `signature` is
    unchanged, else what `compute(previous)` returns; `previous` is None or `(signature, value)` as last kept.
    """

    harness: ClassVar[str]

    def __init__(self, place: Place, notices: Notices, remember: Remember = recomputed) -> None:
        self.place = place
        self.root = place.root
        self.notices = notices
        self.remember = remember
        self._children: dict[str, list[Reference]] | None = None

    # -- what an adapter provides ------------------------------------------------------------------------------

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        """Where this harness keeps its sessions; None when there is no home directory to look in."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether there is a store at all: one stat."""
        return os.path.exists(self.root)

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """All sessions updated at or after `since`, most recently updated first; no payload is opened.

        `directory` may be used to leave out sessions early, where the store can tell cheaply. Raises Unreadable when
        the store cannot be listed.
        """
        raise NotImplementedError

    def entries(self, session: Reference, state: State, *, whole: bool = False) -> Iterator[Entry]:
        """Walk the stored records from where `state` stands; {} is the beginning.

        `state` is changed as the walk goes on and holds only JSON values: `id` (the last record id given), `offset`
        (of the next record), `about` (see `describe`), and what else the adapter needs to go on from here. A copy
        taken between two entries continues the walk there. With `whole`, an unterminated last line is left alone.
        Raises Unreadable.
        """
        raise NotImplementedError

    def parent(self, session: Reference) -> str | None:
        """The id of the session that spawned this one, from its place, its head or the database; cheap."""
        return None

    def signature(self, session: Reference) -> tuple[Any, ...]:
        """What changes when the session does. The default stats the session's files."""
        return tuple(part for path in session.files for part in stamp(path))

    def entry_at(self, session: Reference, ref: Record) -> Entry | None:
        """The entry that a record's `ref` points at, with one seek; None when it is no longer there."""
        raise NotImplementedError

    def resume(self, row: Record) -> list[str]:
        """The command that reopens the session in its harness."""
        raise NotImplementedError

    def describe(self, session: Reference, facts: Record) -> Record:
        """The row's fields that are not counted from messages.

        The default takes them from `facts["about"]`, where `entries` puts what it passes: title, directory,
        git_branch, model, archived, origin, forked_from.
        """
        return dict(facts["about"])

    # -- what follows from that --------------------------------------------------------------------------------

    def messages(self, session: Reference, state: State | None = None, *, whole: bool = False) -> Iterator[Record]:
        """The message records in the order of the stream, from `state` on."""
        for entry in self.entries(session, {} if state is None else state, whole=whole):
            yield from entry.messages

    def since_compaction(self, session: Reference) -> Iterator[Record]:
        """The messages from the last compaction on, with what the model still sees beside the summary."""
        first = self.facts(session)["slice"]
        return self.messages(session) if first is None else self.messages_from(session, first)

    def messages_from(self, session: Reference, first: int) -> Iterator[Record]:
        """The messages from record id `first` on, reached by the nearest bookmark before it."""
        marks = self.facts(session)["bookmarks"]
        place = bisect.bisect_right(marks, first, key=lambda mark: mark[0])
        state = orjson.loads(marks[place - 1][1]) if place else {}
        return (message for message in self.messages(session, state) if message["id"] >= first)

    def facts(self, session: Reference) -> Record:
        """What one read of the whole session tells (see `Tally`), remembered while the session is unchanged."""

        def read(_: Any) -> Record:
            tally = Tally()
            for entry in self.entries(session, tally.state, whole=True):
                tally.add(entry)
            return tally.facts()

        return self.remember("facts", session.path, self.signature(session), read)

    def children(self, session_id: str) -> list[Reference]:
        """The sessions that this one spawned, most recently updated first."""
        if self._children is None:
            self._children = {}
            for session in self.sessions():
                if parent := self.parent(session):
                    self._children.setdefault(parent, []).append(session)
        return self._children.get(session_id, [])

    def row(self, session: Reference) -> Record:
        """The session's row; damage is in its `read_error`, never raised."""
        known: Record = {"file_size": session.size, "end_time": from_epoch(session.updated)}
        try:
            facts = self.facts(session)
            known.update(facts["counts"])
            known.update(self.describe(session, facts))
            if not known.get("title") and facts["first_prompt"]:
                known["title"] = one_line(facts["first_prompt"])
        except Unreadable as error:
            known["read_error"] = error.reason
        except FileNotFoundError:
            known["read_error"] = "gone"
        if known.get("title"):
            known["title"] = one_line(known["title"], 1000)
        held_back = []
        children = [child.session_id for child in self.children(session.session_id)]
        aliases = [name for name in session.names if name != session.session_id]
        for key, count, names in (
            ("child_sessions", "child_session_count", children),
            ("aliases", "alias_count", aliases),
        ):
            known[key], known[count] = names[:_LISTED], len(names)
            if len(names) > _LISTED:
                held_back.append(f"{len(names) - _LISTED} of {len(names)} {key} not shown")
        known["notice"] = "; ".join(held_back) or None
        known["parent_session_id"] = self.parent(session)
        return session_row(self.harness, session.session_id, session.path, **known)


class Tally:
    """What one walk over a session's entries counts; `facts()` is a JSON value, from which a walk can go on.

    Replayed records count in no total but line_count. `slice` is the first id of "since the last compaction"; a
    compaction that is known to be on an abandoned branch is no boundary.
    `bookmarks` are (id of the next record, state) about every 256 KiB, so that any record can be reached without
    walking from the beginning.
    """

    def __init__(self, facts: Record | None = None) -> None:
        known = facts or {}
        self.state: State = known.get("state", {})
        self.counts: Record = known.get("counts") or {
            "start_time": None,
            "end_time": None,
            "line_count": 0,
            "user_count": 0,
            "assistant_count": 0,
            "tool_count": 0,
            "has_compaction": False,
            "empty": True,
        }
        self.first_prompt: str | None = known.get("first_prompt")
        self.slice: int | None = known.get("slice")
        self.bookmarks: list[tuple[int, str]] = known.get("bookmarks", [])
        self._group: list[str] = known.get("group", ["", ""])
        self._marked = self.state.get("offset", 0)

    def add(self, entry: Entry) -> None:
        """Count one entry; to be called before the walk goes on."""
        counts = self.counts
        counts["line_count"] += 1
        if ts := entry.ts:
            if counts["start_time"] is None or ts < counts["start_time"]:
                counts["start_time"] = ts
            if counts["end_time"] is None or ts > counts["end_time"]:
                counts["end_time"] = ts
        for message in entry.messages:
            self._count(message, entry)
        if self.state.get("offset", 0) - self._marked >= _BOOKMARK_BYTES:
            self._marked = self.state["offset"]
            self.bookmarks.append((self.state["id"] + 1, orjson.dumps(self.state).decode()))

    def _count(self, message: Record, entry: Entry) -> None:
        counts, group = self.counts, entry.group
        author = message["authorship"]
        if message["class"] == "compaction":
            counts["has_compaction"] = True
            if "branch" not in message:
                self.slice = entry.slice or message["id"]
        if author == "tool" or author == "injected":
            return
        counts["empty"] = False
        if message.get("agent") == "sidechain":
            return
        prompt = message["role"] == "user"
        if prompt and self.first_prompt is None and message["content"].strip():
            self.first_prompt = message["content"][:1000]
        if message.get("replayed"):
            return
        counts["tool_count"] += len(message["tool_calls"])
        if prompt or message["content"]:
            side = "user" if prompt else "assistant"
            if group is None or self._group[prompt] != group:
                counts[f"{side}_count"] += 1
            if group is not None:
                self._group[prompt] = group

    def facts(self) -> Record:
        return {
            "counts": self.counts,
            "about": self.state.get("about", {}),
            "first_prompt": self.first_prompt,
            "slice": self.slice,
            "bookmarks": self.bookmarks,
            "group": self._group,
            "state": self.state,
        }


def stamp(path: str) -> tuple[int, int, int]:
    """(size, mtime in nanoseconds, inode) of a file; zeros when it is gone or cannot be reached."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_size, found.st_mtime_ns, found.st_ino)


def newest_first(sessions: Iterable[Reference]) -> list[Reference]:
    """Sorted by update time, latest first; ties by id, so that the order never depends on the directory's."""
    return sorted(sessions, key=lambda session: (-session.updated, session.session_id))
