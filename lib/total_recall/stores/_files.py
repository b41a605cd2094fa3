"""The files of a store that keeps each session in one of its own, and what their first lines say."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..notices import Notices, Unreadable
from ..record import Record
from .base import Memory

_DEEPEST = 16


class File(NamedTuple):
    """A regular file with its size in bytes, its time in seconds since 1970, and its inode."""

    path: str
    size: int
    updated: float
    inode: int

    @property
    def stem(self) -> str:
        """The name without its folder and its last suffix."""
        return os.path.splitext(os.path.basename(self.path))[0]


def home(environ: Mapping[str, str], *below: str) -> str:
    """A path below the home directory; empty when there is none."""
    folder = environ.get("HOME", "").strip()
    return os.path.join(folder, *below) if folder else ""


def regular_files(folder: str, notices: Notices) -> Iterator[File]:
    """The regular files at any depth, in an order that is always the same.

    A folder or a file that several links lead to is met once; a folder below that cannot be read is a failure that is
    remembered. Raises Unreadable when `folder` itself cannot be listed.
    """
    waiting, met = [(folder, 0)], set()
    while waiting:
        here, depth = waiting.pop()
        try:
            known = os.stat(here)
            if (known.st_dev, known.st_ino) in met:
                continue
            met.add((known.st_dev, known.st_ino))
            with os.scandir(here) as listing:
                entries = sorted(listing, key=lambda entry: (entry.is_symlink(), entry.name))
        except FileNotFoundError:
            continue
        except OSError as error:
            if not depth:
                raise Unreadable(here, error) from error
            notices.fail(here, Unreadable(here, error))
            continue
        for entry in entries:
            try:
                known = entry.stat()
            except OSError:
                continue  # gone meanwhile, or a link that leads nowhere
            if stat.S_ISDIR(known.st_mode):
                if depth < _DEEPEST:
                    # A link comes after all folders: a file is known by its own path where there is one.
                    waiting.insert(0 if entry.is_symlink() else len(waiting), (entry.path, depth + 1))
            elif stat.S_ISREG(known.st_mode) and (known.st_dev, known.st_ino) not in met:
                met.add((known.st_dev, known.st_ino))
                yield File(entry.path, known.st_size, max(known.st_mtime, 0.0), known.st_ino)


class Heads:
    """What the beginnings of files say, read once for each file and remembered for the store as a whole.

    `read` gives what a file's first records say; under `whole`, whether no later record can add to it.
    """

    def __init__(self, root: str, memory: Memory, read: Callable[[str], Record]) -> None:
        self._root = root
        self._memory = memory
        self._read = read

    def of(self, files: Iterable[File]) -> dict[str, Record]:
        """The heads of these files by path; only files that are new, replaced or not long enough before are opened."""
        kept = self._memory.get("heads", self._root)
        known = kept[1] if kept else {}
        heads = {file.path: self._head(file, known.get(file.path)) for file in files}
        if heads != known:
            self._memory.put("heads", self._root, "", heads)
        return {path: head for path, (_, _, head) in heads.items()}

    def _head(self, file: File, known: Any) -> list[Any]:
        if known is not None:
            inode, size, head = known
            if inode == file.inode and (size == file.size or (head.get("whole") and size < file.size)):
                return [inode, size, head]
        return [file.inode, file.size, self._read(file.path)]
