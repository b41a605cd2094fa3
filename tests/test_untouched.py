"""A store is only ever read: whatever command runs, not a byte of a home changes, live database or not."""

import hashlib
import shutil

import pytest
from sample import FIXTURES

SESSION = "d6213968"
COMMANDS = [
    ("tr-stores",),
    ("tr-list",),
    ("tr-list", "--envelope", "--limit", "3"),
    ("tr-extract",),
    ("tr-extract", "--full", "--branches", "--with-history", SESSION),
    ("tr-user", SESSION),
    ("tr-raw", "--header", SESSION),
    ("tr-profile", SESSION),
    ("tr-todo", SESSION),
    ("tr-qa", "--hours", "0"),
    ("tr-said", "--hours", "0", "--words", "tag"),
    ("tr-index",),
    ("tr-search", "pelican"),
    ("tr-search", "--match", "literal", "pelican"),
    ("tr-search", "--match", "regex", "peli.an"),
    ("tr-context", f"{SESSION}:3"),
    ("tr-resume", SESSION),
    ("tr-cache", SESSION),
    ("tr-summarise", "--dry-run", SESSION),
    ("tr-recap", "--no-llm", SESSION),
]


def contents(folder):
    """What there is: path -> mode, and of a file its time and checksum; but for a -shm beside a live WAL."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.is_file() and _content(path))
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith("-shm")
    }


def _content(path):
    return path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def person(tmp_path):
    """A home with all four stores where they belong, OpenCode's with everything still in its WAL."""
    home = tmp_path / "person"
    shutil.copytree(FIXTURES / "claude" / ".claude", home / ".claude")
    shutil.copytree(FIXTURES / "codex" / ".codex", home / ".codex")
    shutil.copytree(FIXTURES / "vibe/legacy-2.18.4/logs", home / ".vibe/logs")
    shutil.copytree(FIXTURES / "opencode/migrated-1.2.1/opencode", home / ".local/share/opencode")
    return home


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_changes_a_home(words, person, tr, tmp_path):
    before = contents(person)
    env = {
        "HOME": str(person),
        "TOTAL_RECALL_SANDBOX": "",
        "TMPDIR": str(tmp_path),
        **{f"TOTAL_RECALL_{name}_ROOT": "" for name in ("OPENCODE", "VIBE", "CLAUDE", "CODEX")},
    }

    ran = tr(*words, env=env)

    assert ran.status == 0, ran.err
    assert contents(person) == before
