"""Vibe's two stores: session folders as 2.26 writes them, and folders of the unified store as 3.0 does."""

from __future__ import annotations

import hashlib
import json
import os
from random import Random
from typing import Any

import orjson

from tests.bench.script import Call, Compaction, Script, Session, Step, Turn
from tests.bench.text import Text
from tests.bench.writing import Facts, iso, uuid

_FRAME = "You are continuing a trajectory after a context compaction.\n\n<compaction_summary>\n"
_PIECE = 64 * 1024  # bytes of a chunk of the unified store, about
_NAMES = {"shell": "bash", "read": "read", "write": "write_file", "edit": "edit", "search": "grep", "agent": "task"}
_EFFECTS = {
    "shell": "file_system.bash",
    "read": "file_system.read_file",
    "write": "file_system.write_file",
    "edit": "file_system.edit",
    "search": "file_system.grep",
    "todo": "vibe.todo",
    "agent": "agents.spawn",
}


class Vibe:
    """Writes sessions below `<home>/.vibe/logs/session`."""

    floor = 14_000  # bytes of a session with one short turn

    def __init__(self, home: str, text: Text) -> None:
        self.root = os.path.join(home, ".vibe", "logs", "session")
        os.makedirs(self.root, exist_ok=True)
        rng = Random("vibe")
        self.system = text.piece(text.prose, rng, 9000)
        self._folders: dict[str, str] = {}

    def identify(self, session: Session) -> str:
        """A UUID; a sub-agent of the unified store has its own form."""
        rng = session.random("id")
        return f"child-{rng.getrandbits(96):024x}" if session.parent and session.unified else uuid(rng)

    def write(self, session: Session, script: Script) -> Facts:
        """Write one session's folder."""
        folder = self._folder(session)
        os.makedirs(folder, exist_ok=True)
        writer = _Unified(self, session, folder) if session.unified else _Lines(self, session, folder)
        writer.write(script)
        for path in writer.stamped:
            os.utime(os.path.join(folder, path), (writer.now / 1000, writer.now / 1000))
        return writer.facts

    def _folder(self, session: Session) -> str:
        if session.unified:
            return os.path.join(self.root, "unified", session.id)
        moment = iso(session.began)[:19].replace("-", "").replace(":", "").replace("T", "_")
        folder = self.root
        if session.parent:
            folder = os.path.join(self._folder(session.parent), "agents")
        kind = "explore" if session.parent else "session"
        return os.path.join(folder, f"{kind}_{moment}_{session.id[:8]}")

    def close(self) -> None:
        """Nothing is kept open between sessions."""


def _meta(session: Session, now: int, **more: Any) -> dict[str, Any]:
    return {
        "session_id": session.id,
        "parent_session_id": session.parent and session.parent.id,
        "start_time": iso(session.began).replace("Z", "+00:00"),
        "end_time": iso(now).replace("Z", "+00:00"),
        "git_commit": None,
        "git_branch": session.branch,
        "environment": {"working_directory": session.directory},
        "username": "dev",
        "title": f"Session {session.number} of {session.directory}",
        "title_source": "auto",
        **more,
    }


def _arguments(call: Call) -> dict[str, Any]:
    """What the model gave a tool of the session folders."""
    given = call.given
    if call.tool == "edit":
        return {"file_path": given["path"], "old_string": given["old"], "new_string": given["new"]}
    if call.tool == "todo":
        return {"action": "write", "todos": _todos(given["todos"])}
    if call.tool == "agent":
        return {"agent": "explore", "task": given["prompt"]}
    if call.tool == "read":
        return {"file_path": given["path"]}
    return dict(given)


def _todos(todos: list[dict[str, str]]) -> list[dict[str, str]]:
    return [{"id": str(number), **item, "priority": "medium"} for number, item in enumerate(todos, 1)]


class _Lines:
    """`messages.jsonl` and `meta.json`: one message a line, without times."""

    stamped = ("messages.jsonl", "meta.json")

    def __init__(self, vibe: Vibe, session: Session, folder: str) -> None:
        self._vibe = vibe
        self._session = session
        self._folder = folder
        self._random = session.random("vibe")
        self._count = 0
        self.now = session.began
        self.facts = Facts()

    def write(self, script: Script) -> None:
        self._session.written = len(self._vibe.system) + 1500
        with open(os.path.join(self._folder, "messages.jsonl"), "wb", buffering=1 << 20) as self._file:
            for event in script:
                if isinstance(event, Compaction):
                    self._compaction(event)
                else:
                    self._turn(event)
        meta = _meta(
            self._session,
            self.now,
            stats={"steps": self._count, "session_cost": 0.07},
            total_messages=self._count,
            config={"active_model": "mock-large"},
            system_prompt={"role": "system", "content": self._vibe.system},
        )
        with open(os.path.join(self._folder, "meta.json"), "wb") as file:
            file.write(orjson.dumps(meta, option=orjson.OPT_INDENT_2))

    def _put(self, role: str, content: str, *, injected: bool = False, **more: Any) -> None:
        record = {"role": role, "content": content, "injected": injected, **more}
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        self._file.write(line)
        self._session.written += len(line)
        self._count += 1
        self.now += self._random.randrange(100, 4000)

    def _turn(self, turn: Turn) -> None:
        self.facts.user_count += 1
        self._put("user", turn.prompt, message_id=uuid(self._random))
        for step in turn.steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        more: dict[str, Any] = {}
        if step.thinking:
            more |= {"reasoning_content": step.thinking, "reasoning_message_id": uuid(self._random)}
        calls = []
        for call in step.calls:
            call_id = f"c{self._random.getrandbits(48):012x}"
            function = {"name": _NAMES.get(call.tool, call.tool), "arguments": json.dumps(_arguments(call))}
            calls.append({"id": call_id, "function": function, "type": "function"})
        if calls:
            more["tool_calls"] = calls
        self.facts.assistant_count += bool(step.text)
        self.facts.tool_count += len(calls)
        self._put("assistant", step.text, **more, message_id=uuid(self._random))
        for call, held in zip(step.calls, calls, strict=True):
            name = held["function"]["name"]
            self._put("tool", _result(call), name=name, tool_call_id=held["id"])

    def _compaction(self, compaction: Compaction) -> None:
        self.facts.has_compaction = True
        text = f"{_FRAME}{compaction.summary}\n</compaction_summary>"
        self._put("user", text, injected=True, context_boundary="compaction", message_id=uuid(self._random))


def _result(call: Call) -> str:
    """A result as lines of `key: value`, the way the program prints its Python objects."""
    given, result = call.given, call.result
    if call.failed:
        return f"<tool_error>{_NAMES[call.tool]} failed: Command failed\nReturn code: 1\nStderr: {result}</tool_error>"
    if call.tool == "shell":
        return f"command: {given['command']}\nstdout: {result}\nstderr: \nreturncode: 0"
    if call.tool == "read":
        numbered = "\n".join(f"{number:9}→{line}" for number, line in enumerate(result.split("\n"), 1))
        return f"file_path: {given['path']}\ncontent: {numbered}"
    if call.tool == "search":
        return f"matches: {result}\nmatch_count: 3\nwas_truncated: False"
    if call.tool == "write":
        return f"path: {given['path']}\nbytes_written: {len(given['content'])}\ncontent: {given['content']}"
    if call.tool == "edit":
        return f"file: {given['path']}\nmessage: The file has been updated successfully.\nold_string: {given['old']}"
    if call.tool == "agent":
        return f"response: {result}\nturns_used: 2\ncompleted: True"
    return f"message: Updated {len(given['todos'])} todos\ntodos: {_todos(given['todos'])}"


class _Unified:
    """One generation of a session at rest: the transcript and the model's context in chunks, an empty journal."""

    stamped = ("CURRENT", "meta.json")

    def __init__(self, vibe: Vibe, session: Session, folder: str) -> None:
        self._session = session
        self._folder = folder
        self._random = session.random("vibe")
        self._turn_id = ""
        self._entries: list[bytes] = []
        self._context: list[bytes] = []
        self._size = {"entries": 0, "context": 0}
        self._told_bytes = 0
        self._chunks: dict[str, list[str]] = {"entries": [], "context": []}
        self._compactions = 0
        self.now = session.began
        self.facts = Facts()
        if session.parent:
            self.stamped = ("CURRENT",)
        for name in ("chunks", "journal"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)

    def write(self, script: Script) -> None:
        for event in script:
            if isinstance(event, Compaction):
                self._compaction(event)
            else:
                self._turn(event)
        self._flush("entries")
        self._flush("context")
        self._generation(f"{len(self._chunks['entries']) * 50:016}")

    # -- lists in chunks ---------------------------------------------------------------------------------------

    def _put(self, name: str, value: dict[str, Any]) -> None:
        waiting = self._entries if name == "entries" else self._context
        waiting.append(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
        self._session.written += len(waiting[-1]) + 1
        self._told_bytes += len(waiting[-1]) + 1 if name == "context" else 0
        self._size[name] += len(waiting[-1])
        if self._size[name] >= _PIECE:
            self._flush(name)

    def _flush(self, name: str) -> None:
        waiting = self._entries if name == "entries" else self._context
        if waiting:
            self._chunks[name].append(self._document(None, b"[" + b",".join(waiting) + b"]"))
            waiting.clear()
            self._size[name] = 0

    def _document(self, path: str | None, data: bytes) -> str:
        """Write a file, a chunk where no path is given, and return its digest."""
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self._folder, path or f"chunks/{digest}.json"), "wb") as file:
            file.write(data)
        return digest

    # -- the transcript ----------------------------------------------------------------------------------------

    def _entry(self, type: str, **fields: Any) -> None:
        self.now += self._random.randrange(100, 4000)
        self._put(
            "entries",
            {
                "createdAt": self.now,
                "updatedAt": self.now + 60,
                "generationStatus": "completed",
                "id": f"{type}-{uuid(self._random)}",
                "inputEntryId": f"user-{self._turn_id}-1",
                "relatedEntryId": None,
                "sessionId": self._session.id,
                "turnId": self._turn_id,
                "type": type,
                **fields,
            },
        )

    def _told(self, role: str, content: list[dict[str, Any]], source: str = "history", **more: Any) -> None:
        message = {"message": {"role": role, "content": content, **more}, "source": source}
        self._put("context", {**message, "turn_index": self.facts.user_count})

    def _turn(self, turn: Turn) -> None:
        self.facts.user_count += 1
        self._turn_id = f"turn-{self._random.getrandbits(128):032x}"
        content = [{"type": "text", "text": turn.prompt}]
        self._entry("message", role="user", source="turn_start", content=content)
        self._told("user", content)
        for step in turn.steps:
            self._step(step)

    def _step(self, step: Step) -> None:
        said: list[dict[str, Any]] = []
        committed = {"outcome": {"type": "committed"}}
        if step.thinking:
            self._entry("reasoning", text=step.thinking, summary=[], **committed)
            said.append({"type": "reasoning", "content": [{"type": "text", "text": step.thinking}]})
        if step.text:
            self.facts.assistant_count += 1
            content = [{"type": "text", "text": step.text}]
            self._entry("message", role="assistant", source="harness", content=content, **committed)
            said += content
        ids = [f"c{self._random.getrandbits(48):012x}" for _ in step.calls]
        for call, call_id in zip(step.calls, ids, strict=True):
            arguments = {"type": "json", "value": _arguments(call), "raw": json.dumps(_arguments(call))}
            said.append({"type": "tool_call", "id": call_id, "name": _EFFECTS[call.tool], "arguments": arguments})
        self._told("assistant", said)
        for call, call_id in zip(step.calls, ids, strict=True):
            self._effect(call)
            content = [{"type": "text", "text": call.result}]
            self._told("tool", content, name=_EFFECTS[call.tool], tool_call_id=call_id, outcome="success")

    def _effect(self, call: Call) -> None:
        self.facts.tool_count += 1
        name, given, result = _EFFECTS[call.tool], _arguments(call), call.result
        shown = {"message": name, "settledMessage": name, "settledVerb": "Ran", "summary": name, "verb": "Running"}
        detail = {"display": shown, "input": given, "kind": "tool", "toolName": name}
        structured: dict[str, Any] = {"content": result}
        if call.tool == "agent":
            detail |= {"kind": "subagent", "childSessionId": call.given["child"].id, "agentName": "scout"}
        elif call.tool == "shell":
            streams = {"stdout": result, "stderr": "", "returncode": int(call.failed)}
            structured = {"command": given["command"], **streams, "timed_out": False, "was_truncated": False}
        elif call.tool == "todo":
            structured = {"message": "Updated", "todos": given["todos"], "total_count": len(given["todos"])}
        output = {"content": [], "structured_content": structured, "type": "success"}
        shown = {"message": name, "success": True}
        state = {"display": shown, "output": output, "outputText": "", "status": "completed"}
        self._entry("effect", title=name, detail=detail, state=state)

    def _compaction(self, compaction: Compaction) -> None:
        self.facts.has_compaction = True
        self._compactions += 1
        trigger = "automatic" if compaction.automatic else "manual"
        details = {"attempt": 1, "summaryLength": len(compaction.summary), "trigger": trigger}
        self._entry("checkpoint", kind="compaction", message="Context compacted", details=details)
        self._context.clear()
        for digest in self._chunks["context"]:
            os.unlink(os.path.join(self._folder, "chunks", digest + ".json"))
        self._chunks["context"].clear()
        self._size["context"] = 0
        self._session.written -= self._told_bytes
        self._told_bytes = 0
        text = f"{_FRAME}{compaction.summary}\n</compaction_summary>"
        self._told("user", [{"type": "text", "text": text}], "injection")

    # -- the documents round it --------------------------------------------------------------------------------

    def _generation(self, name: str) -> None:
        folder = f"generations/{name}"
        os.makedirs(os.path.join(self._folder, folder), exist_ok=True)
        session = self._session
        root = (session.parent or session).id
        known = {
            "createdAt": session.began,
            "updatedAt": self.now,
            "id": session.id,
            "parentSessionId": session.parent and root,
            "rootSessionId": root,
            "status": {"type": "idle"},
            "title": None,
            "titleSource": "auto",
        }
        history = {"cursor": {"after": None, "before": None}, "entries": [], "range": "latest"}
        snapshot = {"format": "harness.public-session-state/v1", "history": history, "session": known}
        identity = {"kind": "subagent" if session.parent else "root", "parent_session_id": session.parent and root}
        metadata = {"active_model": "mock-large", "cwd": session.directory, "origin_cwd": None}
        documents: dict[str, tuple[str, dict[str, Any]]] = {
            "checkpoint": ("context", {"compaction_count": self._compactions, "context": {"messages": []}}),
            "projection_state": ("entries", {"session_id": session.id, "snapshot": snapshot}),
            "runtime_state": ("", {"identity": identity, "import_provenance": None, "session_metadata": metadata}),
        }
        manifest: dict[str, Any] = {"generation": name, "manifest_version": 1, "session_id": session.id}
        for kind, (chunks, value) in documents.items():
            path = kind.replace("_", "-") + ".json"
            digest = self._document(f"{folder}/{path}", orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
            manifest[kind] = {"chunks": self._chunks.get(chunks, []), "path": path, "sha256": digest}
        journal = f"journal/{int(name) + 1:016}.jsonl"
        manifest |= {"snapshot_sequence": int(name), "recovery_journal_segment": {"path": journal}}
        self._document(journal, b"")
        digest = self._document(f"{folder}/manifest.json", orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS))
        current = {"generation": name, "manifest_sha256": digest, "session_id": session.id}
        store = {"snapshot_sequence": int(name), "store_format": "mistral.vibe.unified-session-store/v1"}
        self._document("CURRENT", orjson.dumps({**current, **store, "store_format_minor": 10}))
        if not session.parent:
            self._document("meta.json", orjson.dumps(_meta(session, self.now, config={"active_model": "mock-large"})))
