"""A literal is looked for in the index first: what that rules out is not read; nothing that matches is ruled out."""

import random
import sys

import pytest
from test_search import World, record
from total_recall import analysis
from total_recall.index import Index
from total_recall.notices import Notices
from total_recall.passages import OUTPUT_HEAD, OUTPUT_TAIL
from total_recall.record import encoded, tool_call
from total_recall.traces import _LETTERS, traces

_AWKWARD = (
    *("quokka", "fetchMessagePage", "fetch_page", "ECONNREFUSED", "true", "null", "x" * 64, "7f3a" * 16, "Ǧ", "é", "Ü"),
    *(
        "İ",
        "ı",
        "ẞ",
        "ß",
        "ς",
        "Σ",
        "ΟΔΟΣ",
        "ж",
        "Щ",
        "й",
        "漢",
        "字",
        "カ",
        "が",
        "가",
        "ᄀ",
        "ท",
        "ที่",
        "👩‍💻",
        "─" * 30,
    ),
    *("\x1b", "\x00", "\x7f", "\n", "\t", "\r\n", "\\", '"', "\\n", "\\u001b", "/", "_", "-", ".", " ", " ", " ", ":"),
    *("{", "\u2013", "\u2028", "…", "½", "①", "²", "\ufb01", "🅰", "ⅷ", "n", "u", "0", "b", "e", "1e16"),
)
_OPAQUE = (
    "x" * 65,
    "e" * 140,
    "7f3a" * 20,
    "g\u030c",
    "e\u0301",
    "q\u0301",
    "\u212a",
    "\uf9d8",
    "か\u3099",
    "ᄒ\u1161\u11ab",
)


def awkward(chance, pieces):
    known = _AWKWARD if chance.random() < 0.95 else _AWKWARD + _OPAQUE
    return "".join(chance.choice(known) for _ in range(pieces))


def arguments(chance):
    values = (awkward(chance, 6), 12345678, 1e16, -1.5e-5, True, None, {awkward(chance, 2): [awkward(chance, 4), 7]})
    return {awkward(chance, 2): chance.choice(values) for _ in range(3)}


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def indexed(world):
    for store in world.finder("x").stores:
        list(Index.open(world.shadow(store), Notices()).refresh(store, store.sessions()))


def unread(world):
    """The sessions that the last search did not walk through."""
    store = world.last.stores[0]
    return {session.session_id for session in store.sessions()} - {name for name, _ in store.walked}


def test_no_literal_that_stands_in_a_text_is_missed(world):
    chance = random.Random(20260901)
    texts = {}
    for number in range(40):
        content, thinking = awkward(chance, 12), awkward(chance, 5)
        given = arguments(chance)
        call = tool_call("1", "Bash", given)
        name = f"s{number}"
        world.write(name, record(1, "assistant", content, thinking=thinking, tool_calls=[call]))
        texts[name] = (content, thinking, encoded(given).decode())
    slices = []
    for text in (text for three in texts.values() for text in three):
        for _ in range(2):
            start = chance.randrange(len(text))
            slices.append(text[start : start + chance.choice((1, 3, 5, 9, 20))])
    without = {literal: world.places(literal, match="literal", limit=0) for literal in slices}
    indexed(world)

    left_out = 0
    for literal, places in without.items():
        assert world.places(literal, match="literal", limit=0) == places, (literal, traces(literal))
        left_out += len(unread(world))

    assert left_out > len(without)


@pytest.mark.parametrize(
    "literal",
    [
        '"path":"',
        "npath",
        '"a\\nbc',
        "nbcd",
        "u001bred",
        "1bred",
        "001bred",
        "\\u001bred",
        ":12.5,",
        "5e-7",
        "true,",
        "BCD",
    ],
)
def test_what_only_the_json_of_arguments_says_is_not_missed(literal, world):
    call = tool_call("1", "Bash", {"path": "a\nbcd", "x\npath": "\x1bred", "n": 12.5, "m": 2.5e-7, "t": True, "z": 0})
    world.write("s", record(1, "assistant", tool_calls=[call]))
    indexed(world)

    assert world.places(literal, match="literal") == [("s", 1)]


def test_the_middle_of_a_long_output_is_not_missed(world):
    """Neither inside of what is left out of the index nor across its ends."""
    parts = ["numbat "] * ((OUTPUT_HEAD + OUTPUT_TAIL) // 7 * 2)
    text = "".join(parts)
    places = {"head": OUTPUT_HEAD, "middle": len(text) // 2, "tail": len(text) - OUTPUT_TAIL}
    for word, place in places.items():
        text = f"{text[: place - 6]} x{word}quokkas {text[place + len(word) + 4 :]}"
    world.write("long", record(1, "tool", text, tool_call_id="1", tool_name="Bash"))
    world.write("other", record(1, "user", "numbat"))
    indexed(world)

    for word in places:
        assert world.places(f" x{word}quokkas ", match="literal") == [("long", 1)]
        assert world.places(f"{word}quokka", match="literal") == [("long", 1)]
        assert unread(world) == {"other"}


def test_sessions_that_the_index_rules_out_are_not_read(world):
    for number in range(30):
        world.write(f"s{number}", record(1, "user", f"The wombat counts to {number + 1000}."))
    indexed(world)

    assert world.places("wombat counts to 1007", match="literal") == [("s7", 1)]
    assert len(unread(world)) == 29
    assert world.coverage["ruled_out_by_index"] == 29
    assert "29 ruled out by the index" in world.last.coverage.line()


def test_a_session_that_changed_since_it_was_indexed_is_read(world):
    world.write("s", record(1, "user", "numbat"))
    world.write("t", record(1, "user", "numbat"))
    indexed(world)
    world.write("s", record(1, "user", "numbat"), record(2, "user", "quokka"), updated=1_790_000_001)

    assert world.places("quokka", match="literal") == [("s", 2)]
    assert unread(world) == {"t"}


@pytest.mark.parametrize("text", ["f" * 65, "cafe\u0301", "quokka " + "0" * 200], ids=["long", "composed", "digits"])
def test_a_session_whose_words_do_not_tell_all_is_read(text, world):
    world.write("s", record(1, "user", text))
    world.write("t", record(1, "user", "numbat"))
    indexed(world)

    assert world.places(text[-4:], match="literal") == [("s", 1)]
    assert "s" not in unread(world)


def test_a_regular_expression_is_not_ruled_out(world):
    world.write("s", record(1, "user", "numbat"))
    indexed(world)

    assert world.places("n.mb", match="regex") == [("s", 1)]


@pytest.mark.parametrize("damage", ["emptied", "cut", "gone"])
def test_a_damaged_index_rules_nothing_out(damage, world):
    world.write("s", record(1, "user", "numbat"))
    indexed(world)
    for path in (world.folder / "shadow" / "lines" / "index").iterdir():
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[: 0 if damage == "emptied" else path.stat().st_size // 2])

    assert world.places("numbat", match="literal") == [("s", 1)]


def test_every_capital_of_a_letter_is_one_word_with_it():
    """A letter that a trace may hold comes from nothing that the engine takes for anything else."""
    import re

    letter = re.compile(f"[{_LETTERS}]")
    checked = 0
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        lowered = character.lower()
        if not letter.search(lowered) or analysis.is_opaque(character, analysis.prepared(character)):
            continue
        checked += 1
        found = letter.search(lowered)[0]
        (word,) = analysis.terms(f"x{character}x")
        assert analysis.terms(found)[0] in word, character
        assert word == f"x{analysis.terms(found)[0]}x" or lowered != found, character
    assert checked > 200
