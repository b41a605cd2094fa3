"""The normalised records: the one place that knows their field names and the order of their keys.

Every record is a plain dict, so that printing one is a single call of the JSON encoder; the functions here
build it with all documented keys in the documented order (see total-recall-records(5)).
"""

from __future__ import annotations

import re
from typing import Any

import orjson

Record = dict[str, Any]
_SURROGATE = re.compile("[\ud800-\udfff]")

ROLES = ("user", "assistant", "tool", "system")
AUTHORSHIPS = ("human", "delegated", "injected", "model", "tool")
CLASSES = (
    "human-text",
    "delegated-text",
    "injected-text",
    "model-text",
    "reasoning",
    "tool-input",
    "tool-output",
    "file-read",
    "web-fetch",
    "skill",
    "command",
    "compaction",
    "self",
)
RAW_TYPES = ("user", "assistant", "tool", "thinking")

# A text in the user role is classed by who wrote it.
_TEXT_CLASS = {"human": "human-text", "delegated": "delegated-text", "injected": "injected-text", "model": "model-text"}


def message(
    harness: str,
    session_id: str,
    number: int,
    role: str,
    ts: str | None,
    content: str = "",
    *,
    authorship: str,
    thinking: str | None = None,
    tool_calls: list[Record] | None = None,
    tool_call_id: str | None = None,
    tool_name: str | None = None,
    is_error: bool | None = None,
    kind: str | None = None,
    ref: Record | None = None,
    **extras: Any,
) -> Record:
    """One message record.

    `number` becomes `id`, the 1-based place in the session's stream. `kind` is the class; left out, it follows
    from the texts: that of the content, else of the calls, else `reasoning`. `is_error` is for tool results.
    `extras` are the optional keys (replayed, branch, model, agent, usage, trigger, tokens_before); those that are
    None are left out.
    """
    if kind is None:
        if content or not (tool_calls or thinking):
            kind = _TEXT_CLASS.get(authorship, "tool-output")
        else:
            kind = "tool-input" if tool_calls else "reasoning"
    record = {
        "harness": harness,
        "session_id": session_id,
        "id": number,
        "role": role,
        "ts": ts,
        "content": content,
        "thinking": thinking,
        "tool_calls": tool_calls or [],
        "tool_call_id": tool_call_id,
        "tool_name": tool_name,
        "is_error": is_error,
        "injected": role == "user" and authorship == "injected",
        "authorship": authorship,
        "class": kind,
    }
    if extras:
        record.update({key: value for key, value in extras.items() if value is not None})
    if ref is not None:
        record["ref"] = ref
    return record


def tool_call(call_id: str | None, name: str, arguments: Any) -> Record:
    """One entry of a message's `tool_calls`; `arguments` is the JSON value that the model sent, or its text."""
    return {"id": call_id, "name": name, "arguments": shallow(arguments)}


def shallow(value: Any) -> Any:
    """A JSON value; its text, where it is nested so deeply that walking over it is not sure to end well."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if any(isinstance(member, (dict, list)) for member in members):
        try:
            orjson.dumps(value)
        except TypeError:
            return encoded(value).decode()
    return value


def packed(value: Any) -> bytes:
    """A value as JSON for ourselves: the name of a file that is no UTF-8 stays what it is."""
    try:
        return orjson.dumps(value)
    except TypeError:
        import json

        return json.dumps(value).encode()


def unpacked(text: bytes | str) -> Any:
    """What was `packed`. Raises ValueError for anything else."""
    try:
        return orjson.loads(text)
    except ValueError:
        import json

        return json.loads(text)


def encoded(value: Any) -> bytes:
    """A record, or any JSON value, as compact JSON without a line end; lone surrogates become U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _encoded_slowly(value)


def scrubbed(text: str) -> str:
    """`text` with every lone surrogate replaced by U+FFFD, so that it can be encoded: as it is printed."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _encoded_slowly(value: Any) -> bytes:
    import json
    import sys

    # orjson reads JSON that is nested four times as deeply as what it writes.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    finally:
        sys.setrecursionlimit(limit)
    return scrubbed(text).encode()


def one_line(text: str, width: int = 80) -> str:
    """A title: the first line that says something, control characters as spaces, at most `width` characters."""
    for line in text.split("\n"):
        line = "".join(c if c.isprintable() else " " for c in line).strip()
        if line:
            return line if len(line) <= width else line[: width - 1].rstrip() + "…"
    return ""


def title_of(stored: str | None, first_prompt: str | None) -> str | None:
    """A session's title: what its harness stored, else how its first prompt begins; blanks are none."""
    return one_line(stored or "", 1000) or one_line(first_prompt or "") or None


def attachment(kind: str, media_type: str | None, size: int | None) -> str:
    """The marker that stands for an image or a file in a text, like `[image image/png 48123 bytes]`."""
    words = [kind]
    if media_type:
        words.append(media_type)
    if size is not None:
        words.append(f"{size} bytes")
    return f"[{' '.join(words)}]"


def base64_size(data: str) -> int:
    """How many bytes a base64 text stands for, without decoding it."""
    return len(data) * 3 // 4 - data.count("=", -2)


def session_row(harness: str, session_id: str, path: str, **known: Any) -> Record:
    """One session row; what is not `known` is null, zero or false, and the optional keys are left out."""
    row: Record = {
        "harness": harness,
        "session_id": session_id,
        "title": None,
        "directory": None,
        "start_time": None,
        "end_time": None,
        "file_size": 0,
        "line_count": 0,
        "user_count": 0,
        "assistant_count": 0,
        "tool_count": 0,
        "has_compaction": False,
        "parent_session_id": None,
        "child_sessions": [],
        "child_session_count": 0,
        "has_tantivy_index": False,
        "aliases": [],
        "alias_count": 0,
        "path": path,
    }
    for key in row:
        if known.get(key) is not None:
            row[key] = known[key]
    for key in _ROW_EXTRAS:
        if known.get(key):
            row[key] = known[key]
    return row


_ROW_EXTRAS = (
    "git_branch",
    "model",
    "archived",
    "empty",
    "origin",
    "forked_from",
    "clock",
    "summary_cache",
    "notice",
    "read_error",
)
