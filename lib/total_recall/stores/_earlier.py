"""Whether a record stands earlier in its file, by its id: a copy has the time of the original."""

from __future__ import annotations

import re
from typing import IO

from ..notices import Unreadable
from ..regular import BUFFER, open_regular

_ID_BYTES = 128


class Earlier:
    """The ids that stand in a file before an offset, gathered once and only when they are asked for.

    `key` is the name of the key that holds them, at any depth. Inside a text the quotes are escaped, so that what is
    found is always a key.
    """

    def __init__(self, path: str, key: str) -> None:
        self._path = path
        self._pattern = re.compile(rb'"%b":\s?"([^"\\]{1,%d})"' % (key.encode(), _ID_BYTES))
        self._overlap = len(key) + _ID_BYTES + 8
        self._file: IO[bytes] | None = None
        self._gathered: set[int] = set()
        self._end = 0

    def holds(self, id: str, offset: int) -> bool:
        """Whether a record with this id stands before `offset`; offsets are asked for in rising order."""
        try:
            self._file = self._file or open_regular(self._path)
            self._gather(self._file, offset)
        except (OSError, Unreadable):
            return False
        return hash(id.encode("utf-8", "replace")) in self._gathered

    def _gather(self, file: IO[bytes], end: int) -> None:
        while self._end < end:
            file.seek(self._end)
            size = min(BUFFER, end - self._end)
            block = file.read(min(size + self._overlap, end - self._end))
            if not block:
                return
            for match in self._pattern.finditer(block):
                if match.start() < size:
                    self._gathered.add(hash(match[1]))
            self._end += size

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
