"""Locks between processes, held on an open file: they end with the process, however it ends."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_REFUSED = (errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK)
_PAUSE = 0.01  # seconds between two tries


@contextmanager
def alone(path: str, patience: float) -> Iterator[None]:
    """No other process is inside this with the same path, a file made for it; TimeoutError after `patience` seconds."""
    from time import monotonic, sleep

    until = monotonic() + patience
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        while not _lock(handle):
            if monotonic() >= until:
                raise TimeoutError(errno.ETIMEDOUT, "another process keeps it locked", path)
            sleep(_PAUSE)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock a file for as long as it is open in this process; False when another has done so."""
    try:
        import fcntl
    except ImportError:
        from importlib import import_module

        windows = import_module("msvcrt")
        locked = lambda: windows.locking(handle, windows.LK_NBLCK, 1)  # noqa: E731
    else:
        locked = lambda: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # noqa: E731
    try:
        locked()
    except OSError as error:
        if error.errno in _REFUSED:
            return False
        raise
    return True
