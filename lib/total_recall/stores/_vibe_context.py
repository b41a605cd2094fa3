"""What only the model's context has: the messages that Vibe's unified transcript leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ._vibe_text import FRAME, content_of, fields

_RAW_ROLES = ("user", "assistant", "tool")


def left_out(known: list[dict[str, Any]], copied: int, *, retold: bool) -> Iterator[tuple[int, str]]:
    """(place, raw type) of each context message that is not in the transcript.

    The transcript has every prompt, every answer and every tool that ran. It has not: what the program injected; a
    call that was refused before it ran, with its answer; `run_typescript`, whose inner calls alone are effects; and,
    of the first `copied` messages, which an import or a fork brought, the reasoning and the tools, unless these were
    `retold` from the folder they came from.
    """
    refused = _refused(known)
    if known and _injected_frame(known[0]):
        copied = 0  # compacted since: none of the first messages is where it was
    while 0 < copied < len(known) and fields(known[copied].get("message")).get("role") == "tool":
        copied += 1
    for place, each in enumerate(known):
        told = fields(each.get("message"))
        role = told.get("role")
        kind = role if role in _RAW_ROLES else "system"
        if each.get("source") != "history":
            yield place, "system"
        elif place < copied:
            if not retold and (role == "tool" or (role == "assistant" and _more_than_text(told))):
                yield place, kind
        elif refused.intersection(_call_ids(each)):
            yield place, kind


def _injected_frame(known: dict[str, Any]) -> bool:
    return known.get("source") == "injection" and content_of(fields(known.get("message")).get("content")).startswith(
        FRAME
    )


def _calls(known: dict[str, Any]) -> list[dict[str, Any]]:
    content = fields(known.get("message")).get("content")
    parts = [fields(part) for part in content] if isinstance(content, list) else []
    return [part for part in parts if part.get("type") == "tool_call"]


def _refused(known: list[dict[str, Any]]) -> set[str]:
    """The ids of the calls that are no effects: `run_typescript`, and those whose failure is not the tool's own."""
    refused = {
        call["id"]
        for each in known
        for call in _calls(each)
        if isinstance(call.get("id"), str)
        and (call.get("name") == "run_typescript" or fields(call.get("arguments")).get("type") == "invalid_json")
    }
    for each in known:
        answer = fields(each.get("message"))
        call_id = answer.get("tool_call_id")
        if answer.get("role") != "tool" or answer.get("outcome") != "failure" or not isinstance(call_id, str):
            continue
        if _error_name(content_of(answer.get("content"))) != "tool_failed":
            refused.add(call_id)
    return refused


def _error_name(text: str) -> Any:
    try:
        answer = orjson.loads(text)
    except ValueError:
        return None
    return fields(fields(fields(answer).get("result")).get("error")).get("name")


def _call_ids(known: dict[str, Any]) -> list[str]:
    """The ids of the calls that a message makes or answers."""
    ids = [fields(known.get("message")).get("tool_call_id"), *(call.get("id") for call in _calls(known))]
    return [call_id for call_id in ids if isinstance(call_id, str)]


def _more_than_text(told: dict[str, Any]) -> bool:
    content = told.get("content")
    return isinstance(content, list) and any(fields(part).get("type") != "text" for part in content)
