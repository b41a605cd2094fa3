"""tr-redact: credentials out of any text, line by line."""

from __future__ import annotations

from ..command import Run, executable
from ..output import write
from ..redact import redact_lines


@executable("tr-redact")
def main(run: Run) -> int | None:
    """Replace credentials in standard input by [REDACTED:kind]."""
    write(redact_lines(run.stdin or ()), end=b"")
    return None
