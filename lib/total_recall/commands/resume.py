"""tr-resume: the shell command that reopens a session in its harness."""

from __future__ import annotations

import os
import shlex

import click

from ..command import Failure, Run, executable, harness_option, options
from ..extraction import chosen
from ..output import encoded, write_text


@executable("tr-resume")
@options(
    click.argument("session", required=False, metavar="[SESSION]"),
    harness_option,
    click.option("--json", "as_json", is_flag=True, help="A JSON object instead of a shell command."),
)
def main(run: Run, session: str | None, harnesses: tuple[str, ...], as_json: bool) -> int | None:
    """Print the shell command that reopens a session in its harness."""
    store, found = next(iter(chosen(run, (session,) if session else (), harnesses)))
    row = store.row(found)
    directory, argv = row["directory"], store.resume(row)
    # An id that begins with a dash would be an option of the harness's.
    if argv[-1].startswith("-") or any("\0" in word for word in (*argv, directory or "")):
        raise Failure(f"{found.session_id!r} cannot be named in a shell command")
    if directory and not os.path.isdir(directory):
        run.notices.say(f"the session's directory is gone: {directory}")
    if as_json:
        known = {"harness": store.harness, "session_id": found.session_id, "directory": directory, "argv": argv}
        write_text(encoded(known).decode())
    else:
        write_text((f"cd -- {shlex.quote(directory)} && " if directory else "") + shlex.join(argv))
    return None
