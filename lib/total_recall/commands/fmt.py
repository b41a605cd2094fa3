"""tr-fmt: records from standard input, for people."""

from __future__ import annotations

import sys

import click

from ..command import Run, executable, options
from ..output import write
from ..render import Page, rendered


@executable("tr-fmt")
@options(
    click.option("--text", "form", flag_value="text", default=True, help="Columns and transcripts, the default."),
    click.option("--markdown", "form", flag_value="markdown", help="Markdown."),
    click.option("--width", type=click.IntRange(min=20), default=None, help="Columns to fill; default the terminal's."),
)
def main(run: Run, form: str, width: int | None) -> int | None:
    """Print records from standard input for people; lines of any other kind pass through."""
    page = Page(form == "markdown", width, run.environ, sys.stdout is not None and sys.stdout.isatty())
    write(rendered(run.stdin or (), page))
    return None
