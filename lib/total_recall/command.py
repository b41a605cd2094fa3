"""Turns a function into an executable: shared options, exit statuses, notices on stderr.

Only this module writes to standard error and ends the process.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from time import time
from typing import IO, Any, NoReturn, TypeVar

import click

from . import __version__
from .bounds import Limits, TooLarge
from .derived import Derived
from .notices import Notices, Unreadable
from .output import OutputFailed, die_of_sigpipe
from .record import Record
from .selection import NoSession
from .stores.base import Memory, Place, Store
from .stores.registry import HARNESSES, Refused, open_stores, places
from .times import when

DONE, NOTHING, WRONG, UNREAD, SERVICE, OUTPUT, LOCKED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

Function = TypeVar("Function", bound=Callable[..., Any])


class Failure(Exception):
    """An error that ends the run, with its status; the sentence says what is wrong and what would work."""

    def __init__(self, message: str, status: int = WRONG) -> None:
        super().__init__(message)
        self.status = status


class Run:
    """One run of an executable: its environment, its notices, and the stores it may read."""

    def __init__(self, name: str, quiet: bool = False, environ: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.quiet = quiet
        self.environ = os.environ if environ is None else environ
        self.notices = Notices()
        self.now = time()
        self._told: set[str] = set()
        self._stores: list[Store] = []
        self._shadows: dict[str, str] = {}

    @property
    def stdin(self) -> IO[bytes] | None:
        """Standard input as bytes; None when it is closed."""
        return None if sys.stdin is None else sys.stdin.buffer

    def stores(self, asked: tuple[str, ...]) -> list[Store]:
        """The stores asked for by -H, else by $TR_HARNESS, else every one that exists."""
        if not asked:
            asked = tuple(self.environ.get("TR_HARNESS", "").replace(",", " ").split())
        try:
            stores = open_stores(asked, self.environ, self.notices, self._memory)
        except Refused as error:
            raise Failure(str(error)) from error
        for store in stores:
            if path := self._shadows.get(store.harness):
                store.derived = Derived(path, self.notices)
        self._stores += stores
        return stores

    def looked(self) -> list[str]:
        """The roots of all known stores, for the case that there is none."""
        return [place.root for place in places(HARNESSES, self.environ).values()]

    def _memory(self, harness: str, place: Place) -> Memory:
        from .catalogue import Catalogue
        from .shadow import folder

        path = folder(harness, place, self.environ, self.notices)
        if path is None:
            return Memory()
        self._shadows[harness] = path
        return Catalogue(path, self.notices)

    def close(self) -> None:
        """Write what was learned."""
        for store in self._stores:
            store.remember.close()

    def damaged(self, rows: Iterable[Record]) -> Iterator[Record]:
        """The rows as they are; one with a read_error makes the run's status 3."""
        for row in rows:
            if row.get("read_error"):
                self.notices.fail(row["session_id"], Unreadable(row["path"], row["read_error"]))
            yield row

    def facts(self) -> Record:
        """What there is to say so far, as the fields of an envelope."""
        notices = self.notices
        found: Record = {}
        if notices.failures:
            found["unreadable"] = [{"session_id": what, "error": why} for what, why in notices.failures.items()]
        if notices.said:
            found["notices"] = list(notices.said)
        return found

    def tell(self) -> None:
        """Print the notices and failures gathered so far, each once."""
        texts = [*self.notices.failures.values(), *(() if self.quiet else self.notices.said)]
        for text in texts:
            if text not in self._told:
                self._told.add(text)
                complain(self.name, text)
        self.notices.said.clear()


def complain(name: str, text: str) -> None:
    """One line on standard error; control characters cannot break it, a closed stderr cannot stop the run."""
    line = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in f"{name}: {text}")
    try:
        os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass


class Progress:
    """One line on standard error about long work, renewed in place; nothing unless that is a terminal."""

    def __init__(self, run: Run, what: str) -> None:
        self._what = what
        self._shown = not run.quiet and os.isatty(2)
        self._next = time() + 0.5
        self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Say how much is done, a few times a second."""
        if self._shown and (now := time()) >= self._next:
            self._next, self._drawn = now + 0.2, True
            self._write(f"\r{self._what} {100 * done // max(total, 1)} %\x1b[K")

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            self._drawn = False
            self._write("\r\x1b[K")

    @staticmethod
    def _write(text: str) -> None:
        try:
            os.write(2, text.encode())
        except OSError:
            pass


def executable(name: str, **settings: Any) -> Callable[[Callable[..., int | None]], Callable[[], None]]:
    """Make a function the whole of the executable called `name`.

    The function takes a Run and its options, and returns an exit status or None for 0. The result has the click
    command as its attribute `command`.
    """

    def decorate(function: Callable[..., int | None]) -> Callable[[], None]:
        def body(quiet: bool = False, **options: Any) -> int:
            run = Run(name, quiet)
            try:
                status = function(run, **options) or DONE
            finally:
                run.close()
                run.tell()
            return UNREAD if run.notices.failures and status in (DONE, NOTHING) else status

        body.__doc__ = function.__doc__
        body.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        body = click.option("-q", "--quiet", is_flag=True, help="No notices on stderr; errors stay.")(body)
        body = click.version_option(__version__, message="%(prog)s %(version)s")(body)
        context = {"help_option_names": ["-h", "--help"], "max_content_width": 100, **settings}
        command = click.command(name, epilog=f"Manual: man {name}", context_settings=context)(body)

        def main() -> None:
            sys.unraisablehook = _raised_too_late
            leave(perform(name, command))

        main.command = command  # type: ignore[attr-defined]
        return main

    return decorate


def perform(name: str, command: click.Command, arguments: list[str] | None = None) -> int:
    """Run a click command and turn every way it can end into an exit status."""
    hold_standard_streams()
    try:
        status = command.main(args=arguments, prog_name=name, standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        return int(status or 0)
    except click.UsageError as error:
        complain(name, f"{_sentence(error.format_message())} - see {name} --help")
        return WRONG
    except Failure as error:
        complain(name, str(error))
        return error.status
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        die_of_sigpipe()
    except Exception as error:
        return _unexpected(name, error)
    return 141


def leave(status: int) -> NoReturn:
    """End the process at once, as all is written: to take its objects apart first takes a tenth of a short run."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _raised_too_late(unraisable: sys.UnraisableHookArgs) -> None:
    """An interrupt that came while an object was cleaned away would be printed and then be lost: it comes again."""
    if unraisable.exc_type is KeyboardInterrupt:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(unraisable)


def _unexpected(name: str, error: Exception) -> int:
    debug()
    for kind, status in ((NoSession, WRONG), (TooLarge, WRONG), (Unreadable, UNREAD), (OutputFailed, OUTPUT)):
        if isinstance(error, kind):
            complain(name, str(error))
            return status
    if isinstance(error, OSError):
        complain(name, f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return OUTPUT if error.filename is None else UNREAD
    complain(name, f"unexpected {type(error).__name__}: {error} - run it again with TR_DEBUG=1 to see where")
    return UNREAD


def hold_standard_streams() -> None:
    """Keep file descriptors 0 to 2 from being given to a file, where a caller closed them.

    Standard output is held by a descriptor that cannot be written, so that writing fails as it should.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)


def _sentence(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".").replace("\n", " ")


def debug() -> None:
    """With TR_DEBUG=1, the traceback of the error being handled."""
    if os.environ.get("TR_DEBUG") == "1":
        import traceback

        traceback.print_exc()


# -- shared options --------------------------------------------------------------------------------------------


def options(*decorators: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several option decorators as one, listed in the order of the help page."""

    def decorate(function: Function) -> Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


class Moment(click.ParamType):
    """A point in time, as RFC 3339 UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return when(value, time())
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Hours(click.ParamType):
    """A window in hours; 0 is no bound."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            hours = float(value)
        except (TypeError, ValueError):
            hours = -1.0
        if not hours >= 0:
            self.fail(f"{value!r} is no number of hours - use 0 for no bound, or a number above 0", param, ctx)
        return hours


class Harness(click.ParamType):
    """The name of a harness."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in HARNESSES:
            self.fail(f"unknown harness {value!r} - known: {', '.join(HARNESSES)}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in HARNESSES if name.startswith(incomplete)]


COUNT = click.IntRange(min=0)

harness_option = click.option(
    "-H", "--harness", "harnesses", multiple=True, type=Harness(), help="Only this harness's store; repeatable."
)
session_argument = click.argument("sessions", nargs=-1, metavar="[SESSION]...")
directory_option = click.option(
    "--directory", metavar="SUBSTR", default="", help="Only sessions whose working directory contains this text."
)
since_until = options(
    click.option("--since", type=Moment(), help="Not before: RFC 3339, a date, or 90m, 12h, 3d, 2w ago."),
    click.option("--until", type=Moment(), help="Not after; the same forms."),
)
envelope_option = click.option(
    "--envelope", is_flag=True, help="One JSON object with the run's facts round the records."
)
report_option = click.option("--report", is_flag=True, help="A report for people instead of records.")
limit_option = click.option("--limit", type=COUNT, default=0, help="At most so many records; 0 is no bound.")
bounds_options = options(
    click.option("--limit", type=COUNT, default=0, help="At most so many records, the last ones unless --offset."),
    click.option("--offset", type=COUNT, default=None, help="Begin at this record, counted from 0."),
    click.option("--max-bytes", type=COUNT, default=0, help="At most so many bytes of output."),
    click.option("--max-record-bytes", type=COUNT, default=0, help="Cut every text to so many bytes."),
)


def hours_option(default: float = 0) -> Callable[[Function], Function]:
    """`--hours` with the command's own default window."""
    shown = f"default {default:g}" if default else "0, the default, is no bound"
    return click.option(
        "--hours", type=Hours(), default=default, metavar="N", help=f"Only sessions of the last N hours; {shown}."
    )


def limits(options: dict[str, Any]) -> Limits:
    """Take the bounds options out of a command's options."""
    return Limits(*(options.pop(name) for name in Limits._fields))


def interruptible() -> None:
    """Let SIGTERM end a run like SIGINT: through the `finally` clauses, so that derived state stays whole."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
