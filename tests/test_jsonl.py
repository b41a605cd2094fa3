"""Lines of JSON: what damage leaves is read, and the rest is counted."""

import os
import threading

import orjson
import pytest
from total_recall.notices import Notices, Unreadable
from total_recall.regular import open_regular
from total_recall.stores._jsonl import Lines


def known(value):
    return "type" in value and "n" in value


def read(path, **options):
    notices = Notices()
    lines = Lines(str(path), notices, known, **options)
    return list(lines), list(notices.said), lines.offset


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines.jsonl"

    def write(data):
        path.write_bytes(data)
        return path

    return write


def values(data, file, **options):
    return [value for _, _, value in read(file(data), **options)[0]]


def test_an_offset_is_where_the_line_begins_and_the_next_read_goes_on_there(file):
    path = file(b'{"n":1}\n\n{"n":2}\r\n{"n":3}\n')

    found, said, end = read(path)

    assert [(offset, line) for offset, line, _ in found] == [(0, b'{"n":1}'), (9, b'{"n":2}'), (18, b'{"n":3}')]
    assert said == []
    assert end == path.stat().st_size
    assert [value for _, _, value in read(path, offset=9)[0]] == [{"n": 2}, {"n": 3}]


@pytest.mark.parametrize(
    ("damage", "left"),
    [
        (b'{"n":2,"te', [1, 3]),
        (b"\0" * 300, [1, 3]),
        (b'\0\0\0{"n":2}\0\0', [1, 2, 3]),
        (b'{"n":2}\r', [1, 2, 3]),
        (b"not json", [1, 3]),
        (b'{"n":' * 5000, [1, 3]),
        (b"[" * 100_000 + b"]" * 100_000, [1, 3]),
        (b'{"n":2,"x":1e400}', [1, 2, 3]),
        (b'{"n":2,"x":NaN}', [1, 2, 3]),
        (b'{"n":2,"n":2}', [1, 2, 3]),
        (b'{"n":2,"x":"\\ud83d"}', [1, 2, 3]),
        (b'{"n":2,"x":"\xff\xfe"}', [1, 2, 3]),
        (b'{"n":2,"x":"a\tb\x01"}', [1, 2, 3]),
        (b'{"n":2,"x":"\xe2\x80\xa8\xc2\x85"}', [1, 2, 3]),
        (b'{"n":2,"x":99999999999999999999999}', [1, 2, 3]),
    ],
)
def test_a_damaged_line_costs_itself_and_no_other(damage, left, file):
    found = values(b'{"n":1}\n' + damage + b'\n{"n":3}\n', file)

    assert [value["n"] for value in found if value] == left


def test_bad_lines_are_counted_in_one_notice_with_the_first_ones_number(file):
    path = file(b'{"n":1}\nbad\n{"n":2}\n"a string"\n')

    _, said, _ = read(path)

    assert said == [f"{path}:2: 2 damaged lines, this is the first; everything else was read"]


def test_a_line_of_which_nothing_can_be_made_is_a_json_string(file):
    found, _, _ = read(file(b'{"broken": "x\xff\n'))

    assert [(orjson.loads(line), value) for _, line, value in found] == [('{"broken": "x\ufffd', None)]


def test_every_line_is_json_whatever_the_source_held(file):
    path = file(b'{"n":1,"x":"a\x01b"}\n\xef\xbb\xbf\n{"n":2,"x":"\\ud83d"}\nnope\n{"n":NaN}\n')

    for _, line, _ in read(path)[0]:
        assert b"\n" not in line
        if b"NaN" not in line and b"ud83d" not in line:
            orjson.loads(line)


@pytest.mark.parametrize("blank", ["\x0c", "\x0b", "\x1c", "\x85", "\u2028", "\u3000"])
def test_a_blank_that_json_has_not_is_no_part_of_a_line(blank, file):
    found, _, _ = read(file(f'{{"n":1}}{blank}\n{blank}{{"n":2}}\n'.encode()))

    assert [line for _, line, _ in found] == [b'{"n":1}', b'{"n":2}']


def test_a_byte_order_mark_is_no_damage(file):
    found, said, _ = read(file(b'\xef\xbb\xbf{"n":1}\n{"n":2}\n'))

    assert [value for _, _, value in found] == [{"n": 1}, {"n": 2}]
    assert said == []


def test_a_record_glued_to_the_stub_of_a_torn_one_is_recovered(file):
    glued = b'{"type":"a","n":1,"text":"half a sen{"type":"a","n":2,"x":{"y":1}}\n{"type":"a","n":3}\n'
    path = file(glued)

    found, said, _ = read(path)

    assert [value["n"] for _, _, value in found] == [2, 3]
    assert said == [f"{path}:1: 1 damaged line, this is the first; everything else was read"]


def test_two_records_on_one_line_are_two_records(file):
    assert values(b'{"type":"a","n":1}{"type":"a","n":2}\n', file) == [{"type": "a", "n": 1}, {"type": "a", "n": 2}]


def test_a_piece_of_a_torn_record_is_not_taken_for_a_record(file):
    assert values(b'{"type":"a","n":1,"message":{"role":"user"}\n', file) == [None]


def test_an_incomplete_last_line_is_a_notice_of_its_own(file):
    path = file(b'{"n":1}\n{"n":2,"te')

    found, said, _ = read(path)

    assert [value for _, _, value in found] == [{"n": 1}, None]
    assert said == [f"{path}:2: the last line is incomplete (still being written, or cut)"]


def test_whole_leaves_an_unterminated_line_for_the_next_read(file):
    path = file(b'{"n":1}\n{"n":2')

    found, said, offset = read(path, whole=True)

    assert [value for _, _, value in found] == [{"n": 1}]
    assert (said, offset) == ([], 8)


def test_a_last_record_without_a_line_end_is_whole_and_its_line_goes_on_from_there(file):
    path = file(b'{"n":1}\n{"n":2}')

    found, _, offset = read(path, whole=True)
    path.write_bytes(b'{"n":1}\n{"n":2}\n{"n":3}\nrubbish\n')
    later = Lines(str(path), notices := Notices(), known, offset=offset, number=2, whole=True)

    assert [value for _, _, value in found] == [{"n": 1}, {"n": 2}]
    assert [value for _, _, value in later] == [{"n": 3}, None]
    assert list(notices.said) == [f"{path}:4: 1 damaged line, this is the first; everything else was read"]


def test_a_line_has_no_limit(file):
    found = values(b'{"n":"' + b"x" * 30_000_000 + b'"}\n{"n":2}\n', file)

    assert len(found[0]["n"]) == 30_000_000
    assert found[1] == {"n": 2}


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_what_is_no_regular_file_is_refused_at_once(kind, tmp_path):
    path = tmp_path / "session.jsonl"
    os.mkdir(path) if kind == "directory" else os.mkfifo(path)

    with pytest.raises(Unreadable, match=r"not a regular file"):
        open_regular(str(path))


def test_a_file_that_is_gone_says_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_regular(str(tmp_path / "gone.jsonl"))


def test_a_file_that_shrinks_while_it_is_read_ends_early_without_an_error(file):
    path = file(b'{"n":1}\n' * 400_000)
    lines = iter(Lines(str(path), Notices(), known))
    next(lines)
    threading.Thread(target=os.truncate, args=(path, 8)).run()

    assert len(list(lines)) < 400_000
