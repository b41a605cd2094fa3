"""Big files by line size and position, under every awk there is; and the recipes' programs."""

import os
import re
import shutil
import subprocess

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded import recorded
from total_recall import histogram as module
from total_recall.histogram import histogram
from total_recall.notices import Notices
from total_recall.profile import profiled

KNOWN = (["mawk"], ["gawk"], ["busybox", "awk"], ["original-awk"])
AWKS = [["awk"], *(words for words in KNOWN if shutil.which(words[0]))]
every_awk = pytest.mark.parametrize("awk", AWKS, ids=" ".join)


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    """Every test works in a folder of its own, in a locale that counts characters."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    return tmp_path


def written(content, name="file"):
    with open(name, "wb") as file:
        file.write(content)
    return name


def tables(report):
    """The rows of both tables: (range, bytes) by position, and (range, lines, bytes) by size."""
    head, *parts = report.decode().split("\n\n")
    rows = [[line.split() for line in part.strip().split("\n")[1:]] for part in parts]
    position, size = rows[1:] or ([], [])  # the first part is the heading
    return head, [(row[0], int(row[1])) for row in position], [(row[0], int(row[1]), int(row[2])) for row in size]


@every_awk
def test_the_report(awk):
    lines = [b"\xc3\xa9" * 5, b"", b"x" * 99, b"y" * 500, b"\xff\x00\r", *[b"z"] * 20]

    report = histogram(written(b"\n".join(lines) + b"\n"), awk=awk).decode()

    assert report == (
        "File: file\n"
        "Bytes: 657\n"
        "Lines: 25\n"
        "Longest line: 4 (501 bytes)\n"
        "\n"
        "Bucket Distribution:\n"
        "\n"
        "lines                         bytes   share\n"
        "1-2                              12    1.8%\n"
        "3-5                             605   92.1%  ################\n"
        "6-7                               4    0.6%\n"
        "8-10                              6    0.9%\n"
        "11-12                             4    0.6%\n"
        "13-15                             6    0.9%\n"
        "16-17                             4    0.6%\n"
        "18-20                             6    0.9%\n"
        "21-22                             4    0.6%\n"
        "23-25                             6    0.9%\n"
        "\n"
        "bytes in a line             lines         bytes   share\n"
        "1-9                            22            45    6.8%  #\n"
        "10-99                           1            11    1.7%\n"
        "100-999                         2           601   91.5%  ################\n"
    )


contents = st.lists(
    st.sampled_from([b"", b"a", b"\xc3\xa9", b"\xff", b"\x00", b"\x01", b"\x01\x02", b"\r", b"\n", b"x" * 120])
).map(b"".join)


@given(contents)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_byte_is_counted_once_in_each_table_and_all_awks_agree(content):
    path = written(content)
    reports = {histogram(path, awk=awk) for awk in AWKS}

    assert len(reports) == 1
    head, position, size = tables(reports.pop())
    count = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    assert head.rstrip("\n").split("\n")[1:3] == [f"Bytes: {len(content)}", f"Lines: {count}"]
    assert sum(amount for _, amount in position) == len(content)
    assert sum(amount for _, _, amount in size) == len(content)
    assert sum(number for _, number, _ in size) == count
    bounds = [[int(end) for end in span.split("-")] for span, _ in position]
    lengths = [bound[-1] - bound[0] + 1 for bound in bounds]
    assert sum(lengths) == count
    assert not lengths or max(lengths) - min(lengths) <= 1


@given(contents, st.integers(1, 8), st.integers(0, 4))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_lines_come_byte_for_byte(content, start, more):
    path = written(content)
    lines = content.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines

    for awk in AWKS:
        if start > len(lines):
            with pytest.raises(ValueError, match=f"^line {start} is past the end: the file has {len(lines)} lines$"):
                histogram(path, line=start, awk=awk)
        else:
            assert histogram(path, line=start, awk=awk) == lines[start - 1] + b"\n"
            wanted = lines[start - 1 : start + more]
            assert histogram(path, start=start, end=start + more, awk=awk) == b"\n".join(wanted) + b"\n"


@every_awk
@pytest.mark.parametrize(
    "name", ["a=b", "-f", "-v", "x y", "back\\slash\\n", "new\nline", "é", "'", '"$x`', "-", "%s%d"]
)
def test_a_file_may_be_called_anything(awk, name):
    report = histogram(written(b"abc\n", name), awk=awk).decode()

    assert report.startswith(f"File: {name.replace(chr(10), '?')}\nBytes: 4\nLines: 1\n")
    assert histogram(name, line=1, awk=awk) == b"abc\n"


@every_awk
def test_the_report_stays_small(awk):
    """Whatever the sizes of the lines and the name."""
    name = "d" * 200 + "/" + "n" * 200
    os.mkdir("d" * 200)
    path = written(b"".join(b"x" * 10**power + b"\n" for power in range(7)) * 3, name)

    report = histogram(path, awk=awk)

    assert len(report) < 2000
    assert report.startswith(b"File: ..." + b"n" * 117 + b"\n")


@every_awk
def test_an_empty_file(awk):
    assert histogram(written(b""), awk=awk) == b"File: file\nBytes: 0\nLines: 0\n"


@every_awk
def test_the_program_alone_takes_a_file_with_an_equals_sign(awk):
    """Run as the comment on top of it says."""
    written(b"abc\n", "a=b.jsonl")
    program = os.path.join(module.folder(), "line_histogram.awk")

    done = subprocess.run([*awk, "-f", program, "a=b.jsonl"], capture_output=True, env=os.environ | {"LC_ALL": "C"})

    assert done.stdout.startswith(b"File: a=b.jsonl\nBytes: 4\nLines: 1\n")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"line": 0}, "line must be 1 or more, not 0 - lines are counted from 1"),
        ({"start": -1, "end": 3}, "start must be 1 or more, not -1 - lines are counted from 1"),
        ({"start": 1, "end": 0}, "end must be 1 or more, not 0 - lines are counted from 1"),
        ({"end": 3}, "end needs start - a range is start and end, one line is line"),
        ({"start": 3}, "start needs end - a range is start and end, one line is line"),
        ({"start": 3, "end": 2}, "start 3 is past end 2 - the first line of a range comes first"),
        ({"line": 1, "start": 1, "end": 2}, "line is one line, start and end are a range - give one or the other"),
        ({"line": 1, "end": 2}, "line is one line, start and end are a range - give one or the other"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_by_name(asked, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        histogram(written(b"a\n"), **asked)


def test_what_is_no_file_is_refused(somewhere):
    os.mkfifo("fifo")

    for name, message in (("gone", "no file at gone"), (".", "is a directory"), ("fifo", "is not a regular file")):
        with pytest.raises(ValueError, match=message):
            histogram(name)
    with pytest.raises(ValueError, match="there is no awk on the PATH"):
        histogram(written(b"a\n"), awk=["no-such-awk"])


def test_nothing_is_left_behind(somewhere, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(somewhere))
    monkeypatch.setattr("tempfile.tempdir", None)

    histogram(written(b"a\0b\n"))

    assert os.listdir(somewhere) == ["file"]


# -- recipes ---------------------------------------------------------------------------------------------------


def run(awk, program, lines):
    words = [*awk, "-f", os.path.join(module.folder(), program)]
    data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    done = subprocess.run(words, input=data, capture_output=True, check=True)
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


@pytest.fixture(scope="module")
def profiles():
    sessions = ("claude-git", "claude-todowrite", "codex-plan-and-git", "opencode-tags", "vibe-todos-and-git")
    row = {"file_size": 1, "line_count": 1, "start_time": None, "end_time": None, "has_tantivy_index": False}
    found = []
    for session in sessions:
        messages = recorded(session)
        known = {"harness": messages[0]["harness"], "session_id": session}
        found.append(profiled(((m["id"], m) for m in messages), row | known, Notices()))
    odd = found[0] | {
        "tools": {'a "quoted": 1, tool}': 3},
        "files": [{"path": 'odd "name",\\ {1}', "reads": 1, "writes": 9}],
        "interesting_events": [{"summary": '"tools":{"fake":99} "files":[{"path":"fake","reads":1,"writes":99}]'}],
    }
    return [*found, odd]


def as_json(text):
    return orjson.dumps(text).decode()[1:-1]


@every_awk
def test_tool_counts(awk, profiles):
    counts = {}
    for found in profiles:
        for tool, calls in found["tools"].items():
            total, sessions = counts.get(tool, (0, 0))
            counts[tool] = (total + calls, sessions + 1)
    expected = [[str(calls), str(sessions), as_json(tool)] for tool, (calls, sessions) in counts.items()]

    assert run(awk, "tool_counts.awk", profiles) == sorted(
        expected, key=lambda row: (-int(row[0]), -int(row[1]), row[2].encode())
    )


@every_awk
def test_churn(awk, profiles):
    counts = {}
    for found in profiles:
        for file in found["files"]:
            writes, reads, sessions = counts.get(file["path"], (0, 0, 0))
            counts[file["path"]] = (writes + file["writes"], reads + file["reads"], sessions + 1)
    expected = [[*map(str, amounts), as_json(path)] for path, amounts in counts.items() if amounts[0]]

    assert run(awk, "churn.awk", profiles) == sorted(
        expected, key=lambda row: (*(-int(amount) for amount in row[:3]), row[3].encode())
    )


@every_awk
def test_sessions_by_day(awk):
    fake = '"start_time":"1999-01-01T00:00:00.000Z","user_count":99'
    days = ["2026-11-30", "2026-11-29", "2026-11-30"]
    rows = [
        {"title": fake, "start_time": f"{day}T10:00:00.000Z", "user_count": 2, "assistant_count": 3, "tool_count": 40}
        for day in days
    ] + [{"title": None, "start_time": None, "user_count": 1, "tool_count": 0}]

    assert run(awk, "sessions_by_day.awk", rows) == [
        ["-", "1", "1", "0"],
        ["2026-11-29", "1", "2", "40"],
        ["2026-11-30", "2", "4", "80"],
    ]
