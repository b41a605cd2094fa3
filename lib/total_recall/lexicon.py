"""From the words of a query to the terms that the indexes hold: other forms, typos, identifiers in other spellings."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import tantivy

from . import analysis
from .index import Index
from .query import Word
from .ranking import Weights

_MOST_TYPOS = 8
_MOST_COMPARED = 5000
_SHORTEST_PART = 3


class Spelling(NamedTuple):
    """One way to write what is looked for: terms in a row, and what it counts against the word as given."""

    terms: tuple[str, ...]
    factor: float


class Atom:
    """One word of a query with every spelling that is looked for.

    `found` counts the texts with any of them, and `weight` is the inverse document frequency that follows, over all
    indexes together. `pieces` are what is looked for where an identifier stands nowhere as such.
    """

    def __init__(self, word: Word, spellings: list[Spelling], corrected: bool) -> None:
        self.word = word
        self.spellings = spellings
        self.corrected = corrected
        apart = len(word.pieces) > 1 and not word.phrase and not analysis.spaceless(word.text)
        self.pieces: tuple[str, ...] = word.pieces if apart else ()
        self.weight = 0.0
        self.found = 0

    def matches(self, index: Index) -> tantivy.Query:
        """Texts with any spelling."""
        queries = [_row(index, spelling.terms) for spelling in self.spellings]
        return self._within(index, _any(queries))

    def scored(self, index: Index, lexicon: Lexicon) -> tantivy.Query:
        """The same, scored alike whichever spelling it is and however common that is in this index."""
        queries = []
        for spelling in self.spellings:
            own = sum(lexicon.rarity(index, term) for term in spelling.terms)
            queries.append(_boosted(_row(index, spelling.terms), spelling.factor * self.weight, own))
        query = queries[0] if len(queries) == 1 else tantivy.Query.disjunction_max_query(queries)
        return self._within(index, query)

    def _within(self, index: Index, query: tantivy.Query) -> tantivy.Query:
        if self.word.within is None:
            return query
        kind = tantivy.Query.term_query(index.schema, "class", self.word.within)
        return tantivy.Query.boolean_query(
            [(tantivy.Occur.Must, query), (tantivy.Occur.Must, tantivy.Query.const_score_query(kind, 0.0))]
        )


def _row(index: Index, terms: tuple[str, ...]) -> tantivy.Query:
    if len(terms) == 1:
        return tantivy.Query.term_query(index.schema, "text", terms[0])
    return tantivy.Query.phrase_query(index.schema, "text", list(terms))


def _any(queries: list[tantivy.Query]) -> tantivy.Query:
    if len(queries) == 1:
        return queries[0]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _boosted(query: tantivy.Query, wanted: float, own: float) -> tantivy.Query:
    return tantivy.Query.boost_query(query, min(wanted / own, 100.0) if own else 1.0)


class Lexicon:
    """What the indexes know of words, taken together."""

    def __init__(self, indexes: Sequence[Index]) -> None:
        self.indexes = indexes
        self.total = sum(index.size for index in indexes)

    def frequency(self, term: str) -> int:
        """In how many texts a term stands."""
        return sum(index.frequency(term) for index in self.indexes)

    def known(self, term: str) -> bool:
        return any(index.frequency(term) for index in self.indexes)

    def rarity(self, index: Index, term: str) -> float:
        """The inverse document frequency that the engine gives a term in one index."""
        return _rarity(index.frequency(term), index.size)

    def atoms(self, words: Sequence[Word], weights: Weights) -> dict[Word, list[Atom]]:
        """The words with their spellings and weights; what stands nowhere in one piece is looked for in several."""
        joined = self.joined(words)
        atoms = {}
        for place, word in enumerate(words):
            runs = [run for run in joined if place in run]
            atom = self._atom(word, ["".join(words[p].whole[0] for p in run) for run in runs], weights)
            atoms[word] = [atom]
            if not atom.found and atom.pieces:
                pieces = [piece for piece in dict.fromkeys(atom.pieces) if piece not in analysis.STOP_WORDS]
                apart = [Word(piece, (piece,), (piece,), within=word.within) for piece in pieces]
                atoms[word] = [self._atom(piece, (), weights) for piece in apart] or [atom]
            # The words of an identifier are also looked for as that identifier.
            for run in runs:
                if run.start == place:
                    terms = tuple(words[p].whole[0] for p in run)
                    together = Word(" ".join(terms), terms, terms, within=word.within)
                    atoms[word].append(self.weighed(Atom(together, _as_written(together), False)))
        return atoms

    def _atom(self, word: Word, joined: Sequence[str], weights: Weights) -> Atom:
        spellings, corrected = self._spellings(word, weights)
        spellings += [Spelling((term,), 1.0) for term in joined]
        return self.weighed(Atom(word, spellings, corrected))

    def excluded(self, word: Word) -> Atom:
        """A word that must not occur: as it is written, nothing else."""
        return Atom(word, _as_written(word), False)

    def weighed(self, atom: Atom) -> Atom:
        """The atom with its weight, from in how many texts it really stands."""
        for index in self.indexes:
            atom.found += index.count(atom.matches(index))
        atom.weight = _rarity(atom.found, self.total)
        return atom

    def joined(self, words: Sequence[Word]) -> list[range]:
        """Runs of neighbours that the indexes know written as one word: `time out`, `fetch message page`."""
        plain = [len(word.whole) == 1 and not word.phrase and len(word.text) > 1 for word in words]
        runs = []
        for first in range(len(words)):
            for end in range(first + 2, min(first + 4, len(words)) + 1):
                if not all(plain[first:end]):
                    break
                term = "".join(word.whole[0] for word in words[first:end])
                if term.isalnum() and term.isascii() and self.known(term):
                    runs.append(range(first, end))
        return runs

    def _spellings(self, word: Word, weights: Weights) -> tuple[list[Spelling], bool]:
        spellings = _as_written(word)
        if word.phrase or analysis.spaceless(word.text):
            return spellings, False
        if len(word.pieces) == 1:
            return self._word_spellings(word.whole[0], spellings, weights)
        corrected = False
        pieces = list(word.pieces)
        for place, piece in enumerate(pieces):
            if weights.typos and not self.known(piece) and (better := self._corrections(piece)):
                pieces[place], corrected = better[0], True
        if corrected:
            spellings.append(Spelling(tuple(pieces), weights.typos))
        if weights.forms:
            others = [form for form in analysis.forms(pieces[-1]) if self.known(form)]
            spellings += [Spelling((*pieces[:-1], form), weights.forms) for form in others[:4]]
        return spellings, corrected

    def _word_spellings(self, term: str, spellings: list[Spelling], weights: Weights) -> tuple[list[Spelling], bool]:
        if weights.forms:
            spellings += [Spelling((form,), weights.forms) for form in analysis.forms(term) if self.known(form)]
        if digits := _letters_and_digits(term):
            spellings.append(Spelling(digits, 1.0))
        if any(self.known(spelling.terms[0]) for spelling in spellings if len(spelling.terms) == 1):
            return spellings, False
        if parts := self.parts(term):
            return [*spellings, Spelling(parts, 1.0)], False
        corrections = self._corrections(term) if weights.typos else []
        for correction in corrections:
            spellings.append(Spelling((correction,), weights.typos))
            if weights.forms:
                others = [form for form in analysis.forms(correction) if self.known(form)]
                spellings += [Spelling((form,), weights.typos * weights.forms) for form in others]
        return list(dict.fromkeys(spellings)), bool(corrections)

    def _corrections(self, term: str) -> list[str]:
        """Known words at one edit, the most frequent first; if there are none, known forms of such words."""
        others: tuple[str, ...] = analysis.misspelt(term)
        found = {other: count for other in others if (count := self.frequency(other))}
        if not found:
            forms = (form for other in others for form in analysis.forms(other))
            found = {form: count for form in forms if (count := self.frequency(form))}
        return sorted(found, key=lambda other: (-found[other], other))[:_MOST_TYPOS]

    def parts(self, term: str) -> tuple[str, ...]:
        """An unknown word as two or three known ones in a row: an identifier written without its seams."""
        if not (term.isalnum() and term.isascii() and len(term) >= 2 * _SHORTEST_PART):
            return ()
        best: tuple[int, tuple[str, ...]] = (0, ())
        for cut in range(_SHORTEST_PART, len(term) - _SHORTEST_PART + 1):
            left, right = term[:cut], term[cut:]
            if not self.known(left):
                continue
            options: list[tuple[str, ...]] = [(left, right)] if self.known(right) else []
            options += [
                (left, right[:second], right[second:])
                for second in range(_SHORTEST_PART, len(right) - _SHORTEST_PART + 1)
                if self.known(right[:second]) and self.known(right[second:])
            ]
            for parts in options:
                if count := self._in_a_row(parts):
                    best = max(best, (count, parts))
        return best[1]

    def _in_a_row(self, parts: tuple[str, ...]) -> int:
        return sum(index.count(_row(index, parts)) for index in self.indexes)

    def nearest(self, term: str) -> str | None:
        """The most frequent known word within two edits that begins with the same letter, for a suggestion."""
        if best := self._corrections(term):
            return best[0]
        near: list[tuple[int, str]] = []
        for index in self.indexes if len(term) >= 5 else ():
            for other, count in index.terms(term[0], _MOST_COMPARED):
                if abs(len(other) - len(term)) <= 2 and _distance(term, other) <= 2:
                    near.append((count, other))
        return max(near)[1] if near else None


def _as_written(word: Word) -> list[Spelling]:
    spellings = [Spelling(word.whole, 1.0)]
    if word.pieces != word.whole:
        spellings.append(Spelling(word.pieces, 1.0))
    joined = "".join(word.pieces)
    if len(word.pieces) > 1 and not word.phrase and joined.isascii() and len(joined) <= analysis.LONGEST:
        spellings.append(Spelling((joined,), 1.0))
    return list(dict.fromkeys(spellings))


def _letters_and_digits(term: str) -> tuple[str, ...]:
    """`utf`, `8` of utf8; nothing of what is no such pair."""
    letters = term.rstrip("0123456789")
    return (letters, term[len(letters) :]) if len(letters) > 1 and letters.isalpha() and letters != term else ()


def _rarity(count: int, total: int) -> float:
    return log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def _distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        previous, row[0] = row[0], place
        for column, letter_there in enumerate(other, 1):
            previous, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, previous + (letter != letter_there)),
            )
    return row[-1]
