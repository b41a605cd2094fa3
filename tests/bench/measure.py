"""Whole processes, measured: CPU seconds, wall seconds, peak memory, and when the first line came."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median, quantiles
from tempfile import TemporaryFile
from time import perf_counter
from typing import NamedTuple


class Process(NamedTuple):
    """What is run: its words and environment, the file it reads, and what is done before each run, unmeasured."""

    words: Sequence[str]
    environment: Mapping[str, str]
    stdin: str = os.devnull
    before: Callable[[], object] | None = None
    statuses: tuple[int, ...] = (0,)


class Sample(NamedTuple):
    """One run. Seconds and bytes; `memory` is the peak of the largest process, `first` when the first output came.

    `read` counts what the process itself asked files for (not what it mapped); 0 where the system does not tell.
    """

    cpu: float
    wall: float
    memory: int
    first: float
    read: int


class Samples:
    """The runs of one process."""

    def __init__(self) -> None:
        self.runs: list[Sample] = []

    def median(self, what: str) -> float:
        """The median of `cpu`, `wall`, `memory`, `first` or `read`."""
        return median(getattr(run, what) for run in self.runs)

    def spread(self, what: str) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        values = [getattr(run, what) for run in self.runs]
        if len(values) < 2 or not self.median(what):
            return 0.0
        low, _, high = quantiles(values, n=4, method="inclusive")
        return (high - low) / 2 / self.median(what)


class Failed(Exception):
    """A process did not do what it was run for."""


def run(process: Process) -> Sample:
    """Run it once, its output thrown away as fast as it comes.

    A child begins with its parent's pages: memory below that of this process cannot be told. Raises Failed.
    """
    if process.before:
        process.before()
    with open(process.stdin, "rb") as stdin, TemporaryFile() as said:
        began = perf_counter()
        child = subprocess.Popen(
            process.words, env=process.environment, stdin=stdin, stdout=subprocess.PIPE, stderr=said
        )
        first = _drained(child, began)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        wall = perf_counter() - began
        read = _asked_for(child.pid)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        _expect(process, child.returncode, said.read())
    scale = 1 if sys.platform == "darwin" else 1024
    return Sample(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * scale, first, read)


def _asked_for(pid: int) -> int:
    """The bytes that a process which has ended, and was not waited for yet, had read."""
    try:
        with open(f"/proc/{pid}/io") as file:
            return int(file.readline().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _expect(process: Process, status: int, said: bytes) -> None:
    if status not in process.statuses:
        raise Failed(f"{' '.join(process.words)[:200]}: status {status}: {said.decode('utf-8', 'replace')[:300]}")


def _drained(child: subprocess.Popen[bytes], began: float) -> float:
    """Read all output; how long the first of it took."""
    assert child.stdout is not None
    first = 0.0
    with child.stdout:
        while os.read(child.stdout.fileno(), 1 << 20):
            first = first or perf_counter() - began
    return first


def interleaved(processes: Sequence[Process], runs: int, warm: bool = True) -> list[Samples]:
    """Each process `runs` times, in turns, so that all meet the same weather; `warm` runs each once before."""
    measured = [Samples() for _ in processes]
    for number in range(-1 if warm else 0, runs):
        for process, samples in zip(processes, measured, strict=True):
            sample = run(process)
            if number >= 0:
                samples.runs.append(sample)
    return measured


def output(process: Process) -> bytes:
    """What it prints. Raises Failed."""
    with open(process.stdin, "rb") as stdin:
        done = subprocess.run(process.words, env=process.environment, stdin=stdin, capture_output=True)
    _expect(process, done.returncode, done.stderr)
    return done.stdout
