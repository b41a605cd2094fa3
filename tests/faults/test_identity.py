"""Which session is meant: ids of any characters, the same id in several places, prefixes, families."""

import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import orjson
import pytest
import zstandard
from sample import FIXTURES, isolated

from tests.stores.transcripts import ROOTS

from .layouts import HARNESSES, LAYOUTS, lay_all, placed, renamed
from .programs import agree, environment, run, run_all

NAMES = {
    "a newline": "two\nlines",
    "quotes": 'it\'s "quoted" `here`',
    "a shell command": "$(touch hacked); touch hacked #",
    "the folder above": "..",
    "a path upwards": "../../../tmp/escaped",
    "an absolute path": "/tmp/escaped",
    "an option": "-rf",
    "an envelope option": "--envelope",
    "blanks": " a  b ",
    "percents": "%2e%2e%2f%00",
    "wildcards": "a_%*?[x]",
    "an escape": "\x1b[31mred\x1b]0;title\x07",
    "a bidi override": "abc\u202egnp.exe",
    "combining marks": "e\u0301 and \u00e9",
    "CJK": "\u4f1a\u8bdd\u4e00",
    "a colon and a number": "session:7",
    "JSON": '{"session_id":"x"}',
    "a long name": "n" * 240,
    "a backslash": "back\\slash\\",
    "only a dot": ".",
}
FILE_NAMES = [name for name in NAMES if "/" not in NAMES[name]]
FOLDER_NAMES = [name for name in FILE_NAMES if NAMES[name] not in (".", "..")]
# Each of them where it is a file's name, and in a column; by turns, where it is in a record or in a name elsewhere.
IN_RECORDS = ("codex", "vibe", "gemini", "pi")
CASES = [
    *(("claude", name) for name in FILE_NAMES),
    *(("opencode", name) for name in NAMES),
    *((IN_RECORDS[number % 4], name) for number, name in enumerate(NAMES)),
    *((("qwen", "copilot")[number % 2], name) for number, name in enumerate(FOLDER_NAMES)),
]


@pytest.mark.parametrize(("layout", "name"), CASES)
def test_an_id_is_any_text_and_every_command_takes_it(layout, name, tmp_path):
    laid = LAYOUTS[layout](tmp_path / "store")
    renamed(laid, NAMES[name])

    found = run_all(laid, tmp_path)

    agree(found, laid)
    assert found["tr-list -- {id}"].records[0]["session_id"] == NAMES[name]
    assert all(m["session_id"] == NAMES[name] for m in found["tr-extract --full -- {id}"].records)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["home", "shadow", "store"]


def _moved(laid, path, name):
    """Give a file or folder of the store a name of any bytes."""
    named = os.path.join(os.fsencode(path.parent), name)
    os.rename(path, named)
    return type(path)(os.fsdecode(named))


def _file(laid, name):
    laid.path = _moved(laid, laid.path, name + b".jsonl")
    laid.target = os.fsdecode(name)


def _project(laid, name):
    _moved(laid, laid.path.parent, name)


def _rollout(laid, name):
    _moved(laid, laid.path, b"rollout-" + name + b".jsonl")


def _folder_without_metadata(laid, name):
    (laid.path.parent / "meta.json").unlink()
    _moved(laid, laid.path.parent, b"session_" + name)
    laid.target = "session_" + os.fsdecode(name)


def _sessions_folder(laid, name):
    _moved(laid, laid.path.parent, name)
    laid.target = os.fsdecode(name)


def _root(laid, name):
    laid.root = _moved(laid, laid.root, name)


PLACES = {
    ("claude", "file"): _file,
    ("claude", "project"): _project,
    ("codex", "file"): _rollout,
    ("vibe", "project"): _project,
    ("vibe", "folder without metadata"): _folder_without_metadata,
    ("gemini", "project"): lambda laid, name: _moved(laid, laid.path.parent.parent, name),
    ("qwen", "file"): _file,
    ("pi", "project"): _project,
    ("copilot", "project"): _sessions_folder,
    **{(name, "root"): _root for name in (*HARNESSES, "opencode tree")},
}


@pytest.mark.parametrize("name", [b"caf\xe9", b"two\nlines ?#%20'\"\xff"])
@pytest.mark.parametrize(("layout", "what"), PLACES)
def test_a_path_is_any_bytes(layout, what, name, tmp_path):
    laid = LAYOUTS[layout](tmp_path / "store")
    PLACES[layout, what](laid, name)

    found = run_all(laid, tmp_path)

    agree(found, laid)
    hits = found["tr-search --match literal --limit 0 {word}"].records
    assert len(found["tr-search {word}"].records) > 0
    assert {hit["session_id"] for hit in hits} <= {row["session_id"] for row in found["tr-list"].records}
    assert all(hit["snippet"] for hit in found["tr-search {word}"].records)
    again = run("tr-extract", "-", env=environment(tmp_path, laid), stdin=found["tr-list"].out)
    assert (again.status, {m["session_id"] for m in again.records}) == (
        0,
        {row["session_id"] for row in found["tr-list"].records},
    )


@pytest.mark.parametrize("layout", ["claude", "codex", "vibe", "opencode", "gemini", "qwen", "pi", "copilot"])
def test_the_command_that_resumes_is_safe_in_a_shell(layout, tmp_path):
    in_names = layout in ("claude", "qwen", "copilot")
    for number, name in enumerate(NAMES[name] for name in (FOLDER_NAMES if in_names else NAMES)):
        laid = LAYOUTS[layout](tmp_path / str(number))
        renamed(laid, name)
        env = environment(tmp_path, laid)
        made = run("tr-resume", "--", name, env=env)
        if name.startswith("-"):
            assert (made.status, made.out) == (2, b"")
            continue
        known = run("tr-resume", "--json", "--", name, env=env).records[0]
        # What the shell would run, with the harness and cd replaced by something that shows its words.
        shown = (
            'show() { printf \'%s\\0\' "$@"; }; cd() { show cd "$@"; }; '
            f'{known["argv"][0]}() {{ show "$FUNCNAME" "$@"; }}; '
        )
        done = subprocess.run(["bash", "-c", shown + 'eval "$1"', "bash", made.out], capture_output=True, cwd=tmp_path)
        words = done.stdout.decode().split("\0")[:-1]
        moved = ["cd", "--", known["directory"]] if known["directory"] else []
        assert (words, done.stderr) == ([*moved, *known["argv"]], b"")
        assert name in known["argv"]
    assert not (tmp_path / "hacked").exists()


# -- directories -----------------------------------------------------------------------------------------------

DIRECTORIES = (
    "C:\\Users\\Dev\\My Proj",
    "/home/a_b%c [x]*?",
    "/home/\u00fcn\u00ef/\u4e2d 'q' \"",
    "//wsl$/Ubuntu/home",
    "/two\nlines\x1b[31m",
)


@pytest.mark.parametrize("layout", [*HARNESSES, "claude agent", "opencode tree"])
def test_a_directory_is_told_as_recorded_and_selects_its_session_though_it_is_gone(layout, tmp_path):
    for number, directory in enumerate(DIRECTORIES):
        laid = LAYOUTS[layout](tmp_path / str(number))
        placed(laid, directory)
        env = environment(tmp_path / f"{number} beside", laid)

        assert [row["directory"] for row in run("tr-list", laid.target, env=env).records] == [directory]
        for words in (["tr-list"], ["tr-search", "--match", "literal", "--limit", "0", "e"]):
            found = run(*words, "--directory", directory, env=env).records
            assert {record["session_id"] for record in found} == {laid.target}
            for other in (directory.swapcase(), directory.replace("_", "x").replace("%", "y").replace("C:", "c:")):
                assert other == directory or run(*words, "--directory", other, env=env).records == []
        resumed = run("tr-resume", laid.target, env=env)
        assert (resumed.status, resumed.notices[0].partition(":")[0]) == (0, "the session's directory is gone")


@pytest.mark.parametrize("layout", ["claude", "claude 1.0", "claude agent", "codex 0.45", "qwen"])
def test_a_session_that_moved_is_listed_where_it_began_and_found_in_each_directory(layout, tmp_path):
    laid = LAYOUTS[layout](tmp_path / "store")
    placed(laid, "/moved/there", since=0.5)
    env = environment(tmp_path, laid)
    [row] = run("tr-list", laid.target, env=env).records

    assert row["directory"].startswith("/home/")
    for directory in (row["directory"], "/moved/there"):
        for words in (["tr-list"], ["tr-search", "--match", "literal", "--limit", "0", "e"]):
            found = run(*words, "--directory", directory, env=env).records
            assert laid.target in {record["session_id"] for record in found}


@pytest.mark.parametrize("layout", ["claude", "codex", "vibe", "opencode", "opencode tree", "qwen", "copilot"])
def test_a_session_without_a_directory_is_listed_and_counted_where_one_is_asked_for(layout, tmp_path):
    laid = LAYOUTS[layout](tmp_path / "store")
    placed(laid, "")
    env = environment(tmp_path, laid)

    assert [row["directory"] for row in run("tr-list", laid.target, env=env).records] == [None]
    for words in (["tr-list", "--directory", "/"], ["tr-qa", "--directory", "/", "--hours", "0"]):
        ran = run(*words, env=env)
        assert laid.target not in {record["session_id"] for record in ran.records}
        assert "1 session records no directory and is not selected by --directory" in ran.notices


# -- several of one id, and one in several places --------------------------------------------------------------


def _copied_project(laid):
    folder = laid.path.parent.with_name("-home-moved")
    folder.mkdir()
    shutil.copy(laid.path, folder)


def _archived(laid):
    archive = laid.root.parent / "archived_sessions"
    archive.mkdir()
    shutil.copy(laid.path, archive)


def _compressed(laid):
    laid.path.with_suffix(".jsonl.zst").write_bytes(zstandard.compress(laid.path.read_bytes()))


def _copied_folder(laid):
    folder = laid.path.parent.with_name("session_20261130_230000_0123abcd")
    shutil.copytree(laid.path.parent, folder)
    with (folder / "messages.jsonl").open("ab") as file:
        file.write(b'{"role":"user","content":"One more thing.","message_id":"m-more","injected":false}\n')


TWICE = {
    "two projects": ("claude", _copied_project),
    "live and archived": ("codex", _archived),
    "plain and compressed": ("codex", _compressed),
    "a folder that was copied and continued": ("vibe", _copied_folder),
}


@pytest.mark.parametrize("where", TWICE)
def test_a_session_in_two_places_is_one(where, tmp_path):
    layout, copy = TWICE[where]
    laid = LAYOUTS[layout](tmp_path / "store")
    before = run("tr-list", env=environment(tmp_path / "before", laid)).records
    copy(laid)

    found = run_all(laid, tmp_path)

    rows = found["tr-list"].records
    assert len(rows) == len(before)
    assert sum(row["user_count"] for row in rows) - sum(row["user_count"] for row in before) == (layout == "vibe")
    assert len(found["tr-index"].records) == len(rows)
    hits = [(hit["session_id"], hit["id"]) for hit in found["tr-search --match literal --limit 0 {word}"].records]
    assert len(hits) == len(set(hits))


def _to(*place):
    def move(laid):
        path = Path(os.path.normpath(laid.root.joinpath(*place))) / laid.path.name
        path.parent.mkdir(parents=True)
        laid.path.rename(path)

    return move


def _to_folder(find):
    def move(laid):
        folder = find(laid)
        folder.rename(folder.with_name(f"{folder.name}-moved"))

    return move


MOVES = {
    "claude": _to("-home-moved"),
    "claude agent": _to_folder(lambda laid: laid.path.parents[2]),
    "codex": _to("../archived_sessions"),
    "codex zst": _to("../archived_sessions"),
    "vibe": _to_folder(lambda laid: laid.path.parent),
    "gemini": _to_folder(lambda laid: laid.path.parents[1]),
    "qwen": _to("-home-moved", "chats"),
    "pi": _to("--home-moved--"),
    "copilot": lambda laid: laid.path.rename(laid.path.parent.with_suffix(".jsonl")),
}


@pytest.mark.parametrize("layout", MOVES)
def test_a_session_whose_file_was_moved_is_listed_and_read_where_it_is(layout, tmp_path):
    laid = LAYOUTS[layout](tmp_path / "store")
    env = environment(tmp_path, laid)
    [before] = run("tr-list", laid.target, env=env).records
    run("tr-index", env=env)
    told = run("tr-extract", "--full", laid.target, env=env).records
    MOVES[layout](laid)

    [row] = run("tr-list", laid.target, env=env).records
    hits = run("tr-search", "--match", "literal", "--limit", "0", "--session", laid.target, "e", env=env)

    assert row["path"] != before["path"]
    assert Path(row["path"]).exists()
    assert row.get("archived", False) == laid.harness.startswith("codex")
    for record in (now := run("tr-extract", "--full", laid.target, env=env).records) + told:
        record.pop("ref", None)
    assert now == told
    around = run("tr-context", "-C", "0", "-", env=env, stdin=hits.out)
    assert (around.status, len(around.records)) == (0, len({hit["id"] for hit in hits.records if hit["id"]}))


def test_sub_agents_of_one_id_are_told_apart(tmp_path):
    laid = LAYOUTS["claude agent"](tmp_path / "store")
    other = laid.root / "-home-other" / "99999999-0000-4000-8000-000000000000" / "subagents"
    other.mkdir(parents=True)
    (other / laid.path.name).write_bytes(b"\n".join(laid.units()[:3]) + b"\n")

    found = run_all(laid, tmp_path)

    agree(found, laid)
    agents = [row["session_id"] for row in found["tr-list"].records if row["session_id"].startswith(laid.target)]
    assert len(set(agents)) == 2
    env = environment(tmp_path, laid)
    told = [run("tr-extract", "--full", agent, env=env).records for agent in agents]
    assert [{message["session_id"] for message in messages} for messages in told] == [{agent} for agent in agents]
    assert len(told[0]) != len(told[1])
    windowed = run("tr-list", "--hours", "876000", env=env).records
    assert [row["session_id"] for row in windowed] == [row["session_id"] for row in found["tr-list"].records]


def test_one_id_in_two_harnesses_is_said_with_their_names_and_h_chooses(tmp_path):
    stores = list(lay_all(tmp_path))
    for laid in stores:
        renamed(laid, "twin")
    env = environment(tmp_path, *stores)

    ran = run("tr-extract", "twin", env=env)

    assert ran.status == 0
    assert f"matches {len(stores)} sessions" in ran.err
    named = re.findall(r"twin \((\w+)\)", ran.err)
    assert len(set(named)) == 4
    assert set(named) < {laid.harness for laid in stores}
    for laid in stores:
        chosen = run("tr-extract", "-H", laid.harness, "twin", env=env)
        assert (chosen.err, {message["harness"] for message in chosen.records}) == ("", {laid.harness})
    referred = run("tr-extract", "-", env=env, stdin=run("tr-list", env=env).out)
    assert {message["harness"] for message in referred.records if message["session_id"] == "twin"} == {
        laid.harness for laid in stores
    }


def test_an_exact_id_wins_over_a_prefix_and_a_prefix_over_a_part(tmp_path):
    laid = LAYOUTS["codex"](tmp_path / "store")
    for number, name in enumerate(("ab", "abc", "xab")):
        renamed(laid, name)
        path = laid.path.with_name(f"rollout-{name}.jsonl")
        path.write_bytes(laid.path.read_bytes())
        os.utime(path, (1796073638 + number, 1796073638 + number))
    laid.path.unlink()
    env = environment(tmp_path, laid)

    def meant(asked):
        ran = run("tr-list", asked, env=env)
        return [row["session_id"] for row in ran.records], ran.notices

    assert meant("ab") == (["ab"], [])
    assert meant("abc") == (["abc"], [])
    assert meant("xa") == (["xab"], [])
    found, said = meant("a")
    assert found == ["abc"]
    assert said[0].startswith("'a' matches 2 sessions, the most recent is taken: abc")
    assert meant("a_")[0] == meant("%")[0] == meant("A")[0] == []


FIXTURE_STORES = {
    "claude": "claude/.claude/projects",
    "codex": "codex/.codex/sessions",
    "vibe": "vibe/mixed-3.0.3/logs/session",
    "opencode": "opencode/main-1.18.33/opencode",
    **{harness: f"{harness}/{root}" for harness, root in ROOTS.items()},
}


@pytest.mark.parametrize("harness", FIXTURE_STORES)
def test_what_a_list_prints_every_program_accepts(harness, tmp_path):
    root = shutil.copytree(FIXTURES / FIXTURE_STORES[harness], tmp_path / "store", symlinks=True)
    env = isolated(tmp_path) | {f"TOTAL_RECALL_{harness.upper()}_ROOT": str(root)}
    env["TOTAL_RECALL_SHADOW_ROOT"] = str(tmp_path / "shadow")
    listed = run("tr-list", env=env)
    ids = [row["session_id"] for row in listed.records]

    assert len(ids) == len(set(ids)) >= (1 if harness in ROOTS else 10)
    for tool in ("tr-list", "tr-profile"):
        again = run(tool, "-", env=env, stdin=listed.out)
        assert [row["session_id"] for row in again.records] == ids
        assert not any("matches" in notice for notice in again.notices)
    for session in ids:
        ran = run("tr-extract", "--full", session, env=env)
        assert (ran.status, {message["session_id"] for message in ran.records} - {session}) == (0, set())
        assert not any("matches" in notice for notice in ran.notices)


# -- families --------------------------------------------------------------------------------------------------


def _parents_in_a_circle(laid):
    with closing(sqlite3.connect(laid.path)) as database:
        other = "SELECT id FROM session s WHERE s.id <> session.id"
        database.execute(f"UPDATE session SET parent_id = ({other})")
        database.commit()


def _goes_on_from_itself(laid):
    head = orjson.loads(laid.units()[0])
    head["payload"] |= {"history_base": {"thread_id": laid.target}, "forked_from_id": laid.target}
    laid.spoil(0, orjson.dumps(head))


def _go_on_from_each_other(laid):
    for path in laid.path.parent.iterdir():
        lines = path.read_bytes().split(b"\n")
        head = orjson.loads(lines[0])
        other = laid.target if laid.target not in path.name else laid.witness
        head["payload"] |= {"history_base": {"thread_id": other}, "forked_from_id": other, "parent_thread_id": other}
        head["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": other}}}
        path.write_bytes(b"\n".join([orjson.dumps(head), *lines[1:]]))


def _goes_on_from_one_that_is_gone(laid):
    head = orjson.loads(laid.units()[0])
    head["payload"] |= {"history_base": {"thread_id": "gone"}, "forked_from_id": "gone", "parent_thread_id": "gone"}
    laid.spoil(0, orjson.dumps(head))


def _is_its_own_agent(laid):
    folder = laid.path.parent / laid.target / "subagents"
    folder.mkdir(parents=True)
    shutil.copy(laid.path, folder / f"agent-{laid.target}.jsonl")
    lines = [orjson.loads(unit) for unit in laid.units()]
    laid.put([orjson.dumps(line | {"parentUuid": line["uuid"]} if "uuid" in line else line) for line in lines])


FAMILIES = {
    "parents in a circle": ("opencode", _parents_in_a_circle),
    "a thread that goes on from itself": ("codex", _goes_on_from_itself),
    "threads that go on from each other": ("codex", _go_on_from_each_other),
    "a thread that goes on from one that is gone": ("codex", _goes_on_from_one_that_is_gone),
    "records that are their own parents": ("claude", _is_its_own_agent),
}


@pytest.mark.parametrize("what", FAMILIES)
def test_lineage_that_leads_round_or_nowhere_comes_to_an_end(what, tmp_path):
    layout, tangle = FAMILIES[what]
    laid = LAYOUTS[layout](tmp_path / "store")
    tangle(laid)

    agree(run_all(laid, tmp_path), laid)

    env = environment(tmp_path, laid)
    for words in (
        *(["tr-list", "--roots"], ["tr-list", "--parent", laid.target], ["tr-search", "the", "--roots"]),
        ["tr-search", "the", "--exclude", laid.target],
        ["tr-extract", "--full", "--branches", "--with-history", laid.target],
    ):
        assert run(*words, env=env | {"TR_CURRENT_SESSION": laid.witness}).status in (0, 1), words
