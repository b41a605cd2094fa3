"""tr-user: what the person typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..command import (
    Run,
    bounds_options,
    envelope_option,
    executable,
    harness_option,
    limits,
    options,
    session_argument,
)
from ..extraction import each
from ..record import Record
from ..stores.base import Reference, Store


@executable("tr-user")
@options(session_argument, harness_option, bounds_options, envelope_option)
def main(run: Run, sessions: tuple[str, ...], harnesses: tuple[str, ...], envelope: bool, **bounds: Any) -> int | None:
    """Print what the person typed in a session, from its beginning; injected text is left out."""
    key = "user_messages" if envelope else None
    each(run, sessions, harnesses, prompts, limits(bounds), key, full=False)
    return None


def prompts(store: Store, session: Reference) -> Iterable[Record]:
    """The messages of the user role that are not injected."""
    return (m for m in store.messages(session) if m["role"] == "user" and not m["injected"])
