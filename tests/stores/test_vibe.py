"""Vibe's store against the ground truth of real stores: every session, its texts, calls, todos and lineage."""

import copy
from collections import Counter

import orjson
import pytest
from total_recall.record import message
from total_recall.stores.base import Tally
from total_recall.stores.vibe import Vibe

from tests.stores.vibe_stores import LEGACY, MIXED, TRUTH, copied, keyed, opened, records, session_of

SESSIONS = [
    pytest.param(store, truth, id=f"{'+'.join(truth['keys'])}-{truth['session_id'][:8]}")
    for store in TRUTH
    for truth in TRUTH[store]["sessions"]
]
CHAIN = ("tui-questions", "compact-1", "compact-2")


@pytest.fixture(scope="module")
def roots(tmp_path_factory):
    """The two stores: the legacy folders alone, and with the unified store beside them."""
    return {
        LEGACY: copied(tmp_path_factory.mktemp("legacy"), LEGACY),
        MIXED: copied(tmp_path_factory.mktemp("mixed"), LEGACY, MIXED),
    }


@pytest.fixture
def store(roots):
    return opened(roots[MIXED])


def cut(text):
    """A text as the truth files cut it."""
    return text if len(text) <= 200 else f"{text[:200]}...({len(text)} chars)"


def told(truth, side):
    """The texts of one side in the truth, without what was injected and a copied compaction's frames."""
    frames = ("You are continuing a trajectory after", "</previous_user_messages>")
    texts = [(who.split("/"), text) for who, text in truth["texts"] if text and not text.startswith(frames)]
    return [text for who, text in texts if who[0] == side and "injected" not in who]


def walked(root, truth, *, imported=False):
    """The records of a session; of an alias those that it has itself, of an import by default only the new ones."""
    found = records(opened(root), truth["session_id"])
    if truth["format"] == "legacy":
        return found[: truth["lines"]]
    drop = "u-import-legacy" in truth["keys"] and not imported
    return [each for each in found if not (drop and each.get("replayed"))]


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_prompts_and_answers_are_verbatim_and_in_order(roots, store_name, truth):
    found = walked(roots[store_name], truth, imported=True)

    prompts = [cut(each["content"]) for each in found if each["authorship"] in ("human", "delegated")]
    answers = [cut(each["content"]) for each in found if each["role"] == "assistant" and each["content"]]

    assert prompts == told(truth, "user")
    assert answers == told(truth, "assistant")


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_reasoning_is_the_truths(roots, store_name, truth):
    found = walked(roots[store_name], truth)

    assert [each["thinking"] for each in found if each["thinking"]] == truth["reasoning"]


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_calls_are_counted_by_tool_and_state(roots, store_name, truth):
    found = walked(roots[store_name], truth)
    calls = Counter(call["name"] for each in found for call in each["tool_calls"])
    results = Counter(each["tool_name"] for each in found if each["role"] == "tool")
    expected = dict(truth["tool_calls"])

    if truth["format"] == "unified":
        commands = sum(1 for each in found if each["class"] == "command")
        assert commands == sum(expected.pop("shell", {}).values())
        running = {name: states.get("running", 0) for name, states in expected.items()}
        expected = {name: sum(states.values()) for name, states in expected.items()}
        assert results == Counter({name: count - running[name] for name, count in expected.items()})
    else:
        assert results.total() == truth["tool_results"]
    assert calls == Counter(expected)


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_todo_flushes_are_the_calls_arguments(roots, store_name, truth):
    found = walked(roots[store_name], truth)
    calls = [call for each in found for call in each["tool_calls"] if call["name"] in ("todo", "vibe.todo")]

    flushes = [
        [[item["id"], item["content"], item["status"], item["priority"]] for item in call["arguments"]["todos"]]
        for call in calls
        if call["arguments"]["action"] == "write"
    ]
    assert flushes == truth["todo_flushes"]


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_shell_commands_are_the_truths(roots, store_name, truth):
    found = walked(roots[store_name], truth)
    calls = [call["arguments"] for each in found for call in each["tool_calls"] if call["name"].endswith("bash")]

    commands = [given["command"] for given in calls if isinstance(given, dict)]  # one is broken JSON
    assert commands == [each[1] if isinstance(each, list) else each for each in truth["bash"]]


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_rows_have_the_truths_directory_title_and_counts(roots, store_name, truth):
    store = opened(roots[store_name])
    session = session_of(store, truth["session_id"])
    row = store.row(session)

    assert "read_error" not in row
    assert row["directory"] == (truth["cwd"] or "/home/dev/projects/alpha")  # a child's own documents name it
    if session.session_id == truth["session_id"] and "Scratchpad" not in (truth["title"] or ""):
        expected = truth["title"] or told(truth, "user")[0].split("\n")[0]
        if not expected.startswith("You are continuing"):
            assert row["title"] == expected.replace("\t", " ").split("\n")[0]
    found = list(store.messages(session))
    prompts = [each for each in found if each["authorship"] in ("human", "delegated") and not each.get("replayed")]
    assert row["user_count"] == len(prompts)
    assert row["start_time"] <= row["end_time"]
    assert not store.notices.said
    assert not store.notices.failures


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_a_walk_goes_on_from_a_copy_of_its_state_at_every_entry(roots, store_name, truth):
    """What an interrupted walk and its continuation yield is what one walk yields, for every place of the cut."""
    store = opened(roots[store_name])
    session = session_of(store, truth["session_id"])
    whole, states, state = [], [b"{}"], {}
    for entry in store.entries(session, state):
        whole.append((entry.line(), entry.raw_type(), entry.slice, copy.deepcopy(entry.messages)))
        states.append(orjson.dumps(state))

    for place, kept in enumerate(states):
        rest = store.entries(session, orjson.loads(kept))
        assert [(each.line(), each.raw_type(), each.slice, each.messages) for each in rest] == whole[place:]
    offsets = [orjson.loads(kept).get("offset", 0) for kept in states]
    assert offsets == sorted(offsets)


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_every_record_is_found_again_by_its_ref(roots, store_name, truth):
    store = opened(roots[store_name])
    session = session_of(store, truth["session_id"])
    entries = list(store.entries(session, {}))
    assert any(each.messages for each in entries)

    for entry in entries:
        for place, record in enumerate(entry.messages):
            again = store.entry_at(session, record["ref"])
            assert again.line() == entry.line()
            assert again.messages[place] | {"id": record["id"]} == record


@pytest.mark.parametrize(("store_name", "truth"), SESSIONS)
def test_ids_count_up_and_keys_stand_in_the_documented_order(roots, store_name, truth):
    found = records(opened(roots[store_name]), truth["session_id"])
    numbers = [each["id"] for each in found]
    order = list(message("", "", 1, "user", None, authorship="human", replayed=True, trigger="", ref={}))

    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    for each in found:
        assert [key for key in each if key in order] == [key for key in order if key in each]
        assert each["harness"] == "vibe"
        assert orjson.dumps(each)


def test_raw_lines_of_folders_are_the_files_bytes(roots):
    store = opened(roots[LEGACY])
    for session in store.sessions():
        with open(session.files[0], "rb") as source:
            assert [entry.line() for entry in store.entries(session, {})] == source.read().rstrip(b"\n").split(b"\n")


def test_all_sessions_and_nothing_else_are_listed(roots):
    """18 folders of which two are aliases; caches, locks and pointers are no sessions."""
    legacy, mixed = opened(roots[LEGACY]).sessions(), opened(roots[MIXED]).sessions()

    assert len(legacy) == 16
    assert len(mixed) == 16 + 15
    assert len({session.session_id for session in mixed}) == 31
    assert [session.updated for session in mixed] == sorted((session.updated for session in mixed), reverse=True)


def test_compaction_frames_at_the_beginning_of_a_folder_are_compactions(store):
    summaries = {}
    for key in CHAIN:
        found = records(store, keyed(key, LEGACY)["session_id"])
        summaries[key] = [(each["id"], each["content"]) for each in found if each["class"] == "compaction"]

    assert summaries["tui-questions"] == []
    assert [summaries[key][0][0] for key in CHAIN[1:]] == [1, 1]
    assert summaries["compact-1"][0][1].startswith("SUMMARY ONE")
    assert summaries["compact-2"][0][1].startswith("SUMMARY TWO")
    frame = records(store, keyed("compact-1", LEGACY)["session_id"])[0]
    assert (frame["role"], frame["authorship"], frame["injected"]) == ("system", "injected", False)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("u-tui", [("", "manual"), ("SUMMARY TWO: coffee, asked again.", "manual")]),
        ("u-auto-compact-fits", [("SUMMARY (auto, fits): the gate is blue.", "auto")]),
        ("u-auto-compact", []),
        ("u-branch", [("SUMMARY TWO: coffee, asked again.", None)]),
    ],
)
def test_compactions_of_the_unified_store(store, key, expected):
    """The latest has its summary, out of the model's context; a failed one is none."""
    session = session_of(store, keyed(key)["session_id"])
    found = [each for each in store.messages(session) if each["class"] == "compaction"]

    assert [(each["content"], each.get("trigger")) for each in found] == expected
    assert store.row(session)["has_compaction"] is bool(expected)


def test_since_the_last_compaction_begins_at_its_record(store):
    tui = list(store.since_compaction(session_of(store, keyed("u-tui")["session_id"])))
    branch = list(store.since_compaction(session_of(store, keyed("u-branch")["session_id"])))

    assert [each["content"] for each in tui] == [
        "SUMMARY TWO: coffee, asked again.",
        "And now, which drink?",
        "Still coffee.",
    ]
    assert branch[0]["content"] == "Hello, TUI three"  # a branch copies the prompts that the summary kept


def test_a_compactions_frame_is_no_title(store):
    titles = [store.row(session)["title"] for session in store.sessions()]

    assert not any((title or "").startswith("You are continuing") for title in titles)
    assert store.row(session_of(store, keyed("compact-1", LEGACY)["session_id"]))["title"] == "Which indent?"


def test_what_nobody_typed_is_injected(store):
    plan = records(store, keyed("plan-agent", LEGACY)["session_id"])
    tui = records(store, keyed("tui-questions", LEGACY)["session_id"])
    unified = records(store, keyed("u-tui")["session_id"])

    assert [each["injected"] for each in plan] == [False, True, False]
    assert plan[1]["content"].startswith("<vibe_warning>")
    assert (tui[-1]["class"], tui[-1]["injected"]) == ("command", True)
    [command] = [each for each in unified if each["class"] == "command"]
    assert command["content"] == "!echo from-the-user-shell-3\nfrom-the-user-shell-3\n"
    assert (command["role"], command["injected"]) == ("user", True)


def test_failed_tools_are_errors_and_others_are_not(store):
    legacy = [each for each in records(store, keyed("errors", LEGACY)["session_id"]) if each["role"] == "tool"]
    unified = [each for each in records(store, keyed("u-errors")["session_id"]) if each["role"] == "tool"]
    fine = [each for each in records(store, keyed("git-continued", LEGACY)["session_id"]) if each["role"] == "tool"]
    tagged = [each["is_error"] for each in records(store, keyed("u-git")["session_id"]) if each["role"] == "tool"]

    assert [each["is_error"] for each in legacy] == [True] * 5
    assert [each["is_error"] for each in unified] == [True] * 3
    assert unified[1]["content"] == "partial\noops\nreturncode: 4"
    assert [each["is_error"] for each in fine] == [False] * 12
    assert tagged.count(True) == 1  # the tag was there already: exit 128


def test_arguments_that_are_no_json_stay_the_models_text(store):
    found = records(store, keyed("errors", LEGACY)["session_id"])

    assert found[9]["tool_calls"][0]["arguments"] == '{"command": "echo broken'


def test_answers_to_questions_are_carried(store):
    legacy = [each for each in records(store, keyed("tui-questions", LEGACY)["session_id"]) if each["role"] == "tool"]
    unified = [each for each in records(store, keyed("u-tui")["session_id"]) if each["role"] == "tool"]

    assert "'answer': 'ruff, mypy'" in legacy[0]["content"]
    assert [each["tool_result"]["cancelled"] for each in unified] == [False, False, True]
    answers = [answer["answer"] for each in unified for answer in each["tool_result"]["answers"]]
    assert answers == ["Coffee", "Milk, Lemon", 'Qux, "mine"']


def test_an_interrupted_answer_is_kept(store):
    found = records(store, keyed("u-interrupted-and-killed")["session_id"])

    assert found[2]["content"] == "A long answer that will be interrupted by th"


def test_the_killed_turn_is_read_out_of_the_journal(store):
    """18 journal records were never folded in: a prompt, a todo flush, and a shell that still runs."""
    found = records(store, keyed("u-interrupted-and-killed")["session_id"])
    calls = [call for each in found for call in each["tool_calls"]]

    assert [call["name"] for call in calls] == ["vibe.todo", "file_system.bash"]
    assert [each["tool_name"] for each in found if each["role"] == "tool"] == ["vibe.todo"]
    assert found[-2]["tool_result"]["total_count"] == 1
    assert store.row(session_of(store, keyed("u-interrupted-and-killed")["session_id"]))["user_count"] == 3


def context_only(store, key):
    session = session_of(store, keyed(key)["session_id"])
    entries = [entry for entry in store.entries(session, {}) if b'"turn_index"' in entry.line()]
    assert not any(entry.messages for entry in entries)
    return [(entry.raw_type(), orjson.loads(entry.line())["message"]) for entry in entries]


def test_refused_calls_are_raw_entries_without_records(store):
    """An unknown tool and broken JSON never ran: the transcript has neither, the context has both, with answers."""
    found = context_only(store, "u-errors")

    assert [kind for kind, _ in found] == ["assistant", "tool", "assistant", "tool"]
    names = [part["name"] for _, told in found for part in told["content"] if part["type"] == "tool_call"]
    assert names == ["imaginary_tool", "bash"]
    assert found[2][1]["content"][0]["arguments"]["type"] == "invalid_json"


@pytest.mark.parametrize(
    ("key", "kinds"),
    [
        ("u-git", []),
        ("u-tui", ["system", "system"]),
        ("u-auto-compact-fits", ["system", "system", "system"]),
        ("u-subagent", ["assistant", "tool", "system"]),
        ("u-branch", ["assistant"]),
        ("u-import-legacy", []),
        ("u-auto-compact", []),
    ],
)
def test_only_what_the_transcript_leaves_out_follows_it(store, key, kinds):
    if key == "u-subagent":
        parent = next(truth for truth in TRUTH[MIXED]["sessions"] if key in truth["keys"] and truth["cwd"])
        session = session_of(store, parent["session_id"])
        found = [entry.raw_type() for entry in store.entries(session, {}) if b'"turn_index"' in entry.line()]
        assert found == kinds
    else:
        assert [kind for kind, _ in context_only(store, key)] == kinds


def test_listing_facts_count_what_a_walk_yields(store):
    """Two computations that must agree: the facts kept for a listing, and the records themselves."""
    for session in store.sessions():
        tally = Tally()
        for entry in store.entries(session, tally.state):
            tally.add(entry)
        row = store.row(session)
        for key in ("user_count", "assistant_count", "tool_count", "line_count"):
            assert row[key] == tally.counts[key]


@pytest.mark.parametrize(
    ("environ", "root", "overridden"),
    [
        ({"HOME": "/h"}, "/h/.vibe/logs/session", False),
        ({"HOME": "/h", "VIBE_HOME": "/v"}, "/v/logs/session", False),
        ({"VIBE_HOME": "/v"}, "/v/logs/session", False),
        ({"HOME": "/h", "VIBE_HOME": "/v", "TOTAL_RECALL_VIBE_ROOT": "/x/logs/session/"}, "/x/logs/session", True),
        ({"HOME": "/h", "TOTAL_RECALL_VIBE_ROOT": "  "}, "/h/.vibe/logs/session", False),
    ],
)
def test_the_store_is_where_the_environment_says(environ, root, overridden):
    place = Vibe.locate(environ)

    assert (place.root, place.overridden) == (root, overridden)
    assert place.shadow == root.removesuffix("/session") + "/.tantivy"


@pytest.mark.parametrize(
    ("config", "root"),
    [
        ('[session_logging]\nsave_dir = "/elsewhere/sessions"\n', "/elsewhere/sessions"),
        ('[session_logging]\nsave_dir = "~/sessions"\nsession_prefix = "s"\n', "{home}/sessions"),
        ("session_logging = { save_dir = '/a b/\u00e9' }\n", "/a b/\u00e9"),
        ('[session_logging]\nsave_dir = "{home}/.vibe/logs/session"\n', "{home}/.vibe/logs/session"),
        ('[session_logging]\nsave_dir = ""\n', "{home}/.vibe/logs/session"),
        ('[other]\nsave_dir = "/elsewhere"\n', "{home}/.vibe/logs/session"),
        ("[session_logging]\nsave_dir = 7\n", "{home}/.vibe/logs/session"),
        ('session_logging = 7\nsave_dir = "/x"\n', "{home}/.vibe/logs/session"),
        ('[session_logging]\n# save_dir = "/x"\nenabled = true\n', "{home}/.vibe/logs/session"),
        ('[session_logging\nsave_dir = "/x"\n', "{home}/.vibe/logs/session"),
        ("\udcff save_dir = ", "{home}/.vibe/logs/session"),
    ],
)
def test_the_store_is_where_the_programs_settings_say(config, root, tmp_path):
    home = str(tmp_path)
    (tmp_path / ".vibe").mkdir()
    (tmp_path / ".vibe" / "config.toml").write_text(config.replace("{home}", home), errors="surrogateescape")

    assert Vibe.locate({"HOME": home}).root == root.format(home=home)
    assert Vibe.locate({"HOME": home, "TOTAL_RECALL_VIBE_ROOT": "/x"}).root == "/x"


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"VIBE_HOME": " ", "HOME": " "}])
def test_without_a_home_there_is_no_place(environ):
    assert Vibe.locate(environ) is None


def test_resume_names_the_session(store):
    row = store.row(session_of(store, keyed("git-continued", LEGACY)["session_id"]))

    assert store.resume(row) == ["vibe", "--resume", row["session_id"]]
