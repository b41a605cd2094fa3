"""What happens in a made-up session, whatever harness writes it down: prompts, thoughts, calls, results, compactions.

A script has no end of its own. The writer adds what it wrote to `session.written`, and the script stops when the
session has the size that it was planned with and everything was planted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from tests.bench.text import Text

KINDS = ("person", "assistant", "thinking", "tool-input", "tool-output", "cjk")
_MODULES = "parser store cache server client index report tokens layout".split()
_ITEMS = "Read the sources", "Write the module", "Add tests", "Mend the build", "Update the manual", "Release it"


class Shares(NamedTuple):
    """How many of the sessions have each trait, and how a turn looks."""

    children: float = 0.1
    compacted: float = 0.12
    thinking: float = 0.6
    todos: float = 0.3
    git: float = 0.35
    cjk: float = 0.06
    interactive: float = 0.6
    unified: float = 0.2  # of Vibe's sessions
    failed: float = 0.06  # of the calls
    steps: float = 5.0  # model responses to a prompt, on average
    output: float = 550.0  # median characters of a tool's output; log-normal, so that the mean is four times that
    spread: float = 1.6
    longest: int = 120_000


class Planted(NamedTuple):
    """A phrase that is to be found: what kind of text holds it, and after which share of the session it stands."""

    kind: str
    phrase: str
    after: float


@dataclass
class Session:
    """The plan of one session. Times are milliseconds; `compactions` are sizes at which there is one."""

    harness: str
    number: int
    size: int
    began: int
    directory: str
    branch: str | None
    parent: Session | None = None
    cjk: bool = False
    thinking: bool = True
    todos: bool = False
    git: bool = False
    interactive: bool = True
    unified: bool = False
    compactions: list[float] = field(default_factory=list)
    planted: list[Planted] = field(default_factory=list)
    children: list[Session] = field(default_factory=list)
    seed: str = ""
    id: str = ""
    written: int = 0

    def random(self, purpose: str) -> Random:
        """A generator of the session's own, so that no session depends on those before it."""
        return Random(f"{self.seed}/{self.harness}/{self.number}/{purpose}")


class Call(NamedTuple):
    """A tool call with its result: `tool` is shell, read, write, edit, search, todo or agent."""

    tool: str
    given: dict[str, Any]
    result: str
    failed: bool = False


class Step(NamedTuple):
    """One response of the model: thinking, text and calls, each of which may be missing."""

    thinking: str
    text: str
    calls: list[Call]


class Turn(NamedTuple):
    """A prompt and the responses to it; they must be taken one after the other, while they are written."""

    prompt: str
    steps: Iterator[Step]


class Compaction(NamedTuple):
    """The conversation so far, replaced by its summary."""

    summary: str
    automatic: bool


class Script:
    """The turns and compactions of one session."""

    def __init__(self, session: Session, text: Text, shares: Shares) -> None:
        self._session = session
        self._text = text
        self._shares = shares
        self._random = session.random("script")
        self._speech = text.cjk if session.cjk else text.prose
        self._children = list(session.children)
        self._todos = [{"content": item, "status": "pending"} for item in _ITEMS[: self._random.randint(3, 6)]]

    def __iter__(self) -> Iterator[Turn | Compaction]:
        session = self._session
        while True:
            if session.compactions and session.written >= session.compactions[0]:
                session.compactions.pop(0)
                yield Compaction(self._said(2500), self._random.random() < 0.7)
            yield Turn(self._holding("person", self._said(self._length(140, 1.0))), self._steps())
            if self._full() and not (session.planted or session.compactions):
                return

    def _full(self) -> bool:
        return self._session.written >= self._session.size

    def _steps(self) -> Iterator[Step]:
        count = 1 + int(self._random.expovariate(1 / self._shares.steps))
        for number in range(count):
            if number and self._full():
                break
            calls = [self._call() for _ in range(1 + (self._random.random() < 0.25))]
            text = self._said(self._length(90, 0.7)) if self._random.random() < 0.4 else ""
            yield Step(self._thought(), text, calls)
        yield Step(self._thought(), self._holding("assistant", self._said(self._length(500, 0.9))), [])

    # -- texts -------------------------------------------------------------------------------------------------

    def _length(self, median: float, spread: float) -> float:
        return min(median * self._random.lognormvariate(0, spread), self._shares.longest)

    def _said(self, size: float) -> str:
        return self._text.piece(self._speech, self._random, size / 3 if self._session.cjk else size)

    def _thought(self) -> str:
        if not self._session.thinking or self._random.random() < 0.5:
            return self._due("thinking")
        return self._holding("thinking", self._said(self._length(260, 0.9)))

    def _due(self, kind: str) -> str:
        """The phrase that is to be planted here by now, or nothing."""
        session = self._session
        for planted in session.planted:
            if planted.kind == kind and session.written >= planted.after * session.size:
                session.planted.remove(planted)
                return planted.phrase
        return ""

    def _holding(self, kind: str, text: str) -> str:
        phrase = self._due(kind) or (self._due("cjk") if kind in ("person", "assistant") else "")
        return f"{text} {phrase}" if phrase else text

    # -- calls -------------------------------------------------------------------------------------------------

    def _call(self) -> Call:
        session, rng = self._session, self._random
        if self._children:
            return self._delegated(self._children.pop())
        if phrase := self._due("tool-input"):
            return Call("search", {"pattern": phrase, "path": session.directory}, "src/store.py:17: found")
        if phrase := self._due("tool-output"):
            before, after = (self._text.lines(self._text.log, rng, 800) for _ in range(2))
            return Call("shell", {"command": "make test"}, f"{before}\n{phrase}\n{after}")
        chance = rng.random()
        if session.todos and chance < 0.06:
            return self._flushed()
        if session.git and chance < 0.1:
            message = self._text.words(rng, 5)
            return Call("shell", {"command": f'git add -A && git commit -qm "{message}"'}, f"[main {message}]")
        path = f"{session.directory}/{self._text.path(rng)}"
        failed = rng.random() < self._shares.failed
        size = self._length(self._shares.output, self._shares.spread)
        if chance < 0.5:
            command = f"python -m {rng.choice(_MODULES)} --{self._text.words(rng, 1)} {path} | tail -n 200"
            return Call("shell", {"command": command}, self._text.lines(self._text.log, rng, size), failed)
        if chance < 0.72:
            size = min(size * 3, self._shares.longest)
            return Call("read", {"path": path}, self._text.lines(self._text.code, rng, size), failed)
        if chance < 0.82:
            found = self._text.lines(self._text.code, rng, min(size, 8000))
            return Call("search", {"pattern": self._text.words(rng, 2), "path": session.directory}, found)
        if chance < 0.9:
            return Call("write", {"path": path, "content": self._text.piece(self._text.code, rng, size)}, "written")
        old, new = (self._text.piece(self._text.code, rng, min(size / 3, 3000)) for _ in range(2))
        return Call("edit", {"path": path, "old": old, "new": new}, "edited", failed)

    def _flushed(self) -> Call:
        """The whole todo list, one step on; a finished one begins anew."""
        for item in self._todos:
            if item["status"] != "completed":
                item["status"] = "completed" if item["status"] == "in_progress" else "in_progress"
                break
        else:
            for item in self._todos:
                item["status"] = "pending"
        return Call("todo", {"todos": [dict(item) for item in self._todos]}, "updated")

    def _delegated(self, child: Session) -> Call:
        task = self._said(200)
        return Call("agent", {"description": "Look into it", "prompt": task, "child": child}, self._said(600))
