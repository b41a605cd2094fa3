"""The flood cap: an answer that does not fit is cut after a whole line, and kept whole in an overflow file.

The files stand in `$TMPDIR/total-recall/`, a folder of the user's own that is never reached through a link.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
import time
from typing import NamedTuple

MARKER = "--- [EOF-TRUNCATED] ---"
MARKER_BYTES = 2560
KEPT_SECONDS = 24 * 3600
MOST_KEPT = 1 << 30  # a command that prints more than this is stopped

_REPORT = re.compile(r"[a-z_]+_.+_\d+(-\d+)?\.md")
_FORGED = re.compile(rf"(?m)(^|[\r\v\f\x1c-\x1e\x85\u2028\u2029])(?=[ \t]*{re.escape(MARKER)})")
_TRIES = 1000

# Where a text may not grow, one character stands for what is no UTF-8.
codecs.register_error("question", lambda error: ("?", error.end))  # type: ignore[attr-defined]


class NotKept(Exception):
    """The overflow could not be kept; the message says why."""


class Cut(NamedTuple):
    """The part of an answer that fits, and whether there is more."""

    text: str
    is_cut: bool


class Spool:
    """What one command prints: at most `most` bytes of it in memory, all of it in an overflow file once it is more.

    `name` is what the file is called after, `path` where it is; `unkept` says why there is none.
    """

    def __init__(self, most: int, name: str) -> None:
        self.most = most
        self.name = name
        self.head = bytearray()
        self.written = 0
        self.lines = 0
        self.ends_line = True
        self.path: str | None = None
        self.unkept: str | None = None
        self._file: int | None = None

    @property
    def total(self) -> int:
        """The answer's size without its final newline."""
        return self.written - (self.ends_line and self.written > 0)

    def take(self, chunk: bytes) -> bool:
        """Add a chunk; False when there has been too much to keep."""
        self.written += len(chunk)
        self.lines += chunk.count(b"\n")
        self.ends_line = chunk.endswith(b"\n")
        room = self.most + 1 - len(self.head)
        self.head += chunk[:room]
        if self.written > self.most + 1:
            self._keep(chunk[room:])
        return self.written <= MOST_KEPT

    def close(self) -> None:
        """Finish the overflow file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def discard(self) -> None:
        """Take back what was kept, of an answer that nobody gets."""
        self.close()
        if self.path:
            try:
                os.unlink(self.path)
            except OSError:
                pass
            self.path = None

    def text(self, room: int, whole_only: bool, broken: str = "replace") -> Cut:
        """The answer, cut to `room` bytes where it has more; `whole_only` gives all of it or nothing.

        A line that reads like the marker is escaped, so that only ours is one. `broken` is how invalid UTF-8 is
        decoded.
        """
        text = _FORGED.sub(r"\1\\", self.head.decode("utf-8", broken).removesuffix("\n"))
        data = text.encode()
        if self.total <= self.most and len(data) <= room:
            return Cut(text, False)
        self._keep(b"")
        return Cut("" if whole_only else cut_to_lines(data, room), True)

    def _keep(self, rest: bytes) -> None:
        """Write to the overflow file what is not in it yet; a file that cannot be written is given up."""
        if self.unkept:
            return
        try:
            if self.path is None:
                self._file, self.path = new_report(self.name)
                rest = bytes(self.head) + rest
            if self._file is not None:
                _write(self._file, rest)
        except (OSError, NotKept) as error:
            self.unkept = getattr(error, "strerror", None) or str(error)
            self.discard()


def cut_to_lines(data: bytes, room: int) -> str:
    """The whole lines of `data` that fit into `room` bytes, with their newlines.

    Where not even the first one fits, its beginning, cut between characters; but nothing of a line of JSON.
    """
    end = data.rfind(b"\n", 0, room) + 1
    if end:
        return data[:end].decode()
    if data[:1] in (b"{", b"[") or room < 2:
        return ""
    return data[: room - 1].decode("utf-8", "ignore") + "\n"


def marker(tool: str, returned: int, spool: Spool, note: str, histogram: str) -> str:
    """The last lines of a cut answer, one fact a line, then the file's histogram as far as it fits."""
    facts = [
        MARKER,
        f"tool: {tool}",
        f"returned_bytes: {returned}",
        f"total_bytes: {spool.total}",
        f"total_lines: {spool.lines + (not spool.ends_line)}",
        f"full_report: {spool.path or f'not kept - {spool.unkept}'}",
        f"note: {note}",
    ]
    text = "\n".join(facts)
    room = MARKER_BYTES - len(text.encode()) - 2
    shown = cut_to_lines(histogram.encode() + b"\n", room).rstrip("\n") if room > 0 else ""
    return f"{text}\n\n{shown}" if shown else text


# -- the folder --------------------------------------------------------------------------------------------------------


def folder_path() -> str:
    """Where the overflow files are."""
    return os.path.join(os.path.abspath(os.environ.get("TMPDIR") or "/tmp"), "total-recall")  # noqa: S108


def open_folder(create: bool) -> int:
    """A descriptor of the folder. Raises OSError, and NotKept when the folder is not safe to use."""
    path = folder_path()
    if create:
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise NotKept(f"{path} is a link, or no folder") from None
        raise
    found = os.fstat(folder)
    if found.st_uid != os.geteuid():
        os.close(folder)
        raise NotKept(f"{path} belongs to another user")
    if stat.S_IMODE(found.st_mode) != 0o700:
        os.fchmod(folder, 0o700)
    return folder


def new_report(name: str) -> tuple[int, str]:
    """A new overflow file `<name>_<unix-time>[-n].md`, open for writing, and its path. Raises OSError or NotKept."""
    folder = open_folder(create=True)
    try:
        stem = f"{name}_{int(time.time())}"
        for count in range(_TRIES):
            file = f"{stem}-{count}.md" if count else f"{stem}.md"
            path = os.path.join(folder_path(), file)
            if len(path) > MARKER_BYTES // 2:
                raise NotKept("the path of the temporary folder is too long")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                return os.open(file, flags, 0o600, dir_fd=folder), path
            except FileExistsError:
                continue
        raise NotKept(f"there are {_TRIES} reports of this second")
    finally:
        os.close(folder)


def report_name(tool: str, scope: str) -> str:
    """The beginning of an overflow file's name; whatever the scope is, it names no other place."""
    return f"{tool}_{re.sub(r'[^A-Za-z0-9.-]+', '_', scope)[-80:]}"


def prune() -> None:
    """Delete the overflow files that are older than a day, and nothing else; a folder that is not ours is left."""
    try:
        folder = open_folder(create=False)
    except (OSError, NotKept):
        return
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if _REPORT.fullmatch(entry.name)]
        for name in names:
            try:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > KEPT_SECONDS:
                    os.unlink(name, dir_fd=folder)
            except OSError:
                continue
    finally:
        os.close(folder)


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
