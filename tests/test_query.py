"""The person's words: never an error of theirs, and what was understood can be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from total_recall.query import MUST, MUST_NOT, SHOULD, BadQuery, Empty, Group, Is, Word, parse


def wholes(text):
    return [" ".join(word.whole) for word in parse(text).words()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("C++", ["c"]),
        ("--dry-run", ["dry run"]),
        ("foo.bar()", ["foo bar"]),
        ("a:b", ["a b"]),
        ("TODO: fix", ["todo", "fix"]),
        ("don't", ["don t"]),
        ("src/x.py:12", ["src x py 12"]),
        ("C:\\temp", ["c temp"]),
        ("[x]", ["x"]),
        ("{a", ["a"]),
        ('"unbalanced', ["unbalanced"]),
        ("AND", ["and"]),
        ("https://example.com/a?b=c#d", ["https example com a b c d"]),
        ("2026-11-30T10:00:00Z", ["2026 11 30t10 00 00z"]),
        ("git commit --amend", ["git", "commit", "amend"]),
        ("f(x) = y", ["f x"]),
        ("foo )", ["foo"]),
        ("( foo", ["foo"]),
        ("a AND", ["a", "and"]),
        ("NOT redis", ["redis"]),
        ("-redis", ["redis"]),
        ('x"y', ["x y"]),
    ],
)
def test_what_looks_like_syntax_is_searched_as_words(text, words):
    assert wholes(text) == words


@pytest.mark.parametrize("text", ["*", "🎉", "()", "::", "->", "!?"])
def test_a_query_without_words_is_searched_literally(text):
    assert parse(text).literal
    assert text in parse(text).reading()


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_an_empty_query_is_refused(text):
    with pytest.raises(Empty, match="empty"):
        parse(text)


@pytest.mark.parametrize("text", ['"open', "(open", "C++", "a:b", "C:\\temp", "AND", "-x", "--flag", "[x]", "f(x)"])
def test_strict_refuses_what_does_not_parse_and_says_why(text):
    with pytest.raises(BadQuery, match="quote it, or leave out --strict"):
        parse(text, strict=True)


@pytest.mark.parametrize("text", ["timeout", 'a "b c" -d', "(a OR b) AND c", "title:x role:user", "src.py", "don't"])
def test_strict_takes_the_query_language(text):
    assert parse(text, strict=True) == parse(text)


def test_operators_say_what_must_may_and_must_not_occur():
    def clauses(text):
        return [(occurrence, getattr(node, "text", node)) for occurrence, node in parse(text).root.clauses]

    assert clauses("one two") == [(SHOULD, "one"), (SHOULD, "two")]
    assert clauses("one OR two") == [(SHOULD, "one"), (SHOULD, "two")]
    assert clauses("one AND two three") == [(MUST, "one"), (MUST, "two"), (SHOULD, "three")]
    assert clauses("+one two -three") == [(MUST, "one"), (SHOULD, "two"), (MUST_NOT, "three")]
    assert clauses("one NOT three") == [(SHOULD, "one"), (MUST_NOT, "three")]
    assert clauses("one AND NOT three") == [(MUST, "one"), (MUST_NOT, "three")]


def test_groups_nest():
    query = parse("(one OR (two three)) AND four")

    (first, group), (last, _) = query.root.clauses
    assert (first, last) == (MUST, MUST)
    assert isinstance(group, Group)
    assert isinstance(group.clauses[1][1], Group)


def test_a_phrase_keeps_its_small_words():
    assert wholes('"how it is" done') == ["how it is", "done"]


def test_small_words_go_unless_nothing_else_is_left():
    assert wholes("how do I fix the timeout") == ["fix", "timeout"]
    assert wholes("the of") == ["the", "of"]
    assert wholes("how do I fix the +the timeout") == ["fix", "the", "timeout"]


def test_fields_are_those_of_a_hit_and_nothing_else():
    assert parse("role:user timeout").root.clauses[0] == (MUST, Is("role", "user"))
    assert parse("tool:bash").root.clauses == ((MUST, Is("tool", "bash")),)
    assert parse("thinking:postgres").words()[0].within == "reasoning"
    assert parse('title:"rate limit"').words()[0].within == "title"
    assert wholes("role:nobody timeout") == ["role nobody", "timeout"]
    assert wholes("content:x") == ["content x"]


def test_identifiers_are_known_whole_and_in_pieces():
    (word,) = parse("fetchMessagePage").words()

    assert (word.whole, word.pieces) == (("fetchmessagepage",), ("fetch", "message", "page"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("検", ["検"]),
        ("検索", ["検 索"]),
        ("连接池", ["连 接", "接 池"]),
        ("使用Redis缓存", ["使 用", "redis", "缓 存"]),
        ('"连接池"', ["连 接 池"]),
    ],
)
def test_cjk_is_searched_by_pairs_of_characters(text, words):
    assert wholes(text) == words


def test_a_pasted_page_is_searched_by_its_longest_words_and_that_is_said():
    query = parse(" ".join(f"word{number}" for number in range(1, 1500)))

    assert len(query.words()) == 64
    assert "1435 more words not searched" in query.reading()


def test_ten_thousand_characters_without_a_space_are_one_literal():
    assert parse("x" * 10_000).literal


@given(st.text(min_size=1, max_size=60))
def test_any_text_is_a_query(text):
    """Whatever is typed is understood somehow, and the same way again when read back as plain words."""
    if not text.strip():
        return
    query = parse(text)

    assert query.literal or query.root.clauses
    assert query.reading()


@given(st.text(alphabet='ab ()"+-:ANDOT', min_size=1, max_size=30))
def test_syntax_never_fails(text):
    if text.strip():
        assert parse(text).reading()


def test_the_reading_tells_what_was_understood():
    assert parse('one AND "two three" -four').reading() == '+one +"two three" -four'
    assert "as plain words" in parse('say "hello').reading()
    assert all(isinstance(word, Word) for word in parse("one two").words())
