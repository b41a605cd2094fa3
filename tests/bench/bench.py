#!/usr/bin/env python3
"""Measures the budgets, each beside what one would use instead, in one run and in turns: `make bench`.

    python tests/bench/bench.py                            every row, on stores of size M
    python tests/bench/bench.py --size S --only 3          one row, on small stores
    python tests/bench/bench.py --keep /tmp/bench          keep the stores there, and use them again

A row is the medians of at least seven whole processes: CPU and wall seconds (and how far the former spread: half the
distance between their quartiles), peak memory, and the ratios to the other program. Other programs are found on PATH;
one that is not installed is named and passed over. `fast-resume` is a package of that name on PyPI, best put into an
environment of its own; its `fast-resume --json [--all] [QUERY]` looks for changes first, and lists or searches without
a terminal. Nothing here fails for being slow.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if ROOT not in sys.path:
    sys.path[:0] = [ROOT]

from tests.bench import reading, searching  # noqa: E402
from tests.bench.lab import Lab, Missing  # noqa: E402
from tests.bench.table import Line, printed  # noqa: E402

ROWS: dict[int, tuple[Callable[[Lab], Iterator[Line]], ...]] = {
    1: (reading.starting, searching.starting),
    2: (searching.searching,),
    3: (reading.listing,),
    4: (reading.first_listing,),
    5: (searching.indexing,),
    6: (searching.refreshing,),
    7: (reading.extracting,),
    8: (reading.since_compaction,),
    9: (reading.extracting_rows,),
    10: (searching.scanning,),
    11: (searching.recalling,),
    12: (searching.serving,),
    13: (searching.growing,),
}


def lines(lab: Lab, numbers: list[int]) -> Iterator[Line]:
    """The rows with these numbers; one that cannot be measured says why, and the others are."""
    for number in numbers:
        print(f"bench: row {number} ...", file=sys.stderr)
        for rows in ROWS[number]:
            try:
                yield from rows(lab)
            except Missing as missing:
                yield _missing(number, rows, str(missing))
            except Exception as error:
                yield _missing(number, rows, f"{type(error).__name__}: {error}")


def _missing(number: int, rows: Callable[[Lab], Iterator[Line]], why: str) -> Line:
    return Line(str(number), (rows.__doc__ or "").partition(": ")[2].rstrip("."), note=why)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the budgets, each beside what one would use instead.")
    parser.add_argument("--size", choices=("S", "M", "L"), default="M", help="of the stores (M)")
    parser.add_argument("--only", type=int, action="append", choices=ROWS, metavar="N", help="this row; repeatable")
    parser.add_argument("--runs", type=int, default=7, help="of each process (7)")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the stores here, and use those that are here")
    given = parser.parse_args()
    folder = given.keep or tempfile.mkdtemp(prefix="total-recall-bench-")
    try:
        lab = Lab(os.path.abspath(folder), given.size, given.runs)
        print("\n".join(lab.head()), flush=True)
        print(f"\n{printed(lines(lab, sorted(set(given.only or ROWS))))}")
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
