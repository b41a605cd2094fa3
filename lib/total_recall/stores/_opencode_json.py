"""OpenCode's JSON tree (up to 1.1), which later versions left where it was: a file a session, message and part.

They are `storage/session/<project>/<session>.json`, `storage/message/<session>/<message>.json` and
`storage/part/<message>/<part>.json`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record
from ..regular import open_regular
from ._opencode_rows import (
    END,
    WIDTHS,
    Batch,
    Message,
    Part,
    Position,
    Session,
    json_object,
    mapping,
    model_name,
    place,
    reverted,
    seconds,
    string,
)
from .base import stamp

_LIGHT = frozenset(("tool", "file"))


class Tree:
    """The tree as a source of sessions (see `Source`); `path` is its `storage` folder."""

    def __init__(self, path: str, notices: Notices) -> None:
        self.path = path
        self._notices = notices
        self._files: dict[str, str] = {}
        self._order: tuple[str, list[tuple[Any, str]]] = ("", [])

    def _scan(self) -> dict[str, str]:
        """Every session's id and file; the same id under two projects counts once."""
        self._files = {}
        for project in _listed(os.path.join(self.path, "session")):
            folder = os.path.join(self.path, "session", project)
            try:
                names = _listed(folder) if os.path.isdir(folder) else []
            except Unreadable as error:
                self._notices.fail(folder, error)  # the other projects are there
                continue
            for name in names:
                if name.endswith(".json"):
                    self._files.setdefault(name[:-5], os.path.join(folder, name))
        return self._files

    def sessions(self, since: float, directory: str, known: frozenset[str]) -> list[Session]:
        found = []
        for id, file in self._scan().items():
            if id in known:
                continue
            session = self._session(id, file)
            if session is not None and session.updated >= since and directory in (session.directory or directory):
                found.append(session)
        return found

    def session(self, session_id: str) -> Session | None:
        file = self._files.get(session_id) or self._scan().get(session_id)
        return self._session(session_id, file) if file else None

    def _session(self, id: str, file: str) -> Session | None:
        try:
            value = json_object(self._content(file))
        except FileNotFoundError:
            return None
        if value is None:
            self._notices.say(f"{file}: damaged; its session is known by the file's name")
            return Session(id, updated=max(stamp(file)[1] / 1e9, 0.0), file=file)
        time = mapping(value.get("time"))
        return Session(
            id=id,
            parent=string(value.get("parentID")),
            directory=string(value.get("directory")),
            title=string(value.get("title")),
            created=seconds(time.get("created")),
            updated=seconds(time.get("updated")),
            archived=bool(time.get("archived")),
            model=model_name(mapping(value.get("model"))),
            file=file,
            revert=reverted(value.get("revert")),
        )

    def batches(self, session_id: str, after: Position | None, *, bodies: bool = True) -> Iterator[Batch]:
        for at, id in self.order(session_id):
            if after is not None and (place(at, id) < place(*after[:2]) or (id == after[1] and after[2] == END)):
                continue
            message = self._message(session_id, id, at)
            if message is None:
                continue
            start = after[2] if after is not None and id == after[1] else ""
            light = not bodies and not message.growing
            yield from self._batch(message, start, light)

    def _batch(self, message: Message, start: str, light: bool) -> Iterator[Batch]:
        """One batch a part, so that one large part at a time is in memory."""
        names = [name for name in self._part_names(message.id) if name > start]
        for name in names:
            part = self._part(message.id, name, light)
            yield Batch(message, [part] if part else [], name == names[-1])
        if not names:
            yield Batch(message, [], True)

    def messages(self, session_id: str, at: Any, id: str, *, backwards: bool = False) -> Iterator[Message]:
        order = self.order(session_id)
        for time, name in reversed(order) if backwards else order:
            if at is not None and (
                place(time, name) >= place(at, id) if backwards else place(time, name) <= place(at, id)
            ):
                continue
            message = self._message(session_id, name, time)
            if message is not None:
                yield message

    def message(self, session_id: str, message_id: str) -> Message | None:
        return self._message(session_id, message_id)

    def parts(self, message_id: str) -> list[Part]:
        found = (self._part(message_id, name, False) for name in self._part_names(message_id))
        return [part for part in found if part is not None]

    def part(self, ref: Record) -> tuple[Message, Part | None] | None:
        folder, file = os.path.split(str(ref.get("path")))
        kind, owner = os.path.split(folder)
        name = file.removesuffix(".json")
        if kind == os.path.join(self.path, "message"):
            message, part = self._message(owner, name), None
        else:
            part = self._part(owner, name, False)
            session_id = string(mapping(json_object(part.raw or b"")).get("sessionID")) if part else None
            message = self._message(session_id, owner) if session_id else None
        return None if message is None else (message, part)

    def is_newer(self, session_id: str) -> bool:
        return False

    def ids_before(self, session_id: str, position: Position) -> int:
        return sum(
            sum(part.width for part in parts) + (last and message.error is not None)
            for message, parts, last in self._until(session_id, position)
        )

    def parts_before(self, session_id: str, position: Position) -> int:
        return sum(len(parts) for _, parts, _ in self._until(session_id, position))

    def _until(self, session_id: str, position: Position) -> Iterator[Batch]:
        """The batches up to and including a position."""
        for message, parts, last in self.batches(session_id, None, bodies=False):
            here, there = place(message.at, message.id), place(*position[:2])
            if here > there:
                return
            if here == there:
                parts = [part for part in parts if part.id <= position[2]]
                last = last and position[2] == END
            yield Batch(message, parts, last)

    def order(self, session_id: str) -> list[tuple[Any, str]]:
        """(time, id) of the session's messages, in order; each file is opened once for it."""
        names = self._message_names(session_id)
        if self._order[0] != session_id or sorted(id for _, id in self._order[1]) != names:
            found = (self._message(session_id, name) for name in names)
            order = sorted((place(message.at, message.id), message.at) for message in found if message is not None)
            self._order = (session_id, [(at, key[2]) for key, at in order])
        return self._order[1]

    def first(self, session_id: str) -> tuple[Any, str] | None:
        return next(iter(self.order(session_id)), None)

    def heads(self, directory: str) -> dict[str, Any]:
        found = {}
        for id in self._scan():
            session = self.session(id)
            if session is not None and session.directory == directory:
                names = self._message_names(id)
                # The ids sort by time, but for one moment every two years: a look at the first file is enough here.
                first = self._message(id, names[0]) if names else None
                if first is not None:
                    found[id] = first.at
        return found

    def signature(self, session_id: str) -> tuple[Any, ...]:
        names = self._message_names(session_id)
        marks: list[Any] = [len(names), *stamp(self._files.get(session_id, ""))]
        if names:
            marks += stamp(os.path.join(self.path, "message", session_id, names[-1] + ".json"))
            folder = os.path.join(self.path, "part", names[-1])
            marks += sorted(stamp(os.path.join(folder, name + ".json")) for name in self._part_names(names[-1]))
        return tuple(marks)

    def _message(self, session_id: str, id: str, at: Any = None) -> Message | None:
        if not _is_name(session_id) or not _is_name(id):
            return None
        file = os.path.join(self.path, "message", session_id, id + ".json")
        try:
            message = Message(id, at, self._content(file), {"path": file})
        except FileNotFoundError:
            return None
        if at is None:
            created = mapping(message.fields.get("time")).get("created")
            message.at = created if isinstance(created, (int, float)) else 0
        return message

    def _part(self, message_id: str, id: str, light: bool) -> Part | None:
        file = os.path.join(self.path, "part", message_id, id + ".json")
        try:
            raw = self._content(file)
        except FileNotFoundError:
            return None
        value = json_object(raw)
        kind = str(mapping(value).get("type"))
        body = None if light and kind in _LIGHT else raw
        takes = None if value is None else WIDTHS.get(kind, 0)
        return Part(None, id, takes, body, len(raw), {"path": file})

    def _content(self, file: str) -> bytes:
        """What a file holds; nothing, and a notice, when it cannot be read."""
        try:
            with open_regular(file) as handle:
                return handle.read()
        except FileNotFoundError:
            raise
        except (Unreadable, OSError) as error:
            self._notices.say(str(error))
            return b""

    def _message_names(self, session_id: str) -> list[str]:
        return _json_names(os.path.join(self.path, "message", session_id))

    def _part_names(self, message_id: str) -> list[str]:
        return _json_names(os.path.join(self.path, "part", message_id)) if _is_name(message_id) else []


def _json_names(folder: str) -> list[str]:
    return sorted(name[:-5] for name in _listed(folder) if name.endswith(".json"))


def _listed(folder: str) -> list[str]:
    """The names in a folder, in a fixed order; none when it is not there."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Unreadable(folder, error) from error


def _is_name(id: str) -> bool:
    """Whether an id, which may come from a damaged file, can be a file's name and nothing more."""
    return id not in ("", ".", "..") and not {"/", os.sep, "\0"} & set(id)
