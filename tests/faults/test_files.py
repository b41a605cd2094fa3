"""What may stand where a session's file should be, and what may become of it while it is read."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from total_recall.notices import Unreadable

from .damage import with_member
from .layouts import HARNESSES, LAYOUTS, LINES, told
from .programs import agree, environment, run, run_all


def _fifo(path):
    os.mkfifo(path)


def _loop(path):
    path.symlink_to(path.name)


def _nowhere(path):
    path.symlink_to(path.parent / "nowhere")


def _device(path):
    path.symlink_to("/dev/zero")


def _folder(path):
    path.mkdir()
    (path / "inside.txt").write_text("a folder with the name of a session")


NO_FILES = {
    "a FIFO": _fifo,
    "a link to itself": _loop,
    "a link to nowhere": _nowhere,
    "a link to a device": _device,
    "a folder": _folder,
}
READERS = ("tr-extract", "tr-raw", "tr-user", "tr-profile", "tr-qa", "tr-todo", "tr-resume")
# Pi has no todo tool.
READ = [(name, tool) for name in HARNESSES for tool in READERS if (name, tool) != ("pi", "tr-todo")]
LISTERS = (
    ["tr-stores"],
    ["tr-list"],
    ["tr-index"],
    ["tr-search", "the"],
    ["tr-said", "--words", "the", "--hours", "0"],
)


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", LINES)
def test_what_is_no_file_is_never_opened_and_hides_no_other_session(name, what, tmp_path):
    """It is either no session for any command, or a session whose row says why it cannot be read."""
    laid = LAYOUTS[name](tmp_path / "store")
    laid.path.unlink()
    NO_FILES[what](laid.path)
    env = environment(tmp_path, laid)

    rows = {row["session_id"]: row for row in run("tr-list", env=env).records}

    assert "read_error" not in rows[laid.witness]
    listed = laid.target in rows
    damaged = listed and bool(rows[laid.target].get("read_error"))
    assert damaged == listed or name == "vibe unified"
    for words in LISTERS:
        ran = run(*words, env=env)
        expected = (0, 3) if words[0] == "tr-stores" else (3,)
        assert ran.status in (expected if damaged else (0, 1)), ran
    for tool in READERS:
        ran = run(tool, laid.target, env=env)
        expected = (2,) if not listed else (0, 3) if tool == "tr-resume" else (3,) if damaged else (0, 1)
        assert ran.status in expected, ran
        assert str(laid.path) in ran.err or not damaged or tool in ("tr-resume", "tr-profile")
        ran = run(tool, laid.witness, env=env)
        # A folder whose session cannot be told may hide any: that is said with status 3.
        hidden = ran.status == 3 and str(laid.path.parent) in ran.err
        assert ran.status in ((0, 1, 2) if tool == "tr-todo" else (0, 1)) or hidden, ran


# The indexes and caches that harnesses keep of their sessions, from the root on.
INDEXES = {
    "claude": ("-home-dev-projects-beta/sessions-index.json", "../history.jsonl", "../stats-cache.json"),
    "codex": ("../state_5.sqlite", "../session_index.jsonl", "../history.jsonl"),
    "vibe": (".session_index.json", "../.session-index.json"),
    "vibe unified": (".session_index.json", "unified/.session-index.json"),
    "opencode": ("opencode-backup.db", "storage/session_diff/x.json"),
    "gemini": ("p/logs.json", "../history.jsonl"),
    "qwen": ("../history.jsonl", "-home-p/index.json"),
    "copilot": ("../session-store.db", "../command-history-state.json"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_what_a_harness_keeps_about_its_sessions_decides_nothing(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    lines = [["tr-list"], ["tr-search", "--match", "literal", "e"]]
    before = [run(*words, env=environment(tmp_path / "before", laid)).records for words in lines]
    for make in (lambda path: path.write_bytes(b'{"version":1,"entries":[]}\n{"id":'), os.mkfifo):
        for place in INDEXES[name]:
            path = Path(os.path.normpath(laid.root / place))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            make(path)

        found = [run(*words, env=environment(tmp_path / make.__name__, laid)) for words in lines]

        assert [(ran.status, ran.records) for ran in found] == [(0, records) for records in before]


def _loops(laid):
    """Links by which every folder of the store is reached again, from above, from below and from itself."""
    for folder in [laid.root, *(path for path in sorted(laid.root.rglob("*")) if path.is_dir())]:
        (folder / "loop").symlink_to(laid.root)
        (folder / "self").symlink_to("self")
        if folder != laid.root:
            (folder.parent / f"{folder.name} again").symlink_to(folder.name)


@pytest.mark.parametrize("name", LAYOUTS)
def test_links_in_circles_show_every_session_once(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    before = run("tr-list", env=environment(tmp_path / "before", laid)).records
    _loops(laid)

    found = run_all(laid, tmp_path)

    agree(found, laid)
    rows = found["tr-list"].records
    assert [row["session_id"] for row in rows] == [row["session_id"] for row in before]
    assert [row["user_count"] for row in rows] == [row["user_count"] for row in before]


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_store_may_be_reached_through_a_link(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    here = told(laid.messages())
    link = tmp_path / "linked"
    link.symlink_to(laid.root)
    laid.root = link

    assert told(laid.messages()) == here


@pytest.mark.parametrize("name", HARNESSES)
def test_the_root_may_be_written_in_any_way(name, tmp_path, monkeypatch):
    laid = LAYOUTS[name](tmp_path / "store")
    env = environment(tmp_path, laid)
    [variable] = laid.environment
    listed = run("tr-list", env=env)
    monkeypatch.chdir(laid.root.parent)

    for root in (laid.root.name, f"./{laid.root.name}/", f"{laid.root}/../{laid.root.name}/.", f" {laid.root} "):
        assert run("tr-list", env=env | {variable: root}) == listed


@pytest.mark.parametrize("name", HARNESSES)
def test_an_empty_store_is_no_error_and_a_session_of_it_is_named_as_missing(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    env = environment(tmp_path, laid)
    shutil.rmtree(laid.root)
    laid.root.mkdir()

    for words in LISTERS:
        ran = run(*words, env=env)
        found = [record for record in ran.records if record.get("sessions") != 0 and "root" not in record]
        assert (ran.status, found, ran.notices) == (words[0] in ("tr-search", "tr-said"), [], [])
    for tool in READERS:
        latest, named = run(tool, env=env), run(tool, laid.target, env=env)
        windowed = tool == "tr-qa"
        assert (latest.status, latest.out) == (1 if windowed else 2, b"")
        assert windowed or "no sessions found under" in latest.err
        assert (named.status, named.out) == (2, b"")
        assert laid.target in named.err


# -- while it is read ------------------------------------------------------------------------------------------


@pytest.fixture
def vanishing(tmp_path, monkeypatch):
    """Run a command on a store whose target is deleted as soon as it has been listed."""

    def ran(name, *words):
        laid = LAYOUTS[name](tmp_path / "store")
        kind = type(laid.store())
        listed = kind.sessions

        def sessions(self, *given):
            found = listed(self, *given)
            laid.remove()
            return found

        monkeypatch.setattr(kind, "sessions", sessions)
        return laid, run(*(word.format(id=laid.target) for word in words), env=environment(tmp_path, laid))

    return ran


@pytest.mark.parametrize("words", LISTERS, ids=" ".join)
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_session_that_is_gone_when_its_turn_comes_is_passed_over_without_a_word(name, words, vanishing):
    laid, ran = vanishing(name, *words)

    assert (ran.status, ran.notices) in ((0, []), (1, []))
    if words[0] == "tr-list":
        rows = [row["session_id"] for row in ran.records]
        assert laid.witness in rows
        assert laid.target not in rows


@pytest.mark.parametrize(("name", "tool"), READ)
def test_a_session_that_was_asked_for_and_is_gone_is_named(name, tool, vanishing):
    laid, ran = vanishing(name, tool, "{id}")

    assert ran.status == (0 if tool == "tr-resume" else 3)
    assert ran.status == 0 or laid.target[:8] in ran.err or str(laid.path) in ran.err


@pytest.mark.parametrize(("name", "tool"), READ)
def test_the_latest_session_is_one_that_is_there(name, tool, vanishing):
    _, ran = vanishing(name, tool)

    assert ran.status in (0, 1)


def _grow(path):
    with path.open("ab") as file:
        file.write(b"{}\n")


MEANWHILE = {
    "cut short": lambda path: os.truncate(path, path.stat().st_size // 3),
    "emptied": lambda path: os.truncate(path, 0),
    "deleted": lambda path: path.unlink(),
    "replaced": lambda path: os.replace(shutil.copyfile(path, path.with_name("new")), path),
    "written over": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "grown": _grow,
}


@pytest.mark.parametrize("what", MEANWHILE)
@pytest.mark.parametrize("name", LINES)
def test_what_becomes_of_a_file_while_it_is_read_costs_no_more_than_its_rest(name, what, tmp_path):
    laid = LAYOUTS[name](tmp_path)
    units = laid.units()
    # Several times as large as what is read at once.
    laid.put([with_member(unit, b'"padding":"' + b"x" * (4_000_000 // len(units)) + b'"') for unit in units])
    before = told(laid.messages())
    store = laid.store()
    session = laid.session(store)

    messages = iter(store.messages(session))
    found = [next(messages)]
    MEANWHILE[what](laid.path)
    said = str(laid.path)
    try:
        found += messages
    except Unreadable as error:
        said = str(error)

    assert str(laid.path) in said
    assert told(found) == before[: len(found)]
    assert store.row(session)["session_id"] == laid.target


# -- permissions -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _nobody():
    """Meanwhile, modes hold for root too."""
    if os.getuid() != 0:
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def open_to_all():
    """A scratch folder that everybody can enter."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def _target(laid):
    return laid.path


def _parent(laid):
    return laid.path.parent


SHUT = {"the file": _target, "its folder": _parent, "the root": lambda laid: laid.root}


@pytest.mark.parametrize("what", SHUT)
@pytest.mark.parametrize("name", LAYOUTS)
def test_what_may_not_be_read_is_said_never_taken_for_empty_and_read_when_it_may(name, what, open_to_all):
    laid = LAYOUTS[name](open_to_all / "store")
    env = environment(open_to_all, laid)
    commands = (*LISTERS, *([tool, laid.target] for tool in READERS))
    before = {words[0]: run(*words, env=env).out for words in (*commands, *commands)}  # warm, every module loaded
    os.chmod(open_to_all / "shadow", 0o777)
    for folder, _, files in os.walk(open_to_all / "shadow"):
        for path in (folder, *(os.path.join(folder, file) for file in files)):
            os.chown(path, 65534, 65534) if os.getuid() == 0 else None
    shut = SHUT[what](laid)
    mode = shut.stat().st_mode
    shut.chmod(0)
    try:
        with _nobody():
            for words in commands:
                ran = run(*words, env=env)
                # What was learned and indexed before still holds for a file that has not changed.
                known = (
                    "tr-stores",
                    "tr-resume",
                    "tr-list",
                    *(("tr-index", "tr-search", "tr-profile") if what == "the file" else ()),
                )
                assert ran.status in (2, 3) or words[0] in known, ran
                reasons = ("Permission denied", "unable to open database", "has no todo tool")
                assert ran.status == 0 or any(reason in ran.err for reason in reasons), ran
                assert b"removed" not in ran.out
    finally:
        shut.chmod(mode)
    after = {words[0]: run(*words, env=env).out for words in commands}
    assert {tool for tool in after if after[tool] != before[tool]} <= {"tr-index", "tr-stores"}
    assert {row["status"] for row in run("tr-index", env=env).records} == {"unchanged"}
