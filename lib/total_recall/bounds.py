"""Bounds of extraction: which records of a stream are printed, how much of each, and an account of the rest.

The window comes first (limit and offset), then the clamp (max_record_bytes), then the byte budget (max_bytes).
Without an offset the window is the tail, and the budget keeps its newest records; with one it is read from the front.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .output import encoded
from .record import Record


class Limits(NamedTuple):
    """0 is unbounded; `offset` None is the tail."""

    limit: int = 0
    offset: int | None = None
    max_bytes: int = 0
    max_record_bytes: int = 0

    @property
    def none(self) -> bool:
        """Whether nothing bounds the stream."""
        return not (self.limit or self.offset or self.max_bytes or self.max_record_bytes)


class TooLarge(Exception):
    """Not even one record fits."""

    def __init__(self, size: int, limits: Limits) -> None:
        super().__init__(
            f"even one record ({size} bytes) exceeds --max-bytes ({limits.max_bytes})"
            " - raise --max-bytes, or set --max-record-bytes to clamp long texts"
        )


class Account:
    """What bounding did to one stream.

    `total` is None as long as the stream has not been read to its end; `start` is the offset of the first record
    returned, which in a tail cut by the byte budget lies behind `window_start`.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.total: int | None = None
        self.window_start = 0
        self.window_ended = False
        self.start = 0
        self.returned = 0
        self.bytes = 0
        self.clamped: list[int] = []
        self.byte_cap = False

    @property
    def reasons(self) -> str | None:
        """`record_limit, byte_cap, record_clamp`, as far as they apply; an empty window is never called cut."""
        if not self.returned:
            return None
        applying = (
            ("record_limit", self.window_start > 0 or self.window_ended),
            ("byte_cap", self.byte_cap),
            ("record_clamp", bool(self.clamped)),
        )
        return ", ".join(name for name, applies in applying if applies) or None

    @property
    def next_offset(self) -> int | None:
        """Where the next page begins; None at the end."""
        front = self.limits.offset is not None or not (self.limits.limit or self.limits.max_bytes)
        more = self.window_ended or (self.byte_cap and front)
        return self.start + self.returned if more and self.returned else None

    def notice(self) -> str:
        """One sentence for people; empty when nothing was held back."""
        if not self.reasons:
            return ""
        total = f" of {self.total}" if self.total is not None else ""
        text = f"TRUNCATED: returned records {self.start}..{self.start + self.returned}{total} ({self.reasons})"
        if self.clamped:
            text += f", {len(self.clamped)} clamped"
        if self.next_offset is not None:
            text += f", next_offset={self.next_offset}"
        return text + "; use offset and limit to page"

    def bounds(self) -> Record:
        """The `bounds` object of an envelope."""
        limits = self.limits
        return {
            "total_records": self.total,
            "returned_records": self.returned,
            "offset": self.start,
            "limit": limits.limit,
            "next_offset": self.next_offset,
            "truncated": self.reasons is not None,
            "truncation_reason": self.reasons,
            "max_bytes": limits.max_bytes,
            "bytes": self.bytes,
            "clamped_record_indices": self.clamped,
            "notice": self.notice(),
        }


def bounded(
    records: Iterable[Any],
    limits: Limits,
    account: Account,
    encode: Callable[[Any], bytes] = encoded,
    clamp: Callable[[Any, int], tuple[Any, bool]] | None = None,
    *,
    count_all: bool = False,
) -> Iterator[bytes]:
    """The lines of the records within `limits`; `account` is complete when the iterator is.

    Streams wherever the window begins at the front; a tail is held in memory, as far as the bounds let it grow.
    `count_all` reads on to the end so that the total is known. Raises TooLarge before the first line.
    """
    clamp = clamp or clamped
    if limits.offset is None and (limits.limit or limits.max_bytes):
        return _tail(records, limits, account, encode, clamp)
    return _front(records, limits, account, encode, clamp, count_all)


def _front(
    records: Iterable[Any],
    limits: Limits,
    account: Account,
    encode: Callable[[Any], bytes],
    clamp: Callable[[Any, int], tuple[Any, bool]],
    count_all: bool,
) -> Iterator[bytes]:
    account.window_start = account.start = limits.offset or 0
    end = account.start + limits.limit if limits.limit else None
    position = 0
    for record in records:
        position += 1
        if position <= account.start:
            continue
        if end is not None and position > end:
            account.window_ended = True
        if account.window_ended or account.byte_cap:
            if count_all:
                continue
            return
        cut = False
        if limits.max_record_bytes:
            record, cut = clamp(record, limits.max_record_bytes)
        line = encode(record)
        if limits.max_bytes and account.bytes + account.returned + len(line) + 1 > limits.max_bytes:
            if not account.returned:
                raise TooLarge(len(line), limits)
            account.byte_cap = True
            continue
        if cut:
            account.clamped.append(account.returned)
        account.returned += 1
        account.bytes += len(line)
        yield line
    account.total = position
    account.window_start = account.start = min(account.start, position)


def _tail(
    records: Iterable[Any],
    limits: Limits,
    account: Account,
    encode: Callable[[Any], bytes],
    clamp: Callable[[Any, int], tuple[Any, bool]],
) -> Iterator[bytes]:
    # Lines and not records are held: what is printed is what was measured.
    window: deque[tuple[bytes, bool]] = deque()
    size = position = last = 0
    for record in records:
        position += 1
        cut = False
        if limits.max_record_bytes:
            record, cut = clamp(record, limits.max_record_bytes)
        line = encode(record)
        last = len(line)
        window.append((line, cut))
        size += last + 1
        while window and (
            (limits.limit and len(window) > limits.limit) or (limits.max_bytes and size > limits.max_bytes)
        ):
            size -= len(window.popleft()[0]) + 1
    if position and not window:
        raise TooLarge(last, limits)
    account.total = position
    account.window_start = max(0, position - limits.limit) if limits.limit else 0
    account.start = position - len(window)
    account.byte_cap = account.start > account.window_start
    account.returned = len(window)
    account.bytes = size - len(window)
    account.clamped = [index for index, (_, cut) in enumerate(window) if cut]
    for line, _ in window:
        yield line


def enveloped(
    head: Record,
    key: str,
    records: Iterable[Any],
    limits: Limits,
    extra: Callable[[], Record] = dict,
    encode: Callable[[Any], bytes] = encoded,
    clamp: Callable[[Any, int], tuple[Any, bool]] | None = None,
) -> bytes:
    """One JSON object: `head`, the bounds, what `extra` has to say after the last record, and the records under `key`.

    The whole document fits `limits.max_bytes`. Raises TooLarge when not even one record does.
    """
    account = Account(limits)
    body = deque(bounded(records, limits, account, encode, clamp, count_all=True))
    tail = limits.offset is None and bool(limits.limit or limits.max_bytes)
    while True:
        front = encoded({**head, "bounds": account.bounds(), **extra()})[:-1] + b',"%b":[' % key.encode()
        size = len(front) + account.bytes + max(0, len(body) - 1) + 2
        if not limits.max_bytes or size <= limits.max_bytes:
            return front + b",".join(body) + b"]}"
        if len(body) <= 1:
            raise TooLarge(size, limits)
        account.byte_cap = True
        account.returned -= 1
        if tail:
            account.bytes -= len(body.popleft())
            account.start += 1
            account.clamped = [index - 1 for index in account.clamped if index]
        else:
            account.bytes -= len(body.pop())
            account.clamped = [index for index in account.clamped if index < account.returned]


def clamped(record: Record, size: int) -> tuple[Record, bool]:
    """The record with content, thinking and string arguments cut to `size` bytes each, and whether any was."""
    changed: Record = {}
    for key in ("content", "thinking"):
        text = record.get(key)
        if isinstance(text, str) and (short := cut_text(text, size)) is not text:
            changed[key] = short
    if record.get("tool_calls"):
        calls = [{**call, "arguments": clamped_value(call["arguments"], size)} for call in record["tool_calls"]]
        if calls != record["tool_calls"]:
            changed["tool_calls"] = calls
    return ({**record, **changed}, True) if changed else (record, False)


def clamped_value(value: Any, size: int) -> Any:
    """A JSON value with every string in it cut to `size` bytes."""
    if isinstance(value, str):
        return cut_text(value, size)
    if isinstance(value, list):
        return [clamped_value(item, size) for item in value]
    if isinstance(value, dict):
        return {key: clamped_value(item, size) for key, item in value.items()}
    return value


def cut_text(text: str, size: int) -> str:
    """At most `size` bytes of `text`, cut at a character boundary; the text itself when it fits."""
    if len(text) * 4 <= size:
        return text
    data = text.encode("utf-8", "replace")
    return text if len(data) <= size else data[:size].decode("utf-8", "ignore")
