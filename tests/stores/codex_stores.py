"""How the tests of the Codex adapter open a store and find a session in it."""

from __future__ import annotations

from pathlib import Path

from total_recall.notices import Notices
from total_recall.stores.base import Memory, Reference
from total_recall.stores.codex import Codex

FIXTURES = Path(__file__).parent.parent / "fixtures"
ROLLOUTS = FIXTURES / "codex" / ".codex" / "sessions" / "2026" / "11" / "30"


def open_store(root: Path, remember: Memory | None = None) -> Codex:
    """The store whose `sessions` folder is `root`."""
    place = Codex.locate({"TOTAL_RECALL_CODEX_ROOT": str(root)})
    assert place is not None
    return Codex(place, Notices(), remember)


def fixture_store(name: str) -> Codex:
    return open_store(FIXTURES / name / ".codex" / "sessions")


def reference(store: Codex, session_id: str) -> Reference:
    return next(session for session in store.sessions() if session.session_id == session_id)


def rollout(session_id: str) -> Path:
    """The first file of a session of the codex fixture."""
    return next(path for path in sorted(ROLLOUTS.glob(f"*-{session_id}*.jsonl")))
