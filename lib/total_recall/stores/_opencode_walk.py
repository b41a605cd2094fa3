"""The walk over one OpenCode session: its messages and parts, in order, as entries with their records.

The store changes in place: a tool's part goes from pending to completed, a text is empty until it is whole. So a
walk remembers the parts whose records were not all there yet (`open` in its state), and begins the next time with
what has become of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from ..notices import Notices
from ..record import Record
from ..times import from_epoch
from . import _opencode_v2 as v2
from ._opencode_parts import (
    Context,
    Several,
    Summary,
    failure,
    is_own_command,
    line,
    message_line,
    prompt_text,
    records,
    stand_in,
    text_of,
)
from ._opencode_rows import END, Batch, Message, Part, Session, Source, json_object, place
from .base import Entry, State

_NEAR = 20  # messages between a compaction and its summary, or between a summary and what goes on from it, at most

_TAIL = 1000  # messages among which a compaction's tail is found without asking the store


def fresh_state() -> State:
    """The state of a walk at the beginning of a session.

    `offset` counts the bytes of message and part data, `parts` the parts, `after` is the position reached, `open`
    the parts that were not complete as [ref, first id, records given], `growing` the steps that were at work as
    [message, last part], `used` the message whose tokens were given, `copied` the place of the last message that a
    fork took from another session. After an overflow `overflow` is set until the next prompt, and `replays` is that
    prompt if it is the program's copy.
    """
    return {
        "id": 0,
        "offset": 0,
        "parts": 0,
        "after": None,
        "open": [],
        "growing": [],
        "used": None,
        "copied": None,
        "about": {},
    }


class Walk:
    """One walk, from where `state` stands; iterating gives the entries.

    `settled` leaves out what may still change, for the next walk to find; `bodies` is as for `Source.batches`. With
    `only_told` there are no entries for the parts that never give a record, and of the others' no more than records.
    """

    def __init__(
        self,
        source: Source,
        session: Session,
        state: State,
        notices: Notices,
        *,
        settled: bool = False,
        bodies: bool = True,
        only_told: bool = False,
    ) -> None:
        self._source = source
        self._session = session
        self._state = state
        self._notices = notices
        self._settled = settled
        self._bodies = bodies
        self._only_told = only_told
        # A listing needs no times of the records where it has those of the session.
        self._counting = not bodies and bool(from_epoch(session.created) and from_epoch(session.updated))
        self._hidden = self._first_hidden()
        self._own_command: tuple[str, bool] = ("", False)
        self._damaged: list[str] = []
        self._begins: dict[str, int] = {}  # the first ids of the last messages, where a compaction's tail begins

    def __iter__(self) -> Iterator[Entry]:
        try:
            yield from self._late()
            after = self._state["after"]
            for batch in self._source.batches(self._session.id, after and tuple(after), bodies=self._bodies):
                yield from self._batch(batch)
        finally:
            if self._damaged:
                rows = "1 damaged row" if len(self._damaged) == 1 else f"{len(self._damaged)} damaged rows"
                self._notices.say(
                    f"{self._source.path}: session {self._session.id}: {rows}, the first is {self._damaged[0]};"
                    " everything else was read"
                )

    def one(self, message: Message, part: Part | None) -> Entry:
        """The entry of one part, or of the message itself, apart from any walk."""
        context = self._context(message)
        if message.role == "user":
            context.replayed = context.replayed or self._is_replay(message) or None
        if part is None:
            return self._message_entry(message, context)
        for earlier in self._source.parts(message.id):
            if earlier.id == part.id:
                break
            self._records(earlier, context, 0)  # the first one that gives a record takes the message's tokens
        return self._entry(part, context)

    def last_compaction(self) -> tuple[Message, dict[str, Any]] | None:
        """The message and the part of the last compaction that succeeded and is in sight, looked for from the end."""
        for answer in self._source.messages(self._session.id, None, "", backwards=True):
            if answer.summary_done and answer.parent:
                asked = self._source.message(self._session.id, answer.parent)
                part = compaction_part(self._source, answer.parent)
                if asked is not None and part is not None and not self._is_hidden(asked, ""):
                    return asked, part
        return None

    def _late(self) -> Iterator[Entry]:
        """What has become of the parts that were not complete, and of the steps that went on behind a later prompt."""
        waiting = self._state["open"]
        for _ in range(len(waiting)):
            ref, number, given = waiting.pop(0)
            found = self._source.part(ref)
            if found is None or found[1] is None:
                continue
            message, part = found[0], found[1]
            context = self._late_context(message)
            made, value = self._records(part, context, number)
            if len(made) < part.width and self._may_go_on(part, value, message):
                waiting.append([ref, number, len(made)])
            if made[given:]:
                if self._is_last(message):
                    self._state["used"] = message.id
                yield self._made(part, context, value, made[given:])
        yield from self._grown()

    def _grown(self) -> Iterator[Entry]:
        state = self._state
        here = {key: state[key] for key in ("after", "used")}
        for _ in range(len(state["growing"])):
            message_id, last = state["growing"].pop(0)
            message = self._source.message(self._session.id, message_id)
            if message is None or self._is_last(message):
                continue  # gone, or the walk goes on with it
            context = self._late_context(message)
            seen = [message_id, last]
            state["growing"].append(seen)
            for part in self._source.parts(message_id):
                if part.id > last:
                    entry = self._entry(part, context)
                    seen[1] = part.id
                    state.update(here)
                    yield entry
            if not message.growing:
                state["growing"].remove(seen)
                if message.error is not None:
                    entry = self._message_entry(message, context)
                    state.update(here)
                    yield entry

    def _late_context(self, message: Message) -> Context:
        context = self._context(message)
        if not self._is_last(message):
            context.usage = None  # the walk has passed the message, and with it the place for its tokens
        return context

    def _is_last(self, message: Message) -> bool:
        """Whether a message is the one at which the walk stands."""
        return bool(self._state["after"]) and self._state["after"][1] == message.id

    def _batch(self, batch: Batch) -> Iterator[Entry]:
        message, state = batch.message, self._state
        begun = self._is_last(message)
        if not begun:
            self._begins[message.id] = state["id"] + 1
            if len(self._begins) > _TAIL:
                del self._begins[next(iter(self._begins))]
            state["offset"] += len(message.raw)
            if message.damaged:
                self._damaged.append(message.id)
            if message.role == "user" and state.pop("overflow", None) and self._is_replay(message):
                state["replays"] = message.id
        if self._counting and (entry := self._counted(batch)) is not None:
            yield entry
            return
        context = self._context(message)
        if state.get("replays") == message.id:
            context.replayed = True
        for part in batch.parts:
            if part.takes == 0 and self._only_told:
                self._pass(part, message)
            else:
                yield self._entry(part, context)
        if batch.last and message.growing:
            state["growing"].append([message.id, state["after"][2] if self._is_last(message) else ""])
        if batch.last and message.error is not None:
            yield self._message_entry(message, context)
        elif batch.last and not batch.parts and not begun:
            state["after"] = [message.at, message.id, "" if message.growing else END]
            yield self._message_entry(message, context)

    def _counted(self, batch: Batch) -> Entry | None:
        """A step's parts as one entry, good for counting; None where each part has to be looked at."""
        message, parts, state = batch.message, batch.parts, self._state
        if message.role != "assistant" or message.growing or message.error is not None or message.summarises:
            return None
        found = stand_in(parts, message, self._session.id, state["id"] + 1) if parts else None
        if found is None:
            return None
        if found.made:
            state["used"] = message.id
            if self._is_copied(message):
                found.made[0]["replayed"] = True
        state["id"] += found.ids
        state["offset"] += found.size
        state["parts"] += len(parts)
        state["after"] = [message.at, message.id, parts[-1].id]
        return Several(len(parts), message.ts, found.made, message.id)

    def _entry(self, part: Part, context: Context) -> Entry:
        message = context.message
        if part.takes:
            entry = self._told(part, context)
        else:
            entry = Entry(partial(line, part, message), message.ts, None, None, message.id)
        self._pass(part, message)
        return entry

    def _pass(self, part: Part, message: Message) -> None:
        """Go on behind a part."""
        _, id, takes, raw, length, _ = part
        state = self._state
        if takes:
            state["id"] += takes
        elif takes is None:
            self._damaged.append(id)
        state["offset"] += length or len(raw or b"")
        state["parts"] += 1
        state["after"] = [message.at, message.id, id]

    def _told(self, part: Part, context: Context) -> Entry:
        """The entry of a part that may hold records, numbered from the next id on."""
        message, state = context.message, self._state
        number = state["id"] + 1
        made, value = self._records(part, context, number)
        if value is None and not part.damaged:
            self._damaged.append(part.id)
        if made:
            state["used"] = message.id
        if len(made) < part.width and self._may_go_on(part, value, message):
            state["open"].append([part.ref, number, len(made)])
        return self._made(part, context, value, made)

    def _records(self, part: Part, context: Context, number: int) -> tuple[list[Record], dict[str, Any] | None]:
        """The records of a part and its JSON; None when that is damaged."""
        value = {} if part.raw is None else json_object(part.raw)
        if value is None:
            return [], None
        if value.get("type") == "compaction":
            context.summary = self._summary(context.message)
            if value.get("overflow") is True:
                self._state["overflow"] = True
        if self._hidden is not None:
            context.branch = "abandoned" if self._is_hidden(context.message, part.id) else None
        return records(part, value, context, number, settled=self._settled), value

    def _made(self, part: Part, context: Context, value: dict[str, Any] | None, made: list[Record]) -> Entry:
        if self._only_told:
            return Entry(b"", messages=made)
        message = context.message
        return Entry(
            partial(line, part, message),
            made[0]["ts"] if made else message.ts,
            made,
            _raw_type(value, message),
            message.id,
            self._tail(value) if made and made[0]["class"] == "compaction" else None,
        )

    def _message_entry(self, message: Message, context: Context) -> Entry:
        """The message's own row: it failed, or has no parts."""
        state, made = self._state, []
        if message.error is not None:
            state["id"] += 1
            state["after"] = [message.at, message.id, END]
            context.branch = "abandoned" if self._is_hidden(message, END) else None
            made = [failure(message.error, context, state["id"], message.ref)]
        kind = message.role if message.role == "user" else None
        return Entry(partial(message_line, message), message.ts, made, kind, message.id)

    def _context(self, message: Message) -> Context:
        context = Context(self._session.id, message, child=self._session.parent is not None)
        if self._state["used"] == message.id:
            context.usage = None
        context.replayed = self._is_copied(message) or None
        if message.role == "assistant":
            context.command = self._answers_own_command(message)
            if message.summary_done and self._compacts(message.parent):
                context.told, context.usage = True, None
        return context

    def _is_copied(self, message: Message) -> bool:
        """Whether a fork took a message from another session."""
        copied = self._state["copied"]
        return copied is not None and place(message.at, message.id) <= place(*copied)

    def _may_go_on(self, part: Part, value: dict[str, Any] | None, message: Message) -> bool:
        """Whether a part that has given fewer records than it has ids for may yet give them."""
        if value is None or part.ref.get("table") == v2.TABLE:
            return False
        return message.growing or value.get("type") == "compaction"

    def _answers_own_command(self, message: Message) -> bool:
        """Whether a step was no step of the model's, but a person's `!` command: those have no `finish`."""
        if message.parent is None or message.error is not None or message.growing or message.fields.get("finish"):
            return False
        if self._own_command[0] != message.parent:
            parts = self._source.parts(message.parent)
            own = any(is_own_command(json_object(part.raw or b"")) for part in parts)
            self._own_command = (message.parent, own)
        return self._own_command[1]

    def _compacts(self, message_id: str | None) -> bool:
        """Whether a message asked for a compaction."""
        return message_id is not None and compaction_part(self._source, message_id) is not None

    def _summary(self, message: Message) -> Summary | None:
        """What came of the compaction that a message asked for."""
        later = self._source.messages(self._session.id, message.at, message.id)
        for answer in islice(later, _NEAR):
            if answer.parent == message.id and answer.summary_done:
                values = [json_object(part.raw or b"") for part in self._source.parts(answer.id)]
                texts = [text_of(value.get("text")) for value in values if value and value.get("type") == "text"]
                return Summary(answer, "\n".join(texts))
        return None

    def _is_replay(self, message: Message) -> bool:
        """Whether a prompt is the copy that the program makes to go on after an overflow.

        Such a copy follows the summary of a compaction that has `overflow`, and repeats the prompt before it.
        """
        before = self._source.messages(self._session.id, message.at, message.id, backwards=True)
        summary = next(before, None)
        if summary is None or not summary.summarises:
            return False
        prompts = (earlier for earlier in islice(before, _NEAR) if earlier.role == "user")
        asked = next(prompts, None)
        compaction = compaction_part(self._source, asked.id) if asked else None
        if compaction is None or compaction.get("overflow") is not True:
            return False
        texts = next(filter(None, map(self._prompt, prompts)), None)
        return texts is not None and texts == self._prompt(message)

    def _prompt(self, message: Message) -> list[str]:
        texts = (prompt_text(json_object(part.raw or b"")) for part in self._source.parts(message.id))
        return [text for text in texts if text is not None]

    def _tail(self, compaction: dict[str, Any] | None) -> int | None:
        """The first record id that a compaction kept in the model's sight."""
        tail = (compaction or {}).get("tail_start_id")
        if not isinstance(tail, str):
            return None
        if tail in self._begins:
            return self._begins[tail]
        message = self._source.message(self._session.id, tail)
        return None if message is None else self._source.ids_before(self._session.id, (message.at, message.id, "")) + 1

    def _first_hidden(self) -> tuple[Any, ...] | None:
        """The place from which on a staged revert hides everything."""
        if self._session.revert is None:
            return None
        message = self._source.message(self._session.id, self._session.revert[0])
        return None if message is None else (*place(message.at, message.id), self._session.revert[1] or "")

    def _is_hidden(self, message: Message, part_id: str) -> bool:
        return self._hidden is not None and (*place(message.at, message.id), part_id) >= self._hidden


def compaction_part(source: Source, message_id: str) -> dict[str, Any] | None:
    """The part of a message that asks for a compaction."""
    for part in source.parts(message_id):
        value = json_object(part.raw or b"")
        if value is not None and value.get("type") == "compaction":
            return value
    return None


def _raw_type(value: dict[str, Any] | None, message: Message) -> str | None:
    kind = None if value is None else value.get("type")
    if kind in ("text", "file") and message.role in ("user", "assistant"):
        return str(message.role)
    return "thinking" if kind == "reasoning" else None
