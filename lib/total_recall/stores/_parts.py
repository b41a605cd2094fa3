"""The contents of the Gemini API, which Gemini CLI and Qwen Code store as they are: a text, a part, or parts."""

from __future__ import annotations

from typing import Any

from ..record import Record, attachment, base64_size, encoded
from ._transcript import count, mapping, sequence, string

Part = dict[str, Any]


def parts_of(content: Any) -> list[Part]:
    """Content as parts, whatever stands there."""
    if isinstance(content, dict) and "parts" in content:
        content = content["parts"]
    items = content if isinstance(content, list) else [content]
    return [item if isinstance(item, dict) else {"text": item} for item in items if isinstance(item, (dict, str))]


def text_of(parts: list[Part]) -> str:
    """The texts of parts, a line end between two, with markers for images and files; thoughts and calls left out."""
    return "\n".join(said for part in parts if not part.get("thought") and (said := _said(part)) is not None)


def thinking_of(parts: list[Part]) -> str:
    """The texts of the parts that are thoughts."""
    return "\n".join(said for part in parts if part.get("thought") and (said := string(part.get("text"))))


def calls_of(parts: list[Part]) -> list[Record]:
    """The function calls among parts: `id`, `name`, `args`."""
    return [call for part in parts if (call := mapping(part.get("functionCall")))]


def responses_of(parts: list[Part]) -> list[Record]:
    """The function responses among parts: `id`, `name`, `response`."""
    return [response for part in parts if (response := mapping(part.get("functionResponse")))]


def outcome(response: Record) -> tuple[str, bool]:
    """What a function response says, and whether that is an error."""
    given = response.get("response")
    held = mapping(given)
    failed = held.get("error") is not None
    said = held.get("error") if failed else held.get("output", held.get("content"))
    if said is None:
        said = given
    text = said if isinstance(said, str) else "" if said is None else encoded(said).decode()
    media = text_of([part for part in map(mapping, sequence(response.get("parts"))) if "text" not in part])
    return "\n".join(filter(None, (text, media))), failed


def usage(prompt: Any, output: Any, cached: Any, thoughts: Any, total: Any) -> Record | None:
    """What a response used, in the words of a record; None where nothing is said.

    `input` leaves out what was read from the cache; `output` includes the thoughts, which the service counts apart.
    """
    prompt, output, cached, thoughts, total = map(count, (prompt, output, cached, thoughts, total))
    if not prompt + output + cached + thoughts:
        return None
    if thoughts and total >= prompt + output + thoughts:
        output += thoughts
    return {
        "input": max(prompt - cached, 0),
        "output": output,
        "cache_read": cached,
        "cache_write": 0,
        "reasoning": thoughts,
    }


def _said(part: Part) -> str | None:
    if isinstance(text := part.get("text"), str):
        return text
    if data := mapping(part.get("inlineData")):
        encoded, media = data.get("data"), string(data.get("mimeType"))
        kind = "image" if (media or "").startswith("image/") else "file"
        return attachment(kind, media, base64_size(encoded) if isinstance(encoded, str) else None)
    if data := mapping(part.get("fileData")):
        named = string(data.get("fileUri")) or string(data.get("mimeType"))
        return attachment("file", named, None)
    if code := string(mapping(part.get("executableCode")).get("code")):
        return code
    return string(mapping(part.get("codeExecutionResult")).get("output"))
