"""What a store offers. An adapter is one subclass of Store; everything else works on what it yields.

The one thing an adapter must do is `entries`: walk the stored records of a session in the order of writing and say
which messages each one holds. Listing facts, raw lines, extraction and the index are all made from that walk.
"""

from __future__ import annotations

import bisect
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from ..notices import Notices, Unreadable
from ..record import Record, packed, session_row, title_of, unpacked
from ..regular import open_regular
from ..times import from_epoch

State = dict[str, Any]
Kept = tuple[str, Any]  # (signature, value)
GONE = "gone"  # the read_error of a session that was deleted after it was listed

_LISTED = 10  # how many children and aliases a row names
_BOOKMARK_BYTES = 256 * 1024
_END_BYTES = 1024


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
    stored: int = 1  # how many stored records it is; more only where a walk is made for counting

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


class Memory:
    """What was learned about sessions: JSON values kept by (kind, key) for as long as their signature holds.

    This one lasts as long as the run; the catalogue's lasts longer.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Kept] = {}

    def __call__(self, kind: str, key: str, signature: Sequence[Any], compute: Callable[[Kept | None], Any]) -> Any:
        """The value kept for (kind, key) if `signature` is unchanged, else what `compute` makes of the last one."""
        written = packed(signature).decode()
        kept = self.get(kind, key)
        if kept is not None and kept[0] == written:
            return kept[1]
        value = compute(kept)
        self.put(kind, key, written, value)
        return value

    def get(self, kind: str, key: str) -> Kept | None:
        """(signature, value) as last kept."""
        return self._kept.get((kind, key))

    def put(self, kind: str, key: str, signature: str, value: Any) -> None:
        """Keep a value."""
        self._kept[kind, key] = signature, value

    def forget(self, kind: str, key: str) -> None:
        """Forget a value."""
        self._kept.pop((kind, key), None)

    def expect(self, kind: str) -> None:
        """Most values of this kind will be asked for: what makes that cheaper may be done now."""

    def keep_only(self, kind: str, keys: set[str]) -> None:
        """Forget the values of other keys."""

    def close(self) -> None:
        """Nothing more will be asked."""


class Store:
    """One harness's store, read-only."""

    harness: ClassVar[str]

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        self.place = place
        self.root = place.root
        self.notices = notices
        self.remember = remember or Memory()
        self.derived: Callable[[Record], Record] | None = None  # what the shadow folder adds to a row
        self._children: dict[str, list[Reference]] | None = None
        self._now = (0.0, "9")  # a moment, and how it is written

    # -- what an adapter provides ------------------------------------------------------------------------------

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        """Where this harness keeps its sessions; None when there is no home directory to look in."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether there is a store at all: one stat."""
        return stands(self.root)

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

    def directories(self, session: Reference) -> list[str]:
        """Every working directory that the session's records name, where it was moved; the row has the first."""
        found = self.facts(session)["about"].get("directories")
        return found if isinstance(found, list) else []

    def text_files(self, session: Reference) -> tuple[str, ...]:
        """The files in which every word of the session's texts stands as it is; none when that is not sure.

        By the bytes of such files alone a session can be passed over.
        """
        return ()

    def mentioning(self, words: Sequence[str]) -> frozenset[str] | None:
        """The ids of the sessions in which any of `words` may stand, in any case; None when only reading tells."""
        return None

    def history(self, session: Reference) -> Iterator[Record]:
        """The records that the session inherits by reference, oldest first; most harnesses copy instead."""
        return iter(())

    def abandoned(self, session: Reference) -> Sequence[Sequence[int]]:
        """The ranges `[first id, last id]` of records on branches that a rewind left behind; one pass."""
        return []

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
        self.facts(session)
        marks = self._bookmarks(session)
        place = bisect.bisect_right(marks, first, key=lambda mark: mark[0])
        state = unpacked(marks[place - 1][1]) if place else {}
        return (message for message in self.messages(session, state) if message["id"] >= first)

    def branches(self, session: Reference, *, look: bool) -> list[list[int]]:
        """The ranges of `abandoned` as last remembered; none where nobody looked yet, unless `look`."""
        signature = self.signature(session)
        if look:
            ranges = lambda _: [list(ids) for ids in self.abandoned(session)]  # noqa: E731
            return self.remember("branches", session.session_id, signature, ranges)
        kept = self.remember.get("branches", session.session_id)
        return kept[1] if kept and kept[0] == packed(signature).decode() else []

    @staticmethod
    def marked(messages: Iterable[Record], ranges: Sequence[Sequence[int]]) -> Iterator[Record]:
        """The messages with `branch: "abandoned"` on those within the ranges."""
        for message in messages:
            if any(first <= message["id"] <= last for first, last in ranges):
                ref = message.pop("ref", None)
                message["branch"] = "abandoned"
                if ref is not None:
                    message["ref"] = ref
            yield message

    def rewritten(self, session: Reference, state: State) -> bool:
        """Whether the session's file is another one than `state` was reached in: gone, replaced, or shorter."""
        size = stamp(session.files[-1])[0] if session.files else 0
        return size < state.get("offset", 0)

    def facts(self, session: Reference) -> Record:
        """What one read of the whole session tells (see `Tally`), remembered while the session is unchanged.

        A session that has only grown is read on from where the last read ended.
        """

        def read(kept: Kept | None) -> Record:
            before = kept[1] if kept and self.continues(session, kept[1]) else None
            tally = Tally(before, self._bookmarks(session) if before else [])
            for entry in self.skimmed(session, tally.state):
                tally.add(entry)
            return self.learned(session, tally)

        return self.remember("facts", self.memory_key(session), self.signature(session), read)

    def learned(self, session: Reference, tally: Tally) -> Record:
        """The facts that a walk to the end told; its bookmarks are kept."""
        facts = tally.facts()
        facts["fingerprint"] = self.fingerprint(session, tally.state)
        self.remember.put("bookmarks", self.memory_key(session), "", tally.bookmarks)
        return facts

    def memory_key(self, session: Reference) -> str:
        """What the session's facts are kept under: its path, unless many sessions share one."""
        return session.path

    def skimmed(self, session: Reference, state: State) -> Iterator[Entry]:
        """The walk as counting needs it: what is only for reading may be left out of the records."""
        return self.entries(session, state, whole=True)

    def _bookmarks(self, session: Reference) -> list[tuple[int, str]]:
        kept = self.remember.get("bookmarks", self.memory_key(session))
        return kept[1] if kept else []

    def fingerprint(self, session: Reference, state: State) -> list[int] | None:
        """What tells, at the next read, that the part already read is unchanged; None when nothing can."""
        if len(session.files) != 1 or session.files[0].endswith(".zst"):
            return None
        return _ends(session.files[0], state.get("offset", 0))

    def continues(self, session: Reference, facts: Record) -> bool:
        """Whether the session only grew since `facts` were learned."""
        known = facts.get("fingerprint")
        return bool(known) and known == self.fingerprint(session, facts["state"])

    def children(self, session_id: str) -> list[Reference]:
        """The sessions that this one spawned, most recently updated first."""
        if self._children is None:
            self.adopt(self.sessions())
        return (self._children or {}).get(session_id, [])

    def adopt(self, sessions: Iterable[Reference]) -> None:
        """Learn who spawned whom from a whole listing, so that it need not be made again."""
        self._children = {}
        for session in sessions:
            if parent := self.parent(session):
                self._children.setdefault(parent, []).append(session)

    def row(self, session: Reference, now: float = 0.0) -> Record:
        """The session's row, remembered while nothing that it says can have changed; damage is in its `read_error`.

        With `now`, in seconds since 1970, a session that ends later than that is marked `clock: "ahead"`.
        """
        try:
            row = self._remembered_row(session)
        except (Unreadable, FileNotFoundError) as error:
            known = {"file_size": session.size, "read_error": _reason(error)}
            row = session_row(self.harness, session.session_id, session.path, **known)
        if now != self._now[0]:
            self._now = now, from_epoch(now) or "9"
        if (row["end_time"] or "") > self._now[1]:
            row = session_row(**{**row, "clock": "ahead"})
        return self.derived(row) if self.derived else row

    def _remembered_row(self, session: Reference) -> Record:
        children = [child.session_id for child in self.children(session.session_id)]
        signature = (
            *self.seen(session),
            session.path,
            session.files,
            session.names,
            len(children),
            children[:_LISTED],
            self.parent(session),
            *self.surroundings(session),
        )
        row: Record = self.remember("row", session.session_id, signature, lambda _: self._row(session, children))
        if "read_error" in row:
            self.remember.forget("row", session.session_id)  # a permission is given without another time or size
        return row

    def seen(self, session: Reference) -> tuple[Any, ...]:
        """What of a listing's reference changes when the session does, without another look at the store."""
        return (session.size, session.updated, len(session.files))

    def beside(self, session: Reference) -> tuple[Any, ...]:
        """What tells that a title changed which stands beside the session's records, and is its alone."""
        return ()

    def surroundings(self, session: Reference) -> tuple[Any, ...]:
        """What a row depends on beside its session."""
        return self.beside(session)

    def _row(self, session: Reference, children: list[str]) -> Record:
        known: Record = {"file_size": session.size}
        try:
            facts = self.facts(session)
            known.update(facts["counts"])
            known.update(self.describe(session, facts))
            known["title"] = title_of(known.get("title"), facts["first_prompt"])
        except (Unreadable, FileNotFoundError) as error:
            known["read_error"] = _reason(error)
        held_back = []
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

    def __init__(self, facts: Record | None = None, bookmarks: list[tuple[int, str]] | None = None) -> None:
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
        self.bookmarks: list[tuple[int, str]] = bookmarks or []
        self._group: list[str] = known.get("group", ["", ""])
        self._marked = self.state.get("offset", 0)

    def add(self, entry: Entry) -> None:
        """Count one entry; to be called before the walk goes on."""
        counts = self.counts
        counts["line_count"] += entry.stored
        if ts := entry.ts:
            if counts["start_time"] is None or ts < counts["start_time"]:
                counts["start_time"] = ts
            if counts["end_time"] is None or ts > counts["end_time"]:
                counts["end_time"] = ts
        for message in entry.messages:
            self._count(message, entry)
        if self.state.get("offset", 0) - self._marked >= _BOOKMARK_BYTES:
            self._marked = self.state["offset"]
            self.bookmarks.append((self.state["id"] + 1, packed(self.state).decode()))

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
        prompt = message["role"] == "user"
        if prompt and message.get("agent") == "sidechain":
            return  # an agent's words to its inline sub-agent
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
            "group": self._group,
            "state": self.state,
        }


def _reason(error: Unreadable | FileNotFoundError) -> str:
    return error.reason if isinstance(error, Unreadable) else GONE


def stands(path: str) -> bool:
    """Whether something is at a path. What may not be looked at is: who reads it will hear why it cannot be read."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def stamp(path: str) -> tuple[int, int, int]:
    """(size, mtime in nanoseconds, inode) of a file; zeros when it is gone or cannot be reached."""
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (found.st_size, found.st_mtime_ns, found.st_ino)


def _ends(path: str, end: int) -> list[int] | None:
    """Checksums of the first and the last bytes before `end`, and `end` itself."""
    try:
        with open_regular(path, _END_BYTES) as file:
            head = file.read(min(end, _END_BYTES))
            file.seek(max(0, end - _END_BYTES))
            tail = file.read(min(end, _END_BYTES))
    except (OSError, Unreadable):
        return None
    return [end, zlib.crc32(head), zlib.crc32(tail)] if len(tail) == min(end, _END_BYTES) else None


def newest_first(sessions: Iterable[Reference], since: float = 0.0) -> list[Reference]:
    """A store's sessions updated at or after `since`, latest first; ties by id, and not in the directory's order.

    Where several have one id (of sub-agents they are short, and folders are copied by hand), only the first by its path
    keeps it; to the others' a number is added that stays the same. So `sessions` are all that there are.
    """
    found: dict[str, list[Reference]] = {}
    for session in sessions:
        found.setdefault(session.session_id, []).append(session)
    named = chain.from_iterable(alike if len(alike) == 1 else _told_apart(alike) for alike in found.values())
    recent = (session for session in named if session.updated >= since)
    return sorted(recent, key=lambda session: (-session.updated, session.session_id))


def _told_apart(alike: list[Reference]) -> Iterator[Reference]:
    first, *others = sorted(alike, key=lambda session: session.path)
    yield first
    for session in others:
        number = zlib.crc32(session.path.encode("utf-8", "surrogateescape"))
        yield session._replace(session_id=f"{session.session_id}@{number:08x}")
