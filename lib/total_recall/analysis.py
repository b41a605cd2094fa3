"""What a word is, for documents and queries alike.

The engine splits at everything that is neither letter nor digit, lower-cases and folds accents. Three things it
cannot do are done to the text before it: characters of scripts without spaces stand alone (a word of them is then a
phrase), an identifier in camel case is followed, at the end of the text, by its pieces, and accents are composed.
Other identifiers fall into their pieces by themselves. Word forms and typos are the query's business (see `forms` and
`misspelt`): the index holds words as they were written, once.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

import tantivy

LONGEST = 64  # bytes of a token; the shortest line of base64 (PEM) is as long

# Kana, Han, Hangul, Thai, Lao, Burmese, Khmer: scripts in which a word is not bounded by spaces, or not only.
SPACELESS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{SPACELESS}]+")
_SEAM = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])")
# The same seams in a text of which only the kinds of the characters are left: fetchMessage, XMLParser, Base64Encoder.
_KINDS_OF = bytes(
    97 if 97 <= code <= 122 else 65 if 65 <= code <= 90 else 48 if 48 <= code <= 57 else 32 for code in range(256)
)
_SEAMS = (b"aA", b"AAa", b"0Aa")
# Bytes of which words are made or may be, and more of them than the engine takes for a word.
_IN_WORDS = bytes(120 if code >= 128 or chr(code).isalnum() else 32 for code in range(256))
_TOO_LONG = b"x" * (LONGEST + 1)
# Dashes, arrows, boxes: several bytes each, many in a row, and in no word.
_NO_LETTERS = re.compile("[\u2000-\u206f\u2190-\u23ff\u2500-\u2775\u2794-\u2bff]+")


class Token(NamedTuple):
    """A word of a text and where it stands there."""

    term: str
    start: int
    end: int


@lru_cache(1)
def analyzer() -> tantivy.TextAnalyzer:
    """The engine's part; an index must register it under `NAME` each time it is opened."""
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(LONGEST + 1), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()):
        builder = builder.filter(step)
    return builder.build()


NAME = "words"


def prepared(text: str) -> str:
    """The text as the engine must see it."""
    if not text.isascii():
        text = spaced(composed(text))
    found = identifiers(text)
    return "\n".join((text, *map(pieces, found))) if found else text


def is_opaque(text: str, shown: str) -> bool:
    """Whether some letters of a text are in none of the engine's words, or stand otherwise there.

    `shown` is what `prepared` makes of the text.
    """
    if not text.isascii() and not unicodedata.is_normalized("NFC", text):
        return True
    return len(shown) > LONGEST // 4 and _is_long(shown) and (shown.isascii() or _is_long(_NO_LETTERS.sub(" ", shown)))


def _is_long(text: str) -> bool:
    return _TOO_LONG in text.encode("utf-8", "surrogatepass").translate(_IN_WORDS)


def composed(text: str) -> str:
    """Letters with their accents as one character each, as most programs write them."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def spaced(text: str) -> str:
    """Each character of a script without spaces alone."""
    return _RUN.sub(lambda run: f" {' '.join(run[0])} ", text)


def spaceless(text: str) -> bool:
    """Whether a text is of such a script throughout."""
    return _RUN.fullmatch(text) is not None


def identifiers(text: str) -> list[str]:
    """The distinct identifiers in camel case."""
    found: dict[str, None] = {}
    # Looked for in a shadow of the text that shows only the kinds of its characters: bytes are searched many times
    # faster than a regular expression goes over them.
    shadow = text.encode("ascii", "replace").translate(_KINDS_OF)
    for seam in _SEAMS:
        place = shadow.find(seam)
        while place >= 0:
            start, end = shadow.rfind(b" ", 0, place) + 1, shadow.find(b" ", place)
            end = len(shadow) if end < 0 else end
            if end - start <= LONGEST:
                found[text[start:end]] = None
            place = shadow.find(seam, end)
    return list(found)


@lru_cache(50_000)
def pieces(identifier: str) -> str:
    """`fetch Message Page` of `fetchMessagePage`; nothing of what is random, like a line of base64."""
    parts = _SEAM.split(identifier)
    return "" if len(parts) * 3 > len(identifier) + 2 else " ".join(parts)


def terms(text: str) -> list[str]:
    """The words of a text, identifiers whole."""
    return analyzer().analyze(text if text.isascii() else spaced(composed(text)))


def split_terms(text: str) -> list[str]:
    """The words of a text, identifiers in their pieces."""
    return terms(_SEAM.sub(" ", text))


def tokens(text: str) -> tuple[list[Token], list[Token]]:
    """The words of a composed text with their places: identifiers whole, and identifiers in their pieces."""
    shown, places = text, None
    if not text.isascii():
        shown, places = _spaced_with_places(text)
    whole = []
    for found in analyzer().pre_tokenize(shown).tokens:
        start, end = found.char_offset_from, found.char_offset_to
        if places:
            start, end = places[start], places[end - 1] + 1
        whole.append(Token(found.text, start, end))
    if not _SEAM.search(text):
        return whole, whole
    split: list[Token] = []
    for token in whole:
        word = text[token.start : token.end]
        parts = pieces(word).split(" ") if word.isascii() and _SEAM.search(word) else []
        if len(parts) < 2:
            split.append(token)
            continue
        start = token.start
        for part in parts:
            split.append(Token(part.lower(), start, start + len(part)))
            start += len(part)
    return whole, split


def _spaced_with_places(text: str) -> tuple[str, list[int]]:
    shown: list[str] = []
    places: list[int] = []
    position = 0
    for run in _RUN.finditer(text):
        start, end = run.span()
        shown.append(text[position:start])
        places.extend(range(position, start))
        shown.append(f" {' '.join(run[0])} ")
        for place in range(start, end):
            places.extend((place, place))
        places.append(end - 1)
        position = end
    shown.append(text[position:])
    places.extend(range(position, len(text)))
    return "".join(shown), places


def parts_of(word: str) -> list[tuple[str, bool]]:
    """A query's word cut where its script changes: (part, whether it is of a script without spaces)."""
    word = composed(word)
    parts = []
    position = 0
    for run in _RUN.finditer(word):
        parts.append((word[position : run.start()], False))
        parts.append((run[0], True))
        position = run.end()
    parts.append((word[position:], False))
    return [part for part in parts if part[0]]


# -- word forms ------------------------------------------------------------------------------------------------

# Endings of inflection in English, German, French, Spanish, Italian, Portuguese, Dutch: long ones first.
_ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "en", "s", "d", "e", "n", "y")
_ADDED = ("", "s", "es", "ed", "d", "ing", "ings", "e", "en", "n", "y", "ies", "ied")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@lru_cache(1024)
def forms(word: str) -> tuple[str, ...]:
    """Words that may be other forms of a word: `retries`, `retried` of `retry`. Most of them do not exist."""
    if len(word) < 3 or not word.isalpha():
        return ()
    found: dict[str, None] = {}
    for stem in _stems(word):
        doubled = stem + stem[-1] if stem[-1] in "bdfgklmnprt" and stem[-2] in "aeiou" else ""
        for ending in _ADDED:
            found[stem + ending] = None
            if doubled and ending[:1] in ("e", "i") and ending:
                found[doubled + ending] = None
    found.pop(word, None)
    return tuple(form for form in found if len(form) >= 3)


def _stems(word: str) -> list[str]:
    stems = [word]
    for ending in _ENDINGS:
        # listen is no list, token no toke: only long words lose the endings that short ones are made of
        if word.endswith(ending) and len(word) - len(ending) >= (5 if ending in ("en", "n", "d") else 3):
            stem = word[: -len(ending)]
            if not any(letter in "aeiouy" for letter in stem):
                continue
            stems.append(stem)
            if stem.endswith("y"):
                stems.append(stem[:-1])
            if len(stem) > 3 and stem[-1] == stem[-2]:
                stems.append(stem[:-1])
    return stems


@lru_cache(256)
def misspelt(word: str) -> tuple[str, ...]:
    """Every word at one edit (a letter added, left out, changed, or two swapped) from a word of five or more."""
    if not 5 <= len(word) <= 40 or not word.isascii():
        return ()
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    found: dict[str, None] = {}
    for left, right in cuts:
        if len(right) > 1:
            found[left + right[1] + right[0] + right[2:]] = None
    for left, right in cuts:
        if right:
            found[left + right[1:]] = None
    for left, right in cuts:
        for letter in _LETTERS:
            found[left + letter + right] = None
            if right:
                found[left + letter + right[1:]] = None
    found.pop(word, None)
    return tuple(found)


# The commonest words of five languages: they say nothing about what is looked for.
STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can could did do does
    doing don during each few for from further had has have having he her here hers him his how i if in into is it
    its itself just let me more most my no nor not now of off on once only or other our ours out over own same she
    should so some such than that the their them then there these they this those through to too under until up us
    very was we were what when where which while who whom why will with would you your yours s t re ve ll d m
    aber als am an auch auf aus bei bin bis das dass dem den der des die dies diese dieser doch du durch ein eine
    einem einen einer eines er es fuer für hat haben ich ihr im in ist ja kann kein keine mehr mein mit muss nach
    nicht noch nur ob oder ohne sein seine sich sie sind so ueber um und uns unser unter vom von vor war warum was
    weil wenn wer wie wir wird wo wurde zu zum zur
    a au aux avec ce ces cette dans de des du elle en est et être etre faut il ils je la le les leur lui ma mais me
    mes mon ne nos notre nous on ont ou où par pas pour pourquoi qu que quel quelle qui sa sans se ses son sont sur
    ta te tes ton tu un une vous y à
    al como con cual cuando de del desde donde el ella ellos en entre era es esa ese eso esta este esto fue hay
    la las le lo los más mas me mi muy no nos o para pero por porque que qué quien se ser si sin sobre son su sus te
    tiene un una uno unos y ya
    """.split()  # noqa: SIM905
)
