"""The content of Claude's messages: a text, or a list of blocks of text, images, thinking, tool calls and results."""

from __future__ import annotations

from typing import Any

from ..record import Record, attachment, base64_size

Block = dict[str, Any]


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


def parts(block: Any) -> list[Any]:
    """A block of a response; the result of a tool that the provider ran is what stands in it."""
    return blocks(block.get("content")) if type_of(block).endswith("tool_result") else [block]


def text_of(blocks: list[Any]) -> str:
    """The texts of blocks, a line end between two, with markers for images and files."""
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return blocks[0]
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
