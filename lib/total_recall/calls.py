"""Tool calls: each with its result, what it says on one line, and the files it names."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from .record import Record, encoded
from .stores.tools import commands_of, kind_of

_WAITING = 200  # calls after which an older one without a result is not waited for


class Call:
    """A tool call: the message that holds it, and the message that answers it (None: there is no answer)."""

    __slots__ = ("arguments", "known", "name", "record", "result")

    def __init__(self, record: Record, name: str, arguments: Any) -> None:
        self.record = record
        self.name = name
        self.arguments = arguments
        self.result: Record | None = None
        self.known = False

    @property
    def kind(self) -> str | None:
        """What its tool is for (see `stores.tools.kind_of`)."""
        return kind_of(self.record["harness"], self.name)

    @property
    def succeeded(self) -> bool:
        """Whether it was answered, and not by an error."""
        return self.result is not None and not self.result.get("is_error")


def answered(messages: Iterable[Record], wanted: Callable[[str, str], bool]) -> Iterator[Call]:
    """The calls for which `wanted(harness, name)` holds, in the order of calls, each as soon as its result is known.

    Results are found by the call's id, whatever stands between; without an id, by the tool's name. What was never
    answered (a killed program, a running tool) comes without a result: at the end, or when 200 later calls were made.
    """
    waiting: deque[Call] = deque()
    unanswered: dict[object, deque[Call]] = {}
    for record in messages:
        for made in record["tool_calls"]:
            name = made["name"]
            if wanted(record["harness"], name):
                call = Call(record, name, made["arguments"])
                waiting.append(call)
                unanswered.setdefault(made["id"] or (name,), deque()).append(call)
        if record["role"] == "tool":
            key = record["tool_call_id"] or (record["tool_name"],)
            if calls := unanswered.get(key):
                call = calls.popleft()
                call.result, call.known = record, True
                if not calls:
                    del unanswered[key]
        while waiting and (waiting[0].known or len(waiting) > _WAITING):
            yield waiting.popleft()
    yield from waiting


def value_of(given: Any) -> Any:
    """The JSON value of arguments that may have been given as a JSON text, once or twice; broken text is itself."""
    for _ in range(2):
        if not isinstance(given, str):
            break
        try:
            given = orjson.loads(given)
        except ValueError:
            break
    return given


# -- a call on one line ----------------------------------------------------------------------------------------

_PATHS = ("file_path", "filePath", "notebook_path", "path")
_TEXTS = ("pattern", "query", "url", "skill", "subject", "description", "task", "prompt", "message", "question", "name")


def call_summary(name: str, arguments: Any) -> str:
    """A call on one line: its tool, and the argument that says most (`bash: make test`, `edit src/a.py`)."""
    value = value_of(arguments)
    if isinstance(value, dict):
        said = _telling(value)
    else:
        said = _named(_in_patch(value)) if isinstance(value, str) else ""
        said = said or _flat(value)
    return f"{name}{said if said.startswith(' ') or not said else f': {said}'}"


def _telling(arguments: dict[str, Any]) -> str:
    for key in ("command", "cmd"):
        if text := _command(arguments.get(key)):
            return " ".join(text.split())
    for key in ("todos", "plan"):
        if isinstance(items := value_of(arguments.get(key)), list):
            return _flat(_list_summary([item for item in items if isinstance(item, dict)]))
    if isinstance(questions := value_of(arguments.get("questions")), list):
        return _flat(" / ".join(str(item.get("question")) for item in questions if isinstance(item, dict)))
    if "taskId" in arguments:
        words = (f"#{arguments['taskId']}", arguments.get("status"), arguments.get("subject"))
        return _flat(" ".join(str(word) for word in words if word))
    if files := _named(_patched(arguments)):
        return files
    path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str) and arguments[key]), "")
    text = next((arguments[key] for key in _TEXTS if isinstance(arguments.get(key), str) and arguments[key]), "")
    if path and not isinstance(arguments.get("pattern"), str):
        return " " + _flat(path)
    return _flat(f"{text} {path}") if text else _flat(arguments)


def _list_summary(items: list[dict[str, Any]]) -> str:
    done = sum(item.get("status") == "completed" for item in items)
    texts = " / ".join(str(item.get("content") or item.get("step")) for item in items)
    return f"{done} of {len(items)} done: {texts}" if items else "empty"


def _command(given: Any) -> str:
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        from .shell import quoted

        return given[2] if len(given) == 3 and given[1] in ("-c", "-lc") else quoted(given)
    return given if isinstance(given, str) else ""


def _named(files: Iterable[tuple[str, bool]]) -> str:
    return "".join(f" {path}" for path, _ in files)


def _flat(value: Any) -> str:
    if value is None or value == {}:
        return ""
    if not isinstance(value, str):
        value = encoded(value).decode()
    return " ".join(value.split())


# -- the files that a call names -------------------------------------------------------------------------------

_IN_PATCH = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (\S.*?)[ \t\r]*$", re.MULTILINE)
_PATCH_TEXTS = ("input", "patch", "patchText")


def files_of(harness: str, name: str, arguments: Any) -> Iterator[tuple[str, bool]]:
    """The files that a call of a file tool names, as (path, whether it writes); `apply_patch` in a shell too."""
    kind, value = kind_of(harness, name), value_of(arguments)
    if kind in ("read", "write"):
        if isinstance(value, str):
            yield from _in_patch(value)
        elif isinstance(value, dict):
            patched = list(_patched(value))
            named = [value[key] for key in _PATHS if isinstance(value.get(key), str) and value[key]]
            yield from patched or [(path, kind == "write") for path in named[:1]]
    elif kind == "shell":
        for text in commands_of(harness, name, value):
            if "apply_patch" in text and "*** " in text:
                from .shell import commands

                for command in commands(text):
                    if command[0].rsplit("/", 1)[-1] == "apply_patch":
                        yield from _in_patch("\n".join((*command[1:], command.stdin or "")))


def _patched(arguments: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for key in _PATCH_TEXTS:
        if isinstance(text := arguments.get(key), str):
            yield from _in_patch(text)
    if isinstance(changes := arguments.get("changes"), dict):
        yield from ((path, True) for path in changes)


def _in_patch(text: str) -> Iterator[tuple[str, bool]]:
    if "*** " in text:
        yield from ((path, True) for path in dict.fromkeys(_IN_PATCH.findall(text)))
