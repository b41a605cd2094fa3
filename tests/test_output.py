"""Writing: whatever a record holds is one line of JSON, and every byte of it arrives."""

import fcntl
import os
import subprocess
import sys

import orjson
import pytest
from sample import ROOT
from total_recall.output import encoded


def test_a_lone_surrogate_becomes_a_replacement_character():
    assert encoded({"a": "x\ud83dy"}) == '{"a":"x\ufffdy"}'.encode()


@pytest.mark.parametrize("depth", [254, 255, 1000, 1023])
def test_whatever_could_be_read_can_be_written(depth):
    value = orjson.loads(b"[" * depth + b"]" * depth)

    assert encoded(value) == b"[" * depth + b"]" * depth


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from total_recall.output import write
write(b"%d" % n * 50 for n in range(20000))
"""


def test_a_pipe_made_non_blocking_by_its_reader_gets_every_byte():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFL, fcntl.fcntl(writing, fcntl.F_GETFL) | os.O_NONBLOCK)
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(ROOT / "lib")], stdout=writing)
    os.close(writing)
    with open(reading, "rb") as pipe:
        got = pipe.read()

    assert child.wait() == 0
    assert got == b"".join(b"%d" % n * 50 + b"\n" for n in range(20000))


SLOW = """
import sys, time
sys.path.insert(0, sys.argv[1])
from total_recall.output import write
def lines():
    yield b"first"
    sys.stdin.read()
    yield b"second"
write(lines())
"""


def test_the_first_line_is_printed_while_the_second_is_still_to_come():
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(ROOT / "lib")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    assert child.stdout.readline() == b"first\n"
    assert child.communicate()[0] == b"second\n"
