"""The shadow folder of a store: where everything derived from it lives, beside the store and never inside it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress

from .notices import Notices
from .stores.base import Place

_LONGEST_NAME = 200
_PLAIN = re.compile(r"(?!\.+\Z)[A-Za-z0-9._-]+")


def folder(harness: str, place: Place, environ: Mapping[str, str], notices: Notices) -> str | None:
    """The store's shadow folder, made if need be, private; None when none can be written, which is said.

    `TOTAL_RECALL_SHADOW_ROOT` moves it; where the store's neighbourhood cannot be written it is in the cache folder.
    """
    wanted = wanted_folder(harness, place, environ)
    if _usable(wanted):
        return wanted
    cache = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        home = environ.get("HOME", "")
        cache = os.path.join(home, ".cache") if home else ""
    fallback = os.path.join(cache, "total-recall", harness) if cache else ""
    if fallback and fallback != wanted and _usable(fallback):
        notices.say(f"{wanted} cannot be written; what is derived from the store is kept in {fallback}")
        return fallback
    notices.say(f"{wanted} cannot be written; nothing is remembered between runs")
    return None


def wanted_folder(harness: str, place: Place, environ: Mapping[str, str]) -> str:
    """Where the shadow folder belongs, whether it is there or not."""
    moved = environ.get("TOTAL_RECALL_SHADOW_ROOT", "").strip()
    return os.path.join(os.path.abspath(moved), harness) if moved else place.shadow


def _usable(path: str) -> bool:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return os.access(path, os.R_OK | os.W_OK | os.X_OK)


def safe_name(session_id: str) -> str:
    """A session id as a part of a file name: a plain one as it is, any other with %XX for what is not plain.

    Ids come from stores and may hold anything; two different ones never give the same name. What would be too long
    for a file system is cut and ends in `%` and a hash.
    """
    if _PLAIN.fullmatch(session_id) and len(session_id) <= _LONGEST_NAME:
        return session_id
    from hashlib import sha256

    data = session_id.encode("utf-8", "surrogatepass")
    kept = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz" + (
        b"." if session_id.strip(".") else b""
    )
    name = "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in data) or "%"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 66]}%-{sha256(data).hexdigest()}"


def write_beside(path: str, data: bytes) -> None:
    """Replace a file in one step: readers see the old content or the new, and a crash leaves one of them.

    Raises OSError, which names the file.
    """
    import tempfile

    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".new", dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:  # mkstemp makes it 0600
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, path) from error
        raise
