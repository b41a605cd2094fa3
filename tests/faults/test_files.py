"""What may stand where a session's file should be, how it may be called, and what may become of it meanwhile."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sample import ROOT, TOOLS
from total_recall.notices import Unreadable

from .layouts import ALPHA, LAYOUTS, LINES
from .programs import agree, environment, run, run_all


def _fifo(path):
    os.mkfifo(path)


def _socket(path):
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _loop(path):
    path.symlink_to(path.name)


def _nowhere(path):
    path.symlink_to(path.parent / "nowhere")


def _device(path):
    path.symlink_to("/dev/zero")


def _folder(path):
    path.mkdir()
    (path / "inside.txt").write_text("a folder with the name of a session")


def _link(path):
    kept = path.with_name("kept elsewhere")
    kept.write_bytes(path.data)
    path.symlink_to(kept)


INSTEAD = {"a FIFO": _fifo, "a socket": _socket, "a link to itself": _loop, "a link to nowhere": _nowhere, "a link to a device": _device, "a folder": _folder}


@pytest.mark.parametrize("what", INSTEAD)
@pytest.mark.parametrize("name", LINES)
def test_what_is_no_file_is_never_opened_and_hides_no_other_session(name, what, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    laid.path.unlink()
    INSTEAD[what](laid.path)
    env = environment(tmp_path, laid)

    for words in (["tr-stores"], ["tr-list"], ["tr-extract", "--full", laid.witness], ["tr-index"], ["tr-search", "the"], ["tr-extract", laid.target], ["tr-raw", laid.target], ["tr-said", "--words", "the", "--hours", "0"]):
        ran = run(*words, env=env)
        print(name, what, words[0], ran.status, ran.err)
        assert "Traceback" not in ran.err
        assert "unexpected" not in ran.err
