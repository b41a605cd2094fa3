#!/usr/bin/env python3
"""How well the search finds what is known to be there: MRR, nDCG@10 and recall@5, by session and by record.

python tests/relevance/score.py                 the shipped ranking, both halves
python tests/relevance/score.py --ablate STEP   without one step; `plain` is BM25 over records alone
python tests/relevance/score.py --worst 20      the questions that do worst
python tests/relevance/score.py --lock          write the figures to baseline.json
"""

import argparse
import os
import sys
import tempfile
import zlib
from contextlib import contextmanager
from math import log2

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for folder in (ROOT, os.path.join(ROOT, "lib")):
    if folder not in sys.path:
        sys.path.insert(0, folder)

import orjson  # noqa: E402
from total_recall import analysis, query  # noqa: E402
from total_recall.index import Index  # noqa: E402
from total_recall.lexicon import Lexicon  # noqa: E402
from total_recall.ranking import CLASS_FACTORS, WEIGHTS  # noqa: E402
from total_recall.search import Filters, Source, search  # noqa: E402

from tests.linestore import LineStore  # noqa: E402
from tests.relevance.corpus import HARNESSES, Corpus  # noqa: E402
from tests.relevance.scenarios import QUESTIONS  # noqa: E402

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "baseline.json")
EVEN = dict.fromkeys(CLASS_FACTORS, 1.0)
STEPS = {
    "stop-words": {"stop_words": False},
    "classes": {"classes": EVEN},
    "coverage": {"coverage": 0.0},
    "forms": {"forms": 0.0},
    "typos": {"typos": 0.0},
    "nearness": {"nearness": 0.0},
    "session": {"lift": 0.0},
}
PLAIN = {key: value for step in STEPS.values() for key, value in step.items()}


def half(question):
    """`tuning` or `held back`, by the text, so that a new question moves no old one."""
    return ("tuning", "held back")[zlib.crc32(question.text.encode()) % 2]


@contextmanager
def plain_analysis():
    """Words as the engine splits them: no pieces of identifiers, no spaced characters, no other spellings."""
    kept = analysis.prepared, analysis.terms, analysis.split_terms, analysis.parts_of
    spellings = Lexicon.joined, Lexicon.parts
    Lexicon.joined, Lexicon.parts = lambda *_: [], lambda *_: ()
    terms = analysis.analyzer().analyze
    analysis.prepared = lambda text: text
    analysis.terms = analysis.split_terms = terms
    analysis.parts_of = lambda word: [(part, False) for part in terms(word)]
    try:
        yield
    finally:
        analysis.prepared, analysis.terms, analysis.split_terms, analysis.parts_of = kept
        Lexicon.joined, Lexicon.parts = spellings


class Bench:
    """The corpus, indexed once."""

    def __init__(self, folder):
        self.corpus = Corpus(os.path.join(folder, "stores")).write()
        self.sources = []
        for harness in HARNESSES:
            store = LineStore(os.path.join(folder, "stores", harness), harness)
            shadow = os.path.join(folder, "shadow", harness)
            os.makedirs(shadow)
            index = Index.open(shadow, store.notices)
            for _ in index.refresh(store, store.sessions()):
                pass
            self.sources.append(Source(harness, index, store.sessions(), True, store.entry_at))

    def source(self, source, excluded):
        if not excluded:
            return source
        kept = [session for session in source.sessions if session.session_id not in self.corpus.current]
        return source._replace(sessions=kept, whole=False)

    def hits(self, question, weights, limit=20, group=False):
        filters = dict(question.filters)
        excluded = filters.pop("exclude", False)
        sources = [self.source(source, excluded) for source in self.sources]
        parsed = query.parse(question.text, stop_words=weights.stop_words)
        return search(sources, parsed, Filters(**filters), limit=limit, group=group, weights=weights).hits

    def scores(self, question, weights):
        """The six figures of one question; for one without an answer, whether nothing was found."""
        hits = self.hits(question, weights)
        if not question.answers:
            return {"absent": float(not hits)}
        records = {self.corpus.places[name]: 2.0 if place < 2 else 1.0 for place, name in enumerate(question.answers)}
        sessions = {}
        for (harness, session, _), grade in records.items():
            sessions[harness, session] = max(grade, sessions.get((harness, session), 0.0))
        found = [(hit["harness"], hit["session_id"], hit["id"]) for hit in hits]
        by_session = list(dict.fromkeys(place[:2] for place in found))
        return figures(by_session, sessions, "session") | figures(found, records, "record")


def figures(ranked, grades, name):
    first = next((place for place, found in enumerate(ranked) if found in grades), None)
    gain = sum(grades.get(found, 0.0) / log2(place + 2) for place, found in enumerate(ranked[:10]))
    ideal = sum(grade / log2(place + 2) for place, grade in enumerate(sorted(grades.values(), reverse=True)[:10]))
    recall = sum(found in grades for found in ranked[:5]) / min(len(grades), 5)
    return {
        f"{name} MRR": 0.0 if first is None else 1 / (first + 1),
        f"{name} nDCG@10": gain / ideal,
        f"{name} recall@5": recall,
    }


def measured(bench, weights):
    """half -> figure -> mean, and the scores of each question."""
    each = [(question, bench.scores(question, weights)) for question in QUESTIONS]
    means = {}
    for name in ("tuning", "held back"):
        gathered = {}
        for question, scores in each:
            if half(question) == name:
                for figure, value in scores.items():
                    gathered.setdefault(figure, []).append(value)
        means[name] = {figure: round(sum(values) / len(values), 4) for figure, values in gathered.items()}
    return means, each


def run(step, folder):
    if step in ("plain", "analysis"):
        changes = PLAIN if step == "plain" else {"forms": 0.0}
        with plain_analysis():
            bench = Bench(folder)
            return (bench, *measured(bench, WEIGHTS._replace(**changes)))
    bench = Bench(folder)
    return (bench, *measured(bench, WEIGHTS._replace(**STEPS.get(step, {}))))


def show(title, means):
    for name, row in means.items():
        print(f"{title:12} {name:10}", "  ".join(f"{figure} {value:.3f}" for figure, value in row.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ablate", metavar="STEP", choices=("plain", "analysis", *STEPS, "each"))
    parser.add_argument("--worst", type=int, default=0, metavar="N")
    parser.add_argument("--kinds", action="store_true", help="the session and record MRR by kind of question")
    parser.add_argument("--lock", action="store_true")
    given = parser.parse_args()
    steps = (None, "plain", "analysis", *STEPS) if given.ablate == "each" else (given.ablate,)
    for step in steps:
        with tempfile.TemporaryDirectory() as folder:
            _, means, each = run(step, folder)
        show(f"-{step}" if step else "shipped", means)
        if given.kinds:
            for kind in dict.fromkeys(question.kind for question in QUESTIONS):
                rows = [scores for question, scores in each if question.kind == kind and question.answers]
                if rows:
                    print(
                        f"  {kind:12}",
                        *(
                            f"{name} {sum(row[name] for row in rows) / len(rows):.2f}"
                            for name in ("session MRR", "record MRR")
                        ),
                    )
        ranked = sorted(each, key=lambda pair: pair[1].get("session MRR", 1) + pair[1].get("record MRR", 1))
        for question, scores in ranked[: given.worst]:
            print(
                f"  {scores.get('session MRR', 0):.2f} {scores.get('record MRR', 0):.2f} {question.kind}: {question.text}"
            )
    if given.lock:
        with open(BASELINE, "wb") as file:
            file.write(orjson.dumps(means, option=orjson.OPT_INDENT_2) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
