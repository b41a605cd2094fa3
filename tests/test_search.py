"""Search: filters hold on every path, results are deterministic, and nothing found is told from could not look."""

import os
import shutil

import orjson
import pytest
from linestore import LineStore, write_session
from total_recall.finding import Asked, Finder
from total_recall.index import Index
from total_recall.notices import Notices, Unreadable
from total_recall.patterns import BadPattern, Literal, Regex
from total_recall.query import Empty, parse
from total_recall.record import message, tool_call
from total_recall.search import A_SESSION
from total_recall.snippets import Span, cut, nearness, snippet
from total_recall.stores.base import Reference

DAY = "2026-09-{:02d}T10:00:00.000Z"
AUTHORS = {"user": "human", "assistant": "model", "tool": "tool", "system": "injected"}


def record(number, role, content="", day=None, **extra):
    extra.setdefault("authorship", AUTHORS[role])
    moment = extra.pop("ts", DAY.format(day or number))
    return message("lines", "", number, role, moment, content, **extra)


class Family(LineStore):
    """A store in which a session's parent stands in its `about`."""

    def parent(self, session):
        with open(session.path, "rb") as file:
            return orjson.loads(file.readline())["about"].get("parent")

    def describe(self, session, facts):
        return {key: value for key, value in super().describe(session, facts).items() if key != "parent"}


class World:
    def __init__(self, folder):
        self.folder = folder
        self.stores = {}
        self.notices = Notices()
        self.now = 1_800_000_000.0

    def write(self, session_id, *records, harness="lines", updated=1_790_000_000, **about):
        root = self.folder / harness
        root.mkdir(exist_ok=True)
        (self.folder / "shadow" / harness).mkdir(parents=True, exist_ok=True)
        for one in records:
            one["session_id"], one["harness"] = session_id, harness
        write_session(root, session_id, records, about, updated)
        self.stores[harness] = Family(root, harness, self.notices)

    def finder(self, *words, **asked):
        self.notices = Notices()
        stores = [Family(store.root, harness, self.notices) for harness, store in self.stores.items()]
        return Finder(Asked(words, **asked), stores, self.notices, self.shadow, self.now)

    def shadow(self, store):
        return str(self.folder / "shadow" / store.harness)

    def search(self, *words, **asked):
        self.last = self.finder(*words, **asked)
        return list(self.last.hits())

    def places(self, *words, **asked):
        return [(hit["session_id"], hit["id"]) for hit in self.search(*words, **asked)]

    @property
    def coverage(self):
        return self.last.coverage.record()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def told(world):
    """Three sessions about one thing."""
    world.write(
        "first",
        record(1, "user", "Why does the quokka census time out?"),
        record(2, "assistant", "", thinking="the quokka query scans the whole table"),
        record(3, "assistant", tool_calls=[tool_call("1", "Bash", {"command": "grep quokka census.log"})]),
        record(4, "tool", "census.log: quokka timeout after 30 s", tool_call_id="1", tool_name="Bash"),
        record(5, "assistant", "The quokka census needs an index."),
        title="Marsupials",
        directory="/home/dev/zoo",
    )
    world.write(
        "second",
        record(11, "user", "Rename the quokka table."),
        record(12, "assistant", "Done."),
        title="Quokka tables",
        directory="/home/dev/park",
    )
    world.write("child", record(20, "user", "Count every quokka.", authorship="delegated"), parent="first")
    return world


# -- hits ------------------------------------------------------------------------------------------------------


def test_a_hit_has_every_documented_key_in_its_order(told):
    hit = told.search("census index")[0]

    assert list(hit) == [
        "harness",
        "session_id",
        "id",
        "ts",
        "role",
        "class",
        "authorship",
        "tool_name",
        "score",
        "snippet",
        "matched",
        "title",
        "directory",
    ]
    assert hit | {"score": 0} == {
        "harness": "lines",
        "session_id": "first",
        "id": 5,
        "ts": DAY.format(5),
        "role": "assistant",
        "class": "model-text",
        "authorship": "model",
        "tool_name": None,
        "score": 0,
        "snippet": "The quokka census needs an index.",
        "matched": ["census", "index"],
        "title": "Marsupials",
        "directory": "/home/dev/zoo",
    }


def test_every_kind_of_text_is_found(told):
    classes = {hit["class"] for hit in told.search("quokka")}

    assert classes == {
        "human-text",
        "delegated-text",
        "reasoning",
        "tool-input",
        "tool-output",
        "model-text",
        "title",
    }


def test_a_match_in_the_thinking_is_marked(told):
    (hit,) = told.search("scans whole table", classes=("reasoning",))

    assert hit["class"] == "reasoning"
    assert hit["thinking"] is True


def test_a_title_is_a_hit_with_id_0_at_the_beginning_of_its_session(told):
    hits = [hit for hit in told.search("marsupials") if hit["class"] == "title"]

    assert [(hit["id"], hit["ts"], hit["role"]) for hit in hits] == [(0, DAY.format(1), None)]


def test_what_a_person_said_comes_before_what_a_tool_printed(world):
    world.write("tool", record(1, "tool", "numbat sighted", tool_name="Bash"))
    world.write("person", record(1, "user", "numbat sighted"))

    assert world.places("numbat") == [("person", 1), ("tool", 1)]


def test_of_equal_hits_the_most_recent_comes_first(world):
    for name, day in (("b", 3), ("a", 9), ("c", 5)):
        world.write(name, record(1, "user", "numbat", day=day))

    assert [place[0] for place in world.places("numbat")] == ["a", "c", "b"]


def test_the_same_search_gives_the_same_bytes(told):
    once = told.search("quokka census")

    shutil.rmtree(told.folder / "shadow" / "lines" / "index")

    assert told.search("quokka census") == once


def test_one_session_cannot_fill_the_list(world):
    world.write("crowd", *(record(n, "user", f"numbat number {n}", day=1) for n in range(1, 31)))
    world.write("other", record(1, "tool", "numbat", tool_name="Bash"))

    places = world.places("numbat")

    assert len([place for place in places if place[0] == "crowd"]) == A_SESSION
    assert ("other", 1) in places
    assert world.coverage["total_hits"] == 31
    assert len(world.places("numbat", limit=0)) == 31


def test_a_long_text_that_stands_in_two_sessions_is_one_hit(world):
    text = "numbat " + "the same long report " * 20
    world.write("original", record(1, "assistant", text, day=1))
    world.write("copy", record(1, "assistant", text, day=2))
    world.write("short", record(1, "assistant", "numbat"))

    hits = world.search("numbat")

    assert sorted(hit.get("duplicates", 0) for hit in hits) == [0, 1]
    assert len(hits) == 2
    assert len(world.search("numbat", limit=0)) == 3


def test_scores_of_two_stores_are_comparable(world):
    """A word that is rare in one store and common in the other weighs the same in both."""
    world.write("target", record(1, "user", "numbat report"), harness="small")
    for number in range(50):
        world.write(f"noise{number}", record(1, "user", f"numbat {number}"), harness="large")
    world.write("twin", record(1, "user", "numbat report"), harness="large")

    scores = {hit["session_id"]: hit["score"] for hit in world.search("numbat report", limit=0)}

    assert scores["target"] == pytest.approx(scores["twin"], rel=0.35)


def test_by_session_one_result_each_with_the_true_number(told):
    hits = told.search("quokka", group="session")

    first = next(hit for hit in hits if hit["session_id"] == "first")
    assert [hit["session_id"] for hit in hits].count("first") == 1
    assert first["hit_count"] == 5
    assert first["class"] == "human-text"
    assert set(first["classes"]) >= {"human-text", "reasoning", "tool-input", "tool-output"}
    assert len(first["hits"]) == 3
    assert set(first["hits"][0]) == {"id", "class", "snippet"}


def test_explain_gives_the_terms_the_weight_and_the_parts(told):
    explained = told.search("quokka census", explain=True)[0]["explain"]

    assert [term["word"] for term in explained["terms"]] == ["quokka", "census"]
    assert explained["class_weight"] == 2.5
    assert set(explained) == {"terms", "bm25", "class_weight", "coverage", "nearness"}


# -- words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["fetch_message_page", "fetchMessagePage", "fetch message page", "fetchmessagepage"])
@pytest.mark.parametrize("written", ["fetchMessagePage", "fetch_message_page", "fetch-message-page"])
def test_identifiers_meet_in_every_spelling(world, written, asked):
    world.write("s", record(1, "user", f"look at {written} please"))
    world.write("t", record(1, "user", "nothing of the kind"))

    assert world.places(asked) == [("s", 1)]


def test_a_typo_finds_the_word_unless_the_typo_is_a_word(world):
    world.write("s", record(1, "user", "the certificate has expired"))
    assert world.places("certifcate") == [("s", 1)]
    assert world.last.coverage.complete

    world.write("t", record(1, "user", "certifcate is misspelt here"))
    assert world.places("certifcate") == [("t", 1)]


def test_matched_says_what_was_matched_not_what_was_asked(world):
    world.write("s", record(1, "user", "the certificates have expired"))

    assert world.search("certifcate expires")[0]["matched"] == ["certificates", "expired"]


def test_a_phrase_is_words_in_a_row(world):
    world.write("row", record(1, "user", "a token bucket for each key"))
    world.write("apart", record(1, "user", "the bucket holds one token"))

    assert world.places('"token bucket"') == [("row", 1)]
    assert world.places('"bucket token"') == []


def test_operators(told):
    def sessions(query):
        return {place[0] for place in told.places(query, limit=0)}

    assert sessions("quokka -rename") == {"first", "second", "child"}
    assert ("second", 11) not in told.places("quokka -rename", limit=0)
    assert sessions("quokka AND census") == {"first"}
    assert sessions("+rename quokka") == {"second"}
    assert sessions("(rename OR count) AND quokka") == {"second", "child"}
    assert sessions("thinking:quokka") == {"first"}
    assert sessions("title:quokka") == {"second"}
    assert told.places("role:tool quokka") == [("first", 4)]
    assert told.places("session:second rename") == [("second", 11)]
    assert told.places("session:second") == [("second", 12), ("second", 11), ("second", 0)]


def test_a_word_in_cjk_of_one_or_two_characters(world):
    world.write("s", record(1, "user", "请检查数据库连接"))

    for asked in ("连接", "库", "数据库连接"):
        assert world.places(asked) == [("s", 1)]
    assert world.places("接连") == []


def test_a_query_without_words_is_searched_literally(world):
    world.write("s", record(1, "user", "well done 🎉"))

    assert world.places("🎉") == [("s", 1)]
    assert "literal" in world.coverage["query"]["parsed_as"]


def test_an_empty_query_is_refused(told):
    with pytest.raises(Empty):
        told.search(" ")


@pytest.mark.parametrize(
    "text", ["x" * 10_000, "a:b " * 2_500, '"' * 999, "(" * 500, "🎉 \ud83d", "\0", "-", "AND OR NOT"]
)
def test_no_query_is_an_error(told, text):
    told.search(text)


# -- filters ---------------------------------------------------------------------------------------------------

FILTERS = [
    ({"sessions": ("second",)}, lambda hit: hit["session_id"] == "second"),
    ({"roles": ("tool",)}, lambda hit: hit["role"] == "tool"),
    ({"classes": ("reasoning", "tool-input")}, lambda hit: hit["class"] in ("reasoning", "tool-input")),
    ({"tools": ("Bash",)}, lambda hit: hit["id"] in (3, 4)),
    ({"since": DAY.format(11)}, lambda hit: hit["ts"] >= DAY.format(11)),
    ({"until": DAY.format(4)}, lambda hit: hit["ts"] <= DAY.format(4)),
    ({"since": DAY.format(3), "until": DAY.format(11)}, lambda hit: DAY.format(3) <= hit["ts"] <= DAY.format(11)),
    ({"directory": "/park"}, lambda hit: hit["session_id"] == "second"),
    ({"excluded": ("second",)}, lambda hit: hit["session_id"] != "second"),
    ({"excluded": ("first",)}, lambda hit: hit["session_id"] == "second"),
    ({"excluded": ("child",)}, lambda hit: hit["session_id"] == "second"),
    ({"current": "child"}, lambda hit: hit["session_id"] == "second"),
    ({"roots": True}, lambda hit: hit["session_id"] != "child"),
]


@pytest.mark.parametrize("match", ["words", "literal", "regex"])
@pytest.mark.parametrize("group", ["hit", "session"])
@pytest.mark.parametrize(("given", "holds"), FILTERS, ids=[str(given) for given, _ in FILTERS])
def test_every_filter_holds_on_every_path(told, given, holds, match, group):
    """What is found with a filter is what is found without it and fits, titles aside."""
    everything = [hit for hit in told.search("quokka", match=match, limit=0) if hit["class"] != "title"]
    kept = {(hit["session_id"], hit["id"]) for hit in everything if holds(hit)}

    hits = [hit for hit in told.search("quokka", match=match, limit=0, group=group, **given) if hit["class"] != "title"]

    assert kept
    if group == "hit":
        assert {(hit["session_id"], hit["id"]) for hit in hits} == kept
    else:
        assert {hit["session_id"] for hit in hits} == {session for session, _ in kept}


def test_a_title_goes_with_its_session_in_time(told):
    def titles(**given):
        return [hit["session_id"] for hit in told.search("title:quokka", **given)]

    assert titles(since=DAY.format(12)) == ["second"]
    assert titles(since=DAY.format(13)) == []
    assert titles(until=DAY.format(10)) == []


def test_a_record_without_a_time_goes_with_its_session(world):
    world.write("s", record(5, "user", "numbat", ts=None), record(6, "user", "other"))

    for match in ("words", "literal"):
        assert world.places("numbat", since=DAY.format(6), match=match) == [("s", 5)]
        assert "1 hits without a time are there whatever --since and --until say" in world.notices.said
    assert world.places("numbat", since=DAY.format(7)) == []


def test_the_session_that_asks_is_left_out_and_that_is_said(told):
    told.search("quokka", current="first")

    assert told.coverage["skipped"] == {"current session": 2}
    assert any("current session" in text for text in told.notices.said)
    assert len(told.places("quokka", current="unknown", limit=0)) == len(told.places("quokka", limit=0))


def test_lineage_belongs_to_the_family(world):
    world.write("old", record(1, "user", "numbat"))
    world.write("new", record(1, "user", "numbat"), forked_from={"session_id": "old", "kind": "resume"})
    world.search("numbat")

    assert world.places("numbat", excluded=("new",)) == []


# -- freshness and coverage ------------------------------------------------------------------------------------


def test_a_search_is_never_stale(told):
    told.search("quokka")
    told.write("second", record(11, "user", "Rename the wombat table."), directory="/home/dev/park")
    os.unlink(told.folder / "lines" / "child.jsonl")

    assert told.places("wombat") == [("second", 11)]
    assert told.coverage["indexed_now"] == 1
    assert {session for session, _ in told.places("quokka", limit=0)} == {"first"}


def test_without_a_refresh_the_account_says_what_is_missing(told):
    told.search("quokka")
    told.write("fourth", record(1, "user", "quokka"))
    told.write("second", record(11, "user", "quokka and much more than before"))
    hits = told.search("quokka", refresh=False)

    coverage = told.coverage
    assert "fourth" not in {hit["session_id"] for hit in hits}
    assert (coverage["missing"], coverage["missing_sessions"]) == (1, ["fourth"])
    assert (coverage["stale"], coverage["stale_sessions"]) == (1, ["second"])
    assert coverage["complete"] is False
    assert coverage["index_age_seconds"] >= 0


def test_the_account_of_a_complete_search(told):
    told.search("quokka")
    told.search("quokka")

    assert told.coverage == {
        "sessions_known": 3,
        "in_scope": 3,
        "searched": 3,
        "indexed_now": 0,
        "stale": 0,
        "missing": 0,
        "unreadable": [],
        "skipped": {},
        "records_searched": 8,
        "total_hits": 8,
        "complete": True,
        "query": {"given": "quokka", "parsed_as": "quokka"},
    }


class Broken(Family):
    def entries(self, session, state, *, whole=False):
        if session.session_id == "second":
            raise Unreadable(session.path, "input/output error")
        return super().entries(session, state, whole=whole)


@pytest.mark.parametrize("match", ["words", "literal"])
def test_what_could_not_be_read_is_never_nothing(told, match):
    notices = Notices()
    store = Broken(told.folder / "lines", "lines", notices)
    finder = Finder(Asked(("rename",), match=match), [store], notices, told.shadow, told.now)

    assert list(finder.hits()) == []
    coverage = finder.coverage.record()
    assert coverage["unreadable"] == [{"session_id": "second", "error": "input/output error"}]
    assert coverage["complete"] is False
    assert "second" in notices.failures


def test_a_search_without_a_folder_for_an_index_still_answers(told):
    told.shadow = lambda store: None

    assert ("second", 11) in told.places("rename")
    assert any("for this search alone" in text for text in told.notices.said)


def test_while_another_process_writes_what_is_there_is_searched(told):
    told.search("quokka")
    told.write("fourth", record(1, "user", "quokka"))
    index = Index.open(str(told.folder / "shadow" / "lines"), Notices())

    with index.writing():
        hits = told.search("quokka")

    assert hits
    assert told.coverage["missing_sessions"] == ["fourth"]
    assert any("is being written by" in text for text in told.notices.said)


def test_when_the_index_cannot_be_written_what_is_there_is_searched(told, monkeypatch):
    told.search("quokka")
    told.write("fourth", record(1, "user", "quokka"))

    def full(*_):
        raise ValueError("An IO error occurred: 'No space left on device'")

    monkeypatch.setattr("total_recall.indexing.Indexed.finish", full)
    hits = told.search("quokka")

    assert hits
    assert told.coverage["missing_sessions"] == ["fourth"]
    assert told.coverage["indexed_now"] == 0
    assert "No space left" in told.notices.failures["lines"]


@pytest.mark.parametrize("suffix", ["term", "idx", "pos", "store", "fast", "fieldnorm"])
def test_bytes_that_rot_in_the_index_are_noticed_at_the_latest_when_they_hurt(told, suffix):
    hits = told.search("quokka census")
    for path in (told.folder / "shadow" / "lines" / "index").glob(f"*.{suffix}"):
        data = bytearray(path.read_bytes())
        data[: len(data) // 2] = b"\xa5" * (len(data) // 2)
        path.write_bytes(data)

    found = told.search("quokka census")

    assert [hit["id"] for hit in found] == [hit["id"] for hit in hits] or suffix == "fieldnorm"
    assert suffix == "fieldnorm" or any("damaged" in text for text in told.notices.said)


def test_a_record_that_is_gone_since_is_no_error(told):
    told.search("quokka")
    finder = told.finder("quokka", refresh=False)
    for path in (told.folder / "lines").iterdir():
        if path.suffix == ".jsonl":
            path.write_bytes(b"{}\n")

    assert all(isinstance(hit["snippet"], str) for hit in finder.hits())


def test_suggestions_are_command_lines_that_find_something(told):
    told.search("quokka", roles=("system",), since=DAY.format(2), limit=5)
    suggestions = told.coverage["suggestions"]

    assert [s["reason"] for s in suggestions] == ["without --role"]
    assert suggestions[0]["command"] == f"tr-search --since={DAY.format(2)} -- quokka"

    told.search("quokka", since="2026-12-01T00:00:00.000Z")
    assert told.coverage["suggestions"][0] == {"reason": "a wider window", "command": "tr-search -- quokka"}


def test_a_suggestion_spells_an_unknown_word_as_the_index_does(told):
    told.search("qouukka")

    assert told.coverage["suggestions"] == [{"reason": "another spelling", "command": "tr-search -- quokka"}]


def test_nothing_to_suggest_is_nothing_said(told):
    told.search("zzzzzzzzzz")

    assert "suggestions" not in told.coverage


# -- complete scans --------------------------------------------------------------------------------------------


def test_a_scan_tests_every_text_and_counts_every_match(told):
    hits = told.search("QUOKKA", match="literal")

    assert {(hit["session_id"], hit["id"], hit["class"]) for hit in hits} == {
        ("first", 1, "human-text"),
        ("first", 2, "reasoning"),
        ("first", 3, "tool-input"),
        ("first", 4, "tool-output"),
        ("first", 5, "model-text"),
        ("second", 11, "human-text"),
        ("child", 20, "delegated-text"),
    }
    assert told.coverage["total_hits"] == 7
    told.search("quokka", match="literal", limit=2)
    assert told.coverage["total_hits"] == 7


def test_a_scan_goes_from_the_most_recent_session_on_and_in_the_order_of_the_stream(world):
    world.write("old", record(1, "user", "numbat"), record(2, "user", "numbat"), updated=1000)
    world.write("new", record(1, "user", "numbat"), updated=2000)

    assert world.places("numbat", match="literal") == [("new", 1), ("old", 1), ("old", 2)]


def test_a_scan_streams(told):
    finder = told.finder("quokka", match="literal")

    next(finder.hits())

    assert len({session for session, _ in finder.stores[0].walked}) == 1


def test_a_scan_tests_arguments_as_json_and_tool_names(world):
    call = tool_call("1", "mcp__zoo__count", {"name": "numbat", "deep": {"n": 3}})
    world.write("s", record(1, "assistant", tool_calls=[call]))

    for asked in ('{"name":"numbat","deep":{"n":3}}', "zoo__count"):
        assert world.places(asked, match="literal") == [("s", 1)]


@pytest.mark.parametrize(
    ("asked", "found"), [("quokka$", 0), (r"quokka \w+ time", 1), ("(?i)RENAME", 1), ("RENAME", 0)]
)
def test_regular_expressions(told, asked, found):
    assert len(told.search(asked, match="regex")) == found


@pytest.mark.parametrize("pattern", ["(", "[a", "a**", r"\1", "(?=x)"])
def test_what_is_no_regular_expression_is_refused_with_its_reason(pattern):
    with pytest.raises(BadPattern, match="no regular expression"):
        Regex(pattern)


def test_a_hostile_pattern_takes_linear_time():
    assert Regex("(a*)*b").find("a" * 100_000) is None


@pytest.mark.parametrize(
    ("text", "needle", "shown"),
    [
        ("abc İstanbul", "istanbul", None),
        ("STRASSE", "strasse", "STRASSE"),
        ("x ΑΒΓ", "αβγ", "ΑΒΓ"),
        ("İİ Kiwi", "kiwi", "Kiwi"),
    ],
)
def test_a_literal_is_found_whatever_its_case(text, needle, shown):
    span = Literal(needle).find(text)

    assert (text[slice(*span)] if span else None) == shown


@pytest.mark.parametrize(
    ("content", "needle", "may"),
    [
        (b'{"text":"a quokka"}', "Quokka", True),
        (b'{"text":"a wombat"}', "quokka", False),
        (b'{"text":"quo\\u006bka"}', "quokka", True),
        ('{"text":"quo\u212aka"}'.encode(), "quokka", True),
        (b'{"text":"a wombat"}', "5 %", True),
        (b'{"text":"a wombat"}', "48123 bytes", True),
        (b'{"text":"a wombat"}', "bash", True),
    ],
)
def test_a_file_is_passed_over_only_when_it_cannot_hold_the_text(tmp_path, content, needle, may):
    path = tmp_path / "session.jsonl"
    path.write_bytes(b" " * 1_048_570 + content)

    assert Literal(needle).may_stand_in(str(path)) is may


def test_a_scan_passes_over_files_by_their_bytes(told):
    class Plain(Family):
        def text_files(self, session: Reference):
            return session.files

    store = Plain(told.folder / "lines", "lines", told.notices)
    finder = Finder(Asked(("rename",), match="literal"), [store], told.notices, told.shadow, told.now)

    assert [hit["session_id"] for hit in finder.hits()] == ["second"]
    assert [session for session, _ in store.walked] == ["second", "second"]  # the second time for its row
    assert finder.coverage.record()["ruled_out_by_bytes"] == 2


# -- snippets --------------------------------------------------------------------------------------------------


def spans_of(text, *words):
    return [Span(text.index(w), text.index(w) + len(w), number, w) for number, w in enumerate(words)]


def test_a_snippet_is_cut_round_the_densest_span():
    text = "alpha " + "filler " * 100 + "alpha beta " + "filler " * 100 + "beta"
    spans = [
        Span(0, 5, 0, "alpha"),
        Span(text.index("alpha beta"), text.index("alpha beta") + 5, 0, "alpha"),
        Span(text.index("beta"), text.index("beta") + 4, 1, "beta"),
        Span(len(text) - 4, len(text), 1, "beta"),
    ]

    shown = snippet(text, spans, [1.0, 1.0], 60)

    assert "alpha beta" in shown
    assert len(shown) <= 62
    assert shown.startswith("…")
    assert shown.endswith("…")


@pytest.mark.parametrize("text", ["", "x", "é" * 500, "🎉" * 500, "检" * 500, "a\n" * 300, "word " * 200])
@pytest.mark.parametrize("width", [20, 200])
def test_a_snippet_is_one_line_of_about_the_width(text, width):
    shown = snippet(text, [], [], width)

    assert "\n" not in shown
    assert len(shown) <= width + 2


def test_a_cut_keeps_what_it_is_about():
    text = "x" * 300 + " needle " + "y" * 300

    assert "needle" in cut(text, 250, 350, 301, 307)


def test_a_word_deep_in_a_long_text_is_shown_and_matched(world):
    text = "filler words " * 4000 + "the fetchNumbat census " + "more filler " * 1000
    world.write("s", record(1, "user", text))

    (hit,) = world.search("numbat census")

    assert "fetchNumbat census" in hit["snippet"]
    assert hit["matched"] == ["numbat", "census"]


def test_outputs_that_are_indexed_in_part_are_counted(world):
    world.write("s", record(1, "tool", "numbat " + "x " * 80_000, tool_name="Bash"))

    world.search("numbat")

    assert world.coverage["outputs_cut"] == 1


def test_nearness_is_1_side_by_side_and_less_further_apart():
    near = "token bucket"
    far = "token " + "x " * 50 + "bucket"

    assert nearness(spans_of(near, "token", "bucket"), 2) == 1.0
    assert 0 < nearness(spans_of(far, "token", "bucket"), 2) < 0.3
    assert nearness(spans_of(near, "token"), 2) == 0.0
    assert nearness(spans_of(near, "token"), 1) == 0.0


def test_the_query_is_read_the_same_by_words_and_account(told):
    told.search("quokka -rename")

    assert told.coverage["query"]["parsed_as"] == parse("quokka -rename").reading()
