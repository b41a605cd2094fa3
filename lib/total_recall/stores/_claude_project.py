"""What the sessions of one project say about each other: whose records a copy holds, and old titles.

`<session id>/custom-title.json` has the name that a person gave. Up to 2.0, generated titles were `summary` records in
whatever transcript the program had open, about the session of the same project that holds the record `leafUuid`.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from functools import cached_property, partial
from typing import Any

import orjson

from ..notices import Unreadable
from ..record import Record
from ..regular import open_regular
from ._claude_copies import uuids
from ._claude_files import SUFFIX, head
from ._jsonl import parse
from .base import Memory, stamp

_TITLE_BYTES = 65536


class Project:
    """One folder of transcripts, as it was when it was first asked for."""

    def __init__(self, folder: str, memory: Memory) -> None:
        self._folder = folder
        self._memory = memory

    @cached_property
    def heads(self) -> dict[str, Record]:
        """Path -> what the transcript's first records say; remembered for the folder as a whole."""
        try:
            with os.scandir(self._folder) as listing:
                names = sorted(entry.name for entry in listing if entry.name.endswith(SUFFIX))
        except OSError:
            names = []
        kept = self._memory.get("heads", self._folder)
        known = kept[1] if kept else {}
        heads: dict[str, list[Any]] = {}
        for name in names:
            path = os.path.join(self._folder, name)
            now = list(stamp(path))
            heads[name] = known[name] if name in known and known[name][0] == now else [now, head(path)]
        if heads != known:
            self._memory.put("heads", self._folder, "", heads)
        return {os.path.join(self._folder, name): facts for name, (_, facts) in heads.items()}

    @cached_property
    def _alike(self) -> dict[tuple[str, str], list[str]]:
        """The transcripts that begin with the same record, or with the same response of the model."""
        found = defaultdict(list)
        for path, facts in self.heads.items():
            for kind, key in (("fork", "root"), ("resume", "response")):
                if facts[key] is not None and not is_agent(path):
                    found[kind, facts[key]].append(path)
        return found

    def origins(self, path: str) -> Record | None:
        """The older sessions that a session begins like, in the form that `Copies` takes; the oldest first.

        A session is as old as the first time in its file: the records that a fork copied keep theirs, but what the
        program writes before them does not. Where it writes nothing, the names decide.
        """
        mine = self.heads.get(path)
        if mine is None or is_agent(path):
            return None
        for kind, key in (("fork", mine["root"]), ("resume", mine["response"])):
            alike = map(self._born, self._alike.get((kind, key), ()))
            older = [other for began, other in sorted(alike) if (began, other) < self._born(path)]
            if older:
                named = [[os.path.basename(other).removesuffix(SUFFIX), other] for other in older]
                return {"kind": kind, "origins": named, "places": [0] * len(named), "own": 0}
        return None

    def _born(self, path: str) -> tuple[str, str]:
        return self.heads[path]["began"] or "", path

    def title(self, path: str) -> str | None:
        """The title that a summary in one of the transcripts gives a session; that of its last record wins."""
        if not self._summaries:
            return None
        signature = (*stamp(path), self.titles)
        return self._memory("summary-title", path, signature, partial(self._titled, path))

    @cached_property
    def titles(self) -> int:
        """A checksum of the summaries; 0 where there are none."""
        return zlib.crc32(orjson.dumps(self._summaries, option=orjson.OPT_SORT_KEYS)) if self._summaries else 0

    @cached_property
    def _summaries(self) -> dict[str, str]:
        """Record uuid -> title; the last one written wins."""
        # Only old programs wrote them: into transcripts that they began, or that hold nothing else.
        paths = [
            path
            for path, facts in self.heads.items()
            if (facts["version"] or "0.").startswith(("0.", "1.", "2.0.")) and not is_agent(path)
        ]
        found: dict[str, str] = {}
        for path in sorted(paths, key=lambda path: (stamp(path)[1], path)):
            found.update(self._memory("summaries", path, stamp(path), partial(_summaries_in, path)))
        return found

    def _titled(self, path: str, _: object) -> str | None:
        title = None
        try:
            with open_regular(path) as file:
                for uuid in uuids(file, 0, os.fstat(file.fileno()).st_size):
                    title = self._summaries.get(uuid.decode("utf-8", "replace"), title)
        except (OSError, Unreadable):
            pass
        return title


def is_agent(path: str) -> bool:
    """Whether a transcript is a sub-agent's."""
    return os.path.basename(path).startswith("agent-")


def _summaries_in(path: str, _: object) -> dict[str, str]:
    found = {}
    try:
        with open_regular(path) as file:
            for line in file:
                record = parse(line) if line.startswith(b'{"type":"summary"') else None
                if isinstance(record, dict):
                    leaf, title = record.get("leafUuid"), record.get("summary")
                    if isinstance(leaf, str) and isinstance(title, str) and title.strip():
                        found[leaf] = title
    except (OSError, Unreadable):
        pass
    return found


def title_file(path: str) -> str:
    """Where the name that a person gave is kept beside a transcript."""
    return os.path.join(path.removesuffix(SUFFIX), "custom-title.json")


def custom_title(path: str) -> str | None:
    """The name kept beside a transcript, or None."""
    try:
        with open_regular(title_file(path)) as file:
            kept = orjson.loads(file.read(_TITLE_BYTES))
    except (OSError, Unreadable, ValueError):
        return None
    title = kept.get("customTitle") if isinstance(kept, dict) else None
    return title if isinstance(title, str) else None
