"""Where Claude Code's sessions are found."""

import os
import shutil

import pytest
from total_recall.notices import Unreadable
from total_recall.stores.claude import Claude

from tests.stores.claude_transcripts import FIXTURES, SESSION, Transcript, messages, opened

OTHER = "00000000-0000-4000-8000-000000000002"


@pytest.fixture
def transcript(tmp_path):
    found = Transcript(tmp_path / "projects")
    found.typed("hello")
    found.write()
    return found


def ids(store):
    return sorted(session.session_id for session in store.sessions())


@pytest.mark.parametrize(
    ("environ", "root", "overridden"),
    [
        ({"HOME": "/h"}, "/h/.claude/projects", False),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/c/projects", False),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": ""}, "/h/.claude/projects", False),
        ({"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c", "TOTAL_RECALL_CLAUDE_ROOT": "/o/projects"}, "/o/projects", True),
        ({"HOME": "/h", "TOTAL_RECALL_CLAUDE_ROOT": "  "}, "/h/.claude/projects", False),
        ({"TOTAL_RECALL_CLAUDE_ROOT": "/o/projects/"}, "/o/projects", True),
    ],
)
def test_the_root(environ, root, overridden):
    """The override wins, then Claude Code's own variable, then the home directory; blank is unset."""
    place = Claude.locate(environ)

    assert (place.root, place.overridden, place.variable) == (root, overridden, "TOTAL_RECALL_CLAUDE_ROOT")
    assert place.shadow == os.path.join(os.path.dirname(root), ".tantivy")


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_no_home(environ):
    """Without a home directory there is nowhere to look."""
    assert Claude.locate(environ) is None


def test_a_store_that_is_not_there(tmp_path):
    """It has no sessions."""
    assert opened(tmp_path / "none").sessions() == []


def test_a_root_that_cannot_be_listed(tmp_path):
    """That is said, and is not an empty store."""
    (tmp_path / "file").write_text("")

    with pytest.raises(Unreadable):
        opened(tmp_path / "file").sessions()


def test_a_folder_of_transcripts(transcript):
    """A folder that holds transcripts itself can be named too; a sub-agent's folder belongs to its session."""
    project = transcript.path.parent
    agents = project / SESSION / "subagents"
    agents.mkdir(parents=True)
    shutil.copy(transcript.path, agents / "agent-abc.jsonl")
    store = opened(project)
    [child] = store.children(SESSION)

    assert ids(store) == [SESSION, "agent-abc"]
    assert store.parent(child) == SESSION


def test_live_samples_are_sessions_like_others():
    """Transcripts of running sessions, under any name, are read; one is the beginning of the other."""
    store = opened(FIXTURES / "claude" / "live-sample")
    rows = [store.row(session) for session in store.sessions()]

    assert ids(store) == ["running-tool", "running-turn"]
    assert all(row["title"] and row["line_count"] and "read_error" not in row for row in rows)
    assert sorted(row["user_count"] for row in rows) == [0, 3]


def test_only_regular_files_are_sessions(transcript):
    """Folders, pipes, dangling links and circles of links are passed over without being opened."""
    project = transcript.path.parent
    (project / "folder.jsonl").mkdir()
    os.mkfifo(project / "pipe.jsonl")
    (project / "dangling.jsonl").symlink_to(project / "nothing")
    (project / "circle").symlink_to(project.parent)
    (project / SESSION).mkdir()
    (project / SESSION / "self").symlink_to(project / SESSION)
    (project / SESSION / "tool-results").mkdir()
    (project / SESSION / "tool-results" / "big.jsonl").write_text("{}")
    (project / "sessions-index.json").write_text("{}")

    assert ids(opened(project.parent)) == [SESSION]


def test_links_are_followed_once(transcript, tmp_path):
    """A linked folder's sessions are found; a session reached twice is one."""
    away = Transcript(tmp_path / "away", OTHER)
    away.typed("hello")
    away.write()
    root = transcript.root
    (root / "linked").symlink_to(away.path.parent)
    (root / "again").symlink_to(away.path.parent)
    (root / "file.jsonl").symlink_to(transcript.path)
    store = opened(root)

    assert len(store.sessions()) == 2
    assert OTHER in ids(store)
    assert all(messages(store, session) for session in store.sessions())


def test_a_session_in_two_folders_is_one(transcript):
    """The longer file is read, the other is a name of it, and nothing is replayed."""
    moved = Transcript(transcript.root, SESSION, "-somewhere-else")
    moved.typed("hello")
    moved.assistant("hello to you")
    store, session = moved.write()

    assert ids(store) == [SESSION]
    assert session.names == (str(transcript.path),)
    assert store.row(session)["aliases"] == [str(transcript.path)]
    assert [m.get("replayed") for m in messages(store, session)] == [None, None]


def test_sub_agents_with_one_id_are_two(transcript):
    """Ids of sub-agents are short: two sessions may have the same, and then one gets a number to it."""
    for parent in (SESSION, OTHER):
        folder = transcript.path.parent / parent / "subagents"
        folder.mkdir(parents=True)
        shutil.copy(transcript.path, folder / "agent-abc1234.jsonl")
    store = opened(transcript.root)

    first, second = ids(store)[1:]
    assert (first, second.partition("@")[0]) == ("agent-abc1234", "agent-abc1234")
    assert first != second
    assert [len(store.children(parent)) for parent in (SESSION, OTHER)] == [1, 1]


def test_a_project_that_was_copied_has_its_sub_agents_once(transcript):
    """Version 2.0 writes them beside the session that spawned them."""
    shutil.copy(transcript.path, transcript.path.with_name("agent-abc1234.jsonl"))
    shutil.copytree(transcript.path.parent, transcript.root / "-copied")
    foreign = transcript.root / "-foreign" / "agent-abc1234.jsonl"
    foreign.parent.mkdir()
    foreign.write_bytes(transcript.path.read_bytes().replace(SESSION.encode(), OTHER.encode()))
    store = opened(transcript.root)

    assert len(store.sessions()) == 3
    assert [len(store.children(parent)) for parent in (SESSION, OTHER)] == [1, 1]


def test_deeper_sub_agents(transcript):
    """Folders below a session's sub-agents are searched, for sub-agents only."""
    folder = transcript.path.parent / SESSION / "subagents" / "workflows" / "one"
    folder.mkdir(parents=True)
    shutil.copy(transcript.path, folder / "agent-abc.jsonl")
    shutil.copy(transcript.path, folder / "journal.jsonl")
    store = opened(transcript.root)

    assert ids(store) == [SESSION, "agent-abc"]
    assert [child.session_id for child in store.children(SESSION)] == ["agent-abc"]


def test_a_folder_that_cannot_be_listed(transcript, monkeypatch):
    """It is a failure of its own; the other projects are listed."""
    locked = transcript.root / "locked"
    locked.mkdir()
    scandir = os.scandir

    def refusing(path):
        if str(path) == str(locked):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    store = opened(transcript.root)

    assert ids(store) == [SESSION]
    assert store.notices.failures == {str(locked): f"cannot read {locked}: Permission denied"}


def test_only_what_was_written_since(transcript):
    """The window is held against the files' times; the latest comes first."""
    other = Transcript(transcript.root, OTHER)
    other.typed("hello")
    other.write()
    os.utime(transcript.path, (1000, 1000))
    os.utime(other.path, (2000, 2000))
    store = opened(transcript.root)

    assert [session.session_id for session in store.sessions()] == [OTHER, SESSION]
    assert [session.session_id for session in store.sessions(since=1500)] == [OTHER]


def test_listing_opens_no_transcript(transcript, monkeypatch):
    """Sessions and the parents of those in a folder of sub-agents are known from names alone."""
    folder = transcript.path.parent / SESSION / "subagents"
    folder.mkdir(parents=True)
    shutil.copy(transcript.path, folder / "agent-abc.jsonl")
    monkeypatch.setattr("total_recall.stores._jsonl.open_regular", None)
    store = opened(transcript.root)

    assert [store.parent(session) for session in store.sessions() if session.key] == [SESSION]


def test_an_empty_transcript(transcript):
    """It is a session in which nothing happened."""
    transcript.path.write_bytes(b"")
    store = opened(transcript.root)
    [session] = store.sessions()
    row = store.row(session)

    assert (row["line_count"], row["user_count"], row["empty"]) == (0, 0, True)
    assert "read_error" not in row
