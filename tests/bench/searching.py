"""The rows about searching, the index and the MCP server: 2, 5, 6, 10, 11, 12, 13."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter

from tests.bench.lab import STORES, Lab
from tests.bench.measure import Failed, Process, output, run
from tests.bench.reading import QUERY, against, beside
from tests.bench.table import Budget, Line

# How the MCP server calls tr-list for list_sessions.
_CALLED = ("--hours=0", "--limit=200", "--max-bytes=16384", "--envelope")
_GROWTH = 10  # records that a session grows by
_GROWN_BYTES = 1_000_000  # more than they are, far less than a store


def starting(lab: Lab) -> Iterator[Line]:
    """1: a search of what is indexed, beside a bare Python that opens the index and asks it."""
    run(lab.ours(lab.size, "tr-index"))
    ours = lab.ours(lab.size, "tr-search", "--no-refresh", "-H", "claude", QUERY)
    index = _bare_index(lab)
    bare = lab.bare(lab.size, "search", index, QUERY)
    yield against(lab, "1", f"tr-search --no-refresh, {lab.size}", ours, bare, "bare tantivy", Budget(ratio=2))


def _bare_index(lab: Lab) -> str:
    """An index that a bare Python made of the records of one store."""
    folder = os.path.join(lab.folder, "bare", lab.size)
    if not os.path.exists(folder):
        run(lab.bare(lab.size, "index", folder, stdin=_records(lab)))
    return folder


def _records(lab: Lab) -> str:
    """A file with all message records of a corpus."""
    path = os.path.join(lab.folder, f"records-{lab.size}.jsonl")
    if not os.path.exists(path):
        listed = os.path.join(lab.home(lab.size), "sessions.jsonl")
        extract = lab.ours(lab.size, "tr-extract", "--full", "-q", "-", stdin=listed)
        with open(path + ".new", "wb") as file, open(listed, "rb") as stdin:
            subprocess.run(extract.words, env=extract.environment, stdin=stdin, stdout=file, check=True)
        os.rename(path + ".new", path)
    return path


def searching(lab: Lab) -> Iterator[Line]:
    """2: a search that first looks for changes, and finds none."""
    run(lab.ours(lab.size, "tr-index"))
    ours = lab.ours(lab.size, "tr-search", QUERY)
    budget = Budget(ratio={"L": 1.0}.get(lab.size, 2.5))
    words = ("--json", QUERY)
    yield beside(lab, "2", f"tr-search, nothing changed, {lab.size}", ours, "fast-resume", words, budget, lab.size)


def indexing(lab: Lab) -> Iterator[Line]:
    """5: the first index of everything."""
    ours = lab.ours(lab.size, "tr-index", shadow="index", before=lab.forgetting(lab.size, "index"))
    folder = os.path.join(lab.folder, "bare", "again")
    forget = lab.forgetting(lab.size, os.path.join(os.pardir, "bare", "again"))
    bare = lab.bare(lab.size, "index", folder, stdin=_records(lab), before=forget)
    budget = Budget(ratio=1.5, megabytes=200)
    yield against(lab, "5", f"first tr-index, {lab.size}", ours, bare, "bare tantivy", budget)
    shadow = lab.shadow(lab.size, "index")
    size = sum(_size(os.path.join(shadow, harness, "index")) for harness in os.listdir(shadow))
    share = size / 1e6 / lab.megabytes(lab.size)
    yield Line("5", "  size of the index", measured=f"{share:.0%} of the source", promise="25 %", kept=share <= 0.25)
    job, words = "  beside agentsview", ("sync",)
    yield beside(lab, "5", job, ours, "agentsview", words, Budget(ratio=0.3), lab.size, alone=False)


def _size(folder: str) -> int:
    return sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names)


def refreshing(lab: Lab) -> Iterator[Line]:
    """6: one session has grown, then a search."""
    run(lab.ours(lab.size, "tr-index"))
    job, budget = f"tr-search, one session grew, {lab.size}", Budget(ratio=2.5, over=0.2)
    still = lab.ours(lab.size, "tr-search", QUERY)
    with _growing(lab) as grow:
        ours = still._replace(before=grow)
        line = beside(lab, "6", job, ours, "fast-resume", ("--json", QUERY), budget, lab.size)
        unchanged = lab.measured(still)[0]
    yield line
    more = line.ours.median("read") - unchanged.median("read")
    told = f"{more / 1e6:.2f} MB more than when nothing changed"
    kept = more <= _GROWN_BYTES if line.ours.median("read") else None
    yield Line("6", "  what it reads", measured=told, promise="the grown part", kept=kept)


@contextmanager
def _growing(lab: Lab) -> Iterator[Callable[[], None]]:
    """Appends records to one session at each call; in the end it is as it was."""
    folder = os.path.join(lab.home(lab.size), STORES[0])
    paths = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)
    path = min(each for each in paths if each.endswith(".jsonl") and "subagents" not in each)
    before = os.stat(path)
    with open(path, "rb") as file:
        last = [json.loads(line) for line in file if b'"type":"assistant"' in line][-_GROWTH:]
    count = 0

    def grow() -> None:
        nonlocal count
        with open(path, "ab") as file:
            for record in last:
                count += 1
                record |= {"uuid": f"00000000-0000-4000-8000-{count:012}", "timestamp": "2026-11-30T00:00:00.000Z"}
                file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    try:
        yield grow
    finally:
        os.truncate(path, before.st_size)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def scanning(lab: Lab) -> Iterator[Line]:
    """10: a literal, everywhere."""
    phrase = next(each["phrase"] for each in lab.about(lab.size)["phrases"] if each["kind"] == "tool-output")
    run(lab.ours(lab.size, "tr-index"))
    ours = lab.ours(lab.size, "tr-search", "--match", "literal", "--limit", "0", phrase)
    stores = [os.path.join(lab.home(lab.size), store) for store in STORES]
    words = ("-n", "-a", "-F", "--hidden", "--no-ignore", phrase, *stores)
    job = f"tr-search --match literal, {lab.size}"
    yield beside(lab, "10", job, ours, "rg", words, Budget(ratio=2), lab.size)


def recalling(lab: Lab) -> Iterator[Line]:
    """11: phrases planted in all kinds of text, each in one session."""
    run(lab.ours(lab.size, "tr-index"))
    phrases = lab.about(lab.size)["phrases"]
    found: dict[str, int] = {}
    for place in phrases:
        search = lab.ours(lab.size, "tr-search", "--no-refresh", "-q", f'"{place["phrase"]}"', statuses=(0, 1))
        hits = [json.loads(line) for line in output(search).splitlines()]
        if any(place["session_id"] == hit["session_id"] for hit in hits):
            found[place["kind"]] = found.get(place["kind"], 0) + 1
    total = sum(found.values())
    told = f"{total} of {len(phrases)} ({', '.join(f'{kind} {count}' for kind, count in found.items())})"
    yield Line("11", f"recall, {lab.size}", measured=told, promise=f"{len(phrases)}", kept=total == len(phrases))


def serving(lab: Lab) -> Iterator[Line]:
    """12: the MCP server's start, and what it adds to a command."""
    server = lab.ours("tiny", "tr-mcp")
    imports = Process([sys.executable, "-c", "import mcp.server.stdio"], server.environment)
    yield against(lab, "12", "tr-mcp, start to end of input", server, imports, "import mcp", Budget(ratio=1.15))
    added = _added(server, lab.ours("tiny", "tr-list", *_CALLED), lab.runs)
    told = f"{added * 1000:+.0f} ms"
    yield Line("12", "  a call of list_sessions, to tr-list", measured=told, promise="15 ms", kept=added <= 0.015)


def _added(server: Process, alone: Process, runs: int) -> float:
    """The median of what calls took longer, in turns, than the command that they run."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    call = {"name": "list_sessions", "arguments": {"all": True}}
    with subprocess.Popen(server.words, env=server.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:

        def tell(**message: object) -> None:
            assert child.stdin
            child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            child.stdin.flush()

        def ask(**message: object) -> None:
            tell(**message)
            while (answer := json.loads(child.stdout.readline() or b"{}")).get("id") != message["id"]:
                if child.poll() is not None:
                    raise Failed("tr-mcp ended before it had answered")
            if "error" in answer or answer["result"].get("isError"):
                raise Failed(f"tr-mcp: {str(answer)[:300]}")

        ask(id=0, method="initialize", params=about)
        tell(method="notifications/initialized", params={})
        added = []
        for number in range(1, runs + 2):
            wall = run(alone).wall
            began = perf_counter()
            ask(id=number, method="tools/call", params=call)
            added.append(perf_counter() - began - wall)
        child.stdin.close()
    return median(added[1:])


def growing(lab: Lab) -> Iterator[Line]:
    """13: from S to the size asked for."""
    if lab.size == "S":
        return
    sizes = ("S", lab.size)
    finding, searches, listings, memory = (list[float]() for _ in range(4))
    for size in sizes:
        run(lab.ours(size, "tr-index"))
        stores = [os.path.join(lab.home(size), store) for store in STORES]
        find = lab.theirs(size, "find", *stores, "-type", "f", "-printf", "%p %s %T@\\n")
        search, found = lab.measured(lab.ours(size, "tr-search", QUERY), find)
        first = lab.ours(size, "tr-list", shadow="first", before=lab.forgetting(size, "first"))
        (listed,) = lab.measured(first, runs=3)
        for figures, samples, what in (
            (finding, found, "cpu"),
            (searches, search, "cpu"),
            (listings, listed, "cpu"),
            (memory, search, "memory"),
        ):
            figures.append(samples.median(what))
    grown = {name: last / first for name, (first, last) in _named(finding, searches, listings, memory)}
    more = lab.megabytes(lab.size) / lab.megabytes("S")
    for name, most, promise in (
        ("search", grown["find"], f"find: {grown['find']:.1f} x"),
        ("first list", more * 1.15, f"source: {more:.1f} x"),
        ("memory of a search", 1.1, "flat"),
    ):
        told = f"{grown[name]:.1f} x"
        yield Line("13", f"growth S to {lab.size}: {name}", measured=told, promise=promise, kept=grown[name] <= most)


def _named(*figures: list[float]) -> Iterator[tuple[str, list[float]]]:
    return zip(("find", "search", "first list", "memory of a search"), figures, strict=True)
