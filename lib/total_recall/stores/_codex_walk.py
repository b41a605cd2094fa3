"""One pass over a Codex thread: which lines are messages, who wrote them, and what belongs to them.

The stream is the response items. UI events give no record of their own, but they tell which user message was typed,
what a response used, and what a script of code mode ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..notices import Notices
from ..record import Record, message, one_line, tool_call
from ..times import rfc3339
from . import _codex_items as items
from ._codex_copies import Copies
from ._codex_files import Document, is_bare_meta
from ._codex_lines import Ahead, Line, unwrapped
from ._codex_tokens import Tokens
from ._jsonl import Lines
from .base import Entry, Reference, State
from .tools import call_class, kind_of, result_class

_OPEN_CALLS = 256  # calls of killed turns never get their output
_DIRECTORIES = 20


class Walk:
    """The entries of a thread from `state` on; `line` is that of the entry just given.

    Besides `id`, `offset` (over all files) and `about`, the state holds: `file` (index), `start` (the offset at which
    it begins), `line` (its lines so far), `given` (how many pieces of the line at `offset` were given); `calls` (open
    tool calls: id -> name, own); `head` (its session_meta was met) and what that says, `child` and `agent` (a sub-agent
    and its path); `said` (the last answer among the UI items), `prompts` (whether UI events show what was typed),
    `trigger` (of a compaction in this turn); `bare` (the lines have no envelopes); and what `Copies` and `Tokens` keep.

    `original` is what `Copies` asks for another thread's file.
    """

    def __init__(
        self,
        session: Reference,
        state: State,
        notices: Notices,
        original: Callable[[str], str | None],
        *,
        whole: bool = False,
    ) -> None:
        self.session = session
        self.state = state
        self._notices = notices
        self._copies = Copies(state, original)
        self._tokens = Tokens(state)
        self._whole = whole
        self._ahead: Ahead
        self.line: Line
        self._path = ""
        self._replayed = False
        for key, value in (("id", 0), ("offset", 0), ("file", 0), ("start", 0), ("line", 0)):
            state.setdefault(key, value)
        state.setdefault("about", {})
        state.setdefault("calls", {})

    def __iter__(self) -> Iterator[Entry]:
        state, files = self.state, self.session.files
        while state["file"] < len(files):
            last = state["file"] == len(files) - 1
            yield from self._file(files[state["file"]], whole=self._whole and last)
            if last:
                return
            state.update(file=state["file"] + 1, start=state["offset"], line=0)

    def _file(self, path: str, *, whole: bool) -> Iterator[Entry]:
        state = self.state
        start, skipped = state["start"], state.get("given", 0)
        offset = state["offset"] - start
        self._path = path
        if path.endswith(".json"):
            source: Lines | Document = Document(path, offset=offset)
        else:
            source = Lines(path, self._notices, self._is_record, offset=offset, number=state["line"], whole=whole)
        self._ahead = Ahead(source)
        for line in self._ahead:
            if skipped and line.start == offset:
                skipped -= 1
                continue
            skipped = 0
            self.line = line
            entry = self._entry(line)
            if line.end - line.start > len(line.text) + 2 and self._in_pieces(line):
                state["given"] = state.get("given", 0) + 1 if state["offset"] == start + line.start else 1
                state["offset"] = start + line.start
            else:
                state.pop("given", None)
                state["offset"], state["line"] = start + line.end, line.number
            yield entry

    def _in_pieces(self, line: Line) -> bool:
        following = next(self._ahead.peek(), None)
        return following is not None and following.start == line.start

    def _is_record(self, value: Record) -> bool:
        """Whether an object found on a damaged line is a whole record of this file's family."""
        if isinstance(value.get("payload"), dict):
            return "timestamp" in value and isinstance(value.get("type"), str)
        if "head" not in self.state and self.state["offset"] == 0 and is_bare_meta(value):
            return True  # the first line, which only then tells that there are no envelopes
        return bool(self.state.get("bare")) and (unwrapped(value)[0] is not None or "record_type" in value)

    # -- lines --------------------------------------------------------------------------------------------------

    def _entry(self, line: Line) -> Entry:
        value = line.value
        if value is None:
            return Entry(line.text)
        kind, payload = unwrapped(value)
        if kind is not None:
            self.state["bare"] = payload is value
        ts = rfc3339(value.get("timestamp"))
        self._replayed = self._copies.active and self._copies.hold(kind, payload, value.get("ordinal"), ts)
        read = _READERS.get(kind) if kind else None
        return Entry(line.text, ts, read(self, payload, ts) if read else None)

    def _say(self, role: str, ts: str | None, content: str, *, authorship: str, **known: Any) -> Record:
        self.state["id"] += 1
        return message(
            "codex",
            self.session.session_id,
            self.state["id"],
            role,
            ts,
            content,
            authorship=authorship,
            replayed=self._replayed or None,
            ref={"path": self._path, "offset": self.line.start, "length": len(self.line.text)},
            **known,
        )

    def _item(self, payload: Record, ts: str | None) -> list[Record]:
        kind = payload.get("type")
        read = _ITEM_READERS.get(kind) if isinstance(kind, str) else None
        return read(self, payload, ts) if read else []

    def _event(self, payload: Record, ts: str | None) -> list[Record]:
        kind, state = payload.get("type"), self.state
        if kind == "token_count":
            return self._counted("event_msg", payload)
        if kind == "task_started":
            # Only turns that a prompt began carry an attribution: a compaction in another one was asked for.
            if "turn_attribution" in payload:
                state["trigger"] = "auto"
            elif "trigger" in state:
                state["trigger"] = "manual"
        elif kind == "item_completed":
            item = items.mapping(payload.get("item"))
            if item.get("type") == "AgentMessage" and isinstance(item.get("id"), str):
                state["said"] = item["id"]
            elif item.get("type") == "UserMessage":
                state["prompts"] = True
            else:
                return self._nested(item, ts)
        elif kind == "user_message":
            state["prompts"] = True
        return []

    def _meta(self, payload: Record, ts: str | None) -> list[Record]:
        """The first session_meta says what the thread is; one right after it, from whom its first lines were copied."""
        state, about = self.state, self.state["about"]
        known = items.about_thread(payload)
        other = known.get("id")
        if state["file"] or state["id"] or "copy" in state:
            return []
        if "head" not in state and (other == self.session.session_id or self.line.start == 0):
            state["head"] = True
            state.update((key, known[key]) for key in ("child", "agent") if key in known)
            if "start" in known:
                self._copies.begin_before(known["start"])
            self._origin(payload, known)
        elif "replay" not in state and other not in (None, self.session.session_id):
            self._copies.begin(other, ts)
            if not state.get("child"):
                kind = "fork" if "forked_from" in about else "rewind"
                about["forked_from"] = {"session_id": other, "kind": kind}
        return []

    def _origin(self, payload: Record, known: Record) -> None:
        about = self.state["about"]
        found = {
            "directory": items.string(payload.get("cwd")),
            "git_branch": items.string(items.mapping(payload.get("git")).get("branch")),
            "origin": items.origin_of(payload),
        }
        about.update((key, value) for key, value in found.items() if value is not None)
        base = known.get("base", [None])[0]
        if base in (self.session.session_id, *self.session.names):
            base = None
        other = known.get("forked") or base
        if other and other != self.session.session_id and not known.get("child"):
            about["forked_from"] = {"session_id": other, "kind": "fork"}

    def _counted(self, kind: str, payload: Record) -> list[Record]:
        self._tokens.meet(kind, payload, self.state["start"] + self.line.start)
        return []

    def _turn(self, payload: Record, ts: str | None) -> list[Record]:
        about = self.state["about"]
        if model := items.string(payload.get("model")):
            about["model"] = model
        if folder := items.string(payload.get("cwd")):
            folders = about.setdefault("directories", [about.setdefault("directory", folder)])
            if not self._replayed and folder not in folders and len(folders) < _DIRECTORIES:
                folders.append(folder)
        return []

    # -- user messages ------------------------------------------------------------------------------------------

    def _message(self, payload: Record, ts: str | None) -> list[Record]:
        role = payload.get("role")
        if role == "user":
            return self._user(payload, ts)
        if role == "assistant":
            return self._answer(payload, ts)
        return [self._say("system", ts, items.text_of(payload.get("content")), authorship="injected")]

    def _user(self, payload: Record, ts: str | None) -> list[Record]:
        content = payload.get("content")
        if isinstance(content, list) and (found := items.kinds(payload)):
            return [self._said_by(kind, parts, ts) for kind, parts in items.runs(content, found)]
        typed = self._is_typed(items.squeezed(content))
        kind = None if typed else items.class_of_envelope(items.text_of(content))
        return [self._said_by("injected-text" if kind is None and typed is False else kind, content, ts)]

    def _said_by(self, kind: str | None, content: Any, ts: str | None) -> Record:
        """A text in the user role: injected, of that class, or with None a person's (in a sub-agent, its task)."""
        text = items.text_of(content)
        if kind is not None:
            return self._say("user", ts, text, authorship="injected", kind=kind)
        child, about = self.state.get("child"), self.state["about"]
        if "title" not in about and not (child and self._replayed) and (words := items.words_of(content).strip()):
            about["title"] = one_line(words)
        return self._say("user", ts, text, authorship="delegated" if child and not self._replayed else "human")

    def _is_typed(self, text: str) -> bool | None:
        """Whether the next UI prompt event shows this text; None when nothing can be told from the lines to come."""
        others = set()
        for line in self._ahead.peek():
            if line.value is None:
                return None
            kind, payload = unwrapped(line.value)
            if kind == "event_msg" and (shown := items.prompt_event(payload)) is not None:
                return True if shown == text else False if shown in others else None
            if kind == "response_item":
                if payload.get("role") == "user":
                    others.add(items.squeezed(payload.get("content")))
                elif payload.get("role") not in ("developer", "system"):
                    return False if self.state.get("prompts") else None
        return None

    def _agent_message(self, payload: Record, ts: str | None) -> list[Record]:
        """A message between agents: the task of this thread, or a report to it."""
        author, recipient = items.string(payload.get("author")) or "", payload.get("recipient")
        task = bool(self.state.get("child")) and recipient == self.state.get("agent", recipient)
        task = task and not author.startswith(f"{recipient}/")
        text = items.agent_text(payload, task=task)
        if task and text.strip():
            self.state["about"].setdefault("title", one_line(text))
        authorship = "delegated" if task else "injected"
        return [self._say("user", ts, text, authorship=authorship, agent=author or None)]

    # -- the model's items --------------------------------------------------------------------------------------

    def _by_model(self, ts: str | None, content: str = "", **known: Any) -> list[Record]:
        model = self.state["about"].get("model")
        return [
            self._say(
                "assistant",
                ts,
                content,
                authorship="model",
                model=model,
                usage=self._tokens.of_item(self._ahead),
                **known,
            )
        ]

    def _answer(self, payload: Record, ts: str | None) -> list[Record]:
        text = items.text_of(payload.get("content"))
        return [] if self._is_summary(payload, text) else self._by_model(ts, text)

    def _is_summary(self, payload: Record, text: str) -> bool:
        """Whether an answer is the summary that a compaction wrote: no UI item shows it, and `compacted` follows."""
        said, seen = self.state.get("said"), 0
        if not text or (said is not None and said == payload.get("id")):
            return False
        for line in self._ahead.peek():
            kind, following = unwrapped(line.value)
            if kind == "compacted":
                return text in str(following.get("message"))
            if (
                line.value is None
                or kind == "response_item"
                or following.get("type") in ("task_complete", "turn_aborted")
            ):
                return False
            seen += 1
        # The end of a file that is being written: what no UI item shows is the summary of a compaction under way.
        return said is not None and isinstance(payload.get("id"), str) and self._ahead.is_last(seen)

    def _reasoning(self, payload: Record, ts: str | None) -> list[Record]:
        thinking = items.thinking_of(payload)
        return self._by_model(ts, thinking=thinking) if thinking else []

    def _call(self, payload: Record, ts: str | None) -> list[Record]:
        call_id, name, arguments = items.call_of(payload)
        kind = self._opened(call_id, name, arguments)
        return self._by_model(ts, tool_calls=[tool_call(call_id, name, arguments)], kind=kind)

    def _opened(self, call_id: str | None, name: str, arguments: Any) -> str:
        kind, calls = call_class("codex", name, arguments), self.state["calls"]
        if call_id is not None:
            calls[call_id] = [name, kind == "self"]
            if len(calls) > _OPEN_CALLS:
                del calls[next(iter(calls))]
        return kind

    def _output(self, payload: Record, ts: str | None) -> list[Record]:
        text, failed = items.output_of(payload.get("output"))
        return [self._result(ts, items.string(payload.get("call_id")), text, failed)]

    def _result(self, ts: str | None, call_id: str | None, text: str, failed: bool) -> Record:
        name, own = self.state["calls"].pop(call_id, (None, False))
        answers = items.structured(text) if name and kind_of("codex", name) == "question" else None
        return self._say(
            "tool",
            ts,
            text,
            authorship="tool",
            tool_call_id=call_id,
            tool_name=name,
            is_error=failed,
            kind=result_class("codex", name, own),
            tool_result=answers,
        )

    def _nested(self, item: Record, ts: str | None) -> list[Record]:
        """What a script of code mode ran: a call and its result, unless the thread has them as items of its own.

        Such UI items are called `exec-<uuid>`; all others bear the id of the item that they show, or show what a
        person ran with `!`, which the thread has as a user message.
        """
        call_id = item.get("id")
        if not isinstance(call_id, str) or not call_id.startswith("exec-") or call_id in self.state["calls"]:
            return []
        known = items.nested_call(item)
        if known is None:
            return []
        name, arguments, output, failed = known
        kind = self._opened(call_id, name, arguments)
        call = self._say(
            "assistant",
            ts,
            "",
            authorship="model",
            tool_calls=[tool_call(call_id, name, arguments)],
            kind=kind,
            model=self.state["about"].get("model"),
        )
        return [call, self._result(ts, call_id, output, failed)]

    # -- compactions --------------------------------------------------------------------------------------------

    def _compacted(self, payload: Record, ts: str | None) -> list[Record]:
        text = items.string(payload.get("message")) or ""
        known = {"trigger": self.state.get("trigger"), "usage": self._tokens.of_compaction()}
        return [self._say("system", ts, text, authorship="injected", kind="compaction", **known)]

    def _remote_compaction(self, payload: Record, ts: str | None) -> list[Record]:
        """A compaction whose summary is encrypted; a `compacted` line that follows is the record of it."""
        for line in self._ahead.peek():
            kind, _ = unwrapped(line.value)
            if kind == "compacted":
                return []
            if kind == "response_item":
                break
        return self._compacted({}, ts)


_ITEM_READERS: dict[str, Callable[[Walk, Record, str | None], list[Record]]] = {
    "message": Walk._message,
    "agent_message": Walk._agent_message,
    "reasoning": Walk._reasoning,
    **dict.fromkeys(items.CALLS, Walk._call),
    **dict.fromkeys(items.OUTPUTS, Walk._output),
    **dict.fromkeys(items.REMOTE_COMPACTIONS, Walk._remote_compaction),
}
_READERS: dict[str, Callable[[Walk, Record, str | None], list[Record]]] = {
    "response_item": Walk._item,
    "event_msg": Walk._event,
    "session_meta": Walk._meta,
    "turn_context": Walk._turn,
    "compacted": Walk._compacted,
    "token_usage_record": lambda walk, payload, _: walk._counted("token_usage_record", payload),
}
