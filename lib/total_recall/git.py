"""Commits, pushes and tags: what git was told to do by a shell call, and did."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .calls import Call
from .record import one_line
from .shell import Command, commands, quoted
from .stores.tools import commands_of

_WIDTH = 200

# git's own words on what it did and what it refused to do. They are needed where the exit status does not tell:
# `git commit ... || true`, and a call that failed after its commit was made.
_COMMITTED = re.compile(r"^\[[^\[\]\n]+ [0-9a-f]{4,64}\] (.*)$", re.MULTILINE)
_PUSHED = re.compile(r"^ [ *+=-] \S.* -> (\S+)", re.MULTILINE)
_PUSHED_TO = re.compile(r"^To (\S+)$", re.MULTILINE)
_NOTHING_COMMITTED = re.compile(
    r"^(?:nothing to commit|nothing added to commit|no changes added to commit)", re.MULTILINE
)
_NOT_PUSHED = re.compile(r"^ ! \[(?:remote )?rejected\]|^error: failed to push", re.MULTILINE)
_FATAL = re.compile(r"^fatal: ", re.MULTILINE)
_EXPANSION = re.compile(r"[$`]")


class Event(NamedTuple):
    type: str  # GitCommit, GitPush or GitTag
    summary: str  # the commit's subject, the tag, or the remote and what was pushed


class _Told(NamedTuple):
    """What one git command asked for. `name` is the subject, tag or target, or None where the command does not say."""

    type: str
    name: str | None
    command: Command
    place: int  # of the command among those of the call


def events(call: Call) -> list[Event]:
    """The git events of a shell call, in the order of its commands; none while there is no result.

    A call that failed gives none either, but for what git is seen to have done before: it reported the commit, or
    it refused a later command that ran only because of this one (`git commit ... && git tag taken`).
    """
    result = call.result
    if result is None:
        return []
    texts = [text for text in commands_of(call.record["harness"], call.name, call.arguments) if "git" in text]
    ran = [command for text in texts for command in commands(text)]
    told = [found for place, command in enumerate(ran) if (found := _told(command, place))]
    if not told:
        return []
    output = result["content"]
    reports = _COMMITTED.findall(output)
    refused = [_is_refused(one, ran, output) for one in told]
    if call.succeeded:
        done = [one for one, no in zip(told, refused, strict=True) if not no]
    else:
        done = [one for one in told if _is_shown(one, told, refused, ran, reports)]
    commits = [one for one in done if one.type == "GitCommit"]
    subjects = iter(reports if len(reports) == len(commits) else [])
    return [Event(one.type, _summary(one, subjects, output)) for one in done]


def _summary(one: _Told, subjects: Iterator[str], output: str) -> str:
    name = one.name
    if one.type == "GitCommit":
        reported = next(subjects, None)
        if name is None or _EXPANSION.search(name):
            name = reported or name
    elif one.type == "GitPush" and not name:
        name = " ".join((*_PUSHED_TO.findall(output)[:1], *_PUSHED.findall(output)))
    return one_line(name or quoted(one.command), _WIDTH)


def _is_refused(one: _Told, ran: list[Command], output: str) -> bool:
    """Whether git says that it did not do this, although the call as a whole may have succeeded."""
    gits = [command for command in ran if _is_git(command)]
    if len(gits) == 1 and _FATAL.search(output):
        return True
    if one.type == "GitTag":
        return f"fatal: tag '{one.name}' already exists" in output
    if one.type == "GitPush":
        return _NOT_PUSHED.search(output) is not None
    # `git status` says the same after a commit as a commit that has nothing to do.
    if _COMMITTED.search(output) or any("status" in command for command in gits):
        return False
    return _NOTHING_COMMITTED.search(output) is not None


def _is_shown(one: _Told, told: list[_Told], refused: list[bool], ran: list[Command], reports: list[str]) -> bool:
    """Whether the output of a failed call shows that this was done."""
    if one.type == "GitCommit" and one.name is not None and one.name in reports:
        return True
    later = (other.place for other, no in zip(told, refused, strict=True) if no and other.place > one.place)
    return any(all(command.chained for command in ran[one.place + 1 : place + 1]) for place in later)


# -- git's command line ----------------------------------------------------------------------------------------


class _Options(NamedTuple):
    """How a command's options are written: which take a value, which end in one, which mean that nothing is done."""

    short: str  # take a value
    ending: str  # may be followed by a value, in the same word only
    long: frozenset[str]  # take a value
    idle: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GLOBAL = _words("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source")
_COMMIT = _Options(
    "CFcmt",
    "Su",
    _words("message file author date cleanup fixup squash reuse-message reedit-message template trailer"),
    _words("dry-run short porcelain long help h"),
)
_PUSH = _Options("o", "", _words("push-option receive-pack exec repo"), _words("dry-run n help h"))
_TAG = _Options(
    "Fmu",
    "n",
    _words("message file local-user cleanup sort format trailer"),
    _words("list l delete d verify v n contains no-contains merged no-merged points-at column help h"),
)


def _is_git(command: Command) -> bool:
    return command[0].rsplit("/", 1)[-1] in ("git", "git.exe")


def _told(command: Command, place: int) -> _Told | None:
    """What a command tells git to record; None for anything else, and for what only looks or tries."""
    if not _is_git(command):
        return None
    at = 1
    while at < len(command) and command[at].startswith("-"):
        if command[at] in ("--help", "-h", "--version", "-v"):
            return None
        at += 2 if command[at] in _GLOBAL else 1
    if at >= len(command) or command[at] not in _COMMANDS:
        return None
    type, options, name_of = _COMMANDS[command[at]]
    given, operands = _parsed(command[at + 1 :], options)
    if any(name in options.idle for name, _ in given) or (type == "GitTag" and not operands):
        return None
    return _Told(type, name_of(given, operands, command.stdin), command, place)


Given = list[tuple[str, str]]


def _parsed(words: list[str], options: _Options) -> tuple[Given, list[str]]:
    """The options given, without dashes and with their values, and the operands."""
    given: Given = []
    operands: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            operands += waiting
        elif word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            given.append((name, next(waiting, "") if name in options.long and not equals else value))
        elif word.startswith("-") and len(word) > 1:
            for number, letter in enumerate(word[1:], 2):
                if letter in options.short:
                    given.append((letter, word[number:] or next(waiting, "")))
                    break
                given.append((letter, ""))
                if letter in options.ending:
                    break
        else:
            operands.append(word)
    return given, operands


def _subject(given: Given, operands: list[str], stdin: str | None) -> str | None:
    for name, value in given:
        text: str | None = value
        if name in ("fixup", "squash"):
            text = f"{name}! {value}"
        elif name in ("F", "file"):
            text = stdin if value == "-" else None
        elif name not in ("m", "message"):
            continue
        if text and text.strip():
            return one_line(text, _WIDTH)
    return None


def _pushed(given: Given, operands: list[str], stdin: str | None) -> str | None:
    flags = [f"--{name}" for name, _ in given if name in ("tags", "all", "mirror", "delete")]
    return " ".join(operands + flags) or None


def _tag(given: Given, operands: list[str], stdin: str | None) -> str | None:
    return operands[0]


_COMMANDS: dict[str, tuple[str, _Options, Callable[[Given, list[str], str | None], str | None]]] = {
    "commit": ("GitCommit", _COMMIT, _subject),
    "push": ("GitPush", _PUSH, _pushed),
    "tag": ("GitTag", _TAG, _tag),
}
