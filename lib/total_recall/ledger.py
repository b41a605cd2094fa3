"""The summary ledger: which records of a session are summarised, in which blocks, and where the texts are.

Files in the store's shadow folder (see total-recall-ledger(5)), NAME being `safe_name(session_id)`:

    tr_NAME_summary.csv          a row a block, no heading
    tr_NAME_summary_parts/       part_<from>_<to>.md, the text of each block
    tr_NAME_summary.lock         held by whoever adds or drops a block

What is malformed, or does not describe the session, counts as no block at all: a notice says so, and the next writer
moves it aside. Nothing here asks a model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

import orjson

from .locking import alone
from .notices import Notices
from .record import Record
from .shadow import safe_name, write_beside
from .stores.registry import Refused
from .times import rfc3339

_LOOKALIKE = re.compile(r"^(?=### part |summary cache:)", re.MULTILINE)  # a model's line, set off by a backslash
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


class Locked(Exception):
    """Another process is adding or dropping a block of this session; nothing was done."""


class NotWritten(Exception):
    """The file system did not take a block, or its removal; the ledger is as it was."""


class Block(NamedTuple):
    """One row: a slice of the session's records, and the file with its summary.

    The slice is `from_id` to `to_id`, by record id; between blocks there is neither gap nor overlap. `from_ts` is the
    first time in it, `to_ts` the time of its last record, else the last one known; "" where no record has one.
    `user`, `assistant` and `tool` count records of the role (the fourth role, system, is in none), `thinking` those
    with thinking, whatever their role. `chars` are the characters of content, of thinking, and of the calls' arguments
    as compact JSON (text as it is); `tokens_est` is a quarter of that, rounded down.
    """

    from_id: int
    from_ts: str
    to_id: int
    to_ts: str
    user: int
    assistant: int
    tool: int
    thinking: int
    chars: int
    tokens_est: int
    part_file: str


_COUNTS = ("user", "assistant", "tool", "thinking", "chars")


class Slice:
    """What the records from `from_id` on amount to, counted as they pass."""

    def __init__(self, from_id: int) -> None:
        self.from_id = from_id
        self.to_id = 0
        self.from_ts = self.to_ts = ""
        self.last_ts: str | None = None  # of the last record, None if it has no time
        self.count = self.user = self.assistant = self.tool = self.thinking = self.chars = 0

    def add(self, record: Record) -> None:
        self.to_id = record["id"]
        self.last_ts = record["ts"]
        self.to_ts = record["ts"] or self.to_ts
        self.from_ts = self.from_ts or record["ts"] or ""
        self.count += 1
        if record["role"] in ("user", "assistant", "tool"):
            setattr(self, record["role"], getattr(self, record["role"]) + 1)
        self.thinking += bool(record["thinking"])
        self.chars += characters(record)

    def counted(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records as they are, each counted when it is asked for."""
        for record in records:
            self.add(record)
            yield record

    @classmethod
    def joined(cls, slices: Iterable[Slice]) -> Slice:
        """Slices that follow one another, as one."""
        whole = cls(1)
        for part in slices:
            if part.count:
                whole.to_id, whole.last_ts = part.to_id, part.last_ts
            whole.from_ts, whole.to_ts = whole.from_ts or part.from_ts, part.to_ts or whole.to_ts
            for key in ("count", *_COUNTS):
                setattr(whole, key, getattr(whole, key) + getattr(part, key))
        return whole

    def facts(self) -> Record:
        """The counts in the order of a row."""
        counts = {key: getattr(self, key) for key in _COUNTS}
        return {**counts, "tokens_est": self.chars // 4}


def characters(record: Record) -> int:
    """The characters of a record's content, thinking and calls' arguments."""
    arguments = (call["arguments"] for call in record["tool_calls"])
    return len(record["content"]) + len(record["thinking"] or "") + sum(map(_length, arguments))


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if value is None:
        return 0
    try:
        return len(orjson.dumps(value).decode())
    except TypeError:  # a lone surrogate, a number beyond 64 bits
        import json

        return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


class Ledger:
    """The blocks of one session, as far as they can be believed."""

    def __init__(self, folder: str, harness: str, session_id: str, notices: Notices) -> None:
        name = os.path.join(folder, f"tr_{safe_name(session_id)}_summary")
        self.path = f"{name}.csv"
        self.parts = f"{name}_parts"
        self.lock_path = f"{name}.lock"
        self.harness = harness
        self.session_id = session_id
        self.notices = notices
        self.blocks: list[Block] = []
        self.doubt: str | None = None  # why the file there is counts as empty
        self.read()

    @property
    def next_id(self) -> int:
        """The first id that is not summarised."""
        return self.blocks[-1].to_id + 1 if self.blocks else 1

    def through(self) -> Record | None:
        """`summary_cache` of a session row; None without blocks."""
        return (
            {"through_id": self.blocks[-1].to_id, "through_ts": self.blocks[-1].to_ts or None} if self.blocks else None
        )

    def part_path(self, block: Block) -> str:
        return os.path.join(self.parts, block.part_file)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read the ledger anew."""
        self.blocks, self.doubt = [], None
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            self._doubt(error.strerror or type(error).__name__)
            return
        try:
            self.blocks = list(_blocks(data))
            for block in self.blocks:
                if not os.path.isfile(self.part_path(block)):
                    raise ValueError(f"{block.part_file} is gone")
        except ValueError as error:
            self._doubt(str(error))

    def _doubt(self, why: str) -> None:
        self.blocks, self.doubt = [], why
        self.notices.say(f"the summary ledger {self.path} counts as empty: {why}; the next tr-summarise moves it aside")

    def tail(self, records: Iterable[Record]) -> Record | None:
        """What is not summarised yet: what a summary of it would cost; None when everything is.

        `records` are all of the session, in order. Each block is counted again on the way; one that no longer
        describes its slice makes the ledger empty, and the tail the whole session.
        """
        slices = [Slice(1)]
        for record in records:
            while len(slices) <= len(self.blocks) and record["id"] > self.blocks[len(slices) - 1].to_id:
                slices.append(Slice(self.blocks[len(slices) - 1].to_id + 1))
            slices[-1].add(record)
        while len(slices) <= len(self.blocks):
            slices.append(Slice(self.blocks[len(slices) - 1].to_id + 1))
        for block, part in zip(self.blocks, slices, strict=False):
            if why := _difference(block, part):
                self._doubt(f"{block.part_file} does not describe the session: {why}")
                break
        rest = slices[-1] if self.blocks else Slice.joined(slices)
        if not rest.count:
            return None
        return {"from_id": rest.from_id, "from_ts": rest.from_ts or None, "count": rest.count, **rest.facts()}

    def status(self, tail: Record | None) -> Record:
        """What tr-cache prints: the blocks, with the paths of their parts, and the tail."""
        return {
            "session_id": self.session_id,
            "harness": self.harness,
            "blocks": [
                block._asdict()
                | {
                    "from_ts": block.from_ts or None,
                    "to_ts": block.to_ts or None,
                    "part_file": self.part_path(block),
                }
                for block in self.blocks
            ],
            "tail": tail,
        }

    def composed(self) -> Iterator[str]:
        """The parts, each under its heading. A part that cannot be read raises OSError."""
        for number, block in enumerate(self.blocks, 1):
            span = f"{block.from_ts or '?'} → {block.to_ts or '?'} (ids {block.from_id}..{block.to_id})"
            with open(self.part_path(block), "rb") as file:
                text = _LOOKALIKE.sub(r"\\", file.read().decode("utf-8", "replace").strip())
            yield f"### part {number}: {span}\n\n{text}\n\n"

    def footer(self, tail: Record | None) -> str:
        """The line below the parts."""
        count = len(self.blocks)
        covered = f"{count} block{'s' * (count != 1)}" + (f", ids 1..{self.next_id - 1}" if count else "")
        if tail is None:
            return f"summary cache: {covered}; tail: none, everything is summarised\n"
        cost = f"{tail['count']} records from id {tail['from_id']} on, {tail['chars']} characters"
        return f"summary cache: {covered}; tail: {cost}, about {tail['tokens_est']} tokens\n"

    # -- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[Ledger]:
        """Keep other writers out, and read the ledger anew. Raises Locked at once when one is at work."""
        with ExitStack() as held:
            with self._writing():
                os.makedirs(os.path.dirname(self.lock_path), mode=0o700, exist_ok=True)
                try:
                    held.enter_context(alone(self.lock_path, 0.0))
                except TimeoutError as error:
                    raise Locked(
                        f"the summaries of {self.session_id} are being written by another process"
                        f" ({self.lock_path} is locked) - try again when it is done"
                    ) from error
            self.read()
            yield self

    def append(self, part: Slice, text: str) -> Block:
        """Add the summary of a slice that begins at `next_id`; to be called while `locked`.

        What the ledger held before, if it counted as empty, is moved aside. Raises NotWritten.
        """
        if part.from_id != self.next_id or not part.count:
            raise ValueError(f"a block from {part.from_id} cannot follow {self.next_id - 1}")
        name = _part_file(part.from_id, part.to_id)
        block = Block(part.from_id, part.from_ts, part.to_id, part.to_ts, **part.facts(), part_file=name)
        with self._writing():
            if self.doubt:
                self._set_aside()
            os.makedirs(self.parts, mode=0o700, exist_ok=True)
            write_beside(self.part_path(block), text.encode("utf-8", "replace"))
            self._write([*self.blocks, block])
        return block

    def drop(self) -> Block:
        """Remove the newest block; to be called while `locked`. Raises Refused when there is none, and NotWritten."""
        if not self.blocks:
            why = f"its ledger counts as empty ({self.doubt})" if self.doubt else "it has no summaries"
            raise Refused(f"session {self.session_id} has no block to drop: {why} - tr-summarise makes one")
        *kept, block = self.blocks
        with self._writing():
            if kept:
                self._write(kept)
            else:
                os.unlink(self.path)
                self.blocks = []
            with suppress(FileNotFoundError):
                os.unlink(self.part_path(block))
        return block

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise NotWritten(f"cannot write {error.filename or self.path}: {error.strerror}") from error

    def _write(self, blocks: list[Block]) -> None:
        write_beside(self.path, "".join(f"{','.join(map(str, block))}\n" for block in blocks).encode())
        self.blocks, self.doubt = blocks, None

    def _set_aside(self) -> None:
        paths = [path for path in (self.path, self.parts) if os.path.lexists(path)]
        suffix, number = ".bad", 1
        while any(os.path.lexists(path + suffix) for path in paths):
            number += 1
            suffix = f".bad{number}"
        for path in paths:
            os.replace(path, path + suffix)


def sessions_with_summaries(folder: str) -> frozenset[str]:
    """The `safe_name`s of the sessions that have a ledger in this shadow folder: one listing."""
    try:
        names = os.listdir(folder)
    except OSError:
        return frozenset()
    return frozenset(name[3:-12] for name in names if name.startswith("tr_") and name.endswith("_summary.csv"))


def _part_file(from_id: int, to_id: int) -> str:
    return f"part_{from_id:03}_{to_id:03}.md"


def _blocks(data: bytes) -> Iterator[Block]:
    """The rows of a ledger; raises ValueError, naming the row, for anything that this module would not write."""
    *lines, rest = data.decode().split("\n")
    if rest:
        raise ValueError(f"row {len(lines) + 1} is cut")
    after = 1
    for number, line in enumerate(lines, 1):
        block = _block(line, f"row {number}")
        if block.from_id != after:
            kind = "overlap" if block.from_id < after else "gap"
            raise ValueError(f"row {number} begins at id {block.from_id}, not at {after}: {kind}")
        after = block.to_id + 1
        yield block


def _block(line: str, where: str) -> Block:
    fields = line.split(",")
    if len(fields) != len(Block._fields):
        raise ValueError(f"{where} has {len(fields)} columns, not {len(Block._fields)}")
    values: dict[str, Any] = dict(zip(Block._fields, fields, strict=True))
    for name in ("from_id", "to_id", *_COUNTS, "tokens_est"):
        if not _NUMBER.fullmatch(values[name]):
            raise ValueError(f"{where}: {name} is no number")
        values[name] = int(values[name])
    block = Block(**values)
    for name in ("from_ts", "to_ts"):
        if values[name] and rfc3339(values[name]) != values[name]:
            raise ValueError(f"{where}: {name} is no time")
    if not 1 <= block.from_id <= block.to_id or block.part_file != _part_file(block.from_id, block.to_id):
        raise ValueError(f"{where}: its ids and its part file do not agree")
    if (
        block.tokens_est != block.chars // 4
        or block.user + block.assistant + block.tool > block.to_id - block.from_id + 1
    ):
        raise ValueError(f"{where}: its counts do not agree")
    return block


def _difference(block: Block, part: Slice) -> str | None:
    """How a block differs from its slice as it is now; None when it does not."""
    if part.to_id != block.to_id:
        return f"there is no record {block.to_id} any more"
    for name, found in part.facts().items():
        if found != getattr(block, name):
            return f"{name} is {found}, not {getattr(block, name)}"
    if part.last_ts is not None and part.last_ts != block.to_ts:
        return f"record {block.to_id} is of {part.last_ts}, not of {block.to_ts or 'no time'}"
    return None
