"""The history of the todo list: each flush of a harness's todo tool as the edits since the one before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .calls import Call, answered, value_of
from .notices import Notices
from .record import Record
from .stores.tools import TOOLS, kind_of

_SLUG = re.compile(r"(item[0-9]+(?:\.[0-9]+)?):")
_CREATED = re.compile(r"Task #(\S+) created")

# Where a whole list stands in a call's arguments, and what an item calls its text.
_PLACES = ("todos", "plan")
_TEXTS = ("content", "step", "description")
_HARNESSES = sorted(harness for harness, tools in TOOLS.items() if "todo" in tools.values())


class NoTodoTool(Exception):
    """A harness that has no todo list whose history could be told."""

    def __init__(self, harness: str) -> None:
        super().__init__(f"{harness} has no todo tool - tr-todo works on {', '.join(_HARNESSES)}")


class Item(NamedTuple):
    """One item of a list as the harness writes it; `id` is the harness's own, if it has one."""

    text: str
    status: str | None
    id: str | None = None


State = dict[str, tuple[str, str | None]]  # item key -> text, status


def events(messages: Iterable[Record], harness: str, notices: Notices) -> Iterator[Record]:
    """The edits of the todo list, in the order of the calls that made them.

    Calls that failed or were never answered do not count; neither do those of an inline sub-agent, whose list is its
    own. Raises NoTodoTool.
    """
    if harness not in _HARNESSES:
        raise NoTodoTool(harness)
    history = History(notices)
    for call in answered(messages, is_todo):
        yield from history.edits(call)


def is_todo(harness: str, name: str) -> bool:
    """Whether a tool keeps the todo list."""
    return kind_of(harness, name) == "todo" and name in TOOLS.get(harness, {})


class History:
    """The list as it stands after the calls seen so far."""

    def __init__(self, notices: Notices) -> None:
        self.state: State = {}
        self._notices = notices
        self._tasks: dict[str, Item] = {}
        self._uses: dict[str, int] = {}

    def edits(self, call: Call) -> Iterator[Record]:
        """The events of one answered call: the edits from the last list to the one it leaves."""
        record = call.record
        if not call.succeeded or record.get("agent") == "sidechain":
            return
        try:
            items = self._flush(call)
        except ValueError as error:
            where = f"{record['session_id']}:{record['id']}"
            self._notices.say(f"{where}: a call of {call.name} is passed over, {error}")
            return
        if items is None:
            return
        before, self.state = self.state, keyed(items)
        for action, key, (text, status) in _edits(before, self.state):
            yield {
                "ts": record["ts"],
                "action": action,
                "todo": text,
                "status": status,
                "item": key,
                "id": record["id"],
                "session_id": record["session_id"],
                "harness": record["harness"],
            }

    def _flush(self, call: Call) -> list[Item] | None:
        """The whole list after a call; None when the call did not change it. Raises ValueError for a broken one."""
        if call.name in _TASKS:
            arguments, result = value_of(call.arguments), value_of((call.result or {}).get("tool_result"))
            if not isinstance(arguments, dict):
                raise ValueError("its arguments are no JSON object")
            _TASKS[call.name](self, arguments, call, result if isinstance(result, dict) else {})
            return list(self._tasks.values())
        todos = _list_of(call)
        return None if todos is None else [_item(todo) for todo in todos]

    # -- tools that change one task at a time: the list is kept here -------------------------------------------

    def _create(self, arguments: Record, call: Call, result: Record) -> None:
        task = result.get("task")
        id = task.get("id") if isinstance(task, dict) else None
        if id is None and (match := _CREATED.search((call.result or {}).get("content") or "")):
            id = match[1]
        subject = arguments.get("subject")
        if id is None or not isinstance(subject, str):
            raise ValueError("which says neither a subject nor the new task's id")
        self._add(str(id), subject, "pending")

    def _add(self, id: str, subject: str, status: str | None) -> None:
        # Ids are used again after a deletion, for another task.
        uses = self._uses[id] = self._uses.get(id, 0) + 1
        self._tasks.pop(id, None)
        self._tasks[id] = Item(subject, status, id if uses == 1 else f"{id} #{uses}")

    def _update(self, arguments: Record, call: Call, result: Record) -> None:
        id = str(arguments.get("taskId"))
        status, subject = arguments.get("status"), arguments.get("subject")
        if result.get("success") is False or "taskId" not in arguments:
            return
        if status == "deleted":
            self._tasks.pop(id, None)
            return
        if id not in self._tasks:  # made before the records that we were given
            self._add(id, f"#{id}", None)
        task = self._tasks[id]
        self._tasks[id] = Item(
            subject if isinstance(subject, str) and subject else task.text,
            status if isinstance(status, str) and status else task.status,
            task.id,
        )


_TASKS: dict[str, Callable[[History, Record, Call, Record], None]] = {
    "TaskCreate": History._create,
    "TaskUpdate": History._update,
}


def _list_of(call: Call) -> list[Any] | None:
    """The list that a call gave, else the one that it returned; None for a call without a list (it only read)."""
    arguments = value_of(call.arguments)
    broken = "arguments" if isinstance(arguments, str) else None
    if isinstance(arguments, dict):
        if arguments.get("action", "write") != "write":
            return None
        place = next((place for place in _PLACES if place in arguments), _PLACES[0])
        todos = value_of(arguments.get(place))
        if isinstance(todos, list):
            return todos
        broken = None if todos is None else place
    result = value_of((call.result or {}).get("tool_result"))
    if isinstance(result, dict):
        result = result.get("newTodos", result.get("todos"))
    if isinstance(result, list):
        return result
    if broken:
        raise ValueError(f"its {broken} are no JSON list")
    return None


def _item(todo: Any) -> Item:
    texts = (todo.get(key) for key in _TEXTS) if isinstance(todo, dict) else ()
    text = next((text for text in texts if isinstance(text, str)), None)
    if text is None:
        raise ValueError("one of its items has no text")
    status, id = todo.get("status"), todo.get("id")
    known = isinstance(id, (str, int)) and not isinstance(id, bool) and str(id)
    return Item(text, status if isinstance(status, str) and status else None, str(id) if known else None)


def keyed(items: Iterable[Item]) -> State:
    """The items of one flush by what identifies them: the slug, else the harness's own id, else the text.

    A key that stands there already gets a counter (`text #2`).
    """
    state: State = {}
    counts: dict[str, int] = {}
    for item in items:
        slug = _SLUG.match(item.text)
        base = key = slug[1] if slug else item.id if item.id is not None else item.text
        while key in state:
            counts[base] = counts.get(base, 1) + 1
            key = f"{base} #{counts[base]}"
        state[key] = (item.text, item.status)
    return state


def _edits(before: State, after: State) -> Iterator[tuple[str, str, tuple[str, str | None]]]:
    for key, (text, status) in after.items():
        if key not in before:
            yield "added", key, (text, status)
        elif before[key][1] != status:
            yield status or "updated", key, (text, status)
        elif before[key][0] != text:
            yield "updated", key, (text, status)
    for key, (text, _) in before.items():
        if key not in after:
            yield "removed", key, (text, None)


def fold(events: Iterable[Record]) -> Iterator[State]:
    """The list after each flush that the events tell of (those of one record are one flush)."""
    state: State = {}
    flush = None
    for event in events:
        if flush is not None and event["id"] != flush:
            yield dict(state)
        flush = event["id"]
        if event["action"] == "removed" and event["status"] is None:
            del state[event["item"]]
        else:
            state[event["item"]] = (event["todo"], event["status"])
    if flush is not None:
        yield state
