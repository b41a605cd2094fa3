"""The walks that only count: they tell what the walks that read tell, and read no more than they must."""

import io
from copy import deepcopy

import orjson
import pytest
from total_recall.notices import Notices
from total_recall.regular import BUFFER
from total_recall.stores import _jsonl, claude
from total_recall.stores._claude_files import head
from total_recall.stores.base import Tally
from total_recall.stores.registry import adapter

from tests.stores.claude_transcripts import FIXTURES, Transcript, messages

STORES = [
    ("claude", "claude/.claude/projects"),
    ("claude", "claude-old/.claude/projects"),
    ("codex", "codex/.codex/sessions"),
    ("codex", "codex-migrated/.codex/sessions"),
    ("codex", "codex-zst/.codex/sessions"),
    ("vibe", "vibe/legacy-2.18.4/logs/session"),
    ("vibe", "vibe/mixed-3.0.3/logs/session"),
]
ODD = [None, True, 7, "x", [], {}, [["x"]], {"type": "tool_use"}, [{"type": "tool_result"}]]


def opened(harness, root):
    kind = adapter(harness)
    return kind(kind.locate({f"TOTAL_RECALL_{harness.upper()}_ROOT": str(root)}), Notices())


def agree(store, session):
    """Whether both walks stand alike after every stored record, and count alike; how many records there were."""
    reading, counting = Tally(), Tally()
    reader, counter = store.entries(session, reading.state, whole=True), store.skimmed(session, counting.state)
    passed = 0
    for read, counted in zip(reader, counter, strict=True):
        reading.add(read)
        counting.add(counted)
        passed += 1
        assert counting.state == reading.state
    assert counting.facts() == reading.facts()
    assert counting.bookmarks == reading.bookmarks
    return passed


@pytest.mark.parametrize(("harness", "root"), STORES, ids=lambda value: value.partition("/")[0])
def test_a_walk_that_counts_stands_where_one_that_reads_would(harness, root):
    """After every record: so that reading can go on from any bookmark that a first list has kept."""
    store = opened(harness, FIXTURES / root)
    assert sum(agree(store, session) for session in store.sessions()) > 50


@pytest.mark.parametrize(
    ("harness", "root"), [STORES[0], STORES[2], STORES[5]], ids=lambda value: value.partition("/")[0]
)
def test_it_does_so_with_fields_of_any_type(harness, root, tmp_path):
    """Every field of the records may hold any JSON value, and lines may be torn."""
    source = max((FIXTURES / root).rglob("*.jsonl"), key=lambda path: path.read_bytes().count(b"\n"))
    lines = source.read_bytes().splitlines()
    copy = tmp_path / source.relative_to(FIXTURES / root)
    copy.parent.mkdir(parents=True)
    passed = 0
    for number, odd in enumerate(ODD):
        damaged = [_with(line, place + number, odd) for place, line in enumerate(lines)]
        copy.write_bytes(b"\n".join(damaged) + b"\n")
        store = opened(harness, tmp_path)
        passed += sum(agree(store, session) for session in store.sessions())
    assert passed > 50


def _with(line, place, odd):
    """A line with another value in one of its fields, at any depth, or cut."""
    if place % 13 == 0:
        return line[: len(line) // 2]
    value = orjson.loads(line)
    fields = list(_fields(value))
    holder, key = fields[place * 7 % len(fields)]
    holder[key] = deepcopy(odd)
    return orjson.dumps(value)


def _fields(value):
    """(holder, key) of every field in a JSON value, at any depth."""
    for key, held in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(held, (dict, list)):
            yield from _fields(held)


# -- how much is read ----------------------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch):
    """How many bytes were read of each file that was opened, in the order of opening."""
    sizes = []

    class Counted(io.FileIO):
        def __init__(self, path):
            super().__init__(path)
            self.place = len(sizes)
            sizes.append(0)

        def readinto(self, buffer):
            size = super().readinto(buffer)
            sizes[self.place] += size
            return size

        def read(self, size=-1):
            data = super().read(size)
            sizes[self.place] += len(data)
            return data

    def opened(path, buffering=BUFFER):
        return io.BufferedReader(Counted(path), buffering) if buffering else Counted(path)

    for module in (_jsonl, claude):
        monkeypatch.setattr(module, "open_regular", opened)
    return sizes


def test_the_first_records_of_a_long_transcript_are_read_alone(tmp_path, read):
    transcript = Transcript(tmp_path)
    transcript.typed("prompt")
    for number in range(600):
        transcript.assistant(f"{number} {'x' * 1000}")
    transcript.write()

    assert head(str(transcript.path))["root"] is not None
    assert sum(read) <= 1 << 14 < transcript.path.stat().st_size


def test_waiting_for_a_summary_costs_a_look_at_the_next_bytes(tmp_path, read):
    """Whether the file goes on behind a record is asked of each one between a boundary and its summary."""
    transcript = Transcript(tmp_path)
    transcript.typed("prompt")
    transcript.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    for _ in range(100):
        transcript.add("attachment", attachment={"type": "date", "content": "x" * 10_000})
    transcript.user("the summary", isCompactSummary=True)
    store, session = transcript.write()
    found = messages(store, session)
    looks = [size for size in read if size]

    assert [m["content"] for m in found] == ["prompt", "the summary"]
    assert len(looks) > 100
    assert max(looks[-100:]) <= 4096
