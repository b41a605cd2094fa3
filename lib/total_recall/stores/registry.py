"""The registry of harnesses, and how a run finds its stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import NamedTuple

from ..notices import Notices
from .base import Memory, Place, Store


class Adapter(NamedTuple):
    """Where an adapter's class is, and what hints that its harness was ever used here.

    `home` is the harness's folder below the person's, `variables` what moves it besides TOTAL_RECALL_<NAME>_ROOT.
    """

    module: str
    name: str
    home: str
    variables: tuple[str, ...]


ADAPTERS = {
    "opencode": Adapter("opencode", "OpenCode", ".local/share/opencode", ("OPENCODE_DB", "XDG_DATA_HOME")),
    "vibe": Adapter("vibe", "Vibe", ".vibe", ("VIBE_HOME",)),
    "claude": Adapter("claude", "Claude", ".claude", ("CLAUDE_CONFIG_DIR",)),
    "codex": Adapter("codex", "Codex", ".codex", ("CODEX_HOME",)),
    "gemini": Adapter("gemini", "Gemini", ".gemini", ("GEMINI_CLI_HOME",)),
    "qwen": Adapter("qwen", "Qwen", ".qwen", ("QWEN_RUNTIME_DIR", "QWEN_HOME")),
    "pi": Adapter("pi", "Pi", ".pi", ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR")),
    "copilot": Adapter("copilot", "Copilot", ".copilot", ("COPILOT_HOME",)),
}
HARNESSES = tuple(ADAPTERS)


class Refused(Exception):
    """A request that cannot be answered as asked; the message says what would work."""


def adapter(harness: str) -> type[Store]:
    """The adapter class of a harness; its module is imported only now."""
    row = ADAPTERS[harness]
    return getattr(import_module(f".{row.module}", __package__), row.name)


def is_hinted(harness: str, environ: Mapping[str, str]) -> bool:
    """Whether there may be a store: without a hint its adapter need not even be imported."""
    row = ADAPTERS[harness]
    if any(environ.get(name, "").strip() for name in (f"TOTAL_RECALL_{harness.upper()}_ROOT", *row.variables)):
        return True
    home = environ.get("HOME", "")
    return bool(home) and os.path.exists(os.path.join(home, row.home))


def sandboxed(environ: Mapping[str, str]) -> bool:
    """Whether only stores named by their override may be read."""
    return environ.get("TOTAL_RECALL_SANDBOX", "").strip().lower() in ("1", "true")


def places(harnesses: Iterable[str], environ: Mapping[str, str]) -> dict[str, Place]:
    """Where each harness's store is looked for; a harness without a place has no home directory."""
    found = {}
    for harness in harnesses:
        place = adapter(harness).locate(environ)
        if place is not None:
            found[harness] = place
    return found


def open_stores(
    asked: Iterable[str],
    environ: Mapping[str, str],
    notices: Notices,
    memory: Callable[[str, Place], Memory] | None = None,
) -> list[Store]:
    """The stores of the asked harnesses, or of every harness whose store exists; `memory` makes what each remembers.

    Raises Refused for an unknown harness, and under TOTAL_RECALL_SANDBOX for a store that its override does not name.
    """
    names = list(dict.fromkeys(asked))
    for name in names:
        if name not in ADAPTERS:
            raise Refused(f"unknown harness {name!r} - known: {', '.join(HARNESSES)}")
    stores = []
    refused = []
    named = False  # whether any store is named by its override, be it there or not
    sandbox = sandboxed(environ)
    looked = names or [name for name in HARNESSES if sandbox or is_hinted(name, environ)]
    for name, place in places(looked, environ).items():
        if sandbox and not place.overridden:
            refused.append(place.variable)
            continue
        named |= place.overridden
        store = adapter(name)(place, notices)
        exists = store.exists()
        if exists and memory is not None:
            store = adapter(name)(place, notices, memory(name, place))
        if names or exists:
            stores.append(store)
    if refused and (names or not named):
        raise Refused(
            f"TOTAL_RECALL_SANDBOX is set but {' or '.join(refused)} is not: refusing to read the live store"
            " - point it at a fixture or a scratch copy"
        )
    return stores
