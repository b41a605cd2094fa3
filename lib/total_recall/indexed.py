"""Which sessions the search index holds, told without opening it by a list that is written after each commit."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from functools import lru_cache
from zlib import crc32

from .shadow import write_beside

try:
    from _blake2 import blake2b  # as hashlib has it, without loading OpenSSL for the others
except ImportError:
    from hashlib import blake2b

_NAME = "sessions.u64"
_SUM_BYTES = 8


@lru_cache(None)
def number_of(name: str) -> int:
    """The 64-bit number that stands for a session id, or for what a session looked like."""
    return int.from_bytes(blake2b(name.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def publish(folder: str, numbers: Iterable[int]) -> None:
    """Say which sessions, by `number_of(session_id)`, the index in `folder` holds."""
    listed = array("Q", sorted(numbers)).tobytes()
    write_beside(os.path.join(folder, _NAME), listed + _sum(listed))


def is_published(folder: str) -> bool:
    """Whether the list is there, whole, and not older than the index's last commit."""
    try:
        listed = os.stat(os.path.join(folder, _NAME)).st_mtime_ns
        return listed >= os.stat(os.path.join(folder, "meta.json")).st_mtime_ns and _listed(folder) is not None
    except OSError:
        return False


def indexed(shadow: str) -> frozenset[int]:
    """The numbers of the sessions that the index in a shadow folder holds; none where there is no index."""
    folder = os.path.join(shadow, "index")
    return frozenset(_listed(folder) or ()) if os.path.exists(os.path.join(folder, "meta.json")) else frozenset()


def _listed(folder: str) -> array[int] | None:
    """The list; None where there is none, or what is there is damaged."""
    try:
        with open(os.path.join(folder, _NAME), "rb") as file:
            text = file.read()
    except OSError:
        return None
    listed = text[:-_SUM_BYTES]
    return array("Q", listed) if text[-_SUM_BYTES:] == _sum(listed) and len(listed) % 8 == 0 else None


def _sum(listed: bytes) -> bytes:
    return crc32(listed).to_bytes(_SUM_BYTES, "little")
