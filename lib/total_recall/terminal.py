"""Text for a terminal: without escapes, measured in columns."""

from __future__ import annotations

import re
import unicodedata

# CSI sequences; OSC, DCS and other strings that are ended; else an escape with the character after it. No string has
# the beginning of another in it, so that many beginnings without an end take no quadratic time.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u061c]")


def clean(text: str) -> str:
    """`text` without terminal escapes, control characters (newline and tab stay) and bidi controls."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def flat(text: object) -> str:
    """A value on one line."""
    return " ".join(clean(str(text)).split()) if text is not None else ""


def width_of(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    return len(text) if text.isascii() else sum(map(_column_count, text))


def _column_count(character: str) -> int:
    if unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fitted(text: str, width: int) -> str:
    """`text` in exactly `width` columns, cut with an ellipsis or filled with blanks."""
    if width_of(text) > width:
        text = _beginning(text, width - 1) + "…"
    return text + " " * (width - width_of(text))


def tail(text: str, width: int) -> str:
    """The end of a text in at most `width` columns, after an ellipsis if that is not all of it."""
    if width_of(text) <= width:
        return text
    return "…" + _beginning(text[::-1], width - 1)[::-1]


def _beginning(text: str, width: int) -> str:
    """As many characters as fit into so many columns."""
    for place, character in enumerate(text):
        width -= _column_count(character)
        if width < 0:
            return text[:place]
    return text
