"""Who said a word, and which tool was told it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import called, recorded, said
from total_recall import dialogue
from total_recall.dialogue import NoWords, cut, terms


def found(messages, *words):
    return [(hit["who"], hit["text"], hit["matched"]) for hit in dialogue.said(messages, words)]


def test_a_real_session():
    """Texts of both sides, and calls by what they were told; outputs, thinking and injected text are not looked at."""
    hits = list(dialogue.said(recorded("claude-git"), ["INVENTORY", "remove()"]))

    assert [(hit["id"], hit["who"], hit["matched"]) for hit in hits] == [
        (1, "he", ["INVENTORY"]),
        (7, "they", ["INVENTORY"]),
        (8, "they", ["INVENTORY"]),
        (11, "they", ["INVENTORY"]),
        (14, "she", ["INVENTORY"]),
        (15, "he", ["remove()"]),
        (16, "they", ["INVENTORY"]),
        (21, "they", ["INVENTORY"]),
        (23, "they", ["remove()"]),
        (25, "she", ["remove()"]),
    ]


def test_a_hit_has_the_documented_keys_in_their_order():
    (hit,) = dialogue.said([said(3, "Deploy it")], ["deploy"])

    assert list(hit) == ["harness", "session_id", "id", "ts", "who", "text", "matched"]
    assert hit == {
        "harness": "claude",
        "session_id": "s1",
        "id": 3,
        "ts": "2026-11-30T10:00:03.000Z",
        "who": "he",
        "text": "Deploy it",
        "matched": ["deploy"],
    }


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("STRASSE", "straße"),
        ("Straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("İstanbul", "i̇stanbul"),
        ("日本語", "本"),
        ("a.b", "a.b"),
    ],
)
def test_words_are_literal_and_case_does_not_matter_in_any_script(text, word):
    assert found([said(1, text)], word) == [("he", text, [word])]
    assert found([said(1, "axb")], "a.b") == []


def test_any_of_the_words_matches_and_those_that_did_are_named():
    assert found([said(1, "one two")], "three", "two", "ONE") == [("he", "one two", ["two", "ONE"])]


def test_empty_words_are_dropped_and_none_left_is_refused():
    assert terms(["", "a", " ", "a", "b "]) == ["a", "b "]
    with pytest.raises(NoWords, match="no words to look for - "):
        next(dialogue.said([], ["", " "]))


@pytest.mark.parametrize(
    "message",
    [
        said(1, "word", authorship="injected"),
        said(1, "word", authorship="injected", kind="command"),
        said(1, "word", replayed=True),
        said(1, "word", "system", "injected", kind="compaction"),
        said(1, "word", "tool", "tool"),
        said(1, "", "assistant", "model", thinking="word"),
        called(1, "mcp__total_recall__message_context", {"id": "word"}),
        called(1, "Bash", {"command": "tr-search word | jq ."}),
        called(1, "bash", {"command": "word"}, kind="command"),
        called(1, "Bash", {"word": "command"}),
    ],
)
def test_what_nobody_said_is_passed_over(message):
    assert found([message], "word") == []


def test_what_an_orchestrator_tells_a_sub_agent_is_hers():
    assert found([said(1, "word", authorship="delegated")], "word") == [("she", "word", ["word"])]


def test_a_record_with_a_text_and_calls_gives_a_hit_for_each():
    message = called(1, "Bash", {"command": "echo word"})
    message["content"] = "A word first"

    assert found([message], "word") == [("she", "A word first", ["word"]), ("they", "Bash: echo word", ["word"])]


def test_a_call_matches_by_its_name_and_by_values_anywhere_in_its_arguments():
    call = called(1, "Edit", {"file_path": "a.py", "edits": [{"new_string": 'say "word"\nagain', "count": 12}]})

    for word in ("edit", 'say "word"', "a.py", "12"):
        assert found([call], word) == [("they", "Edit a.py", [word])]
    assert found([called(1, "Edit", "broken {word")], "word") == [("they", "Edit: broken {word", ["word"])]


def test_consecutive_identical_calls_are_one_hit():
    once, again, other = (called(number, "Bash", {"command": "make word"}) for number in (1, 2, 5))
    between = called(4, "Bash", {"command": "make word again"})

    hits = dialogue.said([once, again, said(3, "no"), between, other], ["word"])

    assert [hit["id"] for hit in hits] == [1, 4, 5]


def test_the_same_call_in_another_session_is_another_hit():
    one, two = called(1, "Bash", {"command": "word"}), called(1, "Bash", {"command": "word"})
    two["session_id"] = "s2"

    assert len(found([one, two], "word")) == 2


def test_a_long_text_keeps_its_beginning_and_what_matched_in_sight():
    early = "word " + "x" * 3000
    late = "é" * 2000 + " word " + "日" * 2000
    last = "x" * 3000 + " word"

    assert cut(early, ["word"]) == early[:1497] + "…"
    assert "word" in cut(late, ["WORD"])
    assert cut(late, ["word"]).startswith("…é")
    assert cut(late, ["word"]).endswith("日…")
    assert cut(last, ["word"]).startswith("…xxx")
    assert cut(last, ["word"]).endswith("x word")


any_text = st.text(st.characters(exclude_categories=["Cs"]))
pieces = st.lists(st.sampled_from(["x" * 40, "é" * 30, "日" * 20, "ŒΩß" * 10, "\n", "🦔"]), max_size=20).map("".join)


@given(pieces, any_text.filter(lambda word: word and len(word.casefold()) < 8), pieces, st.integers(60, 300))
def test_a_cut_text_has_at_most_that_many_bytes_of_whole_characters_with_the_match_in_it(before, word, after, size):
    text = before + word + after
    short = cut(text, [word], size)

    assert len(short.encode()) <= size
    assert short == text if len(text.encode()) <= size else "…" in short
    assert short.strip("…") in text or short.startswith("…") or short.endswith("…")
    assert word.casefold() in short.casefold()
    assert short.removeprefix("…").removesuffix("…") in text


words = st.sampled_from(["word", "é", "git"])


@given(st.lists(st.builds(said, st.integers(1, 9), st.sampled_from(["a word", "É", "git", "", "nothing"]))), words)
def test_every_text_with_the_word_is_a_hit_and_no_other(messages, word):
    expected = [message["id"] for message in messages if word.casefold() in message["content"].casefold()]

    assert [hit["id"] for hit in dialogue.said(messages, [word])] == expected
