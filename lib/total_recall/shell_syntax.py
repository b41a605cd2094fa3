"""Reading a shell text: its simple commands, split by the shell's own word rules, before anything is made of them.

Follows chapter 2 of the POSIX shell language (quoting, tokens, redirection, compound commands) and what bash adds
to it. Nothing is expanded: `$x` stays `$x`. The one exception is a text that stands in the command itself, a
here-document or what `echo` and `printf` are told to print.
"""

from __future__ import annotations

import re
from typing import NamedTuple

DEPTH = 20  # what is nested deeper than this is not looked into

_BLANK = re.compile(r"(?:[ \t\r]|\\\r?\n)+")
_CONTINUATION = re.compile(r"\\\r?\n")
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r"\n|&&|\|\||;;&|;;|;&|\|&|(?!&>)[;&|()]")
_REDIRECT = re.compile(r"(?:[0-9]+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||<(?!\()|>(?!\())|(&>>?)")
_PLAIN = re.compile(r"[^\s|&;()<>'\"\\$`]+|[^\S \t\r\n]+")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=", re.ASCII)
_EMPTY_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_BODY = re.compile(r"\s*([{(])")
_TIME_OPTION = re.compile(r"[ \t]+-p(?=\s)")
_SINGLE = re.compile(r"'([^']*)('?)")
_ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)('?)", re.DOTALL)
_ANSI_C_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL)
_ANSI_C_CHARACTER = dict(zip("abeEfnrtv", "\a\b\033\033\f\n\r\t\v", strict=True))
_BACKQUOTED = re.compile(r"`([^`\\]*(?:\\.[^`\\]*)*)`?", re.DOTALL)
_ARITHMETIC_LENGTH = 1000  # a longer one is read as commands; keeps the search for its end short
_PARENTHESIS = re.compile(r"[()]")
# What may stand unquoted inside double quotes, and inside a here-document; and what a backslash there protects.
_IN_QUOTES = (re.compile(r'[^"\\$`]+'), '"\\$`\n')
_IN_DOCUMENT = (re.compile(r"[^\\$`]+"), "\\$`\n")

_PASSED_OVER = frozenset(("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "}", "!", "coproc"))
_CASE_ENDS = frozenset((";;", ";&", ";;&", "esac"))


class _Word(NamedTuple):
    text: str
    bare: bool  # written without any quoting or expansion
    assignment: bool


class _Redirect(NamedTuple):
    operator: str


class Simple:
    """A simple command while it is read.

    `source` is the command before the pipe; `chained` says that it runs only if the one before it succeeded;
    `dropped` that it is no command at all.
    """

    __slots__ = ("chained", "dropped", "source", "stdin", "words")

    def __init__(self, source: Simple | None = None, chained: bool = False) -> None:
        self.words: list[str] = []
        self.stdin: str | None = None
        self.source = source
        self.chained = chained
        self.dropped = False


class _Document(NamedTuple):
    """A here-document whose body has not been reached yet."""

    command: Simple
    delimiter: str
    tabs_stripped: bool
    literal: bool


class Parser:
    """Reads a text once, from left to right; `found` are its simple commands, `functions` the bodies of those defined.

    A function's commands are not among `found`: they run when it is called.
    """

    def __init__(self, text: str, depth: int, found: list[Simple] | None = None) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.found: list[Simple] = [] if found is None else found
        self.functions: dict[str, list[Simple]] = {}
        self._documents: list[_Document] = []

    # -- commands ----------------------------------------------------------------------------------------------

    def read(self, closers: frozenset[str] | tuple[str, ...] = ()) -> str | None:
        """Read commands up to one of `closers`, and past it; returns it, or None at the end of the text."""
        command = Simple()
        while (item := self._token()) is not None:
            if isinstance(item, _Redirect):
                self._redirect(item.operator, command)
            elif isinstance(item, _Word):
                if not command.words and not command.dropped and item.bare:
                    if item.text in closers:
                        return item.text
                    if self._reserved(item.text, command):
                        continue
                if command.words or not item.assignment:
                    command.words.append(item.text)
            elif item in closers:
                self._finish(command)
                return item
            elif item == "(":
                self._parenthesis(command)
            else:
                piped = item in ("|", "|&") and command.words and not command.dropped
                self._finish(command)
                chained = item == "&&" or (item == "\n" and command.chained and not command.words)
                command = Simple(command if piped else None, chained)
        self._finish(command)
        return None

    def _finish(self, command: Simple) -> None:
        if command.words and not command.dropped:
            self.found.append(command)

    def _nested(self, *closers: str) -> None:
        """Read the commands of a group or a substitution, up to its end."""
        self.depth += 1
        self.read(closers)
        self.depth -= 1

    def _reserved(self, word: str, command: Simple) -> bool:
        """Deal with a reserved word where a command may begin; False if it is none."""
        if word in _PASSED_OVER:
            return True
        if word == "time":
            if match := _TIME_OPTION.match(self.text, self.at):
                self.at = match.end()
        elif word == "{":
            if self.depth < DEPTH:
                self._nested("}")
        elif word in ("for", "select"):
            command.dropped = True
        elif word == "case":
            self._case()
        elif word == "[[":
            command.dropped = True
            self._until("]]")
        elif word == "function":
            if isinstance(name := self._token(), _Word):
                if match := _EMPTY_PARENTHESES.match(self.text, self.at):
                    self.at = match.end()
                self._function(name.text)
        else:
            return False
        return True

    def _until(self, word: str) -> _Word | None:
        """Pass over everything up to a bare word."""
        while (item := self._token()) is not None:
            if isinstance(item, _Word) and item.bare and item.text == word:
                return item
        return None

    def _case(self) -> None:
        if self._until("in") is None or self.depth >= DEPTH:
            return
        self.depth += 1
        end: str | None = ";;"
        while end not in (None, "esac"):
            item = self._token()
            while item is not None and item != ")":  # the pattern
                if isinstance(item, _Word) and item.bare and item.text == "esac":
                    item = None
                    break
                item = self._token()
            end = self.read(_CASE_ENDS) if item is not None else None
        self.depth -= 1

    def _parenthesis(self, command: Simple) -> None:
        """What an opening parenthesis begins: arithmetic, a subshell, a function; else it is passed over."""
        if self.depth >= DEPTH:
            return
        if self.text.startswith("(", self.at) and not command.words and self._arithmetic(self.at - 1):
            return
        if command.dropped:
            return
        if not command.words:
            self._nested(")")
        elif len(command.words) == 1 and (match := _EMPTY_PARENTHESES.match(self.text, self.at - 1)):
            self.at = match.end()
            self._function(command.words.pop())

    def _function(self, name: str) -> None:
        """Keep the commands of a function's body; a body without braces is left to count as run."""
        if (match := _BODY.match(self.text, self.at)) and self.depth < DEPTH:
            self.at = match.end()
            outer, self.found = self.found, []
            self._nested("}" if match[1] == "{" else ")")
            self.functions[name] = self.found
            self.found = outer

    def _arithmetic(self, start: int) -> bool:
        """Pass over `((...))` whose first parenthesis is at `start`; False, and nothing done, if it does not end so."""
        open_ones = 0
        for match in _PARENTHESIS.finditer(self.text, start, start + _ARITHMETIC_LENGTH):
            open_ones += 1 if match[0] == "(" else -1
            if open_ones == 0:
                if not self.text.endswith("))", start, match.end()):
                    return False
                self.at = match.end()
                return True
        return False

    # -- redirections ------------------------------------------------------------------------------------------

    def _redirect(self, operator: str, command: Simple) -> None:
        self._skip_blanks()
        target = self._word()
        if operator == "<<<":
            command.stdin = target.text + "\n"
        elif operator in ("<<", "<<-") and (target.text or not target.bare):
            self._documents.append(_Document(command, target.text, operator == "<<-", not target.bare))

    def _read_documents(self) -> None:
        """Read the bodies of the here-documents that begin on this line."""
        for document in self._documents:
            lines = []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                line = line.lstrip("\t") if document.tabs_stripped else line
                if line.rstrip("\r") == document.delimiter:
                    self.at = end + 1
                    break
                # bash lets a substitution end on the delimiter's own line
                if line.startswith(document.delimiter + ")") and document.delimiter:
                    self.at = end - len(line) + len(document.delimiter)
                    break
                lines.append(line + "\n")
                self.at = end + 1
            body = "".join(lines)
            if not document.literal and self.depth < DEPTH:
                body = Parser(body, self.depth + 1, self.found)._expanded(*_IN_DOCUMENT)
            document.command.stdin = body
        self._documents = []

    # -- tokens and words --------------------------------------------------------------------------------------

    def _skip_blanks(self) -> None:
        if match := _BLANK.match(self.text, self.at):
            self.at = match.end()

    def _token(self) -> _Word | _Redirect | str | None:
        """The next word, redirection or operator; None at the end."""
        self._skip_blanks()
        if match := _COMMENT.match(self.text, self.at):
            self.at = match.end()
        if self.at >= len(self.text):
            return None
        if match := _OPERATOR.match(self.text, self.at):
            self.at = match.end()
            if match[0] == "\n":
                self._read_documents()
            return match[0]
        if match := _REDIRECT.match(self.text, self.at):
            self.at = match.end()
            return _Redirect(match[1] or match[2])
        return self._word()

    def _word(self) -> _Word:
        text, start = self.text, self.at
        pieces: list[str] = []
        bare = True
        while self.at < len(text):
            if match := _PLAIN.match(text, self.at):
                self.at = match.end()
                pieces.append(match[0])
                continue
            char = text[self.at]
            if char in " \t\r\n|&;)" or (char in "<>" and not text.startswith("(", self.at + 1)):
                break
            if char == "(":
                if not (bare and pieces and ASSIGNMENT.fullmatch(text, start, self.at)) or self.depth >= DEPTH:
                    break
                self.at += 1
                self._array()
                break
            bare = False
            pieces.append(self._part(char))
        return _Word("".join(pieces), bare, ASSIGNMENT.match(text, start, self.at) is not None)

    def _array(self) -> None:
        """Pass over the values of `name=(...)`."""
        self.depth += 1
        while self._token() not in (None, ")"):
            pass
        self.depth -= 1

    def _part(self, char: str) -> str:
        """The quoted or expanded part of a word that begins with `char`."""
        text = self.text
        if char == "\\":
            if match := _CONTINUATION.match(text, self.at):
                self.at = match.end()
                return ""
            start = self.at + 1
            self.at = min(start + 1, len(text))
            return text[start : self.at]
        if char == "'":
            match = _SINGLE.match(text, self.at)
        elif char == "$" and text.startswith("'", self.at + 1):
            match = _ANSI_C.match(text, self.at)
        else:
            if char == "$" and text.startswith('"', self.at + 1):
                self.at += 1
                char = '"'
            if char == '"':
                self.at += 1
                return self._expanded(*_IN_QUOTES)
            return self._expansion(char)
        assert match is not None
        self.at = match.end()
        return _unescaped(match[1]) if char == "$" else match[1]

    def _expanded(self, plain: re.Pattern[str], protected: str) -> str:
        """The text up to the closing double quote, or all of a here-document, with the commands in it found."""
        text = self.text
        pieces: list[str] = []
        while self.at < len(text):
            if match := plain.match(text, self.at):
                self.at = match.end()
                pieces.append(match[0])
                continue
            char = text[self.at]
            if char == '"':
                self.at += 1
                break
            if char == "\\":
                pair = text[self.at : self.at + 2]
                self.at += len(pair)
                if pair != "\\\n":
                    pieces.append(pair[1:] if pair[1:] in protected else pair)
            else:
                pieces.append(self._expansion(char))
        return "".join(pieces)

    def _expansion(self, char: str) -> str:
        """What stands for `$...`, `` `...` `` or `<(...)`: its source, or the text it is known to print."""
        text, start = self.text, self.at
        self.at += 1
        if char == "`":
            match = _BACKQUOTED.match(text, start)
            assert match is not None
            self.at = match.end()
            if self.depth < DEPTH:
                Parser(re.sub(r"\\([$`\\])", r"\1", match[1]), self.depth + 1, self.found).read()
        elif char in "<>" or text.startswith("(", self.at):
            self.at += 1
            if self.depth < DEPTH and not (text.startswith("$((", start) and self._arithmetic(start + 1)):
                before = len(self.found)
                self._nested(")")
                if char == "$" and len(inner := self.found[before:]) == 1:
                    output = printed(inner[0])
                    if output is not None:
                        return output.rstrip("\n")
        elif text.startswith("{", self.at):
            self._braced()
        return text[start : self.at]

    def _braced(self) -> None:
        """Pass over `${...}`, finding the commands in it."""
        self.at += 1
        self.depth += 1
        while self.at < len(self.text) and self.text[self.at] != "}":
            char = self.text[self.at]
            if char in "\\'\"`" or (char == "$" and self.depth < DEPTH):
                self._part(char)
            else:
                self.at += 1
        self.depth -= 1
        self.at = min(self.at + 1, len(self.text))


def printed(simple: Simple) -> str | None:
    """What a command prints, where its words say it; else None."""
    program, *words = simple.words
    if program == "cat":
        return simple.stdin if not words or words == ["-"] else None
    if program == "echo":
        while words and words[0] in ("-n", "-e", "-E", "-ne", "-en"):
            words = words[1:]
        return " ".join(words) + "\n"
    if program == "printf":
        if len(words) == 2 and words[0] in ("%s", "%s\\n", "%b", "%b\\n"):
            return words[1] if words[0].startswith("%s") else _unescaped(words[1])
        if len(words) == 1 and "%" not in words[0]:
            return _unescaped(words[0])
    return None


def _unescaped(text: str) -> str:
    """A text with the escapes of `$'...'` and `printf` replaced."""

    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            return chr(number) if number < 0xD800 or 0xDFFF < number < 0x110000 else "\ufffd"
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        if len(code) == 2:
            return chr(ord(code[1]) & 0x1F)
        return _ANSI_C_CHARACTER.get(code, code if code in "\\'\"?" else escape[0])

    return _ANSI_C_ESCAPE.sub(character, text)
