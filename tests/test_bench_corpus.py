"""The benchmark's corpus: every adapter reads it, its account of itself is true, the same seed gives the same bytes."""

import hashlib
from pathlib import Path

import orjson
import pytest
from total_recall.stores.registry import HARNESSES

from tests.bench.corpus import PLACES, PRESETS, files, write
from tests.bench.script import KINDS

COUNTED = ("user_count", "assistant_count", "tool_count", "has_compaction")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench") / "tiny"
    write(PRESETS["tiny"], str(folder), name="tiny")
    return folder


@pytest.fixture
def stores(corpus):
    """The variables that point at the corpus; other stores are not named."""
    places = {harness: str(corpus / PLACES[harness]) if harness in PLACES else "" for harness in HARNESSES}
    return {f"TOTAL_RECALL_{harness.upper()}_ROOT": place for harness, place in places.items()}


def lines(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_every_adapter_reads_it_without_a_notice_and_counts_what_was_written(corpus, tr, stores):
    ran = tr("tr-list", env=stores)
    assert (ran.status, ran.err) == (0, "")
    rows = {(row["harness"], row["session_id"]): row for row in ran.records}
    written = lines(corpus / "sessions.jsonl")
    assert {(truth["harness"], truth["session_id"]) for truth in written} == set(rows)
    for truth in written:
        row = rows[truth["harness"], truth["session_id"]]
        assert {key: row[key] for key in COUNTED} == {key: truth[key] for key in COUNTED}, row["path"]
        assert row["parent_session_id"] == truth["parent"]


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(corpus, tmp_path):
    def digests(folder):
        found = map(Path, files(str(folder)))
        return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).digest() for path in found}

    def ids(folder):
        return {truth["session_id"] for truth in lines(folder / "sessions.jsonl")}

    write(PRESETS["tiny"], str(tmp_path / "again"), name="tiny")
    write(PRESETS["tiny"], str(tmp_path / "other"), seed=2, name="tiny")
    assert digests(tmp_path / "again") == digests(corpus)
    assert not ids(tmp_path / "other") & ids(corpus)


@pytest.mark.parametrize("harness", PLACES)
def test_phrases_of_all_kinds_stand_in_one_session_each_in_a_text_of_their_kind(corpus, tr, stores, harness):
    about = orjson.loads((corpus / "corpus.json").read_bytes())
    phrases = [place for place in about["phrases"] if place["harness"] == harness]
    assert {place["kind"] for place in phrases} == set(KINDS)
    wanted = {truth["session_id"] for truth in lines(corpus / "sessions.jsonl") if truth["harness"] == harness}
    ran = tr("tr-extract", "-H", harness, "--full", "-", env=stores, stdin="\n".join(sorted(wanted)).encode())
    assert (ran.status, ran.err) == (0, "")
    for place in phrases:
        found = [record for record in ran.records if place["phrase"] in orjson.dumps(record).decode()]
        assert {record["session_id"] for record in found} == {place["session_id"]}
        assert all(place["phrase"] in text_of(record, place["kind"]) for record in found)


def text_of(record, kind):
    """The text of a record in which a phrase of this kind stands."""
    if kind == "thinking":
        return record["thinking"]
    if kind == "tool-input":
        return orjson.dumps(record["tool_calls"]).decode()
    authors = {"person": ["human"], "assistant": ["model"], "tool-output": ["tool"], "cjk": ["human", "model"]}
    assert record["authorship"] in authors[kind]
    return record["content"]


def test_sizes_and_numbers_are_those_of_the_preset(corpus):
    about = orjson.loads((corpus / "corpus.json").read_bytes())["stores"]
    preset = PRESETS["tiny"]
    assert sum(about[harness]["sessions"] for harness in ("claude", "codex")) == preset.sessions
    assert sum(about[harness]["sessions"] for harness in ("opencode", "vibe")) == preset.sessions
    assert all(0.8 < facts["bytes"] * 2 / (preset.megabytes * 1e6) < 1.5 for facts in about.values())


def test_a_folder_that_holds_something_is_left_alone(corpus):
    with pytest.raises(FileExistsError):
        write(PRESETS["tiny"], str(corpus))
