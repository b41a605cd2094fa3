"""Records that stand twice: within one transcript, and in the copies that forks and old resumes made.

A fork has its origin's records with their own uuids and times. Claude Code 1.x resumed a session by copying it into a
new file under new uuids and times; only the ids of the model's responses and the texts are the same. Either way the
copies come first, and the file's own records after them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

from ..notices import Notices, Unreadable
from ..record import Record
from ..regular import BUFFER, open_regular
from ._claude_files import is_record
from ._jsonl import Lines
from .base import State

# Inside a text the quotes are escaped, so this is always a key.
_UUID = re.compile(rb'"uuid":\s?"([^"\\]{1,64})"')
_UUID_BYTES = 80  # at least as long as a match
_MARK_BYTES = 1 << 20
_SEARCHES = 32
_OWN = 8  # so many records of its own, and a fork's copies are over


def uuids(file: IO[bytes], start: int, end: int) -> Iterator[bytes]:
    """The uuids that stand in a file between two offsets, in order."""
    while start < end:
        file.seek(start)
        size = min(BUFFER, end - start)
        block = file.read(size + _UUID_BYTES)
        if not block:
            return
        for match in _UUID.finditer(block):
            if match.start() < size:
                yield match[1]
        start += size


class Repeats:
    """Whether a record stood earlier in the same file, by its uuid.

    `state["marks"]` holds two earlier places of the walk, each with the newest time met before it: a newer record can
    have stood only after that place, and a little reading tells. Where that does not help, or had to too often, all
    uuids before the record are gathered, once.
    """

    def __init__(self, path: str, state: State) -> None:
        self._path = path
        self._state = state
        state.setdefault("newest", "")
        state.setdefault("marks", [[0, ""]])
        self._file: IO[bytes] | None = None
        self._searches = 0
        self._gathered: set[int] = set()
        self._end = 0

    def stood_before(self, uuid: str, ts: str | None, offset: int) -> bool:
        """Whether a record with this uuid stands in the file before `offset`; to be asked of every record."""
        newest, marks = self._state["newest"], self._state["marks"]
        if offset - marks[-1][0] >= _MARK_BYTES:
            self._state["marks"] = [marks[-1], [offset, newest]]
        # A copy has the time of the original, so what is newer than all before it is none.
        if not offset or (ts is not None and ts > newest):
            return False
        try:
            self._file = self._file or open_regular(self._path)
            return self._find(uuid.encode(), ts, offset, self._file)
        except (OSError, Unreadable):
            return False

    def _find(self, uuid: bytes, ts: str | None, offset: int, file: IO[bytes]) -> bool:
        for place, newest in reversed(self._state["marks"]):
            if place and self._searches < _SEARCHES and ts is not None and ts > newest:
                self._searches += 1
                return uuid in uuids(file, place, offset)
        if offset > self._end:
            self._gathered.update(map(hash, uuids(file, self._end, offset)))
            self._end = offset
        return hash(uuid) in self._gathered

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()


class Copies:
    """Which of a session's records are copies of an older session's.

    `state["copied"]` is None where the copies are over (or there never were any), else `kind`, the `origins` as
    `[session id, path]`, oldest first, and how far the copies have come.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: list[Any] | None = None

    def holds(self, record: Record, about: Record) -> bool:
        """Whether this record is a copy, while there may be any.

        `about["forked_from"]` is then the oldest session that holds it.
        """
        copied = self._state["copied"]
        found = self._forked(record) if copied["kind"] == "fork" else self._resumed(record, copied["places"])
        if found is None:
            copied["own"] += 1
            if copied["kind"] == "resume" or copied["own"] >= _OWN:
                self._state["copied"] = self._known = None
            return False
        copied["own"] = 0
        about["forked_from"] = {"session_id": copied["origins"][found][0], "kind": copied["kind"]}
        return True

    def _forked(self, record: Record) -> int | None:
        if self._known is None:
            self._known = [_all_uuids(path) for _, path in self._state["copied"]["origins"]]
        uuid = record.get("uuid")
        own = hash(uuid.encode()) if isinstance(uuid, str) else None
        return next((place for place, known in enumerate(self._known) if own in known), None)

    def _resumed(self, record: Record, places: list[int]) -> int | None:
        if self._known is None:
            self._known = [_keys_of(path) for _, path in self._state["copied"]["origins"]]
        found = None
        key = _key(record)
        for number, known in enumerate(self._known):
            try:
                places[number] = known.index(key, places[number]) + 1
            except ValueError:
                continue
            found = number if found is None else found
        return found


def _all_uuids(path: str) -> set[int]:
    try:
        with open_regular(path) as file:
            return set(map(hash, uuids(file, 0, 1 << 62)))
    except (OSError, Unreadable):
        return set()


def _keys_of(path: str) -> list[str | None]:
    """What stays the same of each record of the main conversation when it is copied, in the order of the file."""
    try:
        records = [record for _, _, record in Lines(path, Notices(), is_record) if record is not None]
    except (FileNotFoundError, Unreadable):
        return []
    return [_key(record) for record in records if record.get("type") in ("user", "assistant")]


def _key(record: Record) -> str | None:
    held = record.get("message")
    if record.get("isSidechain") is True or not isinstance(held, dict):
        return None
    if record.get("type") == "assistant":
        return f"assistant {held.get('id')}"
    content = held.get("content")
    if isinstance(content, list):
        parts = [block.get("tool_use_id") or block.get("text") for block in content if isinstance(block, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return f"user {content}"
