"""Where in a text the words of a query stand, how near each other, and the piece of text that shows it best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import analysis
from .lexicon import Atom

_LONG = 8192  # characters of a text from which on it is looked at in windows
_AROUND = 200
_OCCURRENCES = 20


class Span(NamedTuple):
    """A match: characters of the text, which atom matched, and the terms it matched."""

    start: int
    end: int
    atom: int
    terms: str


class Matcher:
    """Finds the atoms of a query in texts."""

    def __init__(self, atoms: Sequence[Atom]) -> None:
        self._rows: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for number, atom in enumerate(atoms):
            rows = [spelling.terms for spelling in atom.spellings]
            for terms in dict.fromkeys(rows):
                self._rows.setdefault(terms[0], []).append((terms, number))

    def spans(self, text: str) -> list[Span]:
        """The matches in a composed text, in its order; of overlapping ones of an atom the longest.

        Of a long text only what stands round the first occurrences of each word is looked at.
        """
        found: dict[Span, None] = {}
        for start, end in self._windows(text):
            self._collect(text[start:end], start, found)
        spans = sorted(found, key=lambda span: (span.start, -span.end))
        kept: list[Span] = []
        ends: dict[int, int] = {}
        for span in spans:
            if span.end > ends.get(span.atom, 0):
                ends[span.atom] = span.end
                kept.append(span)
        return kept

    def _collect(self, text: str, offset: int, found: dict[Span, None]) -> None:
        whole, split = analysis.tokens(text)
        for tokens in (whole,) if whole is split else (whole, split):
            for place, token in enumerate(tokens):
                for terms, atom in self._rows.get(token.term, ()):
                    row = tokens[place : place + len(terms)]
                    if tuple(t.term for t in row) == terms:
                        found[Span(offset + token.start, offset + row[-1].end, atom, " ".join(terms))] = None

    def _windows(self, text: str) -> list[tuple[int, int]]:
        """The stretches of a text that have to be split into words, whole words each."""
        lowered = text.lower()
        if len(text) <= _LONG or len(lowered) != len(text):
            return [(0, len(text))]
        places = []
        for term in self._rows:
            place = lowered.find(term)
            for _ in range(_OCCURRENCES):
                if place < 0:
                    break
                places.append(place)
                place = lowered.find(term, place + _AROUND)
        if not places:  # with an accent, perhaps
            return [(0, len(text))]
        windows: list[tuple[int, int]] = []
        for place in sorted(places):
            start, end = max(0, place - _AROUND), min(len(text), place + 2 * _AROUND)
            while start and text[start - 1].isalnum():
                start -= 1
            while end < len(text) and text[end].isalnum():
                end += 1
            if windows and start <= windows[-1][1]:
                start = windows.pop()[0]
            windows.append((start, end))
        return windows


def nearness(spans: Sequence[Span], atoms: int) -> float:
    """How near each other the words stand: 1 for all of them side by side, 0 for one alone.

    Of the places in the text the best one counts, by how many of the words it joins and how tightly.
    """
    if atoms < 2:
        return 0.0
    best = 0.0
    counts: dict[int, int] = {}
    first = 0
    for last, span in enumerate(spans):
        counts[span.atom] = counts.get(span.atom, 0) + 1
        while counts[spans[first].atom] > 1 and first < last:
            counts[spans[first].atom] -= 1
            first += 1
        if len(counts) > 1:
            distinct = sum(1 for count in counts.values() if count)
            length = span.end - spans[first].start
            written = sum(s.end - s.start for s in spans[first : last + 1])
            best = max(best, (distinct - 1) / (atoms - 1) * min(1.0, (written + distinct) / (length + 1)))
    return best


def snippet(text: str, spans: Sequence[Span], weights: Sequence[float], width: int) -> str:
    """About `width` characters round the densest span of distinct words, on one line."""
    start = end = 0
    best = (-1.0, 0)
    first = 0
    for last, span in enumerate(spans):
        while span.end - spans[first].start > width and first < last:
            first += 1
        inside = spans[first : last + 1]
        worth = sum(weights[atom] for atom in {s.atom for s in inside}) + len(inside) * 1e-6
        if (worth, spans[first].start - span.end) > best:
            best = (worth, spans[first].start - span.end)
            start, end = spans[first].start, span.end
    margin = max(0, width - (end - start))
    left = max(0, start - margin // 2)
    right = min(len(text), left + width)
    left = max(0, min(left, right - width))
    return cut(text, left, right, start, end)


def cut(text: str, left: int, right: int, start: int, end: int) -> str:
    """The text from left to right on one line, drawn in to whole words but not past what lies from start to end."""
    if left > 0:
        space = _space(text, left, min(start, left + 20))
        left = left if space is None else space
    if right < len(text):
        space = next((at for at in range(right, max(end, right - 20), -1) if text[at].isspace()), None)
        right = right if space is None else space
    shown = " ".join(text[left:right].split())
    return f"{'…' if left > 0 else ''}{shown}{'…' if right < len(text) else ''}"


def _space(text: str, left: int, right: int) -> int | None:
    return next((at for at in range(left, right) if text[at].isspace()), None)
