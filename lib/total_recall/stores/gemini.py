"""Gemini CLI: one file a session below `~/.gemini/tmp/`, JSON Lines from 0.4x on, one JSON document before.

    tmp/<project>/chats/session-<UTC minute>-<8 of the id>.jsonl     a session; .json: a document
    tmp/<project>/chats/<session id>/<id>.jsonl                      a sub-agent's
    tmp/<project>/.project_root                                      the working directory, as a text

`<project>` is a short name that `projects.json`, beside `tmp`, gives the working directory; before that it was the
directory's SHA-256, which every session has too. Resuming a session may leave a file with its id and nothing but the
context in it, and makes JSON Lines of a document: these are the session's other names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record
from ..regular import open_regular
from ._files import File, Heads, home, regular_files
from ._gemini_records import GeminiReader
from ._jsonl import Lines
from ._transcript import Transcripts, loaded, mapping, sequence, string
from ._tree import ranges
from .base import Memory, Place, Reference, newest_first, stamp

_HEAD_LINES = 20
_HEAD_BYTES = 4096
_SMALL_BYTES = 1 << 20
_ID = re.compile(rb'"sessionId":\s?"([^"\\]{1,200})"')
_AGENT = re.compile(rb'"kind":\s?"subagent"')


class Gemini(Transcripts):
    """The sessions of Gemini CLI; `Reference.key` is the id of the session whose sub-agent it is."""

    harness = "gemini"
    reader = GeminiReader

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        super().__init__(place, notices, remember)
        self._heads = Heads(self.root, self.remember, _head)
        self._named: dict[str, Any] | None = None

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        """`TOTAL_RECALL_GEMINI_ROOT` names the folder of projects, `GEMINI_CLI_HOME` the one that holds `.gemini`."""
        variable = "TOTAL_RECALL_GEMINI_ROOT"
        named = environ.get(variable, "").strip()
        base = environ.get("GEMINI_CLI_HOME", "").strip() or home(environ)
        if not named and not base:
            return None
        root = os.path.abspath(named or os.path.join(base, ".gemini", "tmp"))
        return Place(root, variable, bool(named), os.path.join(os.path.dirname(root), ".tantivy"))

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """One reference for each session id; the files' heads are read for it, and remembered."""
        found = [file for file in regular_files(self.root, self.notices) if _is_session(file.path)]
        heads = self._heads.of(found)
        groups: dict[tuple[str | None, str, bool], list[File]] = {}
        for file in found:
            head, parent = heads[file.path], _parent(file.path)
            groups.setdefault((parent, head.get("id") or file.stem, head.get("agent", False)), []).append(file)
        sessions = (self._reference(parent, id, files) for (parent, id, _), files in groups.items())
        return newest_first(sessions, since)

    def _reference(self, parent: str | None, id: str, files: list[File]) -> Reference:
        files.sort(key=lambda file: (not file.path.endswith(".jsonl"), -file.size, file.path))
        names = tuple(dict.fromkeys(file.stem for file in files if file.stem != id))
        first = files[0]
        updated = max(file.updated for file in files)
        return Reference(self.harness, id, first.path, updated, first.size, (first.path,), names, parent)

    def parent(self, session: Reference) -> str | None:
        """From the folder that it lies in."""
        return session.key

    @staticmethod
    def is_record(record: Record) -> bool:
        if isinstance(record.get("$set"), dict) or "$rewindTo" in record:
            return True
        return all(key in record for key in ("id", "timestamp", "type")) or (
            "sessionId" in record and "projectHash" in record
        )

    @staticmethod
    def unpack(value: Record) -> list[Any] | None:
        messages = value.get("messages")
        if not isinstance(messages, list):
            return None
        return [{key: given for key, given in value.items() if key != "messages"}, *messages]

    def describe(self, session: Reference, facts: Record) -> Record:
        """No record names the working directory: it is what the project's folder says, checked by its SHA-256."""
        about = dict(facts["about"])
        about["directory"] = self._directory(session, about.get("project"))
        if about["directory"]:
            added = [folder for folder in about.get("directories", ()) if folder != about["directory"]]
            about["directories"] = [about["directory"], *added]
        return about

    def directories(self, session: Reference) -> list[str]:
        return sequence(self.describe(session, self.facts(session)).get("directories"))

    def surroundings(self, session: Reference) -> tuple[Any, ...]:
        """The row depends on what names the project."""
        return stamp(_project_root(session.path)) + stamp(self._projects)

    @property
    def _projects(self) -> str:
        return os.path.join(os.path.dirname(self.root), "projects.json")

    def _directory(self, session: Reference, project: str | None) -> str | None:
        folder = os.path.basename(os.path.dirname(_project_root(session.path)))
        written = _small(_project_root(session.path)).decode("utf-8", "replace").strip()
        if self._named is None:
            self._named = mapping(mapping(loaded(_small(self._projects))).get("projects"))
        candidates = [*filter(None, [written]), *self._named]
        known = (path for path in candidates if _sha256(path) in (project, folder))
        return next(known, written or next((path for path, name in self._named.items() if name == folder), None))

    def abandoned(self, session: Reference) -> list[list[int]]:
        """What a rewind took back: the message that it names, and all after it."""
        alive: list[tuple[str | None, list[int]]] = []
        left: list[int] = []
        for entry in self.entries(session, {}):
            record = mapping(loaded(entry.line())) if not entry.messages else {}
            if isinstance(record.get("$rewindTo"), str):
                place = next((n for n, (id, _) in enumerate(alive) if id == record["$rewindTo"]), 0)
                left += [number for _, numbers in alive[place:] for number in numbers]
                del alive[place:]
            elif entry.messages:
                alive.append((entry.group, [message["id"] for message in entry.messages]))
        return ranges(left)

    def resume(self, row: Record) -> list[str]:
        """A sub-agent cannot be reopened by itself: its session is."""
        return ["gemini", "--resume", row.get("parent_session_id") or row["session_id"]]


def _is_session(path: str) -> bool:
    name = os.path.basename(path)
    if _parent(path) is not None:
        return name.endswith(".jsonl")
    return name.startswith("session-") and name.endswith((".jsonl", ".json"))


def _parent(path: str) -> str | None:
    """The folder below `chats` in which a file lies: the id of the session whose sub-agent it is."""
    folders = path.split(os.sep)[:-1]
    if "chats" not in folders:
        return None
    below = folders[len(folders) - folders[::-1].index("chats") :]
    return below[0] if below else None


def _project_root(path: str) -> str:
    """Where the project of a session's file says its working directory."""
    folder = os.path.dirname(path)
    while os.path.basename(folder) != "chats" and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return os.path.join(os.path.dirname(folder), ".project_root")


def _head(path: str) -> Record:
    """The session's id, and whether it is a sub-agent's."""
    try:
        if path.endswith(".json"):
            return _document_head(path)
        for _, _, record in islice(_lines(path), _HEAD_LINES):
            for held in (record or {}, mapping((record or {}).get("$set"))):
                if id := string(held.get("sessionId")):
                    return {"id": id, "agent": held.get("kind") == "subagent", "whole": True}
        return _in_text(_small(path, _HEAD_BYTES))
    except (OSError, Unreadable):
        return {}


def _lines(path: str) -> Iterable[tuple[int, bytes, Record | None]]:
    return Lines(path, Notices(), Gemini.is_record)


def _document_head(path: str) -> Record:
    """Gemini CLI writes the id first, so that most documents need not be read as a whole."""
    if head := _in_text(_small(path, _HEAD_BYTES)):
        return head
    with open_regular(path) as file:
        value = mapping(loaded(file.read()))
    return {"id": string(value.get("sessionId")), "agent": value.get("kind") == "subagent"}


def _in_text(text: bytes) -> Record:
    """What the beginning of a file says, be it whole or torn; the texts of messages have their quotes escaped."""
    found = _ID.search(text)
    if found is None:
        return {}
    return {"id": found[1].decode("utf-8", "replace"), "agent": bool(_AGENT.search(text)), "whole": True}


def _small(path: str, size: int = _SMALL_BYTES) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(size)
    except (OSError, Unreadable):
        return b""


def _sha256(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
