"""JSON Type Definition (RFC 8927): does a JSON value have the shape that a schema describes?

Only what the RFC says, so that a schema means the same to any other implementation. (The one on PyPI, last released
in 2020, refuses every schema with additionalProperties.) Values and schemas are as the JSON decoder gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

Schema = dict[str, Any]
Path = tuple[str, ...]


class Error(NamedTuple):
    """One way in which a value does not fit: where in the value, and by which part of the schema."""

    instance_path: Path
    schema_path: Path


class InvalidSchema(ValueError):
    """What was given as a schema is none."""


# The keywords of each form (RFC 8927 section 2.2); those that go with any form are beside.
_FORMS = (
    frozenset(("ref",)),
    frozenset(("type",)),
    frozenset(("enum",)),
    frozenset(("elements",)),
    frozenset(("properties", "optionalProperties", "additionalProperties")),
    frozenset(("values",)),
    frozenset(("discriminator", "mapping")),
)
_SHARED = frozenset(("nullable", "metadata"))
_INTEGERS = {f"{sign}int{bits}": (bits, sign == "") for bits in (8, 16, 32) for sign in ("", "u")}
_TYPES = frozenset(("boolean", "string", "timestamp", "float32", "float64", *_INTEGERS))
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
_DEPTH = 200


def check(schema: Any) -> Schema:
    """The schema itself, if it is one. Raises InvalidSchema."""
    schema = _object(schema, "a schema")
    definitions = schema.get("definitions", {})
    for name, definition in _object(definitions, "definitions").items():
        _check(definition, definitions, f"definitions/{name}")
    _check({key: value for key, value in schema.items() if key != "definitions"}, definitions, "the root")
    return schema


def errors(schema: Schema, instance: Any) -> Iterator[Error]:
    """Everything in which the value differs from the (checked) schema; nothing if it is valid.

    Raises InvalidSchema for references that never end.
    """
    return _errors(schema, instance, (), (), schema.get("definitions", {}), 0)


def valid(schema: Schema, instance: Any) -> bool:
    """Whether the value has the shape that the (checked) schema describes."""
    return next(errors(schema, instance), None) is None


# -- schemas ---------------------------------------------------------------------------------------------------


def _object(value: Any, what: str) -> Schema:
    if not isinstance(value, dict):
        raise InvalidSchema(f"{what} must be an object")
    return value


def _require(holds: bool, place: str, what: str) -> None:
    if not holds:
        raise InvalidSchema(f"{place}: {what}")


def _check(schema: Any, definitions: Schema, place: str, depth: int = 0) -> None:
    """Check a schema that is not the root, and those in it."""
    _require(depth < _DEPTH, place, "nested too deeply")
    keywords = _object(schema, place).keys() - _SHARED
    _require(any(keywords <= form for form in _FORMS), place, f"no form has the keywords {', '.join(sorted(keywords))}")
    _require(isinstance(schema.get("nullable", False), bool), place, "nullable must be true or false")
    _object(schema.get("metadata", {}), f"{place}/metadata")
    if "ref" in schema:
        _require(isinstance(schema["ref"], str) and schema["ref"] in definitions, place, "ref must name a definition")
    elif "type" in schema:
        _require(isinstance(schema["type"], str) and schema["type"] in _TYPES, place, "unknown type")
    elif "enum" in schema:
        values = schema["enum"]
        strings = isinstance(values, list) and all(isinstance(value, str) for value in values)
        _require(strings and 0 < len(values) == len(set(values)), place, "enum must be a list of different strings")
    elif keywords <= _FORMS[4] and keywords:
        _check_properties(schema, definitions, place, depth)
    elif keywords & _FORMS[6]:
        _check_mapping(schema, definitions, place, depth)
    for keyword in ("elements", "values"):
        if keyword in schema:
            _check(schema[keyword], definitions, f"{place}/{keyword}", depth + 1)


def _check_properties(schema: Schema, definitions: Schema, place: str, depth: int) -> None:
    required, optional = schema.get("properties", {}), schema.get("optionalProperties", {})
    _require("properties" in schema or "optionalProperties" in schema, place, "additionalProperties stands alone")
    _require(isinstance(schema.get("additionalProperties", False), bool), place, "additionalProperties is no boolean")
    for keyword, properties in (("properties", required), ("optionalProperties", optional)):
        for name, inner in _object(properties, f"{place}/{keyword}").items():
            _check(inner, definitions, f"{place}/{keyword}/{name}", depth + 1)
    _require(not required.keys() & optional.keys(), place, "a property is both required and optional")


def _check_mapping(schema: Schema, definitions: Schema, place: str, depth: int) -> None:
    _require("discriminator" in schema and "mapping" in schema, place, "discriminator and mapping go together")
    tag = schema["discriminator"]
    _require(isinstance(tag, str), place, "discriminator must be a string")
    for name, inner in _object(schema["mapping"], f"{place}/mapping").items():
        inside = f"{place}/mapping/{name}"
        _check(inner, definitions, inside, depth + 1)
        _require("properties" in inner or "optionalProperties" in inner, inside, "not of the properties form")
        _require(not inner.get("nullable"), inside, "must not be nullable")
        both = inner.get("properties", {}).keys() | inner.get("optionalProperties", {}).keys()
        _require(tag not in both, inside, "the discriminator is one of the properties")


# -- values ----------------------------------------------------------------------------------------------------


def _errors(schema: Schema, value: Any, at: Path, by: Path, definitions: Schema, depth: int) -> Iterator[Error]:
    if depth > _DEPTH:
        raise InvalidSchema("references or values nested too deeply")
    if value is None and schema.get("nullable"):
        return
    if "ref" in schema:
        name = schema["ref"]
        yield from _errors(definitions[name], value, at, ("definitions", name), definitions, depth + 1)
    elif "type" in schema:
        if not _has_type(value, schema["type"]):
            yield Error(at, (*by, "type"))
    elif "enum" in schema:
        if not isinstance(value, str) or value not in schema["enum"]:
            yield Error(at, (*by, "enum"))
    elif "elements" in schema:
        if isinstance(value, list):
            for number, item in enumerate(value):
                inner = schema["elements"]
                yield from _errors(inner, item, (*at, str(number)), (*by, "elements"), definitions, depth + 1)
        else:
            yield Error(at, (*by, "elements"))
    elif "properties" in schema or "optionalProperties" in schema:
        yield from _in_properties(schema, value, at, by, definitions, depth)
    elif "values" in schema:
        if isinstance(value, dict):
            for key, item in value.items():
                inner = schema["values"]
                yield from _errors(inner, item, (*at, key), (*by, "values"), definitions, depth + 1)
        else:
            yield Error(at, (*by, "values"))
    elif "discriminator" in schema:
        yield from _in_mapping(schema, value, at, by, definitions, depth)


def _in_properties(
    schema: Schema, value: Any, at: Path, by: Path, definitions: Schema, depth: int, tag: str | None = None
) -> Iterator[Error]:
    """The errors of an object; `tag` is the discriminator that led here, which is no property of its own."""
    if not isinstance(value, dict):
        yield Error(at, (*by, "properties" if "properties" in schema else "optionalProperties"))
        return
    required, optional = schema.get("properties", {}), schema.get("optionalProperties", {})
    for key in required:
        if key not in value:
            yield Error(at, (*by, "properties", key))
    for keyword, properties in (("properties", required), ("optionalProperties", optional)):
        for key, inner in properties.items():
            if key in value:
                yield from _errors(inner, value[key], (*at, key), (*by, keyword, key), definitions, depth + 1)
    if not schema.get("additionalProperties"):
        for key in value:
            if key not in required and key not in optional and key != tag:
                yield Error((*at, key), by)


def _in_mapping(schema: Schema, value: Any, at: Path, by: Path, definitions: Schema, depth: int) -> Iterator[Error]:
    tag, mapping = schema["discriminator"], schema["mapping"]
    if not isinstance(value, dict) or tag not in value:
        yield Error(at, (*by, "discriminator"))
    elif not isinstance(value[tag], str):
        yield Error((*at, tag), (*by, "discriminator"))
    elif value[tag] not in mapping:
        yield Error((*at, tag), (*by, "mapping"))
    else:
        chosen = value[tag]
        yield from _in_properties(mapping[chosen], value, at, (*by, "mapping", chosen), definitions, depth + 1, tag)


def _has_type(value: Any, name: str) -> bool:
    if name == "boolean":
        return isinstance(value, bool)
    if name == "string":
        return isinstance(value, str)
    if name == "timestamp":
        return isinstance(value, str) and _is_timestamp(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if name in ("float32", "float64"):
        return True
    bits, signed = _INTEGERS[name]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return low <= value <= high and value == int(value)


def _is_timestamp(text: str) -> bool:
    """Whether a text is an RFC 3339 date and time; a leap second counts as the last of its minute."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    try:
        date.fromisoformat(match[1])
    except ValueError:
        return False
    return True
