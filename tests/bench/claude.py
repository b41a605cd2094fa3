"""Transcripts as Claude Code 2.1.332 writes them: one record a content block, and round them the side records.

Per session the program stores its whole prompt twice (`prompt_snapshot`, `api-request-shape`), per request a
reference to what was sent (`api-request`) and copies of the new messages (`api-request-blob`).
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import orjson

from tests.bench.script import Call, Compaction, Script, Session, Step, Turn
from tests.bench.text import Text
from tests.bench.writing import Facts, iso, uuid

_MODEL = "claude-opus-5-5"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TOOLS = ("Agent", "Bash", "Edit", "Glob", "Grep", "Read", "Skill", "TaskCreate", "TaskGet", "TaskUpdate", "Write")
_CONTINUED = "This session is being continued from a previous conversation that ran out of context."
_ATTACHED = {"environment": 400, "model": 330, "agent_listing_delta": 1900, "skill_listing": 900, "auto_mode": 600}


class Claude:
    """Writes sessions below `<home>/.claude/projects`."""

    floor = 62_000  # bytes of a session with one short turn

    def __init__(self, home: str, text: Text) -> None:
        self.root = os.path.join(home, ".claude", "projects")
        self._text = text
        rng = Random("claude")
        self.system = [text.piece(text.prose, rng, 2500) for _ in range(5)]
        self.tools = [_schema(name, text, rng) for name in _TOOLS]
        self.attached = {kind: text.piece(text.prose, rng, size) for kind, size in _ATTACHED.items()}

    def identify(self, session: Session) -> str:
        """The id that the session's parent and the list of what was written name it by."""
        rng = session.random("id")
        return f"agent-a{rng.getrandbits(64):016x}" if session.parent else uuid(rng)

    def write(self, session: Session, script: Script) -> Facts:
        """Write one transcript, and for a sub-agent what links it to the call."""
        owner = session.parent or session
        folder = os.path.join(self.root, owner.directory.replace("/", "-"))
        if session.parent:
            folder = os.path.join(folder, owner.id, "subagents")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, session.id)
        with open(path + ".jsonl", "wb", buffering=1 << 20) as file:
            transcript = _Transcript(self, session, file)
            transcript.write(script)
        os.utime(path + ".jsonl", (transcript.now / 1000, transcript.now / 1000))
        if session.parent:
            with open(path + ".meta.json", "wb") as file:
                file.write(orjson.dumps({"agentType": "Explore", "description": "Look into it", "spawnDepth": 1}))
        return transcript.facts

    def close(self) -> None:
        """Nothing is kept open between sessions."""


class _Transcript:
    """One file: the chain of records, and what they have in common."""

    def __init__(self, claude: Claude, session: Session, file: Any) -> None:
        self._claude = claude
        self._session = session
        self._file = file
        self._random = session.random("claude")
        self._owner = (session.parent or session).id
        self._agent = {"agentId": session.id.removeprefix("agent-")} if session.parent else {}
        self._end = {
            "userType": "external",
            "entrypoint": "cli" if session.interactive else "sdk-cli",
            "cwd": session.directory,
            "sessionId": self._owner,
            "version": "2.1.332",
            "gitBranch": session.branch or "HEAD",
        }
        self.now = session.began
        self.facts = Facts()
        self._last: str | None = None
        self._prompt = self._request = ""
        self._turns = self._sent = 0
        self._tasks: dict[str, str] = {}

    def write(self, script: Script) -> None:
        for event in script:
            if isinstance(event, Compaction):
                self._compaction(event)
            else:
                self._turn(event)
        if not self._session.parent:
            used = {"inputTokens": 23496, "outputTokens": 517, "cacheReadInputTokens": 0, "costUSD": 0.104324}
            self._side("cost-state", totalCostUSD=0.104324, totalDuration=2307, modelUsage={_MODEL: used})

    # -- the two families of records ---------------------------------------------------------------------------

    def _put(self, record: dict[str, Any]) -> None:
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self._file.write(line)
        self._session.written += len(line)

    def _side(self, kind: str, **fields: Any) -> None:
        self._put({"type": kind, "sessionId": self._owner, **fields})

    def _chain(self, before: dict[str, Any], after: dict[str, Any], parent: str | None = "") -> str:
        """A record of the chain: `before` and `after` stand on either side of its uuid and time."""
        name = uuid(self._random)
        self.now += self._random.randrange(20, 4000)
        self._put(
            {
                "parentUuid": self._last if parent == "" else parent,
                "isSidechain": bool(self._agent),
                **self._agent,
                **before,
                "uuid": name,
                "timestamp": iso(self.now),
                **after,
                **self._end,
            }
        )
        self._last = name
        return name

    def _attachment(self, kind: str, text: str = "", **known: Any) -> None:
        rendered = {"rendered": [{"content": f"<system-reminder>\n{text}\n</system-reminder>"}]} if text else {}
        shown = {**rendered, "renderedRole": "system"} if text else {}
        self._chain({"attachment": {"type": kind, **known}, "type": "attachment"}, shown)

    # -- turns -------------------------------------------------------------------------------------------------

    def _turn(self, turn: Turn) -> None:
        self._turns += 1
        self._prompt = uuid(self._random)
        if not self._agent:
            self._before_prompt(turn.prompt)
        self._user_prompt(turn.prompt)
        self.facts.user_count += 1
        if self._turns == 1:
            self._context()
        self._blob("user", turn.prompt)
        for step in turn.steps:
            self._step(step)
        if not self._agent:
            self._side("last-prompt", lastPrompt=turn.prompt, leafUuid=self._last)
            if self._session.interactive:
                system = {"type": "system", "subtype": "turn_duration", "durationMs": 1585, "messageCount": 16}
                self._chain(system, {"isMeta": False})
                self._side("ai-title", aiTitle=f"Session {self._session.number} of {self._session.directory}")
                self._side("mode", mode="normal")
                self._side("permission-mode", permissionMode="default")

    def _before_prompt(self, prompt: str) -> None:
        if self._session.interactive:
            taken = {"messageId": self._prompt, "trackedFileBackups": {}, "timestamp": iso(self.now)}
            self._put({"type": "file-history-snapshot", "messageId": self._prompt, "snapshot": taken})
        else:
            for operation, held in (("enqueue", {"content": prompt}), ("dequeue", {})):
                self._side("queue-operation", operation=operation, timestamp=iso(self.now), **held)

    def _user_prompt(self, prompt: str) -> None:
        typed = {"origin": {"kind": "human"}, "promptSource": "typed", "turnOrigin": "human"}
        handed = {"promptSource": "sdk", "rowSource": "local", "turnOrigin": "sdk"}
        marks = typed if self._session.interactive else handed
        marks = {"rowSource": "recorded"} if self._agent else {"permissionMode": "default", **marks}
        message = {"role": "user", "content": prompt}
        self._chain({"promptId": self._prompt, "type": "user", "message": message}, marks)

    def _context(self) -> None:
        """What the program attaches to the first prompt, and the request's shape."""
        for kind, text in self._claude.attached.items():
            self._attachment(kind, text, content=text)
        self._side("atis-latch", atis="")
        self._attachment("session_context", context={})
        self._attachment("date", "Today's date is 2026-11-30.", date="2026-11-30")
        self._attachment("prompt_snapshot", systemPrompt=self._claude.system, contextRendering="announced")
        self._shape()

    def _shape(self) -> None:
        system = [{"type": "text", "text": text} for text in self._claude.system]
        shape = {"system": system, "tools": self._claude.tools}
        self._side("api-request-shape", shapeHash=self._hash(), version="2.1.332", shape=shape)

    def _hash(self) -> str:
        return f"{self._random.getrandbits(256):064x}"

    def _blob(self, role: str, text: str) -> None:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        self._side("api-request-blob", hash=self._hash(), message=message)

    def _step(self, step: Step) -> None:
        """One response of the model, a record for each of its blocks, and the results of its calls."""
        self._send()
        blocks = []
        if step.thinking:
            signature = "Er" + self._hash() * 3
            blocks.append({"type": "thinking", "thinking": step.thinking, "signature": signature})
        if step.text:
            blocks.append({"type": "text", "text": step.text})
            self.facts.assistant_count += 1
        calls = [made for call in step.calls for made in self._tool_uses(call)]
        blocks += [block for block, _ in calls]
        self.facts.tool_count += len(calls)
        response = {"id": f"msg_01{self._token(22)}", "request": f"req_011{self._token(22)}"}
        reason = "tool_use" if calls else "end_turn"
        names = [self._block(block, place, reason, response) for place, block in enumerate(blocks)]
        for (block, call), name in zip(calls, names[len(names) - len(calls) :], strict=True):
            self._result(block, call, name)

    def _send(self) -> None:
        base = {"base": self._request} if self._request else {}
        self._request = uuid(self._random)
        self._sent += 2
        cached = [{"path": ["system", place], "value": {"type": "ephemeral"}} for place in range(2)]
        context = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
        params = {"model": _MODEL, "max_tokens": 128000, "context_management": context}
        self._side(
            "api-request",
            id=self._request,
            timestamp=iso(self.now),
            version="2.1.332",
            querySource="repl_main_thread",
            params={**params, "output_config": {"effort": "medium"}, "betas": ["claude-code-20250219"] * 5},
            **base,
            keep=self._sent,
            tail=[self._hash(), self._hash()],
            cacheControl=cached,
            requestDigest=self._hash(),
        )

    def _token(self, length: int) -> str:
        return "".join(self._random.choices(_ALPHABET, k=length))

    def _block(self, block: dict[str, Any], place: int, reason: str, response: dict[str, str]) -> str:
        usage = {
            "input_tokens": 5710 + self._sent,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 169,
            "output_tokens_details": {"thinking_tokens": 0},
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
            "iterations": [],
            "speed": "standard",
        }
        head = {"id": response["id"], "type": "message", "role": "assistant", "model": _MODEL}
        end = {"stop_reason": reason, "stop_sequence": None, "usage": usage, "stop_details": None}
        before = {
            "message": {**head, "content": [block], **end},
            "apiBlockIndex": place,
            "requestId": response["request"],
            "requestRef": self._request,
            "requestedModel": _MODEL,
            "promptCacheRequested": "5m",
            "type": "assistant",
        }
        return self._chain(before, {"effort": "medium", "perTurnEffort": "medium", "madeBy": "model"})

    # -- tools -------------------------------------------------------------------------------------------------

    def _tool_uses(self, call: Call) -> list[tuple[dict[str, Any], Call]]:
        """The calls that carry out one call of the script: a todo list takes one for each item that changed."""
        if call.tool == "todo":
            return [(self._tool_use(name, given), call) for name, given in self._task_calls(call.given["todos"])]
        return [(self._tool_use(*_asked(call)), call)]

    def _tool_use(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_use", "id": f"toolu_01{self._token(22)}", "name": name, "input": arguments}

    def _task_calls(self, todos: list[dict[str, str]]) -> list[tuple[str, dict[str, Any]]]:
        made: list[tuple[str, dict[str, Any]]] = []
        for number, item in enumerate(todos, 1):
            if item["content"] not in self._tasks:
                made.append(("TaskCreate", {"subject": item["content"], "description": item["content"]}))
            elif self._tasks[item["content"]] != item["status"]:
                made.append(("TaskUpdate", {"taskId": str(number), "status": item["status"]}))
            self._tasks[item["content"]] = item["status"]
        return made

    def _result(self, block: dict[str, Any], call: Call, asked_by: str) -> None:
        text, structured = self._returned(block, call)
        held = {"tool_use_id": block["id"], "type": "tool_result", "content": text}
        if call.tool == "shell" or call.failed:
            held["is_error"] = call.failed
        beside = {} if self._agent else {"toolUseResult": f"Error: {text}" if call.failed else structured}
        after = {
            **beside,
            "sourceToolAssistantUUID": asked_by,
            "permissionDecision": {"decision": "accept", "source": "config", "reasonType": "mode"},
        }
        message = {"role": "user", "content": [held]}
        self._chain({"promptId": self._prompt, "type": "user", "message": message}, after, asked_by)

    def _returned(self, block: dict[str, Any], call: Call) -> tuple[Any, Any]:
        """A result as the model saw it, and as the program stores it beside."""
        given, result = call.given, call.result
        if call.failed:
            return f"Exit code 1\n{result}", None
        if call.tool == "shell":
            return result[:30_000], {"stdout": result[:30_000], "stderr": "", "interrupted": False, "isImage": False}
        if call.tool == "read":
            lines = result.split("\n")
            numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, 1))
            held = {"filePath": given["path"], "content": result, "numLines": len(lines), "startLine": 1}
            return numbered, {"type": "text", "file": {**held, "totalLines": len(lines)}}
        if call.tool == "search":
            return result, {"mode": "content", "numFiles": 0, "filenames": [], "content": result}
        if call.tool == "write":
            kept = {"type": "create", "filePath": given["path"], "content": given["content"], "structuredPatch": []}
            return f"File created successfully at: {given['path']}", kept
        if call.tool == "edit":
            changed = {"filePath": given["path"], "oldString": given["old"], "newString": given["new"]}
            return f"The file {given['path']} has been updated successfully.", {**changed, "replaceAll": False}
        if call.tool == "agent":
            content = [{"type": "text", "text": result}]
            name = given["child"].id.removeprefix("agent-")
            return content, {"status": "completed", "prompt": given["prompt"], "agentId": name, "content": content}
        if block["name"] == "TaskCreate":
            number = list(self._tasks).index(block["input"]["subject"]) + 1
            task = {"id": str(number), "subject": block["input"]["subject"]}
            return f"Task #{number} created successfully: {task['subject']}", {"task": task}
        return f"Updated task #{block['input']['taskId']} status", {"success": True, "taskId": block["input"]["taskId"]}

    # -- compaction --------------------------------------------------------------------------------------------

    def _compaction(self, compaction: Compaction) -> None:
        self.facts.has_compaction = True
        known = {"trigger": "auto" if compaction.automatic else "manual", "preTokens": 199_892, "postTokens": 2948}
        boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
        before = {"logicalParentUuid": self._last, **boundary, "compactMetadata": known}
        self._chain(before, {"isMeta": False}, None)
        self._attachment("session_context", context={})
        self._attachment("date", "Today's date is 2026-11-30.", date="2026-11-30")
        message = {"role": "user", "content": f"{_CONTINUED}\n\n{compaction.summary}"}
        summary = {"type": "user", "message": message, "isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self._chain({"promptId": self._prompt, **summary}, {})
        self._attachment("prompt_snapshot", systemPrompt=self._claude.system, contextRendering="announced")
        self._shape()


def _asked(call: Call) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call."""
    given = call.given
    if call.tool == "shell":
        return "Bash", {"command": given["command"], "description": "Run it"}
    if call.tool == "read":
        return "Read", {"file_path": given["path"]}
    if call.tool == "write":
        return "Write", {"file_path": given["path"], "content": given["content"]}
    if call.tool == "edit":
        return "Edit", {"file_path": given["path"], "old_string": given["old"], "new_string": given["new"]}
    if call.tool == "search":
        return "Grep", {"pattern": given["pattern"], "path": given["path"], "output_mode": "content"}
    return "Agent", {"description": given["description"], "prompt": given["prompt"], "subagent_type": "Explore"}


def _schema(name: str, text: Text, rng: Random) -> dict[str, Any]:
    """A tool as the model is told of it."""
    properties = {
        text.words(rng, 1): {"type": "string", "description": text.piece(text.prose, rng, 200)} for _ in range(6)
    }
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties}
    return {"name": name, "description": text.piece(text.prose, rng, 800), "input_schema": schema}
