"""Vibe stores for the tests: copies of the fixtures in scratch folders, and small ones of the tests' own making."""

import json
import shutil
from pathlib import Path

import orjson
from total_recall.notices import Notices
from total_recall.stores.vibe import Vibe

FIXTURES = Path(__file__).parents[1] / "fixtures" / "vibe"
LEGACY, MIXED = "legacy-2.18.4", "mixed-3.0.3"
TRUTH = {store: json.loads((FIXTURES / store / "truth.json").read_bytes()) for store in (LEGACY, MIXED)}


def copied(scratch, *stores):
    """A `logs/session` folder in `scratch` with the fixtures' stores laid over one another."""
    root = scratch / "logs" / "session"
    for store in stores:
        shutil.copytree(FIXTURES / store / "logs" / "session", root, dirs_exist_ok=True)
    return root


def opened(root):
    """The store in a folder, with the notices of a run."""
    return Vibe(Vibe.locate({"TOTAL_RECALL_VIBE_ROOT": str(root)}), Notices())


def session_of(store, session_id):
    """The session with an id, or with an alias."""
    for session in store.sessions():
        if session_id == session.session_id or session_id in session.names:
            return session
    raise LookupError(session_id)


def keyed(key, store=MIXED):
    """The truth about the (last) session that a key of the truth file stands for."""
    return [truth for truth in TRUTH[store]["sessions"] if key in truth["keys"]][-1]


def records(store, session_id):
    return list(store.messages(session_of(store, session_id)))


def folder(root, name, lines, **meta):
    """A legacy folder of the tests' own making; a line is an object or the bytes of it."""
    path = root / name
    path.mkdir(parents=True)
    stored = (line if isinstance(line, bytes) else orjson.dumps(line) + b"\n" for line in lines)
    (path / "messages.jsonl").write_bytes(b"".join(stored))
    if meta:
        (path / "meta.json").write_bytes(orjson.dumps(meta))
    return path


def user(text, number=1, **fields):
    return {"role": "user", "content": text, "injected": False, "message_id": f"m{number}"} | fields


def assistant(text, number=2, **fields):
    return {"role": "assistant", "content": text, "injected": False, "message_id": f"m{number}"} | fields


def unified(root, session_id, chunks=(), journal=(), *, generation=1, minor=10, session=None, runtime=None, context=()):
    """A session of the unified store: lists of entries as chunks, lists of operations as journal records."""
    path = root / "unified" / session_id
    here = path / "generations" / f"{generation:016}"
    for made in (here, path / "chunks", path / "journal"):
        made.mkdir(parents=True, exist_ok=True)
    names = []
    for number, entries in enumerate(chunks):
        names.append(f"{generation:02}{number:062}")
        (path / "chunks" / f"{names[-1]}.json").write_bytes(orjson.dumps(entries))
    snapshot = {"session": {"id": session_id} | (session or {}), "history": {"entries": []}}
    documents = {
        "manifest.json": {
            "snapshot_sequence": generation,
            "projection_state": {"path": "projection-state.json", "chunks": names},
            "runtime_state": {"path": "runtime-state.json"},
            "checkpoint": {"path": "checkpoint.json", "chunks": []},
        },
        "projection-state.json": {"snapshot": snapshot},
        "checkpoint.json": {"context": {"messages": list(context)}},
        "runtime-state.json": runtime or {},
    }
    for name, value in documents.items():
        (here / name).write_bytes(orjson.dumps(value))
    append(path, generation + 1, journal)
    current = {"generation": here.name, "store_format_minor": minor, "session_id": session_id}
    (path / "CURRENT").write_bytes(orjson.dumps(current))
    return path


def append(path, first, deltas):
    """Write projection deltas to the journal segment that begins with record `first`, as the program does."""
    with (path / "journal" / f"{first:016}.jsonl").open("ab") as journal:
        for number, delta in enumerate(deltas):
            record = {"type": "projection_delta", "sequence": first + number, "payload": {"delta": delta}}
            journal.write(orjson.dumps(record) + b"\n\n")


def said(name, text, role="user", **fields):
    """A message entry of the unified transcript."""
    source = "turn_start" if role == "user" else "harness"
    entry = {"id": name, "type": "message", "role": role, "source": source, "createdAt": 1796073007656}
    return entry | {"content": [{"type": "text", "text": text}], "generationStatus": "completed"} | fields


def effect(name, tool="file_system.bash", status="completed", **output):
    """An effect entry: a call, with its result if it is completed."""
    state = {"status": status}
    if status == "completed":
        state["output"] = {"type": "success", "content": [], "structured_content": output}
    detail = {"kind": "tool", "toolName": tool, "input": {"command": "true"}}
    return {"id": name, "type": "effect", "createdAt": 1796073007656, "detail": detail, "state": state}
