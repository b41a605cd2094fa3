"""What may stand where a session's file should be, and what may become of it while it is read."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sample import ROOT
from total_recall.notices import Unreadable

from .layouts import LAYOUTS, LINES, told
from .programs import agree, environment, run, run_all


def _fifo(path):
    os.mkfifo(path)


def _socket(path):
    made = socket.socket(socket.AF_UNIX)
    made.bind(path.parent.parent.joinpath("s").as_posix()) if len(str(path)) < 100 else None
    made.close()


def _loop(path):
    path.symlink_to(path.name)


def _nowhere(path):
    path.symlink_to(path.parent / "nowhere")


def _device(path):
    path.symlink_to("/dev/zero")


def _folder(path):
    path.mkdir()
    (path / "inside.txt").write_text("a folder with the name of a session")


NO_FILES = {
    "a FIFO": _fifo,
    "a link to itself": _loop,
    "a link to nowhere": _nowhere,
    "a link to a device": _device,
    "a folder": _folder,
}
READERS = ("tr-extract", "tr-raw", "tr-user", "tr-profile", "tr-qa", "tr-todo", "tr-resume")
LISTERS = (["tr-stores"], ["tr-list"], ["tr-index"], ["tr-search", "the"], ["tr-said", "--words", "the", "--hours", "0"])


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", LINES)
def test_what_is_no_file_is_never_opened_and_hides_no_other_session(name, what, tmp_path):
    """It is either no session for any command, or a session whose row says why it cannot be read."""
    laid = LAYOUTS[name](tmp_path / "store")
    laid.path.unlink()
    NO_FILES[what](laid.path)
    env = environment(tmp_path, laid)

    rows = {row["session_id"]: row for row in run("tr-list", env=env).records}

    assert "read_error" not in rows[laid.witness]
    listed = laid.target in rows
    damaged = listed and bool(rows[laid.target].get("read_error"))
    assert damaged == listed or name == "vibe unified"
    for words in LISTERS:
        ran = run(*words, env=env)
        assert ran.status in ((3,) if damaged and words[0] != "tr-stores" else (0, 1)), ran
    for tool in READERS:
        ran = run(tool, laid.target, env=env)
        expected = (2,) if not listed else (0, 3) if tool == "tr-resume" else (3,) if damaged else (0, 1)
        assert ran.status in expected, ran
        assert str(laid.path) in ran.err or not damaged or tool in ("tr-resume", "tr-profile")
        assert run(tool, laid.witness, env=env).status in (0, 1)
