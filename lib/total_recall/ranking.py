"""The weights of the ranking, all in one table."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import NamedTuple

from .record import CLASSES

# The classes of the index; a class's place here is part of the index's format.
KINDS = (*CLASSES, "title")

CLASS_FACTORS: dict[str, float] = {
    "human-text": 2.5,
    "delegated-text": 1.8,
    "model-text": 1.8,
    "title": 1.5,
    "tool-input": 1.2,
    "reasoning": 1.0,
    "compaction": 1.0,
    "tool-output": 0.7,
    "file-read": 0.6,
    "web-fetch": 0.6,
    "injected-text": 0.5,
    "command": 0.5,
    "skill": 0.5,
    "self": 0.5,
}

# Which of the texts that match about equally well stands for a session.
USEFULNESS = (
    "human-text",
    "delegated-text",
    "tool-input",
    "model-text",
    "tool-output",
    "reasoning",
    "compaction",
    "file-read",
    "web-fetch",
    "skill",
    "command",
    "injected-text",
    "title",
)


class Weights(NamedTuple):
    """What each step of the ranking is worth.

    Beside each stands what the labelled set's held-back half loses without it: the reciprocal rank of the right
    session and of the right record, .961 and .958 with all of them. BM25 over records alone has .745 and .696; without
    the analysis of identifiers, CJK and other spellings it is .856 and .805 (see tests/relevance/score.py).
    """

    classes: Mapping[str, float] = CLASS_FACTORS  # .947 .923
    forms: float = 0.8  # another form of a word, against the word itself: .961 .949
    typos: float = 0.7  # a word at one edit from an unknown one: .945 .942
    coverage: float = 1.0  # exponent of the share of the query's words that a record has: .961 .949
    nearness: float = 0.5  # added for words that stand side by side: .946 .938
    session: float = 0.5  # each next record of a session, against the one before it
    session_records: int = 5
    lift: float = 1.0  # a record's score by its session's: .944 .944
    lift_again: float = 0.9  # each next record of the session; less makes room for others, 1 hardly any
    stop_words: bool = True  # left out of the query: .956 .951


WEIGHTS = Weights()


def stored_weight(kind: str) -> int:
    """A class's factor as the engine takes it: it multiplies a score by log2(2 + weight).

    This only decides which records are looked at closely; their score is made from `CLASS_FACTORS` itself.
    """
    return max(0, round(2 ** (CLASS_FACTORS[kind] / min(CLASS_FACTORS.values())) - 2))


STORED = tuple(stored_weight(kind) for kind in KINDS)
STORED_FACTORS = tuple(log2(2 + weight) for weight in STORED)
