"""One row of the table of tools: what a model reads of it, and how a call becomes a command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from .fields import Field, Refused, out_of_range

Values = dict[str, Any]

REPORT_BYTES = 16_384
MOST_BYTES = 8_388_608
EVER_HOURS = 1_000_000  # a window so long is the whole store: no session is a century old


class Call(NamedTuple):
    """A checked call: what follows the executable's name, the bound of the answer, and what the call is about."""

    words: list[str]
    max_bytes: int
    scope: str


def _session(values: Values) -> list[str]:
    return [values["session_id"]] if values.get("session_id") else []


class Tool(NamedTuple):
    """One row of the table.

    `options` are always given, `operands` makes what follows `--`, `arrange` refuses values that do not go together
    and puts the others into the command's terms. `shape` says what the command prints: `document` (one JSON value,
    never torn), `lines` (cut after a whole line) or `bounded` (lines that it holds to max_bytes itself). Where
    `may_miss`, status 1 means that nothing matched. `bound` are the harnesses that the server is for, where it is not
    for all. `seconds` is the time limit.
    """

    name: str
    command: str
    about: str
    fields: dict[str, Field]
    options: tuple[str, ...] = ()
    operands: Callable[[Values], list[str]] = _session
    arrange: Callable[[Values], None] | None = None
    shape: str = "lines"
    may_miss: bool = False
    takes_harness: bool = True
    bound: tuple[str, ...] = ()
    seconds: int = 120
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's arguments: flat, and saying what `call` enforces."""
        found: dict[str, Any] = {
            "type": "object",
            "properties": {name: field.schema() for name, field in self.fields.items()},
            "additionalProperties": False,
        }
        if required := [name for name, field in self.fields.items() if field.required]:
            found["required"] = required
        return found

    def call(self, arguments: dict[str, Any]) -> Call:
        """Check what a model passed and make the command line of it. Raises Refused."""
        for name in arguments:
            if name not in self.fields:
                accepted = "|".join(sorted(self.fields)) or "no fields"
                raise Refused(f"unrecognised field `{one_line(name)}` - {self.name} accepts: {accepted}")
        values = {name: field.checked(name, arguments.get(name)) for name, field in self.fields.items()}
        scope = next((values[name] for name in ("session_id", "file_path", "harness") if values.get(name)), "all")
        for name in ("session_id", "file_path"):
            if values.get(name) == "-":
                raise out_of_range(name, self.fields[name].advice)
        if "all" in self.fields:
            _choose_window(values, hours_given=bool(arguments.get("hours_back")))
        if (values.get("hours_back") or 0) >= EVER_HOURS:
            values["hours_back"] = 0
        if self.arrange:
            self.arrange(values)
        words = [word for name, field in self.fields.items() for word in field.words(values[name])]
        if self.takes_harness and not values.get("harness"):
            words += [f"--harness={name}" for name in self.bound]
        return Call([*words, *self.options, "--", *self.operands(values)], values.get("max_bytes", REPORT_BYTES), scope)

    def reworded(self, sentence: str) -> str:
        """A command's own sentence, its options named as the tool's fields."""
        fields = {field.option: f"`{name}`" for name, field in self.fields.items() if field.option}
        return re.sub(r"(?<![\w-])--[a-z][a-z-]*", lambda found: fields.get(found[0], found[0]), sentence)


def one_line(text: str) -> str:
    """A name that a model made up, fit for a message of one line."""
    return "".join(character if character.isprintable() else " " for character in text[:80])


def _choose_window(values: Values, hours_given: bool) -> None:
    """A session chooses itself; else `all` means the whole store; else the window is what was passed."""
    if values["all"] and hours_given:
        raise Refused("all: true is the whole store; hours_back is a window - pass one, not both")
    if values["session_id"]:
        values["hours_back"] = values["directory"] = None
    elif values["all"]:
        values["hours_back"] = 0
