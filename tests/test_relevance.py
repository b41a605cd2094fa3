"""The labelled set: the figures that are locked, and that every step of the ranking earns its place."""

import orjson
import pytest
from total_recall.ranking import WEIGHTS

from tests.relevance.scenarios import QUESTIONS
from tests.relevance.score import BASELINE, STEPS, Bench, half, measured, run

HELD_BACK = "held back"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(str(tmp_path_factory.mktemp("relevance")))


@pytest.fixture(scope="module")
def shipped(bench):
    return measured(bench, WEIGHTS)[0]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return run("plain", str(tmp_path_factory.mktemp("plain")))[1]


def test_the_set_is_large_and_mixed_enough(bench):
    assert len(QUESTIONS) >= 60
    assert bench.corpus.sessions >= 300
    assert len({question.kind for question in QUESTIONS}) >= 15
    assert min(sum(half(question) == name for question in QUESTIONS) for name in ("tuning", HELD_BACK)) >= 40


def test_every_answer_is_in_the_corpus(bench):
    for question in QUESTIONS:
        assert all(name in bench.corpus.places for name in question.answers), question.text


def test_no_figure_is_below_the_locked_baseline(shipped):
    with open(BASELINE, "rb") as file:
        locked = orjson.loads(file.read())

    assert {name: set(row) for name, row in shipped.items()} == {name: set(row) for name, row in locked.items()}
    for name, row in locked.items():
        for figure, value in row.items():
            assert shipped[name][figure] >= value, (name, figure)


def test_the_ranking_beats_plain_bm25_by_far_on_questions_it_was_not_tuned_on(shipped, plain):
    assert plain[HELD_BACK]["session MRR"] <= 0.80
    assert shipped[HELD_BACK]["session MRR"] >= plain[HELD_BACK]["session MRR"] + 0.10
    assert shipped[HELD_BACK]["record MRR"] >= plain[HELD_BACK]["record MRR"] + 0.10


@pytest.mark.parametrize("step", STEPS)
def test_without_any_one_step_a_figure_is_lower(bench, shipped, step):
    without = measured(bench, WEIGHTS._replace(**STEPS[step]))[0][HELD_BACK]

    assert any(without[figure] < shipped[HELD_BACK][figure] for figure in ("session MRR", "record MRR"))


def test_without_the_analysis_figures_are_lower(shipped, tmp_path):
    without = run("analysis", str(tmp_path))[1][HELD_BACK]

    assert without["session MRR"] < shipped[HELD_BACK]["session MRR"]
    assert without["record MRR"] < shipped[HELD_BACK]["record MRR"]


def test_the_corpus_is_the_same_each_time(bench, tmp_path):
    from tests.relevance.corpus import Corpus

    again = Corpus(tmp_path / "again").write()

    assert again.places == bench.corpus.places
