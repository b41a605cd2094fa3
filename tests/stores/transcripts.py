"""Stores of transcripts for tests: the real ones among the fixtures, and small ones of our own."""

import os
from pathlib import Path

import orjson
from total_recall.notices import Notices
from total_recall.stores.registry import adapter

FIXTURES = Path(__file__).parent.parent / "fixtures"
ROOTS = {
    "gemini": ".gemini/tmp",
    "qwen": ".qwen/projects",
    "pi": ".pi/agent/sessions",
    "copilot": ".copilot/session-state",
}
NAMES = tuple(ROOTS)


def opened(name, root):
    """The store of a harness whose root is `root`."""
    kind = adapter(name)
    return kind(kind.locate({f"TOTAL_RECALL_{name.upper()}_ROOT": str(root)}), Notices())


def real(name):
    """The store among the fixtures."""
    return opened(name, FIXTURES / name / ROOTS[name])


def messages(store, session, state=None):
    return list(store.messages(session, state))


def moment(number):
    """A time, later for a greater number."""
    return f"2026-11-30T20:{number // 60:02}:{number % 60:02}.000Z"


class Session:
    """A small session of a harness: records are added, then it is written where the harness keeps them."""

    def __init__(self, name, folder, path):
        self.name = name
        self.root = Path(folder) / ROOTS[name]
        self.path = self.root / path
        self.records = []

    def add(self, *records):
        self.records += records
        return self

    def write(self, end=b"\n"):
        """Write the file; returns the store and the session."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = [record if isinstance(record, bytes) else orjson.dumps(record) for record in self.records]
        self.path.write_bytes(b"".join(line + end for line in lines))
        store = opened(self.name, self.root)
        return store, next(s for s in store.sessions() if s.path == os.fspath(self.path))

    def read(self):
        """Its message records."""
        return messages(*self.write())


def contents(found):
    return [message["content"] for message in found]


def shapes(found, *keys):
    """The messages with these keys only."""
    return [tuple(message.get(key) for key in keys) for message in found]
