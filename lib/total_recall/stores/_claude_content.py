"""The content of Claude's messages: a text, or a list of blocks of text, images, thinking, tool calls and results."""

from __future__ import annotations

from typing import Any

from ..record import Record, attachment, base64_size

Block = dict[str, Any]

_THINKING = frozenset(("thinking", "redacted_thinking"))
_CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))


def content_of(record: Record) -> list[Any] | None:
    """The blocks of a record's message; None where it has no message."""
    held = record.get("message")
    return blocks(held.get("content")) if isinstance(held, dict) else None


def blocks(content: Any) -> list[Any]:
    """Content as a list, whatever stands there."""
    if isinstance(content, list):
        return content
    return [] if content is None else [content]


def type_of(block: Any) -> str:
    """The type of a block; empty for a bare text and for what is no block."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def told(content: list[Any]) -> tuple[str, list[Block], list[Block]]:
    """What the blocks of a response are: its text, its thoughts, and its calls of tools."""
    texts: list[Any] = []
    thoughts: list[Block] = []
    calls: list[Block] = []
    for block in content:
        kind = type_of(block)
        if kind in _THINKING:
            thoughts.append(block)
        elif kind.endswith("tool_use"):
            calls.append(block)
            if kind not in _CALLS:
                texts.append(block)
        elif kind.endswith("tool_result"):
            texts += blocks(block.get("content"))  # of a tool that the provider ran
        else:
            texts.append(block)
    return text_of(texts), thoughts, calls


def text_of(blocks: list[Any]) -> str:
    """The texts of blocks, a line end between two, with markers for images and files."""
    if len(blocks) == 1:
        return _block_text(blocks[0])
    return "\n".join(map(_block_text, blocks))


def _block_text(block: Any) -> str:
    """The text of a content block; what is no text is a marker with what names it."""
    if isinstance(block, str):
        return block
    if not isinstance(block, dict):
        return f"[{type(block).__name__}]" if isinstance(block, list) else str(block)
    if isinstance(block.get("text"), str):
        return str(block["text"])
    kind = type_of(block) or "object"
    source = block.get("source")
    if kind in ("image", "document") and isinstance(source, dict):
        media, data = source.get("media_type"), source.get("data")
        size = base64_size(data) if source.get("type") == "base64" and isinstance(data, str) else None
        return attachment(kind, media if isinstance(media, str) else None, size)
    named = [block[key] for key in ("tool_name", "name", "title", "url") if isinstance(block.get(key), str)]
    return f"[{' '.join([kind, *named])}]"


def thought(block: Block) -> str:
    """The text of a thinking block; empty where the provider gave only its signature."""
    text = block.get("thinking")
    if isinstance(text, str):
        return text
    return "[redacted thinking]" if type_of(block) == "redacted_thinking" else ""
