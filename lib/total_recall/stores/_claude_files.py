"""Finding Claude Code's transcripts, and what their first records say.

    <root>/<project>/<session id>.jsonl                                 a session
    <root>/<project>/<session id>/subagents/[...]agent-<id>.jsonl       what it spawned, from 2.1
    <root>/<project>/agent-<id>.jsonl                                   the same in 2.0, told by the first record
    <root>/<session id>.jsonl                                           a folder of transcripts named as the root

`<project>` is the working directory with everything but ASCII letters and digits as `-`: it cannot be read back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record
from ..regular import open_regular
from ..times import rfc3339
from ._jsonl import Lines, parse
from .base import Reference, newest_first

SUFFIX = ".jsonl"
_DEPTH = 8  # folders below the root
_HEAD_BYTES = 1 << 20
_NEAR_BYTES = 1 << 18
_NO_TRANSCRIPTS = frozenset(("tool-results", "memory"))


def transcripts(
    root: str, since: float, notices: Notices, harness: str, spawner: Callable[[Reference], str | None]
) -> list[Reference]:
    """Every session below `root` written at or after `since`, the latest first; no file is opened.

    A session found in two folders is one: the longer file is read, the other's path is among its names. Ids of
    sub-agents are short, only those of one session are sure to be the same: `spawner` is asked who spawned one, where
    several of one id lie beside sessions. Raises Unreadable when `root` cannot be listed.
    """
    found: dict[tuple[str | None, str], list[Reference]] = {}
    beside: dict[str, list[Reference]] = {}
    files: set[tuple[int, int]] = set()
    for entry, parent in _walk(root, notices):
        try:
            facts = entry.stat()
        except OSError:
            continue
        if facts.st_ino and (facts.st_dev, facts.st_ino) in files:
            continue
        files.add((facts.st_dev, facts.st_ino))
        stem = entry.name.removesuffix(SUFFIX)
        session = Reference(
            harness, stem, entry.path, max(facts.st_mtime, 0.0), facts.st_size, (entry.path,), key=parent
        )
        if parent is None and stem.startswith("agent-"):
            beside.setdefault(stem, []).append(session)
        else:
            found.setdefault((parent, stem), []).append(session)
    for stem, alike in beside.items():
        for session in alike:
            owner = spawner(session) if len(alike) > 1 else None
            found.setdefault((owner or os.path.dirname(session.path), stem), []).append(session)
    sessions = (_one(copies) for copies in found.values())
    return newest_first(sessions, since)


def _one(copies: list[Reference]) -> Reference:
    if len(copies) == 1:
        return copies[0]
    copies.sort(key=lambda session: (-session.size, session.path))
    longest = copies[0]
    return longest._replace(
        updated=max(session.updated for session in copies), names=tuple(session.path for session in copies[1:])
    )


def _walk(root: str, notices: Notices) -> Iterator[tuple[os.DirEntry[str], str | None]]:
    """Each transcript with the id of the session in whose folder of sub-agents it lies.

    Links to folders are followed once, after what lies in the folders themselves.
    """
    folders: list[tuple[str, int, str | None, bool]] = [(root, 0, None, False)]
    linked: list[tuple[str, int, str | None, bool]] = []
    followed = set()
    while folders or linked:
        if folders:
            path, depth, parent, agents = folders.pop()
        else:
            path, depth, parent, agents = linked.pop()
            real = os.path.realpath(path)
            if real in followed:
                continue
            followed.add(real)
        try:
            with os.scandir(path) as listing:
                entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            if depth == 0:
                raise Unreadable(path, error) from error
            if not isinstance(error, FileNotFoundError):
                notices.fail(path, Unreadable(path, error))
            continue
        for entry in entries:
            if entry.name.endswith(SUFFIX) and _is(entry.is_file):
                if entry.name != SUFFIX and (not agents or entry.name.startswith("agent-")):
                    yield entry, parent
            elif depth < _DEPTH and entry.name not in _NO_TRANSCRIPTS and _is(entry.is_dir):
                below = (entry.path, depth + 1, parent, agents)
                if entry.name == "subagents" and depth:
                    below = (entry.path, depth + 1, os.path.basename(path), True)
                (linked if entry.is_symlink() else folders).append(below)


def _is(test: Any) -> bool:
    try:
        return bool(test())
    except OSError:
        return False


def is_record(record: Record) -> bool:
    """Whether an object found on a damaged line is a record, and not a piece of one."""
    return isinstance(record.get("type"), str) and any(
        key in record for key in ("uuid", "sessionId", "leafUuid", "messageId")
    )


def head(path: str) -> Record:
    """What a transcript's first records say.

    `session_id` and `version` of the first record of the conversation, `root` (the uuid of the first without a
    parent, which is the same in a fork), `began` (the first time that any record has), and `response` (the id of the
    model's first response; of 1.x only, where nothing else tells a copy).
    """
    found: Record = {"session_id": None, "version": None, "root": None, "began": None, "response": None}
    lines = Lines(path, Notices(), is_record)
    try:
        for start, _, record in lines:
            if record is None:
                continue
            found["began"] = found["began"] or rfc3339(record.get("timestamp"))
            if isinstance(record.get("uuid"), str):
                _add(found, record)
            old = (found["version"] or "").startswith(("0.", "1."))
            if found["root"] and (found["response"] or not old):
                break
            if found["version"] is not None and start > _HEAD_BYTES:
                break
    except (Unreadable, FileNotFoundError):
        pass
    return found


def _add(found: Record, record: Record) -> None:
    if found["version"] is None:
        found["version"] = _text(record.get("version"))
        found["session_id"] = _text(record.get("sessionId")) or None
    if found["root"] is None and record.get("parentUuid") is None:
        found["root"] = record["uuid"]
    message = record.get("message")
    if found["response"] is None and record.get("type") == "assistant" and isinstance(message, dict):
        found["response"] = _text(message.get("id")) or None


def call_after(path: str, offset: int, call: str) -> tuple[str, Any] | None:
    """Name and arguments of a tool call that was written a little after its result, as some versions of 2.1 do."""
    try:
        with open_regular(path) as file:
            file.seek(offset)
            near = file.read(_NEAR_BYTES)
    except (OSError, Unreadable):
        return None
    place = near.find(b'"id":"%b"' % call.encode())
    if place < 0:
        return None
    for line in near[near.rfind(b"\n", 0, place) + 1 :].split(b"\n", 1)[:1]:
        record = parse(line)
        message = record.get("message") if isinstance(record, dict) else None
        blocks = message.get("content") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and block.get("id") == call and isinstance(block.get("name"), str):
                return block["name"], block.get("input")
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
