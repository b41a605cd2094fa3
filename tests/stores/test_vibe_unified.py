"""Vibe's unified store: journals, generations, damage, walks that are picked up later, and imports gone stale."""

import shutil

import orjson
import pytest
from total_recall.notices import Unreadable
from total_recall.stores import _vibe_transcript
from total_recall.stores.base import Tally

from tests.stores.vibe_stores import (
    MIXED,
    append,
    copied,
    effect,
    keyed,
    opened,
    records,
    said,
    session_of,
    unified,
)

CHUNKS = [[said("a", "one"), said("b", "two", "assistant")], [said("c", "three")]]


def texts(store, session_id="s"):
    return [each["content"] for each in records(store, session_id)]


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ([], ["one", "two", "three"]),
        ([{"op": "append_entry", "entry": said("d", "four")}], ["one", "two", "three", "four"]),
        ([{"op": "replace_entry", "id": "b", "entry": said("b", "zwei", "assistant")}], ["one", "zwei", "three"]),
        ([{"op": "remove_entry", "id": "b"}], ["one", "three"]),
        ([{"op": "set_history_entries", "entries": [said("x", "anew")]}], ["anew"]),
        (
            [
                {"op": "append_entry", "entry": said("d", "four")},
                {"op": "replace_entry", "id": "d", "entry": said("d", "4")},
            ],
            ["one", "two", "three", "4"],
        ),
        (
            [{"op": "append_entry", "entry": said("d", "four")}, {"op": "remove_entry", "id": "d"}],
            ["one", "two", "three"],
        ),
        ([{"op": "set_envelope", "state": {}}, {"op": "of_tomorrow"}, 7, {"op": []}], ["one", "two", "three"]),
    ],
)
def test_the_journal_is_applied_to_the_snapshot(tmp_path, delta, expected):
    unified(tmp_path, "s", CHUNKS, [delta])

    assert texts(opened(tmp_path)) == expected


def test_an_early_journal_holds_the_whole_state(tmp_path):
    path = unified(tmp_path, "s", CHUNKS)
    snapshot = {"history": {"entries": [said("x", "anew")]}}
    record = {"type": "projection_advanced", "sequence": 2, "payload": {"snapshot": snapshot}}
    (path / "journal" / f"{2:016}.jsonl").write_bytes(orjson.dumps(record) + b"\n")

    assert texts(opened(tmp_path)) == ["anew"]


def test_an_inline_history_is_read(tmp_path):
    """Up to store format 1.3 the projection document itself holds the entries."""
    path = unified(tmp_path, "s")
    document = {"snapshot": {"history": {"entries": [said("a", "inline")]}}}
    (path / "generations" / f"{1:016}" / "projection-state.json").write_bytes(orjson.dumps(document))

    assert texts(opened(tmp_path)) == ["inline"]


def test_a_journal_that_is_in_the_snapshot_already_is_not_applied_again(tmp_path):
    path = unified(tmp_path, "s", CHUNKS, generation=5)
    append(path, 3, [[{"op": "append_entry", "entry": said("c", "three")}]])

    assert texts(opened(tmp_path)) == ["one", "two", "three"]


def test_a_torn_last_journal_line_costs_that_line_alone(tmp_path):
    path = unified(tmp_path, "s", CHUNKS, [[{"op": "append_entry", "entry": said("d", "four")}]])
    with (path / "journal" / f"{2:016}.jsonl").open("ab") as journal:
        journal.write(b'{"type":"projection_delta","payload":{"del')
    store = opened(tmp_path)

    assert texts(store) == ["one", "two", "three", "four"]
    assert "incomplete" in "".join(store.notices.said)


# -- damage ----------------------------------------------------------------------------------------------------


def broken(root, session_id, relative):
    [path] = (root / "unified" / session_id).glob(relative)
    path.chmod(0o600)
    path.write_bytes(b'{"gener\0')


@pytest.mark.parametrize("key", ["u-git", "u-interrupted-and-killed"])
@pytest.mark.parametrize("damage", ["CURRENT", "missing CURRENT", "manifest", "projection", "generation"])
def test_an_older_generation_and_the_journal_give_the_same_records(tmp_path, key, damage):
    """The generation before the current one is kept, with the journal that leads to it."""
    root = copied(tmp_path, MIXED)
    truth = keyed(key)
    expected = records(opened(root), truth["session_id"])
    here = root / truth["dir"]
    current = here / "generations" / truth["generation"]
    match damage:
        case "CURRENT":
            broken(root, truth["session_id"], "CURRENT")
        case "missing CURRENT":
            (here / "CURRENT").unlink()
        case "manifest":
            broken(root, truth["session_id"], f"generations/{truth['generation']}/manifest.json")
        case "projection":
            broken(root, truth["session_id"], f"generations/{truth['generation']}/projection-state.json")
        case "generation":
            shutil.rmtree(current)
    store = opened(root)
    found = records(store, truth["session_id"])

    drop = ("ref",)  # the same entries, found in other files
    assert [{k: v for k, v in each.items() if k not in drop} for each in found] == [
        {k: v for k, v in each.items() if k not in drop} for each in expected
    ]
    assert "read generation" in "".join(store.notices.said)


def test_a_session_without_any_readable_generation_is_unreadable_not_empty(tmp_path):
    path = unified(tmp_path, "s", CHUNKS)
    shutil.rmtree(path / "generations")
    shutil.rmtree(path / "journal")
    store = opened(tmp_path)
    [session] = store.sessions()

    with pytest.raises(Unreadable):
        list(store.entries(session, {}))
    assert "generation" in store.row(session)["read_error"]


def test_a_journal_alone_is_read(tmp_path):
    path = unified(tmp_path, "s", CHUNKS, [[{"op": "append_entry", "entry": said("d", "four")}]])
    shutil.rmtree(path / "generations")
    store = opened(tmp_path)

    assert texts(store) == ["four"]
    assert "journal alone" in "".join(store.notices.said)


def test_a_truncated_chunk_gives_its_whole_records_and_a_notice(tmp_path):
    path = unified(tmp_path, "s", CHUNKS)
    chunk = next(iter(sorted((path / "chunks").iterdir())))
    chunk.write_bytes(chunk.read_bytes()[:-20])
    store = opened(tmp_path)

    assert texts(store) == ["one", "three"]
    assert len(list(store.entries(session_of(store, "s"), {}))) == 2  # a piece of the cut record is no record
    assert "damaged; 1 of its records" in "".join(store.notices.said)
    assert "read_error" not in store.row(session_of(store, "s"))


def test_a_missing_chunk_is_named_and_the_rest_is_read(tmp_path):
    path = unified(tmp_path, "s", CHUNKS)
    next(iter(sorted((path / "chunks").iterdir()))).unlink()
    store = opened(tmp_path)

    assert texts(store) == ["three"]
    assert "missing" in "".join(store.notices.said)


def test_lone_surrogates_in_a_chunk_are_no_damage(tmp_path):
    path = unified(tmp_path, "s", CHUNKS)
    chunk = next(iter(sorted((path / "chunks").iterdir())))
    chunk.write_bytes(chunk.read_bytes().replace(b'"one"', b'"one\\udcb2"'))
    store = opened(tmp_path)

    assert texts(store) == ["one�", "two", "three"]
    assert not store.notices.said


def test_a_newer_store_format_is_read_with_a_notice(tmp_path):
    entry = {"id": "n", "type": "of_tomorrow", "createdAt": 1796073007656}
    unified(tmp_path, "s", [*CHUNKS, [entry]], minor=11)
    store = opened(tmp_path)
    entries = list(store.entries(session_of(store, "s"), {}))

    assert [each.raw_type() for each in entries] == ["user", "assistant", "user", "system"]
    assert entries[3].line() == orjson.dumps(entry)
    assert "1.11" in "".join(store.notices.said)


def test_quarantined_journals_are_not_read(tmp_path):
    path = unified(tmp_path, "s", CHUNKS)
    (path / "quarantine").mkdir()
    append(path, 2, [[{"op": "append_entry", "entry": said("d", "four")}]])
    (path / "journal" / f"{2:016}.jsonl").rename(path / "quarantine" / f"{2:016}.jsonl")

    assert texts(opened(tmp_path)) == ["one", "two", "three"]


@pytest.mark.parametrize("name", ["../../../outside", "..", "", 7, None, "x\0y"])
def test_names_out_of_a_manifest_lead_nowhere_else(tmp_path, name):
    path = unified(tmp_path, "s", CHUNKS)
    (tmp_path.parent / "outside.json").write_bytes(orjson.dumps([said("o", "outside")]))
    manifest = path / "generations" / f"{1:016}" / "manifest.json"
    value = orjson.loads(manifest.read_bytes())
    value["projection_state"]["chunks"].append(name)
    manifest.write_bytes(orjson.dumps(value))

    assert texts(opened(tmp_path)) == ["one", "two", "three"]


# -- walks that are picked up later ----------------------------------------------------------------------------


def test_the_result_of_an_effect_that_was_running_comes_with_its_reserved_id(tmp_path):
    """A call takes two ids. Who walked past it while it ran gets the result later, and ids never shift."""
    root = tmp_path
    path = unified(root, "s", CHUNKS, [[{"op": "append_entry", "entry": effect("e", status="running")}]])
    store, state = opened(root), {}
    first = list(store.entries(session_of(store, "s"), state, whole=True))
    replaced = {"op": "replace_entry", "id": "e", "entry": effect("e", stdout="done\n", returncode=0)}
    (path / "journal" / f"{2:016}.jsonl").unlink()
    append(path, 2, [[{"op": "append_entry", "entry": effect("e", status="running")}], [replaced]])
    append(path, 4, [[{"op": "append_entry", "entry": said("f", "thanks")}]])
    later = list(store.entries(session_of(store, "s"), state, whole=True))

    numbers = [record["id"] for entry in first + later for record in entry.messages]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert [record["content"] for entry in later for record in entry.messages] == ["done", "thanks"]
    assert sorted(numbers) == [each["id"] for each in records(store, "s")]


def test_a_text_still_being_written_is_left_for_the_next_read(tmp_path):
    growing = said("d", "fo", "assistant", generationStatus="in_progress")
    unified(tmp_path, "s", CHUNKS, [[{"op": "append_entry", "entry": growing}]])
    store = opened(tmp_path)
    session = session_of(store, "s")

    assert [each["content"] for each in store.messages(session, whole=True)] == ["one", "two", "three"]
    assert texts(store) == ["one", "two", "three", "fo"]


def test_a_walk_goes_on_in_the_next_generation(tmp_path):
    """A new generation cuts the same entries into other chunks."""
    unified(tmp_path, "s", CHUNKS)
    store, state = opened(tmp_path), {}
    list(store.entries(session_of(store, "s"), state))
    unified(tmp_path, "s", [[*CHUNKS[0], *CHUNKS[1], said("d", "four")]], generation=9)

    assert [each["content"] for each in store.messages(session_of(store, "s"), state)] == ["four"]
    assert state["id"] == 4


def test_the_tail_of_a_long_session_opens_the_last_chunks_only(tmp_path, monkeypatch):
    """Bookmarks are kept every 256 KiB; a walk from one does not read what lies before it."""
    chunks = [[said(f"{number}-{place}", "x" * 10_000) for place in range(7)] for number in range(20)]
    unified(tmp_path, "s", chunks)
    store = opened(tmp_path)
    session = session_of(store, "s")
    tally = Tally()
    for entry in store.entries(session, tally.state):
        tally.add(entry)
    read = []
    original = _vibe_transcript.open_regular
    monkeypatch.setattr(_vibe_transcript, "open_regular", lambda path: read.append(path) or original(path))

    number, state = tally.bookmarks[-1]
    tail = list(store.messages(session, orjson.loads(state)))

    assert len(tally.bookmarks) > 3
    assert [each["id"] for each in tail] == list(range(number, 141))
    assert len(read) <= 5


def test_an_entry_that_has_moved_to_another_chunk_is_still_found(tmp_path):
    path = unified(tmp_path, "s", CHUNKS)
    store = opened(tmp_path)
    session = session_of(store, "s")
    record = records(store, "s")[1]
    shutil.rmtree(path / "chunks")
    unified(tmp_path, "s", [[*CHUNKS[0], *CHUNKS[1]]], generation=9)

    assert store.entry_at(session, record["ref"]).messages[0]["content"] == "two"
    assert store.entry_at(session, record["ref"] | {"entry": "gone"}) is None
    assert store.entry_at(session, {"path": "/etc/passwd", "entry": "b"}) is None
    assert store.entry_at(session, {"path": f"{tmp_path}/../outside.json", "entry": "o"}) is None


# -- single entries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "compactions"),
    [
        ({"message": "Context compacted", "details": {"trigger": "manual"}}, 1),
        ({"message": "Context compaction failed", "details": None}, 0),
        ({"message": None, "details": {"error": {"code": "compaction_replacement_too_large"}}}, 0),
        ({"message": "Switched", "details": {}, "kind": "model_change"}, 0),
    ],
)
def test_a_checkpoint_is_a_compaction_only_if_it_worked(tmp_path, told, compactions):
    entry = {"id": "x", "type": "checkpoint", "kind": "compaction"} | told
    unified(tmp_path, "s", [[said("a", "one"), entry]])

    assert [each["class"] for each in records(opened(tmp_path), "s")[1:]] == ["compaction"] * compactions


@pytest.mark.parametrize(
    ("source", "authorship"),
    [("turn_start", "human"), ("turn_steer", "human"), (None, "human"), ("harness", "injected"), ("new", "injected")],
)
def test_a_message_of_unknown_source_is_not_taken_for_a_prompt(tmp_path, source, authorship):
    unified(tmp_path, "s", [[said("a", "text", source=source)]])

    assert records(opened(tmp_path), "s")[0]["authorship"] == authorship


def test_images_and_files_are_markers(tmp_path):
    content = [
        {"type": "text", "text": "look"},
        {"type": "image", "uri": "data:image/png;base64,AAAA", "mediaType": "image/png"},
        {"type": "embedded_resource", "uri": "file:///a.txt", "mediaType": "text/plain", "text": "abc"},
    ]
    unified(tmp_path, "s", [[said("a", "", content=content)]])

    assert texts(opened(tmp_path)) == ["look\n[image image/png 3 bytes]\n[file text/plain 3 bytes]"]


def test_two_compactions_before_the_journal_and_one_in_it(tmp_path):
    """The context in a generation is older than the journal: a compaction told there has no summary yet."""

    def compacted(name):
        details = {"trigger": "automatic"}
        return {
            "id": name,
            "type": "checkpoint",
            "kind": "compaction",
            "message": "Context compacted",
            "details": details,
        }

    frame = "</previous_user_messages>\n\n<compaction_summary>\nBOTH\n</compaction_summary>"
    context = [{"source": "injection", "message": {"role": "user", "content": [{"type": "text", "text": frame}]}}]
    journal = [[{"op": "append_entry", "entry": compacted("z")}]]
    unified(tmp_path, "s", [[compacted("x"), said("a", "one")], [compacted("y")]], journal, context=context)

    assert texts(opened(tmp_path)) == ["", "one", "BOTH", ""]
