"""Claude Code transcripts for tests: the real ones among the fixtures, and small ones of our own."""

from functools import cache
from pathlib import Path

import orjson
from total_recall.notices import Notices
from total_recall.stores.claude import Claude

FIXTURES = Path(__file__).parent.parent / "fixtures"
STORES = ("claude", "claude-old")
SESSION = "00000000-0000-4000-8000-000000000001"


def opened(root):
    """The store whose folder of projects is `root`."""
    return Claude(Claude.locate({"TOTAL_RECALL_CLAUDE_ROOT": str(root)}), Notices())


@cache
def real(name):
    """A store among the fixtures, and its truth by file."""
    store = opened(FIXTURES / name / ".claude" / "projects")
    truth = orjson.loads((FIXTURES / name / "TRUTH.json").read_bytes())
    return store, {row["file"]: row for row in truth}


def transcripts():
    """Every real transcript as (store's name, path below its projects)."""
    return [(name, file) for name in STORES for file in real(name)[1]]


def session_of(store, file):
    """The session of a path below the projects."""
    return next(session for session in store.sessions() if session.path == str(Path(store.root, file)))


def messages(store, session):
    return list(store.messages(session))


class Transcript:
    """A small transcript, with a chain of records as Claude Code 2.1 writes them."""

    def __init__(self, root, session_id=SESSION, project="-home-someone-p", version="2.1.332"):
        self.root = Path(root)
        self.path = self.root / project / f"{session_id}.jsonl"
        self.session_id = session_id
        self.version = version
        self.lines = []
        self.last = None
        self.count = 0

    def add(self, type, parent=..., **fields):
        """Add a record of the chain; returns its uuid."""
        self.count += 1
        uuid = fields.pop("uuid", f"{self.session_id[-4:]}0000-0000-4000-8000-{self.count:012}")
        record = {
            "parentUuid": self.last if parent is ... else parent,
            "isSidechain": False,
            "type": type,
            "uuid": uuid,
            "timestamp": f"2026-11-30T20:{self.count // 60:02}:{self.count % 60:02}.000Z",
            "userType": "external",
            "cwd": "/home/someone/p",
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": "main",
        }
        self.lines.append(orjson.dumps(record | fields))
        self.last = uuid
        return uuid

    def user(self, content, **fields):
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def typed(self, text, **fields):
        return self.user(text, origin={"kind": "human"}, promptSource="typed", **fields)

    def assistant(self, content, response=None, **fields):
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        held = {"id": response or f"msg_{self.count}", "role": "assistant", "model": "claude-x", "content": blocks}
        return self.add("assistant", message=held | fields.pop("held", {}), **fields)

    def call(self, id, name="Bash", input=None, **fields):
        return self.assistant([{"type": "tool_use", "id": id, "name": name, "input": input or {}}], **fields)

    def result(self, id, content="done", **fields):
        block = {"type": "tool_result", "tool_use_id": id, "content": content} | fields.pop("block", {})
        return self.user([block], **fields)

    def side(self, type, **fields):
        self.lines.append(orjson.dumps({"type": type, **fields, "sessionId": self.session_id}))

    def raw(self, line):
        self.lines.append(line)

    def write(self, end=b"\n"):
        """Write the file; returns the store and the session."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(b"".join(line + end for line in self.lines))
        store = opened(self.root)
        return store, next(s for s in store.sessions() if s.path == str(self.path))

    def read(self):
        """Its message records."""
        return messages(*self.write())
