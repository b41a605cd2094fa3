"""GitHub Copilot CLI: one log of events a session below `~/.copilot/session-state/`.

    session-state/<session id>/events.jsonl                  the session, with `workspace.yaml` beside it
    session-state/<session id>.jsonl                         the same, before sessions had folders
    history-session-state/session_<session id>_<time>.json   one document, before there were events

`session-store.db` is an index that the program makes of these, and no source. Rewinding cuts the log. A fork begins
with the events of another session, under the same ids and times, and a `session.start` of its own.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..notices import Notices, Unreadable
from ..record import Record, one_line
from ..regular import open_regular
from ..times import rfc3339
from ._copilot_events import CopilotReader
from ._files import File, Heads, home, regular_files
from ._jsonl import Lines
from ._transcript import Transcripts, loaded, mapping, string
from .base import Entry, Memory, Place, Reference, State, newest_first, stamp, stands

_LOG = "events.jsonl"
_HEAD_LINES = 50
_YAML_BYTES = 65536
_DOCUMENT = re.compile(r"session_([0-9a-fA-F-]{36})_\d+")
_ENTRY = re.compile(r"([A-Za-z_]+):(?: (.*))?")
_ESCAPED = re.compile(r'\\(?:["\\/nt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})')


class Copilot(Transcripts):
    """The sessions of GitHub Copilot CLI."""

    harness = "copilot"
    reader = CopilotReader

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        super().__init__(place, notices, remember)
        self._old = os.path.join(os.path.dirname(self.root), "history-session-state")
        self._heads = Heads(self.root, self.remember, _head)
        self._listed: list[File] | None = None

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        """`TOTAL_RECALL_COPILOT_ROOT` names the folder `session-state` or the one around it, as `COPILOT_HOME` does."""
        variable = "TOTAL_RECALL_COPILOT_ROOT"
        named = environ.get(variable, "").strip()
        base = environ.get("COPILOT_HOME", "").strip() or home(environ, ".copilot")
        if not named and not base:
            return None
        inside = os.path.join(named or base, "session-state")
        root = os.path.abspath(named if named and not os.path.isdir(inside) else inside)
        return Place(root, variable, bool(named), os.path.join(os.path.dirname(root), ".tantivy"))

    def exists(self) -> bool:
        return stands(self.root) or stands(self._old)

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """One reference for each session id; no file is opened."""
        self._listed = list(self._logs())
        groups: dict[str, list[File]] = {}
        for file in self._listed:
            groups.setdefault(_id(file.path), []).append(file)
        sessions = (self._reference(id, files) for id, files in groups.items())
        return newest_first(sessions, since)

    def _reference(self, id: str, files: list[File]) -> Reference:
        # The program that made the newer form of a session took the older one over.
        files.sort(key=lambda file: (os.path.basename(file.path) != _LOG, file.path.endswith(".json"), -file.size))
        first = files[0]
        names = tuple(dict.fromkeys(file.stem for file in files if file.stem not in (id, "events")))
        updated = max(file.updated for file in files)
        return Reference(self.harness, id, first.path, updated, first.size, (first.path,), names)

    def _logs(self) -> Iterator[File]:
        try:
            with os.scandir(self.root) as listing:
                entries = sorted(listing, key=lambda entry: (entry.is_symlink(), entry.name))
        except FileNotFoundError:
            entries = []
        except OSError as error:
            raise Unreadable(self.root, error) from error
        met = {0}  # a link that leads nowhere
        for entry in entries:
            inode = stamp(entry.path)[2] if entry.is_symlink() else entry.inode()
            if entry.name.startswith(".") or inode in met:
                continue  # a link to a session is no other session
            met.add(inode)
            if file := _file(entry.path if entry.name.endswith(".jsonl") else os.path.join(entry.path, _LOG)):
                yield file
        yield from (file for file in regular_files(self._old, self.notices) if file.path.endswith(".json"))

    @staticmethod
    def is_record(record: Record) -> bool:
        return isinstance(record.get("type"), str) and "data" in record and "timestamp" in record

    @staticmethod
    def unpack(value: Record) -> list[Any] | None:
        timeline = value.get("timeline")
        if not isinstance(timeline, list):
            return None
        return [{key: given for key, given in value.items() if key not in ("timeline", "chatMessages")}, *timeline]

    # -- forks -------------------------------------------------------------------------------------------------

    def entries(self, session: Reference, state: State, *, whole: bool = False) -> Iterator[Entry]:
        """One entry an event."""
        if "copied" not in state:
            origin = self._origin(session)
            state["copied"] = _head(session.path)["start"] if origin else None
            if origin:
                state.setdefault("about", {})["forked_from"] = {"session_id": origin, "kind": "fork"}
        yield from super().entries(session, state, whole=whole)

    def _files(self) -> list[File]:
        if self._listed is None:
            self._listed = list(self._logs())
        return self._listed

    def _origin(self, session: Reference) -> str | None:
        """The oldest session that begins with the same event; a session's own first event is no older than it."""
        mine = _head(session.path) if session.path.endswith(".jsonl") else {}
        first, start = mine.get("first"), mine.get("start")
        if not first or not start or not mine["ts"] or mine["ts"] >= start:
            return None
        heads = self._heads.of(self._files())
        alike = ((head.get("start") or "", path) for path, head in heads.items() if head.get("first") == first)
        older = min((other for other in alike if other[0] < start), default=None)
        return _id(older[1]) if older else None

    # -- the row -----------------------------------------------------------------------------------------------

    def describe(self, session: Reference, facts: Record) -> Record:
        """The title stands beside the log, and what program began the session."""
        about = dict(facts["about"])
        beside = _workspace(session)
        title = beside.get("name") or beside.get("summary")
        about["title"] = one_line(title, 1000) if title else None
        about.setdefault("directory", beside.get("cwd"))
        about.setdefault("git_branch", beside.get("branch"))
        about["origin"] = _program(beside.get("client_name"))
        return about

    def beside(self, session: Reference) -> tuple[Any, ...]:
        """The file with the title."""
        return stamp(_beside(session))

    def resume(self, row: Record) -> list[str]:
        return ["copilot", "--resume", row["session_id"]]


def _file(path: str) -> File | None:
    """A log, by a stat; one that cannot be reached is there nevertheless."""
    try:
        known = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return File(path, 0, 0.0, 0)
    return File(path, known.st_size, max(known.st_mtime, 0.0), known.st_ino) if stat.S_ISREG(known.st_mode) else None


def _id(path: str) -> str:
    """The session id in a path."""
    folder, name = os.path.split(path)
    if name == _LOG:
        return os.path.basename(folder)
    stem = os.path.splitext(name)[0]
    found = _DOCUMENT.fullmatch(stem)
    return found[1] if found else stem


def _head(path: str) -> Record:
    """When a session began, as it says itself, and the id and the time of its first prompt, which a fork has too."""
    found: Record = {"start": None, "first": None, "ts": None, "whole": False}
    if not path.endswith(".jsonl"):
        return found
    try:
        for _, _, record in islice(Lines(path, Notices(), Copilot.is_record), _HEAD_LINES):
            record = record or {}
            if record.get("type") == "session.start" and found["start"] is None:
                found["start"] = rfc3339(mapping(record.get("data")).get("startTime"))
            elif record.get("type") == "user.message":
                first, ts = string(record.get("id")), rfc3339(record.get("timestamp"))
                return {**found, "first": first, "ts": ts, "whole": True}
    except (OSError, Unreadable):
        pass
    return found


def _beside(session: Reference) -> str:
    return os.path.join(os.path.dirname(session.path), "workspace.yaml")


def _workspace(session: Reference) -> dict[str, str]:
    """What the file beside a log says: the texts of its uppermost level, of long ones the first line."""
    if os.path.basename(session.path) != _LOG:
        return {}
    try:
        with open_regular(_beside(session)) as file:
            lines = file.read(_YAML_BYTES).decode("utf-8", "replace").split("\n")
    except (OSError, Unreadable):
        return {}
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        if entry := _ENTRY.fullmatch(line.rstrip()):
            value = (entry[2] or "").strip()
            if value[:1] in ("|", ">"):
                value = next((below.strip() for below in lines[number + 1 :] if below.strip()), "")
                found[entry[1]] = value
            else:
                found[entry[1]] = _scalar(value)
    return {key: value for key, value in found.items() if value}


def _scalar(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        text = loaded(value.encode())
        return text if isinstance(text, str) else _ESCAPED.sub(" ", value[1:-1])
    return "" if value in ("null", "~") else value


def _program(client: str | None) -> str | None:
    """`cli`, `ide` or `sdk` for the program that began the session; another's name as it is."""
    known = {"cli": "cli", "vscode": "ide", "jetbrains": "ide", "sdk": "sdk"}
    return next((origin for name, origin in known.items() if client and name in client), client)
