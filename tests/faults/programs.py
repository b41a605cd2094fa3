"""Every command, run in this process on a store, and the promises that hold for whatever the store holds.

A new command is one row more in COMMANDS.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
import orjson
from sample import command, isolated
from total_recall.stores.registry import HARNESSES

from .layouts import Laid

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Ran(NamedTuple):
    """What a command printed, and its status."""

    words: tuple[str, ...]
    status: int
    out: bytes
    err: str

    @property
    def records(self) -> list[Any]:
        return [orjson.loads(line) for line in self.out.splitlines()]

    @property
    def notices(self) -> list[str]:
        """What was said on standard error, without the account that every search ends with."""
        said = [line.removeprefix(f"{self.words[0]}: ") for line in self.err.splitlines()]
        return [line for line in said if not re.match(r"\d+ hits?; searched ", line)]


def run(*words: str, env: Mapping[str, str], stdin: bytes = b"") -> Ran:
    """Run an executable with the standard streams and the environment of its own, but in this process."""
    from total_recall.command import perform

    tool, *arguments = words
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        with _as_standard(given, out, err), _environment(env), _signals():
            status = perform(tool, command(tool), [str(word) for word in arguments])
        out.seek(0)
        err.seek(0)
        return Ran(words, status, out.read(), err.read().decode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def _as_standard(*files: Any) -> Iterator[None]:
    kept = [os.dup(number) for number in range(3)]
    streams = sys.stdin, sys.stdout, sys.stderr
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
        sys.stdout = io.TextIOWrapper(open(1, "wb", buffering=0, closefd=False), write_through=True)  # noqa: SIM115
        sys.stderr = io.TextIOWrapper(open(2, "wb", buffering=0, closefd=False), write_through=True)  # noqa: SIM115
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


@contextlib.contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    kept = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def environment(scratch: Path, *stores: Laid) -> dict[str, str]:
    """The environment in which only these stores can be reached; what is derived from them goes into `scratch`."""
    (scratch / "home").mkdir(exist_ok=True, parents=True)
    env = isolated(scratch / "home") | {"TOTAL_RECALL_SHADOW_ROOT": str(scratch / "shadow")}
    for laid in stores:
        env |= laid.environment
    return env


# -- the table -------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A command line, in which {id} and {word} stand for the target and for a word that is in it.

    `prints` is what standard output holds: `records`, `raw` lines, an `envelope`, or `text` for people. `fed` is the
    command line whose output it is given. `statuses` are those that a store which can be read may lead to.
    """

    words: tuple[str, ...]
    prints: str = "records"
    fed: str = ""
    statuses: tuple[int, ...] = (0,)
    again: bool = False

    @property
    def name(self) -> str:
        return " ".join(self.words) + (f" < {self.fed}" if self.fed else " again" if self.again else "")


def _row(line: str, *options: Any, **more: Any) -> Row:
    return Row(tuple(line.split()), *options, **more)


COMMANDS = [
    _row("tr-stores"),
    _row("tr-list"),
    _row("tr-list -- {id}"),
    _row("tr-list --envelope", "envelope"),
    _row("tr-extract --full -- {id}"),
    _row("tr-extract -- {id}"),
    _row("tr-extract --branches --with-history --full -- {id}"),
    _row("tr-extract --limit 3 --max-record-bytes 100 -- {id}"),
    _row("tr-extract --full --envelope -- {id}", "envelope"),
    _row("tr-user -- {id}"),
    _row("tr-raw -- {id}", "raw"),
    _row("tr-raw --include-injected --header -- {id}", "raw"),
    _row("tr-raw --include-injected --envelope -- {id}", "envelope"),
    _row("tr-profile -- {id}"),
    _row("tr-profile --no-cache --envelope -- {id}", "envelope"),
    _row("tr-todo -- {id}", statuses=(0, 2)),
    _row("tr-qa -- {id}", statuses=(0, 1)),
    _row("tr-qa --hours 0 --report", "text", statuses=(0, 1)),
    _row("tr-said --words {word} --hours 0", statuses=(0, 1)),
    _row("tr-said --words {word} --hours 0 --report", "text", statuses=(0, 1)),
    _row("tr-index"),
    _row("tr-index", again=True),
    _row("tr-search {word}", statuses=(0, 1)),
    _row("tr-search --envelope --group session {word}", "envelope", statuses=(0, 1)),
    _row("tr-search --match literal --limit 0 {word}", statuses=(0, 1)),
    _row("tr-search --match regex --session={id} {word}", statuses=(0, 1)),
    _row("tr-search --session={id} --session={id} {word}", statuses=(0, 1)),
    _row("tr-search --report {word}", "text", statuses=(0, 1)),
    _row("tr-context -- {id}:2", statuses=(0, 2)),
    _row("tr-context --human -", fed="tr-search --match literal --limit 0 {word}"),
    _row("tr-resume -- {id}", "shell", statuses=(0, 2)),
    _row("tr-resume --json -- {id}", statuses=(0, 2)),
    _row("tr-fmt --width 100", "text", fed="tr-list"),
    _row("tr-fmt", "text", fed="tr-extract --full -- {id}"),
    _row("tr-fmt --markdown", "text", fed="tr-extract --full -- {id}"),
    _row("tr-fmt", "text", fed="tr-profile -- {id}"),
    _row("tr-fmt", "text", fed="tr-search {word}"),
]


# Those that read sessions and ask no model, with the operands that they need.
READING = {
    **dict.fromkeys(("tr-list", "tr-extract", "tr-user", "tr-raw", "tr-profile", "tr-qa", "tr-todo"), "-- {id}"),
    **dict.fromkeys(("tr-index", "tr-resume", "tr-cache", "tr-cache-drop"), "-- {id}"),
    "tr-stores": "",
    "tr-said": "--words={word} -- {id}",
    "tr-search": "-- {word}",
    "tr-context": "-- {id}:2",
}
_VALUES = {
    **dict.fromkeys(("--session", "--exclude", "--parent", "--drop"), "{id}"),
    **dict.fromkeys(("--since", "--until"), "2026-11-30T21:21:00Z"),
    "--directory": "dev",
    "--words": "{word}",
    "--tool": "bash",
}


def option_words(tool: str) -> Iterator[str]:
    """Every option of a command, with each of its choices or with a value that makes sense."""
    for option in command(tool).params:
        if not isinstance(option, click.Option) or option.name in ("help", "version", "follow"):
            continue
        name = option.opts[-1]
        if option.is_flag:
            yield name
        elif isinstance(option.type, click.Choice):
            yield from (f"{name}={choice}" for choice in option.type.choices)
        else:
            yield f"{name}={_VALUES.get(name, '3')}"


def run_all(laid: Laid, scratch: Path, *, also: tuple[int, ...] = (), word: str = "the") -> dict[str, Ran]:
    """Run every command on a store, hold each to its promises, and give what it printed by its command line.

    `also` are statuses that are right besides those of a store that can be read: 3 where the target or the store
    cannot be, 2 where there may be no target.
    """
    env = environment(scratch, laid)
    before = contents(laid.root)
    found: dict[str, Ran] = {}
    for row in COMMANDS:
        words = [part.format(id=laid.target, word=word) for part in row.words]
        ran = run(*words, env=env, stdin=found[row.fed].out if row.fed else b"")
        check(ran, row, (*row.statuses, *also))
        found[row.name] = ran
    for again in ("tr-list", "tr-extract --full -- {id}", "tr-search {word}"):
        words = [part.format(id=laid.target, word=word) for part in again.split()]
        out = run(*words, env=env).out.replace(b'"has_tantivy_index":true', b'"has_tantivy_index":false')
        # Branches are told once they are known.
        second, first = (text.replace(b'"branch":"abandoned",', b"") for text in (out, found[again].out))
        assert second == first, f"{again} says something else the second time"
    assert contents(laid.root) == before, "a command wrote into the store"
    return found


def agree(found: Mapping[str, Ran], laid: Laid) -> None:
    """What several commands say of the same session is the same."""
    rows = {row["session_id"]: row for row in found["tr-list"].records}
    messages = found["tr-extract --full -- {id}"].records
    [row] = found["tr-list -- {id}"].records
    assert row in rows.values()
    assert laid.witness in rows
    ids = [message["id"] for message in messages]
    assert ids == sorted(set(ids))
    # What a sidechain inside a transcript did counts, what it was told does not.
    own = [m for m in messages if not m.get("replayed")]
    prompts = [
        m
        for m in own
        if m["role"] == "user" and m["authorship"] in ("human", "delegated") and m.get("agent") != "sidechain"
    ]
    calls = [call for m in own if m["authorship"] not in ("tool", "injected") for call in m["tool_calls"]]
    if laid.harness == "opencode":
        # To count calls their rows are not opened: a damaged one counts too.
        assert row["tool_count"] >= len(calls)
    else:
        assert row["tool_count"] == len(calls)
    # Several texts of one message count once, and only where a harness keeps them apart.
    assert row["user_count"] <= len(prompts)
    assert bool(row["user_count"]) == bool(prompts)
    raw = json_of(found["tr-raw --include-injected --envelope -- {id}"].out)["records"]
    assert row["line_count"] == len(raw)
    [profile] = found["tr-profile -- {id}"].records
    assert sum(profile["role_counts"].values()) == sum(1 for m in messages if not m.get("replayed"))
    assert profile["line_count"] == row["line_count"]
    [store] = [row for row in found["tr-stores"].records if row["harness"] == laid.harness]
    assert store["sessions"] == len(rows)
    assert f" of {len(rows)} session" in found["tr-search {word}"].err
    statuses = {row["session_id"]: row["status"] for row in found["tr-index again"].records}
    assert statuses == dict.fromkeys(rows, "unchanged")


def check(ran: Ran, row: Row, statuses: tuple[int, ...]) -> None:
    """Hold what a command printed to what is promised of every command."""
    where = f"{' '.join(ran.words)}: status {ran.status}, {ran.err}"
    assert ran.status in statuses, where
    assert "Traceback" not in ran.err, where
    assert "unexpected" not in ran.err, where
    assert all(line.startswith(f"{ran.words[0]}: ") for line in ran.err.splitlines()), where
    assert not _CONTROLS.search(ran.err), where
    if ran.status == 2:
        assert ran.out == b"", where
        return
    # The bytes of a raw record are those of its source, and a shell is given a file's own name; all else is UTF-8.
    errors = "replace" if row.prints in ("raw", "shell") else "strict"
    PRINTED[row.prints](ran.out, ran.out.decode("utf-8", errors), where)


def _records(out: bytes, text: str, where: str) -> None:
    for line in out.splitlines():
        value = orjson.loads(line)
        assert isinstance(value, dict), where
        moments(value, where)
    assert out.count(b"\n") == len(out.splitlines()), where


def _envelopes(out: bytes, text: str, where: str) -> None:
    assert out.count(b"\n") == 1, where
    _records(out, text, where)


def _raw(out: bytes, text: str, where: str) -> None:
    for line in out.split(b"\n")[:-1]:
        if line.startswith(b"# "):
            continue
        kind, moment, value = line.split(b",", 2)
        assert kind in (b"user", b"assistant", b"tool", b"thinking", b"system"), where
        assert moment == b"0" or MOMENT.match(moment.decode()), where
        json_of(value)


def json_of(value: bytes) -> Any:
    """A JSON text as a patient reader takes it: of any depth, with any number."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        return json.loads(value.decode("utf-8", "replace"), parse_int=str)
    finally:
        sys.setrecursionlimit(limit)


def _text(out: bytes, text: str, where: str) -> None:
    assert not _CONTROLS.search(text), where


def _shell(out: bytes, text: str, where: str) -> None:
    assert not text or text.startswith(("cd -- ", *HARNESSES)), where


PRINTED: dict[str, Callable[[bytes, str, str], None]] = {
    "records": _records,
    "envelope": _envelopes,
    "raw": _raw,
    "text": _text,
    "shell": _shell,
}
_MOMENTS = ("ts", "start_time", "end_time", "first_ts", "last_ts", "newest")


def moments(value: Any, where: str) -> None:
    """Every time is RFC 3339 UTC with three digits, or null."""
    if isinstance(value, list):
        for member in value:
            moments(member, where)
    elif isinstance(value, dict):
        for key in _MOMENTS:
            if isinstance(found := value.get(key), str):
                assert MOMENT.match(found), f"{where}: {key} is {found}"
        for key in ("messages", "sessions", "hits", "pairs", "profile", "interesting_events"):
            moments(value.get(key), where)


def contents(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """What is in a folder, to tell that nothing was written; the shared memory of a database is no content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.endswith("-shm"):
            about = path.stat()
            found[str(path)] = about.st_size, about.st_mtime_ns, path.read_bytes()
    return found
