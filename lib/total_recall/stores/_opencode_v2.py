"""Sessions in OpenCode's newer form: one row of the table session_message is a whole message with its content.

Seen so far: prompts (`user`) and a failed answer (`assistant`); the other shapes are those the program can write.
A row is treated as a message with one part, which gives a record for each item of its content.
"""

from __future__ import annotations

from typing import Any

from ..record import Record, encoded
from ._opencode_rows import WIDTHS, Batch, Message, Part, json_object, mapping, string

TABLE = "session_message"


def batch(id: Any, seq: Any, created: Any, kind: Any, raw: bytes | None) -> Batch:
    """A row as a message with its one part; the part's JSON says in `type` what the row's column says."""
    ref = {"table": TABLE, "id": str(id)}
    value = json_object(raw or b"")
    data: Record = {"time": {"created": created}, **(value or {}), "role": _ROLES.get(str(kind), "system")}
    model = mapping(data.get("model"))
    data.update(modelID=string(model.get("id")), providerID=string(model.get("providerID")))
    # Its failure is in the part's records, so that the row is told once.
    message = Message(str(id), seq, b"", ref, {key: item for key, item in data.items() if key != "error"})
    if value is None:
        return Batch(message, [Part(None, str(id), None, raw or b"", own_ref=ref)], True)
    whole = {"type": str(kind), **value}
    width = sum(WIDTHS[str(part["type"])] for part in parts(whole)) + (whole.get("error") is not None)
    return Batch(message, [Part(None, str(id), width, encoded(whole), len(raw or b""), ref)], True)


_ROLES = {"user": "user", "synthetic": "user", "assistant": "assistant", "shell": "assistant"}


def parts(row: Record) -> list[Record]:
    """The content of a row as parts in the older form."""
    kind = row.get("type")
    if kind in ("user", "synthetic"):
        files = [{"type": "file", "mime": file.get("mime"), "url": file.get("uri")} for file in _objects(row, "files")]
        return [{"type": "text", "text": row.get("text"), "synthetic": kind == "synthetic"}, *files]
    if kind == "shell":
        done = mapping(row.get("time")).get("completed")
        state = {"status": "completed" if done else "running", "input": {"command": row.get("command")}}
        output = {"output": row.get("output")} if done else {}
        return [{"type": "tool", "tool": "bash", "callID": row.get("callID"), "state": {**state, **output}}]
    if kind == "compaction":
        return [{"type": "compaction", "auto": row.get("reason") == "auto"}]
    if kind == "assistant":
        return [_item(item) for item in _objects(row, "content") if item.get("type") in ("text", "reasoning", "tool")]
    return []


def _item(item: Record) -> Record:
    if item["type"] != "tool":
        return item
    state = mapping(item.get("state"))
    content = [text for found in _objects(state, "content") if (text := string(found.get("text")))]
    known: Record = {"status": state.get("status"), "input": state.get("input"), "metadata": state.get("structured")}
    if state.get("status") == "completed":
        known["output"] = "\n".join(content)
    if state.get("error") is not None:
        known["error"] = mapping(state["error"]).get("message") or state["error"]
    ran = mapping(item.get("time"))
    known["time"] = {"start": ran.get("ran") or ran.get("created"), "end": ran.get("completed")}
    return {"type": "tool", "tool": item.get("name"), "callID": item.get("id"), "state": known}


def _objects(holder: Record, key: str) -> list[Record]:
    items = holder.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
