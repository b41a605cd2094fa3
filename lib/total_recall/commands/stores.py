"""tr-stores: which stores were looked for, where, and what was found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..command import Run, envelope_option, executable, harness_option, options
from ..indexed import indexed
from ..notices import Unreadable
from ..output import encoded, lines, write
from ..record import Record
from ..shadow import wanted_folder
from ..stores.registry import HARNESSES, adapter, sandboxed
from ..times import from_epoch


@executable("tr-stores")
@options(harness_option, envelope_option)
def main(run: Run, harnesses: tuple[str, ...], envelope: bool) -> int | None:
    """Say which harness stores were looked for, where, and how many sessions each holds."""
    found = stores(run, harnesses or HARNESSES)
    write([encoded({"stores": list(found), **run.facts()})] if envelope else lines(found))
    return None


def stores(run: Run, harnesses: tuple[str, ...]) -> Iterator[Record]:
    """One row a harness; sessions are counted without opening one."""
    for harness in harnesses:
        kind = adapter(harness)
        place = kind.locate(run.environ)
        row: dict[str, Any] = {
            "harness": harness,
            "root": place.root if place else None,
            "override": place.variable if place and place.overridden else None,
            "exists": False,
            "readable": False,
            "sessions": 0,
            "newest": None,
            "shadow_root": wanted_folder(harness, place, run.environ) if place else None,
            "indexed_sessions": 0,
            "error": None,
        }
        if place is None:
            row["error"] = "no home directory to look in: HOME is not set"
        elif sandboxed(run.environ) and not place.overridden:
            row["error"] = f"refused: TOTAL_RECALL_SANDBOX is set and {place.variable} is not"
        else:
            row["indexed_sessions"] = len(indexed(row["shadow_root"]))
            store = kind(place, run.notices)
            row["exists"] = store.exists()
            try:
                sessions = store.sessions() if row["exists"] else []
                row["readable"] = row["exists"] and os.access(place.root, os.R_OK)
                row["sessions"] = len(sessions)
                row["newest"] = from_epoch(sessions[0].updated) if sessions else None
            except Unreadable as error:
                row["error"] = error.reason
                run.notices.fail(harness, error)
        yield row
