"""What one event of GitHub Copilot CLI holds, and what one entry of the timeline that older versions kept.

An event is `{"type", "data", "id", "timestamp", "parentId"}`, with `agentId` where a sub-agent did it. Requests of
tools stand in the model's message; how they ended, in an event of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..record import Record, attachment, base64_size
from ..times import rfc3339
from ._transcript import Reader, count, loaded, mapping, sequence, string
from .base import Reference, State

_RESPONSES = 16  # usage that waits for its message
_TYPED = frozenset((None, "user"))  # where a prompt comes from; all else the program sends
_TRIGGERS = {"manual": "manual"}
_RAW_TYPES = {"user": "user", "assistant": "assistant", "tool": "tool"}
_TODO = re.compile(r"\s*[-*]\s*\[(.)\]\s*(.+)")
_MARKS = {
    " ": "pending",
    "x": "completed",
    "X": "completed",
    "-": "in_progress",
    "~": "in_progress",
    ">": "in_progress",
}


class CopilotReader(Reader):
    """Makes message records of the events of Copilot CLI up to 1.0.

    Besides what every Reader keeps, `state` has `usage` (of responses whose message has not come), `copied` (the time
    of a fork: events before it are copies), `todos` (lists that a call gave, until its result) and `asked` (calls that
    the person made).
    """

    def __init__(self, session: Reference, state: State) -> None:
        super().__init__(session, state)
        self.usage: dict[str, Record] = state.setdefault("usage", {})
        self.todos: dict[str, Any] = state.setdefault("todos", {})
        self.asked: list[str] = state.setdefault("asked", [])
        state.setdefault("copied", None)
        self._marks: Record = {}
        self._delegated = False
        self._readers: dict[Any, Callable[[Record], list[Record]]] = {
            "session.start": self._context,
            "session.resume": self._context,
            "session.context_changed": lambda data: self._context({"context": data}),
            "session.model_change": self._model,
            "session.usage_record": self._used,
            "session.compaction_complete": self._compaction,
            "session.error": self._failure,
            "session.warning": self._failure,
            "user.message": self._user,
            "assistant.message": self._assistant,
            "assistant.reasoning": self._reasoning,
            "tool.user_requested": self._requested,
            "tool.execution_start": self._started,
            "tool.execution_complete": self._completed,
            "skill.invoked": lambda data: self._put(data, kind="skill"),
            "system.notification": self._put,
            "system.message": lambda data: [self._system(string(data.get("content")) or "")],
            # entries of the timeline
            "user": lambda entry: self._prompt(string(entry.get("text")) or "", entry),
            "copilot": lambda entry: [self.answer(string(entry.get("text")) or "", [], None, **self._marks)],
            "tool_call_requested": self._timeline_call,
            "tool_call_completed": self._timeline_result,
            "info": lambda entry: [self._system(string(entry.get("text")) or "")],
            "error": lambda entry: [self._system(string(entry.get("text")) or "")],
        }

    def read(self, record: Record) -> list[Record]:
        kind = record.get("type")
        read = self._readers.get(kind) if isinstance(kind, str) else None
        if read is None:
            if "sessionId" in record:  # the head of a document
                self.ts = rfc3339(record.get("startTime"))
                self._context(record)
            return []
        if record.get("ephemeral") is True:
            return []
        if self.repeated(record.get("id")):
            self.type = _RAW_TYPES.get(str(kind).partition(".")[0])
            return []
        data = mapping(record.get("data")) if "." in str(kind) else record
        copied = self.state["copied"]
        self._delegated = bool(string(record.get("agentId")) or string(data.get("parentToolCallId")))
        self._marks = {
            "replayed": True if copied and self.ts and self.ts < copied else None,
            "agent": "sidechain" if self._delegated else None,
        }
        return read(data)

    # -- the session -------------------------------------------------------------------------------------------

    def _context(self, data: Record) -> list[Record]:
        about, context = self.about, mapping(data.get("context"))
        if cwd := string(context.get("cwd")):
            folders = about.setdefault("directories", [])
            if cwd not in folders:
                folders.append(cwd)
                del folders[20:]
                about["directory"] = folders[0]
        if branch := string(context.get("branch")):
            about["git_branch"] = branch
        if model := string(data.get("selectedModel")):
            about["model"] = model
        return []

    def _model(self, data: Record) -> list[Record]:
        if model := string(data.get("newModel")):
            self.about["model"] = model
        return []

    def _used(self, data: Record) -> list[Record]:
        used = mapping(data.get("usage"))
        call = string(used.get("apiCallId")) or ""
        read, written = count(used.get("cacheReadTokens")), count(used.get("cacheWriteTokens"))
        self.usage[call] = {
            "input": max(count(used.get("inputTokens")) - read - written, 0),
            "output": count(used.get("outputTokens")),
            "cache_read": read,
            "cache_write": written,
            "reasoning": count(used.get("reasoningTokens")),
        }
        if len(self.usage) > _RESPONSES:
            del self.usage[next(iter(self.usage))]
        return []

    def _compaction(self, data: Record) -> list[Record]:
        if data.get("success") is not True:
            return []
        trigger = string(data.get("trigger"))
        return [
            self.say(
                "system",
                string(data.get("summaryContent")) or "",
                authorship="injected",
                kind="compaction",
                trigger=_TRIGGERS.get(trigger, "auto") if trigger else None,
                tokens_before=count(data.get("preCompactionTokens")) or None,
                **self._marks,
            )
        ]

    def _failure(self, data: Record) -> list[Record]:
        message = string(data.get("message"))
        return [self._system(message)] if message else []

    def _system(self, text: str) -> Record:
        return self.say("system", text, authorship="injected", **self._marks)

    def _put(self, data: Record, **known: Any) -> list[Record]:
        """What the program says in the user's role."""
        text = string(data.get("content"))
        return [self.injected(text, **known, **self._marks)] if text else []

    # -- the conversation --------------------------------------------------------------------------------------

    def _user(self, data: Record) -> list[Record]:
        source = data.get("source")
        text = string(data.get("content")) or ""
        typed = (source is None or isinstance(source, str)) and source in _TYPED
        if not typed or data.get("isAutopilotContinuation") is True or data.get("inputOrigin") is not None:
            kind = "skill" if isinstance(source, str) and source.startswith("skill") else None
            return [self.injected(text, kind=kind, **self._marks)]
        return self._prompt(text, data)

    def _prompt(self, text: str, data: Record) -> list[Record]:
        files = [*sequence(data.get("attachments")), *sequence(data.get("imageAttachments"))]
        content = "\n".join([text, *(_attached(file) for file in files if isinstance(file, dict))])
        return [self.say("user", content, authorship="delegated" if self._delegated else "human", **self._marks)]

    def _assistant(self, data: Record) -> list[Record]:
        model, text = string(data.get("model")), string(data.get("content")) or ""
        if model and not self._delegated:
            self.about["model"] = model
        used = self.usage.pop(string(data.get("apiCallId")) or "", None)
        if used is None and (output := count(data.get("outputTokens"))):
            used = {"input": 0, "output": output, "cache_read": 0, "cache_write": 0, "reasoning": 0}
        calls = [self._call(request) for request in map(mapping, sequence(data.get("toolRequests")))]
        thinking, given = string(data.get("reasoningText")), self.state.pop("thought", None)
        thinking = None if thinking == given else thinking
        self.group = string(data.get("messageId"))
        return [self.answer(text, calls, thinking, model=model, usage=used, **self._marks)]

    def _reasoning(self, data: Record) -> list[Record]:
        """Thinking as an event of its own; the message after it may hold it again."""
        thinking = string(data.get("content"))
        if thinking is None:
            return []
        self.state["thought"] = thinking
        return [self.answer("", [], thinking, **self._marks)]

    def _call(self, request: Record) -> Record:
        id, name, arguments = string(request.get("toolCallId")), request.get("name"), request.get("arguments")
        if isinstance(arguments, str) and isinstance(parsed := loaded(arguments.encode()), dict):
            arguments = parsed
        if id and name == "update_todo" and (items := _todos(mapping(arguments).get("todos"))):
            self.todos[id] = items
        return self.called(id, name, arguments)

    def _requested(self, data: Record) -> list[Record]:
        """A command that the person ran."""
        if id := string(data.get("toolCallId")):
            self.asked.append(id)
            del self.asked[:-_RESPONSES]
        arguments = mapping(data.get("arguments"))
        text = string(arguments.get("command")) or string(data.get("toolName")) or ""
        return [self.injected(text, kind="command", **self._marks)]

    def _started(self, data: Record) -> list[Record]:
        """A call that no message requested."""
        id = string(data.get("toolCallId"))
        if id is None or id in self.calls or id in self.asked:
            return []
        call = self._call({**data, "name": data.get("toolName")})
        return [self.answer("", [call], None, model=string(data.get("model")), **self._marks)]

    def _completed(self, data: Record) -> list[Record]:
        id = string(data.get("toolCallId"))
        failed = data.get("success") is False
        held = mapping(data.get("result"))
        text = string(held.get("content")) or "\n".join(map(_block, sequence(held.get("contents"))))
        error = mapping(data.get("error"))
        text = text or string(error.get("message")) or string(held.get("detailedContent")) or ""
        if data.get("isUserRequested") is True or (id and id in self.asked) or "asked" in self.state.get("ref", {}):
            self.ref["asked"] = True
            return [self.injected(text, kind="command", **self._marks)]
        todos = self.todos.pop(id, None) if id else None
        return [self.result(id, text, failed, tool_result={"todos": todos} if todos else None, **self._marks)]

    # -- the timeline ------------------------------------------------------------------------------------------

    def _timeline_call(self, entry: Record) -> list[Record]:
        call = self._call({**entry, "toolCallId": entry.get("callId")})
        return [self.answer("", [call], None, **self._marks)]

    def _timeline_result(self, entry: Record) -> list[Record]:
        held = mapping(entry.get("result"))
        failed = string(held.get("type")) not in (None, "success")
        return [self.result(entry.get("callId"), string(held.get("log")) or "", failed, entry.get("name"))]


def _attached(file: Record) -> str:
    """A marker for what was attached to a prompt."""
    named = next(filter(None, (string(file.get(key)) for key in ("path", "filePath", "url", "displayName"))), None)
    data = file.get("data")
    kind, media = string(file.get("type")) or "file", string(file.get("mimeType"))
    if isinstance(data, str):
        return attachment("image" if (media or "").startswith("image/") else "file", media, base64_size(data))
    return attachment(kind if kind != "object" else "file", named, None)


def _block(block: Any) -> str:
    held = mapping(block)
    if isinstance(held.get("text"), str):
        return str(held["text"])
    data = held.get("data")
    size = base64_size(data) if isinstance(data, str) else None
    return attachment(string(held.get("type")) or "file", string(held.get("mimeType")) or string(held.get("uri")), size)


def _todos(given: Any) -> list[Record]:
    """The items of a list that is a text with a check box on each line."""
    if not isinstance(given, str):
        return []
    found = (_TODO.match(line) for line in given.splitlines())
    return [{"content": m[2].strip(), "status": _MARKS.get(m[1])} for m in found if m]
