"""Random mutations of real records, and random queries: a short run of each, and what longer runs have found."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from total_recall import analysis
from total_recall.dialogue import cut
from total_recall.query import BadQuery, Empty, parse

from .fuzz import mutated, trial
from .layouts import LAYOUTS
from .programs import environment, run, run_all

# Seeds that failed once: (layout, seed).
KEPT = [
    ("vibe", 3),
    ("vibe", 41),
    ("vibe", 704),
    ("codex 0.20", 2),
    ("codex 0.20", 301427),
    ("gemini", 304396),
]


@pytest.mark.parametrize("seed", range(1000, 1012))
@pytest.mark.parametrize("name", LAYOUTS)
def test_of_any_records_everything_can_be_made_that_is_made_of_a_session(name, seed, tmp_path):
    trial(name, seed, tmp_path / "store")


@pytest.mark.parametrize(("name", "seed"), KEPT)
def test_what_failed_once(name, seed, tmp_path):
    trial(name, seed, tmp_path / "store")


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_records_go_through_every_command(name, tmp_path):
    chance = random.Random(f"commands {name}")
    laid = LAYOUTS[name](tmp_path / "store")
    for _ in range(4):
        laid.put(mutated(laid.units(), chance, whole_file=laid.lines))

    run_all(laid, tmp_path, also=(2, 3))


# -- queries ---------------------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        *('"', "(", ")", "+", "-", ":", "*", "~", "^", "\\", "/", "[", "]", "{", "}", "AND", "OR", "NOT", "IN", "TO"),
        *(
            "title:",
            "thinking:",
            "role:",
            "role:user",
            "tool:",
            "session:",
            "class:x",
            "nofield:",
            "--flag",
            "C++",
            "a:b",
        ),
        *(
            "fetchMessagePage",
            "foo.bar()",
            "C:\\path",
            "don't",
            "multi-agent",
            "ECONNREFUSED",
            "\u4f1a\u8bdd",
            "e\u0301",
        ),
        *(
            "\u3042\u30a2x",
            "\ud55c\uad6d\uc5b4",
            "\u0e01\u0e02",
            "\U0001f389",
            "\u0130stanbul",
            "\u212a",
            "stra\u00dfe",
            "\0",
            "\x1b[",
        ),
        *(
            "the",
            "of",
            "x" * 300,
            "1e9",
            "2026-11-30",
            "a" * 64,
            "-",
            "--",
            "''",
            "\u2028",
            "\ufeff",
            "\u202e",
            "\t",
            "\n",
        ),
    ]
)
QUERIES = st.one_of(
    st.lists(st.one_of(_PIECES, st.text(max_size=6)), max_size=12).map(" ".join),
    st.lists(_PIECES, max_size=8).map("".join),
    st.text(max_size=40),
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(QUERIES, st.booleans())
@example("(" * 2000, False)
@example('"' * 2001, False)
@example("a OR " * 500, True)
@example("((((((((((a", False)
@example("\ud800", False)
def test_any_text_is_a_query_or_is_refused_in_a_sentence(text, strict):
    refused = None
    try:
        query = parse(text, strict=strict)
    except (Empty, BadQuery) as error:
        refused = error
    if refused:
        assert str(refused)
        assert isinstance(refused, Empty) == (not text.strip()) or strict
        return
    assert query.reading()
    assert all(word.whole for word in query.words())


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.one_of(QUERIES, st.text(max_size=200)))
def test_the_analysis_says_where_each_word_stands(text):
    text = analysis.composed(text)
    whole, split = analysis.tokens(text)
    for token in (*whole, *split):
        assert 0 <= token.start < token.end <= len(text)
    assert [token.start for token in whole] == sorted(token.start for token in whole)
    analysis.prepared(text)
    analysis.terms(text)
    for word in text.split():
        analysis.forms(word)
        analysis.misspelt(word)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=3000), st.lists(st.text(min_size=1, max_size=5), max_size=4))
def test_a_text_is_cut_to_its_size_at_a_character(text, words):
    found = cut(text, words)

    assert len(found.encode("utf-8", "replace")) <= max(1500, 0)
    assert found == text or "\u2026" in found


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    scratch = tmp_path_factory.mktemp("searched")
    laid = LAYOUTS["claude"](scratch / "store")
    env = environment(scratch, laid)
    run("tr-index", env=env)
    return env


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    text=QUERIES.filter(lambda text: "\0" not in text and text.isprintable()),
    match=st.sampled_from(("words", "literal", "regex")),
)
@example(text="(" * 500, match="words")
@example(text="[", match="regex")
@example(text="(a*)*b", match="regex")
@example(text="\\", match="literal")
def test_any_search_is_answered(text, match, searched):
    ran = run("tr-search", "--match", match, "--", text, env=searched)

    assert ran.status in ((0, 1, 2) if match == "regex" or not text.strip() else (0, 1)), ran
    assert "TR_DEBUG" not in ran.err, ran
    for hit in ran.records:
        assert hit["snippet"]
        assert "\n" not in hit["snippet"]
