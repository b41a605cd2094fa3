"""Which sessions are meant, and in which order: by their ends, each looked at only as far as the order needs."""

import pytest
from linestore import LineStore, write_session
from total_recall.notices import Notices
from total_recall.record import message
from total_recall.selection import NoSession, Sessions, Window, rows, selected
from total_recall.stores.base import Memory
from total_recall.times import epoch

DAY = "2026-09-{:02d}T10:00:00.000Z"
NOW = epoch(DAY.format(28))


def wrote(root, session_id, day, modified=None, **about):
    moment = DAY.format(day)
    said = message("lines", "", 1, "user", moment, "hello", authorship="human")
    return write_session(root, session_id, [said], about, epoch(moment) + 1 if modified is None else modified)


@pytest.fixture
def store(tmp_path):
    return LineStore(tmp_path)


def ids(found):
    return [row["session_id"] for row, _, _ in found]


def test_a_row_comes_as_soon_as_nothing_newer_can_follow(store):
    for day in (1, 2, 3, 4):
        wrote(store.root, f"s{day}", day)

    first = next(rows(Sessions([store], Notices()), Window(), NOW))

    assert first[0]["session_id"] == "s4"
    assert {name for name, _ in store.walked} <= {"s4", "s3"}


class Counting(Memory):
    """Says which kinds of values were fetched at once."""

    def __init__(self):
        super().__init__()
        self.fetched = []

    def expect(self, kind):
        self.fetched.append(kind)


def test_rows_are_fetched_at_once_only_where_many_are_asked_for(store):
    for number in range(150):
        wrote(store.root, f"s{number}", 1 + number % 25)
    store.remember = Counting()
    listed = rows(Sessions([store], Notices()), Window(), NOW)

    next(listed)
    assert "row" not in store.remember.fetched
    assert len(list(listed)) == 149
    assert store.remember.fetched.count("row") == 1


def test_a_file_touched_long_after_its_last_record_stands_where_that_record_does(store):
    wrote(store.root, "old", 1, modified=NOW - 1)
    wrote(store.root, "new", 20)
    wrote(store.root, "middle", 10)

    assert ids(rows(Sessions([store], Notices()), Window(), NOW)) == ["new", "middle", "old"]


@pytest.mark.parametrize("modified", [0, 1_000_000_000])
def test_files_put_back_with_other_times_are_ordered_by_their_records(store, modified):
    for day in (3, 9, 6):
        wrote(store.root, f"s{day}", day, modified)
    sessions = Sessions([store], Notices())

    assert ids(rows(sessions, Window(), NOW)) == ["s9", "s6", "s3"]
    assert sessions.latest(NOW)[1].session_id == "s9"


def test_a_session_that_ends_in_the_future_is_ordered_by_the_time_of_its_file(store):
    wrote(store.root, "ahead", 30, modified=epoch(DAY.format(5)))
    wrote(store.root, "honest", 20)

    assert ids(rows(Sessions([store], Notices()), Window(), NOW)) == ["honest", "ahead"]


def test_two_copies_of_one_session_are_two_rows(tmp_path):
    stores = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        wrote(tmp_path / name, "same", 3)
        stores.append(LineStore(tmp_path / name))

    assert ids(rows(Sessions(stores, Notices()), Window(), NOW)) == ["same", "same"]


def test_a_window_reads_no_session_that_was_last_written_before_it(store):
    for day in (1, 2, 20):
        wrote(store.root, f"s{day}", day)

    assert ids(rows(Sessions([store], Notices()), Window(since=DAY.format(10)), NOW)) == ["s20"]
    assert {name for name, _ in store.walked} == {"s20"}


def test_an_exact_id_wins_then_a_prefix_then_a_part(store):
    for day, name in enumerate(("abc", "abcd", "xabc", "zz"), 1):
        wrote(store.root, name, day)
    notices = Notices()
    sessions = Sessions([store], notices)

    assert sessions.matching("abc")[1].session_id == "abc"
    assert sessions.matching("abcd")[1].session_id == "abcd"
    assert sessions.matching("xa")[1].session_id == "xabc"
    assert sessions.matching("z")[1].session_id == "zz"
    assert not notices.said
    assert sessions.matching("ab")[1].session_id == "abcd"
    assert [text for text in notices.said if "'ab' matches 2 sessions" in text and "others: abc (lines)" in text]


@pytest.mark.parametrize("asked", ["nothing", "", "\x00"])
def test_an_id_that_means_no_session_says_where_it_was_looked_for(store, asked):
    wrote(store.root, "abc", 1)

    with pytest.raises(NoSession, match="no session matching") as raised:
        Sessions([store], Notices()).matching(asked)
    assert store.root in str(raised.value)


def test_a_session_named_twice_is_visited_once(store):
    wrote(store.root, "abc", 1)
    wrote(store.root, "xyz", 2)
    stdin = [b'{"session_id":"abc","harness":"lines"}\n', b"xyz\n", b"\n", b"abc\n"]

    found = selected(Sessions([store], Notices()), ("xyz", "-"), stdin, NOW)

    assert [one.session.session_id for one in found] == ["xyz", "abc"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"session_id":', "is no reference"),
        (b'{"id":3}', "names no session_id"),
        (b'{"session_id":7}', "names no session_id"),
    ],
)
def test_a_line_that_is_no_reference_is_passed_over_with_a_word(store, line, said):
    wrote(store.root, "abc", 1)
    notices = Notices()

    found = list(selected(Sessions([store], notices), ("-",), [line + b"\n", b"abc\n"], NOW))

    assert [one.session.session_id for one in found] == ["abc"]
    assert [text for text in notices.said if text.startswith("line 1 of standard input") and said in text]
