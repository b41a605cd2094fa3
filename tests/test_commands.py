"""The commands on real stores: what each option promises, as a person would check it."""

import os
import shlex
import shutil

import orjson
import pytest

TUI = "d6213968-d16e-4cc8-94ed-6dc91dc0c568"  # Claude Code: a compaction, a rewind, questions
GIT = "c43b9ab4-2438-44a1-855f-324659f7d1f7"  # Claude Code: two commits, two tags
FORK = "01a22e58-e892-7303-9227-b6937abe33d5"  # Codex: inherits by reference


def ids(records):
    return [record["session_id"] for record in records]


# -- tr-list -----------------------------------------------------------------------------------------------------


def test_rows_come_most_recently_updated_first(tr):
    ends = [row["end_time"] for row in tr("tr-list").records if row["end_time"]]

    assert ends == sorted(ends, reverse=True)
    assert len(ends) > 100


def test_the_second_listing_is_the_first_byte_for_byte(tr):
    assert tr("tr-list").out == tr("tr-list").out


def test_named_sessions_are_listed_in_their_order(tr):
    assert ids(tr("tr-list", GIT, "d6213968").records) == [GIT, TUI]


def test_children_and_roots_are_told_apart(tr):
    rows = tr("tr-list", "-H", "claude").records
    parent = next(row for row in rows if row["child_session_count"] == 3)

    children = tr("tr-list", "-H", "claude", "--parent", parent["session_id"][:8]).records
    roots = tr("tr-list", "-H", "claude", "--roots").records

    assert sorted(ids(children)) == sorted(parent["child_sessions"])
    assert {row["parent_session_id"] for row in children} == {parent["session_id"]}
    assert all(row["parent_session_id"] is None for row in roots)
    assert len(roots) == len(rows) - sum(row["parent_session_id"] is not None for row in rows)


def test_a_directory_is_a_literal_piece_of_the_working_directory(tr):
    rows = tr("tr-list", "--directory", "gamma-ün").records

    assert rows
    assert all("gamma-ün" in row["directory"] for row in rows)
    assert tr("tr-list", "--directory", "gamma_ün").records == []
    assert tr("tr-list", "--directory", "GAMMA-ÜN").records == []
    assert "record no directory" in tr("tr-list", "--directory", "x").err


def test_a_session_that_moved_is_found_under_each_of_its_directories(tr):
    moved = "45bd774d-7f9d-435d-a01c-dd448c879116"

    assert moved in ids(tr("tr-list", "--directory", "projects/alpha/sub").records)
    assert moved in ids(tr("tr-list", "--directory", "projects/alpha").records)


def test_a_span_that_reaches_into_the_window_is_in_it(tr):
    row = tr("tr-list", TUI).records[0]
    middle = "2026-11-30T21:21:00Z"
    assert row["start_time"] < middle < row["end_time"]

    assert TUI in ids(tr("tr-list", "--since", middle).records)
    assert TUI in ids(tr("tr-list", "--until", middle).records)
    assert TUI not in ids(tr("tr-list", "--since", "2026-11-30T23:00:00Z").records)
    assert TUI not in ids(tr("tr-list", "--until", "2026-11-30T21:00:00Z").records)


def test_hours_select_by_the_end_of_a_session_and_an_enormous_window_is_everything(tr):
    assert len(tr("tr-list", "--hours", "99999999999").records) == sum(
        row["end_time"] is not None for row in tr("tr-list").records
    )


@pytest.mark.parametrize("hours", ["-1", "x", "nan", ""])
def test_hours_that_are_none_are_refused(hours, tr):
    ran = tr("tr-list", f"--hours={hours}")

    assert (ran.status, ran.out) == (2, b"")
    assert "0 for no bound" in ran.err


def test_a_limit_keeps_the_first_rows_and_counts_the_others(tr):
    whole = tr("tr-list")
    ran = tr("tr-list", "--limit", "3")

    assert ran.records == whole.records[:3]
    assert f"{len(whole.records) - 3} more sessions" in ran.err
    assert tr("tr-list", "--limit", "3", "-q").err == ""


@pytest.mark.parametrize("size", [3000, 16384])
def test_an_envelope_holds_the_rows_that_fit_and_says_how_many_did_not(size, tr):
    ran = tr("tr-list", "--envelope", "--max-bytes", size)
    document = orjson.loads(ran.out)

    assert len(ran.out.rstrip()) <= size
    assert document["window_count"] == len(document["sessions"]) + document["held_back"]
    assert document["notice"].startswith("TRUNCATED")


# -- tr-extract --------------------------------------------------------------------------------------------------


def test_without_a_session_it_is_the_one_that_ended_last(tr):
    latest = max((row for row in tr("tr-list").records if row["end_time"]), key=lambda row: row["end_time"])

    assert {record["session_id"] for record in tr("tr-extract", "--full").records} == {latest["session_id"]}


def test_a_partial_id_that_means_several_takes_the_most_recent_and_says_so(tr):
    ran = tr("tr-extract", "--full", "01a22e5")

    assert ran.status == 0
    assert "matches" in ran.err
    assert "the most recent is taken" in ran.err


def test_roles_and_times_select_messages(tr):
    whole = tr("tr-extract", "--full", TUI).records

    assert tr("tr-extract", "--full", "--role", "tool", "--role", "system", TUI).records == [
        record for record in whole if record["role"] in ("tool", "system")
    ]
    since, until = "2026-11-30T21:21:00.000Z", "2026-11-30T21:21:10.000Z"
    assert tr("tr-extract", "--full", "--since", since, "--until", until, TUI).records == [
        record for record in whole if since <= record["ts"] <= until
    ]


def test_a_record_without_a_time_goes_with_its_session_and_is_counted(tr):
    session = tr("tr-list", "-H", "vibe", "--limit", "1").records[0]["session_id"]
    ran = tr("tr-extract", "--full", "--since", "2026-11-30T20:00:00Z", session)

    assert ran.records == tr("tr-extract", "--full", session).records
    assert f"{len(ran.records)} records without a time" in ran.err


def test_branches_are_marked_when_asked_for_and_remembered(tr):
    assert not any("branch" in record for record in tr("tr-extract", "--full", TUI).records)

    marked = [record["id"] for record in tr("tr-extract", "--full", "--branches", TUI).records if "branch" in record]

    assert len(marked) == 2
    again = tr("tr-extract", "--full", TUI).records
    assert [record["id"] for record in again if record.get("branch") == "abandoned"] == marked


def test_an_inherited_history_comes_first_and_is_marked(tr):
    own = tr("tr-extract", "--full", FORK).records
    whole = tr("tr-extract", "--full", "--with-history", FORK).records

    assert whole[-len(own) :] == own
    inherited = whole[: -len(own)]
    assert inherited
    assert all(record["replayed"] for record in inherited)
    assert not any(record.get("replayed") for record in own)


def test_several_sessions_give_one_envelope_a_line(tr):
    ran = tr("tr-extract", "--full", "--envelope", "--limit", "2", GIT, TUI)
    documents = [orjson.loads(line) for line in ran.out.splitlines()]

    assert ids(documents) == [GIT, TUI]
    assert [document["bounds"]["returned_records"] for document in documents] == [2, 2]
    assert documents[0]["messages"] == tr("tr-extract", "--full", GIT).records[-2:]


def test_a_bound_alone_is_honoured(tr):
    whole = tr("tr-extract", "--full", GIT).records

    assert tr("tr-extract", "--full", "--offset", "5", GIT).records == whole[5:]
    assert tr("tr-extract", "--full", "--limit", "4", GIT).records == whole[-4:]
    assert sum(map(len, tr("tr-extract", "--full", "--max-bytes", "3000", GIT).out.splitlines(True))) <= 3000
    assert all(len(r["content"]) <= 10 for r in tr("tr-extract", "--full", "--max-record-bytes", "10", GIT).records)
    assert tr("tr-extract", "--full", "--max-bytes", "50", GIT).status == 2


def test_an_unreadable_session_is_named_and_hides_no_other(tr, sample_stores, tmp_path):
    root = tmp_path / "projects"
    project = root / "p"
    project.mkdir(parents=True)
    source = sample_stores / "claude/.claude/projects/-home-dev-projects-alpha" / f"{GIT}.jsonl"
    shutil.copy(source, project / source.name)
    (project / "11111111-aaaa-4333-8444-555555555555.jsonl").mkdir()
    os.mkfifo(project / "22222222-aaaa-4333-8444-555555555555.jsonl")
    env = {"TOTAL_RECALL_CLAUDE_ROOT": str(root), "TR_HARNESS": "claude"}

    listed = tr("tr-list", env=env)

    assert GIT in ids(listed.records)
    assert "Traceback" not in listed.err
    assert len(tr("tr-extract", "--full", GIT, env=env).records) > 10


# -- tr-raw ------------------------------------------------------------------------------------------------------


def test_every_stored_line_is_there_byte_for_byte(tr, sample_stores):
    source = sample_stores / "claude/.claude/projects/-home-dev-projects-alpha" / f"{GIT}.jsonl"

    lines = [line.split(b",", 2)[2] for line in tr("tr-raw", "--include-injected", GIT).out.splitlines()]

    assert lines == source.read_bytes().splitlines()


def test_types_select_and_thinking_also_what_holds_thinking(tr):
    for kind in ("user", "assistant", "tool"):
        lines = tr("tr-raw", "--type", kind, TUI).out.splitlines()
        assert lines
        assert {line.split(b",")[0].decode() for line in lines} == {kind}
    thinking = tr("tr-raw", "--type", "thinking", TUI).out.splitlines()
    assert len(thinking) == 2


def test_a_header_and_a_trailer_tell_of_the_bounds(tr):
    ran = tr("tr-raw", "--header", "--limit", "3", "--max-bytes", "20000", TUI)
    first, *lines, last = ran.out.splitlines()
    header = orjson.loads(first.removeprefix(b"# "))

    assert len(ran.out.rstrip()) <= 20000
    assert header["bounds"]["returned_records"] == len(lines) == 3
    assert last.startswith(b"# TRUNCATED: ")


def test_a_clamp_leaves_valid_json(tr):
    for line in tr("tr-raw", "--max-record-bytes", "20", TUI).out.splitlines():
        orjson.loads(line.split(b",", 2)[2])


# -- the rest ----------------------------------------------------------------------------------------------------


def test_stores_are_counted_and_named(tr, sample_stores):
    rows = {row["harness"]: row for row in tr("tr-stores").records}

    for harness in ("opencode", "vibe", "claude", "codex"):
        assert rows[harness]["sessions"] == len(tr("tr-list", "-H", harness).records)
        assert rows[harness]["override"] == f"TOTAL_RECALL_{harness.upper()}_ROOT"
        assert rows[harness]["root"].startswith(str(sample_stores))


def test_resume_is_what_the_harness_takes_quoted_for_a_shell(tr):
    for harness, argv in (
        ("claude", ["claude", "--resume", GIT]),
        ("codex", ["codex", "resume", FORK]),
    ):
        found = tr("tr-resume", "--json", argv[-1]).records[0]
        assert (found["harness"], found["argv"]) == (harness, argv)
        line = tr("tr-resume", argv[-1]).out.decode()
        assert shlex.split(line) == ["cd", "--", found["directory"], "&&", *argv]


def test_a_profile_is_the_same_from_its_cache(tr, tmp_path):
    first = tr("tr-profile", GIT)
    kept = tmp_path / "shadow" / "claude" / f"tr_{GIT}_meta.json"

    assert kept.exists()
    assert tr("tr-profile", GIT).out == first.out
    kept.write_bytes(b"{damaged")
    assert tr("tr-profile", GIT).out == first.out
    assert tr("tr-profile", "--no-cache", GIT).out == first.out
    events = {(event["event_type"], event["summary"]) for event in first.records[0]["interesting_events"]}
    assert ("GitCommit", "feat: add remove()") in events
    assert ("GitTag", "v0.2.0") in events


def test_a_profile_in_an_envelope_keeps_its_counters_and_the_newest_events(tr):
    whole = tr("tr-profile", TUI).records[0]
    document = orjson.loads(tr("tr-profile", "--envelope", "--max-bytes", "1500", TUI).out)

    kept = document["profile"]["interesting_events"]
    assert kept == whole["interesting_events"][len(whole["interesting_events"]) - len(kept) :]
    assert document["event_count"] == len(kept) + document["held_back"] == len(whole["interesting_events"])
    assert document["profile"]["role_counts"] == whole["role_counts"]


def test_todo_events_fold_to_the_last_list(tr):
    from total_recall.todos import fold

    session = "3e47246a-87bc-4c64-bb58-ef1b6674e806"
    events = tr("tr-todo", session).records

    assert [state and [text for text, _ in state.values()] for state in fold(events)][-1] in ([], {})
    assert {event["session_id"] for event in events} == {session}
    report = tr("tr-todo", "--report", session).out.splitlines()
    assert orjson.loads(report[0].removeprefix(b"# "))["events"] == len(events) == len(report) - 1


def test_questions_and_answers_of_all_stores(tr):
    found = tr("tr-qa", "--hours", "0").records

    assert {record["harness"] for record in found} == {"opencode", "vibe", "claude", "codex"}
    assert [
        r["answers"] for r in found if r["question"] == "Which extras do you want?" and r["harness"] == "claude"
    ] == [["Cache", "Metrics"]]
    assert tr("tr-qa", GIT).status == 1


def test_said_finds_both_sides_and_the_deeds_and_says_when_it_found_nothing(tr):
    found = tr("tr-said", "--hours", "0", "--words", "v0.1.0", GIT).records

    assert {record["who"] for record in found} == {"he", "she", "they"}
    assert all("v0.1.0" in record["text"] for record in found)
    assert tr("tr-said", "--hours", "0", "--words", "zzzqqq").status == 1
    refused = tr("tr-said", "--words", " , ,")
    assert (refused.status, refused.out) == (2, b"")


def test_said_finds_what_is_in_the_records_and_nothing_else(tr):
    listed = tr("tr-list").out
    messages = tr("tr-extract", "--full", "-", stdin=listed).records
    said = tr("tr-said", "--hours", "0", "--words", "TAG").records

    typed = sum(
        m["role"] == "user"
        and m["authorship"] == "human"
        and m["class"] == "human-text"
        and not m.get("replayed")
        and "tag" in m["content"].lower()
        for m in messages
    )
    assert sum(hit["who"] == "he" for hit in said) == typed > 0


def test_dispatch_prints_what_the_program_prints(tr):
    assert tr("total-recall", "extract", "--full", "--session", GIT).out == tr("tr-extract", "--full", GIT).out
    assert tr("total-recall", "--session", GIT, "--full", "extract").out == tr("tr-extract", "--full", GIT).out
    assert orjson.loads(tr("total-recall", "list", "--json").out) == tr("tr-list").records
    texts = orjson.loads(tr("total-recall", "--harness", "claude", "--session", GIT, "user-messages").out)
    assert texts == [record["content"] for record in tr("tr-user", GIT).records]
    report = tr("total-recall", "he-said-she-said", "--words", "tag", "--hours", "0").out.decode()
    assert report.startswith("# she-said-he-said-action — terms: tag\n")
    assert tr("total-recall", "no-such").status == 2
    assert orjson.loads(tr("total-recall", "profile", "--json", "--session", GIT).out)["session_id"] == GIT
