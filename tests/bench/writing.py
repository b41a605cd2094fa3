"""What the writers of all harnesses share: ids, times, and the account of what a session holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

_EPOCH = datetime(1970, 1, 1)


@dataclass
class Facts:
    """What a listing must find in the session."""

    user_count: int = 0
    assistant_count: int = 0
    tool_count: int = 0
    has_compaction: bool = False


def uuid(rng: Random) -> str:
    """A version 4 UUID."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


def iso(milliseconds: int) -> str:
    """A time as `2026-11-30T21:20:38.983Z`."""
    return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds") + "Z"
