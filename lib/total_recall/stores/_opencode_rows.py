"""What OpenCode stores, whichever way: sessions, messages and parts, as the database and the JSON tree both give them.

A message is a prompt or one step of the model; its content is in its parts. Their JSON is the same in both layouts,
but for the ids, which the database keeps in columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import orjson

from ..record import Record
from ..times import epoch, rfc3339
from ._jsonl import parse

# Where a walk stands: the message's time and id, and the id of the last part passed ("" none yet, END all).
Position = tuple[Any, str, str]
END = "~"

# How many record ids a part of each type takes; a tool's second one is its result's, whether it is there yet or not.
WIDTHS = {"text": 1, "reasoning": 1, "file": 1, "compaction": 1, "subtask": 1, "tool": 2}


def json_object(raw: bytes) -> dict[str, Any] | None:
    """The JSON object of a row or file, None where nothing can be made of it."""
    try:
        value = orjson.loads(raw)
    except ValueError:
        value = parse(raw)
    return value if isinstance(value, dict) else None


def mapping(value: Any) -> dict[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def string(value: Any) -> str | None:
    """`value` if it is a text that says something, else None."""
    return value if isinstance(value, str) and value else None


class Session(NamedTuple):
    """One session's own row or file; times are seconds since 1970, zero when unknown.

    `file` is its place in the JSON tree, None in the database. `revert` is the message, and perhaps the part, from
    which on a staged revert hides everything; only `Source.session` fills it in.
    """

    id: str
    parent: str | None = None
    directory: str | None = None
    title: str | None = None
    created: float = 0.0
    updated: float = 0.0
    archived: bool = False
    model: str | None = None
    file: str | None = None
    revert: tuple[str, str | None] | None = None


def seconds(value: Any) -> float:
    """A stored time in seconds since 1970; zero for what is no time."""
    return max(epoch(value) or 0.0, 0.0)


def model_name(model: dict[str, Any]) -> str | None:
    """`provider/model` of a session's or message's model, in either of the spellings that are in use."""
    name = string(model.get("modelID")) or string(model.get("id"))
    provider = string(model.get("providerID"))
    return f"{provider}/{name}" if name and provider else name


def reverted(value: Any) -> tuple[str, str | None] | None:
    """Message and part of a session's staged revert."""
    revert = mapping(value)
    message = string(revert.get("messageID"))
    return (message, string(revert.get("partID"))) if message else None


class Message:
    """One message, with what its parts take from it.

    `at` is its place in time, as stored; `fields` are those of its JSON, none when it is damaged. `error` says why it
    failed. `growing` is whether the model may still be at work on it, as far as the store tells: it stays so when the
    program was killed.
    """

    __slots__ = ("at", "damaged", "error", "fields", "growing", "id", "raw", "ref", "role", "ts")

    def __init__(self, id: str, at: Any, raw: bytes, ref: Record, fields: dict[str, Any] | None = None) -> None:
        found = json_object(raw) if fields is None else fields
        self.id = id
        self.at = at
        self.raw = raw
        self.ref = ref
        self.damaged = found is None
        self.fields = fields = found or {}
        time = mapping(fields.get("time"))
        self.role = fields.get("role")
        self.ts = rfc3339(time.get("created")) or rfc3339(at)
        self.error = fields.get("error")
        self.growing = self.role == "assistant" and self.error is None and not time.get("completed")

    @property
    def agent(self) -> str | None:
        """Which of its agents the program had the model be."""
        return string(self.fields.get("agent")) or string(self.fields.get("mode"))

    @property
    def model(self) -> str | None:
        """The model that made this step."""
        return model_name(self.fields)

    @property
    def parent(self) -> str | None:
        """The prompt that a step of the model belongs to."""
        return string(self.fields.get("parentID"))

    @property
    def summarises(self) -> bool:
        """Whether it is the model's answer to a compaction."""
        return self.role == "assistant" and self.fields.get("summary") is True

    @property
    def summary_done(self) -> bool:
        """Whether it is a compaction's summary that was finished."""
        return self.summarises and self.error is None and bool(self.fields.get("finish"))

    def usage(self) -> Record | None:
        """Its tokens, None when none were counted."""
        tokens = mapping(self.fields.get("tokens"))
        cache = mapping(tokens.get("cache"))
        usage = {
            "input": tokens.get("input"),
            "output": tokens.get("output"),
            "cache_read": cache.get("read"),
            "cache_write": cache.get("write"),
            "reasoning": tokens.get("reasoning"),
        }
        for key, count in usage.items():
            if not isinstance(count, (int, float)):
                usage[key] = 0
        return usage if any(usage.values()) else None


def place(at: Any, id: str) -> tuple[Any, ...]:
    """A place in the order of messages that can be compared with any other, as SQLite compares the columns."""
    number = isinstance(at, (int, float))
    return (0 if number else 1, at if number else str(at), id)


class Part(NamedTuple):
    """One part of a message, as a row of the database has it.

    `takes` is how many ids it takes, None when it is damaged. Its JSON is `raw`, None if that was not asked for;
    where what is stored is not `raw`, `length` is how many bytes that has. `own_ref` is what names a part that is no
    row of the table `part`. `owner` is the number of its message's row, while parts of several are read together.
    """

    owner: int | None
    id: str
    takes: int | None
    raw: bytes | None
    length: int | None = None
    own_ref: Record | None = None

    @property
    def width(self) -> int:
        """How many ids it takes."""
        return self.takes or 0

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.length or len(self.raw or b"")

    @property
    def damaged(self) -> bool:
        """Whether nothing can be made of it."""
        return self.takes is None

    @property
    def ref(self) -> Record:
        """What a record's `ref` says to find it again."""
        return {"table": "part", "id": self.id} if self.own_ref is None else self.own_ref


class Batch(NamedTuple):
    """Parts of one message, in order, read together; `last` when no more of them were there."""

    message: Message
    parts: list[Part]
    last: bool


class Source(Protocol):
    """One of the two layouts. All of it may raise Unreadable."""

    path: str

    def sessions(self, since: float, directory: str, known: frozenset[str]) -> list[Session]:
        """The sessions updated at or after `since` whose directory is none or contains `directory`, in no order.

        Those in `known` are left out unread.
        """

    def session(self, session_id: str) -> Session | None:
        """One session as it is now; None when it is gone."""

    def batches(self, session_id: str, after: Position | None, *, bodies: bool = True) -> Iterator[Batch]:
        """The session's messages with their parts, after a position. Nothing is held open between two of them.

        A message without parts gives one empty batch. Without `bodies` the JSON of tool and file parts is left out
        where the message can no longer change, which is enough for counting.
        """

    def messages(self, session_id: str, at: Any, id: str, *, backwards: bool = False) -> Iterator[Message]:
        """The session's messages after, or before, a place in the order; `at` None is the beginning, or the end."""

    def message(self, session_id: str, message_id: str) -> Message | None:
        """One message of the session."""

    def parts(self, message_id: str) -> list[Part]:
        """All parts of a message."""

    def part(self, ref: Record) -> tuple[Message, Part | None] | None:
        """The message, and the part of it, that a record's `ref` names."""

    def is_newer(self, session_id: str) -> bool:
        """Whether its messages are rows with all their content, which have no parts of their own."""

    def ids_before(self, session_id: str, position: Position) -> int:
        """How many record ids are taken up to and including a position."""

    def parts_before(self, session_id: str, position: Position) -> int:
        """How many parts there are up to and including a position; cheaper than their ids."""

    def order(self, session_id: str) -> list[tuple[Any, str]]:
        """The session's messages as (time, id), in order; no payload is read where the store can tell."""

    def first(self, session_id: str) -> tuple[Any, str] | None:
        """The first of its messages as (time, id)."""

    def heads(self, directory: str) -> dict[str, Any]:
        """The time of the first message, for each session of a directory that has one."""

    def signature(self, session_id: str) -> tuple[Any, ...]:
        """What changes whenever the session does."""
