"""One run of an executable: started, read to its end, and stopped with everything it started."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

import anyio
from anyio.abc import ByteReceiveStream, Process

COMPLAINT_BYTES = 8192
GRACE_SECONDS = 1.0

_running: set[int] = set()
_places = anyio.CapacityLimiter(8)  # more at once would only take memory from each other


class Ended(NamedTuple):
    """How a run ended.

    `status` is the exit status, negative for a signal. `stopped` says why it was stopped by us: `time`, or `size`
    when its reader had enough. `complaint` is the end of what it wrote on standard error.
    """

    status: int
    stopped: str | None
    complaint: str


def executable(name: str) -> str:
    """The path of an executable: it stands beside the one that this process was started from."""
    return os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), name)


async def run(name: str, words: list[str], take: Callable[[bytes], bool], seconds: float) -> Ended:
    """Run an executable of ours and hand its output to `take`, chunk by chunk, until that returns False.

    However this ends, cancellation included, the process and its descendants are gone. Raises OSError when it cannot
    be started.
    """
    async with _places:
        # A session, and so a process group, of its own; the same Python; nothing to read.
        argv = [sys.executable, executable(name), *words]
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True)
        _running.add(process.pid)
        try:
            return await _read(process, take, seconds)
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(process)


async def _read(process: Process, take: Callable[[bytes], bool], seconds: float) -> Ended:
    out, err = process.stdout, process.stderr
    assert out is not None
    assert err is not None
    complaint = bytearray()
    stopped: str | None = None

    async def listen(err: ByteReceiveStream) -> None:
        async for chunk in err:
            complaint.extend(chunk)
            del complaint[:-COMPLAINT_BYTES]

    with anyio.move_on_after(seconds) as limit:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen, err)
            async for chunk in out:
                if not take(chunk):
                    stopped = "size"
                    tasks.cancel_scope.cancel()
                    break
        if not stopped:
            await process.wait()
    if limit.cancelled_caught:
        stopped = "time"
    status = process.returncode
    return Ended(0 if status is None else status, stopped, complaint.decode("utf-8", "replace"))


async def _stop(process: Process) -> None:
    """End the process group: by SIGINT, so that a command can tidy up, then without asking."""
    try:
        if process.returncode is None:
            _signal(process.pid, signal.SIGINT)
            with anyio.move_on_after(GRACE_SECONDS):
                await process.wait()
        _signal(process.pid, signal.SIGKILL)
        await process.aclose()
    finally:
        _running.discard(process.pid)


def _signal(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left in it


def stop_all() -> None:
    """Kill every process group that is running, at once."""
    for group in list(_running):
        _signal(group, signal.SIGKILL)
