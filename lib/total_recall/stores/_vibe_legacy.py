"""Vibe's session folders: `meta.json` and `messages.jsonl` (2.x), and the whole documents of 1.x.

A line is one message as the model's interface has it, without any time. What a person did not type is marked
`injected`; a compaction is one injected message that begins with a fixed sentence, at the beginning of a new folder
(up to 2.18) or marked `context_boundary` (2.26). Versions before 2.18 write no `injected` mark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import orjson

from ..notices import Notices, Unreadable
from ..record import Record, attachment, base64_size, message, tool_call
from ..regular import open_regular
from . import tools
from ._jsonl import Lines, buffer_for, objects, parse
from ._transcript import placed
from ._vibe_text import (
    FRAME,
    HARNESS,
    document,
    dumped,
    encodable,
    fields,
    is_command,
    string,
    summary_of,
    text_of,
    unmarked,
)
from .base import Entry, State

_PIECE = 1 << 13
_FAILED = ("<tool_error>", "<user_cancellation>")
_RETURNCODE = re.compile(r"\nreturncode: (-?\d{1,9})\s*\Z")


# -- files -----------------------------------------------------------------------------------------------------


def metadata(path: str) -> tuple[dict[str, Any], str | None]:
    """The object in a `meta.json` or a 1.x document, and the reason if one is there that cannot be read."""
    try:
        value = document(path)
    except FileNotFoundError:
        return {}, None
    except Unreadable as error:
        return {}, error.reason
    return (value, None) if isinstance(value, dict) else ({}, "not a JSON object")


def head(meta: str, messages: str) -> Record:
    """What a folder's `meta.json` and the first line of its messages say; `damage` is the reason when they do not."""
    known, damage = metadata(meta)
    first = fields(_first_message(messages))
    return described(known) | {
        "first": identity(first),
        "framed": _is_frame(first, first=True),
        "damage": damage,
    }


def document_head(path: str) -> Record:
    """The same of a 1.x document."""
    known, damage = metadata(path)
    return described(fields(known.get("metadata"))) | {"first": None, "framed": False, "damage": damage}


def described(meta: dict[str, Any]) -> Record:
    """The fields of a `meta.json` that a row shows."""
    config = fields(meta.get("config"))
    return {
        "session_id": string(meta.get("session_id")),
        "parent": string(meta.get("parent_session_id")),
        "start_time": meta.get("start_time"),
        "end_time": meta.get("end_time"),
        "title": string(meta.get("title")),
        "directory": string(fields(meta.get("environment")).get("working_directory")),
        "git_branch": string(meta.get("git_branch")),
        "model": string(config.get("active_model")) or string(config.get("model_name")),
        "archived": bool(meta.get("archived_at")),
    }


def _first_message(path: str) -> Any:
    """The first line of a file, parsed, read in small steps; None when there is none."""
    try:
        with open_regular(path, buffering=0) as source:
            pieces: list[bytes] = []
            while piece := source.read(_PIECE):
                pieces.append(piece.partition(b"\n")[0])
                if b"\n" in piece:
                    break
    except (OSError, Unreadable):
        return None
    line = b"".join(pieces)
    try:
        return orjson.loads(line)
    except ValueError:
        return parse(line.removeprefix(b"\xef\xbb\xbf"))


def identity(line: dict[str, Any]) -> str | None:
    """What tells a stored message from all others: its `message_id`, or the call that a tool's line answers."""
    return string(line.get("message_id")) or string(line.get("tool_call_id"))


def identities(path: str) -> list[list[Any]]:
    """[identity, offset of its end] of each message in a file, up to the first without one."""
    lines = Lines(path, Notices(), _known)
    found: list[list[Any]] = []
    for _, _, value in lines:
        name = identity(value) if value is not None else None
        if name is None:
            break
        found.append([name, lines.offset])
    return found


def _known(value: dict[str, Any]) -> bool:
    return isinstance(value.get("role"), str)


# -- messages --------------------------------------------------------------------------------------------------


def _is_frame(line: dict[str, Any], *, first: bool) -> bool:
    """Whether a message is a compaction's frame, in the place where the program writes one."""
    if line.get("role") != "user" or not text_of(line.get("content")).startswith(FRAME):
        return False
    return line.get("context_boundary") == "compaction" or (first and line.get("injected") is not False)


class Line(NamedTuple):
    """One stored message: its value (None if damaged), its text, and where it stands."""

    value: dict[str, Any] | None
    source: bytes | Callable[[], bytes]
    ref: Record
    end: int


class Folder:
    """The stored messages of one folder (or document) as entries of the session `session_id`.

    `copied` is the offset up to which they are copies of an older session's, `delegated` tells a sub-agent's.
    """

    def __init__(
        self, path: str, session_id: str, notices: Notices, *, delegated: bool = False, copied: float = 0
    ) -> None:
        self.path = path
        self._session_id = session_id
        self._notices = notices
        self._delegated = delegated
        self._copied = copied
        self._readers: dict[str, Callable[[dict[str, Any], State, Record], list[Record]]] = {
            "user": self._user,
            "assistant": self._assistant,
            "tool": self._tool,
        }

    def entries(self, state: State, *, whole: bool = False) -> Iterator[tuple[dict[str, Any] | None, Entry]]:
        """Each stored message with its entry, from where `state` stands.

        `state`: `id`, `offset`, `lines` and `count` (of lines and of messages passed), `pieces` (see `placed`), `calls`
        (name and class of the calls without an answer), `begun` (whether anything but a frame was said).
        """
        for key, value in (("id", 0), ("offset", 0), ("lines", 0), ("count", 0), ("begun", False)):
            state.setdefault(key, value)
        state.setdefault("calls", {})
        lines = self._documents(state) if self.path.endswith(".json") else self._lines(state, whole)
        for line in lines:
            yield line.value, self.entry(line, state)

    def _lines(self, state: State, whole: bool) -> Iterator[Line]:
        lines = Lines(self.path, self._notices, _known, offset=state["offset"], number=state["lines"], whole=whole)
        for start, _, text, value in placed(lines, state):
            ref = {"path": self.path, "offset": start, "length": lines.offset - start}
            if state["pieces"] > 1:
                ref["piece"] = state["pieces"] - 1
            yield Line(value, text, ref, lines.offset)

    def _documents(self, state: State) -> Iterator[Line]:
        """The messages of a 1.x document; `offset` counts them."""
        stored = fields(document(self.path)).get("messages")
        if not isinstance(stored, list):
            raise Unreadable(self.path, "no list of messages in it")
        for index in range(state["offset"], len(stored)):
            value = stored[index] if isinstance(stored[index], dict) else None
            ref = {"path": self.path, "entry": index}
            state["offset"] = index + 1
            yield Line(value, partial(dumped, stored[index]), ref, index + 1)

    def entry_at(self, ref: Record) -> Entry | None:
        """The entry of the message that `ref` points at; its record is numbered 1."""
        if "entry" in ref:
            lines = self._documents({"offset": ref["entry"]})
            line = next(lines, None)
        else:
            line = self._line_at(ref)
        if line is None or line.value is None:
            return None
        first = ref.get("offset", ref.get("entry")) == 0
        return self.entry(line, {"id": 0, "count": 0, "begun": not first, "calls": {}})

    def _line_at(self, ref: Record) -> Line | None:
        with open_regular(self.path, buffer_for(ref["length"])) as source:
            source.seek(ref["offset"])
            text = source.read(ref["length"]).strip()
        try:
            value = orjson.loads(text)
        except ValueError:
            found = (piece for _, piece in objects(text) if _known(piece))
            value = parse(text) or next(islice(found, ref.get("piece", 0), None), None)
        return Line(value if isinstance(value, dict) else None, text, ref, ref["offset"] + ref["length"])

    def entry(self, line: Line, state: State) -> Entry:
        """The entry of one stored message; `state` is moved past it."""
        value = line.value
        if value is None:
            return Entry(line.source)
        read = self._readers.get(text_of(value.get("role")))
        if read is None:
            return Entry(line.source)
        state["id"] += 1
        state["count"] += 1
        common = {"ref": line.ref, "replayed": line.end <= self._copied or None}
        return Entry(line.source, None, read(value, state, common))

    def _user(self, line: dict[str, Any], state: State, common: Record) -> list[Record]:
        text = text_of(line.get("content"))
        number = state["id"]
        if _is_frame(line, first=not state["begun"]):
            known: Record = {"authorship": "injected", "kind": "compaction"} | common
            return [message(HARNESS, self._session_id, number, "system", None, summary_of(text), **known)]
        author, kind = self._authorship(line, text)
        state["begun"] = state["begun"] or author != "injected"
        text = "\n".join(filter(None, [text, *_images(line.get("images"))]))
        return [message(HARNESS, self._session_id, number, "user", None, text, authorship=author, kind=kind, **common)]

    def _authorship(self, line: dict[str, Any], text: str) -> tuple[str, str | None]:
        """Who wrote a text in the user role, and its class where that does not follow."""
        mark = line.get("injected")
        if isinstance(line.get("manual_shell"), dict) or (mark is not False and is_command(text)):
            return "injected", "command"
        if mark is None:
            injected = unmarked(text)
        else:
            injected = mark is not False
        return ("injected" if injected else "delegated" if self._delegated else "human"), None

    def _assistant(self, line: dict[str, Any], state: State, common: Record) -> list[Record]:
        state["begun"] = True
        content = text_of(line.get("content"))
        calls = []
        kind = None
        for call in calls_of(line):
            arguments = call.arguments
            own = tools.call_class(HARNESS, call.name, arguments)
            if call.id:
                state["calls"][call.id] = [call.name, own == "self"]
            if not content:
                kind = own if kind is None or own == "self" else kind
            calls.append(tool_call(call.id, call.name, arguments))
        record = message(
            HARNESS,
            self._session_id,
            state["id"],
            "assistant",
            None,
            content,
            authorship="model",
            thinking=text_of(line.get("reasoning_content")) or None,
            tool_calls=calls,
            kind=kind,
            **common,
        )
        return [record]

    def _tool(self, line: dict[str, Any], state: State, common: Record) -> list[Record]:
        state["begun"] = True
        call_id = string(line.get("tool_call_id"))
        called, own = state["calls"].pop(call_id, (None, False))
        name = string(line.get("name")) or called
        text = text_of(line.get("content"))
        result = fields(line.get("tool_result"))
        kind = tools.kind_of(HARNESS, name) if name else None
        record = message(
            HARNESS,
            self._session_id,
            state["id"],
            "tool",
            None,
            text,
            authorship="tool",
            tool_call_id=call_id,
            tool_name=name,
            is_error=_failed(text, result, kind),
            kind=tools.result_class(HARNESS, name, own),
            **common,
            tool_result=encodable(result.get("output")) if kind in ("todo", "question") else None,
        )
        return [record]


class Call(NamedTuple):
    """A call of a tool as it is stored; its arguments are a text until they are asked for."""

    id: str | None
    name: str
    stored: Any

    @property
    def arguments(self) -> Any:
        """The JSON value that the model sent, or its text where that is none."""
        if isinstance(self.stored, str):
            try:
                return encodable(orjson.loads(self.stored))
            except ValueError:
                pass
        return encodable(self.stored)


def calls_of(line: dict[str, Any]) -> list[Call]:
    """The calls that a message of the model makes."""
    stored = line.get("tool_calls")
    return [_call(fields(call)) for call in stored] if isinstance(stored, list) else []


def _call(call: dict[str, Any]) -> Call:
    function = fields(call.get("function"))
    return Call(string(call.get("id")), text_of(function.get("name")), function.get("arguments"))


def _failed(text: str, result: dict[str, Any], kind: str | None) -> bool:
    code = fields(result.get("output")).get("returncode")
    if code is None and kind == "shell" and (found := _RETURNCODE.search(text)):
        code = int(found[1])
    return text.startswith(_FAILED) or result.get("cancelled") is True or (isinstance(code, int) and code != 0)


def _images(images: Any) -> list[str]:
    """Markers for the images of a message: `{source: {kind, path or data}, mime_type}`, or the older flat form."""
    markers = []
    for image in images if isinstance(images, list) else []:
        data = fields(fields(image).get("source")).get("data", fields(image).get("data"))
        size = base64_size(data) if isinstance(data, str) else None
        markers.append(attachment("image", string(fields(image).get("mime_type")), size))
    return markers


def folder_files(path: str) -> tuple[str, str]:
    """The two files of a session's folder, in reading order."""
    return os.path.join(path, "messages.jsonl"), os.path.join(path, "meta.json")
