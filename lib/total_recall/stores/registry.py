"""The registry of harnesses, and how a run finds its stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

from ..notices import Notices
from .base import Memory, Place, Store

# harness -> module and class of its adapter
ADAPTERS = {
    "opencode": ("opencode", "OpenCode"),
    "vibe": ("vibe", "Vibe"),
    "claude": ("claude", "Claude"),
    "codex": ("codex", "Codex"),
    "gemini": ("gemini", "Gemini"),
    "qwen": ("qwen", "Qwen"),
    "pi": ("pi", "Pi"),
    "copilot": ("copilot", "Copilot"),
}
HARNESSES = tuple(ADAPTERS)


class Refused(Exception):
    """A request that cannot be answered as asked; the message says what would work."""


def adapter(harness: str) -> type[Store]:
    """The adapter class of a harness; its module is imported only now."""
    module, name = ADAPTERS[harness]
    return getattr(import_module(f".{module}", __package__), name)


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
    for name, place in places(names or HARNESSES, environ).items():
        if sandboxed(environ) and not place.overridden:
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
