"""Opening files that others own: whatever has come to stand there, nothing waits for it and nothing is set off."""

from __future__ import annotations

import os
import stat
from typing import IO

from .notices import Unreadable

BUFFER = 1 << 20  # with the default buffer a third of the time goes into refilling it


def open_regular(path: str, buffering: int = BUFFER) -> IO[bytes]:
    """Open a regular file for reading; FIFOs, sockets and devices are refused without touching them.

    Raises Unreadable, and FileNotFoundError when the file is gone.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Unreadable(path, "not a regular file")
    return open(handle, "rb", buffering=buffering)
