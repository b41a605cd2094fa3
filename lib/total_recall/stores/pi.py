"""Pi: one JSON Lines file a session below `~/.pi/agent/sessions/`.

    --<working directory with dashes>--/<UTC time>_<session id>.jsonl

The first line is the session's header; the others are entries that form a tree (`id`, `parentId`, from version 2 on).
Going back to an earlier entry goes on from there in the same file, so that the last entry tells which path is alive. A
fork is a new file that begins with copies, under the same ids and times, and names the file it comes from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record, attachment, base64_size
from ..times import rfc3339
from ._files import File, Heads, home, regular_files
from ._jsonl import Lines
from ._transcript import Reader, Transcripts, count, loaded, mapping, sequence, string
from ._tree import Node, abandoned
from .base import Memory, Place, Reference, State, newest_first

_HEAD_LINES = 20
_RECENT = 256  # entries whose records are known, for what a compaction keeps
_NAME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_(.+)")
_SKILL = '<skill name="'
_RAW_TYPES = {"user": "user", "assistant": "assistant", "toolResult": "tool"}
_USAGE = {"input": "input", "output": "output", "cache_read": "cacheRead", "cache_write": "cacheWrite"}


class PiReader(Reader):
    """Makes message records of the entries of Pi, versions 1 to 3.

    Besides what every Reader keeps, `state` has `recent` (entry id, or its number where it has none -> the id of its
    record or the next), `entries` (how many there were, with the header), `headed` (whether the header was met) and
    `born` (the time of a fork: entries up to then are copies).
    """

    def __init__(self, session: Reference, state: State) -> None:
        super().__init__(session, state)
        self.recent: dict[str, int] = state.setdefault("recent", {})
        for key, value in (("entries", 0), ("headed", False), ("born", None)):
            state.setdefault(key, value)
        self._replayed: bool | None = None
        self._readers: dict[Any, Callable[[Record], list[Record]]] = {
            "session": self._header,
            "message": self._message,
            "compaction": self._compaction,
            "branch_summary": lambda entry: [self.injected(string(entry.get("summary")) or "", **self._mark)],
            "custom_message": lambda entry: [self.injected(_text(entry.get("content")), **self._mark)],
            "session_info": self._named,
            "model_change": self._model,
        }
        self._roles: dict[Any, Callable[[Record], list[Record]]] = {
            "user": self._user,
            "assistant": self._assistant,
            "toolResult": self._result,
            "bashExecution": self._shell,
            "custom": self._custom,
            "hookMessage": self._custom,
            "branchSummary": self._summary,
            "compactionSummary": self._compaction,
        }

    def read(self, record: Record) -> list[Record]:
        kind = record.get("type")
        read = self._readers.get(kind) if isinstance(kind, str) else None
        if self.repeated(record.get("id")):
            self.type = _RAW_TYPES.get(str(mapping(record.get("message")).get("role")))
            return []
        born = self.state["born"]
        self._replayed = True if born and self.ts and self.ts <= born else None
        messages = read(record) if read else []
        self._passed(string(record.get("id")) or str(self.state["entries"]), messages)
        return messages

    @property
    def _mark(self) -> Record:
        return {"replayed": self._replayed}

    def _passed(self, id: str, messages: list[Record]) -> None:
        self.state["entries"] += 1
        self.recent[id] = messages[0]["id"] if messages else self.state["id"] + 1
        if len(self.recent) > _RECENT:
            del self.recent[next(iter(self.recent))]

    def _header(self, header: Record) -> list[Record]:
        if self.state["headed"]:
            return []
        self.state["headed"] = True
        if cwd := string(header.get("cwd")):
            self.about["directory"] = cwd
        if model := string(header.get("modelId")):
            self.about["model"] = model
        if string(header.get("parentSession")) or string(header.get("branchedFrom")):
            self.state["born"] = self.ts
        return []

    def _named(self, entry: Record) -> list[Record]:
        if name := string(entry.get("name")):
            self.about["title"] = name
        return []

    def _model(self, entry: Record) -> list[Record]:
        if model := string(entry.get("modelId")):
            self.about["model"] = model
        return []

    # -- messages ----------------------------------------------------------------------------------------------

    def _message(self, entry: Record) -> list[Record]:
        held = mapping(entry.get("message"))
        self.ts = self.ts or rfc3339(held.get("timestamp"))
        role = held.get("role")
        read = self._roles.get(role) if isinstance(role, str) else None
        return read(held) if read else []

    def _user(self, held: Record) -> list[Record]:
        text = _text(held.get("content"))
        if text.startswith(_SKILL):
            return [self.injected(text, kind="skill", **self._mark)]
        return [self.say("user", text, authorship="human", **self._mark)]

    def _assistant(self, held: Record) -> list[Record]:
        blocks = _blocks(held.get("content"))
        text = _text([block for block in blocks if block.get("type") not in ("thinking", "toolCall")])
        thoughts = [string(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
        made = [block for block in blocks if block.get("type") == "toolCall"]
        failure = string(held.get("errorMessage"))
        if failure and not (text or made or any(thoughts)):
            return [self.say("system", failure, authorship="injected", **self._mark)]
        if model := string(held.get("model")):
            self.about["model"] = model
        calls = [self.called(call.get("id"), call.get("name"), call.get("arguments")) for call in made]
        thinking = "\n".join(filter(None, thoughts)) or None
        return [self.answer(text, calls, thinking, model=model, usage=_usage(held.get("usage")), **self._mark)]

    def _result(self, held: Record) -> list[Record]:
        failed = held.get("isError") is True
        text = _text(held.get("content"))
        return [self.result(held.get("toolCallId"), text, failed, held.get("toolName"), **self._mark)]

    def _shell(self, held: Record) -> list[Record]:
        """A command that the person ran, with its output."""
        said = (string(held.get("command")), string(held.get("output")))
        return [self.injected("\n".join(filter(None, said)), kind="command", **self._mark)]

    def _custom(self, held: Record) -> list[Record]:
        """What an extension put there."""
        return [self.injected(_text(held.get("content")), **self._mark)]

    def _summary(self, held: Record) -> list[Record]:
        return [self.injected(string(held.get("summary")) or "", **self._mark)]

    def _compaction(self, entry: Record) -> list[Record]:
        kept = entry.get("firstKeptEntryId", entry.get("firstKeptEntryIndex"))
        self.slice = self.recent.get(str(kept)) if isinstance(kept, (str, int)) else None
        before, summary = count(entry.get("tokensBefore")) or None, string(entry.get("summary")) or ""
        return [
            self.say("system", summary, authorship="injected", kind="compaction", tokens_before=before, **self._mark)
        ]


class Pi(Transcripts):
    """The sessions of Pi."""

    harness = "pi"
    reader = PiReader

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        super().__init__(place, notices, remember)
        self._heads = Heads(self.root, self.remember, _head)
        self._head: dict[str, Record] | None = None

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        """`TOTAL_RECALL_PI_ROOT` names the folder of sessions, and so do Pi's own variables, or the one around it."""
        variable = "TOTAL_RECALL_PI_ROOT"
        named, given, agent = (
            environ.get(name, "").strip() for name in (variable, "PI_CODING_AGENT_SESSION_DIR", "PI_CODING_AGENT_DIR")
        )
        base = given or (os.path.join(agent, "sessions") if agent else home(environ, ".pi", "agent", "sessions"))
        if base.startswith("~/"):
            base = home(environ, base[2:])
        if not named and not base:
            return None
        root = os.path.abspath(named or base)
        return Place(root, variable, bool(named), os.path.join(os.path.dirname(root), ".tantivy"))

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """One reference for each session id; the files' headers are read for it, and remembered."""
        found = [file for file in regular_files(self.root, self.notices) if file.path.endswith(".jsonl")]
        self._head = self._heads.of(found)
        groups: dict[str, list[File]] = {}
        for file in found:
            id = self._head[file.path].get("id") or _named(file.stem)
            if id:
                groups.setdefault(id, []).append(file)
        sessions = (self._reference(id, files) for id, files in groups.items())
        return newest_first(sessions, since)

    def _reference(self, id: str, files: list[File]) -> Reference:
        files.sort(key=lambda file: (-file.size, file.path))
        first = files[0]
        names = tuple(dict.fromkeys(file.stem for file in files if file.stem != id))
        return Reference(
            self.harness, id, first.path, max(file.updated for file in files), first.size, (first.path,), names
        )

    @staticmethod
    def is_record(record: Record) -> bool:
        return isinstance(record.get("type"), str) and "timestamp" in record and "role" not in record

    def describe(self, session: Reference, facts: Record) -> Record:
        """The origin of a fork is found by the name of the file that its header names."""
        about = dict(facts["about"])
        if origin := self._origin(session):
            about["forked_from"] = {"session_id": origin, "kind": "fork"}
        return about

    def _origin(self, session: Reference) -> str | None:
        if self._head is None:
            self.sessions()
        heads = self._head or {}
        name = heads.get(session.path, {}).get("from")
        if name is None:
            return None
        known = (head.get("id") for path, head in heads.items() if os.path.basename(path) == name)
        return next(filter(None, known), None) or _named(os.path.splitext(name)[0])

    def abandoned(self, session: Reference) -> list[list[int]]:
        """What is not on the path to the last entry. The first version has no tree, and nothing is left behind."""

        def nodes() -> Any:
            for entry in self.entries(session, {}):
                record = mapping(loaded(entry.line()))
                id = string(record.get("id"))
                if id and record.get("type") != "session":
                    yield Node(id, string(record.get("parentId")), [message["id"] for message in entry.messages])

        return abandoned(nodes())

    def resume(self, row: Record) -> list[str]:
        return ["pi", "--session", row["session_id"]]


def _named(stem: str) -> str | None:
    """The session id in a file's name."""
    found = _NAME.fullmatch(stem)
    return found[1] if found else None


def _head(path: str) -> Record:
    """The session's id, and the name of the file that it was forked from."""
    try:
        for _, _, record in islice(Lines(path, Notices(), Pi.is_record), _HEAD_LINES):
            if record and record.get("type") == "session" and (id := string(record.get("id"))):
                origin = string(record.get("parentSession")) or string(record.get("branchedFrom"))
                name = re.split(r"[/\\]", origin)[-1] if origin else None
                return {"id": id, "from": name, "whole": True}
    except (OSError, Unreadable):
        pass
    return {}


def _blocks(content: Any) -> list[Record]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in sequence(content) if isinstance(block, dict)]


def _text(content: Any) -> str:
    return "\n".join(map(_said, _blocks(content)))


def _said(block: Record) -> str:
    if isinstance(block.get("text"), str):
        return str(block["text"])
    kind, data = string(block.get("type")) or "object", block.get("data")
    if isinstance(data, str):
        return attachment(kind, string(block.get("mimeType")), base64_size(data))
    return f"[{kind}]"


def _usage(used: Any) -> Record | None:
    """What a response used; the thoughts are in the output and not counted apart."""
    counted = {key: count(mapping(used).get(name)) for key, name in _USAGE.items()}
    return counted | {"reasoning": 0} if any(counted.values()) else None
