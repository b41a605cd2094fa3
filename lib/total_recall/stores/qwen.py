"""Qwen Code: one JSON Lines transcript a session below `~/.qwen/projects/`.

    projects/<project>/chats/<session id>.jsonl                      a session
    projects/<project>/subagents/<session id>/agent-<id>.jsonl       what it spawned in the background

`<project>` is the working directory with everything but ASCII letters and digits as `-`: it cannot be read back.
Records form a chain, as Claude Code's do (`uuid`, `parentUuid`), and hold contents of the Gemini API. Results of tools
have a type of their own; `system` records are the program's, of which commands and compressions belong to the
conversation. Rewinding goes on from an earlier record. Records that a fork copied say where from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record
from ._files import File, Heads, home, regular_files
from ._jsonl import Lines
from ._parts import calls_of, outcome, parts_of, responses_of, text_of, thinking_of, usage
from ._transcript import Reader, Transcripts, count, loaded, mapping, sequence, string
from ._tree import Node, abandoned
from .base import Memory, Place, Reference, State, newest_first
from .tools import kind_of

_HEAD_LINES = 20
# Kinds of `user` records that hold a person's words; without one it is a prompt.
_TYPED = frozenset((None, "mid_turn_user_message", "realtime_message"))
_DELEGATED = frozenset((None, "agent_launch_prompt"))


class QwenReader(Reader):
    """Makes message records of the records of Qwen Code 0.5 to 0.15."""

    key = "uuid"

    def __init__(self, session: Reference, state: State) -> None:
        super().__init__(session, state)
        self._delegated = session.key is not None
        self._marks: Record = {}
        self._readers: dict[Any, Callable[[Record], list[Record]]] = {
            "user": self._user,
            "assistant": self._assistant,
            "tool_result": self._results,
            "system": self._system,
        }

    def read(self, record: Record) -> list[Record]:
        kind = record.get("type")
        read = self._readers.get(kind) if isinstance(kind, str) else None
        if read is None:
            return []
        if self.repeated(record.get("uuid")):
            self.type = {"tool_result": "tool"}.get(str(kind), str(kind))
            return []
        self._learn(record)
        origin = string(mapping(record.get("forkedFrom")).get("sessionId"))
        if origin:
            self.about["forked_from"] = {"session_id": origin, "kind": "fork"}
        sidechain = record.get("isSidechain") is True and not self._delegated
        self._marks = {"replayed": bool(origin) or None, "agent": "sidechain" if sidechain else None}
        return read(record)

    def _learn(self, record: Record) -> None:
        about = self.about
        if cwd := string(record.get("cwd")):
            folders = about.setdefault("directories", [])
            if cwd not in folders:
                folders.append(cwd)
                del folders[20:]
                about["directory"] = folders[0]
        if branch := string(record.get("gitBranch")):
            about["git_branch"] = branch

    def _user(self, record: Record) -> list[Record]:
        parts = parts_of(record.get("message"))
        subtype, provenance = record.get("subtype"), record.get("provenance")
        typed = _TYPED | _DELEGATED if self._delegated else _TYPED
        prompt = (subtype is None or isinstance(subtype, str)) and subtype in typed
        if not prompt or provenance not in (None, "real_user") or record.get("externalInputKind") is not None:
            return [self.injected(text_of(parts), **self._marks)]
        text = string(mapping(record.get("systemPayload")).get("displayText")) or text_of(parts)
        delegated = self._delegated or self._marks["agent"]
        return [self.say("user", text, authorship="delegated" if delegated else "human", **self._marks)]

    def _assistant(self, record: Record) -> list[Record]:
        parts = parts_of(record.get("message"))
        if model := string(record.get("model")):
            self.about["model"] = model
        used = mapping(record.get("usageMetadata"))
        calls = [self.called(call.get("id"), call.get("name"), call.get("args")) for call in calls_of(parts)]
        self.group = string(record.get("uuid"))
        return [
            self.answer(
                text_of(parts), calls, thinking_of(parts) or None, model=model, usage=_usage(used), **self._marks
            )
        ]

    def _results(self, record: Record) -> list[Record]:
        parts = parts_of(record.get("message"))
        about = mapping(record.get("toolCallResult"))
        responses = responses_of(parts) or [{"id": about.get("callId"), "response": about.get("resultDisplay")}]
        status = string(about.get("status"))
        made = []
        for response in responses:
            text, failed = outcome(response)
            id, name = string(response.get("id")) or string(about.get("callId")), string(response.get("name"))
            if len(responses) == 1 and status:
                failed = status in ("error", "cancelled")
            kept = about.get("resultDisplay") if kind_of(self.session.harness, name or "") == "todo" else None
            made.append(self.result(id, text, failed, name, tool_result=kept, **self._marks))
        beside = text_of([part for part in parts if "functionResponse" not in part])
        return [*made, self.injected(beside, **self._marks)] if beside.strip() else made

    # -- what the program writes -------------------------------------------------------------------------------

    def _system(self, record: Record) -> list[Record]:
        payload = mapping(record.get("systemPayload"))
        subtype = record.get("subtype")
        if subtype == "chat_compression":
            return [self._compression(payload)]
        if subtype == "slash_command":
            return self._command(payload)
        if subtype == "custom_title" and (title := string(payload.get("customTitle"))):
            self.about["title"] = title
        elif subtype == "session_model" and (model := string(payload.get("modelId"))):
            self.about["model"] = model
        elif subtype == "session_source" and (source := string(payload.get("sourceType"))):
            self.about["origin"] = source
        return []

    def _compression(self, payload: Record) -> Record:
        """The summary is what the user's role says first in the history that the model sees from then on."""
        history = [mapping(content) for content in sequence(payload.get("compressedHistory"))]
        said = (text_of(parts_of(content)) for content in history if content.get("role") == "user")
        before = mapping(payload.get("info")).get("originalTokenCount")
        summary = next((text for text in said if text.strip()), "")
        return self.say(
            "system",
            summary,
            authorship="injected",
            kind="compaction",
            tokens_before=count(before) or None,
            **self._marks,
        )

    def _command(self, payload: Record) -> list[Record]:
        """A slash command as it was typed, or what it showed."""
        shown = [string(mapping(item).get("text")) for item in sequence(payload.get("outputHistoryItems"))]
        text = "\n".join(filter(None, shown)) if payload.get("phase") == "result" else string(payload.get("rawCommand"))
        return [self.injected(text, kind="command", **self._marks)] if text else []


class Qwen(Transcripts):
    """The sessions of Qwen Code; `Reference.key` is the id of the session whose sub-agent it is."""

    harness = "qwen"
    reader = QwenReader

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        super().__init__(place, notices, remember)
        self._heads = Heads(self.root, self.remember, _head)
        self._head: dict[str, Record] | None = None

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        """`TOTAL_RECALL_QWEN_ROOT` names the folder of projects, Qwen Code's own variables the one around it."""
        variable = "TOTAL_RECALL_QWEN_ROOT"
        named = environ.get(variable, "").strip()
        given = (environ.get(name, "").strip() for name in ("QWEN_RUNTIME_DIR", "QWEN_HOME"))
        base = next(filter(None, given), "") or home(environ, ".qwen")
        if base.startswith("~/"):
            base = home(environ, base[2:])
        if not named and not base:
            return None
        root = os.path.abspath(named or os.path.join(base, "projects"))
        return Place(root, variable, bool(named), os.path.join(os.path.dirname(root), ".tantivy"))

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """The longest file of each session id; those of sub-agents are only sure to be the same in one folder."""
        found = [file for file in regular_files(self.root, self.notices) if _is_session(file.path, self.root)]
        self._head = self._heads.of(found)
        groups: dict[tuple[str | None, str], list[File]] = {}
        for file in found:
            groups.setdefault((_spawner(file.path), file.stem), []).append(file)
        return newest_first((self._reference(parent, id, files) for (parent, id), files in groups.items()), since)

    def _reference(self, parent: str | None, id: str, files: list[File]) -> Reference:
        files.sort(key=lambda file: (-file.size, file.path))
        first, others = files[0], tuple(file.path for file in files[1:])
        updated = max(file.updated for file in files)
        return Reference(self.harness, id, first.path, updated, first.size, (first.path,), others, parent)

    def parent(self, session: Reference) -> str | None:
        """From the folder that it lies in, or what its first records say."""
        if session.key is not None:
            return str(session.key)
        if self._head is None:
            self.sessions()
        return (self._head or {}).get(session.path, {}).get("parent")

    @staticmethod
    def is_record(record: Record) -> bool:
        return isinstance(record.get("type"), str) and "uuid" in record and "timestamp" in record

    def abandoned(self, session: Reference) -> list[list[int]]:
        """The branches of the chain that a rewind left."""

        def nodes() -> Any:
            for entry in self.entries(session, {}):
                record = mapping(loaded(entry.line()))
                if id := string(record.get("uuid")):
                    parent = string(record.get("parentUuid"))
                    yield Node(id, parent, [message["id"] for message in entry.messages])

        return abandoned(nodes())

    def resume(self, row: Record) -> list[str]:
        """A background agent cannot be reopened by itself: its session is."""
        agent = row["session_id"].startswith("agent-")
        return ["qwen", "--resume", (agent and row.get("parent_session_id")) or row["session_id"]]


def _is_session(path: str, root: str) -> bool:
    folder, name = os.path.split(path)
    if not name.endswith(".jsonl"):
        return False
    return folder == root or os.path.basename(folder) == "chats" or _spawner(path) is not None


def _spawner(path: str) -> str | None:
    """The session whose sub-agent's transcript this is."""
    folders = path.split(os.sep)
    return folders[-2] if folders[-3:-2] == ["subagents"] and folders[-1].startswith("agent-") else None


def _usage(used: Record) -> Record | None:
    names = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount")
    return usage(*(used.get(name) for name in (*names, "totalTokenCount")))


def _head(path: str) -> Record:
    """The session that spawned this one, which is said once, near the beginning."""
    lines = 0
    try:
        for _, _, record in islice(Lines(path, Notices(), Qwen.is_record), _HEAD_LINES):
            lines += 1
            if record and record.get("subtype") == "parent_session":
                parent = string(mapping(record.get("systemPayload")).get("parentSessionId"))
                return {"parent": parent, "whole": True}
    except (OSError, Unreadable):
        pass
    return {"whole": lines == _HEAD_LINES}
