"""The words that a person typed, as clauses that say what must, may and must not be there.

Nothing here is an error of the person: what does not read as the query language is searched as plain words, and
`Query.reading` says so (see total-recall-query(7)).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from . import analysis
from .record import CLASSES, ROLES
from .stores._jsonl import scrubbed

MUST, SHOULD, MUST_NOT = "must", "should", "must not"
_DEEPEST = 20  # brackets in brackets
_MOST_WORDS = 64  # of a query; of a longer one the longest words are searched

# field -> the class whose text is meant, or None for a field that is compared as a whole
FIELDS = {
    "thinking": "reasoning",
    "title": "title",
    "role": None,
    "class": None,
    "tool": None,
    "session": None,
}
_VALUES = {"role": ROLES, "class": (*CLASSES, "title")}


class Empty(ValueError):
    """A query without a single character to look for."""


class BadQuery(ValueError):
    """A query that --strict refuses."""


class Word(NamedTuple):
    """What is looked for as one thing: a word, an identifier, a phrase, two characters of a word in CJK.

    `whole` are its terms with identifiers whole, `pieces` with identifiers in pieces; both have one member for a
    plain word. `within` is the class whose text alone counts.
    """

    text: str
    whole: tuple[str, ...]
    pieces: tuple[str, ...]
    phrase: bool = False
    within: str | None = None


class Is(NamedTuple):
    """A field that must have a value, compared as a whole."""

    field: str
    value: str


class Group(NamedTuple):
    """Clauses: each an occurrence (MUST, SHOULD, MUST_NOT) and what occurs."""

    clauses: tuple[tuple[str, Word | Is | Group], ...]


class Query(NamedTuple):
    """What was understood. `problem` says why the query was read as plain words; `literal` that it has no words."""

    given: str
    root: Group
    problem: str | None = None
    dropped: int = 0
    literal: bool = False

    def words(self) -> list[Word]:
        """The distinct words that may or must occur, in the order of the query."""
        return list(dict.fromkeys(_wanted(self.root)))

    def reading(self) -> str:
        """The query as it was understood, in the query language."""
        if self.literal:
            return f"literal {self.given.strip()!r} (it has no words)"
        text = _shown(self.root)
        if self.problem:
            text += f" (as plain words: {self.problem})"
        if self.dropped:
            text += f" ({self.dropped} more words not searched)"
        return text


def _wanted(group: Group) -> Iterator[Word]:
    for occurrence, node in group.clauses:
        if occurrence == MUST_NOT:
            continue
        if isinstance(node, Group):
            yield from _wanted(node)
        elif isinstance(node, Word):
            yield node


def _shown(group: Group) -> str:
    signs = {MUST: "+", SHOULD: "", MUST_NOT: "-"}
    return " ".join(signs[occurrence] + _shown_node(node) for occurrence, node in group.clauses)


def _shown_node(node: Word | Is | Group) -> str:
    if isinstance(node, Group):
        return f"({_shown(node)})"
    if isinstance(node, Is):
        return f"{node.field}:{node.value}"
    field = next((name for name, kind in FIELDS.items() if kind and kind == node.within), None)
    text = f'"{" ".join(node.whole)}"' if node.phrase or len(node.whole) > 1 else node.whole[0]
    return f"{field}:{text}" if field else text


# -- reading -----------------------------------------------------------------------------------------------------

_LEXEME = re.compile(
    r"""\s*(?:
        (?P<sign>[+-](?=[^\s+-]))?
        (?:(?P<field>[a-z]+):(?=[^\s:/]))?
        (?:"(?P<phrase>[^"]*)"(?=[\s)]|$) | (?P<open>\() | (?P<word>[^\s"()]+(?=[\s)]|$)))
        | (?P<close>\)) )""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"(?!-)[^\s+!(){}\[\]^\"~*?:\\<>=]+$")


class _NotAQuery(Exception):
    pass


def parse(text: str, *, strict: bool = False, stop_words: bool = True) -> Query:
    """What the person's words ask for.

    With `stop_words` the words that say nothing are left out. Raises Empty for a blank query and, with `strict`,
    BadQuery for one that does not parse.
    """
    text = scrubbed(text)
    if not text.strip():
        raise Empty("the query is empty - name at least one word to look for")
    problem = None
    try:
        reader = _Reader(text, strict)
        root = reader.group(closing=False)
    except _NotAQuery as error:
        if strict:
            raise BadQuery(f"{error} - quote it, or leave out --strict to search for the words as they are") from None
        problem = str(error)
        root = Group(tuple((SHOULD, word) for chunk in text.split() for word in _words(chunk)))
    if not any(True for _ in _wanted(root)) and not _only_fields(root):
        plain = Group(tuple((SHOULD, word) for chunk in text.split() for word in _words(chunk)))
        if not plain.clauses:
            return Query(text, root, literal=True)
        problem, root = problem or "nothing is left to look for", plain
    root = _without_stop_words(root) if stop_words else root
    root, dropped = _at_most(root)
    return Query(text, root, problem, dropped)


def _only_fields(group: Group) -> bool:
    return any(occurrence != MUST_NOT and isinstance(node, Is) for occurrence, node in group.clauses)


class _Reader:
    """One pass over the query from left to right."""

    def __init__(self, text: str, strict: bool) -> None:
        self.text = text.rstrip()
        self.strict = strict
        self.position = 0
        self.depth = 0

    def group(self, *, closing: bool) -> Group:
        """Clauses up to the end, or to the closing bracket. AND binds its neighbours, OR and NOT as usual."""
        clauses: list[tuple[str, Word | Is | Group]] = []
        joined = negated = False
        while self.position < len(self.text):
            found = _LEXEME.match(self.text, self.position)
            if not found:
                raise _NotAQuery("a quote or bracket has no partner")
            self.position = found.end()
            if found["close"]:
                if not closing:
                    raise _NotAQuery("a bracket has no partner")
                break
            if found["word"] in ("AND", "OR", "NOT") and not found["sign"] and not found["field"]:
                joined, negated = self._operator(found["word"], clauses, joined, negated)
                continue
            nodes = self._nodes(found)
            if joined and clauses and clauses[-1][0] == SHOULD:
                clauses[-1] = (MUST, clauses[-1][1])
            occurrence = MUST if joined or found["sign"] == "+" else SHOULD
            if negated or found["sign"] == "-":
                occurrence = MUST_NOT
            if occurrence != SHOULD and len(nodes) > 1:
                nodes = [Group(tuple((MUST, node) for node in nodes))]
            clauses.extend(
                (MUST if occurrence == SHOULD and isinstance(node, Is) else occurrence, node) for node in nodes
            )
            joined = negated = False
        else:
            if closing:
                raise _NotAQuery("a bracket has no partner")
        if joined or negated:
            raise _NotAQuery("an operator has nothing to work on")
        if clauses and all(occurrence == MUST_NOT for occurrence, _ in clauses):
            raise _NotAQuery("it only says what must not be there")
        return Group(tuple(clauses))

    @staticmethod
    def _operator(name: str, clauses: list, joined: bool, negated: bool) -> tuple[bool, bool]:
        if name == "NOT" and not negated:
            return joined, True
        if joined or negated or not clauses:
            raise _NotAQuery("an operator has nothing to work on")
        return name == "AND", False

    def _nodes(self, found: re.Match[str]) -> list[Word | Is | Group]:
        field = found["field"]
        known = field in FIELDS
        if self.strict and field and not known:
            raise _NotAQuery(f"there is no field {field!r}")
        if found["open"]:
            if field:
                raise _NotAQuery("a field stands before a bracket")
            self.depth += 1
            if self.depth > _DEEPEST:
                raise _NotAQuery("too many brackets stand in brackets")
            group = self.group(closing=True)
            self.depth -= 1
            return [group] if group.clauses else []
        text = found["phrase"] if found["phrase"] is not None else found["word"]
        if known and FIELDS[field] is None:
            value = text.strip()
            if value and value in _VALUES.get(field, (value,)):
                return [Is(field, value)]
            known = False
        if found["phrase"] is not None:
            words = _phrase(text)
        else:
            if self.strict and not _PLAIN.match(text):
                raise _NotAQuery(f"{text!r} holds a character of the query language")
            words = _words(text)
        if known:
            return [word._replace(within=FIELDS[field]) for word in words]
        if field:
            return [*_words(f"{field}:{text}")] if found["phrase"] is None else [*_words(field), *words]
        return [*words]


def _words(chunk: str) -> list[Word]:
    """What stands between two spaces: one thing to look for, or several where its script changes."""
    words = []
    for part, spaceless in analysis.parts_of(chunk):
        whole = analysis.terms(part)
        if not whole:
            continue
        if spaceless and len(whole) > 2:
            words += [Word("".join(pair), pair, pair) for pair in pairwise(whole)]
        else:
            words.append(Word(part, tuple(whole), tuple(analysis.split_terms(part))))
    return words


def _phrase(text: str) -> list[Word]:
    whole = analysis.terms(text)
    return [Word(text, tuple(whole), tuple(analysis.split_terms(text)), phrase=True)] if whole else []


def _without_stop_words(root: Group) -> Group:
    """The clauses without the optional words that say nothing, unless nothing else is left."""

    def idle(occurrence: str, node: Word | Is | Group) -> bool:
        return (
            occurrence == SHOULD
            and isinstance(node, Word)
            and not node.phrase
            and all(term in analysis.STOP_WORDS for term in node.whole)
        )

    kept = tuple(clause for clause in root.clauses if not idle(*clause))
    return Group(kept) if any(occurrence != MUST_NOT for occurrence, _ in kept) else root


def _at_most(root: Group) -> tuple[Group, int]:
    """At most so many optional words, the longest; a pasted page is not a query of a thousand words."""
    optional = list(dict.fromkeys(node for occurrence, node in root.clauses if occurrence == SHOULD))
    if len(optional) <= _MOST_WORDS:
        return Group(tuple(dict.fromkeys(root.clauses))), 0
    ranked = sorted(optional, key=lambda node: -len(node.text) if isinstance(node, Word) else -_MOST_WORDS)
    kept = set(ranked[:_MOST_WORDS])
    clauses = tuple(clause for clause in dict.fromkeys(root.clauses) if clause[0] != SHOULD or clause[1] in kept)
    return Group(clauses), len(optional) - len(kept)
