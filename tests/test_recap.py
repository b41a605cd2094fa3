"""tr-recap: facts first, each with its record, then what a model said, then what to do, and the warning last."""

import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample import FIXTURES
from total_recall.notices import Notices
from total_recall.recap import Sources, plan_folders, recap
from total_recall.record import message, session_row, tool_call
from total_recall.stores.base import Entry
from total_recall.stores.registry import open_stores
from total_recall.times import epoch

NOW = epoch("2026-11-30T22:00:00.000Z")
HEADINGS = [
    *("Recent sessions", "Plan and todo files", "Todo log", "Commits", "Current state", "Goals, tasks, steers"),
    *("Compaction points", "Instructions", "Before you trust this"),
]


def ts(minute):
    return f"2026-11-30T21:{minute:02}:00.000Z"


class Session:
    """A session that is written record by record, of one harness."""

    def __init__(self, harness="vibe", session="ses_1", directory="/nowhere", **row):
        self.row = session_row(harness, session, "/store/x", directory=directory, end_time=ts(9), **row)
        self.messages = []

    def say(self, role, text="", **options):
        number = len(self.messages) + 1
        authors = {"user": "human", "assistant": "model", "tool": "tool", "system": "injected"}
        options.setdefault("authorship", authors[role])
        row = self.row
        self.messages.append(message(row["harness"], row["session_id"], number, role, ts(number), text, **options))
        return self

    def call(self, name, arguments, result="done", failed=False, **options):
        key = f"call_{len(self.messages)}"
        self.say("assistant", tool_calls=[tool_call(key, name, arguments)], **options)
        return self.say("tool", result, tool_call_id=key, tool_name=name, is_error=failed)

    def todo(self, **items):
        todos = [{"id": key, "content": f"do {key}", "status": status} for key, status in items.items()]
        return self.call("todo", {"action": "write", "todos": todos})

    def compact(self):
        return self.say("system", "the story so far", kind="compaction")

    def sources(self, **changes):
        last = max((m["id"] for m in self.messages if m["class"] == "compaction"), default=0)
        sources = Sources(
            row=self.row,
            recent=[self.row],
            hours=24,
            messages=lambda: iter([m for m in self.messages if m["id"] >= last]),
            entries=lambda: (Entry(b"{}", messages=[m]) for m in self.messages),
            folders=[],
            notices=Notices(),
        )
        return sources._replace(**changes)

    def recap(self, ask=None, **changes):
        return Text(recap(self.sources(**changes), NOW, ask, "a-model", iter(range(100)).__next__))


class Text:
    """A recap, taken apart."""

    def __init__(self, text):
        self.text = text
        comment, _, body = text.partition(" -->\n\n")
        self.facts = json.loads(comment.removeprefix("<!-- "))
        parts = re.split(r"^## (.*)\n\n", body, flags=re.MULTILINE)
        assert parts[0] == ""
        self.headings = parts[1::2]
        self.sections = dict(zip(self.headings, map(str.strip, parts[2::2]), strict=True))

    def __getitem__(self, heading):
        return self.sections[heading]


def answers(*texts):
    """A model that answers with these texts, and remembers what it was asked."""

    def ask(questions):
        ask.asked.append(list(questions))
        return [text for text, _ in zip(texts, questions, strict=False)]

    ask.asked = []
    return ask


# -- the whole -------------------------------------------------------------------------------------------------


def test_the_sections_stand_in_this_order_whatever_there_is():
    empty = Session().recap()
    full = Session().say("user", "go").todo(a="pending").call("bash", {"command": "git commit -m x"}).compact()

    assert empty.headings == HEADINGS
    assert full.recap(answers("s", "g")).headings == HEADINGS


def test_it_begins_with_a_comment_that_holds_one_json_object():
    text = Session().say("user", "go").say("assistant", "yes").todo(a="pending").recap(answers("s", "g"))

    assert text.text.startswith('<!-- {"session_id":"ses_1","harness":"vibe"')
    state, goals = (text.facts.pop(f"{kind}_prompt_bytes") for kind in ("state", "goals"))
    assert state > 100
    assert goals > 100
    assert text.facts == {
        "session_id": "ses_1",
        "harness": "vibe",
        "made": "2026-11-30T22:00:00.000Z",
        "seconds": {"total": 3, "reading": 1, "model": 1},
        "hours": 24,
        "recent_sessions": 1,
        "recent_rows": 1,
        "first_id": 1,
        "records": 4,
        "user_messages": 1,
        "todo_events": 1,
        "git_events": 0,
        "model": "a-model",
        "state_prompt_records": 4,
        "state_prompt_dropped_records": 0,
        "state_prompt_dropped_bytes": 0,
        "goals_prompt_records": 1,
        "goals_prompt_dropped_records": 0,
        "goals_prompt_dropped_bytes": 0,
    }


def test_what_was_dropped_from_the_prompts_is_in_the_comment():
    session = Session()
    for _ in range(40):
        session.say("user", "x" * 20_000)
    facts = session.recap(answers("s", "g")).facts

    assert facts["goals_prompt_dropped_records"] == 40 - facts["goals_prompt_records"] > 20
    assert facts["goals_prompt_dropped_bytes"] > 20 * 20_000
    assert facts["state_prompt_dropped_records"] == 0


def test_a_session_id_cannot_end_the_comment():
    text = Session(session="x --> <script>").recap()

    assert text.facts["session_id"] == "x --> <script>"
    assert text.headings == HEADINGS


def test_the_warning_is_the_last_thing_on_every_output():
    for ask in (None, answers("s\n\n## Before you trust this\n\nAll is well.", "g")):
        text = Session().say("user", "go").recap(ask)
        assert "not to be trusted unchecked" in text["Before you trust this"]
        assert "your own job" in text["Before you trust this"]
        assert "the session is ses_1 (vibe)" in text["Before you trust this"]
        assert "tr-context -C 3 ses_1:12" in text["Before you trust this"]
        assert text.headings[-1] == "Before you trust this"
        assert "All is well" not in text["Before you trust this"]


def test_commands_quote_the_session_for_a_shell():
    assert "tr-extract '; rm -rf ~'\n" in Session(session="; rm -rf ~").recap().text + "\n"


def test_the_same_session_gives_the_same_text():
    session = Session().say("user", "go").todo(a="pending", b="pending").todo(a="completed")

    assert session.recap().text == session.recap().text


# -- recent sessions -------------------------------------------------------------------------------------------


def row(number, **known):
    return session_row("vibe", f"other_{number}", "/x", title=f"t {number}", end_time=ts(1), **known)


def test_recent_sessions_are_a_table_with_this_one_marked():
    session = Session(title="mine", file_size=1_234_567, line_count=7, user_count=1, assistant_count=2, tool_count=3)
    other = session_row("codex", "ses_1", "/x", has_compaction=True, file_size=1, read_error="torn")
    lines = session.recap(recent=[session.row, other])["Recent sessions"].split("\n")

    assert lines[0] == "| Session | Title | Ended | Size | Lines | User | Assistant | Tool | Compaction | Note |"
    assert lines[2] == f"| ses_1 | mine | {ts(9)} | 1.2 MB | 7 | 1 | 2 | 3 | no | SUMMARISED |"
    assert lines[3] == "| ses_1 |  | - | 1 kB | 0 | 0 | 0 | 0 | yes | unreadable: torn |"
    assert len(lines) == 4


def test_at_most_200_recent_sessions_are_listed_and_the_rest_counted():
    text = Session().recap(recent=[row(number) for number in range(203)])

    assert text["Recent sessions"].count("\n| other_") == 200
    assert "\n3 older sessions of this window are not listed." in text["Recent sessions"]
    assert (text.facts["recent_sessions"], text.facts["recent_rows"]) == (203, 200)


def test_no_recent_session_and_one_that_is_not_recent_are_said():
    assert Session().recap(recent=[])["Recent sessions"] == "No session was active in the last 24 hours."
    assert "This session, ses\\_1".replace("\\", "") in Session().recap(recent=[row(1)])["Recent sessions"]
    assert "in the stores" in Session().recap(recent=[], hours=0)["Recent sessions"]


hostile = st.text(st.sampled_from("|\n\r\\`*_<>[]#~\x1b\x00é- x"), min_size=1, max_size=20)


@given(hostile, hostile)
def test_no_title_or_id_breaks_the_table(title, name):
    session = Session(session=name, title=title)
    lines = session.recap(recent=[session.row])["Recent sessions"].split("\n")

    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 11
    assert not re.search("[\x00-\x1f]", lines[2])
    assert "<" not in lines[2].replace("\\<", "")


def test_a_key_in_a_title_is_redacted():
    session = Session(title="My key is sk-abcdefghijklmnop")

    assert "sk-abc" not in session.recap(recent=[session.row]).text


# -- plan and todo files ---------------------------------------------------------------------------------------


def test_plan_files_are_named_with_size_and_time_newest_first(tmp_path):
    plans = tmp_path / "plans"
    plans.mkdir()
    for number, name in enumerate(("a.md", "b|c.md", "no.txt")):
        (plans / name).write_text("x" * number)
        os.utime(plans / name, (NOW + number, NOW + number))
    (plans / "folder.md").mkdir()
    (plans / "gone.md").symlink_to(tmp_path / "nowhere")
    os.mkfifo(plans / "pipe.md")

    assert Session().recap(folders=[str(tmp_path / "none"), str(plans)])["Plan and todo files"].split("\n") == [
        f"- {plans}/b\\|c.md (1 bytes, 2026-11-30T22:00:01.000Z)",
        f"- {plans}/a.md (0 bytes, 2026-11-30T22:00:00.000Z)",
    ]


def test_many_plan_files_are_counted(tmp_path):
    for number in range(53):
        (tmp_path / f"{number}.md").write_text("")

    assert f"- 3 older files in {tmp_path} are not listed" in Session().recap(folders=[str(tmp_path)]).text


def test_no_plan_file_is_said_with_where_was_looked():
    assert (
        Session().recap(folders=["/nowhere/a", "/nowhere/b"])["Plan and todo files"]
        == "None in /nowhere/a, /nowhere/b."
    )
    assert Session().recap(folders=["/no\0where"])["Plan and todo files"].startswith("None in ")


def test_a_folder_that_cannot_be_read_is_said(tmp_path):
    if os.geteuid() == 0:
        long = str(tmp_path / ("x" * 300))
        assert f"- {long} cannot be read: File name too long" in Session().recap(folders=[long]).text
    else:
        tmp_path.chmod(0)
        assert f"- {tmp_path} cannot be read: Permission denied" in Session().recap(folders=[str(tmp_path)]).text


def test_plans_are_looked_for_in_the_sessions_own_directory_never_in_the_callers():
    environ = {"HOME": "/home/me"}

    assert plan_folders("/home/me/a", environ) == [
        *("/home/me/a/.tmp/delegation", "/home/me/.vibe/plans", "/home/me/.claude/plans")
    ]
    assert plan_folders(None, environ) == ["/home/me/.vibe/plans", "/home/me/.claude/plans"]
    assert plan_folders("relative", {}) == []
    assert plan_folders(None, environ | {"VIBE_HOME": "/v", "CLAUDE_CONFIG_DIR": "/c"}) == ["/v/plans", "/c/plans"]


# -- the todo log ----------------------------------------------------------------------------------------------


def test_the_todo_log_has_each_item_with_its_states_times_and_records():
    session = (
        Session()
        .todo(a="pending", b="in_progress")
        .todo(a="in_progress", b="completed")
        .todo(a="completed", c="pending")
    )

    assert session.recap()["Todo log"].split("\n")[:5] == [
        "3 opened, 2 closed, 1 of these open at the end.",
        "",
        f"- do a: opened {ts(1)} (#1), in_progress {ts(3)} (#3), completed {ts(5)} (#5), closed after 4 min",
        f"- do b: opened as in_progress {ts(1)} (#1), completed {ts(3)} (#3), removed {ts(5)} (#5), closed after 2 min",
        f"- do c: opened {ts(5)} (#5), still open",
    ]


def test_an_item_that_was_reworded_has_its_last_text():
    session = Session()
    for text in ("first", "second"):
        session.call("todo", {"todos": [{"id": "1", "content": text, "status": "pending"}]})

    assert f"- second: opened {ts(1)} (#1), reworded {ts(3)} (#3), still open" in session.recap()["Todo log"]


def test_only_items_that_changed_in_the_period_are_listed_with_their_whole_history():
    session = Session().todo(a="pending", old="pending").compact().todo(a="completed", old="pending")
    text = session.recap()

    assert text["Todo log"].split("\n") == [
        "0 opened, 1 closed, 0 of these open at the end.",
        "",
        f"- do a: opened {ts(1)} (#1), completed {ts(4)} (#4), closed after 3 min",
    ]
    assert text.facts["todo_events"] == 1


def test_a_churn_note_names_what_the_person_said_before_items_were_opened():
    session = Session().say("user", "first *steer*").todo(a="pending").say("user", "more\nplease")
    session.todo(a="pending", b="pending", c="pending")
    lines = session.recap()["Todo log"].split("\n")

    assert lines[-5:] == [
        "Churn: items open faster than they close (3 opened, 0 closed in this period).",
        "What the person had said before items were opened:",
        "",
        f"- {ts(1)} (#1): first \\*steer\\*",
        f"- {ts(4)} (#4): more please",
    ]


def test_without_churn_there_is_no_note():
    assert "Churn" not in Session().todo(a="pending").todo(a="completed").recap().text


def test_an_item_closed_twice_counts_once_and_one_reopened_again():
    session = Session().todo(a="completed").todo()
    assert session.recap()["Todo log"].startswith("1 opened, 1 closed, 0 of these")
    session = Session().todo(a="completed").todo(a="pending").todo(a="cancelled")
    assert session.recap()["Todo log"].startswith("1 opened, 2 closed, 0 of these")


def test_no_todo_event_and_a_harness_without_todos_are_told_apart():
    assert Session().recap()["Todo log"] == "No todo item changed in this period."
    text = Session(harness="pi").recap()

    assert text["Todo log"] == (
        "pi keeps no todo list that can be read, so there is no todo log. That is neither a failure nor an empty list."
    )
    assert text.facts["todo_events"] is None


def test_a_long_todo_log_is_bounded_and_counted():
    session = Session().todo(**{f"i{number}": "pending" for number in range(130)})
    for _ in range(6):
        session.todo(**{f"i{number}": "in_progress" for number in range(130)})
        session.todo(**{f"i{number}": "pending" for number in range(130)})
    text = session.recap()["Todo log"]

    assert text.count("\n- do i") == 100
    assert "The 30 that changed longest ago are not listed." in text
    assert "in_progress" in text
    assert ", 5 more changes, " in text


# -- commits ---------------------------------------------------------------------------------------------------


def test_commits_of_the_period_have_time_and_record_and_really_happened():
    session = Session().call("bash", {"command": "git commit -m 'before'"}).compact()
    session.call("bash", {"command": "cd x && git commit -m 'Fix *it*' && git tag v1"})
    session.call("bash", {"command": "git commit -m refused"}, "fatal", failed=True)
    session.call("bash", {"command": "grep 'git commit' log"})
    text = session.recap()

    assert text["Commits"].split("\n") == [
        f"- GitCommit {ts(4)} (#4): Fix \\*it\\*",
        f"- GitTag {ts(4)} (#4): v1",
    ]
    assert text.facts["git_events"] == 2
    assert "No git commit" in Session().recap()["Commits"]


def test_a_commit_that_a_fork_copied_is_not_counted_again():
    assert "No git commit" in Session().call("bash", {"command": "git commit -m x"}, replayed=True).recap()["Commits"]


def test_many_commits_are_bounded_and_counted():
    session = Session()
    for number in range(103):
        session.call("bash", {"command": f"git tag v{number}"})
    session.messages = [record | {"ts": None} for record in session.messages]
    lines = session.recap()["Commits"].split("\n")

    assert lines[0] == "- 3 earlier ones are not listed"
    assert lines[-1] == "- GitTag (#205): v102"
    assert len(lines) == 101


# -- what a model made of it -----------------------------------------------------------------------------------


def test_two_questions_are_asked_at_once_the_state_of_the_period_and_the_goals_of_the_session():
    ask = answers("the state", "the goals")
    text = Session().say("user", "old goal").compact().say("user", "new goal").say("assistant", "on it").recap(ask)

    ((state, goals),) = ask.asked
    assert "old goal" not in state[1]
    assert "| new goal" in state[1]
    assert "1. (#1 " in goals[1]
    assert "| old goal" in goals[1]
    assert text["Current state"] == "the state"
    assert text["Goals, tasks, steers"].startswith("the goals\n")


def test_without_a_model_the_rest_is_the_same_and_it_says_so():
    session = Session().say("user", "go").todo(a="pending").call("bash", {"command": "git tag v1"})
    without, asked = session.recap(), session.recap(answers("s", "g"))

    for heading in HEADINGS:
        if heading not in ("Current state", "Goals, tasks, steers"):
            assert without[heading] == asked[heading]
    assert "no model was asked (--no-llm)" in without["Current state"]
    assert "no model was asked (--no-llm)" in without["Goals, tasks, steers"]
    assert without.facts["model"] is None
    assert without.facts["state_prompt_bytes"] is without.facts["goals_prompt_dropped_records"] is None


def test_what_the_person_typed_last_stands_beside_it_word_for_word():
    for ask in (None, answers("s", "g")):
        text = Session().say("user", "go\n## on").say("user", "x", authorship="injected").recap(ask)
        assert text["Goals, tasks, steers"].endswith(
            f"### What the person typed last, verbatim\n\n- #1 {ts(1)}\n  > go\n  > ## on"
        )


def test_nobody_is_asked_about_nothing():
    ask = answers("s")
    text = Session().say("assistant", "hello").recap(ask)

    assert len(ask.asked[0]) == 1
    assert text["Current state"] == "s"
    assert text["Goals, tasks, steers"] == "Nothing is recorded to ask about."
    silent = answers()
    assert Session().recap(silent)["Current state"] == "Nothing is recorded to ask about."
    assert silent.asked == []


@pytest.mark.parametrize("text", ["# A\n## B\n ## C", "A\n---\nB", "A\n===\nB", "<!-- hidden -->", "##", "- x\n  ## y"])
def test_a_model_cannot_make_a_heading_of_ours_or_hide_text(text):
    recapped = Session().say("user", "go").recap(answers(text, "g"))

    assert recapped.headings == HEADINGS
    assert not re.search(r"^ {0,3}(?:#{1,2}(?:\s|$)|-+$|=+$)", recapped["Current state"], re.MULTILINE)
    assert "<!--" not in recapped["Current state"]


def test_a_model_that_fails_fails_the_recap():
    def broken(_):
        raise RuntimeError("no answer")

    with pytest.raises(RuntimeError):
        Session().say("user", "go").recap(broken)


# -- compaction points -----------------------------------------------------------------------------------------


def test_compaction_points_are_the_last_few_with_records_and_lines_since():
    session = Session()
    for _ in range(7):
        session.say("user", "go").compact()
    session.say("assistant", "x")
    both = [Entry(b"{}", messages=session.messages[:3]), Entry(b"{}")]
    rest = [Entry(b"{}", messages=[record]) for record in session.messages[3:]]
    lines = session.recap(entries=lambda: [*both, *rest])["Compaction points"].split("\n")

    assert lines == [
        f"For information only. The period is from record #14 ({ts(14)}) on.",
        "",
        f"- {ts(6)} (#6): 9 records and 9 lines since",
        f"- {ts(8)} (#8): 7 records and 7 lines since",
        f"- {ts(10)} (#10): 5 records and 5 lines since",
        f"- {ts(12)} (#12): 3 records and 3 lines since",
        f"- {ts(14)} (#14): 1 records and 1 lines since",
    ]


def test_a_session_that_was_never_compacted_is_recapped_whole_and_says_so():
    text = Session().say("user", "go").recap()

    assert text["Compaction points"].startswith("None: the session was not compacted, and the period is all of it")
    assert text.facts["first_id"] == 1


# -- a real store ----------------------------------------------------------------------------------------------


def test_a_recap_of_a_real_session_names_what_is_known_of_it():
    root = FIXTURES / "vibe" / "legacy-2.18.4" / "logs" / "session"
    environ = {"TOTAL_RECALL_VIBE_ROOT": str(root), "TOTAL_RECALL_SANDBOX": "1", "HOME": "/nowhere"}
    notices = Notices()
    (store,) = open_stores(["vibe"], environ, notices)
    found = next(s for s in store.sessions() if s.session_id.startswith("5678bdfc"))
    row = store.row(found)
    sources = Sources(
        *(row, [store.row(other) for other in store.sessions()], 24),
        *(lambda: store.since_compaction(found), lambda: store.entries(found, {})),
        *(plan_folders(row["directory"], environ), notices),
    )
    text = Text(recap(sources, NOW))

    assert text["Commits"].split("\n") == [
        *("- GitCommit (#9): Add word counter", "- GitCommit (#14): Split, then count", "- GitTag (#14): v1.0")
    ]
    assert text["Todo log"].startswith("4 opened, 4 closed, 0 of these open at the end.")
    assert "- Write wc.py: opened (#2), in_progress (#6), completed (#11)" in text["Todo log"]
    assert "> Build a word counter with git history and a tag." in text["Goals, tasks, steers"]
    assert text["Recent sessions"].count("SUMMARISED") == 1
    assert not notices.failures
