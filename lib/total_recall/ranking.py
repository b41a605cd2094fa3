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
    """What each step of the ranking is worth."""

    classes: Mapping[str, float] = CLASS_FACTORS
    forms: float = 0.8  # another form of a word, against the word itself
    typos: float = 0.7  # a word at one edit from an unknown one
    coverage: float = 1.0  # exponent of the share of the query's words that a record has
    nearness: float = 0.5  # added for words that stand side by side
    session: float = 0.5  # each next record of a session, against the one before it
    session_records: int = 5
    lift: float = 1.0  # of a record by its session's score
    stop_words: bool = True


WEIGHTS = Weights()


def stored_weight(kind: str) -> int:
    """A class's factor as the engine takes it: it multiplies a score by log2(2 + weight).

    This only decides which records are looked at closely; their score is made from `CLASS_FACTORS` itself.
    """
    return max(0, round(2 ** (CLASS_FACTORS[kind] / min(CLASS_FACTORS.values())) - 2))


STORED = tuple(stored_weight(kind) for kind in KINDS)
STORED_FACTORS = tuple(log2(2 + weight) for weight in STORED)
