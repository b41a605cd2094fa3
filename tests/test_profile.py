"""The profile of a session and its cache."""

import os
import stat

import orjson
import pytest
from recorded import called, ran, recorded, result, said
from total_recall import jtd
from total_recall.notices import Notices
from total_recall.profile import numbered, profiled
from total_recall.profile_cache import cached, keep, path_of
from total_recall.stores.base import Entry

ROW = {
    "harness": "claude",
    "session_id": "s1",
    "file_size": 1234,
    "line_count": 9,
    "start_time": "2026-11-30T09:00:00.000Z",
    "end_time": None,
    "has_tantivy_index": False,
}


def profile(messages, **known):
    return profiled(((message["id"] * 10, message) for message in messages), ROW | known, Notices())


def told(found):
    return [(event["event_type"], event["summary"]) for event in found["interesting_events"]]


def test_the_keys_are_the_documented_ones_in_their_order():
    found = profile([said(1, "Hello")])

    assert list(found) == [
        *(
            "harness",
            "session_id",
            "file_size",
            "line_count",
            "first_ts",
            "last_ts",
            "role_counts",
            "has_tantivy_index",
        ),
        *("interesting_events", "tools", "files", "usage"),
    ]
    assert list(found["role_counts"]) == ["user", "assistant", "tool", "system"]
    assert list(found["interesting_events"][0]) == ["line_number", "id", "gap_lines", "event_type", "ts", "summary"]


def test_a_real_session():
    found = profile(recorded("claude-git"))

    assert told(found) == [
        ("UserMessage", "Create a small inventory module, please: with a git repo and tag v0.1.0."),
        ("GitCommit", "feat: add inventory module, with add()"),
        ("GitTag", "v0.1.0"),
        ("UserMessage", "Add a remove() function and release v0.2.0."),
        ("GitCommit", "feat: add remove()"),
        ("GitTag", "v0.2.0"),
        ("UserMessage", "What did we release so far?"),
    ]
    assert found["role_counts"] == {"user": 3, "assistant": 19, "tool": 8, "system": 0}
    assert found["tools"] == {"Bash": 3, "Write": 2, "Read": 1, "Grep": 1, "Edit": 1}
    assert found["files"] == [
        {"path": "/home/dev/projects/alpha/inventory.py", "reads": 1, "writes": 2},
        {"path": "/home/dev/projects/alpha/README.md", "reads": 0, "writes": 1},
    ]
    assert (found["first_ts"], found["last_ts"]) == (
        "2026-11-30T21:18:27.784Z",
        "2026-11-30T21:18:32.370Z",
    )


@pytest.mark.parametrize(
    ("session", "types"),
    [
        ("claude-questions", {"UserMessage": 12, "Compaction": 1}),
        ("claude-tasks", {"UserMessage": 2, "TodoCreate": 5, "TodoUpdate": 7, "TodoDelete": 1}),
        (
            "codex-plan-and-git",
            {"UserMessage": 2, "TodoCreate": 4, "TodoUpdate": 4, "TodoDelete": 1, "GitCommit": 2, "GitTag": 2},
        ),
        (
            "opencode-todos-and-git",
            {"UserMessage": 2, "TodoCreate": 4, "TodoUpdate": 4, "TodoDelete": 1, "GitCommit": 2, "GitTag": 1},
        ),
        (
            "vibe-todos-and-git",
            {"UserMessage": 2, "TodoCreate": 4, "TodoUpdate": 5, "TodoDelete": 2, "GitCommit": 2, "GitTag": 1},
        ),
        ("vibe-unified-questions", {"UserMessage": 6, "Compaction": 2}),
    ],
)
def test_every_harness_has_todo_and_git_events(session, types):
    counts = {}
    for kind, _ in told(profile(recorded(session))):
        counts[kind] = counts.get(kind, 0) + 1

    assert counts == types


def test_events_stand_in_the_order_of_the_records_with_their_distances():
    """Although a call's events are known only when its result is."""
    call = called(2, "Bash", {"command": "git tag v1 && git push origin v1"})

    found = profile([said(1, "Tag it"), call, said(3, "And be quick"), result(4, call)])

    assert [(e["line_number"], e["id"], e["gap_lines"], e["event_type"]) for e in found["interesting_events"]] == [
        (10, 1, 10, "UserMessage"),
        (20, 2, 10, "GitTag"),
        (20, 2, 0, "GitPush"),
        (30, 3, 10, "UserMessage"),
    ]


def test_lines_are_counted_by_the_stored_records():
    first, second, third = said(1, "a"), said(2, "b"), said(3, "c")
    entries = [Entry(b"{}"), Entry(b"{}", messages=[first, second]), Entry(b"{}"), Entry(b"{}", messages=[third])]

    assert list(numbered(entries)) == [(2, first), (2, second), (4, third)]


def test_a_todo_edit_names_status_and_text():
    todos = {"todos": [{"content": "Ship it", "status": "pending"}]}

    found = profile(ran("TodoWrite", todos) + ran("TodoWrite", {"todos": []}, number=3))

    assert told(found) == [("TodoCreate", "pending: Ship it"), ("TodoDelete", "Ship it")]


@pytest.mark.parametrize(
    ("known", "summary"),
    [
        ({"trigger": "auto", "tokens_before": 7816}, "auto, 7816 tokens before"),
        ({"trigger": "manual"}, "manual"),
        ({}, "What was done"),
    ],
)
def test_a_compaction_says_how_it_came_about(known, summary):
    compaction = said(1, "What was done\nand more", "system", "injected", kind="compaction", **known)

    assert told(profile([compaction])) == [("Compaction", summary)]


def test_injected_text_is_no_user_message_and_a_prompt_of_many_lines_is_one_line():
    messages = [
        said(1, "<system-reminder>", authorship="injected"),
        said(2, "\n  Do\x1b it\n" + "x" * 200),
        said(3, " "),
    ]

    assert told(profile(messages)) == [("UserMessage", "Do  it")]
    assert profile(messages)["role_counts"]["user"] == 3


def test_copied_records_are_counted_where_they_were_written():
    messages = [{**message, "replayed": True} for message in recorded("claude-tasks")]
    found = profile([*messages, said(999, "Go on")])

    assert told(found) == [("UserMessage", "Go on")]
    assert found["role_counts"] == {"user": 1, "assistant": 0, "tool": 0, "system": 0}
    assert (found["tools"], found["files"]) == ({}, [])


def test_edits_after_a_copied_history_start_from_its_list():
    copied = ran("TodoWrite", {"todos": [{"content": "A", "status": "pending"}]})
    own = ran("TodoWrite", {"todos": [{"content": "A", "status": "completed"}]}, number=3)

    found = profile([*({**message, "replayed": True} for message in copied), *own])

    assert told(found) == [("TodoUpdate", "completed: A")]


def test_a_file_that_could_not_be_read_was_not_read():
    found = profile(ran("Read", {"file_path": "a"}, "no such file", True) + ran("Read", {"file_path": "b"}, number=3))

    assert found["files"] == [{"path": "b", "reads": 1, "writes": 0}]
    assert found["tools"] == {"Read": 2}


def test_usage_is_summed_and_null_where_nothing_was_recorded():
    messages = [
        said(1, "x", "assistant", "model", usage={"input": 5, "output": 2, "cache_read": 3}),
        said(2, "x", "assistant", "model", usage={"input": 1, "reasoning": 4, "output": "nonsense"}),
    ]

    assert profile(messages)["usage"] == {"input": 6, "output": 2, "cache_read": 3, "cache_write": 0, "reasoning": 4}
    assert profile([said(1, "x")])["usage"] is None


def test_a_session_without_times_takes_what_its_row_knows():
    timeless = said(1, "x") | {"ts": None}

    found = profile([timeless])

    assert (found["first_ts"], found["last_ts"]) == ("2026-11-30T09:00:00.000Z", None)


def test_an_empty_session_has_an_empty_profile():
    found = profile([])

    assert (found["interesting_events"], found["tools"], found["files"]) == ([], {}, [])


# -- the cache -------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path):
    """The path of a cache file, the profile in it, and when it was written, in milliseconds."""
    found = profile(recorded("claude-questions"), session_id="d6213968")
    path = path_of(str(tmp_path), "d6213968")
    assert keep(path, found)
    os.utime(path, ns=(0, 1_796_000_000_123_000_000))
    return path, found, 1_796_000_000_123


def rewritten(path, change):
    about = os.stat(path)
    with open(path, "rb") as file:
        value = orjson.loads(file.read())
    change(value)
    with open(path, "wb") as file:
        file.write(orjson.dumps(value))
    os.utime(path, ns=(0, about.st_mtime_ns))


def test_a_fresh_profile_comes_back_as_it_was(kept):
    path, found, written = kept

    assert cached(path, written, 1234) == found
    assert list(cached(path, written, 1234)) == list(found)


def test_it_is_fresh_for_15000_ms_and_stale_after_15001(kept):
    path, found, written = kept

    assert cached(path, written + 15_000, 1234) == found
    assert cached(path, written + 15_001, 1234) is None


def test_another_size_of_the_source_makes_it_stale(kept):
    path, _, written = kept

    assert cached(path, written, 1235) is None


def test_only_its_owner_can_read_it(kept):
    assert stat.S_IMODE(os.stat(kept[0]).st_mode) == 0o600
    assert os.listdir(os.path.dirname(kept[0])) == ["tr_d6213968_meta.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b"{}", b'{"schema": 1}', b"\xff\0", b'{"tool":"of another program"}']
)
def test_what_is_no_cache_of_ours_is_none_and_is_replaced(kept, content):
    path, found, written = kept
    with open(path, "wb") as file:
        file.write(content)

    assert cached(path, written, 1234) is None
    assert keep(path, found)
    assert cached(path, 0, 1234) == found


CHANGES = {
    "unknown event": lambda value: value["profile"]["interesting_events"][0].update(event_type="Deployment"),
    "missing field": lambda value: value["profile"].pop("tools"),
    "extra field": lambda value: value["profile"].update(extra=1),
    "wrong type": lambda value: value["profile"].update(line_count="9"),
    "no time": lambda value: value["profile"].update(first_ts="yesterday"),
    "older stamp": lambda value: value.update(schema=0),
    "newer stamp": lambda value: value.update(schema=2),
    "other session": lambda value: value["profile"].update(session_id="another"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_of_another_shape_is_not_used(kept, change):
    path, _, written = kept
    rewritten(path, CHANGES[change])

    assert cached(path, written, 1234) is None


def test_the_file_of_a_newer_version_is_left_alone(kept):
    path, found, _ = kept
    rewritten(path, CHANGES["newer stamp"])
    with open(path, "rb") as file:
        before = file.read()

    assert not keep(path, found)
    with open(path, "rb") as file:
        assert file.read() == before


def test_a_missing_file_a_folder_and_a_fifo_are_no_cache(tmp_path):
    os.mkfifo(tmp_path / "fifo")

    for name in ("missing", ".", "fifo"):
        assert cached(str(tmp_path / name), 0, 0) is None


def test_what_is_no_profile_is_not_written(tmp_path):
    path = path_of(str(tmp_path), "s1")

    with pytest.raises(ValueError, match="not a profile: profile/line_count"):
        keep(path, profile([]) | {"line_count": None})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("session_id", ["../../etc/passwd", "a/b", "a\nb", "", ".", "é" * 300, "x" * 5000, "%2E"])
def test_no_id_leads_out_of_the_folder(tmp_path, session_id):
    path = path_of(str(tmp_path), session_id)

    assert keep(path, profile([], session_id=session_id))
    assert cached(path, 0, 1234)["session_id"] == session_id
    (name,) = os.listdir(tmp_path)
    assert name.startswith("tr_")
    assert name.endswith("_meta.json")


def test_different_ids_have_different_files():
    ids = ["a/b", "a%2Fb", "a_b", "a.b", "x" * 400, "x" * 401]

    assert len({path_of("", session_id) for session_id in ids}) == len(ids)


def test_the_definition_is_one():
    from total_recall import profile_cache

    with open(os.path.join(os.path.dirname(profile_cache.__file__), "profile.jtd.json"), "rb") as file:
        assert jtd.check(orjson.loads(file.read()))
