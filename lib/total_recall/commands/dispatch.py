"""total-recall: runs the executable of a subcommand, in the way of git."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import click

from ..command import Failure, Run, executable
from ..output import encoded, write


class Form(NamedTuple):
    """What a subcommand runs, with which words before the person's own, and how its output is shown.

    `shown` is the default: "" as the executable prints it, "text" through tr-fmt, "strings" as one JSON array of the
    contents. `array` says whether `--json` gives an array or the one object. `session` is how a session is named: an
    operand, or an option.
    """

    tool: str
    words: tuple[str, ...] = ()
    shown: str = ""
    array: bool = False
    session: str = ""


FORMS = {
    "list": Form("tr-list", (), "text", array=True),
    "profile": Form("tr-profile", (), "text"),
    "extract": Form("tr-extract"),
    "user-messages": Form("tr-user", (), "strings"),
    "extract-by-type": Form("tr-raw"),
    "todo-history": Form("tr-todo"),
    "he-said-she-said": Form("tr-said", ("--hours=48", "--report")),
    "index": Form("tr-index", ("--hours=24", "--report")),
    "do-android-dream-of-electric-sheep": Form("tr-search", ("--hours=48", "--report"), session="--session"),
    "summary-cache": Form("tr-cache"),
    "summarise-from": Form("tr-summarise"),
    "cache-delete-latest": Form("tr-cache-drop"),
    "prior-period-summary": Form("tr-recap"),
    "mcp": Form("tr-mcp"),
}
_ROWS = 200  # `list --hours N` keeps to so many

_WITH_VALUE = {
    *("harness", "session", "sessions", "words", "query", "from-id", "provider", "type", "directory"),
    *("hours", "since", "until", "limit", "offset", "max-bytes", "max-record-bytes"),
}


def _tools() -> dict[str, str]:
    """Bare name -> path of every executable beside this one."""
    folder = os.path.dirname(os.path.realpath(sys.argv[0]))
    names = sorted(name for name in os.listdir(folder) if name.startswith("tr-"))
    return {name.removeprefix("tr-"): os.path.join(folder, name) for name in names}


@executable("total-recall", ignore_unknown_options=True, allow_interspersed_args=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS] SUBCOMMAND ...")
def main(run: Run, words: tuple[str, ...]) -> int | None:
    """Run a subcommand: one of the programs by its bare name, or by the name of what it does.

    Options may stand before or after the subcommand; --session ID names the session. Without a subcommand, list them.
    """
    tools = _tools()
    name, options, rest = _split(list(words))
    if name is None:
        if rest or options:
            given = rest[0] if rest else f"--{next(iter(options))}"
            raise Failure(f"{given} needs a subcommand - total-recall alone lists them")
        write(_listing(tools))
        return None
    form = FORMS.get(name) or (Form(f"tr-{name}") if name in tools else None)
    if form is None or form.tool.removeprefix("tr-") not in tools:
        known = ", ".join(dict.fromkeys([*FORMS, *tools]))
        raise Failure(f"no subcommand {name!r} - known: {known}")
    bare = name not in FORMS
    shown = "" if bare else options.pop("form", [form.shown])[-1]
    if name == "list" and options.get("hours", ["0"])[-1] != "0":
        options.setdefault("limit", [str(_ROWS)])
    argv = [sys.executable, tools[form.tool.removeprefix("tr-")], *_arguments(form, shown, options, rest)]
    if not shown:
        sys.stdout.flush()
        os.execv(sys.executable, argv)
    return _piped(argv, shown, form, tools["fmt"])


def _split(words: list[str]) -> tuple[str | None, dict[str, list[str]], list[str]]:
    """The subcommand, the options whose meaning is ours, and the words left to the executable."""
    name: str | None = None
    options: dict[str, list[str]] = {}
    rest: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            rest += [word, *words]
            break
        option, equals, value = word.removeprefix("--").partition("=")
        if word.startswith("--") and option in _WITH_VALUE:
            if not equals:
                if not words:
                    raise Failure(f"--{option} needs a value")
                value = words.pop(0)
            options.setdefault("session" if option == "sessions" else option, []).append(value)
        elif word in ("--json", "--markdown"):
            options["form"] = [option]
        elif word == "-H" and words:
            options.setdefault("harness", []).append(words.pop(0))
        elif name is None and not word.startswith("-"):
            name = word
        else:
            rest.append(word)
    return name, options, rest


def _arguments(form: Form, shown: str, options: dict[str, list[str]], rest: list[str]) -> Iterator[str]:
    """The executable's own words: the form's first, so that the person's win."""
    operands: list[str] = []
    for word in form.words:
        if word.removeprefix("--").partition("=")[0] not in options and not (word == "--report" and shown):
            yield word
    for option, values in options.items():
        for value in values:
            if (option == "session" and not form.session) or option == "query":
                operands.append(value)
            else:
                yield f"--{option}={value}"
    yield from (word for word in rest if word != "--")
    if operands:
        yield "--"
        yield from operands


def _piped(argv: list[str], shown: str, form: Form, fmt: str) -> int:
    child = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert child.stdout is not None
    if shown in ("text", "markdown"):
        printer = subprocess.Popen([sys.executable, fmt, f"--{shown}"], stdin=child.stdout)
        child.stdout.close()
        printed = printer.wait()
        return child.wait() or printed
    if shown == "json" and not form.array:
        write(line.rstrip(b"\n") for line in child.stdout)
    else:
        lines = (line.rstrip(b"\n") for line in child.stdout)
        write([b"[" + b",\n".join(map(_content, lines) if shown == "strings" else lines) + b"]"])
    return child.wait()


def _content(line: bytes) -> bytes:
    import orjson

    return encoded(orjson.loads(line)["content"])


def _listing(tools: dict[str, str]) -> Iterator[bytes]:
    """Every subcommand with its one-line purpose."""
    from importlib import import_module

    purposes = {}
    for bare in tools:
        if bare == "mcp":
            purposes[bare] = "Serve these programs to agents over MCP."
            continue
        command = import_module(f".{bare.replace('-', '_')}", __package__).main.command
        purposes[bare] = (command.help or "").split("\n")[0]
    width = max(map(len, [*tools, *FORMS]))
    for bare, purpose in purposes.items():
        yield f"{bare:<{width}}  {purpose}".encode()
    for name, form in FORMS.items():
        if name not in tools and form.tool.removeprefix("tr-") in tools:
            yield f"{name:<{width}}  {' '.join([form.tool, *form.words])}".encode()
