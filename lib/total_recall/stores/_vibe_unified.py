"""Vibe's unified transcript as records: messages, reasoning, effects and checkpoints, then what only the model saw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record, message, tool_call
from ..times import rfc3339
from . import tools
from ._vibe_context import left_out
from ._vibe_legacy import Folder
from ._vibe_text import (
    FRAME,
    FRAME_END,
    HARNESS,
    content_of,
    dumped,
    encodable,
    fields,
    is_command,
    string,
    summary_of,
    text_of,
    unmarked,
)
from ._vibe_transcript import Placed, Transcript, entry_in
from .base import Entry, State

_IMPORTED = re.compile(r"imported-(\d{1,9})\Z")
_TYPED = ("turn_start", "turn_steer")
_UNFINISHED = ("pending", "running", "blocked")
_TRIGGERS = {"automatic": "auto"}


class Unified:
    """The entries of one session of the unified store.

    `child` tells a sub-agent's session. `legacy` is the folder that the session's beginning was imported from: its
    lines stand in place of the imported entries, which are copies of the texts alone.
    """

    def __init__(
        self, folder: str, session_id: str, notices: Notices, *, child: bool, legacy: Folder | None = None
    ) -> None:
        self._folder = folder
        self._session_id = session_id
        self._notices = notices
        self._child = child
        self._legacy = legacy
        self._whole = False
        self._lines: Iterator[tuple[dict[str, Any] | None, Entry]] | None = None

    @cached_property
    def _transcript(self) -> Transcript:
        return Transcript(self._folder, self._notices, whole=self._whole)

    # -- the walk ----------------------------------------------------------------------------------------------

    def entries(self, state: State, *, whole: bool = False) -> Iterator[Entry]:
        """The transcript's entries from where `state` stands, then the messages that only the model's context has.

        `state`: `id`, `offset` (bytes before the piece), `at` (entries passed), `mark` (see `Placed`), `open` (id,
        reserved record id and mark of effects without a result), `imported` (the highest number of an imported
        entry), `legacy` (where the walk of the legacy folder stands), `copied` (its bytes passed), `diverged` (whether
        it was left early), `frame` (the first record id in a copied frame), `context` (context messages passed). With
        `whole`, the walk ends before a text that is still being written.
        """
        self._whole = whole
        for key in ("id", "offset", "at", "imported", "copied", "context"):
            state.setdefault(key, 0)
        state.setdefault("mark", None)
        state.setdefault("open", [])
        if "legacy" not in state:
            state["legacy"] = {} if self._legacy else None
        yield from self._results(state)
        for placed in self._transcript.entries(state["mark"]):
            if placed.number < state["at"]:
                continue
            if whole and _being_written(placed.entry):
                return
            yield from self._placed(placed, state)
        yield from self._rest_of_legacy(state)
        yield from self._context(state)

    def _results(self, state: State) -> Iterator[Entry]:
        """The results that have come, since the walk stood here, for effects that were running then."""
        for waiting in list(state["open"]):
            name, number, mark = waiting
            placed = self._transcript.find(name, mark) or self._transcript.find(name)
            if placed is None or unfinished(placed.entry):
                continue
            state["open"].remove(waiting)
            result = self._result(placed, number)
            yield Entry(partial(dumped, placed.entry), result["ts"], [result])

    def _placed(self, placed: Placed, state: State) -> Iterator[Entry]:
        """One transcript entry, or the legacy lines up to the one it is a copy of."""
        number = imported(placed.entry)
        yield from self._lines_up_to(number, placed, state) if number else self._rest_of_legacy(state)
        if state["at"] <= placed.number:
            _pass(placed, state)
            yield self.entry(placed, state)

    def entry(self, placed: Placed, state: State) -> Entry:
        """The entry of one transcript entry; `state` is moved past its records."""
        entry = placed.entry
        make = {
            "message": self._message,
            "reasoning": self._reasoning,
            "effect": self._effect,
            "checkpoint": self._checkpoint,
        }.get(text_of(entry.get("type")))
        frame = state.get("frame")
        records = make(placed, state) if make else []
        ended = frame is not None and state.get("frame") is None
        return Entry(partial(dumped, entry), rfc3339(entry.get("createdAt")), records, slice=frame if ended else None)

    def entry_at(self, path: str, name: str) -> Entry | None:
        """The entry with this id, in `path` or, if it has moved on, anywhere; its records are numbered from 1."""
        try:
            entry = entry_in(path, name, self._notices)
        except (FileNotFoundError, Unreadable):
            entry = None
        placed = Placed(0, path, [0, "", 0, 0], entry) if entry else self._transcript.find(name)
        if placed and _is_compaction(placed.entry):
            placed = self._transcript.find(name) or placed  # the summary depends on what comes after
        return self.entry(placed, {"id": 0, "open": [], "frame": 1}) if placed else None

    # -- the legacy folder that the beginning was imported from ------------------------------------------------

    def _lines_up_to(self, number: int, placed: Placed, state: State) -> Iterator[Entry]:
        """The lines up to the one that `imported-<number>` copies, as long as the two agree."""
        state["imported"] = max(state["imported"], number)
        while line := self._next_line(state):
            value, entry = line
            copied = state["legacy"]["count"] >= number
            if copied and not _same(fields(value), placed.entry):
                break
            if copied:
                _pass(placed, state)
            self._take(state)
            yield entry
            if copied:
                return
        if state["legacy"] is not None and self._legacy is not None:
            state["diverged"] = True
            self._notices.say(f"{self._legacy.path}: not what {self._folder} was imported from any more; read the copy")
        self._leave_legacy(state)

    def _rest_of_legacy(self, state: State) -> Iterator[Entry]:
        """The lines of tools after the last imported message: an import copies none."""
        while line := self._next_line(state):
            value, entry = line
            if fields(value).get("role") != "tool":
                break
            self._take(state)
            yield entry
        self._leave_legacy(state)

    def _next_line(self, state: State) -> tuple[dict[str, Any] | None, Entry] | None:
        """The legacy folder's next line; the number of its record is given away only by `_take`."""
        if state["legacy"] is None or self._legacy is None:
            return None
        if self._lines is None:
            self._lines = self._legacy.entries(state["legacy"])
        state["legacy"]["id"] = state["id"]
        try:
            return next(self._lines, None)
        except (Unreadable, FileNotFoundError):
            return None

    def _take(self, state: State) -> None:
        state["offset"] += state["legacy"]["offset"] - state["copied"]
        state["id"], state["copied"] = state["legacy"]["id"], state["legacy"]["offset"]

    def _leave_legacy(self, state: State) -> None:
        state["legacy"] = self._lines = None

    # -- records -----------------------------------------------------------------------------------------------

    def _record(self, placed: Placed, number: int, role: str, content: str = "", **known: Any) -> Record:
        name, ts = string(placed.entry.get("id")), rfc3339(placed.entry.get("createdAt"))
        return message(
            HARNESS,
            self._session_id,
            number,
            role,
            known.pop("ts", None) or ts,
            content,
            ref={"path": placed.path, "entry": name} if name else None,
            replayed=True if imported(placed.entry) else None,
            **known,
        )

    def _message(self, placed: Placed, state: State) -> list[Record]:
        entry = placed.entry
        role, text, copied = entry.get("role"), content_of(entry.get("content")), imported(entry) > 0
        if role not in ("user", "assistant"):
            return []
        if role == "user" and copied and text.startswith(FRAME) and FRAME_END not in text:
            state["frame"] = state["id"] + 1  # the prompts that it introduces follow as messages of their own
            return []
        state["id"] += 1
        if role == "assistant":
            return [self._record(placed, state["id"], role, text, authorship="model")]
        if copied and (text.startswith(FRAME) or (text.startswith(FRAME_END) and state.get("frame"))):
            state.pop("frame", None)
            return [self._compaction(placed, state["id"], summary_of(text))]
        author, kind = self._authorship(entry.get("source"), text, copied=copied)
        return [self._record(placed, state["id"], role, text, authorship=author, kind=kind)]

    def _authorship(self, source: Any, text: str, *, copied: bool) -> tuple[str, str | None]:
        """Who wrote a text in the user role, and its class where that does not follow.

        What an import or a fork copied has lost its mark; there the program's own envelopes decide.
        """
        if copied or source is None:
            injected = unmarked(text)
        else:
            injected = source not in _TYPED
        if injected:
            return "injected", "command" if is_command(text) else None
        return ("delegated" if self._child else "human"), None

    def _reasoning(self, placed: Placed, state: State) -> list[Record]:
        state["id"] += 1
        thinking = text_of(placed.entry.get("text")) or text_of(placed.entry.get("summary"))
        known: Record = {"authorship": "model", "thinking": thinking, "kind": "reasoning"}
        return [self._record(placed, state["id"], "assistant", **known)]

    def _effect(self, placed: Placed, state: State) -> list[Record]:
        """A tool's call and, once there is one, its result; the person's own `!command` is one record."""
        entry, detail = placed.entry, fields(placed.entry.get("detail"))
        if detail.get("kind") == "shell":
            return [self._command(placed, state)]
        state["id"] += 2
        name, arguments = text_of(detail.get("toolName")), encodable(detail.get("input"))
        calls = [tool_call(string(entry.get("id")), name, arguments)]
        known: Record = {"authorship": "model", "tool_calls": calls, "kind": tools.call_class(HARNESS, name, arguments)}
        call = self._record(placed, state["id"] - 1, "assistant", **known)
        if not unfinished(entry):
            return [call, self._result(placed, state["id"])]
        self._wait(placed, state)
        return [call]

    def _wait(self, placed: Placed, state: State) -> None:
        """Remember an effect whose result has not come."""
        if name := string(placed.entry.get("id")):
            state["open"].append([name, state["id"], placed.mark])

    def _result(self, placed: Placed, number: int) -> Record:
        entry, detail = placed.entry, fields(placed.entry.get("detail"))
        name = text_of(detail.get("toolName"))
        own = tools.call_class(HARNESS, name, detail.get("input")) == "self"
        told = tools.kind_of(HARNESS, name) in ("todo", "question")
        return self._record(
            placed,
            number,
            "tool",
            _output(entry),
            ts=rfc3339(entry.get("updatedAt")),
            authorship="tool",
            tool_call_id=string(entry.get("id")),
            tool_name=name or None,
            is_error=_failed(entry),
            kind=tools.result_class(HARNESS, name, own),
            tool_result=encodable(_structured(entry)) if told else None,
        )

    def _command(self, placed: Placed, state: State) -> Record:
        state["id"] += 1
        entry = placed.entry
        command = text_of(fields(fields(entry.get("detail")).get("input")).get("command"))
        text = "\n".join(filter(None, [f"!{command}", "" if unfinished(entry) else _output(entry)]))
        return self._record(placed, state["id"], "user", text, authorship="injected", kind="command")

    def _checkpoint(self, placed: Placed, state: State) -> list[Record]:
        """A compaction that worked; all other checkpoints are bookkeeping."""
        if not _is_compaction(placed.entry):
            return []
        state["id"] += 1
        trigger = string(fields(placed.entry.get("details")).get("trigger"))
        return [self._compaction(placed, state["id"], self._summary(placed), _TRIGGERS.get(trigger or "", trigger))]

    def _compaction(self, placed: Placed, number: int, summary: str, trigger: str | None = None) -> Record:
        known: Record = {"authorship": "injected", "kind": "compaction", "trigger": trigger}
        return self._record(placed, number, "system", summary, **known)

    def _summary(self, placed: Placed) -> str:
        """The summary of the latest compaction in the snapshot, out of the model's context; others are not kept."""
        if placed.mark[1] == "journal":
            return ""
        later = self._transcript.entries(placed.mark, snapshot=True)
        if any(_is_compaction(other.entry) for other in later if other.number > placed.number):
            return ""
        for known in reversed(self._transcript.context()):
            text = content_of(fields(known.get("message")).get("content"))
            if known.get("source") == "injection" and text.startswith((FRAME, FRAME_END)):
                return summary_of(text) if "<compaction_summary>" in text else ""
        return ""

    # -- what only the model's context has ---------------------------------------------------------------------

    def _context(self, state: State) -> Iterator[Entry]:
        """The messages of the model's context that the transcript leaves out; they hold no records."""
        known = self._transcript.context()
        retold = state["copied"] > 0 and not state.get("diverged")
        for place, kind in left_out(known, state["imported"], retold=retold):
            if place >= state["context"]:
                state["context"] = place + 1
                yield Entry(partial(dumped, known[place]), type=kind)


def _pass(placed: Placed, state: State) -> None:
    state["at"] = placed.number + 1
    state["mark"] = placed.mark
    state["offset"] = max(state["offset"], placed.mark[3] + state["copied"])


def imported(entry: dict[str, Any]) -> int:
    """The n of `imported-<n>`, which an import or a fork calls its copy of the n-th message; else 0."""
    found = _IMPORTED.match(text_of(entry.get("id")))
    return int(found[1]) if found else 0


def _same(line: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Whether a transcript message is the copy of a legacy line."""
    blocks = entry.get("content")
    texts = [fields(block).get("text") for block in blocks] if isinstance(blocks, list) else []
    copy = "\n".join(text for text in texts if isinstance(text, str))
    return line.get("role") == entry.get("role") and text_of(line.get("content")) == copy


def _being_written(entry: dict[str, Any]) -> bool:
    return entry.get("type") in ("message", "reasoning") and entry.get("generationStatus") == "in_progress"


def unfinished(entry: dict[str, Any]) -> bool:
    status = fields(entry.get("state")).get("status")
    return status is None or status in _UNFINISHED


def _is_compaction(entry: dict[str, Any]) -> bool:
    """Whether an entry is a compaction that worked; a failed one carries an error."""
    return (
        entry.get("type") == "checkpoint"
        and entry.get("kind") == "compaction"
        and fields(entry.get("details")).get("error") is None
        and entry.get("message") != "Context compaction failed"
    )


def _structured(entry: dict[str, Any]) -> Any:
    """The value that a tool gave back, in its envelope or, from some of the program's own tools, without one."""
    output = fields(fields(entry.get("state")).get("output"))
    return output.get("structured_content") if "type" in output or "structured_content" in output else output


def _output(entry: dict[str, Any]) -> str:
    """What a finished effect gave back, as text: its own text, else its streams or its structured value."""
    state = fields(entry.get("state"))
    output, structured = fields(state.get("output")), fields(_structured(entry))
    error = fields(state.get("error") or output.get("error"))
    texts = [string(state.get("outputText")) or content_of(output.get("content"))]
    if not texts[0]:
        streams = [structured.get("stdout"), structured.get("stderr")]
        if any(isinstance(stream, str) for stream in streams):
            texts = [stream.rstrip("\n") for stream in streams if isinstance(stream, str)]
            if structured.get("returncode") not in (0, None):
                texts.append(f"returncode: {structured['returncode']}")
        elif isinstance(structured.get("content"), str):
            texts = [structured["content"]]
        elif structured:
            texts = [text_of(structured)]
    texts += [text_of(error.get("message")), text_of(state.get("reason"))]
    return "\n".join(text for text in texts if text)


def _failed(entry: dict[str, Any]) -> bool:
    state, structured = fields(entry.get("state")), fields(_structured(entry))
    return (
        state.get("status") != "completed"
        or structured.get("returncode") not in (0, None)
        or structured.get("timed_out") is True
        or fields(state.get("display")).get("success") is False
    )
