"""JSON Type Definition: RFC 8927, form by form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from total_recall.jtd import InvalidSchema, check, errors, valid


def wrong(schema, instance):
    """The errors as `instance path / schema path`."""
    return [
        "{} | {}".format("/".join(e.instance_path), "/".join(e.schema_path)) for e in errors(check(schema), instance)
    ]


NO_SCHEMAS = {
    "no object": [None, True, 1, "string", []],
    "unknown keyword": [{"typ": "string"}, {"elements": {"foo": 1}}],
    "nullable": [{"nullable": 1}, {"type": "string", "nullable": None}],
    "metadata": [{"metadata": 1}],
    "definitions": [{"definitions": 1}, {"definitions": {"a": 1}}, {"definitions": {"a": {"definitions": {}}}}],
    "definitions below the root": [{"elements": {"definitions": {}}}, {"properties": {"a": {"definitions": {}}}}],
    "ref": [{"ref": 1}, {"ref": "a"}, {"definitions": {}, "ref": "a"}, {"definitions": {"a": {"ref": "b"}}}],
    "type": [{"type": 1}, {"type": "int64"}, {"type": ["string"]}],
    "enum": [{"enum": 1}, {"enum": []}, {"enum": ["a", 1]}, {"enum": ["a", "a"]}],
    "elements": [{"elements": 1}, {"elements": {"type": "x"}}],
    "properties": [{"properties": 1}, {"properties": {"a": 1}}, {"properties": {"a": {"type": "x"}}}],
    "optionalProperties": [{"optionalProperties": 1}, {"optionalProperties": {"a": {"type": "x"}}}],
    "additionalProperties": [{"additionalProperties": True}, {"properties": {}, "additionalProperties": 1}],
    "both": [{"properties": {"a": {}}, "optionalProperties": {"a": {}}}],
    "values": [{"values": 1}, {"values": {"type": "x"}}],
    "discriminator": [
        {"discriminator": "t"},
        {"mapping": {}},
        {"discriminator": 1, "mapping": {}},
        {"discriminator": "t", "mapping": 1},
        {"discriminator": "t", "mapping": {"a": 1}},
        {"discriminator": "t", "mapping": {"a": {}}},
        {"discriminator": "t", "mapping": {"a": {"type": "string"}}},
        {"discriminator": "t", "mapping": {"a": {"properties": {}, "nullable": True}}},
        {"discriminator": "t", "mapping": {"a": {"properties": {"t": {}}}}},
        {"discriminator": "t", "mapping": {"a": {"optionalProperties": {"t": {}}}}},
    ],
    "two forms": [
        {"definitions": {"a": {}}, "ref": "a", "type": "string"},
        {"type": "string", "enum": ["a"]},
        {"elements": {}, "values": {}},
        {"elements": {}, "properties": {}},
        {"properties": {}, "values": {}},
        {"values": {}, "discriminator": "t", "mapping": {}},
    ],
}


@pytest.mark.parametrize("schema", [schema for schemas in NO_SCHEMAS.values() for schema in schemas])
def test_what_is_no_schema(schema):
    with pytest.raises(InvalidSchema):
        check(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"nullable": True, "metadata": {"anything": 1}},
        {"definitions": {"a": {"elements": {"ref": "a"}}}, "ref": "a"},
        {"properties": {}},
        {"optionalProperties": {}, "additionalProperties": True},
        {"properties": {"type": {"type": "string"}}, "optionalProperties": {"ref": {}}},
        {"discriminator": "t", "mapping": {"a": {"properties": {"x": {}}, "nullable": False}}},
        {"discriminator": "t", "mapping": {}},
    ],
)
def test_what_is_a_schema(schema):
    assert check(schema) is schema


INTEGERS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-2147483648, 2147483647),
    "uint32": (0, 4294967295),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_have_their_ranges_and_may_be_written_as_fractions(name):
    low, high = INTEGERS[name]

    for value in (low, high, float(high), 1, 1.0, 0):
        assert valid({"type": name}, value)
    for value in (low - 1, high + 1, 1.5, True, None, "1", [], float("inf"), float("nan"), 1e300):
        assert wrong({"type": name}, value) == [" | type"]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("boolean", [True, False], [0, 1, "true", None]),
        ("string", ["", "a"], [1, None, ["a"]]),
        ("float32", [1, 1.5, -1e300], [True, "1", None]),
        ("float64", [1, 1.5], [False, "1", None]),
        (
            "timestamp",
            [
                "2026-11-30T21:20:38Z",
                "2026-11-30t21:20:38.983+05:30",
                "1990-12-31T23:59:60z",
                "2024-02-29T00:00:00-00:00",
            ],
            [
                "2026-11-30",
                "2026-11-30 21:20:38Z",
                "2026-11-30T21:20:38",
                "2026-13-30T21:20:38Z",
                "2023-02-29T00:00:00Z",
                "2026-11-30T24:20:38Z",
                "2026-11-30T21:60:38Z",
                "2026-11-30T21:20:61Z",
                "٢026-11-30T21:20:38Z",
                "",
                1,
                None,
            ],
        ),
    ],
)
def test_the_other_types(name, good, bad):
    for value in good:
        assert valid({"type": name}, value), value
    for value in bad:
        assert wrong({"type": name}, value) == [" | type"], value


def test_the_empty_form_takes_anything():
    for value in (None, 1, [], {"a": 1}):
        assert valid({}, value)


def test_nullable_takes_null_with_any_form_and_only_where_it_is_said():
    person = {"properties": {"name": {"type": "string", "nullable": True}}}

    assert valid(person, {"name": None})
    assert wrong(person, None) == [" | properties"]
    assert valid(person | {"nullable": True}, None)
    assert wrong({"definitions": {"a": {"type": "string", "nullable": True}}, "elements": {"ref": "a"}}, [None, 1]) == [
        "1 | definitions/a/type"
    ]


def test_enum():
    assert valid({"enum": ["a", "b"]}, "a")
    assert (
        wrong({"enum": ["a", "b"]}, "c") == wrong({"enum": ["a"]}, ["a"]) == wrong({"enum": ["a"]}, None) == [" | enum"]
    )


def test_elements():
    numbers = {"elements": {"type": "uint8"}}

    assert valid(numbers, [])
    assert wrong(numbers, [1, "x", 300]) == ["1 | elements/type", "2 | elements/type"]
    assert wrong(numbers, {"0": 1}) == [" | elements"]


def test_values():
    numbers = {"values": {"type": "uint8"}}

    assert valid(numbers, {})
    assert wrong(numbers, {"a": 1, "b": "x"}) == ["b | values/type"]
    assert wrong(numbers, [1]) == [" | values"]


def test_properties():
    schema = {"properties": {"a": {"type": "string"}}, "optionalProperties": {"b": {"type": "string"}}}

    assert valid(schema, {"a": "x"})
    assert valid(schema, {"a": "x", "b": "y"})
    assert wrong(schema, {"b": 1}) == [" | properties/a", "b | optionalProperties/b/type"]
    assert wrong(schema, {"a": 1, "c": 1}) == ["a | properties/a/type", "c | "]
    assert valid(schema | {"additionalProperties": True}, {"a": "x", "c": 1})
    assert wrong({"optionalProperties": {}}, []) == [" | optionalProperties"]


def test_discriminator():
    schema = {
        "discriminator": "kind",
        "mapping": {"a": {"properties": {"x": {"type": "string"}}}, "b": {"optionalProperties": {}}},
    }

    assert valid(schema, {"kind": "a", "x": "y"})
    assert valid(schema, {"kind": "b"})
    assert wrong(schema, []) == wrong(schema, {"x": "y"}) == [" | discriminator"]
    assert wrong(schema, {"kind": 1}) == ["kind | discriminator"]
    assert wrong(schema, {"kind": "c"}) == ["kind | mapping"]
    assert wrong(schema, {"kind": "a", "y": 1}) == [" | mapping/a/properties/x", "y | mapping/a"]


def test_references_may_recur_but_not_for_ever():
    tree = {"definitions": {"tree": {"elements": {"ref": "tree"}}}, "ref": "tree"}

    assert valid(tree, [[], [[]]])
    assert wrong(tree, [[], [1]]) == ["1/0 | definitions/tree/elements"]
    with pytest.raises(InvalidSchema):
        valid({"definitions": {"loop": {"ref": "loop"}}, "ref": "loop"}, 1)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def described(value):
    """A schema made from a value."""
    if value is None:
        return {"nullable": True, "type": "string"}
    if isinstance(value, dict):
        return {"properties": {key: described(inner) for key, inner in value.items()}}
    if isinstance(value, list):
        return {"elements": {}} if value else {"elements": {"type": "string"}}
    return {"type": {bool: "boolean", int: "float64", float: "float64", str: "string"}[type(value)]}


@given(json_values, json_values)
def test_a_value_fits_the_schema_made_from_it_and_another_never_raises(value, other):
    schema = check(described(value))

    assert valid(schema, value)
    list(errors(schema, other))


@given(json_values)
def test_any_value_is_a_schema_or_refused(value):
    try:
        check(value)
    except InvalidSchema:
        return
    assert isinstance(value, dict)
