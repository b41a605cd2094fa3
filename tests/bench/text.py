"""Text for a made-up store: prose, code, logs and CJK, in pools from which pieces are cut.

Words are used as in a language (a few very often, most of them rarely), so that an index of it grows as it would on
real text. Nothing in the pools holds a `q` or an `x`, nor a character of `PLANTED_CJK`: those are for planted phrases.
"""

from __future__ import annotations

from itertools import accumulate
from random import Random

_POOL = 1 << 21  # characters; a pool is much longer than nearly all pieces
_COMMON = """the of and to a in is it for that we on this with be as not are by or from at can if has was will but when
 so there one all no which file test run line error call value list change check path name use should make add build
 branch server data key cache time first only after before then new old same other result output input""".split()
_ONSETS = """b br c ch cl cr d dr f fl fr g gl gr h j k kr l m n p pl pr r s sh sk sl sm sn sp st str t th tr v w
 z""".split()
_NUCLEI = "a e i o u a e i o u a e i o u ai ea ee ie io oa oo ou".split()
_CODAS = "b ck d g l ll m n nd ng nt p r rd rn rt s sh ss st t".split() + [""] * 30
_VERBS = "fetch load parse render merge flush resolve encode split assign revoke sync count open close trim".split()
_NOUNS = "message page tile entry bucket ticket ledger batch header probe token cursor record store row window".split()
_TYPES = "str int bytes list dict tuple float bool Path Record".split()
_LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARNING", "ERROR")
_PLANTED_ONSETS = ("qu", "x", "vq", "zq", "xr", "dq", "qw", "xl")
_CJK = range(0x4E00, 0x6000)
PLANTED_CJK = range(0x7000, 0x8000)


class Text:
    """The pools of one corpus. All pieces are cut with the caller's own generator."""

    def __init__(self, seed: int) -> None:
        rng = Random(f"text {seed}")
        vocabulary = list(dict.fromkeys(_COMMON + [_word(rng) for _ in range(30_000)]))
        self._vocabulary = vocabulary
        self._weights = list(accumulate(1 / (rank + 2.7) for rank in range(len(vocabulary))))
        self.prose = self._filled(rng, self._paragraph)
        self.code = self._filled(rng, self._function)
        self.log = self._filled(rng, self._log_line)
        self.cjk = self._filled(rng, _cjk_paragraph)

    def piece(self, pool: str, rng: Random, size: float) -> str:
        """About `size` characters out of a pool, whole words, with the line ends that stand in it."""
        size = max(int(size), 1)
        parts = []
        while size > 0:
            length = min(size, _POOL // 2)
            start = rng.randrange(len(pool) - length)
            part = pool[start : start + length]
            parts.append(part.split(" ", 1)[-1].rsplit(" ", 1)[0] if length > 40 and pool is not self.cjk else part)
            size -= length
        return "\n".join(parts).strip() or "yes"

    def lines(self, pool: str, rng: Random, size: float) -> str:
        """The same in whole lines; the first one is like no other, as most outputs have something of their own."""
        return f"{rng.getrandbits(64):016x} {rng.randrange(10_000)}\n" + self.piece(pool, rng, size)

    def words(self, rng: Random, count: int) -> str:
        """A few words that a person might give a thing as its name."""
        return " ".join(rng.choices(self._vocabulary, cum_weights=self._weights, k=count))

    def path(self, rng: Random) -> str:
        """The path of a source file in a project."""
        return f"src/{rng.choice(_NOUNS)}/{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}.py"

    # -- how pools are filled ----------------------------------------------------------------------------------

    def _filled(self, rng, make) -> str:
        parts, size = [], 0
        while size < _POOL:
            parts.append(make(rng))
            size += len(parts[-1])
        return "".join(parts)

    def _paragraph(self, rng: Random) -> str:
        sentences = []
        for _ in range(rng.randint(1, 5)):
            words = rng.choices(self._vocabulary, cum_weights=self._weights, k=rng.randint(4, 18))
            if rng.random() < 0.1:
                words[-1] = f"`{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}()`"
            sentences.append(" ".join(words).capitalize() + ".")
        return " ".join(sentences) + "\n"

    def _function(self, rng: Random) -> str:
        verb, noun, other = rng.choice(_VERBS), rng.choice(_NOUNS), rng.choice(self._vocabulary)
        kind, number = rng.choice(_TYPES), rng.randrange(1000)
        return (
            f"    def {verb}_{noun}(self, {noun}_id: int, {other}: {kind} = None) -> {kind}:\n"
            f'        """{self.words(rng, 7).capitalize()}."""\n'
            f"        {noun} = self._{noun}s.get({noun}_id, {number})\n"
            f"        if {noun} is None or {other} != self.{rng.choice(self._vocabulary)}:\n"
            f"            raise KeyError(f'no {noun} {{{noun}_id}} in {{self.path}}')\n"
            f"        return {kind}({verb}{noun.capitalize()}({noun}, limit={number}))\n\n"
        )

    def _log_line(self, rng: Random) -> str:
        return (
            f"2026-{rng.randint(1, 9):02}-{rng.randint(1, 28):02} {rng.randrange(24):02}:{rng.randrange(60):02}:"
            f"{rng.randrange(60):02} {rng.choice(_LEVELS)} {rng.choice(_NOUNS)}.{rng.choice(_VERBS)}: "
            f"{self.words(rng, rng.randint(3, 9))} id={rng.getrandbits(32):08x} took {rng.randrange(4000)} ms\n"
        )


def _word(rng: Random) -> str:
    syllables = 1 + (rng.random() < 0.8) + (rng.random() < 0.3)
    return "".join(rng.choice(_ONSETS) + rng.choice(_NUCLEI) + rng.choice(_CODAS) for _ in range(syllables))


def _cjk_paragraph(rng: Random) -> str:
    characters = [chr(_CJK[int(len(_CJK) * rng.random() ** 4)]) for _ in range(rng.randint(8, 60))]
    return "".join(characters[:-1]) + rng.choice("。？！") + ("\n" if rng.random() < 0.2 else "")


def planted(rng: Random, cjk: bool = False) -> str:
    """A phrase that stands nowhere else in the corpus."""
    if cjk:
        return "".join(chr(rng.choice(PLANTED_CJK)) for _ in range(6))
    return " ".join("".join(rng.choice(_PLANTED_ONSETS) + rng.choice(_NUCLEI) for _ in range(3)) for _ in range(3))
