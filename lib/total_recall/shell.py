"""What a shell text would run: its simple commands, those that wrappers and inner shells run included."""

from __future__ import annotations

from collections.abc import Iterator

from .shell_syntax import ASSIGNMENT, DEPTH, Parser, Simple, printed

# Commands that run the command in their arguments: their short options that take a value, and how many operands
# stand before that command.
_WRAPPERS = {
    "builtin": ("", 0),
    "busybox": ("", 0),
    "command": ("", 0),
    "doas": ("uC", 0),
    "env": ("uCS", 0),
    "exec": ("a", 0),
    "ionice": ("cnpPu", 0),
    "nice": ("n", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "stdbuf": ("ioe", 0),
    "sudo": ("CDRTUghprtu", 0),
    "time": ("fo", 0),
    "timeout": ("ks", 1),
    "xargs": ("EILPadns", 0),
}
_LONG_WITH_VALUE = frozenset(
    (
        *("--adjustment", "--arg-file", "--chdir", "--delimiter", "--format", "--group", "--host", "--kill-after"),
        *("--max-args", "--max-chars", "--max-lines", "--max-procs", "--output", "--prompt", "--signal", "--unset"),
        "--user",
    )
)
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))


class Command(list[str]):
    """One simple command: its words, without redirections and leading assignments.

    `stdin` is what it is fed, where the text says so (here-document, here-string, `echo` before the pipe), else None.
    `chained` says that it ran only because the command before it succeeded (`&&`).
    """

    def __init__(self, words: list[str], stdin: str | None = None, chained: bool = False) -> None:
        super().__init__(words)
        self.stdin = stdin
        self.chained = chained


def commands(text: str) -> Iterator[Command]:
    """The simple commands that the shell would run for `text`, in the order of writing; those inside `$(...)` first.

    Wrappers are seen through (`sudo`, `env`, `time`, `xargs`, `bash -c`, ...). A branch not taken counts as run, a
    function where it is first called. Takes any text, in linear time; an unclosed quote ends with the text.
    """
    return _commands(text, 0)


def quoted(words: list[str]) -> str:
    """The words as one shell text that gives them back."""
    import shlex

    return shlex.join(words)


def _commands(text: str, depth: int) -> Iterator[Command]:
    parser = Parser(text, depth)
    parser.read()
    yield from _resolved(parser.found, parser.functions, depth)


def _resolved(found: list[Simple], functions: dict[str, list[Simple]], depth: int) -> Iterator[Command]:
    for simple in found:
        if simple.stdin is None and simple.source is not None:
            simple.stdin = printed(simple.source)
        words = _unwrapped(simple.words)
        if depth >= DEPTH:
            yield Command(words, simple.stdin, simple.chained)
        elif (body := functions.pop(words[0], None)) is not None:
            yield from _resolved(body, functions, depth + 1)
        elif (script := _script(words, simple.stdin)) is not None:
            yield from _commands(script, depth + 1)
        else:
            yield Command(words, simple.stdin, simple.chained)


def _unwrapped(words: list[str]) -> list[str]:
    """The command that a chain of wrappers runs; the words themselves when there is none."""
    at = 0
    while (program := words[at].rsplit("/", 1)[-1]) in _WRAPPERS:
        with_value, operands = _WRAPPERS[program]
        if program == "command" and words[at + 1 : at + 2] in (["-v"], ["-V"]):
            break
        inner = _after_options(words, at + 1, with_value)
        while inner < len(words) and ASSIGNMENT.match(words[inner]) and program in ("env", "sudo", "doas"):
            inner += 1
        inner += operands
        if inner >= len(words):
            break
        at = inner
    return words[at:] if at else words


def _after_options(words: list[str], at: int, with_value: str) -> int:
    """Where the operands begin; `with_value` are the short options that take one."""
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            break
        if len(word) < 2 or word[0] != "-":
            return at - 1
        if word.startswith("--"):
            at += word in _LONG_WITH_VALUE
            continue
        for place, letter in enumerate(word[1:], 2):
            if letter in with_value:
                at += place == len(word)
                break
    return at


def _script(words: list[str], stdin: str | None) -> str | None:
    """The shell text that a command runs in its turn: `bash -c TEXT`, `bash <<EOF`, `eval WORDS`; else None."""
    program = words[0].rsplit("/", 1)[-1]
    if program == "eval":
        return " ".join(words[1:])
    if program not in _SHELLS:
        return None
    at, in_argument = 1, False
    while at < len(words) and words[at][:1] in ("-", "+") and len(words[at]) > 1:
        option = words[at]
        at += 1
        if option.startswith("--"):
            at += option in ("--rcfile", "--init-file")
        else:
            in_argument = in_argument or "c" in option
            at += "o" in option.lower()
    if at < len(words):
        return words[at] if in_argument else None
    return stdin
