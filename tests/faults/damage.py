"""What happens to a stored record: one function a fault, from its bytes to what is left of them.

Beside each stands what it costs: `nothing` (the same is told), `text` (the record is told, its text is another one) or
`record` (the record is lost); and whether there is something to say about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

MARK = "\u2603MARK\u2603"


class Fault(NamedTuple):
    """A fault of one unit: what it makes of it, what it costs, and whether a notice names it."""

    apply: Callable[[bytes], bytes]
    costs: str
    said: bool
    only_lines: bool = False


def in_text(unit: bytes, inserted: bytes) -> bytes:
    """The unit with these bytes, as they are, in the middle of its longest text."""
    value = orjson.loads(unit)
    holder, key = max(texts(value), key=lambda place: len(place[0][place[1]]))
    text = holder[key]
    holder[key] = text[: len(text) // 2] + MARK + text[len(text) // 2 :]
    return orjson.dumps(value).replace(MARK.encode(), inserted)


def texts(value: Any) -> Iterator[tuple[Any, Any]]:
    """The places of all strings in a JSON value, as (holder, key)."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        if isinstance(member, str):
            yield value, key
        else:
            yield from texts(member)


def with_member(unit: bytes, member: bytes) -> bytes:
    """The unit with one more member, written as it is, at its end."""
    return unit.rstrip()[:-1] + b"," + member + b"}"


_DEEP = 30_000

UNITS: dict[str, Fault] = {
    "torn in the middle": Fault(lambda unit: unit[: len(unit) // 2], "record", True),
    "torn in a key": Fault(lambda unit: unit[:4], "record", True),
    "without its end": Fault(lambda unit: unit[:-1], "record", True),
    "null": Fault(lambda unit: b"null", "record", True),
    "a list": Fault(lambda unit: b"[" + unit + b"]", "record", True),
    "a string": Fault(lambda unit: orjson.dumps(unit.decode()), "record", True),
    "a number": Fault(lambda unit: b"-0", "record", True),
    "true": Fault(lambda unit: b"true", "record", True),
    "an empty object": Fault(lambda unit: b"{}", "record", False),
    "no JSON at all": Fault(lambda unit: b'<!doctype html><title>502 {"} Bad Gateway</title>', "record", True),
    "a run of NULs": Fault(lambda unit: b"\0" * 700, "record", True),
    "NULs before it": Fault(lambda unit: b"\0" * 512 + unit, "nothing", False, only_lines=True),
    "NULs behind it": Fault(lambda unit: unit + b"\0" * 512, "nothing", False, only_lines=True),
    "blanks round it": Fault(lambda unit: b" \t" + unit + b" \t", "nothing", False),
    "a byte order mark in mid-file": Fault(lambda unit: b"\xef\xbb\xbf" + unit, "nothing", True, only_lines=True),
    "glued to the stub of another": Fault(lambda unit: unit[: len(unit) // 3] + unit, "nothing", True, only_lines=True),
    "rubbish behind it": Fault(lambda unit: unit + b"}]garbage", "nothing", True, only_lines=True),
    "invalid UTF-8 in a text": Fault(lambda unit: in_text(unit, b"\xff\xc3"), "text", False),
    "an overlong sequence in a text": Fault(lambda unit: in_text(unit, b"\xc0\xaf\xed\xa0\x80"), "text", False),
    "a lone surrogate in a text": Fault(lambda unit: in_text(unit, b"\\ud83d"), "text", False),
    "half a pair before another": Fault(lambda unit: in_text(unit, b"\\udcb2\\ud83d\\ude00"), "text", False),
    "a bare control character in a text": Fault(lambda unit: in_text(unit, b"\x01\x1b"), "text", False),
    "a NUL in a text": Fault(lambda unit: in_text(unit, b"\0"), "text", False, only_lines=True),
    "an escaped NUL in a text": Fault(lambda unit: in_text(unit, b"\\u0000"), "text", False),
    "a bare tab in a text": Fault(lambda unit: in_text(unit, b"\t"), "text", False),
    "line separators of Unicode in a text": Fault(
        lambda unit: in_text(unit, "\u2028\u2029\x85\x0b\x0c".encode()), "text", False
    ),
    "a carriage return in a text": Fault(lambda unit: in_text(unit, b"\r"), "text", False),
    "a long text": Fault(lambda unit: in_text(unit, b"long " * 400_000), "text", False),
    # Of two members SQLite takes the first, every parser of ours the last: in a database there are none.
    "a key twice": Fault(lambda unit: b'{"type":17,"role":[],' + unit.lstrip()[1:], "nothing", False, only_lines=True),
    "NaN": Fault(lambda unit: with_member(unit, b'"n":[NaN,Infinity,-Infinity]'), "nothing", False),
    "numbers beyond all bounds": Fault(
        lambda unit: with_member(unit, b'"n":[1e999,-1e999,' + b"9" * 5000 + b"]"), "nothing", False
    ),
    "nested deeply": Fault(
        lambda unit: with_member(unit, b'"deep":' + b"[" * _DEEP + b"]" * _DEEP), "record or nothing", False
    ),
    "nested deeply and torn": Fault(lambda unit: with_member(unit, b'"deep":' + b'{"a":' * _DEEP), "record", True),
    "nested as deeply as the fast parser goes": Fault(
        lambda unit: with_member(unit, b'"deep":' + b"[" * 900 + b"]" * 900), "nothing", False
    ),
}

FILES: dict[str, tuple[Callable[[list[bytes]], bytes], bool]] = {
    "a byte order mark": (lambda units: b"\xef\xbb\xbf" + b"".join(unit + b"\n" for unit in units), False),
    "carriage returns": (lambda units: b"".join(unit + b"\r\n" for unit in units), False),
    "blank lines": (lambda units: b"\n\r\n  \n".join(units) + b"\n\n\n", False),
    "no line end at the end": (lambda units: b"\n".join(units), False),
    "NULs at the end": (lambda units: b"".join(unit + b"\n" for unit in units) + b"\0" * 4096, True),
    "NULs at the beginning": (lambda units: b"\0" * 4096 + b"".join(unit + b"\n" for unit in units), False),
    "a line of NULs between all": (lambda units: b"\n\0\0\0\n".join(units) + b"\n", True),
    "two records on each line": (
        lambda units: b"".join(unit + (b"\n" if number % 2 else b"") for number, unit in enumerate(units)) + b"\n",
        True,
    ),
    "many records of unknown types before the first": (
        lambda units: b"\n".join([*[b'{"type":"novelty"}'] * 30, *units]) + b"\n",
        False,
    ),
    "many records of unknown types after the first": (
        lambda units: b"\n".join([units[0], *[b'{"type":"novelty"}'] * 600, *units[1:]]) + b"\n",
        False,
    ),
    "lone carriage returns": (lambda units: b"\r".join(units) + b"\n", True),
}

# Records that were written once more, as they are.
AGAIN: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "each behind itself": lambda units: [unit for unit in units for _ in range(2)],
    "all behind the last": lambda units: units * 2,
    "the first half behind the last": lambda units: units + units[: len(units) // 2],
}

EMPTY: dict[str, bytes] = {
    "empty": b"",
    "one line end": b"\n",
    "blanks": b" \n\t\n\r\n",
    "NULs": b"\0" * 5000,
    "a byte order mark alone": b"\xef\xbb\xbf",
    "noise": bytes(range(256)) * 40,
    "one long line of brackets": b"[" * 300_000,
    "one long line of beginnings": b'{"' * 200_000,
    "many beginnings of records": b'{"type":"user","uuid":"1",' * 20_000,
    "compressed with gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + bytes(range(255, 0, -1)) * 30,
}
