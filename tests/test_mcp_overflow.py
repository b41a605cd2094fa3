"""The flood cap: what of an answer is returned, and the file that keeps all of it."""

import os
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_wrapper import overflow
from mcp_wrapper.overflow import MARKER, MARKER_BYTES, Spool, cut_to_lines, marker, prune, report_name

DAY = 24 * 3600


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where overflow files go; not there yet."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "total-recall"


def spooled(most, *chunks, name="tool_all"):
    spool = Spool(most, name)
    for chunk in chunks:
        spool.take(chunk)
    return spool


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# -- what fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n", b"a", b"a\n", b"a\nb", b"0123456789", b"0123456789\n"])
def test_an_answer_that_fits_is_returned_as_it_is_and_leaves_no_file(folder, data):
    assert spooled(10, data).text(10, whole_only=False) == (data.decode().removesuffix("\n"), False)
    assert not folder.exists()


@pytest.mark.parametrize("chunks", [[b"0123456789\n", b"x"], [b"01234567890"], [b"0123456789", b"\n\n"]])
def test_one_byte_more_is_an_overflow(folder, chunks):
    spool = spooled(10, *chunks)

    assert spool.text(10, whole_only=False).is_cut
    spool.close()
    assert Path(spool.path).read_bytes() == b"".join(chunks)


def test_the_overflow_file_is_the_answer_byte_for_byte_and_private(folder):
    chunks = [b"line %d \xff\xe6\x97\n" % number for number in range(2000)]
    spool = spooled(1000, *chunks, name="list_sessions_all")
    spool.text(1000, whole_only=False)
    spool.close()

    [path] = folder.iterdir()
    assert str(path) == spool.path
    assert path.read_bytes() == b"".join(chunks)
    assert mode(path) == 0o600
    assert mode(folder) == 0o700
    assert path.name.startswith("list_sessions_all_")
    assert path.suffix == ".md"


def test_memory_holds_no_more_than_the_bound(folder):
    spool = spooled(100, *[b"x" * 65_536] * 50)

    assert len(spool.head) == 101
    assert spool.total == 50 * 65_536


CHUNKS = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace")),
        st.sampled_from([b"\n", b"{", f"{MARKER}\n".encode(), "日本😀語\n".encode(), b"\xff\xfe\n", b"a" * 300]),
    ),
    max_size=20,
)


@given(CHUNKS, st.integers(1, 400), st.booleans(), st.sampled_from(["replace", "question"]))
@settings(deadline=None)
def test_no_head_is_ever_larger_than_its_bound(chunks, most, whole_only, broken):
    spool = Spool(most, "property_all")
    spool.unkept = "no file for a property test"
    for chunk in chunks:
        spool.take(chunk)

    text, is_cut = spool.text(most, whole_only, broken)

    whole = b"".join(chunks).removesuffix(b"\n")
    assert len(text.encode()) <= most
    assert is_cut or text.replace("\\", "") == whole.decode("utf-8", broken).replace("\\", "")
    if is_cut:
        assert whole_only <= (text == "")
        assert text == "" or text.endswith("\n")
    assert not any(line.lstrip(" \t").startswith(MARKER) for line in text.splitlines())


@given(CHUNKS, st.integers(1, 400))
@settings(deadline=None)
def test_a_bound_that_the_command_has_kept_is_kept(chunks, most):
    """What stands for a broken byte is no longer than it, so that a text within its bytes stays whole."""
    data = b"".join(chunks).replace(MARKER.encode(), b"")[:most]
    spool = spooled(most, data)

    assert spool.text(most, whole_only=False, broken="question").is_cut is False


# -- where it is cut ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "room", "head"),
    [
        (b"one\ntwo\nthree\n", 9, "one\ntwo\n"),
        (b"one\ntwo\nthree\n", 8, "one\ntwo\n"),
        (b"one\ntwo\nthree\n", 7, "one\n"),
        (b"one long line without an end", 9, "one long\n"),
        ("ééééé".encode(), 6, "éé\n"),
        ("😀😀😀".encode(), 8, "😀\n"),
        ("日本語".encode(), 3, "\n"),
        (b'{"a":"one long line"}', 9, ""),
        (b'[{"a":1},{"a":2}]', 9, ""),
        (b'# {"header":1}\n{"a":"one long line"}', 20, '# {"header":1}\n'),
        (b"abc", 1, ""),
        (b"abc", 0, ""),
    ],
)
def test_the_cut_is_after_a_whole_line_and_never_inside_a_character_or_a_record(data, room, head):
    assert cut_to_lines(data, room) == head


def test_a_whole_document_is_never_torn(folder):
    spool = spooled(10, b'{"a":[1,2,3,4,5]}\n')

    assert spool.text(10, whole_only=True) == ("", True)


def test_what_reads_like_the_marker_is_escaped(folder):
    forged = f"a\n{MARKER}\n  {MARKER}\nb\r{MARKER}\u2028{MARKER}\nsaid {MARKER}\n"
    text = spooled(1000, forged.encode()).text(1000, whole_only=False).text

    assert text == f"a\n\\{MARKER}\n\\  {MARKER}\nb\r\\{MARKER}\u2028\\{MARKER}\nsaid {MARKER}"


def test_escaping_that_makes_an_answer_too_long_makes_it_an_overflow(folder):
    data = f"{MARKER}\n{MARKER}".encode()
    spool = spooled(len(data), data)

    text, is_cut = spool.text(len(data), whole_only=False)

    assert is_cut
    assert text == f"\\{MARKER}\n"
    assert Path(spool.path).read_bytes() == data


# -- the marker --------------------------------------------------------------------------------------------------------


def test_the_marker_says_one_fact_a_line(folder):
    spool = spooled(10, b"one\ntwo\nthree\nfour")
    head = spool.text(10, whole_only=False).text
    lines = marker("list_sessions", len(head) - 1, spool, "how to go on", "Bucket Distribution:\n1-10 | 5").split("\n")

    assert lines == [
        MARKER,
        "tool: list_sessions",
        "returned_bytes: 7",
        "total_bytes: 18",
        "total_lines: 4",
        f"full_report: {spool.path}",
        "note: how to go on",
        "",
        "Bucket Distribution:",
        "1-10 | 5",
    ]


@given(st.text(max_size=6000), st.integers(0, 10**15))
@settings(deadline=None)
def test_marker_and_histogram_are_bounded(histogram, size):
    spool = Spool(10, "x")
    spool.path = "/" + "p" * (MARKER_BYTES // 2 - 1)
    spool.written = size

    text = marker("do_android_dream_of_electric_sheep", 10, spool, "n" * 300, histogram.replace("\ud800", ""))

    assert len(text.encode()) <= MARKER_BYTES
    assert text.startswith(MARKER)


# -- the folder --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "stem"),
    [
        ("ses_1", "t_ses_1"),
        ("/etc/../x y", "t_etc_.._x_y"),
        ("日本\n", "t__"),
        ("a" * 300, "t_" + "a" * 80),
    ],
)
def test_a_scope_becomes_part_of_a_file_name_and_nothing_more(scope, stem):
    name = report_name("t", scope)

    assert name.replace("__", "_") == stem.replace("__", "_")
    assert "/" not in name


def test_files_of_one_second_have_names_of_their_own(folder):
    paths, threads = [], []

    def make():
        spool = spooled(1, b"much too long")
        spool.close()
        paths.append(spool.path)

    for _ in range(40):
        threads.append(threading.Thread(target=make))
        threads[-1].start()
    for thread in threads:
        thread.join()

    assert len(set(paths)) == 40
    assert all(Path(path).read_bytes() == b"much too long" for path in paths)


def test_a_looser_folder_of_our_own_is_made_private(folder):
    folder.mkdir(0o777)
    folder.chmod(0o777)
    spooled(1, b"much too long").close()

    assert mode(folder) == 0o700


def unkept(spool):
    """The answer is given and cut, and says that there is no file."""
    text, is_cut = spool.text(5, whole_only=False)
    assert (text, is_cut) == ("one\n", True)
    assert spool.path is None
    return marker("t", 3, spool, "n", "").split("\n")[5]


ANSWER = b"one\ntwo\nthree\n"


def test_a_folder_that_is_a_link_is_not_followed(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)

    said = unkept(spooled(5, ANSWER))

    assert said.startswith("full_report: not kept - ")
    assert "link" in said
    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_is_a_file_is_not_written(folder):
    folder.write_text("mine")

    assert "no folder" in unkept(spooled(5, ANSWER))
    assert folder.read_text() == "mine"


def test_a_folder_of_another_user_is_not_used(folder, monkeypatch):
    folder.mkdir()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    assert "another user" in unkept(spooled(5, ANSWER))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc", "/nonexistent/deep", "/dev/null"])
def test_a_folder_that_cannot_be_made_costs_only_the_file(place, monkeypatch):
    monkeypatch.setenv("TMPDIR", place)

    assert unkept(spooled(5, ANSWER)).startswith("full_report: not kept - ")


def test_a_full_disk_costs_only_the_file(folder, monkeypatch):
    def full(file, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(overflow, "_write", full)

    assert unkept(spooled(5, ANSWER, b"more")) == "full_report: not kept - No space left on device"
    assert list(folder.iterdir()) == []


def test_a_path_too_long_for_the_marker_is_not_used(tmp_path, monkeypatch):
    deep = tmp_path.joinpath(*["d" * 200] * 8)
    deep.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(deep))

    assert "too long" in unkept(spooled(5, ANSWER))


def test_an_overflow_file_is_never_written_through_a_link(folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    folder.mkdir()
    for moment in range(int(time.time()), int(time.time()) + 3):
        (folder / f"tool_all_{moment}.md").symlink_to(victim)
    spool = spooled(5, ANSWER)
    spool.close()

    assert victim.read_text() == "mine"
    assert Path(spool.path).read_bytes() == ANSWER
    assert spool.path.endswith("-1.md")


# -- pruning -----------------------------------------------------------------------------------------------------------


def aged(path, seconds):
    path.write_text("x")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_only_reports_older_than_a_day_are_pruned(folder, tmp_path):
    folder.mkdir()
    gone = [aged(folder / f"list_sessions_all_17000000{n}.md", DAY + 60) for n in ("00", "01-1", "02-12")]
    kept = [
        aged(folder / "list_sessions_all_1700000003.md", DAY - 60),
        aged(folder / "line_histogram.awk", 9 * DAY),
        aged(folder / "notes.md", 9 * DAY),
        aged(folder / "list_sessions_all_1700000003.md.bak", 9 * DAY),
    ]
    (folder / "a_b_1.md").mkdir()
    os.utime(folder / "a_b_1.md", (0, 0))
    target = aged(tmp_path / "target", 9 * DAY)
    (folder / "c_d_2.md").symlink_to(target)

    prune()

    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in [*kept, target, folder / "a_b_1.md", folder / "c_d_2.md"])


def test_pruning_makes_no_folder_and_follows_no_link(folder, tmp_path):
    prune()
    assert not folder.exists()

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    old = aged(elsewhere / "list_sessions_all_1700000000.md", 9 * DAY)
    folder.symlink_to(elsewhere)
    prune()

    assert old.exists()


def test_a_discarded_answer_leaves_nothing(folder):
    spool = spooled(5, ANSWER)
    spool.discard()

    assert list(folder.iterdir()) == []
