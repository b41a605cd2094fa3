"""Derived state: damaged, foreign, newer, deleted, killed while it was written, written and read by many at once.

Whatever becomes of it, the same is printed as without it, and the next run has it whole again.
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import orjson
import pytest
from sample import ROOT
from total_recall.ledger import Ledger
from total_recall.notices import Notices
from total_recall.profile_cache import cached

from .layouts import LAYOUTS
from .programs import environment, run
from .test_files import _nobody, open_to_all  # noqa: F401

COMMANDS = (
    ["tr-list"],
    ["tr-search", "the", "--limit", "0"],
    ["tr-index"],
    ["tr-profile", "{id}"],
    ["tr-extract", "{id}"],
    ["tr-context", "{id}:2"],
)
LASTING = ("tr-list", "tr-search", "tr-profile", "tr-extract", "tr-context")


class Derived:
    """A store with all that can be derived from it, and what its commands print."""

    def __init__(self, scratch):
        self.laid = LAYOUTS["claude"](scratch / "store")
        self.env = environment(scratch, self.laid)
        self.shadow = scratch / "shadow" / self.laid.harness
        self.run()
        self.before = {tool: ran.out for tool, ran in self.run().items()}

    def run(self):
        lines = [[word.format(id=self.laid.target) for word in words] for words in COMMANDS]
        return {words[0]: run(*words, env=self.env) for words in lines}

    def check(self, *, stays=False):
        """The next run prints the same, the one after it has nothing to say; gives what the first one said.

        `stays` says that the damage is one that we do not remove: then it is said each time.
        """
        first, second = self.run(), self.run()
        for ran in (first, second):
            assert {tool: one.status for tool, one in ran.items()} == dict.fromkeys(ran, 0), ran
            assert [tool for tool in LASTING[1:] if ran[tool].out != self.before[tool]] == []
        # Before the index is there again no row can say so.
        assert second["tr-list"].out == self.before["tr-list"]
        assert stays or [one.notices for one in second.values() if one.notices] == []
        assert {row["status"] for row in second["tr-index"].records} == {"unchanged"}
        return [notice for one in first.values() for notice in one.notices]


@pytest.fixture
def derived(tmp_path):
    return Derived(tmp_path)


def _to_folder(path):
    path.unlink()
    (path / "inside").mkdir(parents=True)


def _to_link(path):
    path.unlink()
    path.symlink_to(path.name)


def _to_noise(path):
    path.write_bytes(random.Random(7).randbytes(max(64, path.stat().st_size)))


DAMAGE = {
    "deleted": lambda path: path.unlink(),
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "noise": _to_noise,
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "other JSON": lambda path: path.write_bytes(b'{"this": "is something else"}'),
    "a folder": _to_folder,
    "a link to itself": _to_link,
}
FILES = {
    "the catalogue": "catalogue.db",
    "the stamp of the index": "index/stamp.json",
    "the head of the index": "index/meta.json",
    "the list of what is indexed": "index/sessions.u64",
    "a profile": "tr_*_meta.json",
    "the documents of the index": "index/*.store",
    "the terms of the index": "index/*.term",
    "the postings of the index": "index/*.idx",
    "the positions of the index": "index/*.pos",
    "the columns of the index": "index/*.fast",
    "the names of the files of the index": "index/.managed.json",
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("what", FILES)
def test_a_damaged_file_is_made_anew_and_nothing_that_is_printed_changes(what, how, derived):
    paths = sorted(derived.shadow.glob(FILES[what]))
    assert paths
    for path in paths:
        DAMAGE[how](path)

    stays = how in ("a folder", "a link to itself") and what in ("the catalogue", "a profile")
    if (what, how) == ("the list of what is indexed", "a folder"):
        derived.before["tr-list"] = derived.before["tr-list"].replace(b'_index":true', b'_index":false')
        derived.before["tr-profile"] = derived.before["tr-profile"].replace(b'_index":true', b'_index":false')
    derived.check(stays=stays)


@pytest.mark.parametrize("what", ["", "index"])
def test_what_is_deleted_is_made_anew_without_a_word(what, derived):
    shutil.rmtree(derived.shadow / what)

    assert derived.check() == []


def _newer_catalogue(shadow):
    with closing(sqlite3.connect(shadow / "catalogue.db")) as database:
        database.execute("PRAGMA user_version = 99")
    return shadow / "catalogue.db"


def _newer(pattern, key):
    def mark(shadow):
        (path,) = shadow.glob(pattern)
        path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {key: 99}))
        return path

    return mark


NEWER = {
    "the catalogue": _newer_catalogue,
    "the index": _newer("index/stamp.json", "version"),
    "a profile": _newer("tr_*_meta.json", "schema"),
}


@pytest.mark.parametrize("what", NEWER)
def test_what_a_newer_version_made_is_left_alone_and_said(what, derived):
    path = NEWER[what](derived.shadow)
    kept = path.read_bytes()

    ran = derived.run()

    assert {tool: one.status for tool, one in ran.items()} == {
        **dict.fromkeys(ran, 0),
        "tr-index": 3 * (what == "the index"),
    }
    assert [tool for tool in LASTING[2:] if ran[tool].out != derived.before[tool]] == []
    assert ran["tr-search"].out.count(b"\n") == derived.before["tr-search"].count(b"\n")
    assert path.read_bytes() == kept
    assert any("newer version" in notice for one in ran.values() for notice in one.notices) or what == "a profile"


def test_another_program_s_catalogue_is_replaced(derived):
    (derived.shadow / "catalogue.db").unlink()
    with closing(sqlite3.connect(derived.shadow / "catalogue.db")) as database:
        database.execute("CREATE TABLE cookies (a)")

    assert any("is rebuilt" in notice for notice in derived.check())


FALSE = (
    b"null",
    b"[]",
    b"17",
    b'"x"',
    b"{}",
    b"not json",
    b"\xff",
    b'{"counts":[]}',
    b'{"counts":{},"state":7}',
    b"[[1,2],[3]]",
)


@pytest.mark.parametrize("value", FALSE)
def test_false_facts_in_the_catalogue_are_no_error(value, derived):
    with closing(sqlite3.connect(derived.shadow / "catalogue.db")) as database:
        database.execute("UPDATE fact SET value = ?", (value,))
        database.commit()

    derived.check()


def test_derived_state_that_cannot_be_written_is_said_and_the_same_is_printed(open_to_all):  # noqa: F811
    derived = Derived(open_to_all)
    for path in [*derived.shadow.rglob("*"), derived.shadow]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    with _nobody():
        ran = derived.run()

    for path in [derived.shadow, *derived.shadow.rglob("*")]:
        path.chmod(0o755)
    assert [tool for tool in ("tr-list", *LASTING[2:]) if ran[tool].out != derived.before[tool]] == []
    assert ran["tr-search"].out.count(b"\n") == derived.before["tr-search"].count(b"\n")
    assert ran["tr-search"].notices
    assert ran["tr-index"].status == 3


# -- while it is written ---------------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path):
    """A store of many sessions, so that an index and a catalogue take a moment."""
    laid = LAYOUTS["codex 0.45"](tmp_path / "store")
    units = laid.units()
    for number in range(120):
        head = orjson.loads(units[0])
        head["payload"]["id"] = f"01a22e59-8ec3-7d02-b463-{number:012}"
        path = laid.path.with_name(f"rollout-2026-11-30T21-25-50-{head['payload']['id']}.jsonl")
        path.write_bytes(b"\n".join([orjson.dumps(head), *units[1:] * 4]) + b"\n")
    return laid, environment(tmp_path, laid)


def _started(env, *words):
    command = [sys.executable, ROOT / "bin" / words[0], *words[1:]]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _ended(process):
    out, err = process.communicate(timeout=120)
    assert b"Traceback" not in err
    assert b"unexpected" not in err
    assert b"panicked" not in err
    return process.returncode, out, err.decode()


def _answers(env):
    """How many sessions are listed, and where a word is found."""
    hits = run("tr-search", "pangolia", "--limit", "0", env=env)
    assert hits.status == 0, hits
    return len(run("tr-list", env=env).records), sorted((hit["session_id"], hit["id"]) for hit in hits.records)


@pytest.mark.parametrize(("ending", "times"), [(signal.SIGKILL, 26), (signal.SIGTERM, 3), (signal.SIGINT, 3)])
def test_ended_at_any_moment_the_next_run_makes_everything_right(ending, times, many, tmp_path):
    laid, env = many
    expected = _answers(env)
    chance = random.Random(int(ending))
    statuses = set()

    for _ in range(times):
        if chance.random() < 0.5:
            shutil.rmtree(tmp_path / "shadow")
        for path in chance.sample(sorted(laid.path.parent.iterdir()), 40):
            with path.open("ab") as file:
                file.write(b"{}\n")  # something to do, that changes no answer
        process = _started(env, chance.choice(("tr-index", "tr-index", "tr-list")))
        time.sleep(chance.uniform(0.05, 0.5))
        process.send_signal(ending)
        statuses.add(_ended(process)[0])
        assert _answers(env) == expected

    assert statuses <= {0, -ending, 130}


WRITING = """
import sys
sys.path.insert(0, sys.argv[1])
import orjson
from total_recall.ledger import Ledger, Slice
from total_recall.notices import Notices
from total_recall.profile_cache import keep
from total_recall.record import message
def profiles(path):
    with open(path, "rb") as file:
        profile = orjson.loads(file.read())["profile"]
    while True:
        for count in (1, 2):
            keep(path, profile | {"tools": dict.fromkeys(map("tool {}".format, range(2000)), count)})
def blocks(folder):
    ledger = Ledger(folder, "claude", "s", Notices())
    while True:
        with ledger.locked():
            if len(ledger.blocks) == 5:
                while ledger.blocks:
                    ledger.drop()
            part = Slice(ledger.next_id)
            for number in range(ledger.next_id, ledger.next_id + 3):
                part.add(message("claude", "s", number, "user", None, "x", authorship="human"))
            ledger.append(part, "y" * 9000)
print("ready", flush=True)
globals()[sys.argv[2]](sys.argv[3])
"""


@pytest.fixture
def killed():
    """Let a program write one kind of derived state over and over, and kill it at a random moment."""
    chance = random.Random(50)

    def kill(what, where):
        words = [sys.executable, "-c", WRITING, str(ROOT / "lib"), what, str(where)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0, 0.05))
            assert writer.poll() is None
            writer.kill()

    return kill


def test_a_profile_killed_while_it_is_written_is_the_one_before_or_the_one_after(killed, derived):
    (path,) = derived.shadow.glob("tr_*_meta.json")
    before = orjson.loads(path.read_bytes())["profile"]
    written = [f"tool {number}" for number in range(2000)]
    for _ in range(12):
        killed("profiles", path)
        kept = cached(str(path), 0, before["file_size"])
        assert kept["tools"] in (before["tools"], *(dict.fromkeys(written, count) for count in (1, 2)))


def test_a_ledger_killed_while_it_is_written_has_whole_blocks_in_their_order(killed, tmp_path):
    numbers = set()
    for _ in range(12):
        killed("blocks", tmp_path)
        notices = Notices()
        ledger = Ledger(str(tmp_path), "claude", "s", notices)
        assert not notices.said
        assert [(block.from_id, block.to_id) for block in ledger.blocks] == [
            (1 + 3 * n, 3 + 3 * n) for n in range(len(ledger.blocks))
        ]
        assert "".join(ledger.composed()).count("y" * 9000) == len(ledger.blocks)
        numbers.add(len(ledger.blocks))
    assert max(numbers) > 0


def test_what_a_killed_run_left_beside_an_index_goes_when_the_next_is_made(derived):
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=subprocess.PIPE)
    left = [derived.shadow / f"index.{int(ended.stdout)}", derived.shadow / f"index.old.{os.getpid()}"]
    others = [derived.shadow / "index.mine", derived.shadow / f"index.{os.getppid()}"]
    for path in (*left, *others):
        path.mkdir()
        (path / "meta.json").write_bytes(b"{}")
    (derived.shadow / "index" / "stamp.json").unlink()

    assert derived.check()

    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in others)


def test_the_folder_may_be_deleted_while_it_is_written(many, tmp_path):
    _, env = many
    expected = _answers(env)
    for wait in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
        shutil.rmtree(tmp_path / "shadow", ignore_errors=True)
        process = _started(env, "tr-index")
        time.sleep(wait)
        shutil.rmtree(tmp_path / "shadow", ignore_errors=True)
        assert _ended(process)[0] in (0, 3)

    assert _answers(env) == expected


def test_two_writers_and_twenty_readers_at_once(many, tmp_path):
    _, env = many
    expected = _answers(env)
    shutil.rmtree(tmp_path / "shadow")
    searched = ["tr-search", "pangolia", "--limit", "0"]

    writers = [_started(env, "tr-index", "--wait", "60") for _ in range(2)]
    readers = [_started(env, *words) for words in (["tr-list"], searched) for _ in range(10)]

    for process in readers:
        status, out, err = _ended(process)
        assert status in (0, 1), err
        assert "damaged" not in err
        assert all(orjson.loads(line) for line in out.splitlines())
    for process in writers:
        assert _ended(process)[::2] == (0, "")
    assert _answers(env) == expected
    assert {row["status"] for row in run("tr-index", env=env).records} == {"unchanged"}


def test_a_second_writer_that_may_not_wait_says_so_and_a_search_goes_on(many, tmp_path):
    import tantivy

    laid, env = many
    expected = _answers(env)
    index = tantivy.Index.open(str(tmp_path / "shadow" / "codex" / "index"))
    writer = index.writer(15_000_000, 1)
    with next(laid.path.parent.glob("*000000000007.jsonl")).open("ab") as file:
        file.write(b"{}\n")

    refused = run("tr-index", "--wait", "0", env=env)
    searched = run("tr-search", "pangolia", "--limit", "0", env=env)
    del writer

    assert (refused.status, refused.out) == (6, b"")
    assert "being written by" in refused.err
    assert (searched.status, len(searched.records)) == (0, len(expected[1]))
    assert "being written by" in searched.err
    assert run("tr-index", env=env).status == 0


@pytest.mark.parametrize("blocks", [0, 8, 64])
@pytest.mark.parametrize("line", ["tr-list", "tr-index", "tr-search pangolia", "tr-profile"])
def test_a_full_disk_costs_what_is_remembered_and_nothing_that_is_printed(line, blocks, many, tmp_path):
    _, env = many
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    limited = f"trap '' XFSZ; ulimit -f {blocks}; {sys.executable} {ROOT / 'bin'}/{line} | cat"
    done = subprocess.run(["bash", "-c", limited], env=env, capture_output=True, timeout=60)

    assert b"Traceback" not in done.stderr
    assert b"unexpected" not in done.stderr
    assert b"damaged" not in done.stderr
    assert not list(tmp_path.glob("shadow/*/index.*"))
    again = run(*line.split(), env=env)
    assert again.status == 0
    if line in ("tr-list", "tr-profile"):
        assert done.stdout == again.out
