"""Rollouts as Codex 0.171 writes them: paginated, each item once for the model and once for the screen."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import orjson

from tests.bench.script import Call, Compaction, Script, Session, Step, Turn
from tests.bench.text import Text
from tests.bench.writing import Facts, iso

_MODEL = "gpt-5.5"
_SETTINGS = {"model": _MODEL, "reasoning_effort": "medium", "developer_instructions": None}
_KEPT_PROMPTS = 8  # in a compaction's replacement history


class Codex:
    """Writes threads below `<home>/.codex/sessions`."""

    floor = 48_000  # bytes of a thread with one short turn

    def __init__(self, home: str, text: Text) -> None:
        self.root = os.path.join(home, ".codex", "sessions")
        rng = Random("codex")
        self.instructions = text.piece(text.prose, rng, 21_400)
        self.skills = "<skills_instructions>\n" + text.piece(text.prose, rng, 4600)
        self.permissions = "<permissions instructions>\n" + text.piece(text.prose, rng, 360)

    def identify(self, session: Session) -> str:
        """A UUID whose beginning is the time, as Codex makes them."""
        digits = f"{session.began:012x}"
        rest = f"{session.random('id').getrandbits(74):019x}"
        return f"{digits[:8]}-{digits[8:]}-7{rest[:3]}-8{rest[3:6]}-{rest[6:18]}"

    def write(self, session: Session, script: Script) -> Facts:
        """Write one rollout."""
        moment = iso(session.began)
        folder = os.path.join(self.root, *moment[:10].split("-"))
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"rollout-{moment[:19].replace(':', '-')}-{session.id}.jsonl")
        with open(path, "wb", buffering=1 << 20) as file:
            rollout = _Rollout(self, session, file)
            rollout.write(script)
        os.utime(path, (rollout.now / 1000, rollout.now / 1000))
        return rollout.facts

    def close(self) -> None:
        """Nothing is kept open between sessions."""


class _Rollout:
    """One file: numbered lines, turns, and the running count of tokens."""

    def __init__(self, codex: Codex, session: Session, file: Any) -> None:
        self._codex = codex
        self._session = session
        self._file = file
        self._random = session.random("codex")
        self.now = session.began
        self.facts = Facts()
        self._ordinal = self._history = self._tokens = 0
        self._turn = self._trigger = ""
        self._prompts: list[dict[str, Any]] = []

    def write(self, script: Script) -> None:
        self._meta()
        for event in script:
            if isinstance(event, Compaction):
                self._compaction(event)
            else:
                self._play(event)

    # -- lines -------------------------------------------------------------------------------------------------

    def _put(self, kind: str, payload: dict[str, Any], **more: Any) -> None:
        record = {"timestamp": iso(self.now), "ordinal": self._ordinal, "type": kind, "payload": payload, **more}
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        self._file.write(line)
        self._session.written += len(line)
        self._ordinal += 1
        self.now += self._random.randrange(5, 2000)

    def _item(self, payload: dict[str, Any], kinds: list[str] | None = None) -> None:
        """A response item: what goes to the model."""
        passed: dict[str, Any] = {"turn_id": self._turn, "create_time": self.now / 1000}
        if kinds:
            provenance = [{"provenance": {"type": "user" if kind == "user.text" else "harness"}} for kind in kinds]
            passed |= {"content_item_kinds": kinds, "content_item_metadata": provenance}
        self._history += 1
        metadata = {"history_sequence": self._history, "client_authored": False, "model_search_state": "unused"}
        self._put("response_item", {**payload, "internal_chat_message_metadata_passthrough": passed}, metadata=metadata)

    def _event(self, kind: str, **fields: Any) -> None:
        self._put("event_msg", {"type": kind, **fields})

    def _shown(self, item: dict[str, Any]) -> None:
        """An item on the screen."""
        times = {"started_at_ms": self.now, "completed_at_ms": self.now}
        self._event("item_completed", thread_id=self._session.id, turn_id=self._turn, item=item, **times)

    def _name(self, prefix: str) -> str:
        return f"{prefix}_0{self._random.getrandbits(256):051x}"[:53]

    # -- the thread --------------------------------------------------------------------------------------------

    def _meta(self) -> None:
        session = self._session
        spawn = {"parent_thread_id": session.parent and session.parent.id, "depth": 1, "agent_role": "explorer"}
        payload: dict[str, Any] = {
            "session_id": (session.parent or session).id,
            "id": session.id,
            "timestamp": iso(session.began),
            "cwd": session.directory,
            "originator": "codex-tui" if session.interactive else "codex_exec",
            "cli_version": "0.171.0",
            "source": "cli" if session.interactive else "exec",
            "thread_source": "user",
            "model_provider": "openai",
            "base_instructions": {"text": self._codex.instructions, "provenance": {"type": "model", "model": _MODEL}},
            "history_mode": "paginated",
            "git": {"commit_hash": self._name("c"), "branch": session.branch} if session.branch else {},
        }
        if session.parent:
            payload |= {"source": {"subagent": {"thread_spawn": spawn}}, "thread_source": "subagent"}
            payload["parent_thread_id"] = session.parent.id
        self._put("session_meta", payload)

    def _context(self) -> None:
        text = [{"type": "input_text", "text": text} for text in (self._codex.skills, self._codex.permissions)]
        developer = {"type": "message", "id": self._name("msg"), "role": "developer", "content": text}
        self._item(developer, ["host_skills.instructions", "permissions.instructions"])
        environment = f"  <cwd>{self._session.directory}</cwd>\n  <shell>bash</shell>\n"
        environment = f"<environment_context>\n{environment}</environment_context>"
        self._said("user", environment, "environments.environment_context")
        self._settings()

    def _settings(self) -> None:
        skills = {"body": self._codex.skills, "includeInstructions": True}
        state = {"host_skills": skills, "model": _MODEL, "environments": {"local": {"cwd": self._session.directory}}}
        self._put("world_state", {"full": True, "state": state})
        mode = {"collaboration_mode": {"mode": "default", "settings": _SETTINGS}}
        turn = {"turn_id": self._turn, "cwd": self._session.directory, "approval_policy": "never", "model": _MODEL}
        self._put("turn_context", {**turn, **mode, "effort": "medium", "summary": "none"})
        known = {"model": _MODEL, "approval_policy": "never", "cwd": self._session.directory, **mode}
        self._event("thread_settings_applied", thread_id=self._session.id, thread_settings=known)

    def _said(self, role: str, text: str, kind: str) -> dict[str, Any]:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        message = {"type": "message", "id": self._name("msg"), "role": role, "content": content}
        self._item(message, [kind])
        return message

    def _play(self, turn: Turn) -> None:
        self._turn = self._name("turn")
        trigger = {"turn_id": self._turn, "turn_trigger": "exec", "root_turn_id": self._turn}
        self._event("task_started", turn_attribution=trigger, turn_id=self._turn, started_at=self.now // 1000)
        if not self._history:
            self._context()
        self._prompts = [*self._prompts, self._said("user", turn.prompt, "user.text")][-_KEPT_PROMPTS:]
        content = [{"type": "text", "text": turn.prompt, "text_elements": []}]
        self._shown({"type": "UserMessage", "id": self._name("um"), "content": content})
        self.facts.user_count += 1
        last = ""
        for step in turn.steps:
            self._step(step)
            last = step.text
        self._event("task_complete", turn_id=self._turn, last_agent_message=last, duration_ms=1585)

    def _step(self, step: Step) -> None:
        """One response of the model, and then the outputs of its calls."""
        if step.thinking:
            name = self._name("rs")
            self._shown({"type": "Reasoning", "id": name, "summary_text": [step.thinking], "raw_content": []})
            summary = [{"type": "summary_text", "text": step.thinking}]
            sealed = f"gAAAAAB{self._random.getrandbits(768):0192x}"
            self._item({"type": "reasoning", "id": name, "summary": summary, "encrypted_content": sealed})
        if step.text:
            self._answer(step.text, "commentary" if step.calls else "final_answer")
        calls = [(call, f"call_{self._name('c')[3:27]}") for call in step.calls]
        for call, call_id in calls:
            self._call(call, call_id)
        self._counted()
        for call, call_id in calls:
            self._output(call, call_id)

    def _answer(self, text: str, phase: str) -> None:
        self.facts.assistant_count += 1
        name = self._name("msg")
        shown = {"type": "AgentMessage", "id": name, "content": [{"type": "Text", "text": text}], "phase": phase}
        self._shown(shown)
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"type": "message", "status": "completed", "id": name, "role": "assistant", "content": content}
        self._item({**message, "phase": phase}, ["unknown"])

    def _counted(self) -> None:
        self._tokens += 5338
        last = {"input_tokens": 5047, "cached_input_tokens": 0, "output_tokens": 291, "total_tokens": 5338}
        total = {**last, "input_tokens": self._tokens - 291, "total_tokens": self._tokens}
        ids = {"thread_id": self._session.id, "turn_id": self._turn, "response_id": self._name("resp")}
        self._put("token_usage_record", {**ids, "usage": last, "turn_token_usage": total, "thread_token_usage": total})
        info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 258_400}
        limits = {"limit_id": "codex", "primary": None, "secondary": None, "credits": None, "plan_type": None}
        self._event("token_count", info=info, rate_limits=limits)

    # -- tools -------------------------------------------------------------------------------------------------

    def _call(self, call: Call, call_id: str) -> None:
        self.facts.tool_count += 1
        if call.tool in ("write", "edit"):
            held = {"type": "custom_tool_call", "id": self._name("ctc"), "status": "completed", "call_id": call_id}
            self._item({**held, "name": "apply_patch", "input": _patch(call)})
            return
        name, arguments = _function(call)
        held = {"type": "function_call", "status": "completed", "id": self._name("fc"), "name": name}
        self._item({**held, "arguments": orjson.dumps(arguments).decode(), "call_id": call_id})

    def _output(self, call: Call, call_id: str) -> None:
        kind, output, item = "function_call_output", call.result, None
        if call.tool in ("write", "edit"):
            kind = "custom_tool_call_output"
            output = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n"
            if call.failed:
                output = "apply_patch verification failed: Failed to find expected lines"
            else:
                change = {call.given["path"]: {"type": "update", "unified_diff": _patch(call), "move_path": None}}
                item = {"type": "FileChange", "id": call_id, "changes": change, "status": "completed"}
        elif call.tool == "agent":
            output = orjson.dumps({"agent_id": call.given["child"].id, "nickname": "Cicero"}).decode()
        elif call.tool == "todo":
            output = "Plan updated"
        else:
            code = int(call.failed)
            text = call.result
            if len(text) > 40_000:  # the model sees the ends, the screen all of it
                text = f"{text[:20_000]}\n…{len(text) // 4 - 10_000} tokens truncated…\n{text[-20_000:]}"
            head = f"Chunk ID: {self._random.getrandbits(24):06x}\nWall time: 0.0 seconds\n"
            output = (
                f"{head}Process exited with code {code}\nOriginal token count: {len(call.result) // 4}\nOutput:\n{text}"
            )
            item = self._execution(call, call_id, code)
        if item:
            self._shown(item)
        self._item({"type": kind, "id": self._name("fco"), "call_id": call_id, "output": output})

    def _execution(self, call: Call, call_id: str, code: int) -> dict[str, Any]:
        command = _function(call)[1]["cmd"]
        return {
            "type": "CommandExecution",
            "id": call_id,
            "process_id": str(self._random.randrange(40_000)),
            "command": ["/bin/bash", "-lc", command],
            "cwd": f"file://{self._session.directory}",
            "parsed_cmd": [{"type": "unknown", "cmd": command}],
            "source": "unified_exec_startup",
            "status": "failed" if code else "completed",
            "aggregated_output": call.result,
            "exit_code": code,
            "duration": {"secs": 0, "nanos": 5450},
        }

    # -- compaction --------------------------------------------------------------------------------------------

    def _compaction(self, compaction: Compaction) -> None:
        self.facts.has_compaction = True
        self._said("assistant", compaction.summary, "unknown")
        self._counted()
        text = "Another language model started to solve this problem and produced a summary of its thinking process."
        skills = [{"type": "input_text", "text": self._codex.skills}]
        developer = {"type": "message", "role": "developer", "content": skills}
        texts = [{"text": prompt["content"][0]["text"], "complete": True} for prompt in self._prompts]
        retained = {"verified_answers": [], "user_messages": texts, "assistant_messages": []}
        kept = {"replacement_history": [*self._prompts, developer], "retained_context": retained}
        self._put("compacted", {"message": f"{text}\n{compaction.summary}", **kept, "window_number": 1})
        self._settings()
        self._shown({"type": "ContextCompaction", "id": self._name("cc")})


def _function(call: Call) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a function call; files are read and searched with the shell."""
    given = call.given
    if call.tool == "todo":
        return "update_plan", {"plan": [{"step": item["content"], "status": item["status"]} for item in given["todos"]]}
    if call.tool == "agent":
        return "spawn_agent", {"message": given["prompt"], "agent_type": "explorer"}
    if call.tool == "read":
        return "exec_command", {"cmd": f"sed -n 1,400p {given['path']}"}
    if call.tool == "search":
        return "exec_command", {"cmd": f"rg -n '{given['pattern']}' {given['path']}"}
    return "exec_command", {"cmd": given["command"]}


def _patch(call: Call) -> str:
    given = call.given
    if call.tool == "write":
        body = f"*** Add File: {given['path']}\n+" + given["content"].replace("\n", "\n+")
    else:
        old, new = (given[key].replace("\n", f"\n{sign}") for key, sign in (("old", "-"), ("new", "+")))
        body = f"*** Update File: {given['path']}\n@@\n-{old}\n+{new}"
    return f"*** Begin Patch\n{body}\n*** End Patch"
