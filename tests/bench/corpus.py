#!/usr/bin/env python3
"""Makes stores of four harnesses, in the shapes of real ones, for the benchmark.

    python tests/bench/corpus.py M /tmp/bench/M            2,146 sessions of Claude Code and Codex together (482 MB),
                                                           and as many again of OpenCode and Vibe
    python tests/bench/corpus.py giant /tmp/bench/giant    one session of 200 MB in each

FOLDER becomes a home directory. Besides the stores it has `corpus.json` (what it is, and where each planted phrase
stands) and `sessions.jsonl` (what a listing must find in each session). The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from random import Random
from typing import Any, NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if ROOT not in sys.path:
    sys.path[:0] = [ROOT, os.path.join(ROOT, "tests")]

import orjson  # noqa: E402

from tests.bench.claude import Claude  # noqa: E402
from tests.bench.codex import Codex  # noqa: E402
from tests.bench.opencode import OpenCode  # noqa: E402
from tests.bench.script import KINDS, Planted, Script, Session, Shares  # noqa: E402
from tests.bench.text import Text, planted  # noqa: E402
from tests.bench.vibe import Vibe  # noqa: E402

WRITERS = {"claude": Claude, "codex": Codex, "opencode": OpenCode, "vibe": Vibe}
# Where each store lies below the folder, as in a home directory.
PLACES = {
    "claude": ".claude/projects",
    "codex": ".codex/sessions",
    "opencode": ".local/share/opencode",
    "vibe": ".vibe/logs/session",
}
_FIRST, _LAST = 1_767_600_000_000, 1_779_900_000_000  # the first and the last session begin: January to May 2026
_PROJECTS = "atlas beacon cobalt delta ember fathom garnet harbor island juniper kestrel lantern".split()
_PHRASES = 10  # of each kind
_SIZES_SPREAD = 1.2
_MEGABYTE = 1_000_000


class Preset(NamedTuple):
    """`sessions` and `megabytes` of Claude Code and Codex together; OpenCode and Vibe get as many again.

    In a `giant`, a session is compacted each `every` megabytes, as its context fills; others at most twice.
    """

    sessions: int
    megabytes: float
    every: float = 0
    phrases: int = _PHRASES
    shares: Shares = Shares()


_GIANT = Shares(children=0, thinking=1, todos=1, git=1, cjk=0, unified=0)
PRESETS = {
    "tiny": Preset(20, 2),
    "S": Preset(212, 54),
    "M": Preset(2_146, 482),
    "L": Preset(10_761, 2_391),
    "giant-20": Preset(2, 40, every=2.5, phrases=0, shares=_GIANT),
    "giant": Preset(2, 400, every=2.5, phrases=0, shares=_GIANT),
}


def write(preset: Preset, folder: str, seed: int = 1, name: str = "") -> dict[str, Any]:
    """Write the stores, and return what `corpus.json` says."""
    os.makedirs(folder, exist_ok=True)
    if os.listdir(folder):
        raise FileExistsError(f"{folder} is not empty")
    text = Text(seed)
    about: dict[str, Any] = {"preset": name, "seed": seed, "stores": {}, "phrases": []}
    with open(os.path.join(folder, "sessions.jsonl"), "wb") as listed:
        for harness, make in WRITERS.items():
            writer = make(folder, text)
            sessions = planned(preset, harness, seed, writer.floor)
            for session in sessions:
                session.id = writer.identify(session)
            about["phrases"] += [_where(session, phrase) for session in sessions for phrase in session.planted]
            owed = 0  # sessions end a little late: the next one makes up for it
            for session in sessions:
                due = session.size - owed
                session.size = max(due, writer.floor)
                facts = asdict(writer.write(session, Script(session, text, preset.shares)))
                owed = session.written - due
                row = {"harness": harness, "session_id": session.id, "parent": session.parent and session.parent.id}
                listed.write(orjson.dumps({**row, **facts}, option=orjson.OPT_APPEND_NEWLINE))
            writer.close()
            size = sum(os.path.getsize(path) for path in files(os.path.join(folder, PLACES[harness])))
            about["stores"][harness] = {"sessions": len(sessions), "bytes": size}
    with open(os.path.join(folder, "corpus.json"), "wb") as file:
        file.write(orjson.dumps(about, option=orjson.OPT_INDENT_2))
    return about


def _where(session: Session, phrase: Planted) -> dict[str, str]:
    found = {"harness": session.harness, "session_id": session.id}
    return {**found, "kind": phrase.kind, "phrase": phrase.phrase}


def files(folder: str) -> Iterator[str]:
    """Every file below a folder."""
    for place, _, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in names)


def planned(preset: Preset, harness: str, seed: int, floor: int) -> list[Session]:
    """The sessions of one harness, from the oldest on; each sub-agent follows the session that spawned it."""
    rng = Random(f"plan {seed} {harness}")
    shares = preset.shares
    count = preset.sessions // 2
    sizes = _sizes(rng, count, preset.megabytes * _MEGABYTE / 2, floor)
    times = sorted(rng.randrange(_FIRST, _LAST) for _ in range(count))
    sessions: list[Session] = []
    owner: Session | None = None
    for number, (size, began) in enumerate(zip(sizes, times, strict=True)):
        session = Session(harness, number, size, began, "", None, seed=str(seed))
        if owner is not None and rng.random() < shares.children:
            session.parent = owner
            session.directory, session.branch = owner.directory, owner.branch
            session.interactive, session.unified = owner.interactive, owner.unified
            owner.children.append(session)
        else:
            owner = session
            _characterise(session, rng, preset)
        session.thinking = rng.random() < shares.thinking
        sessions.append(session)
    _plant(sessions, rng, preset.phrases, list(WRITERS).index(harness))
    return sessions


def _characterise(session: Session, rng: Random, preset: Preset) -> None:
    shares, size = preset.shares, session.size
    session.directory = f"/home/dev/src/{rng.choice(_PROJECTS)}"
    session.branch = rng.choice(("main", "main", "feature/shelves", None))
    session.interactive = rng.random() < shares.interactive
    session.cjk = rng.random() < shares.cjk
    session.todos = rng.random() < shares.todos
    session.git = rng.random() < shares.git
    session.unified = session.harness == "vibe" and rng.random() < shares.unified
    if preset.every:
        step = preset.every * _MEGABYTE
        session.compactions = [step * place for place in range(1, int(size / step))] + [size - step / 2]
    elif rng.random() < shares.compacted:
        session.compactions = sorted(size * rng.uniform(0.3, 0.95) for _ in range(rng.randint(1, 2)))


def _sizes(rng: Random, count: int, total: float, floor: int) -> list[int]:
    """Sizes with a long tail that add up to `total`, none below `floor`."""
    weights = [rng.lognormvariate(0, _SIZES_SPREAD) for _ in range(count)]
    spare = max(total - count * floor, 0) / sum(weights)
    return [int(floor + spare * weight) for weight in weights]


def _plant(sessions: list[Session], rng: Random, each: int, turn: int) -> None:
    """Every harness gets its share of the phrases, of all kinds."""
    roots = [session for session in sessions if session.parent is None]
    for number in range(each * len(KINDS)):
        if number % len(WRITERS) == turn:
            kind = KINDS[number // each]
            phrase = Planted(kind, planted(rng, cjk=kind == "cjk"), rng.uniform(0, 0.8))
            rng.choice(roots).planted.append(phrase)


def main() -> int:
    parser = argparse.ArgumentParser(description="Make stores of four harnesses, for the benchmark.")
    parser.add_argument("preset", choices=PRESETS, help="how much of them")
    parser.add_argument("folder", help="a folder that is empty or not there yet")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        about = write(PRESETS[given.preset], given.folder, given.seed, given.preset)
    except OSError as error:
        parser.error(str(error))
    for harness, facts in about["stores"].items():
        print(f"{harness:10}{facts['sessions']:8} sessions{facts['bytes'] / _MEGABYTE:10.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
