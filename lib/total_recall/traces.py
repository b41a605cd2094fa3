"""What a literal leaves among the words of an index, by which sessions are ruled out of a scan without being read.

Sound for a text whose words are all in the index: wherever such a text holds the literal, it has each of the literal's
traces. A session with another one (see `analysis.is_opaque`) is never ruled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import tantivy

from . import analysis
from .reading import Reader

_SHORTEST, _LONGEST = 3, analysis.LONGEST // 2  # letters; of those that are looked for each takes two bytes at most
_MOST = 8  # traces that are asked for
_FEW = 32  # sessions that are sooner read than ruled out by the words that begin somewhere
# The letters that come from one other letter at most, their capital, and that no word of the engine ends at.
_LETTERS = r"0-9a-z\u00e0-\u00f6\u00f8-\u00ff\u03b1-\u03c1\u03c4-\u03c9\u0430-\u045f"
_WORD = re.compile(rf"[{_LETTERS}]+|[{analysis.SPACELESS}]")
# What may stand before a word where arguments are written as JSON: the letters of an escaped character, cut anywhere.
_ESCAPE = re.compile("^(?:u?0{0,2}[01]?[0-9a-f]|[bfnrt])")
_CONSTANTS = "true false null"  # in arguments they are no words of the index


class Trace(NamedTuple):
    """Letters that stand in one word of a text; `begins` and `ends` where the word begins and ends with them."""

    letters: str
    begins: bool = False
    ends: bool = False

    def query(self, schema: tantivy.Schema) -> tantivy.Query:
        """The texts with such a word."""
        fields = [self._in(schema, "text"), self._in(schema, "rest")]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, field) for field in fields])

    def _in(self, schema: tantivy.Schema, field: str) -> tantivy.Query:
        if self.begins and self.ends:
            return tantivy.Query.term_query(schema, field, self.letters)
        pattern = f"{'' if self.begins else '.*'}{self.letters}{'' if self.ends else '.*'}"
        return tantivy.Query.regex_query(schema, field, pattern)


def traces(literal: str) -> list[Trace]:
    """What a text must have for the literal to stand in it, in any case; those that are cheap to look for first."""
    literal = literal.lower()
    found = [trace for word in _WORD.finditer(literal) if (trace := _trace(literal, *word.span()))]
    found.sort(key=lambda trace: (not trace.begins, -len(trace.letters)))
    return list(dict.fromkeys(found))


def _trace(literal: str, start: int, end: int) -> Trace | None:
    letters = literal[start:end]
    if letters in _CONSTANTS or not letters[0].isalnum():
        return None
    if analysis.spaceless(letters):
        begins = ends = True  # each such character is a word of its own
    else:
        before, after = literal[:start][-1:], literal[end:][:1]
        if before in ("", "\\"):
            letters = _ESCAPE.sub("", letters)
        begins = _bounds(before) and before != "\\"
        ends = _bounds(after) and len(letters) <= _LONGEST
        letters = letters[:_LONGEST]
        if len(letters) < _SHORTEST:
            return None
    terms = analysis.terms(letters)
    return Trace(terms[0], begins, ends) if len(terms) == 1 else None


def _bounds(character: str) -> bool:
    """Whether a character of a literal certainly stands outside a word."""
    return character.isascii() and bool(character) and not character.isalnum()


def holding(index: Reader, wanted: Sequence[Trace]) -> frozenset[int] | None:
    """The numbers of the indexed sessions in which a literal may stand; None when its traces do not tell."""
    usable = [trace for trace in wanted if not _is_key(index, trace)]
    bounded = [trace for trace in usable if trace.begins][:_MOST]
    open_ones = [trace for trace in usable if not trace.begins][:1]
    if not usable:
        return None
    found = _sessions(index, bounded or open_ones)
    if bounded and open_ones and len(found) > _FEW:
        found &= _sessions(index, open_ones)
    return found | {number for number, known in index.sessions().items() if known.opaque}


def _is_key(index: Reader, trace: Trace) -> bool:
    """Whether the letters may stand in the name of an argument: these are not among the words."""
    query = tantivy.Query.regex_query(index.schema, "keys", f".*{trace.letters}.*")
    return index.count(query) > 0


def _sessions(index: Reader, wanted: Iterable[Trace]) -> frozenset[int]:
    clauses = [(tantivy.Occur.Must, tantivy.Query.const_score_query(t.query(index.schema), 0.0)) for t in wanted]
    return index.sessions_of(tantivy.Query.boolean_query(clauses))
