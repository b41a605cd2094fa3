"""What search relies on, on real stores: a text is read again as it was indexed, and files are passed over soundly."""

import re
import shutil

import pytest
from sample import FIXTURES
from total_recall import analysis
from total_recall.index import Index
from total_recall.notices import Notices, Unreadable
from total_recall.passages import passages, searched
from total_recall.query import parse
from total_recall.scan import Literal
from total_recall.search import search
from total_recall.sources import Source
from total_recall.stores.registry import adapter

STORES = {
    "claude": ("claude/.claude/projects", "claude-old/.claude/projects"),
    "codex": ("codex/.codex/sessions", "codex-zst/.codex/sessions", "codex-migrated/.codex/sessions"),
    "opencode": ("opencode/main-1.18.33/opencode", "opencode/json-1.1.65/opencode"),
    "vibe": ("vibe/legacy-2.18.4/logs/session", "vibe/mixed-3.0.3/logs/session"),
}


@pytest.fixture(
    params=[(harness, root) for harness, roots in STORES.items() for root in roots], ids=lambda param: param[1]
)
def store(request, tmp_path):
    harness, root = request.param
    top = root.split("/")[0]
    shutil.copytree(FIXTURES / top, tmp_path / top, symlinks=True)
    found = adapter(harness)
    place = found.locate({f"TOTAL_RECALL_{harness.upper()}_ROOT": str(tmp_path / root), "HOME": str(tmp_path)})
    return found(place, Notices())


def walked(store):
    """(session, place in the entry, message) of every message that can be read."""
    for session in store.sessions():
        try:
            for entry in store.entries(session, {}, whole=True):
                for part, message in enumerate(entry.messages):
                    yield session, part, message
        except Unreadable:
            pass


def test_every_text_is_found_again_by_its_ref(store, tmp_path):
    """The snippet of a hit is cut from the very text that was indexed."""
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    index = Index.open(str(shadow), Notices())
    sessions = store.sessions()
    list(index.refresh(store, sessions))
    source = Source(store.harness, index, sessions, True, store.entry_at)
    checked = 0

    for session, _, message in walked(store):
        for passage in passages(message):
            words = [term for term in analysis.terms(passage.text) if len(term) >= 4]
            if not words or checked > 150:
                continue
            query = parse(f'session:{session.session_id} class:{passage.kind} "{words[0]}"')
            hits = search([source], query, limit=0).hits
            own = [hit for hit in hits if hit["id"] == message["id"] and hit["class"] == passage.kind]
            assert own, (session.session_id, message["id"], words)
            assert own[0]["matched"], (own[0], passage.text[:200])
            checked += 1

    assert checked > 20


def test_a_file_that_is_passed_over_could_not_have_matched(store):
    """Every run of letters in a text either stands in the session's files or is known not to be looked for there."""
    for session, _, message in walked(store):
        files = store.text_files(session)
        if not files:
            continue
        for passage in searched(message):
            for word in set(re.findall("[a-z]{3,}", passage.text.lower())):
                assert any(Literal(word).may_stand_in(path) for path in files), (session.path, word)
