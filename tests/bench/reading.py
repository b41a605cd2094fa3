"""The rows about starting, listing and reading: 1, 3, 4, 7, 8, 9."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tests.bench.lab import Lab, Missing
from tests.bench.measure import Process, run
from tests.bench.table import Budget, Line

QUERY = "server cache ledger"
_NO_PAYLOAD = 0.02  # of the source: the catalogue is less
# Five fields of what tr-extract prints, where each harness keeps them.
FIELDS = {
    "claude": 'select(.type == "user" or .type == "assistant")'
    " | {ts: .timestamp, role: .type, content: .message.content, usage: .message.usage, model: .message.model}",
    "codex": 'select(.type == "response_item") | {ts: .timestamp} + (.payload | {role, content, arguments, output})',
    "vibe": "{role, content, reasoning_content, tool_calls, name}",
}


def against(lab: Lab, number: str, job: str, ours: Process, theirs: Process, name: str, budget: Budget) -> Line:
    """One of ours beside one of theirs."""
    mine, others = lab.measured(ours, theirs)
    return Line(number, job, mine, others, name, budget)


def beside(
    lab: Lab,
    number: str,
    job: str,
    ours: Process,
    tool: str,
    words: tuple[str, ...],
    budget: Budget,
    name: str,
    *,
    alone: bool = True,
) -> Line:
    """One of ours beside another program; where that is not installed, `alone` or not at all."""
    try:
        theirs = lab.theirs(name, tool, *words)
    except Missing as missing:
        mine = lab.measured(ours)[0] if alone else None
        return Line(number, job, mine, budget=budget, note=str(missing))
    return against(lab, number, job, ours, theirs, tool, budget)


def starting(lab: Lab) -> Iterator[Line]:
    """1: what every command costs before it does anything."""
    small = Budget(ratio=1.2)
    session, _ = lab.giant("codex", "tiny")
    for tool, *words in (("tr-fmt",), ("tr-stores",), ("tr-resume", session), ("tr-list", "--limit", "1")):
        ours = lab.ours("tiny", tool, *words)
        bare = lab.importing(ours)
        yield against(lab, "1", f"{' '.join([tool, *words[:2]])[:24]}, tiny", ours, bare, bare.words[-1], small)
    ours = lab.ours(lab.size, "tr-list", "--limit", "1", "-q")
    yield against(lab, "1", f"tr-list --limit 1, {lab.size}", ours, lab.importing(ours), "the same", small)


def listing(lab: Lab) -> Iterator[Line]:
    """3: the list of all sessions, nothing changed."""
    ours = lab.ours(lab.size, "tr-list")
    budget = Budget(ratio={"L": 0.4}.get(lab.size, 0.7))
    words = ("--json", "--all")
    yield beside(lab, "3", f"tr-list, nothing changed, {lab.size}", ours, "fast-resume", words, budget, lab.size)
    start = run(lab.ours(lab.size, "tr-list", "--version")).read
    for harness, facts in lab.about(lab.size)["stores"].items():
        share = (run(lab.ours(lab.size, "tr-list", "-H", harness)).read - start) / facts["bytes"]
        told, kept = f"{share:.1%} of the source", share < _NO_PAYLOAD if start else None
        yield Line("3", f"  what it reads, {harness}", measured=told, promise="no payload", kept=kept)


def first_listing(lab: Lab) -> Iterator[Line]:
    """4: the first list, counts included."""
    forget = lab.forgetting(lab.size, "first")
    ours = lab.ours(lab.size, "tr-list", shadow="first", before=forget)
    bare = lab.bare(lab.size, "parse", lab.home(lab.size))
    line = against(lab, "4", f"first tr-list, {lab.size}", ours, bare, "bare parse", Budget(rate=250))
    size = lab.megabytes(lab.size)
    yield line._replace(source=size, job=f"{line.job} ({size / line.ours.median('cpu'):.0f} MB/CPU-s)")
    for harness in FIELDS | {"opencode": ""}:
        (mine,) = lab.measured(lab.ours(lab.size, "tr-list", "-H", harness, shadow="first", before=forget), runs=3)
        size = lab.about(lab.size)["stores"][harness]["bytes"] / 1e6
        yield Line("4", f"  {harness} alone", mine, source=size)


def extracting(lab: Lab) -> Iterator[Line]:
    """7: a session of 200 MB, everything."""
    for harness, fields in FIELDS.items():
        session, path = lab.giant(harness)
        ours = lab.ours("giant", "tr-extract", "--full", "-H", harness, session)
        budget = Budget(ratio=0.35, megabytes=80, first=0.2)
        line = beside(lab, "7", f"tr-extract --full, {harness}", ours, "jq", ("-c", fields, path), budget, "giant")
        yield line._replace(job=f"{line.job} (first in {line.ours.median('first'):.2f} s)")
        smaller, _ = lab.giant(harness, "giant-20")
        (little,) = lab.measured(lab.ours("giant-20", "tr-extract", "--full", "-H", harness, smaller), runs=3)
        grown = line.ours.median("memory") / little.median("memory") - 1
        told = f"{little.median('memory') / 1e6:.1f} MB at 20 MB, {grown:+.0%} at 200"
        yield Line("7", f"  memory, {harness}", measured=told, promise="within 10 %", kept=abs(grown) <= 0.1)


def since_compaction(lab: Lab) -> Iterator[Line]:
    """8: the same session from its last compaction on."""
    for harness in (*FIELDS, "opencode"):
        session, _ = lab.giant(harness)
        tail = partial(lab.ours, "giant", "tr-extract", "-H", harness, session)
        (first,) = lab.measured(tail(shadow="tail", before=lab.forgetting("giant", "tail")), runs=3)
        run(tail(shadow="tail"))
        (warm,) = lab.measured(tail(shadow="tail"))
        yield Line("8", f"tr-extract, {harness}", warm, budget=Budget(seconds=0.3))
        yield Line("8", "  the first time", first)


def extracting_rows(lab: Lab) -> Iterator[Line]:
    """9: a session of 200 MB in OpenCode's database."""
    session, path = lab.giant("opencode")
    ours = lab.ours("giant", "tr-extract", "--full", "-H", "opencode", session)
    query = f"SELECT id, message_id, time_created, data FROM part WHERE session_id = '{session}' ORDER BY id"
    job, words = "tr-extract --full, opencode", ("-json", f"file:{path}?immutable=1", query)
    yield beside(lab, "9", job, ours, "sqlite3", words, Budget(ratio=1), "giant")
    job, words = "  beside opencode export", ("export", session)
    yield beside(lab, "9", job, ours, "opencode", words, Budget(ratio=0.2), "giant", alone=False)
