"""What a complete search looks for: a literal or a regular expression."""

from __future__ import annotations

import re

from .notices import Unreadable
from .regular import open_regular
from .stores.tools import TOOLS

_CHUNK = 1 << 20
_RUN = re.compile(r"[a-z]{3,}")
# Letters that adapters write themselves, in markers and in names of tools, and that stand in no file.
_MADE = " ".join(("image file audio bytes document attachment", *(name.lower() for t in TOOLS.values() for name in t)))
# What a lower-case letter may come from besides itself: the Kelvin sign, a dotted capital I, an escaped letter.
_FOREIGN = (b"\xe2\x84\xaa", b"\xc4\xb0")
_ESCAPED = re.compile(rb"\\u00[4-7]")


class BadPattern(ValueError):
    """A regular expression that cannot be used."""


class Literal:
    """A substring, whatever its case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._needle = text.lower()
        self._slow = re.compile(re.escape(text), re.IGNORECASE)
        self._core = self._run()

    def find(self, text: str) -> tuple[int, int] | None:
        lowered = text.lower()
        start = lowered.find(self._needle)
        if start < 0:
            return None
        if len(lowered) == len(text):
            return start, start + len(self._needle)
        found = self._slow.search(text)  # a few letters change their length with their case
        return found.span() if found else (start, min(start + len(self._needle), len(text)))

    def _run(self) -> bytes:
        """The longest part that must stand as it is in any file that says it; empty when nothing is that sure."""
        runs = [run for run in _RUN.findall(self._needle) if run not in _MADE]
        return max(runs, key=len).encode() if runs else b""

    def may_stand_in(self, path: str) -> bool:
        """Whether a file may hold it, by its bytes alone; False is certain."""
        if not self._core:
            return True
        keep = len(self._core) + 8
        try:
            with open_regular(path, 0) as file:
                rest = b""
                while chunk := file.read(_CHUNK):
                    block = rest + chunk
                    if self._core in block.lower() or _disguises(block):
                        return True
                    rest = chunk[-keep:]
        except (OSError, Unreadable):
            return True
        return False


def _disguises(block: bytes) -> bool:
    """Whether a letter of ASCII may stand there as something else; the cheap questions come first."""
    if b"\\u00" in block and _ESCAPED.search(block):
        return True
    return not block.isascii() and any(letter in block for letter in _FOREIGN)


class Regex:
    """A regular expression of RE2, which takes linear time whatever the pattern and the text."""

    def __init__(self, text: str) -> None:
        try:
            import re2
        except ImportError:
            raise BadPattern(
                "regular expressions need the Python package google-re2 - install it, or use --match literal"
            ) from None
        options = re2.Options()
        options.log_errors = False
        try:
            self._pattern = re2.compile(text, options=options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
            raise BadPattern(
                f"no regular expression of RE2: {reason} - or search for it with --match literal"
            ) from None

    def find(self, text: str) -> tuple[int, int] | None:
        found = self._pattern.search(text)
        return found.span() if found else None
