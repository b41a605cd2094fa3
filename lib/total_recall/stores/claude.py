"""Claude Code: one JSON Lines transcript a session, below `~/.claude/projects/`.

The stream is the transcript's lines in the order of writing. Messages are `user`, `assistant`, slash commands that
newer versions write as `system` records, and prompts queued while the model worked, which are only attachments;
everything else is bookkeeping, most of it copies of what was sent to the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice

import orjson

from ..notices import Notices, Unreadable
from ..record import Record
from ..regular import open_regular
from ._claude_branches import abandoned
from ._claude_copies import Repeats
from ._claude_counting import Counter
from ._claude_files import is_record, transcripts
from ._claude_project import Project, custom_title, is_agent, title_file
from ._claude_records import Reader
from ._jsonl import Lines, buffer_for, parse
from ._transcript import placed
from .base import Entry, Memory, Place, Reference, State, Store, stamp

_BLANK_BYTES = 4096


class Claude(Store):
    """The store of Claude Code, versions 1.0 to 2.1."""

    harness = "claude"

    def __init__(self, place: Place, notices: Notices, remember: Memory | None = None) -> None:
        super().__init__(place, notices, remember)
        self._projects: dict[str, Project] = {}

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        """`TOTAL_RECALL_CLAUDE_ROOT` names the folder of projects, or one of transcripts."""
        variable = "TOTAL_RECALL_CLAUDE_ROOT"
        named = environ.get(variable, "").strip()
        home = environ.get("HOME")
        base = environ.get("CLAUDE_CONFIG_DIR") or (os.path.join(home, ".claude") if home else "")
        if not named and not base:
            return None
        root = os.path.abspath(named) if named else os.path.join(base, "projects")
        return Place(root, variable, bool(named), os.path.join(os.path.dirname(root), ".tantivy"))

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """All transcripts, sub-agents' too; where they were written is known only from their records."""
        if not self.exists():
            return []
        return transcripts(self.root, since, self.notices, self.harness, self.parent)

    def parent(self, session: Reference) -> str | None:
        """From the folder it lies in, or from the first record of what 2.0 wrote beside its sessions."""
        if session.key is not None:
            return str(session.key)
        if not is_agent(session.path):
            return None
        found = self._project(session).heads.get(session.path, {}).get("session_id")
        return found if found != session.session_id else None

    def beside(self, session: Reference) -> tuple[object, ...]:
        """The file with the title that a person gave."""
        return () if is_agent(session.path) else stamp(title_file(session.path))

    def surroundings(self, session: Reference) -> tuple[object, ...]:
        """Titles may stand beside the transcript and in others of its project."""
        if is_agent(session.path):
            return ()
        return (*self.beside(session), self._project(session).titles)

    def entries(self, session: Reference, state: State, *, whole: bool = False) -> Iterator[Entry]:
        """One entry a line, or a record recovered from a damaged one."""
        return self._walk(session, state, Reader, whole=whole)

    def skimmed(self, session: Reference, state: State) -> Iterator[Entry]:
        return self._walk(session, state, Counter, whole=True)

    def _walk(self, session: Reference, state: State, reading: type[Reader], *, whole: bool) -> Iterator[Entry]:
        if "copied" not in state:
            state["copied"] = self._project(session).origins(session.path)
        repeats = Repeats(session.path, state)
        reader = reading(session, state, repeats)
        offset, number = state.setdefault("offset", 0), state.setdefault("lines", 0)
        lines = Lines(session.path, self.notices, is_record, offset=offset, number=number, whole=whole)
        try:
            for start, length, line, record in placed(lines, state):
                entry = reader.entry(start, length, line, record)
                if state["boundary"] is not None and not whole and _is_last(session.path, lines.offset):
                    entry.messages += reader.unfinished()
                yield entry
        finally:
            repeats.close()

    def entry_at(self, session: Reference, ref: Record) -> Entry | None:
        """The entry of the line, with the one message that `ref` means; `ref["id"]`, where given, is its id.

        What only the records before it tell (a result's tool, copies) is not known.
        """
        part, piece = ref.get("part", 0), ref.get("piece", 0)
        reader = Reader(session, {"id": ref.get("id", 1) - 1 - part, "pieces": piece + 1})
        try:
            lines = Lines(session.path, Notices(), is_record, offset=ref["offset"], buffer=buffer_for(ref["length"]))
            for start, line, record in islice(lines, piece, piece + 1):
                if start != ref["offset"]:
                    break
                entry = reader.entry(start, ref["length"], line, record)
                entry.messages = (entry.messages + reader.unfinished())[part : part + 1]
                return entry if entry.messages else None
        except (FileNotFoundError, Unreadable):
            pass
        return None

    def abandoned(self, session: Reference) -> list[list[int]]:
        """The branches of the tree of records that a rewind left."""
        return abandoned((_record(entry.line()), entry.messages) for entry in self.entries(session, {}))

    def text_files(self, session: Reference) -> tuple[str, ...]:
        """Every letter is written as it is; a compressed file shows none of them."""
        return () if any(path.endswith(".zst") for path in session.files) else session.files

    def resume(self, row: Record) -> list[str]:
        """A sub-agent cannot be reopened by itself: its session is."""
        return ["claude", "--resume", row.get("parent_session_id") or row["session_id"]]

    def describe(self, session: Reference, facts: Record) -> Record:
        """The title is the one that Claude Code shows: given, else generated."""
        about = facts["about"]
        directories = about.get("directories") or [None]
        return {
            "title": self._title(session, about),
            "directory": directories[0],
            "directories": directories,
            "git_branch": about.get("git_branch"),
            "model": about.get("model"),
            "origin": about.get("origin"),
            "forked_from": about.get("forked_from"),
        }

    def _title(self, session: Reference, about: Record) -> str | None:
        if is_agent(session.path):
            return None
        given = about["customTitle"] if "customTitle" in about else custom_title(session.path)
        return given or about.get("aiTitle") or self._project(session).title(session.path)

    def _project(self, session: Reference) -> Project:
        folder = os.path.dirname(session.path)
        if folder not in self._projects:
            self._projects[folder] = Project(folder, self.remember)
        return self._projects[folder]


def _record(line: bytes) -> Record:
    try:
        value = orjson.loads(line)
    except ValueError:
        value = parse(line)
    return value if isinstance(value, dict) else {}


def _is_last(path: str, offset: int) -> bool:
    """Whether nothing follows `offset` in a file."""
    try:
        with open_regular(path, buffering=0) as file:
            file.seek(offset)
            return not file.read(_BLANK_BYTES).strip()
    except (OSError, Unreadable):
        return True
