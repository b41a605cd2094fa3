"""OpenCode's message parts as records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from ..record import Record, attachment, base64_size, encoded, message, one_line, tool_call
from ..times import rfc3339
from . import _opencode_v2 as v2
from ._opencode_rows import WIDTHS, Message, Part, json_object, mapping, string
from .base import Entry
from .tools import call_class, kind_of, result_class

HARNESS = "opencode"

# All that the program writes, as a synthetic text, into the prompt that stands for a person's own `!` command.
_OWN_COMMAND = "The following tool was executed by the user"


class Summary(NamedTuple):
    """What a successful compaction left: the message that holds the summary, and its text."""

    message: Message
    text: str


class StandIn(NamedTuple):
    """One record that counts as all those of a step's parts do, if they have any; their ids and their bytes."""

    made: list[Record]
    ids: int
    size: int


class Several(Entry):
    """The parts of a message, as one entry that is only good for counting."""

    __slots__ = ("stored",)

    def __init__(self, stored: int, ts: str | None, messages: list[Record], group: str) -> None:
        super().__init__(b"", ts, messages, None, group)
        self.stored = stored


class Context:
    """What the records of one message share, and what they need to know of the messages around it."""

    __slots__ = (
        "branch",
        "by",
        "child",
        "command",
        "message",
        "replayed",
        "session_id",
        "summary",
        "told",
        "usage",
    )

    def __init__(self, session_id: str, message: Message, *, child: bool) -> None:
        self.session_id = session_id
        self.message = message
        self.child = child
        self.usage = message.usage() if message.role == "assistant" else None
        self.by = (message.model, message.agent) if message.role == "assistant" else (None, None)
        self.command = False  # the prompt of this step was a person's `!` command
        self.summary: Summary | None = None  # of the compaction that this message asked for
        self.told = False  # this is a summary whose text is in the record of its compaction
        self.replayed: bool | None = None
        self.branch: str | None = None

    def record(self, number: int, role: str, ts: str | None, ref: Record, content: str = "", **known: Any) -> Record:
        """A record of this message; the first one carries the message's tokens."""
        if self.replayed or self.branch:
            known = {"replayed": self.replayed, "branch": self.branch, **known}
        if role == "assistant":
            known["model"], known["agent"] = self.by
            known["usage"], self.usage = self.usage, None
        return message(HARNESS, self.session_id, number, role, ts, content, ref=ref, **known)


def records(part: Part, value: dict[str, Any], context: Context, number: int, *, settled: bool = False) -> list[Record]:
    """The records of a part, numbered from `number`; `value` is its JSON.

    With `settled`, what may still change in place is left out.
    """
    if part.raw is None:
        return [_unread(part, context, number)]
    ref = part.ref
    if ref.get("table") == v2.TABLE:
        return _newer(value, context, number, ref, settled)
    make = _MAKERS.get(str(value.get("type")))
    return make(value, context, number, ref, settled)[: part.width] if make else []


def failure(error: Any, context: Context, number: int, ref: Record) -> Record:
    """The record of a message that failed: the error as the program names it, and what the provider said."""
    what = mapping(error)
    data = mapping(what.get("data"))
    said = string(data.get("message")) or string(what.get("message"))
    name = string(what.get("name")) or string(what.get("type"))
    content = ": ".join(word for word in (name, said) if word) or text_of(error)
    ts = rfc3339(mapping(context.message.fields.get("time")).get("completed")) or context.message.ts
    return context.record(number, "system", ts, ref, content, authorship="injected", is_error=True)


def line(part: Part, message: Message) -> bytes:
    """The part as one line of JSON: its id, its message's and the role, then what is stored, as it is stored."""
    raw = part.raw or b""
    head: Record = {"id": part.id, "message_id": message.id, "role": message.role}
    try:
        value, sound = orjson.loads(raw), True
    except ValueError:
        value, sound = json_object(raw), False
    if not isinstance(value, dict):
        return encoded({**head, "data": raw.decode("utf-8", "replace")})
    if sound and raw.startswith(b'{"') and b"\n" not in raw and not head.keys() & value.keys():
        return encoded(head)[:-1] + b"," + raw[1:]
    return encoded(head | {key: item for key, item in value.items() if key not in ("messageID", *head)})


def message_line(message: Message) -> bytes:
    """A message's own JSON as one line, its id put first."""
    if message.damaged:
        return encoded({"id": message.id, "data": message.raw.decode("utf-8", "replace")})
    return encoded({"id": message.id, **message.fields})


def text_of(value: Any) -> str:
    """A field as text: a string as it is, nothing for nothing, anything else as its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else encoded(value).decode()


def prompt_text(value: dict[str, Any] | None) -> str | None:
    """The text of a part that somebody typed; None if it is no such part."""
    if value is None or value.get("type") != "text" or _marked(value):
        return None
    return text_of(value.get("text"))


def is_own_command(value: dict[str, Any] | None) -> bool:
    """Whether a part is the prompt that stands for a person's own `!` command."""
    return value is not None and bool(value.get("synthetic")) and value.get("text") == _OWN_COMMAND


def _marked(part: dict[str, Any]) -> bool:
    """Whether the program, not a person, wrote a text. A mark of an unknown kind counts as one."""
    return part.get("synthetic") not in (None, False) or part.get("ignored") not in (None, False)


def _time(holder: dict[str, Any], key: str, context: Context) -> str | None:
    return rfc3339(mapping(holder.get("time")).get(key)) or context.message.ts


def _text(part: dict[str, Any], context: Context, number: int, ref: Record, settled: bool) -> list[Record]:
    content = text_of(part.get("text"))
    if not content or context.told:
        return []
    role = context.message.role
    if role == "user":
        authorship = "injected" if _marked(part) else "delegated" if context.child else "human"
        kind = "command" if is_own_command(part) else None
        return [context.record(number, "user", context.message.ts, ref, content, authorship=authorship, kind=kind)]
    ts = _time(part, "start", context)
    if role != "assistant" or context.message.summarises:
        return [context.record(number, "system", ts, ref, content, authorship="injected")]
    authorship = "injected" if _marked(part) else "model"
    return [context.record(number, "assistant", ts, ref, content, authorship=authorship)]


def _reasoning(part: dict[str, Any], context: Context, number: int, ref: Record, settled: bool) -> list[Record]:
    thinking = text_of(part.get("text"))
    if not thinking:
        return []
    ts = _time(part, "start", context)
    return [context.record(number, "assistant", ts, ref, authorship="model", thinking=thinking)]


def _file(part: dict[str, Any], context: Context, number: int, ref: Record, settled: bool) -> list[Record]:
    return [_attached(_marker(part), context, number, ref)]


def _attached(marker: str, context: Context, number: int, ref: Record) -> Record:
    if context.message.role == "user":
        author = "delegated" if context.child else "human"
        return context.record(number, "user", context.message.ts, ref, marker, authorship=author)
    if context.message.role == "assistant":
        return context.record(number, "assistant", context.message.ts, ref, marker, authorship="model")
    return context.record(number, "system", context.message.ts, ref, marker, authorship="injected")


def _marker(file: dict[str, Any]) -> str:
    """What stands for an image or file in a text; a file is known by its name."""
    media_type = string(file.get("mime"))
    url = string(file.get("url")) or ""
    head, _, data = url.partition(",")
    size = None
    if url.startswith("data:"):
        size = base64_size(data) if head.endswith(";base64") else len(data)
    if (media_type or "").startswith("image/"):
        return attachment("image", media_type, size)
    name = one_line(string(file.get("filename")) or "")
    return attachment(f"file {name}" if name else "file", media_type, size)


def _compaction(part: dict[str, Any], context: Context, number: int, ref: Record, settled: bool) -> list[Record]:
    if context.summary is None:
        return []
    known = {"usage": context.summary.message.usage(), "trigger": "auto" if part.get("auto") is True else "manual"}
    content = context.summary.text
    record = context.record(
        number, "system", context.message.ts, ref, content, authorship="injected", kind="compaction", **known
    )
    return [record]


def _subtask(part: dict[str, Any], context: Context, number: int, ref: Record, settled: bool) -> list[Record]:
    """A slash command that a sub-agent carries out: what it was told is the command's text, not the person's."""
    content = text_of(part.get("prompt")) or text_of(part.get("description"))
    if not content:
        return []
    return [context.record(number, "user", context.message.ts, ref, content, authorship="injected", kind="command")]


def _tool(part: dict[str, Any], context: Context, number: int, ref: Record, settled: bool) -> list[Record]:
    state = mapping(part.get("state"))
    status = state.get("status")
    if status == "pending" and settled and context.message.growing:
        return []
    name, call_id, arguments = text_of(part.get("tool")), string(part.get("callID")), state.get("input")
    kind = "command" if context.command else call_class(HARNESS, name, arguments)
    author = "human" if context.command else "model"
    calls = [tool_call(call_id, name, arguments)]
    ts = _time(state, "start", context)
    call = context.record(number, "assistant", ts, ref, authorship=author, tool_calls=calls, kind=kind)
    if status not in ("completed", "error") and state.get("output") is None and state.get("error") is None:
        return [call]
    metadata = mapping(state.get("metadata"))
    purpose = kind_of(HARNESS, name)
    result = context.record(
        number + 1,
        "tool",
        _time(state, "end", context),
        ref,
        _output(state),
        authorship="tool",
        tool_call_id=call_id,
        tool_name=name,
        is_error=_failed(name, purpose, state, metadata),
        kind="command" if context.command else result_class(HARNESS, name, kind == "self"),
        tool_result=metadata.get(_ANSWERS[purpose]) if purpose in _ANSWERS else None,
    )
    return [call, result]


# Where a question's and a todo list's tool keep what they returned, as the value it was before it became a text.
_ANSWERS = {"question": "answers", "todo": "todos"}


def _output(state: dict[str, Any]) -> str:
    texts = [text_of(state.get("output")), text_of(state.get("error"))]
    attachments = state.get("attachments")
    if isinstance(attachments, list):
        texts += [_marker(file) for file in attachments if isinstance(file, dict)]
    return "\n".join(text for text in texts if text)


def _failed(name: str, purpose: str | None, state: dict[str, Any], metadata: dict[str, Any]) -> bool | None:
    """Whether a call failed; None for a command whose exit status was not kept.

    A command that returned a status other than 0 is stored as completed, and so is one that was aborted (status
    null), and a call that could not be made at all (the tool `invalid`).
    """
    if state.get("status") == "error" or state.get("error") is not None:
        return True
    if purpose == "shell":
        return metadata["exit"] != 0 if "exit" in metadata else None
    return name == "invalid"


def _newer(row: dict[str, Any], context: Context, number: int, ref: Record, settled: bool) -> list[Record]:
    """The records of a row in the newer form, which is a whole message."""
    context.command = row.get("type") == "shell"
    if summary := string(row.get("summary")):
        context.summary = Summary(context.message, summary)
    made = list[Record]()
    for item in v2.parts(row):
        made += _MAKERS[item["type"]](item, context, number, ref, settled)
        number += WIDTHS[item["type"]]
    if row.get("error") is not None:
        made.append(failure(row["error"], context, number, ref))
    return made


def _unread(part: Part, context: Context, number: int) -> Record:
    """The stand-in for a tool's or a file's part whose JSON was not asked for, good for counting."""
    if part.width == 1:
        return _attached("[file]", context, number, part.ref)
    calls = [_UNREAD_CALL]
    author = "human" if context.command else "model"
    return context.record(number, "assistant", context.message.ts, part.ref, authorship=author, tool_calls=calls)


def stand_in(parts: list[Part], step: Message, session_id: str, number: int) -> StandIn | None:
    """What is counted for a step whose parts were read without bodies; None where each part has to be looked at."""
    ids, size, tools, said, thought = 0, 0, 0, "", False
    for _, _, takes, raw, length, _ in parts:
        if takes is None:
            return None
        ids += takes
        size += length or len(raw or b"")
        if raw is None:
            tools += takes == 2
            said = said if takes == 2 else "[file]"
        elif takes:
            value = json_object(raw)
            if value is None or value.get("type") not in ("text", "reasoning") or _marked(value):
                return None
            if text := text_of(value.get("text")):
                thought = True
                said = text if value["type"] == "text" else said
    made = list[Record]()
    if tools or thought or said:
        calls = [_UNREAD_CALL] * tools
        made = [message(HARNESS, session_id, number, "assistant", step.ts, said, authorship="model", tool_calls=calls)]
    return StandIn(made, ids, size)


_UNREAD_CALL = tool_call(None, "", None)
_Maker = Callable[[dict[str, Any], Context, int, Record, bool], list[Record]]
_MAKERS: dict[str, _Maker] = {
    "text": _text,
    "reasoning": _reasoning,
    "file": _file,
    "compaction": _compaction,
    "subtask": _subtask,
    "tool": _tool,
}
