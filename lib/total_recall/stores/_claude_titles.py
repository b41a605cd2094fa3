"""Titles of Claude Code's sessions, where they do not stand in the transcript itself.

`<session id>/custom-title.json` has the name that a person gave. Up to 2.0, generated titles were `summary` records in
whatever transcript the program had open, about the session of the same project that holds the record `leafUuid`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from functools import partial

import orjson

from ..notices import Unreadable
from ._claude_copies import uuids
from ._claude_files import SUFFIX, head
from ._jsonl import open_regular
from .base import Memory, stamp

_TITLE_BYTES = 65536


def custom_title(path: str) -> str | None:
    """The name kept beside a transcript, or None."""
    try:
        with open_regular(os.path.join(path.removesuffix(SUFFIX), "custom-title.json")) as file:
            kept = orjson.loads(file.read(_TITLE_BYTES))
    except (OSError, Unreadable, ValueError):
        return None
    title = kept.get("customTitle") if isinstance(kept, dict) else None
    return title if isinstance(title, str) else None


def summaries(paths: Iterable[str], memory: Memory) -> dict[str, str]:
    """Record uuid -> title, from all summary records of a project; later ones win."""
    found: dict[str, str] = {}
    for path in sorted(paths, key=lambda path: (stamp(path)[1], path)):
        version = head(path, memory)["version"]
        # Only old programs wrote them: into transcripts that they began, or that hold nothing else.
        if version is None or version.startswith(("0.", "1.", "2.0.")):
            found.update(memory("summaries", path, stamp(path), partial(_summaries, path)))
    return found


def _summaries(path: str, _: object) -> dict[str, str]:
    found = {}
    try:
        with open_regular(path) as file:
            for line in file:
                if line.startswith(b'{"type":"summary"'):
                    record = orjson.loads(line)
                    leaf, title = record.get("leafUuid"), record.get("summary")
                    if isinstance(leaf, str) and isinstance(title, str) and title.strip():
                        found[leaf] = title
    except (OSError, Unreadable, ValueError):
        pass
    return found


def summary_title(path: str, titles: dict[str, str], memory: Memory) -> str | None:
    """The title of the last record of a transcript that has one in `titles`."""

    def search() -> str | None:
        try:
            with open_regular(path) as file:
                return next(reversed([title for uuid in uuids(file, 0, size) if (title := known.get(uuid))]), None)
        except (OSError, Unreadable):
            return None

    known = {leaf.encode("utf-8", "replace"): title for leaf, title in titles.items()}
    size, *rest = stamp(path)
    signature = (size, *rest, zlib.crc32(orjson.dumps(titles, option=orjson.OPT_SORT_KEYS)))
    return memory("summary-title", path, signature, lambda _: search())
