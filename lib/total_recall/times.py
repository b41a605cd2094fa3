"""Times: what the stores write and what people type, as RFC 3339 UTC with three fraction digits."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])(?:\s+ago)?$")
_EPOCH = datetime(1970, 1, 1)
_NO_TIME = "1970-01-01T00:00:00.000Z"  # zero, as some programs write it
_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def rfc3339(value: Any) -> str | None:
    """A store's time as `2026-11-30T21:20:38.983Z`; None for what is no time.

    Numbers (and digits in a string) are seconds, milliseconds, microseconds or nanoseconds by magnitude; a string
    without a zone is UTC, never the host's zone.
    """
    if type(value) is int and 100_000_000_000 <= value < 100_000_000_000_000:  # milliseconds, as most stores have them
        return f"{_minute(value // 60_000)}:{value // 1000 % 60:02d}.{value % 1000:03d}Z"
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            if value.endswith("z"):
                return rfc3339(value[:-1] + "Z")
            return rfc3339(float(value)) if value.isascii() and value.isdigit() and len(value) < 21 else None
        if moment.tzinfo is None:
            # fromisoformat also takes a bare date written as digits, which is an epoch number here
            if value.isdigit():
                return rfc3339(float(value))
        elif len(value) == 24 and value[23] == "Z" and value[10] == "T" and value[19] == "." and value[7] == "-":
            return value if value > _NO_TIME else None
        else:
            try:
                moment = moment.astimezone(timezone.utc)
            except OverflowError:
                return None
        written = moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        return written if written > _NO_TIME else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = epoch(value)
        return None if seconds is None else from_epoch(seconds)
    return None


@lru_cache(maxsize=64)
def _minute(minutes: int) -> str:
    """A whole minute as it is written; the times of one turn share it."""
    return (_EPOCH + timedelta(minutes=minutes)).isoformat(timespec="minutes")


def epoch(value: Any) -> float | None:
    """Seconds since 1970 of a number of any usual unit or of a written time; None for what is no time."""
    if isinstance(value, str):
        value = rfc3339(value)
        return None if value is None else datetime.fromisoformat(value).timestamp()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    for limit, unit in ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9)):
        if abs(value) < limit:
            return value / unit
    return None


def from_epoch(seconds: float) -> str | None:
    """RFC 3339 of seconds since 1970; None before 1970 (0 is no time) and past the year 9999."""
    if not 0 < seconds < 253402300800:
        return None
    # Rounded to the millisecond first: binary fractions would otherwise print .982 for .983.
    moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=round(seconds * 1000))
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def when(text: str, now: float) -> str:
    """The moment that a person names: RFC 3339, a date, or `90m`, `12h`, `3d`, `2w` before `now`.

    Raises ValueError, with a sentence, for anything else.
    """
    if ago := _AGO.match(text.strip()):
        return from_epoch(max(now - float(ago[1]) * _UNIT[ago[2]], 0.001)) or "1970-01-01T00:00:00.001Z"
    if text.strip() == "now":
        return from_epoch(now) or ""
    moment = rfc3339(text.strip()) if not text.strip().isdigit() else None
    if moment is None:
        raise ValueError(f"{text!r} is no time - use RFC 3339, a date like 2026-09-15, or 90m, 12h, 3d, 2w ago")
    return moment
