"""A database as OpenCode 1.18 leaves it: a message a model step, parts of it in rows of their own.

The tables are those of the sample database. What was written is checkpointed: there is no `-wal` beside it.
"""

from __future__ import annotations

import os
import sqlite3
from random import Random
from typing import Any
from urllib.parse import quote

import orjson

from tests.bench.script import Call, Compaction, Script, Session, Step, Turn
from tests.bench.text import Text
from tests.bench.writing import Facts
from tests.sample import FIXTURES

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MODEL = {"providerID": "mock", "modelID": "mock-large"}
_TOKENS = {"total": 8084, "input": 8064, "output": 20, "reasoning": 0, "cache": {"write": 0, "read": 0}}
_WAITING = 2000  # rows that are written at once
_ROW = 400  # bytes of a row besides its data: ids, and their places in four indexes
_SAMPLE = FIXTURES / "opencode" / "main-1.18.33" / "opencode" / "opencode.db"


class OpenCode:
    """Writes `<home>/.local/share/opencode/opencode.db`."""

    floor = 6000  # bytes of a session with one short turn

    def __init__(self, home: str, text: Text) -> None:
        folder = os.path.join(home, ".local", "share", "opencode")
        os.makedirs(folder, exist_ok=True)
        self._path = os.path.join(folder, "opencode.db")
        self._database = sqlite3.connect(self._path, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("BEGIN")
        for statement in _schema():
            self._database.execute(statement)
        self._waiting: dict[str, list[tuple[Any, ...]]] = {"message": [], "part": []}
        self._newest = 0
        self._insert("project", id="global", worktree="/", time_created=1, time_updated=1, sandboxes="[]")

    def identify(self, session: Session) -> str:
        """Session ids count downwards, so that the newest comes first."""
        return identifier("ses", session.began, session.number, session.random("id"), inverted=True)

    def write(self, session: Session, script: Script) -> Facts:
        """Write one session with its messages and parts."""
        rows = _Rows(self, session)
        rows.write(script)
        self._insert(
            "session",
            id=session.id,
            project_id="global",
            parent_id=session.parent and session.parent.id,
            slug="lucky-cactus",
            directory=session.directory,
            path=session.directory[1:],
            title=f"Session {session.number} of {session.directory}",
            version="1.18.33",
            cost=0.02,
            agent="build",
            model=orjson.dumps({"id": "mock-large", "providerID": "mock"}).decode(),
            time_created=session.began,
            time_updated=rows.now,
        )
        self._newest = max(self._newest, rows.now)
        return rows.facts

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """A row of `message` (id, session, created, updated, data) or `part` (its message after its id)."""
        waiting = self._waiting[table]
        waiting.append(row)
        if len(waiting) >= _WAITING:
            self._flush(table)

    def _flush(self, table: str) -> None:
        columns = "id, message_id, session_id" if table == "part" else "id, session_id"
        marks = ", ".join("?" * len(columns.split()))
        self._database.executemany(
            f"INSERT INTO {table} ({columns}, time_created, time_updated, data) VALUES ({marks}, ?, ?, ?)",
            self._waiting[table],
        )
        self._waiting[table].clear()

    def _insert(self, table: str, **values: Any) -> None:
        marks = ", ".join("?" * len(values))
        self._database.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))

    def close(self) -> None:
        """Write what is waiting, and put the whole of it into the database's own file."""
        for table in self._waiting:
            self._flush(table)
        self._database.execute("COMMIT")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.close()
        os.utime(self._path, (self._newest / 1000, self._newest / 1000))


class _Rows:
    """The rows of one session."""

    def __init__(self, store: OpenCode, session: Session) -> None:
        self._store = store
        self._session = session
        self._random = session.random("opencode")
        self._count = 0
        self.now = session.began
        self.facts = Facts()
        self._snapshot = {"snapshot": f"{self._random.getrandbits(160):040x}"} if session.branch else {}

    def write(self, script: Script) -> None:
        for event in script:
            if isinstance(event, Compaction):
                self._compaction(event)
            else:
                self._turn(event)

    def _put(self, table: str, data: dict[str, Any], owner: str | None = None) -> str:
        self.now += self._random.randrange(10, 3000)
        self._count += 1
        name = identifier("prt" if owner else "msg", self.now, self._count % 4096, self._random)
        line = orjson.dumps(data).decode()
        head = (name, owner, self._session.id) if owner else (name, self._session.id)
        self._store.add(table, (*head, self.now, self.now, line))
        self._session.written += len(line.encode()) + _ROW
        return name

    def _prompt(self, part: dict[str, Any]) -> str:
        held = {"role": "user", "time": {"created": self.now}, "agent": "build", "model": _MODEL}
        message = self._put("message", {**held, "summary": {"diffs": []}})
        self._put("part", part, message)
        return message

    def _turn(self, turn: Turn) -> None:
        self.facts.user_count += 1
        prompt = self._prompt({"type": "text", "text": turn.prompt})
        for step in turn.steps:
            self._step(step, prompt)

    def _step(self, step: Step, prompt: str) -> None:
        """One response of the model: a message, its parts between `step-start` and `step-finish`."""
        reason = "tool-calls" if step.calls else "stop"
        message = self._answer(prompt, reason)
        self._put("part", {"type": "step-start", **self._snapshot}, message)
        times = {"time": {"start": self.now, "end": self.now + 40}}
        if step.thinking:
            self._put("part", {"type": "reasoning", "text": step.thinking, **times}, message)
        if step.text:
            self.facts.assistant_count += 1
            self._put("part", {"type": "text", "text": step.text, **times}, message)
        for call in step.calls:
            self.facts.tool_count += 1
            self._put("part", self._tool(call), message)
        finish = {"reason": reason, "type": "step-finish", **self._snapshot, "tokens": _TOKENS, "cost": 0.008}
        self._put("part", finish, message)

    def _answer(self, prompt: str, reason: str, **known: Any) -> str:
        place = {"cwd": self._session.directory, "root": self._session.directory}
        data = {"parentID": prompt, "role": "assistant", "mode": "build", "agent": "build", "path": place}
        end = {"time": {"created": self.now, "completed": self.now + 800}, "finish": reason}
        return self._put("message", {**data, "tokens": _TOKENS, **_MODEL, **end, **known})

    def _tool(self, call: Call) -> dict[str, Any]:
        name, given, output, known = _tool(call, self._session)
        times = {"time": {"start": self.now, "end": self.now + 120}}
        state: dict[str, Any] = {"status": "completed", "input": given, "output": output, "metadata": known}
        if call.failed and call.tool != "shell":
            state = {"status": "error", "input": given, "error": output.split("\n", 1)[0], "metadata": known}
        title = str(next(iter(given.values())))[:80]
        call_id = f"c{self._random.getrandbits(40):010d}"[:12]
        return {"type": "tool", "tool": name, "callID": call_id, "state": {**state, "title": title, **times}}

    def _compaction(self, compaction: Compaction) -> None:
        self.facts.has_compaction = True
        asked = self._prompt({"type": "compaction", "auto": compaction.automatic})
        answer = self._answer(asked, "stop", summary=True, mode="compaction", agent="compaction")
        self._put("part", {"type": "text", "text": compaction.summary}, answer)


def _tool(call: Call, session: Session) -> tuple[str, dict[str, Any], str, dict[str, Any]]:
    """(name, input, output, metadata) of a call."""
    given, result = call.given, call.result
    if call.tool == "shell":
        known = {"output": result, "exit": int(call.failed), "truncated": False}
        return "bash", {"command": given["command"], "description": "Run it"}, result, known
    if call.tool == "read":
        numbered = "\n".join(f"{number}: {line}" for number, line in enumerate(result.split("\n"), 1))
        output = f"<path>{given['path']}</path>\n<type>file</type>\n<content>\n{numbered}\n</content>"
        return "read", {"filePath": given["path"]}, output, {"preview": result[:500], "truncated": False}
    if call.tool == "search":
        return "grep", {"pattern": given["pattern"], "path": given["path"]}, result, {"matches": 3, "truncated": False}
    if call.tool == "write":
        return "write", {"filePath": given["path"], "content": given["content"]}, "Wrote file successfully.", {}
    if call.tool == "edit":
        change = {"filePath": given["path"], "oldString": given["old"], "newString": given["new"]}
        patch = f"--- {given['path']}\n+++ {given['path']}\n{given['new']}"
        known = {"filediff": {"file": given["path"], "patch": patch, "additions": 9, "deletions": 4}}
        return "edit", change, "Edit applied successfully.", known
    if call.tool == "todo":
        todos = [{**item, "priority": "medium"} for item in given["todos"]]
        return "todowrite", {"todos": todos}, orjson.dumps(todos, option=orjson.OPT_INDENT_2).decode(), {"todos": todos}
    child = given["child"].id
    task = {"description": given["description"], "prompt": given["prompt"], "subagent_type": "explore"}
    output = f'<task id="{child}" state="completed">\n<task_result>\n{result}\n</task_result>\n</task>'
    return "task", task, output, {"parentSessionId": session.id, "sessionId": child, "truncated": False}


def identifier(prefix: str, milliseconds: int, counter: int, rng: Random, *, inverted: bool = False) -> str:
    """An id as OpenCode makes them: 48 bits of time and counter in hex, then 14 random letters."""
    clock = (milliseconds * 4096 + counter) & ((1 << 48) - 1)
    if inverted:
        clock ^= (1 << 48) - 1
    return f"{prefix}_{clock:012x}{''.join(rng.choices(_ALPHABET, k=14))}"


def _schema() -> list[str]:
    """The statements that made the sample database's tables and indexes."""
    sample = sqlite3.connect(f"file:{quote(str(_SAMPLE))}?immutable=1", uri=True)
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC, name"
    statements = [sql for (sql,) in sample.execute(query)]
    sample.close()
    return statements
