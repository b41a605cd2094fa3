"""What a complete search looks for: a literal or a regular expression."""

from __future__ import annotations

import re

from .notices import Unreadable
from .regular import open_regular
from .stores.tools import TOOLS

_CHUNK = 1 << 20
_LONG = 4  # letters of a part that is rare enough
_RUN = re.compile(r"[a-z]{3,}")
# Letters that adapters write themselves, in markers and in names of tools, and that stand in no file.
_MADE = " ".join(("image file audio bytes document attachment", *(name.lower() for t in TOOLS.values() for name in t)))
# What a lower-case letter may come from besides itself: an escaped letter, the Kelvin sign, a dotted capital I.
_ESCAPED = re.compile(rb"\\u00[4-7]")
_KELVIN, _DOTTED = "\u212a".encode(), "\u0130".encode()


class BadPattern(ValueError):
    """A regular expression that cannot be used."""


class Literal:
    """A substring, whatever its case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._needle = text.lower()
        self._slow = re.compile(re.escape(text), re.IGNORECASE)
        self._core = self._run()
        self._foreign = _foreign(self._core)

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
        """A long part that must stand as it is in any file that says it; empty when nothing is that sure."""
        runs = [run.encode() for run in _RUN.findall(self._needle) if run not in _MADE]
        return max(runs, key=lambda run: (not _foreign(run) and len(run) > _LONG, len(run)), default=b"")

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
                    if self._core in block.lower() or self._is_disguised(block):
                        return True
                    rest = chunk[-keep:]
        except (OSError, Unreadable):
            return True
        return False

    def _is_disguised(self, block: bytes) -> bool:
        """Whether a letter of the run may stand there as something else."""
        if b"\\u00" in block and _ESCAPED.search(block):
            return True
        return any(letter in block for letter in self._foreign)


def _foreign(run: bytes) -> list[bytes]:
    """The letters beyond ASCII in whose place some of these may stand in lower case."""
    # Of a dotted I more than an i is left: only the end of the run can stand there.
    return [_KELVIN] * (b"k" in run) + [_DOTTED] * run.endswith(b"i")


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
