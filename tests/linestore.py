"""A store of our own for tests: message records as lines of JSON, one file a session."""

from __future__ import annotations

import os

import orjson
from total_recall.notices import Notices
from total_recall.regular import open_regular
from total_recall.stores._jsonl import Lines
from total_recall.stores.base import Entry, Place, Reference, Store, newest_first, stamp


class LineStore(Store):
    """Reads files of message records; a first line with `about` tells title and directory."""

    harness = "lines"

    def __init__(self, root, harness="lines", notices=None):
        super().__init__(Place(str(root), "LINES", True, f"{root}/.shadow"), notices or Notices())
        self.harness = harness
        self.walked = []

    def sessions(self, since=0.0, directory=""):
        found = []
        for name in os.listdir(self.root):
            if name.endswith(".jsonl"):
                path = os.path.join(self.root, name)
                size, modified, _ = stamp(path)
                found.append(Reference(self.harness, name[:-6], path, modified / 1e9, size, (path,)))
        return newest_first(session for session in found if session.updated >= since)

    def entries(self, session, state, *, whole=False):
        self.walked.append((session.session_id, state.get("offset", 0)))
        lines = Lines(session.path, self.notices, lambda _: True, offset=state.get("offset", 0), whole=whole)
        for offset, line, value in lines:
            state["offset"] = lines.offset
            if value is None:
                continue
            if "about" in value:
                state["about"] = value["about"]
                continue
            state["id"] = value["id"]
            value["ref"] = {"path": session.path, "offset": offset, "length": len(line)}
            yield Entry(line, value["ts"], [value])

    def entry_at(self, session, ref):
        with open_regular(ref["path"]) as file:
            file.seek(ref["offset"])
            line = file.read(ref["length"])
        try:
            return Entry(line, None, [orjson.loads(line)])
        except ValueError:
            return None

    def parent(self, session):
        return None

    def describe(self, session, facts):
        return {"title": None, "directory": None, **facts["about"]}


def write_session(root, session_id, records, about=None, modified=None):
    """Write a session's file; `modified` is its time in seconds since 1970."""
    path = os.path.join(root, f"{session_id}.jsonl")
    with open(path, "wb") as file:
        file.write(orjson.dumps({"about": about or {}}) + b"\n")
        file.writelines(orjson.dumps(record) + b"\n" for record in records)
    if modified is not None:
        os.utime(path, (modified, modified))
    return path
