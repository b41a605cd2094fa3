"""Search in the indexes of the stores: candidates by BM25, looked at again and scored by one table of weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

import tantivy

from . import analysis
from .indexed import number_of
from .lexicon import Atom, Lexicon
from .notices import Unreadable
from .passages import passages
from .query import MUST, MUST_NOT, SHOULD, Group, Is, Query, Word
from .ranking import KINDS, STORED_FACTORS, USEFULNESS, WEIGHTS, Weights
from .record import Record
from .snippets import Matcher, nearness, snippet
from .sources import EVERYTHING, Filters, Must, MustNot, Part, Should, Source

CANDIDATES = 1500  # of each index
NEAR = 100  # how many are read again to see how near the words stand
A_SESSION = 10  # hits of one session, unless there is no limit
_MASK_BITS = 20  # words whose presence one query tells: a score is a float with 24 bits
_SHORT = 200  # characters up to which the same text in two sessions says nothing
_FURTHER = 3
_OWN_PLACE = {"reasoning": "thinking", "tool-input": "tool_calls"}


class Candidate:
    """One text that matched, with what its score is made of."""

    __slots__ = (
        "address",
        "bm25",
        "coverage",
        "key",
        "kind",
        "near",
        "part",
        "record",
        "score",
        "source",
        "text",
        "ts",
    )

    def __init__(self, part: Part, address: Any, bm25: float, key: int, session: int, ts: int) -> None:
        self.part = part
        self.address = address
        place = (key - session) % 2**64
        self.record = place >> 4
        self.kind = KINDS[place & 15]
        self.bm25 = bm25 / STORED_FACTORS[place & 15]
        self.key = key
        self.source = session
        self.ts = ts
        self.coverage = 1.0
        self.near = 0.0
        self.score = 0.0
        self.text: str | None = None


class Found(NamedTuple):
    """What a search found: the hits in order, how many texts matched in all, and of how many records."""

    hits: list[Record]
    total: int
    searched: int


def search(
    sources: Sequence[Source],
    query: Query,
    filters: Filters = EVERYTHING,
    *,
    limit: int = 20,
    group: bool = False,
    width: int = 200,
    explain: bool = False,
    weights: Weights = WEIGHTS,
) -> Found:
    """The hits of a query, best first; of equal ones the most recent, then by id.

    Without a limit every text that matches is a hit, and one session may have more than A_SESSION of them.
    """
    resolved = Lexicon([source.index for source in sources]).atoms(query.words(), weights)
    run = _Run(sources, query, filters, resolved, weights, limit, width, explain)
    candidates = run.scored()
    hits = run.sessions(candidates) if group else run.records(candidates)
    return Found(hits, run.total, sum(part.records for part in run.parts))


def matching(sources: Sequence[Source], query: Query, filters: Filters) -> int:
    """How many texts a query matches."""
    resolved = Lexicon([source.index for source in sources]).atoms(query.words(), WEIGHTS)
    return _Run(sources, query, filters, resolved).count()


class _Run:
    """One search."""

    def __init__(
        self,
        sources: Sequence[Source],
        query: Query,
        filters: Filters,
        resolved: Mapping[Word, list[Atom]],
        weights: Weights = WEIGHTS,
        limit: int = 0,
        width: int = 0,
        explain: bool = False,
    ) -> None:
        self.query = query
        self.filters = filters
        self.lexicon = Lexicon([source.index for source in sources])
        self.resolved = resolved
        self.weights = weights
        self.limit = limit
        self.width = width
        self.explain = explain
        self.atoms = [atom for atoms in resolved.values() for atom in atoms]
        self.matcher = Matcher(self.atoms)
        self.total = 0
        self.parts = [Part(source, filters) for source in sources]

    def count(self) -> int:
        """How many texts match, without looking at them."""
        return sum(
            part.index.count(self._compiled(part, self.query.root, part.filters(self.filters))) for part in self.parts
        )

    # -- candidates --------------------------------------------------------------------------------------------

    def scored(self) -> list[Candidate]:
        """The candidates of all indexes with their scores, best first."""
        found = []
        for part in self.parts:
            found += self._candidates(part)
        for candidate in found:
            factor = self.weights.classes[candidate.kind]
            candidate.score = candidate.bm25 * factor * candidate.coverage**self.weights.coverage
        found.sort(key=_order)
        if self.weights.nearness and len(self.atoms) > 1:
            for candidate in found[:NEAR]:
                text = self.text(candidate)
                candidate.near = nearness(self.matcher.spans(text), len(self.atoms)) if text else 0.0
                candidate.score *= 1 + self.weights.nearness * candidate.near
            found.sort(key=_order)
        return found

    def _candidates(self, part: Part) -> list[Candidate]:
        filters = part.filters(self.filters)
        query = self._compiled(part, self.query.root, filters)
        index = part.index
        if not self.atoms:
            hits = [(0.0, address) for _, address in index.best(query, CANDIDATES, order_by_field="ts")]
        else:
            hits = index.best(query, self._depth(part), weight_by_field="weight")
        self.total += part.index.count(query)
        addresses = [address for _, address in hits]
        columns = [index.column(name, addresses) for name in ("key", "session", "ts")]
        candidates = [
            Candidate(part, address, score, key, session, ts)
            for (score, address), key, session, ts in zip(hits, *columns, strict=True)
        ]
        if len(self.atoms) > 1 and candidates:
            self._cover(part, candidates)
        return candidates

    def _depth(self, part: Part) -> int:
        return CANDIDATES if self.limit else max(CANDIDATES, part.index.size)

    def _compiled(self, part: Part, root: Group, filters: list[tuple[tantivy.Occur, tantivy.Query]]) -> tantivy.Query:
        words = self._group(part, root)
        return tantivy.Query.boolean_query([(Must, words), *filters]) if filters else words

    def _group(self, part: Part, group: Group) -> tantivy.Query:
        clauses = []
        for occurrence, node in group.clauses:
            occur = {MUST: Must, MUST_NOT: MustNot}.get(occurrence, Should)
            clauses.append((occur, self._node(part, node, occurrence == MUST_NOT)))
        # A field selects; the words beside it are still looked for.
        selecting = all(isinstance(node, Is) for occurrence, node in group.clauses if occurrence == MUST)
        if selecting and any(occurrence == SHOULD for occurrence, _ in group.clauses):
            return tantivy.Query.boolean_query(clauses, minimum_number_should_match=1)
        return tantivy.Query.boolean_query(clauses)

    def _node(self, part: Part, node: Word | Is | Group, excluded: bool) -> tantivy.Query:
        if isinstance(node, Group):
            return self._group(part, node)
        if isinstance(node, Is):
            return tantivy.Query.const_score_query(self._is(part, node), 0.0)
        if excluded:
            return self.lexicon.excluded(node).matches(part.index)
        queries = [atom.scored(part.index, self.lexicon) for atom in self.resolved[node]]
        return queries[0] if len(queries) == 1 else tantivy.Query.boolean_query([(Should, query) for query in queries])

    def _is(self, part: Part, node: Is) -> tantivy.Query:
        if node.field == "session":
            return tantivy.Query.term_query(part.schema, "session", number_of(node.value))
        return tantivy.Query.term_query(part.schema, "tool_name" if node.field == "tool" else node.field, node.value)

    def _cover(self, part: Part, candidates: list[Candidate]) -> None:
        """Which share of the query's words each candidate has, rarer words counting more."""
        total = fsum(atom.weight for atom in self.atoms) or 1.0
        keys = tantivy.Query.term_set_query(part.schema, "key", [candidate.key for candidate in candidates])
        there: dict[int, float] = {}
        for first in range(0, len(self.atoms), _MASK_BITS):
            atoms = self.atoms[first : first + _MASK_BITS]
            clauses = [(Must, tantivy.Query.const_score_query(keys, 0.0))]
            clauses += [
                (Should, tantivy.Query.const_score_query(atom.matches(part.index), float(1 << bit)))
                for bit, atom in enumerate(atoms)
            ]
            hits = part.index.best(tantivy.Query.boolean_query(clauses), len(candidates))
            numbers = part.index.column("key", [address for _, address in hits])
            for (score, _), key in zip(hits, numbers, strict=True):
                mask = int(score)
                share = fsum(atom.weight for bit, atom in enumerate(atoms) if mask >> bit & 1)
                there[key] = there.get(key, 0.0) + share / total
        for candidate in candidates:
            candidate.coverage = max(there.get(candidate.key, 0.0), 0.05)

    # -- texts -------------------------------------------------------------------------------------------------

    def text(self, candidate: Candidate) -> str:
        """The text that matched, read again from the store; empty when it is no longer there."""
        if candidate.text is None:
            candidate.text = analysis.composed(self._read(candidate))
        return candidate.text

    def _read(self, candidate: Candidate) -> str:
        part = candidate.part
        if candidate.kind == "title":
            return part.facts(candidate.source)["title"]
        stored = part.index.stored(candidate.address)
        session = part.sessions.get(candidate.source)
        if session is None or not stored["ref"]:
            return ""
        try:
            entry = part.source.fetch(session, {"id": candidate.record, **stored["ref"]})
        except (Unreadable, FileNotFoundError):
            return ""
        if entry is None or not entry.messages:
            return ""
        # Read by itself, a result does not know its tool's name, and so not always its class.
        place = _OWN_PLACE.get(candidate.kind)
        texts = passages(entry.messages[min(stored["part"], len(entry.messages) - 1)])
        return next((passage.text for passage in texts if _OWN_PLACE.get(passage.kind) == place), "")

    # -- results -----------------------------------------------------------------------------------------------

    def _by_session(self, candidates: Iterable[Candidate]) -> dict[tuple[str, int], list[Candidate]]:
        """One candidate a record, by session, in the order given."""
        found: dict[tuple[str, int], list[Candidate]] = {}
        seen = set()
        for candidate in candidates:
            place = (candidate.part.source.harness, candidate.source)
            if (place, candidate.record) not in seen:
                seen.add((place, candidate.record))
                found.setdefault(place, []).append(candidate)
        return found

    def _evidence(self, candidates: Sequence[Candidate]) -> float:
        """A session's score: its best records, each next one counting less."""
        best = candidates[: self.weights.session_records]
        return fsum(candidate.score * self.weights.session**place for place, candidate in enumerate(best))

    def records(self, candidates: list[Candidate]) -> list[Record]:
        """Hits by record; one of a session with more evidence comes before its like, its first ones most of all."""
        grouped = self._by_session(candidates)
        kept = []
        for members in grouped.values():
            lift = self.weights.lift * self._evidence(members)
            for candidate in members[: A_SESSION if self.limit else None]:
                candidate.score += lift
                lift *= self.weights.lift_again
                kept.append(candidate)
        kept.sort(key=_order)
        return self._collapsed(kept)

    def _collapsed(self, candidates: list[Candidate]) -> list[Record]:
        """The first hits; of a long text that stands in several places one is a hit, and the others are counted."""
        hits: list[Record] = []
        seen: dict[tuple[str, int, int], Record] = {}
        for candidate in candidates:
            text = self.text(candidate)
            same = (candidate.kind, len(text), hash(text))
            if self.limit and len(text) >= _SHORT and same in seen:
                seen[same]["duplicates"] = seen[same].get("duplicates", 0) + 1
                continue
            if self.limit and len(hits) == self.limit:
                break
            seen[same] = self._hit(candidate)
            hits.append(seen[same])
        return hits

    def sessions(self, candidates: list[Candidate]) -> list[Record]:
        """Hits by session, the best evidence first."""
        grouped = self._by_session(candidates)
        ranked = [(self._evidence(members), place, members) for place, members in grouped.items()]
        ranked.sort(key=lambda item: (-item[0], *_order(item[2][0])[1:]))
        hits = []
        for score, _, members in ranked[: self.limit or None]:
            near = [candidate for candidate in members if candidate.score >= 0.7 * members[0].score]
            chosen = min(near, key=lambda candidate: (USEFULNESS.index(candidate.kind), *_order(candidate)))
            hit = self._hit(chosen)
            hit["score"] = round(score, 4)
            hit["hit_count"] = self._count(chosen)
            hit["classes"] = list(dict.fromkeys(candidate.kind for candidate in members))
            hit["hits"] = [self._further(other) for other in members if other is not chosen][:_FURTHER]
            hits.append(hit)
        return hits

    def _count(self, candidate: Candidate) -> int:
        """How many texts of the candidate's session match, also those that were not looked at."""
        part = candidate.part
        only = tantivy.Query.term_query(part.schema, "session", candidate.source)
        clauses = [*part.filters(self.filters), (Must, tantivy.Query.const_score_query(only, 0.0))]
        return part.index.count(self._compiled(part, self.query.root, clauses))

    def _further(self, candidate: Candidate) -> Record:
        text = self.text(candidate)
        shown = snippet(text, self.matcher.spans(text), [atom.weight for atom in self.atoms], self.width)
        return {"id": candidate.record, "class": candidate.kind, "snippet": shown}

    def _hit(self, candidate: Candidate) -> Record:
        part = candidate.part
        facts = part.facts(candidate.source)
        text = self.text(candidate)
        spans = self.matcher.spans(text)
        title = candidate.kind == "title"
        stored = {"ts": facts["start_time"]} if title else part.index.stored(candidate.address)
        hit = {
            "harness": part.source.harness,
            "session_id": facts["session_id"],
            "id": candidate.record,
            "ts": stored["ts"],
            "role": stored.get("role"),
            "class": candidate.kind,
            "authorship": stored.get("authorship"),
            "tool_name": stored.get("tool_name"),
            "score": round(candidate.score, 4),
            "snippet": snippet(text, spans, [atom.weight for atom in self.atoms], self.width),
            "matched": list(dict.fromkeys(span.terms for span in spans)),
            "title": facts["title"],
            "directory": facts["directory"],
        }
        if candidate.kind == "reasoning":
            hit["thinking"] = True
        if self.explain:
            hit["explain"] = self._explained(candidate)
        return hit

    def _explained(self, candidate: Candidate) -> Record:
        return {
            "terms": [
                {
                    "word": atom.word.text,
                    "spellings": [" ".join(spelling.terms) for spelling in atom.spellings],
                    "texts": atom.found,
                    "weight": round(atom.weight, 4),
                }
                for atom in self.atoms
            ],
            "bm25": round(candidate.bm25, 4),
            "class_weight": self.weights.classes[candidate.kind],
            "coverage": round(candidate.coverage, 4),
            "nearness": round(candidate.near, 4),
        }


def _order(candidate: Candidate) -> tuple[Any, ...]:
    return (-round(candidate.score, 6), -candidate.ts, candidate.record, candidate.source, candidate.kind)
