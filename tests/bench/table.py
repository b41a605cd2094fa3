"""The table of the benchmark: what each row is measured against, what it may cost, and whether it kept to that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tests.bench.measure import Samples

_HEAD = ("#", "job", "ours", "theirs", "CPU", "wall", "memory", "read", "budget", "met")


class Budget(NamedTuple):
    """What a job may cost at most, as far as it is bounded: see `holds`."""

    ratio: float | None = None  # of CPU and of wall seconds, to those of the other
    over: float = 0.0  # CPU and wall seconds that are allowed on top of that
    seconds: float | None = None  # CPU seconds
    first: float | None = None  # wall seconds to the first output
    megabytes: float | None = None  # of memory
    rate: float | None = None  # megabytes of source in a CPU second, at least

    def __str__(self) -> str:
        parts = (
            self.ratio is not None and f"{self.ratio:g} x" + (f" + {self.over:g} s" if self.over else ""),
            self.seconds is not None and f"{self.seconds:g} CPU-s",
            self.first is not None and f"first in {self.first:g} s",
            self.megabytes is not None and f"{self.megabytes:g} MB",
            self.rate is not None and f"{self.rate:g} MB/CPU-s",
        )
        return ", ".join(part for part in parts if part)


class Line(NamedTuple):
    """One row; `measured`, `promise` and `kept` stand for figures that are no times, `note` says what is missing."""

    number: str
    job: str
    ours: Samples | None = None
    theirs: Samples | None = None
    against: str = ""
    budget: Budget = Budget()
    source: float = 0.0  # megabytes read
    note: str = ""
    measured: str = ""
    promise: str = ""
    kept: bool | None = None

    def holds(self) -> bool | str | None:
        """Whether the budget was kept; `CPU only` where the wall time was not; None where nothing tells."""
        if self.kept is not None or self.ours is None:
            return self.kept
        budget, ours, theirs = self.budget, self.ours, self.theirs
        told: list[bool | str] = []
        if budget.ratio is not None and theirs is not None:
            cpu, wall = (
                ours.median(what) <= budget.ratio * theirs.median(what) + budget.over for what in ("cpu", "wall")
            )
            told.append("CPU only" if cpu and not wall else cpu)
        if budget.seconds is not None:
            told.append(ours.median("cpu") <= budget.seconds)
        if budget.first is not None:
            told.append(ours.median("first") <= budget.first)
        if budget.megabytes is not None:
            told.append(ours.median("memory") <= budget.megabytes * 1e6)
        if budget.rate is not None:
            told.append(self.source / ours.median("cpu") >= budget.rate)
        if not told:
            return None
        return False if False in told else "CPU only" if "CPU only" in told else True

    def cells(self) -> tuple[str, ...]:
        """The row as texts."""
        met = {True: "yes", False: "NO", None: "-"}
        held = self.holds()
        return (
            self.number,
            self.job,
            self.measured or (_seconds(self.ours) if self.ours else "-"),
            f"{self.against} {_seconds(self.theirs)}" if self.theirs else self.against,
            self._ratio("cpu"),
            self._ratio("wall"),
            f"{self.ours.median('memory') / 1e6:.0f} MB" if self.ours else "",
            _megabytes(self.ours.median("read")) if self.ours else "",
            self.promise or str(self.budget),
            held if isinstance(held, str) else met[held],
        )

    def _ratio(self, what: str) -> str:
        if self.ours is None:
            return ""
        if self.theirs is None or not self.theirs.median(what):
            return f"{self.source / self.ours.median('cpu'):.0f} MB/s" if self.source and what == "cpu" else ""
        return f"{self.ours.median(what) / self.theirs.median(what):.2f}"


def _seconds(samples: Samples) -> str:
    """CPU and wall seconds with the spread of the former."""
    cpu, wall = samples.median("cpu"), samples.median("wall")
    return f"{_short(cpu)}/{_short(wall)} s ±{samples.spread('cpu'):.0%}"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size else ""


def _short(seconds: float) -> str:
    return f"{seconds:.3f}" if seconds < 1 else f"{seconds:.2f}"


def printed(lines: Iterable[Line]) -> str:
    """The table, and below it why some of it is missing."""
    found = list(lines)
    rows = [_HEAD, *(line.cells() for line in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    texts = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    notes = dict.fromkeys(f"{line.number}: {line.note}" for line in found if line.note)
    return "\n".join([*texts, *([""] if notes else []), *notes])
