"""Which session is meant: ids of any characters, the same id in several places, prefixes, families."""

import os
import subprocess

import pytest

from .layouts import LAYOUTS, renamed
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
CASES = [
    (n, name) for n in ("claude", "codex", "vibe", "opencode") for name in NAMES if n != "claude" or name in FILE_NAMES
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


def _root(laid, name):
    laid.root = _moved(laid, laid.root, name)


PLACES = {
    ("claude", "file"): _file,
    ("claude", "project"): _project,
    ("codex", "file"): _rollout,
    ("vibe", "project"): _project,
    ("vibe", "folder without metadata"): _folder_without_metadata,
    **{(name, "root"): _root for name in ("claude", "codex", "vibe", "vibe unified", "opencode", "opencode tree")},
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


@pytest.mark.parametrize("layout", ["claude", "codex", "vibe", "opencode"])
def test_the_command_that_resumes_is_safe_in_a_shell(layout, tmp_path):
    for number, name in enumerate(NAMES.values()):
        if layout == "claude" and "/" in name:
            continue
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
        assert (words, done.stderr) == (["cd", "--", known["directory"], *known["argv"]], b"")
        assert name in known["argv"]
    assert not (tmp_path / "hacked").exists()
