"""Hostile texts before a terminal, and the streams, signals and environments that a program is run with."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
from sample import ROOT
from total_recall.record import one_line
from total_recall.terminal import clean, flat

from .layouts import HARNESSES, LAYOUTS, entitled
from .programs import READING, agree, contents, environment, option_words, run, run_all

# A clipboard write, a title, colours, a cursor's way, a carriage return, backspaces, C1, bidi, a bell, NUL, DEL, a
# tab, bars and quotes of tables, and words that our own reports begin with.
HOSTILE = (
    "\x1b]52;c;aGFja2Vk\x07\x1b]0;owned\x1b\\\x1b[31mred\x1b[0m\x1b[2J\x1b[1;1H\rover\b\b\x9b31m\x90q\x9c\x9d0;t\x9c"
    "\u202egnp.exe\u2066\u2069\u200f\x07\0\x7f\t|`'\"$(id)\\ \u2028\u2029\x85\x0b\x0c"
    "\n=== forged (ses_x)\n--- HE SAID:\n# forged\n| a | b |\n```\nHEADER: x\ntr-list: forged\n"
)


def _hostile(value, key=""):
    """A record in which every text that a person or a model could have written is hostile."""
    if isinstance(value, dict):
        return {key: _hostile(member, key) for key, member in value.items()}
    if isinstance(value, list):
        return [_hostile(member, key) for member in value]
    if isinstance(value, str) and key in _TEXTS:
        return f"{value[:40]}{HOSTILE}"
    return value


_TEXTS = frozenset(
    (
        "text thinking content output stdout stderr summary aiTitle customTitle title command cmd description prompt "
        "message name file_path filePath path cwd gitBranch model question header label subject arguments "
        "reasoning_content branch tool error"
    ).split()
)


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_text_of_a_session_reaches_a_terminal_or_breaks_a_line(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    laid.put([orjson.dumps(_hostile(orjson.loads(unit))) for unit in laid.units()])

    found = run_all(laid, tmp_path)

    agree(found, laid)
    # One row, one line: the head and a line for each session.
    table = found["tr-fmt --width 100 < tr-list"].out
    assert table.count(b"\n") == 1 + len(found["tr-list"].records)
    for row in found["tr-list"].records:
        assert row["title"] is None or row["title"].isprintable()
    report = found["tr-search --report {word}"].out.decode()
    assert report.count("\n") <= 2 + len(found["tr-search {word}"].records) + 20
    assert "\nforged" not in report


@pytest.mark.parametrize("name", [name for name in HARNESSES if name != "vibe unified"])
def test_a_title_is_one_line_that_says_something_or_how_the_first_prompt_begins(name, tmp_path):
    titles = []
    for number, stored in enumerate(
        ("Named\x1b[31m\u202e by\x07 a person\nin two lines", " \t\n\r", "\u2028\u202e\x07")
    ):
        laid = LAYOUTS[name](tmp_path / str(number))
        entitled(laid, stored)
        env = environment(tmp_path / f"{number} beside", laid)
        titles += [row["title"] for row in run("tr-list", laid.target, env=env).records]

    prompt = one_line(run("tr-user", laid.target, env=env).records[0]["content"])
    assert titles == ["Named [31m  by  a person", prompt, prompt]


@pytest.mark.parametrize("name", [name for name in HARNESSES if name != "vibe unified"])
def test_a_new_title_is_listed_and_found(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    env = environment(tmp_path, laid)
    run("tr-list", env=env)
    run("tr-index", env=env)

    for title in ("About zebras", "About hippos"):
        entitled(laid, title)
        assert run("tr-list", laid.target, env=env).records[0]["title"] == title
        [hit] = run("tr-search", title.split()[1], env=env).records
        assert (hit["session_id"], hit["id"], hit["title"]) == (laid.target, 0, title)
    assert run("tr-search", "--strict", "zebras", env=env).status == 1


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_option_of_every_command_is_taken_on_every_layout(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    env = environment(tmp_path, laid)
    before = contents(laid.root)

    for tool, operands in READING.items():
        for option in option_words(tool):
            words = [part.format(id=laid.target, word="the") for part in (option, *operands.split())]
            ran = run(tool, *words, env=env)
            assert ran.status in (0, 1, 2), ran
            assert "unexpected" not in ran.err, ran
            assert ran.status != 2 or (ran.out == b"" and " - " in ran.err), ran

    assert contents(laid.root) == before


@pytest.mark.parametrize("text", ["\x90", "\x1b]", "\x1b[", "\x9d;", "\x1b", "\x1b[1;1", "\u202e", "a\x1b]"])
def test_a_long_run_of_beginnings_is_cleaned_in_no_time(text):
    """In quadratic time this would take minutes."""
    cleaned = clean(text * 200_000)

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", cleaned)


def test_what_is_fed_to_tr_fmt_may_be_anything():
    values = (None, True, 7, -1.5, "x", [], {}, [None], {"a": 1}, HOSTILE)
    env = {"PATH": os.environ["PATH"]}
    keys = (
        "harness session_id title file_size user_count end_time directory id role content ts who text question "
        "answers options header action todo status snippet score docs role_counts interesting_events root exists "
        "error newest sessions shadow_root thinking tool_calls class tool_name bounds notice notices unreadable "
        "line_count assistant_count tool_count parent_session_id first_ts last_ts tools files usage"
    ).split()
    lists = ("stores", "messages", "user_messages", "records", "pairs", "events", "hits", "indexed", "profile")
    lines = [orjson.dumps(dict.fromkeys(keys, value)) for value in values]
    lines += [orjson.dumps(dict.fromkeys([*keys, name], value)) for name in lists for value in values]
    lines += [orjson.dumps({name: [value, {"session_id": value, "id": value}]}) for name in lists for value in values]
    lines += [
        b"{",
        b"",
        b"\xff\xfe",
        b"[" * 5000,
        b'{"a":' * 5000,
        HOSTILE.encode(),
        b'{"session_id":"\\ud800"}',
        b"{" + b"x" * 100_000,
    ]

    for options in ([], ["--markdown"], ["--width", "20"]):
        ran = run("tr-fmt", *options, env=env, stdin=b"\n".join(lines))
        assert (ran.status, ran.err) == (0, "")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ran.out.decode())


def test_what_is_fed_as_a_reference_may_be_anything(tmp_path):
    laid = LAYOUTS["claude"](tmp_path / "store")
    env = environment(tmp_path, laid)
    lines = [
        *(
            b"",
            b"  ",
            b"{",
            b"{}",
            b"[]",
            b"null",
            b'{"session_id":7}',
            b'{"session_id":""}',
            b'{"session_id":null,"id":1}',
        ),
        *(b'{"session_id":"\\ud800"}', b'{"a":' * 2000, b"\xff", b"\0", b'{"session_id":[]}', b'"x"'),
        orjson.dumps({"session_id": laid.target, "id": "7"}),
        orjson.dumps({"session_id": laid.target, "id": True, "harness": 7}),
        orjson.dumps({"session_id": laid.target, "id": 2, "harness": "claude"}),
    ]
    for tool in ("tr-extract", "tr-user", "tr-raw", "tr-profile", "tr-qa", "tr-todo", "tr-context"):
        for line in lines:
            ran = run(tool, "-", env=env, stdin=line + b"\n")
            assert ran.status in (0, 1, 2), ran
            assert "unexpected" not in ran.err, ran


# -- streams, signals, environments ----------------------------------------------------------------------------

LINES = [
    *("tr-stores", "tr-list", "tr-extract", "tr-user", "tr-raw", "tr-profile", "tr-todo b8fc", "tr-resume", "tr-index"),
    *("tr-said --words the --hours 0", "tr-search the", "tr-search --match literal the"),
    *("tr-extract --envelope", "tr-search --report the", "tr-list --envelope"),
]


@pytest.fixture
def shell(tmp_path):
    """Run a shell line on a small store."""
    laid = LAYOUTS["claude"](tmp_path / "store")
    env = environment(tmp_path, laid)
    path = os.pathsep.join((str(ROOT / "bin"), str(Path(sys.executable).parent), env["PATH"]))

    def ran(line, **more):
        return subprocess.run(
            ["bash", "-c", line], env=env | {"PATH": path} | more, capture_output=True, cwd=tmp_path, timeout=120
        )

    def warm(line):
        run("tr-index", env=env)
        return run(*line.split(), env=env).out

    ran.laid, ran.env, ran.warm = laid, env | {"PATH": path}, warm
    return ran


@pytest.mark.parametrize("line", LINES)
def test_any_stream_may_be_closed(line, shell):
    expected = shell.warm(line)

    no_input, no_output, no_errors = (shell(f"{line} {closed}") for closed in ("<&-", ">&-", "2>&-"))

    assert (no_input.returncode, no_input.stdout) == (0, expected)
    assert no_output.returncode == 5
    assert no_output.stderr.count(b"cannot write to standard output") == 1
    assert (no_errors.returncode, no_errors.stdout) == (0, expected)
    assert shell(f"{line} <&- >&- 2>&-").returncode == 5


@pytest.mark.parametrize("line", LINES)
def test_a_reader_that_goes_ends_it_without_a_word_and_a_full_disk_with_one(line, shell):
    gone = shell(f"{line} | :; echo ${{PIPESTATUS[0]}}")
    full = shell(f"{line} > /dev/full")

    assert gone.stdout.strip() in (b"141", b"0")
    assert b"Traceback" not in gone.stderr
    assert b"roken" not in gone.stderr
    assert full.returncode == 5
    assert b"No space left on device" in full.stderr


@pytest.mark.parametrize("line", LINES)
def test_locale_zone_and_terminal_change_no_byte(line, shell):
    expected = shell.warm(line)
    for more in (
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "TZ": "Asia/Kathmandu", "TERM": "dumb"},
        {"LC_ALL": "tr_TR.ISO-8859-9", "PYTHONCOERCECLOCALE": "0", "NO_COLOR": "1", "COLUMNS": "7", "TERM": ""},
    ):
        ran = shell(line, **more)
        assert (ran.returncode, ran.stdout) == (0, expected)


def test_no_home_is_no_error_where_the_stores_are_named(shell):
    for line in LINES:
        ran = shell(f"env -u HOME -u XDG_CACHE_HOME {line}")
        assert ran.returncode == 0, (line, ran.stderr)


@pytest.mark.parametrize(
    ("more", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colour_only_on_a_terminal_that_takes_it(more, coloured, shell):
    assert b"\x1b" not in shell("tr-list | tr-fmt").stdout

    shown = _on_terminal("tr-list | tr-fmt", shell.env | {"TERM": "xterm"} | more)

    assert (b"\x1b[1m" in shown) == coloured
    assert not re.search(rb"\x1b(?!\[[0-9;]*m)", shown)


def _on_terminal(line, env):
    """What a shell line prints when its output is a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(["bash", "-c", line], env=env, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while block := os.read(leader, 65536):
            shown += block
    except OSError:  # how Linux tells that the other end is closed
        pass
    process.wait()
    os.close(leader)
    return shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("line", ["tr-extract --follow --full", "tr-fmt", "tr-extract -", "tr-context -"])
def test_a_signal_ends_it_without_a_traceback(line, number, shell):
    words = line.split()
    process = subprocess.Popen(
        [sys.executable, ROOT / "bin" / words[0], *words[1:]],
        env=shell.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    if "--follow" in words:
        assert process.stdout.readline()
    else:
        process.stdin.write(orjson.dumps({"session_id": shell.laid.target, "id": 2}) + b"\n")
        process.stdin.flush()
        if words[0] != "tr-fmt":
            assert process.stdout.readline()
        else:
            time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)

    assert b"Traceback" not in err
    assert process.returncode in (130, -number)


def test_flat_is_one_line_whatever_the_text():
    assert "\n" not in flat(HOSTILE)
    assert flat(HOSTILE).isprintable()


@pytest.mark.parametrize("blocking", [True, False])
def test_a_slow_reader_gets_every_byte(blocking, shell):
    shell.laid.put([*shell.laid.units(), *(orjson.dumps(_hostile(orjson.loads(unit))) for unit in shell.laid.units())])
    words = ["tr-raw", "--include-injected", shell.laid.target]
    expected = run(*words, env=shell.env).out
    assert len(expected) > 3 * 65536
    read, write = os.pipe()
    os.set_blocking(write, blocking)
    process = subprocess.Popen(
        [sys.executable, ROOT / "bin" / words[0], *words[1:]], env=shell.env, stdout=write, stderr=subprocess.DEVNULL
    )
    os.close(write)
    found = b""
    time.sleep(0.3)
    while block := os.read(read, 5000):
        found += block
    os.close(read)

    assert process.wait() == 0
    assert found == expected
