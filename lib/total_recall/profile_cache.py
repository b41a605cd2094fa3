"""The profile cache: `tr_<session-id>_meta.json` in a store's shadow folder, one file a session."""

from __future__ import annotations

import os
import stat
from datetime import datetime, timezone
from typing import Any

import orjson

from . import jtd
from .record import Record, packed, unpacked
from .shadow import safe_name, write_beside
from .times import rfc3339

SCHEMA = 1
GRACE_MS = 15_000  # a source changed no later than this after the cache was written is served from the cache

_definition: jtd.Schema | None = None


def path_of(folder: str, session_id: str) -> str:
    """The cache file of a session."""
    return os.path.join(folder, f"tr_{safe_name(session_id)}_meta.json")


def cached(path: str, updated_ms: float, size: int) -> Record | None:
    """The profile kept at `path`, if it is fresh; None if it is stale, missing, or no profile cache of this version.

    Fresh: the source, now of `size` bytes, has the size it had then, and was updated (milliseconds since 1970) at
    most 15,000 ms after the cache was written. `has_tantivy_index` is as it was then: the caller knows better.
    """
    found = _read(path)
    if found is None:
        return None
    kept, written_ms = found
    if updated_ms > written_ms + GRACE_MS or not _is_ours(kept):
        return None
    profile: Record = kept["profile"]
    own = os.path.basename(path_of("", profile["session_id"])) == os.path.basename(path)
    return profile if own and profile["file_size"] == size else None


def keep(path: str, profile: Record) -> bool:
    """Write the profile in one step, readable by the user alone; False when it is left to a newer version's file.

    Raises OSError when it cannot be written, and ValueError for what is no profile.
    """
    found = _read(path)
    if found is not None and _schema_of(found[0]) > SCHEMA:
        return False
    now = rfc3339(datetime.now(timezone.utc).isoformat())
    kept = {"schema": SCHEMA, "written": now, "profile": profile}
    for error in jtd.errors(_schema(), kept):
        raise ValueError(f"not a profile: {'/'.join(error.instance_path)}")
    write_beside(path, packed(kept))
    return True


def _read(path: str) -> tuple[Any, int] | None:
    """The JSON value of a regular file and when it was written, in milliseconds; None for anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                return None
            return unpacked(file.read()), about.st_mtime_ns // 1_000_000
    except (OSError, ValueError):
        return None


def _schema_of(kept: Any) -> int:
    number = kept.get("schema") if isinstance(kept, dict) else None
    return number if isinstance(number, int) else 0


def _is_ours(kept: Any) -> bool:
    return _schema_of(kept) == SCHEMA and jtd.valid(_schema(), kept)


def _schema() -> jtd.Schema:
    global _definition
    if _definition is None:
        with open(os.path.join(os.path.dirname(__file__), "profile.jtd.json"), "rb") as file:
            _definition = jtd.check(orjson.loads(file.read()))
    return _definition
