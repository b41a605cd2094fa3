"""tr-histogram: a big file by line size and position, or some of its lines."""

from __future__ import annotations

import click

from ..command import Failure, Run, executable, options
from ..histogram import histogram
from ..output import write


@executable("tr-histogram")
@options(
    click.argument("file"),
    click.option("--line", type=int, help="Print this line instead, counted from 1."),
    click.option("--start", type=int, help="Print the lines from this one on, with --end."),
    click.option("--end", type=int, help="The last line to print."),
)
def main(run: Run, file: str, line: int | None, start: int | None, end: int | None) -> int | None:
    """Profile a big file by the size and the position of its lines, or print some of its lines."""
    try:
        found = histogram(file, line=line, start=start, end=end)
    except FileNotFoundError:
        raise Failure(f"no file at {file} - name one that exists") from None
    except ValueError as error:
        raise Failure(str(error)) from error
    write([found.removesuffix(b"\n")] if found else [])
    return None
