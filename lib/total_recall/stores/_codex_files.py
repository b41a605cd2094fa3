"""Codex's session files: finding them, grouping them into threads, and what their first lines say.

`sessions/YYYY/MM/DD/rollout-<local time>-<thread id>.jsonl` (older: flat) and `archived_sessions/rollout-....jsonl`;
`.jsonl.zst` when Codex compressed them; `rollout-<time>-<thread id>_<segment id>.jsonl` when a rewound thread goes on
in a file of its own. The TypeScript CLI of 2025 wrote one JSON document a session,
`rollout-<date>-<id>.json` with `{"session": {"id", "timestamp", "instructions"}, "items": [...]}`.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from io import BufferedReader
from typing import Any, NamedTuple, cast

import orjson

from ..notices import Notices, Unreadable
from ..record import Record, encoded
from ..regular import open_regular
from ._codex_items import about_thread, mapping
from ._jsonl import open_session, parse
from .base import Memory, Reference

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_IDS = re.compile(rf"({_UUID})(?:_({_UUID}))?$")
_KINDS = (".jsonl", ".jsonl.zst", ".json")  # of two copies in one folder the first of these is read
_PIECE = 1 << 14
_DEEPEST = 16


class Rollout(NamedTuple):
    """One session file, as its name and a stat describe it; `thread` and `segment` are the ids in its name."""

    path: str
    stem: str
    thread: str
    segment: str
    kind: int
    archived: bool
    size: int
    mtime: float
    inode: int


def rollout_id(path: str) -> str | None:
    """What other rollouts call a file in their `history_base`: its segment's id, else its thread's."""
    ids = _IDS.search(os.path.basename(path).partition(".")[0])
    return ids and (ids[2] or ids[1])


def rollouts(root: str, archive: str, notices: Notices) -> list[Rollout]:
    """Every session file below the two folders. Raises Unreadable when `root` is there and cannot be listed."""
    found = []
    for folder in (root, archive):
        for path, known in _regular_files(folder, notices, required=folder == root):
            name = os.path.basename(path)
            stem, dot, extension = name.partition(".")
            if name.startswith("rollout-") and dot + extension in _KINDS:
                ids = _IDS.search(stem)
                thread, segment = (ids[1], ids[2] or "") if ids else ("", "")
                kind, archived = _KINDS.index(dot + extension), folder == archive
                found.append(
                    Rollout(
                        path,
                        stem,
                        thread,
                        segment,
                        kind,
                        archived,
                        known.st_size,
                        max(known.st_mtime, 0.0),
                        known.st_ino,
                    )
                )
    return found


def _regular_files(folder: str, notices: Notices, *, required: bool) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files at any depth; a folder that several symlinks lead to is entered once."""
    waiting, entered = [(folder, 0)], set()
    while waiting:
        here, depth = waiting.pop()
        try:
            known = os.stat(here)
            if (known.st_dev, known.st_ino) in entered:
                continue
            entered.add((known.st_dev, known.st_ino))
            with os.scandir(here) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            unreadable = Unreadable(here, error)
            if required and here == folder:
                raise unreadable from error
            notices.fail(here, unreadable)
            continue
        for entry in entries:
            try:
                if entry.is_dir():
                    if depth < _DEEPEST:
                        waiting.append((entry.path, depth + 1))
                elif stat.S_ISREG((known := entry.stat()).st_mode):
                    yield entry.path, known
            except OSError:
                continue  # gone meanwhile, or a link that leads nowhere


class Heads:
    """What the first lines of the rollouts say (see `about_thread`), read once for each file and then remembered."""

    def __init__(self, root: str, remember: Memory) -> None:
        self._root = root
        self._remember = remember
        self._known: dict[str, list[Any]] = {}

    def of(self, found: list[Rollout]) -> dict[str, Record]:
        """The heads of these files by path; only files that are new here, or were replaced, are opened."""
        stamps = "\n".join(f"{rollout.path}\t{rollout.inode}\t{rollout.size}" for rollout in found)
        signature = (len(found), zlib.crc32(stamps.encode("utf-8", "surrogateescape")))

        def read(previous: Any) -> dict[str, list[Any]]:
            known = {**previous[1], **self._known} if previous else self._known
            return {rollout.path: self._read(rollout, known.get(rollout.path)) for rollout in found}

        self._known = self._remember("heads", self._root, signature, read)
        return {path: kept[2] for path, kept in self._known.items()}

    def _read(self, rollout: Rollout, kept: list[Any] | None) -> list[Any]:
        if kept is not None and kept[0] == rollout.inode and kept[2] and kept[1] <= rollout.size:
            return [rollout.inode, rollout.size, kept[2]]
        return [rollout.inode, rollout.size, head(rollout.path)]


def head(path: str) -> Record:
    """What the first line of a session file says about its thread; empty when it is damaged or cannot be read."""
    try:
        if path.endswith(".json"):
            return about_thread(document(path)[0])
        value = mapping(_loads(_first_line(path)))
    except (OSError, Unreadable):
        return {}
    if value.get("type") == "session_meta":
        return about_thread(mapping(value.get("payload")))
    return about_thread(value) if is_bare_meta(value) else {}


def _first_line(path: str) -> bytes:
    pieces: list[bytes] = []
    with cast(BufferedReader, open_session(path, _PIECE)) as source:
        while piece := source.read1(_PIECE):
            pieces.append(piece)
            if b"\n" in piece:
                break
    return b"".join(pieces).partition(b"\n")[0]


def _loads(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return parse(text.removeprefix(b"\xef\xbb\xbf"))


def is_bare_meta(value: Record) -> bool:
    """Whether a line is the first one of a file without envelopes."""
    return "type" not in value and "id" in value and "timestamp" in value


def document(path: str) -> tuple[Record, list[Any]]:
    """(session, items) of a session that is one JSON document. Raises Unreadable, FileNotFoundError."""
    with open_regular(path) as source:
        whole = _loads(source.read())
    if not isinstance(whole, dict) or not isinstance(whole.get("items"), list):
        raise Unreadable(path, "not a session document")
    return mapping(whole.get("session")), whole["items"]


class Document:
    """The items of a session document, in the manner of `Lines`: offsets and numbers are places in the list."""

    def __init__(self, path: str, *, offset: int = 0) -> None:
        self._path = path
        self.offset = offset
        self.number = offset

    def __iter__(self) -> Iterator[tuple[int, bytes, Record | None]]:
        session, items = document(self._path)
        for value in [session, *items][self.offset :]:
            start = self.offset
            self.offset = self.number = start + 1
            yield start, encoded(value), value if isinstance(value, dict) else None


def threads(harness: str, found: Iterable[Rollout], heads: dict[str, Record]) -> list[Reference]:
    """One reference for each thread, with its segments in the order in which they were begun.

    The id is that of the first session_meta; the name's id resolves to it too, and stands in for a damaged one. Of
    several copies the live one is read, then the plain one, then the longest.
    """
    groups: dict[str, dict[str, list[Rollout]]] = {}
    names: dict[str, dict[str, None]] = {}
    for rollout in found:
        thread = heads.get(rollout.path, {}).get("id") or rollout.thread or rollout.stem
        groups.setdefault(thread, {}).setdefault(rollout.segment, []).append(rollout)
        names.setdefault(thread, {}).update({name: None for name in (rollout.thread, rollout.segment) if name})
    sessions = []
    for thread, segments in groups.items():
        files = [min(copies, key=_preference) for _, copies in sorted(segments.items())]
        sessions.append(
            Reference(
                harness,
                thread,
                files[0].path,
                max(rollout.mtime for rollout in files),
                sum(rollout.size for rollout in files),
                tuple(rollout.path for rollout in files),
                tuple(sorted(name for name in names[thread] if name != thread)),
            )
        )
    return sessions


def _preference(rollout: Rollout) -> tuple[bool, int, int, str]:
    return rollout.archived, rollout.kind, -rollout.size, rollout.path
