"""What one stored record of Gemini CLI holds.

A message is written again whenever something was added to it: a turn of the model first without its tool calls, then
with them and their results. What is new each time becomes a record where it is written; nothing is given twice. `$set`
changes the session; with `messages` it has the whole conversation again as the model sees it from then on, of which
only what never stood before is new: what the program put there, and the summary of a compaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from ..record import Record
from ..times import rfc3339
from ._parts import Part, calls_of, outcome, parts_of, responses_of, text_of, thinking_of, usage
from ._transcript import Reader, mapping, sequence, string
from .base import Reference, State
from .tools import kind_of

_RECENT = 64  # messages that may still be written again, or that a compaction keeps
_ANSWERED = 256
_SUMMARY = 3  # so many new messages a compaction brings: the context, the summary and the thanks for it
_FINAL = frozenset(("success", "error", "cancelled"))
_CONTEXT = "<session_context>"
_SHELL = "I ran the following shell command:"


class GeminiReader(Reader):
    """Makes message records of the records of Gemini CLI 0.3 to 0.61.

    Besides what every Reader keeps, `state` has `turns` (message id -> its record's id, whether its text was given, how
    many of its calls, and which of these without a result), `answered` (calls with a result), `first` (the id of the
    first prompt that the model still sees) and `owed` (usage that no record took yet).
    """

    def __init__(self, session: Reference, state: State) -> None:
        super().__init__(session, state)
        self.turns: dict[str, Record] = state.setdefault("turns", {})
        self.answered: list[str] = state.setdefault("answered", [])
        for key, value in (("first", None), ("owed", None)):
            state.setdefault(key, value)
        self._delegated = session.key is not None
        self._readers: dict[Any, Callable[[Record], list[Record]]] = {"user": self._user, "gemini": self._turn}

    def read(self, record: Record) -> list[Record]:
        if isinstance(record.get("$set"), dict):
            return self._changed(record["$set"])
        if string(record.get("id")) and string(record.get("type")):
            return self._message(record)
        if "sessionId" in record:
            self._learn(record)
            self.ts = rfc3339(record.get("startTime"))
        return []

    def _learn(self, facts: Record) -> None:
        about = self.about
        if title := string(facts.get("summary")):
            about["title"] = title
        if project := string(facts.get("projectHash")):
            about["project"] = project
        if folders := [folder for folder in sequence(facts.get("directories")) if isinstance(folder, str)]:
            about["directories"] = folders[:20]

    def _changed(self, facts: Record) -> list[Record]:
        self._learn(facts)
        self.ts = rfc3339(facts.get("lastUpdated"))
        messages = [message for message in sequence(facts.get("messages")) if isinstance(message, dict)]
        return self._conversation(messages) if messages else []

    # -- messages, as they are written -------------------------------------------------------------------------

    def _message(self, record: Record) -> list[Record]:
        id, kind = record["id"], record["type"]
        known = id in self.turns
        # What was written before has its old time.
        newer = self.ts is not None and self.ts > self.state["newest"]
        if not known and not newer and self.stood_before(id):
            self.type = _raw_type(record)
            return []
        self.state["newest"] = max(self.state["newest"], self.ts or "")
        if known and kind != "gemini":
            self.type = _raw_type(record)
            return []
        self.group = id
        messages = self._readers.get(kind, self._notice)(record)
        if not known:
            self._remember(id, {"id": messages[0]["id"]} if messages else {})
        if not messages:
            self.type = _raw_type(record)
        return messages

    def _remember(self, id: str, known: Record) -> None:
        self.turns[id] = {**known, **self.turns.get(id, {})}
        if len(self.turns) > _RECENT:
            del self.turns[next(iter(self.turns))]

    def _user(self, record: Record) -> list[Record]:
        parts = parts_of(record.get("content"))
        responses = responses_of(parts)
        if responses:
            return self._responses(responses) + self._beside(parts)
        self.state["first"] = self.state["first"] or record["id"]
        text = text_of(parts_of(record.get("displayContent"))) or text_of(parts)
        return [self.say("user", text, authorship="delegated" if self._delegated else "human")]

    def _beside(self, parts: list[Part]) -> list[Record]:
        """What the program says together with the results of tools."""
        text = text_of([part for part in parts if "functionResponse" not in part])
        return [self.injected(text)] if text.strip() else []

    def _responses(self, responses: list[Record]) -> list[Record]:
        """The results of calls that no turn had the result of; the others are copies."""
        messages = []
        for response in responses:
            if string(response.get("id")) in self.answered:
                continue
            text, failed = outcome(response)
            messages.append(self._result(response, text, failed))
        return messages

    def _notice(self, record: Record) -> list[Record]:
        """What the program told the person: info, warning, error."""
        text = text_of(parts_of(record.get("content")))
        return [self.say("system", text, authorship="injected")] if text.strip() else []

    # -- turns of the model ------------------------------------------------------------------------------------

    def _turn(self, record: Record) -> list[Record]:
        before = self._given(record)
        parts = parts_of(record.get("content"))
        calls = [call for call in sequence(record.get("toolCalls")) if isinstance(call, dict)] or calls_of(parts)
        new = calls[before["calls"] :]
        text = "" if before["said"] else text_of(parts)
        thinking = None if before["said"] else _thinking(record) or thinking_of(parts) or None
        messages = []
        if "model" in record and string(record["model"]):
            self.about["model"] = record["model"]
        used = None if before["used"] else _usage(record)
        if text or thinking or new:
            made = [self.called(call.get("id"), call.get("name"), call.get("args")) for call in new]
            model = string(record.get("model"))
            owed, self.state["owed"] = self.state["owed"], None
            messages.append(self.answer(text, made, thinking, part=0, model=model, usage=_sum(owed, used)))
        elif used:
            self.state["owed"] = _sum(self.state["owed"], used)
        waiting = [*before["open"], *range(before["calls"], len(calls))]
        still = []
        for place in waiting:
            if place < len(calls) and (done := self._done(calls[place], place)):
                messages.append(done)
            else:
                still.append(place)
        self.turns[record["id"]] = {
            "id": before.get("id") or (messages[0]["id"] if messages else None),
            "said": before["said"] or bool(text or thinking),
            "calls": max(before["calls"], len(calls)),
            "open": still,
            "used": before["used"] or used is not None,
        }
        return messages

    def _given(self, record: Record) -> Record:
        """What of a turn was given when it was written before; every record of it says so where it stands."""
        nothing = {"said": False, "calls": 0, "open": [], "used": False}
        hint = self.state.get("ref", {}).get("after")
        known = self.turns.get(record["id"]) or (dict(zip(nothing, hint, strict=True)) if hint else None)
        if known is None:
            return nothing
        known = nothing | known
        self.ref["after"] = [known["said"], known["calls"], known["open"], known["used"]]
        return known

    def _done(self, call: Record, place: int) -> Record | None:
        """The result that stands beside a call, if it has one."""
        status, id = string(call.get("status")), string(call.get("id"))
        parts = parts_of(call.get("result")) if call.get("result") is not None else []
        if (not parts and status not in _FINAL) or (id and id in self.answered):
            return None
        outcomes = [outcome(response) for response in responses_of(parts)]
        texts = [text for text, _ in outcomes] or [text_of(parts) or _shown(call)]
        beside = text_of([part for part in parts if "functionResponse" not in part]) if outcomes else ""
        failed = status in ("error", "cancelled") if status else any(bad for _, bad in outcomes)
        text = "\n".join(filter(None, (*texts, beside)))
        return self._result(call, text, failed, part=place + 1, ts=rfc3339(call.get("timestamp")) or self.ts)

    def _result(self, call: Record, text: str, failed: bool, **known: Any) -> Record:
        id, name = string(call.get("id")), string(call.get("name"))
        if id:
            self.answered.append(id)
            del self.answered[:-_ANSWERED]
        return self.result(id, text, failed, name, tool_result=_structured(self.session.harness, call, text), **known)

    # -- the conversation as a whole ---------------------------------------------------------------------------

    def _conversation(self, messages: list[Record]) -> list[Record]:
        """The messages that stood nowhere before; a summary is known by what it stands for."""
        ids = [string(message.get("id")) for message in messages]
        fresh = [
            m for m, id in zip(messages, ids, strict=True) if id and id not in self.turns and not self.stood_before(id)
        ]
        first = self.state["first"]
        compacted = "compaction" in self.state.get("ref", {}) or (
            first is not None and first not in ids and len(fresh) <= _SUMMARY
        )
        kept = [id for id, message in zip(ids, messages, strict=True) if id in self.turns and message not in fresh]
        made: list[Record] = []
        at = self.ts
        for message in fresh:
            self.ts = rfc3339(message.get("timestamp")) or at
            if not isinstance(message.get("type"), str):
                continue
            text = text_of(parts_of(message.get("content")))
            if compacted and message["type"] == "user" and text.strip() and not text.startswith(_CONTEXT):
                compacted = False
                self.ref["compaction"] = True
                made.append(self.say("system", text, authorship="injected", kind="compaction"))
                self.slice = next((n for id in kept if id and (n := self.turns[id].get("id"))), None)
                self.state["first"] = kept[0] if kept else None
            else:
                made += self._synthetic(message, text)
            self._remember(message["id"], {"id": made[-1]["id"]} if made else {})
        self.ts = at
        return made

    def _synthetic(self, message: Record, text: str) -> list[Record]:
        """A message that nobody typed and no response brought; results are copies here."""
        parts = parts_of(message.get("content"))
        if message["type"] == "user":
            kind = "command" if text.startswith(_SHELL) else None
            return [self.injected(text, kind=kind)] if text.strip() and not responses_of(parts) else []
        if message["type"] == "gemini" and (message.get("tokens") or message.get("toolCalls") or calls_of(parts)):
            return self._turn(message)
        return [self.say("system", text, authorship="injected")] if text.strip() else []


def _raw_type(record: Record) -> str:
    """The raw type of a message that gives no record."""
    if record["type"] == "gemini":
        return "assistant"
    if record["type"] == "user":
        return "tool" if responses_of(parts_of(record.get("content"))) else "user"
    return "system"


def _thinking(record: Record) -> str:
    """The thoughts of a turn, each with its subject first."""
    thoughts = map(mapping, sequence(record.get("thoughts")))
    lines = [string(thought.get(key)) for thought in thoughts for key in ("subject", "description")]
    return "\n".join(filter(None, lines))


def _usage(record: Record) -> Record | None:
    tokens = mapping(record.get("tokens"))
    return usage(*(tokens.get(key) for key in ("input", "output", "cached", "thoughts", "total")))


def _sum(one: Record | None, other: Record | None) -> Record | None:
    if one is None or other is None:
        return one or other
    return {key: one[key] + used for key, used in other.items()}


def _shown(call: Record) -> str:
    """What the person was shown of a result that is not there."""
    shown = call.get("resultDisplay")
    return shown if isinstance(shown, str) else ""


def _structured(harness: str, call: Record, result: str) -> Any:
    """The structured result of a todo or question tool: the answers by the questions' texts, which stand by number."""
    kind = kind_of(harness, string(call.get("name")) or "")
    if kind == "todo":
        return call.get("resultDisplay")
    if kind != "question":
        return None
    questions = [mapping(each).get("question") for each in sequence(mapping(call.get("args")).get("questions"))]
    try:
        answers = mapping(mapping(orjson.loads(result)).get("answers"))
    except ValueError:
        return None
    said = {text: answers[str(n)] for n, text in enumerate(questions) if isinstance(text, str) and str(n) in answers}
    return {"answers": said}
