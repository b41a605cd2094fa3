"""The server with the real executables on the sample stores: what an agent is told agrees with what they print."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from mcp_client import MARKER, RAW_MINIMUM, connected
from sample import FIXTURES, ROOT, SAMPLE, isolated, store_environment

from mcp_wrapper.tools import TABLE

HERE = [name for name, (fixture, _) in SAMPLE.items() if (FIXTURES / fixture).exists()]
SESSION_TOOLS = [tool.name for tool in TABLE if "session_id" in tool.fields and "all" not in tool.fields]
WINDOW_TOOLS = [tool.name for tool in TABLE if "all" in tool.fields]
COMMANDS = {tool.name: tool.command for tool in TABLE}

pytestmark = [
    pytest.mark.skipif(not (ROOT / "bin" / "tr-list").exists(), reason="bin/tr-list is not written yet"),
    pytest.mark.skipif(not HERE, reason="there are no sample stores yet"),
]


def needs(*names):
    """Skip, with a word, while an executable is not written."""
    for name in names:
        if not (ROOT / "bin" / COMMANDS.get(name, name)).exists():
            pytest.skip(f"bin/{COMMANDS.get(name, name)} is not written yet")


@pytest.fixture(scope="module")
def environ(tmp_path_factory):
    """The environment of the server and of the executables beside it: the sample stores, and folders of its own."""
    folder = tmp_path_factory.mktemp("real")
    for name in HERE:
        shutil.copytree(FIXTURES / SAMPLE[name][0], folder / "stores" / name, symlinks=True)
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    environ = isolated(folder / "home") | store_environment(folder / "stores", HERE)
    environ |= {"TMPDIR": str(folder / "tmp"), "TOTAL_RECALL_SHADOW_ROOT": str(folder / "shadow")}
    return environ if len(HERE) == len(SAMPLE) else environ | {"TR_HARNESS": ",".join(HERE)}


@pytest.fixture(scope="module")
def server(environ):
    with connected(ROOT / "bin" / "tr-mcp", env=environ) as found:
        yield found


@pytest.fixture(scope="module")
def printed(environ):
    """The lines that an executable prints."""

    def run(name, *words):
        needs(name)
        done = subprocess.run(
            [sys.executable, ROOT / "bin" / name, *map(str, words)], env=environ, capture_output=True, check=True
        )
        return done.stdout.decode().split("\n")[:-1]

    return run


@pytest.fixture(scope="module")
def sessions(printed):
    """The rows of all sessions."""
    return [json.loads(line) for line in printed("tr-list")]


@pytest.fixture(scope="module")
def longest(sessions):
    """The id of a session with many records."""
    return max(sessions, key=lambda row: (row["line_count"], row["session_id"]))["session_id"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_tool_answers_its_raw_minimum_or_says_why_not(server, name, tmp_path):
    needs(name)
    (tmp_path / "file").write_text("one\ntwo\n")
    arguments = {"file_path": str(tmp_path / "file")} if name == "line_histogram" else RAW_MINIMUM.get(name)
    found = server.call(name, arguments)

    assert found.text
    assert "Traceback" not in found.text
    assert "unexpected" not in found.text
    if found.failed:
        assert found.text.startswith(f"{name}: ")
        assert name in ("summarise_from", "cache_delete_latest", "prior_period_summary", "todo_history")


@pytest.mark.parametrize("name", WINDOW_TOOLS)
def test_every_window_tool_answers_for_the_whole_store(server, name):
    needs(name)
    found = server.call(name, {**RAW_MINIMUM.get(name, {}), "all": True})

    assert not found.failed, found.text


@pytest.mark.parametrize("name", [*SESSION_TOOLS, *WINDOW_TOOLS])
def test_a_session_that_is_not_there_is_named(server, name):
    needs(name)
    found = server.call(name, {**RAW_MINIMUM.get(name, {}), "session_id": "no-such-session"})

    assert "no-such-session" in found.text
    if name in SESSION_TOOLS:
        assert found.failed
        assert found.text.startswith(f"{name}: no session matching 'no-such-session' under ")


def test_the_stores_are_listed_with_their_roots(server, environ):
    needs("harness")
    found = server.call("harness").json

    roots = {row["harness"]: row["root"] for row in found["stores"]}
    assert {name: roots[name] for name in HERE} == {name: environ[f"TOTAL_RECALL_{name.upper()}_ROOT"] for name in HERE}


def test_a_listing_of_all_has_the_rows_of_tr_list(server, sessions):
    found = server.call("list_sessions", {"all": True, "max_bytes": 8_388_608}).json

    assert [row["session_id"] for row in found["sessions"]] == [row["session_id"] for row in sessions][:200]
    assert found["window_count"] == len(sessions)
    assert found["held_back"] == max(0, len(sessions) - 200)


@pytest.mark.parametrize("most", [2_000, 4_000, 16_384, 50_000])
def test_a_listing_fits_its_bound_and_counts_what_it_holds_back(server, sessions, most):
    found = server.call("list_sessions", {"all": True, "max_bytes": most})

    assert len(found.text.encode()) <= most
    assert found.json["sessions"]
    assert len(found.json["sessions"]) + found.json["held_back"] == len(sessions) == found.json["window_count"]


@pytest.mark.parametrize("full", [True, False])
def test_walking_the_pages_meets_every_record_once(server, printed, longest, full):
    walked, offset = [], 0
    while offset is not None:
        arguments = {"session_id": longest, "full": full, "offset": offset, "limit": 7}
        page = server.call("extract_messages", arguments).json
        walked += page["messages"]
        offset = page["bounds"]["next_offset"]

    assert walked == [json.loads(line) for line in printed("tr-extract", *(["--full"] if full else []), longest)]


@pytest.mark.parametrize("most", [3_000, 10_000, 60_000])
@pytest.mark.parametrize("name", ["extract_messages", "extract_user_messages", "extract_by_type"])
def test_an_extraction_fits_its_bound_or_names_both_ways_out(server, longest, name, most):
    found = server.call(name, {"session_id": longest, "max_bytes": most})

    if found.failed:
        assert found.text.startswith(f"{name}: even one record (")
        assert "`max_bytes`" in found.text
        assert "`max_record_bytes`" in found.text
    else:
        assert len(found.text.encode()) <= most
        assert MARKER not in found.text


def test_the_tail_of_a_session_is_what_comes_without_an_offset(server, printed, longest):
    found = server.call("extract_messages", {"session_id": longest, "full": True, "limit": 3}).json

    assert found["messages"] == [json.loads(line) for line in printed("tr-extract", "--full", longest)][-3:]


def test_what_a_person_typed_is_the_same_on_both_sides(server, printed, sessions):
    for row in {row["harness"]: row for row in sessions}.values():
        found = server.call("extract_user_messages", {"session_id": row["session_id"], "limit": 1000}).json
        assert found["session_id"] == row["session_id"]
        assert found["user_messages"] == [json.loads(line) for line in printed("tr-user", row["session_id"])]


def test_raw_records_are_the_lines_of_tr_raw_under_a_header(server, printed, longest):
    head, *lines = server.call("extract_by_type", {"session_id": longest, "limit": 1000}).text.split("\n")

    assert json.loads(head.removeprefix("# "))["session_id"] == longest
    assert lines == printed("tr-raw", "--type=all", longest)


def test_a_hit_leads_to_its_message(server, sessions, printed):
    """Search, then context: every id that is printed is the next call's input."""
    needs("do_android_dream_of_electric_sheep", "message_context")
    prompt = next(json.loads(line) for row in sessions for line in printed("tr-user", row["session_id"]))
    word = max(prompt["content"].split(), key=len).strip(".,:;`'\"()")
    found = server.call("do_android_dream_of_electric_sheep", {"query": word, "all": True})
    hits = [line.split(" | ") for line in found.text.split("\n") if line.count(" | ") >= 5]

    assert not found.failed
    assert hits
    session, _, _, _, record, _ = hits[0][:6]
    head, *lines = server.call(
        "message_context", {"session_id": session, "id": int(record), "before": 0, "after": 0, "max_bytes": 100_000}
    ).text.split("\n")
    assert head.startswith("# {")
    assert [json.loads(line)["session_id"] for line in lines] == [session]


def test_a_search_that_finds_nothing_is_no_failure(server):
    needs("do_android_dream_of_electric_sheep")
    found = server.call("do_android_dream_of_electric_sheep", {"query": "zqxjkvbpwy", "all": True})

    assert not found.failed
    assert "zqxjkvbpwy" in found.text


def test_the_most_recent_session_is_the_default(server, sessions):
    [first] = {server.call("extract_messages", {"session_id": unset}).json["session_id"] for unset in (None, "")}

    assert first == server.call("extract_messages").json["session_id"]
    assert first in {row["session_id"] for row in sessions}


def test_a_summary_ledger_begins_empty(server, longest):
    needs("summary_cache", "cache_delete_latest")
    found = server.call("summary_cache", {"session_id": longest}).json
    refused = server.call("cache_delete_latest", {"session_id": longest})

    assert found["session_id"] == longest
    assert found["blocks"] == []
    assert found["tail"]["from_id"] == 1
    assert refused.failed
    assert refused.text.startswith("cache_delete_latest: ")


def test_without_a_key_the_tools_that_call_a_model_say_which_variable(server, longest):
    needs("summarise_from")
    found = server.call("summarise_from", {"session_id": longest, "from_id": 1})

    assert found.failed
    assert "INCEPTION_API_KEY" in found.text


def test_the_wrong_first_record_of_a_summary_names_the_right_one(server, longest):
    needs("summarise_from")
    found = server.call("summarise_from", {"session_id": longest, "from_id": 2})

    assert found.failed
    assert "1" in found.text


def test_a_flood_can_be_paged_from_its_file(server, longest):
    needs("line_histogram", "todo_history", "message_context")
    whole = server.call("message_context", {"session_id": longest, "id": 1, "after": 500, "max_bytes": 8_388_608})
    found = server.call("message_context", {"session_id": longest, "id": 1, "after": 500, "max_bytes": 3000})
    head, marker, facts = found.text.partition(MARKER)
    path = facts.partition("full_report: ")[2].split("\n")[0]

    assert marker
    assert len(head.encode()) <= 3000
    assert "Bucket Distribution" in facts
    assert os.stat(path).st_mode & 0o777 == 0o600
    lines = whole.text.split("\n")
    for number in (1, len(lines)):
        arguments = {"file_path": path, "mode": "extract", "line": number}
        page = server.call("line_histogram", arguments)
        assert page.text == lines[number - 1] or page.text.startswith(MARKER)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"file_path": "/no/such/file"}, "/no/such/file"),
        ({"file_path": "/"}, "/"),
        ({"file_path": "/no/such/file", "mode": "extract", "line": 10**9}, "/no/such/file"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_failure_that_names_it(server, arguments, said):
    needs("line_histogram")
    found = server.call("line_histogram", arguments)

    assert found.failed
    assert found.text.startswith("line_histogram: ")
    assert said in found.text


def test_a_server_starts_with_every_store_missing_and_says_so(environ, tmp_path):
    gone = {f"TOTAL_RECALL_{name.upper()}_ROOT": str(tmp_path / "gone" / name) for name in SAMPLE}
    with connected(ROOT / "bin" / "tr-mcp", env=environ | gone, mode="legacy") as server:
        assert len(server.tools()) == len(TABLE)
        assert not any(row["exists"] for row in server.call("harness").json["stores"])
        found = server.call("extract_messages")

    assert found.failed
    assert "no sessions found" in found.text


def test_no_store_was_written(server, environ):
    """The last word of this module: what was copied is what is there, after every call above."""
    for name in HERE:
        source = FIXTURES / SAMPLE[name][0]
        copied = environ[f"TOTAL_RECALL_{name.upper()}_ROOT"].removesuffix(SAMPLE[name][1])
        for path in sorted(path for path in source.rglob("*") if path.is_file()):
            with open(os.path.join(copied, path.relative_to(source)), "rb") as file:
                assert file.read() == path.read_bytes()
