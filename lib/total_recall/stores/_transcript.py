"""Transcripts: stores that keep one file of JSON Lines a session, each line a record that stands for itself.

What their adapters share: the walk and its state, the places of records, and the tool calls that wait for results. An
adapter adds where its files are and a Reader, which makes message records of stored ones. Older versions of some of
these programs wrote one JSON document a session; it is read as if each item of its list were a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar

import orjson

from ..notices import Notices, Unreadable
from ..record import Record, encoded, message, tool_call
from ..regular import open_regular
from ..times import rfc3339
from ._earlier import Earlier
from ._jsonl import Lines, buffer_for, parse
from .base import Entry, Reference, State, Store
from .tools import is_own, result_class

_OPEN_CALLS = 256  # calls of killed turns never get their result


class Reader:
    """Makes message records of a session's stored records, in the order of the file.

    Its whole memory is `state`, a JSON value, so that a walk can be taken up behind any record. `read` may set `group`,
    `slice` and `type`, which are the entry's (see base.Entry), and change `ts`, the record's time. `key` names the key
    that holds a record's id.
    """

    key: ClassVar[str] = "id"

    def __init__(self, session: Reference, state: State) -> None:
        state.setdefault("id", 0)
        state.setdefault("pieces", 0)
        state.setdefault("newest", "")
        state.setdefault("last", None)
        self.session = session
        self.state = state
        self.about: Record = state.setdefault("about", {})
        self.calls: dict[str, list[Any]] = state.setdefault("calls", {})
        self._document = _is_document(session.files[0])
        self._earlier = Earlier(session.files[0], self.key)
        self.group: str | None = None
        self.slice: int | None = None
        self.type: str | None = None
        self.ts: str | None = None
        self.ref: Record = {}
        self._part = 0

    def read(self, record: Record) -> list[Record]:
        """The message records that a stored record holds, often none."""
        raise NotImplementedError

    def close(self) -> None:
        """The walk is over, or left."""
        self._earlier.close()

    def entry(self, start: int, length: int, line: bytes, record: Record | None) -> Entry:
        """The entry of a line at offset `start`; `record` is None where nothing could be made of it."""
        if record is None:
            return Entry(line)
        self.ref = {"path": self.session.files[0], "offset": start, "length": length}
        if self.state["pieces"] > 1:
            self.ref["piece"] = self.state["pieces"] - 1
        self._part = 0
        self.group = self.slice = self.type = None
        self.ts = rfc3339(record.get("timestamp"))
        messages = self.read(record)
        return Entry(line, self.ts, messages, type=self.type, group=self.group, slice=self.slice)

    def repeated(self, id: Any) -> bool:
        """Whether the line with this id stood before: it counts once, at its first place."""
        if self._document or not isinstance(id, str) or not id:
            return False
        state, ts = self.state, self.ts
        if id == state["last"]:
            return True
        if ts is not None and ts > state["newest"]:
            state["newest"] = ts  # a copy has its original's time
        elif self.stood_before(id):
            return True
        state["last"] = id
        return False

    def stood_before(self, id: str) -> bool:
        """Whether a line with this id stands in the file before this one; a document has each only once."""
        offset: int = self.ref["offset"]
        return offset > 0 and not self._document and self._earlier.holds(id, offset)

    # -- message records ---------------------------------------------------------------------------------------

    def say(self, role: str, content: str = "", *, authorship: str, part: int | None = None, **known: Any) -> Record:
        """A message record; `part` is its place among those of the stored record, the next one if left out."""
        self.state["id"] += 1
        part = self._part if part is None else part
        self._part = part + 1
        known.setdefault("ts", self.ts)
        return message(
            self.session.harness,
            self.session.session_id,
            self.state["id"],
            role,
            content=content,
            authorship=authorship,
            ref=self.ref | {"part": part} if part else self.ref,
            **known,
        )

    def injected(self, content: str, **known: Any) -> Record:
        """Something in the user's role that nobody typed."""
        return self.say("user", content, authorship="injected", **known)

    def answer(self, content: str, calls: list[Record], thinking: str | None, **known: Any) -> Record:
        """What the model said; `calls` as `called` makes them."""
        kind = "self" if calls and not content and all(self._is_own(call) for call in calls) else None
        return self.say(
            "assistant", content, authorship="model", tool_calls=calls, thinking=thinking, kind=kind, **known
        )

    def called(self, id: Any, name: Any, arguments: Any) -> Record:
        """A tool call, which from now on waits for its result."""
        id, name = string(id), string(name) or ""
        if id:
            self.calls[id] = [name, is_own(self.session.harness, name, arguments)]
            if len(self.calls) > _OPEN_CALLS:
                del self.calls[next(iter(self.calls))]
        return tool_call(id, name, arguments)

    def _is_own(self, call: Record) -> bool:
        return is_own(self.session.harness, call["name"], call["arguments"])

    def result(self, id: Any, content: str, failed: bool, name: Any = None, **known: Any) -> Record:
        """A tool's result; `name` is asked for only where the call is not known."""
        id = string(id)
        called, own = self.calls.pop(id, (None, False)) if id else (None, False)
        name = called or string(name)
        return self.say(
            "tool",
            content,
            authorship="tool",
            tool_call_id=id,
            tool_name=name,
            is_error=failed,
            kind=result_class(self.session.harness, name, own),
            **known,
        )


class Document:
    """The items of a session that is one JSON document, in the manner of `Lines`: offsets are places in the list.

    `unpack` makes the list out of the document's value, or gives None when it is no session.
    """

    def __init__(self, path: str, unpack: Callable[[Record], list[Any] | None], *, offset: int = 0) -> None:
        self._path = path
        self._unpack = unpack
        self.offset = offset

    def __iter__(self) -> Iterator[tuple[int, bytes, Record | None]]:
        with open_regular(self._path) as file:
            try:
                text = file.read()
            except OSError as error:
                raise Unreadable(self._path, error) from error
        value = loaded(text.removeprefix(b"\xef\xbb\xbf"))
        items = self._unpack(value) if isinstance(value, dict) else None
        if items is None:
            raise Unreadable(self._path, "not a session document, or cut")
        for item in items[self.offset :]:
            start = self.offset
            self.offset = start + 1
            yield start, encoded(item), item if isinstance(item, dict) else None


class Transcripts(Store):
    """A store of transcripts; `reader` is the class of its Reader."""

    reader: ClassVar[type[Reader]]

    @staticmethod
    def is_record(record: Record) -> bool:
        """Whether an object found on a damaged line is a record of this harness, and not a piece of one."""
        raise NotImplementedError

    @staticmethod
    def unpack(value: Record) -> list[Any] | None:
        """The records of a session that is one document."""
        return None

    def entries(self, session: Reference, state: State, *, whole: bool = False) -> Iterator[Entry]:
        """One entry a line, or a record recovered from a damaged one."""
        reader = self.reader(session, state)
        path = session.files[0]
        offset, number = state.setdefault("offset", 0), state.setdefault("lines", 0)
        try:
            if _is_document(path):
                for start, line, record in (document := Document(path, self.unpack, offset=offset)):
                    state["offset"] = document.offset
                    yield reader.entry(start, len(line), line, record)
            else:
                lines = Lines(path, self.notices, self.is_record, offset=offset, number=number, whole=whole)
                for start, length, line, record in placed(lines, state):
                    yield reader.entry(start, length, line, record)
        finally:
            reader.close()

    def entry_at(self, session: Reference, ref: Record) -> Entry | None:
        """The entry of the record, with the one message that `ref` means; `ref["id"]`, where given, is its id.

        What only the records before it tell (a result's tool, copies) is not known.
        """
        path, part, piece = ref.get("path"), ref.get("part", 0), ref.get("piece", 0)
        if path != session.files[0]:
            return None
        reader = self.reader(session, {"id": ref.get("id", 1) - 1 - part, "pieces": piece + 1, "ref": ref})
        source: Lines | Document = (
            Document(path, self.unpack, offset=ref["offset"])
            if _is_document(path)
            else Lines(path, Notices(), self.is_record, offset=ref["offset"], buffer=buffer_for(ref["length"]))
        )
        try:
            for start, line, record in islice(source, piece, piece + 1):
                if start != ref["offset"]:
                    break
                entry = reader.entry(start, ref["length"], line, record)
                entry.messages = [m for m in entry.messages if m["ref"].get("part", 0) == part]
                for found in entry.messages:
                    found["id"] = ref.get("id", found["id"])
                return entry if entry.messages else None
        except (FileNotFoundError, Unreadable):
            pass
        finally:
            reader.close()
        return None

    def fingerprint(self, session: Reference, state: State) -> list[int] | None:
        """A document is written anew each time: nothing tells that its beginning is unchanged."""
        return None if _is_document(session.files[0]) else super().fingerprint(session, state)

    def text_files(self, session: Reference) -> tuple[str, ...]:
        """Every letter is written as it is."""
        return session.files


def placed(lines: Lines, state: State) -> Iterator[tuple[int, int, bytes, Record | None]]:
    """(offset, length, line, record) of each line, with `state` saying how to go on behind it.

    A damaged line may give several records; they share its offset and length, and `state["pieces"]` counts them.
    """
    begun, passed = lines.offset, state.setdefault("pieces", 0)
    for start, line, record in lines:
        if passed and start == begun:
            passed -= 1
            continue
        passed = 0
        length = len(line)
        if 0 <= lines.offset - start - length <= 2:
            state["pieces"], state["offset"], state["lines"] = 0, lines.offset, lines.number
        else:
            length = lines.offset - start
            state["pieces"] = state["pieces"] + 1 if start == state["offset"] else 1
            state["offset"], state["lines"] = start, lines.number - 1
        yield start, length, line, record
    state["pieces"], state["offset"], state["lines"] = 0, lines.offset, lines.number


def _is_document(path: str) -> bool:
    return path.endswith(".json")


# -- values of any JSON type -----------------------------------------------------------------------------------


def loaded(text: bytes) -> Any:
    """The JSON value of a text, however it was written; None for what is none."""
    try:
        return orjson.loads(text)
    except ValueError:
        return parse(text)


def mapping(value: Any) -> dict[str, Any]:
    """An object; empty where something else stands."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """A list; empty where something else stands."""
    return value if isinstance(value, list) else []


def string(value: Any) -> str | None:
    """A text that says something, or None."""
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int:
    """A number of tokens; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 53 else 0
