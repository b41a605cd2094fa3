"""Report texts: the records of a window command as a text for agents and people, facts first.

A line of recorded text that looks like a line of the report itself is set off by a backslash, so that what a session
says can never be taken for what the report says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from .notices import Notices
from .record import Record
from .terminal import clean, flat

if TYPE_CHECKING:
    from .coverage import Coverage

_BEGINNING = re.compile(r"^(?=(?:===|---|#|HEADER:|QUESTION:|OPTIONS:|ANSWERS:|  - |\\))", re.MULTILINE)
_MEMORY = 1 << 20


def quoted(text: str) -> str:
    """Recorded text for a report: no control characters, and no line that could be one of the report's own."""
    return _BEGINNING.sub(r"\\", clean(text)).rstrip("\n")


def spooled(head: Callable[[], Iterable[str]], body: Iterable[str]) -> Iterator[bytes]:
    """The lines of `head`, which is asked only after the whole body has been made, then the body."""
    import tempfile

    with tempfile.SpooledTemporaryFile(_MEMORY) as waiting:
        for text in body:
            waiting.write(text.encode("utf-8", "replace") + b"\n")
        for text in head():
            yield text.encode("utf-8", "replace")
        waiting.seek(0)
        for line in waiting:
            yield line.removesuffix(b"\n")


_SIDES = (("he", "--- HE SAID:"), ("she", "--- SHE SAID:"), ("they", "--- THEY DID (tool calls):"))


def said(hits: Iterable[Record], titles: Mapping[str, str | None] | None = None) -> Iterator[str]:
    """Dialogue hits, a section a session: what he said, what she said, what they did."""
    for session, found in groupby(hits, key=lambda hit: hit["session_id"]):
        sides: dict[str, list[str]] = {who: [] for who, _ in _SIDES}
        for hit in found:
            sides.setdefault(hit["who"], []).append(quoted(hit["text"]))
        yield f"=== {flat((titles or {}).get(session) or '-')} ({flat(session)})"
        for who, heading in _SIDES:
            if sides[who]:
                yield heading
                yield from sides[who]
        yield ""


def answered(pairs: Iterable[Record]) -> Iterator[str]:
    """Questions with their answers, a section a session."""
    for (session, harness), found in groupby(pairs, key=lambda pair: (pair["session_id"], pair["harness"])):
        yield f"=== {flat(session)} ({flat(harness)})"
        for number, pair in enumerate(found, 1):
            yield f"--- QA {number} ({pair['ts'] or '-'})"
            yield f"HEADER: {flat(pair['header'])}"
            yield f"QUESTION: {quoted(pair['question'])}"
            yield "OPTIONS:"
            for option in pair["options"]:
                description = flat(option.get("description"))
                yield f"  - {flat(option.get('label'))}" + (f" — {description}" if description else "")
            yield "ANSWERS:"
            for answer in pair["answers"]:
                yield f"  - {flat(answer)}"
        yield ""


def found(hits: Iterable[Record], coverage: Coverage, notices: Notices) -> Iterator[bytes]:
    """Search hits under what was searched: the query, the account, and problems one a line."""
    sessions: set[str] = set()

    def body() -> Iterator[str]:
        for hit in hits:
            sessions.add(hit["session_id"])
            yield hit_line(hit)

    def head() -> Iterator[str]:
        account = coverage.record()
        yield f"# do-android-dream-of-electric-sheep — query: {flat(account['query']['given'])}"
        yield (
            f"{account['searched']} sessions searched, {len(sessions)} with hits, {account['missing']} not indexed,"
            f" {account['stale']} stale, {account['total_hits']} hits in all;"
            f" read as: {flat(account['query']['parsed_as'])}"
        )
        for problem in account["unreadable"]:
            yield f"cannot read {flat(problem['session_id'])}: {flat(problem['error'])}"
        yield from (flat(text) for text in notices.said)
        for suggestion in coverage.suggestions:
            yield f"try ({suggestion['reason']}): {flat(suggestion['command'])}"

    return spooled(head, body())


def hit_line(hit: Record) -> str:
    """A search hit on one line: session, score, time, role, id, snippet."""
    role = str(hit["role"] or hit["class"]).upper() + (" (thinking)" if hit["class"] == "reasoning" else "")
    snippet = clean(hit["snippet"]).replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("|", "\\|")
    return f"{flat(hit['session_id'])} | {hit['score']:.2f} | {hit['ts'] or '-'} | {role} | {hit['id']} | {snippet}"


def index_line(row: Record) -> str:
    """What indexing did to a session, on one line."""
    if row["status"] == "failed":
        return f"failed {flat(row['session_id'])}: {flat(row.get('error'))}"
    if row["status"] == "removed":
        return f"removed {flat(row['session_id'])}"
    return f"indexed {flat(row['session_id'])} docs={row['docs']}"
