"""What a tool takes: one field of its schema, and the check of what a model passed for it."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST_CHARACTERS = 32_000  # of a text: in any language it fits one argument of a command, 128 KiB
MOST_INTEGER = 2**53 - 1  # what every JSON reader keeps exact


class Refused(Exception):
    """A call that cannot be answered as asked; the message says what would work."""


def out_of_range(field: str, advice: str) -> Refused:
    """The refusal of a value, in the one form that a model learns."""
    return Refused(f"`{field}` is out of range - {advice}")


class Field(NamedTuple):
    """One field: its JSON type, what the schema says of it, and the option it becomes.

    `advice` says in a refusal what would work. `default` is applied here as well, because a host may drop a schema's
    defaults and pass null or "" for what was left out; with `zero_is_unset` 0 means the same. An `option` that begins
    with `--no-` is given when a boolean is false; a field without one is used by its tool in some other way.
    """

    type: str
    about: str
    advice: str
    option: str | None = None
    default: Any = None
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    zero_is_unset: bool = False

    def schema(self) -> dict[str, Any]:
        """The field's JSON Schema."""
        text: dict[str, Any] = {"type": "string"}
        text.update({"enum": list(self.choices)} if self.choices else {"maxLength": MOST_CHARACTERS})
        found: dict[str, Any] = text if self.type == "string" else {"type": self.type}
        if self.type == "array":
            found["items"] = text
        if self.minimum is not None:
            found["minimum"] = self.minimum
        if self.maximum is not None:
            found["maximum"] = self.maximum
        if self.default is not None:
            found["default"] = self.default
        found["description"] = self.about
        return found

    def checked(self, name: str, given: Any) -> Any:
        """The value to use for what was passed. Raises Refused."""
        unset = given is None or given == "" or given == [] or (self.zero_is_unset and given == 0)
        if unset and not isinstance(given, bool | float):
            if self.required:
                raise out_of_range(name, self.advice)
            return self.default
        if not self._fits(given):
            raise out_of_range(name, self.advice)
        return list(dict.fromkeys(given)) if self.type == "array" else given

    def _fits(self, given: Any) -> bool:
        if self.type == "boolean":
            return isinstance(given, bool)
        if self.type == "integer":
            return type(given) is int and (self.minimum or 0) <= given and (self.maximum or given) >= given
        if self.type == "string":
            return self._is_text(given) and not (self.required and not given.strip())
        return isinstance(given, list) and all(self._is_text(item) for item in given)

    def _is_text(self, given: Any) -> bool:
        if not isinstance(given, str) or len(given) > MOST_CHARACTERS or "\0" in given:
            return False
        if any("\ud800" <= character <= "\udfff" for character in given):
            return False
        return not self.choices or given in self.choices

    def words(self, value: Any) -> list[str]:
        """The options that a checked value becomes on the command line."""
        if self.option is None or value is None:
            return []
        if isinstance(value, bool):
            return [self.option] if value != self.option.startswith("--no-") else []
        glue = "=" if self.option.startswith("--") else ""
        return [f"{self.option}{glue}{item}" for item in (value if isinstance(value, list) else [value])]
