"""What one stored record of Claude Code holds: message records, and facts about the session.

The walk's whole memory is `state`, a JSON value, so that it can be taken up again behind any record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..record import Record, message, tool_call
from ..times import rfc3339
from ._claude_content import Block, blocks, content_of, text_of, thought, told, type_of
from ._claude_copies import Copies, Repeats
from ._claude_files import call_after
from ._claude_prompts import author, origin_of, shown
from ._claude_usage import Usages, count
from .base import Entry, Reference, State
from .tools import is_own, kind_of, result_class

_RECENT = 16  # records whose ids are kept, for copies close by and for what a compaction keeps
_OPEN_CALLS = 256
_SKILLS = 8
_DIRECTORIES = 20


class Reader:
    """Makes entries of a session's records, in the order of the file."""

    def __init__(self, session: Reference, state: State, repeats: Repeats | None = None) -> None:
        state.setdefault("id", 0)
        self.about: Record = state.setdefault("about", {})
        self.calls: dict[str, Any] = state.setdefault("calls", {})
        self.recent: dict[str, int] = state.setdefault("recent", {})
        self.skills: list[str] = state.setdefault("skills", [])
        state.setdefault("newest", "")
        state.setdefault("boundary", None)
        state.setdefault("copied", None)
        state.setdefault("pieces", 0)
        self.state = state
        self._session = session
        self._agent = session.session_id.startswith("agent-")
        self._repeats = repeats
        self._copies = Copies(state)
        self._usages = Usages(state)
        self._readers: dict[Any, Callable[[Record], list[Record]]] = {
            "user": self._user,
            "assistant": self._assistant,
            "system": self._system,
            "attachment": self._attachment,
        }
        self._offset = 0
        self._length = 0
        self._part = 0
        self._ts: str | None = None
        self._replayed: bool | None = None
        self._sidechain: str | None = None
        self._slice: int | None = None

    def entry(self, offset: int, length: int, line: bytes, record: Record | None) -> Entry:
        """The entry of one line at `offset`; `record` is None where nothing could be made of it."""
        if record is None:
            return Entry(line)
        kind = record.get("type")
        ts = record.get("timestamp")
        if ts is not None:
            ts = rfc3339(ts)
        read = self._readers.get(kind) if isinstance(kind, str) else None
        if read is None:
            if kind in ("custom-title", "ai-title"):
                self._titled(record)
            return Entry(line, ts)
        if kind == "attachment" and not _is_queued(record):
            return Entry(line, ts)
        uuid = record.get("uuid")
        if isinstance(uuid, str) and self._repeated(uuid, ts, offset):
            return Entry(line, ts, type=_raw_type(record))
        self._learn(record)
        self._mark(record)
        self._ts, self._slice = ts, None
        self._offset, self._length, self._part = offset, length, 0
        number = self.state["id"]
        messages = read(record)
        self._passed(uuid, ts, number)
        return Entry(line, ts, messages, slice=self._slice)

    def unfinished(self) -> list[Record]:
        """The compaction whose summary has not come, as a record without a text; it is given once."""
        boundary = self.state["boundary"]
        if boundary is None:
            return []
        self.state["boundary"] = None
        record = self._compaction(boundary, "")
        record.update(ts=boundary["ts"], ref=boundary["ref"])
        self._part = 0
        return [record]

    # -- the record's place in the session ---------------------------------------------------------------------

    def _repeated(self, uuid: str, ts: str | None, offset: int) -> bool:
        if self._repeats is None:
            return False
        return self._repeats.stood_before(uuid, ts, offset) or uuid in self.recent

    def _passed(self, uuid: Any, ts: str | None, number: int) -> None:
        """Remember a record, and its first message behind `number` if it gave any."""
        state = self.state
        if ts is not None and ts > state["newest"]:
            state["newest"] = ts
        if isinstance(uuid, str):
            recent = self.recent
            recent[uuid] = number + 1 if state["id"] > number else 0
            if len(recent) > _RECENT:
                del recent[next(iter(recent))]

    def _mark(self, record: Record) -> None:
        origin = record.get("forkedFrom")
        if isinstance(origin, dict) and isinstance(origin.get("sessionId"), str):
            self._replayed = True
            self.about["forked_from"] = {"session_id": origin["sessionId"], "kind": "fork"}
        else:
            copied = self.state["copied"] is not None and self._copies.holds(record, self.about)
            self._replayed = copied or None
        self._sidechain = "sidechain" if record.get("isSidechain") is True and not self._agent else None

    def _learn(self, record: Record) -> None:
        about = self.about
        cwd = record.get("cwd")
        if cwd != about.get("cwd") and isinstance(cwd, str) and cwd:
            about["cwd"] = cwd
            directories = about.setdefault("directories", [])
            if cwd not in directories and len(directories) < _DIRECTORIES:
                directories.append(cwd)
        branch = record.get("gitBranch")
        if branch != about.get("git_branch") and isinstance(branch, str) and branch not in ("", "HEAD"):
            about["git_branch"] = branch
        if "origin" not in about and (origin := origin_of(record.get("entrypoint"))):
            about["origin"] = origin

    def _titled(self, record: Record) -> None:
        for key in ("customTitle", "aiTitle"):
            title = record.get(key)
            if isinstance(title, str) and (title.strip() or key == "customTitle"):
                self.about[key] = title

    def _ref(self) -> Record:
        """Where the next message of this record stands."""
        ref: Record = {"path": self._session.path, "offset": self._offset, "length": self._length}
        if self.state["pieces"] > 1:
            ref["piece"] = self.state["pieces"] - 1
        if self._part:
            ref["part"] = self._part
        self._part += 1
        return ref

    def _message(
        self,
        role: str,
        content: str,
        authorship: str,
        kind: str | None = None,
        thinking: str | None = None,
        tool_calls: list[Record] | None = None,
        model: str | None = None,
        usage: Record | None = None,
        **known: Any,
    ) -> Record:
        self.state["id"] += 1
        return message(
            self._session.harness,
            self._session.session_id,
            self.state["id"],
            role,
            self._ts,
            content,
            authorship=authorship,
            thinking=thinking,
            tool_calls=tool_calls,
            kind=kind,
            replayed=self._replayed,
            model=model,
            agent=self._sidechain,
            usage=usage,
            ref=self._ref(),
            **known,
        )

    # -- the four types of the conversation --------------------------------------------------------------------

    def _user(self, record: Record) -> list[Record]:
        content = content_of(record)
        if content is None:
            return []
        if record.get("isCompactSummary") not in (None, False):
            boundary, self.state["boundary"] = self.state["boundary"], None
            return [self._compaction(boundary or {}, text_of(content))]
        messages = self.unfinished()
        results = [block for block in content if type_of(block) == "tool_result"]
        if results:
            messages += self._results(results, record)
            if len(results) == len(content):
                return messages
            content = [block for block in content if type_of(block) != "tool_result"]
        messages.append(self._typed(record, text_of(content)))
        return messages

    def _typed(self, marks: Record, text: str) -> Record:
        authorship, kind = author(marks, text, self._agent or self._sidechain is not None)
        if kind == "injected-text" and marks.get("sourceToolUseID") in self.skills:
            kind = "skill"
        if authorship != "injected":
            text = shown(text)
        return self._message("user", text, authorship, kind)

    def _results(self, results: list[Block], record: Record) -> list[Record]:
        structured = record.get("toolUseResult") if len(results) == 1 else None
        return [self._result(block, structured) for block in results]

    def _result(self, block: Block, structured: Any) -> Record:
        call = block.get("tool_use_id")
        call = call if isinstance(call, str) else None
        name, own = self._call(call) if call else (None, False)
        if not name or kind_of(self._session.harness, name) not in ("todo", "question"):
            structured = None
        return self._message(
            "tool",
            text_of(blocks(block.get("content"))),
            "tool",
            result_class(self._session.harness, name, own),
            tool_call_id=call,
            tool_name=name,
            is_error=block.get("is_error") is True,
            tool_result=structured,
        )

    def _call(self, call: str) -> tuple[str | None, bool]:
        known = self.calls.pop(call, None)
        if known is not None:
            return known[0], known[1]
        later = call_after(self._session.path, self._offset + self._length, call)
        return (later[0], is_own(self._session.harness, *later)) if later else (None, False)

    def _assistant(self, record: Record) -> list[Record]:
        content = content_of(record)
        if content is None:
            return []
        messages = self.unfinished()
        text, thoughts, calls = told(content)
        if record.get("isApiErrorMessage") not in (None, False):
            return [*messages, self._message("system", text, "injected")]
        response = record["message"]
        model = response.get("model")
        if isinstance(model, str) and model and model != "<synthetic>":
            self.about["model"] = model
        else:
            model = None
        own = [self._called(call) for call in calls] if calls else []
        kind = None
        if not text and (calls or thoughts) and all(own):
            kind = "self" if calls else "reasoning"
        usage = self._usages.added(response, record.get("requestId"))
        messages.append(self._answer(text, thoughts, calls, kind, model, usage))
        return messages

    def _answer(
        self,
        text: str,
        thoughts: list[Block],
        calls: list[Block],
        kind: str | None,
        model: str | None,
        usage: Record | None,
    ) -> Record:
        thinking = "\n".join(map(thought, thoughts)) or None if thoughts else None
        made = [tool_call(_id_of(call), _name_of(call), call.get("input")) for call in calls] if calls else None
        return self._message("assistant", text, "model", kind, thinking, made, model, usage)

    def _called(self, block: Block) -> bool:
        """A call of a tool, which from now on waits for its result: whether it is one of our own."""
        harness, call, name = self._session.harness, _id_of(block), _name_of(block)
        own = is_own(harness, name, block.get("input"))
        if call is not None:
            self.calls[call] = [name, own]
            if len(self.calls) > _OPEN_CALLS:
                del self.calls[next(iter(self.calls))]
            if kind_of(harness, name) == "skill":
                self.skills.append(call)
                del self.skills[:-_SKILLS]
        return own

    def _system(self, record: Record) -> list[Record]:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            messages = self.unfinished()
            data = record.get("compactMetadata")
            data = data if isinstance(data, dict) else {}
            trigger = data.get("trigger")
            self.state["boundary"] = {
                "ts": self._ts,
                "ref": self._ref(),
                "trigger": trigger if isinstance(trigger, str) else None,
                "tokens_before": count(data.get("preTokens")) or None,
                "slice": self._kept(data),
            }
            return messages
        content = record.get("content")
        if subtype == "local_command" and isinstance(content, str):
            return [*self.unfinished(), self._message("user", content, "injected", "command")]
        return []

    def _kept(self, data: Record) -> int | None:
        """The first of the records just before a compaction that the model goes on to see."""
        preserved = data.get("preservedMessages")
        uuids = preserved.get("uuids") if isinstance(preserved, dict) else None
        segment = data.get("preservedSegment")
        if not isinstance(uuids, list):
            uuids = [segment.get("headUuid")] if isinstance(segment, dict) else []
        known = [self.recent.get(uuid, 0) for uuid in uuids if isinstance(uuid, str)]
        return min((number for number in known if number), default=None)

    def _compaction(self, boundary: Record, summary: str) -> Record:
        self._slice = boundary.get("slice")
        return self._message(
            "system",
            summary,
            "injected",
            "compaction",
            trigger=boundary.get("trigger"),
            tokens_before=boundary.get("tokens_before"),
        )

    def _attachment(self, record: Record) -> list[Record]:
        queued = record["attachment"]
        marks = queued if queued.get("commandMode") in (None, "prompt") else {**queued, "isMeta": True}
        return [*self.unfinished(), self._typed(marks, text_of(blocks(queued.get("prompt"))))]


def _is_queued(record: Record) -> bool:
    """Whether an attachment is a prompt (or a notification) that came while the model worked."""
    held = record.get("attachment")
    return isinstance(held, dict) and held.get("type") == "queued_command"


def _raw_type(record: Record) -> str:
    """The raw type of a record that stood before in the file and gives no message again."""
    kind = record["type"]
    if kind == "user" and any(type_of(block) == "tool_result" for block in content_of(record) or ()):
        return "tool"
    return kind if kind in ("user", "assistant") else "system"


def _id_of(call: Block) -> str | None:
    id = call.get("id")
    return id if isinstance(id, str) else None


def _name_of(call: Block) -> str:
    name = call.get("name")
    return name if isinstance(name, str) else ""
