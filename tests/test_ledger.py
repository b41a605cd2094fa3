"""The summary ledger: rows that describe the session, or none at all; never half a block."""

import os
import stat
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample import ROOT
from total_recall import ledger as module
from total_recall.ledger import Block, Ledger, Locked, Slice, characters, sessions_with_summaries
from total_recall.notices import Notices
from total_recall.record import message, tool_call
from total_recall.shadow import safe_name
from total_recall.stores.registry import Refused

SESSION = "ses_1"


def ts(minute):
    return f"2026-11-30T21:{minute:02}:00.000Z"


def records(last, first=1, **changes):
    """A session of records with the ids from `first` to `last`: prompt, thinking, call, result, compaction, ..."""
    made = []
    for number in range(first, last + 1):
        kind = number % 5
        if kind == 1:
            record = message("vibe", SESSION, number, "user", ts(number), f"prompt {number}", authorship="human")
        elif kind == 2:
            record = message("vibe", SESSION, number, "assistant", ts(number), "é", thinking="hm", authorship="model")
        elif kind == 3:
            calls = [tool_call("c", "bash", {"command": "ls", "n": [1, None]}), tool_call("d", "x", "text")]
            record = message("vibe", SESSION, number, "assistant", ts(number), tool_calls=calls, authorship="model")
        elif kind == 4:
            record = message("vibe", SESSION, number, "tool", ts(number), "out", authorship="tool")
        else:
            record = message("vibe", SESSION, number, "system", None, "sum", authorship="model", kind="compaction")
        made.append(record | changes.get(f"r{number}", {}))
    return made


class Place:
    """A shadow folder and the ledger of one session in it."""

    def __init__(self, folder, session=SESSION):
        self.folder = folder / "shadow"
        self.session = session
        self.notices = Notices()

    def ledger(self):
        return Ledger(str(self.folder), "vibe", self.session, self.notices)

    def add(self, upto, text="a text"):
        with self.ledger().locked() as ledger:
            part = Slice(ledger.next_id)
            assert list(part.counted(records(upto, ledger.next_id))) == records(upto, ledger.next_id)
            return ledger.append(part, text)

    @property
    def csv(self):
        return self.folder / f"tr_{self.session}_summary.csv"

    @property
    def parts(self):
        return self.folder / f"tr_{self.session}_summary_parts"

    def said(self):
        return " ".join(self.notices.said)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


# -- the file and the status -----------------------------------------------------------------------------------


def test_a_ledger_is_rows_of_eleven_columns_without_a_heading(place):
    place.add(4, "first\n")
    place.add(7, "second")

    assert place.csv.read_text() == (
        f"1,{ts(1)},4,{ts(4)},1,2,1,1,47,11,part_001_004.md\n5,{ts(6)},7,{ts(7)},1,1,0,1,14,3,part_005_007.md\n"
    )
    assert (place.parts / "part_001_004.md").read_text() == "first\n"
    assert sorted(os.listdir(place.folder)) == [
        *("tr_ses_1_summary.csv", "tr_ses_1_summary.lock", "tr_ses_1_summary_parts")
    ]


def test_the_status_names_every_column_and_the_tail(place):
    place.add(4)
    ledger = place.ledger()
    tail = ledger.tail(records(6))

    assert ledger.status(tail) == {
        "session_id": SESSION,
        "harness": "vibe",
        "blocks": [
            {
                "from_id": 1,
                "from_ts": ts(1),
                "to_id": 4,
                "to_ts": ts(4),
                "user": 1,
                "assistant": 2,
                "tool": 1,
                "thinking": 1,
                "chars": 47,
                "tokens_est": 11,
                "part_file": str(place.parts / "part_001_004.md"),
            }
        ],
        "tail": {
            "from_id": 5,
            "from_ts": ts(6),
            "count": 2,
            "user": 1,
            "assistant": 0,
            "tool": 0,
            "thinking": 0,
            "chars": 11,
            "tokens_est": 2,
        },
    }
    assert list(ledger.status(tail)) == ["session_id", "harness", "blocks", "tail"]
    assert tuple(ledger.status(tail)["blocks"][0]) == Block._fields
    assert list(tail) == ["from_id", "from_ts", "count", "user", "assistant", "tool", "thinking", "chars", "tokens_est"]


def test_without_a_ledger_the_tail_is_the_session(place):
    ledger = place.ledger()

    assert ledger.tail(records(4)) == {
        "from_id": 1,
        "from_ts": ts(1),
        "count": 4,
        "user": 1,
        "assistant": 2,
        "tool": 1,
        "thinking": 1,
        "chars": 47,
        "tokens_est": 11,
    }
    assert ledger.next_id == 1
    assert ledger.through() is None
    assert not place.folder.exists()
    assert not place.notices.said


def test_the_tail_is_null_when_everything_is_covered(place):
    place.add(4)

    assert place.ledger().tail(records(4)) is None
    assert Place(place.folder / "x").ledger().tail([]) is None


def test_reading_and_counting_write_nothing(place):
    place.add(4)
    before = {path: path.stat().st_mtime_ns for path in place.folder.rglob("*")}
    ledger = place.ledger()
    ledger.status(ledger.tail(records(9)))
    list(ledger.composed())

    assert {path: path.stat().st_mtime_ns for path in place.folder.rglob("*")} == before


def test_through_is_what_a_session_row_shows(place):
    place.add(5)

    assert place.ledger().through() == {"through_id": 5, "through_ts": ts(4)}
    assert sessions_with_summaries(str(place.folder)) == {SESSION}
    assert sessions_with_summaries(str(place.folder / "nowhere")) == frozenset()


def test_the_text_has_a_heading_for_each_part_and_a_footer(place):
    place.add(4, "first\n")
    place.add(7, "\nsecond")
    ledger = place.ledger()

    assert "".join(ledger.composed()) + ledger.footer(ledger.tail(records(9))) == (
        f"### part 1: {ts(1)} → {ts(4)} (ids 1..4)\n\nfirst\n\n### part 2: {ts(6)} → {ts(7)} (ids 5..7)\n\nsecond\n\n"
        "summary cache: 2 blocks, ids 1..7; tail: 2 records from id 8 on, 36 characters, about 9 tokens\n"
    )
    assert ledger.footer(None) == "summary cache: 2 blocks, ids 1..7; tail: none, everything is summarised\n"


def test_a_model_cannot_fake_a_heading_or_the_footer(place):
    place.add(4, "x\n### part 9: now\nsummary cache: none\n")

    assert "".join(place.ledger().composed()).endswith("x\n\\### part 9: now\n\\summary cache: none\n\n")


# -- what is counted -------------------------------------------------------------------------------------------


def test_characters_are_those_of_content_thinking_and_arguments():
    calls = [tool_call("c", "n", {"a": "é"}), tool_call("c", "n", "torn {"), tool_call("c", "n", None)]
    record = message("x", "s", 1, "assistant", None, "four", thinking="hm", tool_calls=calls, authorship="model")

    assert characters(record) == len("four") + len("hm") + len('{"a":"é"}') + len("torn {")


def test_arguments_of_any_kind_are_counted():
    strange = [tool_call("c", "n", value) for value in ("\ud800", {"a": "\ud800"}, 1 << 70, 1.5, True, [])]

    assert characters(message("x", "s", 1, "assistant", None, tool_calls=strange, authorship="model")) > 0


def test_a_slice_without_times_has_empty_times(place):
    timeless = [record | {"ts": None} for record in records(4)]
    with place.ledger().locked() as ledger:
        part = Slice(1)
        list(part.counted(timeless))
        ledger.append(part, "text")

    assert place.csv.read_text().startswith("1,,4,,")
    ledger = place.ledger()
    assert ledger.tail(timeless) is None
    assert ledger.blocks
    assert ledger.status(None)["blocks"][0]["to_ts"] is None
    assert "### part 1: ? → ? (ids 1..4)" in "".join(ledger.composed())


def test_ids_with_gaps_are_no_gaps_between_blocks(place):
    """A call's id may be followed by one that is reserved for its result."""
    sparse = [record for record in records(12) if record["id"] not in (5, 6)]
    with place.ledger().locked() as ledger:
        for upto in (4, 8):
            part = Slice(ledger.next_id)
            list(part.counted(record for record in sparse if ledger.next_id <= record["id"] <= upto))
            ledger.append(part, "text")
    ledger = place.ledger()

    assert [(block.from_id, block.to_id) for block in ledger.blocks] == [(1, 4), (5, 8)]
    assert ledger.tail(sparse)["from_id"] == 9
    assert len(ledger.blocks) == 2


# -- doubt -----------------------------------------------------------------------------------------------------

GOOD = [f"1,{ts(1)},4,{ts(4)},1,2,1,1,47,11,part_001_004.md", f"5,{ts(6)},7,{ts(7)},1,1,0,1,14,3,part_005_007.md"]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (f"{GOOD[0]}\n{GOOD[1]}", "row 2 is cut"),
        (f"{GOOD[0]}\n{GOOD[1].rsplit(',', 1)[0]}\n", "row 2 has 10 columns"),
        (f"{GOOD[0]},x\n", "row 1 has 12 columns"),
        (f"1,4,part_001_004.md\n{GOOD[1]}\n", "row 1 has 3 columns"),
        (f"\n{GOOD[0]}\n", "row 1 has 1 columns"),
        (f"{','.join(Block._fields)}\n{GOOD[0]}\n", "from_id is no number"),
        (f"{GOOD[1]}\n", "begins at id 5, not at 1: gap"),
        (f"{GOOD[0]}\n{GOOD[0]}\n", "begins at id 1, not at 5: overlap"),
        (GOOD[0].replace(",47,11,", ",47,12,") + "\n", "counts do not agree"),
        (GOOD[0].replace(",1,2,1,", ",1,3,1,") + "\n", "counts do not agree"),
        (GOOD[0].replace(",47,", ",-47,") + "\n", "chars is no number"),
        (GOOD[0].replace(",47,", ",047,") + "\n", "chars is no number"),
        (GOOD[0].replace(ts(1), "yesterday") + "\n", "from_ts is no time"),
        (GOOD[0].replace("part_001_004.md", "../../etc/passwd") + "\n", "part file do not agree"),
        (GOOD[0].replace(",4,", ",0,", 1) + "\n", "part file do not agree"),
        (GOOD[0] + "\r\n", "part file do not agree"),
        (GOOD[0] + "\n\xff\n", "can't decode"),
        ("\0" * 100, "row 1 is cut"),
    ],
)
def test_a_ledger_that_is_not_as_written_counts_as_empty_with_a_notice(place, rows, why):
    place.add(4)
    place.add(7)
    place.csv.write_bytes(rows.encode("latin-1"))
    ledger = place.ledger()

    assert ledger.blocks == []
    assert why in ledger.doubt
    assert str(place.csv) in place.said()
    assert "counts as empty" in place.said()
    assert ledger.tail(records(9))["from_id"] == 1


@pytest.mark.parametrize("gone", ["part_001_004.md", "part_005_007.md"])
def test_a_part_that_is_gone_makes_the_ledger_count_as_empty(place, gone):
    place.add(4)
    place.add(7)
    (place.parts / gone).unlink()

    assert place.ledger().blocks == []
    assert f"{gone} is gone" in place.said()


def test_a_ledger_that_cannot_be_read_counts_as_empty(place):
    place.add(4)
    place.csv.unlink()
    place.csv.mkdir()

    assert place.ledger().blocks == []
    assert "Is a directory" in place.said()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"r2": {"content": "another"}}, "chars is"),
        ({"r2": {"thinking": None, "content": "éhm"}}, "thinking is 0, not 1"),
        ({"r2": {"role": "user"}}, "user is 2, not 1"),
        ({"r4": {"ts": ts(59)}}, f"record 4 is of {ts(59)}, not of {ts(4)}"),
    ],
)
def test_a_store_that_was_rewritten_makes_the_ledger_count_as_empty(place, change, why):
    place.add(4)
    place.add(7)
    ledger = place.ledger()
    tail = ledger.tail(records(9, **change))

    assert ledger.blocks == []
    assert why in place.said()
    assert (tail["from_id"], tail["count"]) == (1, 9)
    assert ledger.next_id == 1


def test_the_whole_is_counted_the_same_whether_it_was_in_blocks_or_not(place):
    place.add(4)
    place.add(7)
    ledger = place.ledger()
    changed = records(9, r6={"content": "longer than it was"})

    assert ledger.tail(changed) == Place(place.folder / "x").ledger().tail(changed)


@pytest.mark.parametrize("last", [0, 3, 4, 6])
def test_a_session_that_became_shorter_makes_the_ledger_count_as_empty(place, last):
    place.add(4)
    place.add(7)
    ledger = place.ledger()
    tail = ledger.tail(records(last))

    assert ledger.blocks == []
    assert (tail and tail["count"]) == (last or None)
    assert "there is no record" in place.said()


def test_a_record_that_lost_its_time_is_not_held_against_the_ledger(place):
    place.add(4)
    ledger = place.ledger()
    ledger.tail(records(4, r4={"ts": None}))

    assert ledger.blocks


def test_the_next_writer_moves_a_doubtful_ledger_and_its_parts_aside(place):
    place.add(4, "old text")
    place.csv.write_text("nonsense\n")
    place.add(7, "new text")

    assert (place.folder / f"{place.csv.name}.bad").read_text() == "nonsense\n"
    assert (place.folder / f"{place.parts.name}.bad" / "part_001_004.md").read_text() == "old text"
    assert [(block.from_id, block.to_id) for block in place.ledger().blocks] == [(1, 7)]
    place.csv.write_text("again\n")
    place.add(4)
    assert (place.folder / f"{place.csv.name}.bad").read_text() == "nonsense\n"
    assert (place.folder / f"{place.csv.name}.bad2").read_text() == "again\n"


# -- writing ---------------------------------------------------------------------------------------------------


def test_files_are_for_the_user_alone(place):
    umask = os.umask(0)
    try:
        place.add(4)
    finally:
        os.umask(umask)

    for path in (place.folder, *place.folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_dropping_removes_the_newest_row_and_its_part(place):
    place.add(4)
    place.add(7)
    with place.ledger().locked() as ledger:
        assert ledger.drop().from_id == 5
        assert ledger.next_id == 5
    assert [path.name for path in place.parts.iterdir()] == ["part_001_004.md"]
    assert place.ledger().next_id == 5
    with place.ledger().locked() as ledger:
        ledger.drop()
    assert place.ledger().blocks == []
    assert not place.csv.exists()
    assert not place.notices.said


def test_dropping_from_nothing_is_refused_naming_the_state(place):
    with place.ledger().locked() as ledger, pytest.raises(Refused, match="no block to drop: it has no summaries"):
        ledger.drop()


def test_dropping_from_a_doubtful_ledger_is_refused_and_leaves_it_there(place):
    place.add(4)
    place.csv.write_text("nonsense\n")
    with place.ledger().locked() as ledger, pytest.raises(Refused, match=r"counts as empty \(row 1 has 1 columns"):
        ledger.drop()

    assert place.csv.read_text() == "nonsense\n"


def test_a_block_that_does_not_follow_is_never_written(place):
    place.add(4)
    with place.ledger().locked() as ledger:
        for part in (Slice(4), Slice(6), Slice(5)):
            with pytest.raises(ValueError, match="cannot follow"):
                ledger.append(part, "text")

    assert place.ledger().next_id == 5


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6) | st.none(), max_size=12))
def test_after_any_adding_and_dropping_the_ledger_is_read_back_as_it_was(tmp_path_factory, steps):
    place = Place(tmp_path_factory.mktemp("ledger"))
    ends = []
    for step in steps:
        if step is not None:
            ends.append((ends[-1] if ends else 0) + step)
            place.add(ends[-1])
        elif ends:
            ends.pop()
            with place.ledger().locked() as ledger:
                ledger.drop()
        ledger = place.ledger()
        assert [block.to_id for block in ledger.blocks] == ends
        tail = ledger.tail(records(50))
        assert tail["from_id"] == (ends[-1] if ends else 0) + 1
        assert tail["count"] == 50 - (ends[-1] if ends else 0)
    assert not place.notices.said


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", ["append", "drop"])
def test_a_crash_at_any_instant_leaves_the_blocks_before_or_after(place, monkeypatch, step):
    """Every call that changes the file system is, in turn, the last one."""
    calls = ("replace", "unlink", "fsync", "makedirs")
    real = {name: getattr(os, name) for name in calls}
    outcomes = set()
    for last in range(12):
        for path in sorted(place.folder.rglob("*"), reverse=True) if place.folder.exists() else ():
            path.rmdir() if path.is_dir() else path.unlink()
        place.add(4)
        place.add(7)
        left = last

        def counted(name):
            def call(*words, **options):
                nonlocal left
                left -= 1
                if left < 0:
                    raise Crash
                return real[name](*words, **options)

            return call

        with monkeypatch.context() as patch:
            for name in calls:
                patch.setattr(os, name, counted(name))
            try:
                if step == "append":
                    place.add(9)
                else:
                    with place.ledger().locked() as ledger:
                        ledger.drop()
            except Crash:
                pass
        ends = tuple(block.to_id for block in place.ledger().blocks)
        assert ends in ((4, 7), (4, 7, 9) if step == "append" else (4,))
        outcomes.add(ends)
    assert len(outcomes) == 2
    assert not place.notices.said


def test_of_two_writers_the_second_is_told_at_once(place):
    place.add(4)
    with place.ledger().locked():
        script = (
            "import sys\nfrom total_recall.ledger import *\nfrom total_recall.notices import Notices\n"
            "try:\n with Ledger(sys.argv[1], 'vibe', 'ses_1', Notices()).locked(): print('held')\n"
            "except Locked as error: print(error)\n"
        )
        command = [sys.executable, "-c", script, str(place.folder)]
        child = {"env": os.environ | {"PYTHONPATH": str(ROOT / "lib")}, "capture_output": True, "text": True}
        refused = subprocess.run(command, **child).stdout
        assert "being written by another process" in refused
        assert f"{place.folder}/tr_ses_1_summary.lock is locked" in refused
        with pytest.raises(Locked), place.ledger().locked():
            pass
    assert subprocess.run(command, **child).stdout == "held\n"


def test_the_lock_of_a_killed_writer_is_free(place):
    place.add(4)
    script = (
        "import os, sys\nfrom total_recall.ledger import *\nfrom total_recall.notices import Notices\n"
        "with Ledger(sys.argv[1], 'vibe', 'ses_1', Notices()).locked(): os.kill(os.getpid(), 9)\n"
    )
    environ = os.environ | {"PYTHONPATH": str(ROOT / "lib")}
    assert subprocess.run([sys.executable, "-c", script, str(place.folder)], env=environ).returncode == -9

    with place.ledger().locked() as ledger:
        assert ledger.next_id == 5


def test_locked_reads_what_another_writer_added_meanwhile(place):
    ledger = place.ledger()
    place.add(4)
    with ledger.locked():
        assert ledger.next_id == 5


def test_a_system_without_flock_locks_by_another_call(place, monkeypatch):
    held = []

    class Windows:
        LK_NBLCK = 2

        @staticmethod
        def locking(handle, mode, count):
            if held:
                raise PermissionError(13, "Permission denied")
            held.append(handle)

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Windows)
    with place.ledger().locked(), pytest.raises(Locked), place.ledger().locked():
        pass
    assert held


# -- hostile ids -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ses_1aB", "0198-uuid-4c", "agent-1.2", "a..b", "...x", "x" * 200])
def test_a_plain_id_is_its_own_name(name):
    assert safe_name(name) == name


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("a/b", "a%2Fb"),
        ("..", "%2E%2E"),
        ("../x", "..%2Fx"),
        ("", "%"),
        ("a\0b\n", "a%00b%0A"),
        ("50%", "50%25"),
        ("é", "%C3%A9"),
    ],
)
def test_what_is_not_plain_is_escaped(session, name):
    assert safe_name(session) == name


names = st.text(st.characters(exclude_categories=()) | st.sampled_from("/.\\%\0\n x"), max_size=300)


@given(names, names)
def test_no_id_leaves_the_folder_and_no_two_share_a_name(one, other):
    name = safe_name(one)

    assert 0 < len(name.encode()) <= 200
    assert "/" not in name
    assert name.isprintable()
    assert name.isascii()
    assert name not in (".", "..")
    assert (name == safe_name(other)) == (one == other)


@pytest.mark.parametrize("session", ["../../x", "/etc/passwd", "a\nb", "..", "x" * 1000, "\ud800"])
def test_the_files_of_a_hostile_id_stay_in_the_folder(tmp_path, session):
    place = Place(tmp_path, session)
    place.add(4)

    assert [path.name for path in tmp_path.iterdir()] == ["shadow"]
    assert len(list(place.folder.iterdir())) == 3
    assert place.ledger().next_id == 5
    assert sessions_with_summaries(str(place.folder)) == {safe_name(session)}


def test_the_module_asks_no_model():
    assert "llm" not in vars(module)
