"""What Vibe's two layouts share: texts in whatever JSON type, the program's own envelopes, small documents."""

from __future__ import annotations

import json
from typing import Any

import orjson

from ..notices import Unreadable
from ..record import attachment, base64_size
from ..regular import open_regular
from ._jsonl import parse

HARNESS = "vibe"

FRAME = "You are continuing a trajectory after a context compaction."
FRAME_END = "</previous_user_messages>"
SCRATCHPAD = "Scratchpad directory: "
_COMMAND = "Manual `!` command result from the user. Use this as context only."

# How the program's own messages begin where the record has no mark of its own.
_ENVELOPES = (FRAME, _COMMAND, "<vibe_warning>", "Runtime notification:\n")


def text_of(value: Any) -> str:
    """The text of a `content`, whatever its JSON type: a string, a list of parts, or anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(_part(part) for part in value)
    return dumped(value).decode()


def _part(part: Any) -> str:
    if isinstance(part, dict) and part.get("type") in ("image", "image_url"):
        return attachment("image", string(part.get("mime_type")), None)
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else dumped(part).decode()


def dumped(value: Any) -> bytes:
    """A stored value as one line of JSON, though it may be nested deeper than the fast encoder goes."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except RecursionError:
        return b'"[nested too deeply]"'


def encodable(value: Any) -> Any:
    """`value`, or its text where it is nested too deeply to be a part of a record."""
    try:
        orjson.dumps(value)
    except TypeError:
        return dumped(value).decode()
    return value


def string(value: Any) -> str | None:
    """`value` if it is a string that says something."""
    return value if isinstance(value, str) and value.strip() else None


def fields(value: Any) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def summary_of(text: str) -> str:
    """The summary inside a compaction's frame; the whole text where it holds none."""
    start = text.find("<compaction_summary>", max(text.find(FRAME_END), 0))
    if start < 0:
        return text
    end = text.rfind("</compaction_summary>")
    return text[start + len("<compaction_summary>") : end if end > start else None].strip("\n")


def unmarked(text: str) -> bool:
    """Whether a user's text without any mark is one that the program wrote."""
    return text.startswith(_ENVELOPES)


def is_command(text: str) -> bool:
    """Whether an injected text is the result of a `!command`."""
    return text.startswith(_COMMAND)


def content_of(content: Any) -> str:
    """The text of a message's content blocks, other blocks as markers."""
    if not isinstance(content, list):
        return text_of(content)
    return "\n".join(_block(fields(block)) for block in content)


def _block(block: dict[str, Any]) -> str:
    if isinstance(block.get("text"), str) and block.get("type") == "text":
        return block["text"]
    uri, blob = block.get("uri"), block.get("blob")
    size = block.get("size") if isinstance(block.get("size"), int) else None
    if isinstance(uri, str) and uri.startswith("data:"):
        size = base64_size(uri.partition(",")[2])
    elif isinstance(blob, str):
        size = base64_size(blob)
    elif isinstance(block.get("text"), str):
        size = len(block["text"].encode())
    kind = "image" if block.get("type") == "image" else "file"
    return attachment(kind, string(block.get("mediaType")), size)


def document(path: str) -> Any:
    """The JSON value of a small file. Raises Unreadable, and FileNotFoundError when it is gone."""
    with open_regular(path) as source:
        try:
            text = source.read()
        except OSError as error:
            raise Unreadable(path, error) from error
    try:
        return orjson.loads(text)
    except ValueError:
        value = parse(text.removeprefix(b"\xef\xbb\xbf"))
        if value is None:
            raise Unreadable(path, "not JSON") from None
        return value
