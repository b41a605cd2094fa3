"""The table of tools: what a model is told, what is refused and how, and the command line of a call."""

import json
import re
import subprocess
import sys
import tomllib

import jsonschema
import pytest
from mcp_client import RAW_MINIMUM, ROOT
from total_recall.record import CLASSES
from total_recall.stores.registry import HARNESSES
from total_recall.stores.tools import OWN_TOOLS

from mcp_wrapper.fields import MOST_CHARACTERS, MOST_INTEGER, Refused
from mcp_wrapper.tools import TABLE, tools

ALL = tools()
FIELDS = [(tool.name, field) for tool in ALL.values() for field in tool.fields]
WINDOW_TOOLS = {
    "list_sessions": 240,
    "extract_qa_pairs": 48,
    "she_said_he_said_action": 48,
    "index_sessions": 24,
    "do_android_dream_of_electric_sheep": 48,
}
REPORT_TOOLS = [*WINDOW_TOOLS, "todo_history", "message_context", "summarise_from", "prior_period_summary"]
EXTRACTIONS = ["extract_messages", "extract_user_messages", "extract_by_type"]


def words(name, **arguments):
    """The command line of a call."""
    tool = ALL[name]
    return [tool.command, *tool.call({**RAW_MINIMUM.get(name, {}), **arguments}).words]


def refusal(name, **arguments):
    """What a refused call is told, as the server words it."""
    with pytest.raises(Refused) as refused:
        ALL[name].call({**RAW_MINIMUM.get(name, {}), **arguments})
    return f"{name}: {refused.value}"


def valid(field):
    """A value that the field takes and that is not its default."""
    schema = field.schema()
    if field.choices:
        return [field.choices[0]] if field.type == "array" else field.choices[-1]
    plain = {"string": "part", "array": ["part"], "integer": max(1, schema.get("minimum", 1)), "boolean": True}
    return plain[field.type]


# -- what a model is told ----------------------------------------------------------------------------------------------


def test_there_are_seventeen_tools_in_a_fixed_order():
    assert len(ALL) == 17
    assert list(ALL) == [tool.name for tool in TABLE] == list(tools())


def test_every_tool_but_harness_is_known_as_our_own_noise():
    assert set(ALL) - {"harness"} == OWN_TOOLS


@pytest.mark.parametrize("tool", ALL.values(), ids=ALL)
def test_a_schema_is_flat_and_closed_and_says_each_default(tool):
    schema = tool.schema()

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    for name, field in schema["properties"].items():
        assert field["description"], name
        assert field["type"] in ("string", "integer", "boolean", "array")
        assert not {"$ref", "anyOf", "oneOf", "properties"} & set(field)
        if field["type"] == "integer":
            assert "minimum" in field, name
        if field["type"] == "array":
            assert field["items"]["type"] == "string"


@pytest.mark.parametrize("tool", ALL.values(), ids=ALL)
def test_descriptions_and_schemas_cost_a_model_little(tool):
    assert 0 < len(tool.about) < 1024
    assert len(json.dumps(tool.schema())) < 5000


def test_all_tools_together_cost_a_model_less_than_20_kilobytes():
    assert sum(len(tool.about) + len(json.dumps(tool.schema())) for tool in ALL.values()) < 20_000


def test_no_text_names_an_option_of_the_command_line():
    """A model can pass fields, not options."""
    for tool in ALL.values():
        for text in (tool.about, *(field.about + field.advice for field in tool.fields.values())):
            assert "--" not in text


def test_the_two_tools_that_call_a_model_are_the_only_open_world():
    assert {tool.name for tool in TABLE if tool.open_world} == {"summarise_from", "prior_period_summary"}


def test_only_tools_that_change_derived_state_are_not_read_only():
    changing = {tool.name for tool in TABLE if not tool.read_only}

    assert changing == {"index_sessions", "summarise_from", "cache_delete_latest"}
    assert {tool.name for tool in TABLE if tool.destructive} == {"cache_delete_latest"}
    assert {tool.name for tool in TABLE if not tool.idempotent} == {"summarise_from", "cache_delete_latest"}


def test_a_server_for_all_stores_takes_the_harness_wherever_sessions_are_read():
    assert {name for name in ALL if "harness" not in ALL[name].fields} == {"harness", "line_histogram"}
    assert ALL["list_sessions"].schema()["properties"]["harness"]["enum"] == list(HARNESSES)
    assert "--harness=vibe" in words("list_sessions", harness="vibe")


def test_a_server_for_one_harness_takes_no_harness_and_passes_its_own():
    for name, tool in tools(["vibe"]).items():
        assert "harness" not in tool.fields
        passed = [word for word in tool.call(RAW_MINIMUM.get(name, {})).words if word.startswith("--harness")]
        assert passed == ([] if name == "line_histogram" else ["--harness=vibe"])


def test_a_server_for_two_harnesses_offers_these_two():
    found = tools(["vibe", "codex"])["list_sessions"]

    assert found.schema()["properties"]["harness"]["enum"] == ["vibe", "codex"]
    with pytest.raises(Refused, match=r"vibe\|codex"):
        found.call({"harness": "claude"})
    assert found.call({}).words[-5:-3] == ["--harness=vibe", "--harness=codex"]
    assert [word for word in found.call({"harness": "codex"}).words if "harness" in word] == ["--harness=codex"]


def test_the_table_can_be_read_without_the_protocol():
    code = (
        "import sys, mcp_wrapper.tools; print([m for m in ('mcp', 'pydantic', 'anyio', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = ['lib', '.']; {code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[]\n"


# -- what is refused, and how ------------------------------------------------------------------------------------------

WRONG = {
    "integer": ["3", 2.0, 1e2, True, False, -1, [1], {"a": 1}, MOST_INTEGER + 1, float("nan")],
    "boolean": ["true", 1, 0, 0.0, [], {}, "no"],
    "string": [5, 0, True, False, 1.5, ["x"], {"x": 1}, "a\0b", "half \ud83d pair", "x" * (MOST_CHARACTERS + 1)],
    "array": ["user", 5, 0, True, {"x": 1}, [5], [None], [["user"]], ["a\0b"], ["\udc00"], ["x" * 40_000]],
}


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_every_wrong_value_is_refused_in_the_house_form(name, field):
    about = ALL[name].fields[field]
    for wrong in WRONG[about.type]:
        if about.type == "boolean" and wrong == []:
            continue  # an empty list means "unset", as null does
        if field == "hours_back" and wrong == MOST_INTEGER + 1:
            continue  # "since the beginning", tested below

        text = refusal(name, **{field: wrong})

        assert text.startswith(f"{name}: `{field}` is out of range - "), (wrong, text)
        assert "\n" not in text
        for wording in ("valid", "expected", "type=", "deserial", "pydantic", "greater", "Error"):
            assert wording not in text


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_the_schema_agrees_with_the_check(name, field):
    """A value that the schema refuses is refused, one that it takes is taken."""
    about = ALL[name].fields[field]
    validator = jsonschema.Draft202012Validator(about.schema())
    for value in [*WRONG[about.type], valid(about)]:
        if value in (2.0, 1e2) or (isinstance(value, str) and ("\0" in value or "\ud83d" in value)):
            continue  # JSON Schema calls 2.0 an integer, and knows nothing of arguments of a process
        if isinstance(value, list) and any(isinstance(item, str) and item in ("a\0b", "\udc00") for item in value):
            continue
        try:
            about.checked(field, value)
            taken = True
        except Refused:
            taken = False
        if not about.zero_is_unset and value in ([], 0) and about.type != "integer":
            continue
        assert taken == validator.is_valid(value), value


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_field_is_refused_by_name_with_the_accepted_ones(name):
    text = refusal(name, hour_back=3)

    assert text.startswith(f"{name}: unrecognised field `hour_back` - {name} accepts: ")
    assert text.endswith("|".join(sorted(ALL[name].fields)) or "no fields")


def test_an_unknown_field_cannot_break_the_line_it_is_named_in():
    text = refusal("harness", **{"a\nb`\x1b[31m\ud800" + "x" * 500: 1})

    assert "\n" not in text
    assert "\x1b" not in text
    assert len(text) < 200
    text.encode()


@pytest.mark.parametrize(
    ("name", "field", "bad"),
    [
        *((name, "limit", 1001) for name in [*EXTRACTIONS, "do_android_dream_of_electric_sheep"]),
        *((name, "max_bytes", 8_388_609) for name in [*EXTRACTIONS, *REPORT_TOOLS]),
        *((name, "max_record_bytes", 8_388_609) for name in EXTRACTIONS),
        *((name, "offset", -1) for name in EXTRACTIONS),
        *((name, "hours_back", -1) for name in [*WINDOW_TOOLS, "prior_period_summary"]),
        *(("line_histogram", field, 0) for field in ("line", "start", "end")),
        ("summarise_from", "from_id", 0),
        ("message_context", "id", -1),
        ("message_context", "before", -1),
        ("do_android_dream_of_electric_sheep", "query", " \n\t"),
        ("do_android_dream_of_electric_sheep", "type", ["self"]),
        ("do_android_dream_of_electric_sheep", "role", "human"),
        ("do_android_dream_of_electric_sheep", "group", "hits"),
        ("she_said_he_said_action", "words", []),
        ("she_said_he_said_action", "words", ["", "  "]),
        ("she_said_he_said_action", "words", ["a,b"]),
        ("she_said_he_said_action", "words", ["x" * 20_000, "y" * 20_000]),
        ("extract_by_type", "types", ["bogus"]),
        ("line_histogram", "mode", "histogramm"),
        ("line_histogram", "file_path", "-"),
        ("list_sessions", "harness", "cursor"),
        ("list_sessions", "session_id", "-"),
    ],
)
def test_the_bounds_of_each_field_hold(name, field, bad):
    assert refusal(name, **{field: bad}).startswith(f"{name}: `{field}` is out of range - ")


@pytest.mark.parametrize("name", RAW_MINIMUM)
@pytest.mark.parametrize("unset", [None, ""])
def test_a_required_field_that_is_missing_is_refused_like_a_wrong_one(name, unset):
    [field] = RAW_MINIMUM[name]
    assert ALL[name].fields[field].required
    assert refusal(name, **{field: unset}).startswith(f"{name}: `{field}` is out of range - ")
    with pytest.raises(Refused, match=f"`{field}` is out of range"):
        ALL[name].call({})


@pytest.mark.parametrize("name", WINDOW_TOOLS)
def test_a_refused_window_names_every_way_to_choose_sessions(name):
    text = refusal(name, hours_back=-5)

    for form in ("session_id", "directory", "hours_back: 1 or more", "all: true on purpose"):
        assert form in text


@pytest.mark.parametrize("name", WINDOW_TOOLS)
def test_the_whole_store_and_a_window_contradict_each_other(name):
    text = refusal(name, all=True, hours_back=5)

    assert text == f"{name}: all: true is the whole store; hours_back is a window - pass one, not both"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"end": 5}, "`end` needs `start`"),
        ({"start": 6, "end": 5, "mode": "extract"}, "past"),
        ({"line": 1, "start": 1, "end": 5, "mode": "extract"}, "pass one of"),
        ({"mode": "extract"}, "mode: extract needs"),
        ({"line": 1}, "mode: extract"),
        ({"start": 1, "end": 2}, "mode: extract"),
        ({"mode": "Extract"}, "histogram or extract"),
    ],
)
def test_line_histogram_never_answers_a_histogram_to_something_else(arguments, said):
    assert said in refusal("line_histogram", **arguments)


# -- unset, zero and the defaults --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("unset", [None, ""])
def test_what_a_host_leaves_out_or_passes_as_null_or_empty_is_the_default(name, unset):
    optional = [field for field, about in ALL[name].fields.items() if not about.required]

    assert words(name, **dict.fromkeys(optional, unset)) == words(name)


@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_passing_the_default_is_passing_nothing(name, field):
    default = ALL[name].fields[field].default
    if default is not None and field != "hours_back":
        assert words(name, **{field: default}) == words(name)


@pytest.mark.parametrize("field", ["hours_back", "limit", "max_bytes", "max_record_bytes"])
def test_zero_is_unset_where_the_contract_says_so(field):
    for name, tool in ALL.items():
        if field in tool.fields:
            assert tool.call({**RAW_MINIMUM.get(name, {}), field: 0}) == tool.call(RAW_MINIMUM.get(name, {}))


def test_zero_is_zero_elsewhere():
    assert "--offset=0" in words("extract_messages", offset=0)
    assert not any(word.startswith("--offset") for word in words("extract_messages", offset=None))
    assert words("message_context", id=0, before=0, after=0)[1:3] == ["-B0", "-A0"]
    assert words("message_context", id=0)[-1] == ":0"


@pytest.mark.parametrize(("name", "hours"), [*WINDOW_TOOLS.items(), ("prior_period_summary", 24)])
def test_the_window_is_the_tools_own_unless_asked_otherwise(name, hours):
    assert f"--hours={hours}" in words(name)
    assert "--hours=7" in words(name, hours_back=7)
    assert ALL[name].schema()["properties"]["hours_back"]["default"] == hours


@pytest.mark.parametrize("hours", [10**6, 10**9, 2**63, 10**30, 10**4000])
def test_an_enormous_window_is_since_the_beginning(hours):
    assert "--hours=0" in words("list_sessions", hours_back=hours)


@pytest.mark.parametrize("name", WINDOW_TOOLS)
def test_the_whole_store_is_asked_for_on_purpose_only(name):
    assert "--hours=0" in words(name, all=True)
    assert "--hours=0" in words(name, all=True, hours_back=0)
    assert "--hours=0" in words(name, all=True, hours_back=None)
    assert "--hours=0" not in words(name, all=False)
    assert "--hours=0" not in words(name, hours_back=0)


@pytest.mark.parametrize("name", WINDOW_TOOLS)
def test_a_session_chooses_itself_whatever_the_window(name):
    found = words(name, session_id="ses_1", hours_back=3, directory="/src")

    assert not any(word.startswith(("--hours", "--directory")) for word in found)
    assert "ses_1" in (word.removeprefix("--session=") for word in found)


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (("harness", {}), "tr-stores --envelope --"),
        (("list_sessions", {}), "tr-list --hours=240 --max-bytes=16384 --limit=200 --envelope --"),
        (
            ("list_sessions", {"directory": "/src", "max_bytes": 9}),
            "tr-list --hours=240 --directory=/src --max-bytes=9 --limit=200 --envelope --",
        ),
        (("profile_session", {}), "tr-profile --max-bytes=16384 --envelope --"),
        (("profile_session", {"cache": False}), "tr-profile --no-cache --max-bytes=16384 --envelope --"),
        (("extract_messages", {}), "tr-extract --limit=100 --max-bytes=8388608 --envelope --"),
        (
            ("extract_messages", {"session_id": "s", "full": True, "limit": 7, "offset": 3, "max_record_bytes": 50}),
            "tr-extract --full --limit=7 --offset=3 --max-bytes=8388608 --max-record-bytes=50 --envelope -- s",
        ),
        (("extract_user_messages", {}), "tr-user --limit=100 --max-bytes=8388608 --envelope --"),
        (("extract_by_type", {}), "tr-raw --type=all --limit=100 --max-bytes=8388608 --header --"),
        (
            ("extract_by_type", {"types": ["user", "tool", "user"], "include_injected": True}),
            "tr-raw --type=user --type=tool --include-injected --limit=100 --max-bytes=8388608 --header --",
        ),
        (("extract_qa_pairs", {"session_id": "s"}), "tr-qa --report -- s"),
        (("todo_history", {"full": False}), "tr-todo --no-full --report --"),
        (
            ("she_said_he_said_action", {"words": ["a", "", "b c"]}),
            "tr-said --words=a,b c --hours=48 --report --",
        ),
        (("index_sessions", {}), "tr-index --hours=24 --report --"),
        (
            ("do_android_dream_of_electric_sheep", {"query": "--flag", "session_id": "s", "type": ["human-text"]}),
            "tr-search --session=s --class=human-text --group=hit --limit=20 --report -- --flag",
        ),
        (
            ("do_android_dream_of_electric_sheep", {"query": "q", "role": "tool", "group": "session", "all": True}),
            "tr-search --hours=0 --role=tool --group=session --limit=20 --report -- q",
        ),
        (("message_context", {"session_id": "s", "id": 12}), "tr-context -B3 -A3 --header -- s:12"),
        (("summary_cache", {"session_id": "s"}), "tr-cache -- s"),
        (("summarise_from", {"from_id": 5}), "tr-summarise --from-id=5 --"),
        (("cache_delete_latest", {}), "tr-cache-drop --"),
        (("prior_period_summary", {"session_id": "s"}), "tr-recap --hours=24 -- s"),
        (("line_histogram", {"file_path": "a=b c"}), "tr-histogram -- a=b c"),
        (("line_histogram", {"file_path": "/x", "mode": "extract", "line": 4}), "tr-histogram --line=4 -- /x"),
        (
            ("line_histogram", {"file_path": "/x", "mode": "extract", "start": 2, "end": 9}),
            "tr-histogram --start=2 --end=9 -- /x",
        ),
    ],
)
def test_each_call_has_its_command_line(call, line):
    name, arguments = call
    tool = ALL[name]

    assert " ".join([tool.command, *tool.call(arguments).words]) == line


HOSTILE = ["--help", "-", "--limit=9", "-q", "a b", "a\nb", "$(id)", "'; id", "日本語", "../..", "=", "%n", "*", "😀"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_value_can_become_an_option_or_another_argument(text):
    operand = words("do_android_dream_of_electric_sheep", query=text, directory=text)

    assert operand[-2:] == ["--", text]
    assert f"--directory={text}" in operand
    if text != "-":
        assert words("extract_messages", session_id=text)[-2:] == ["--", text]
        assert words("message_context", session_id=text)[-2:] == ["--", f"{text}:1"]


def test_a_search_for_an_agent_never_offers_its_own_noise():
    enum = ALL["do_android_dream_of_electric_sheep"].schema()["properties"]["type"]["items"]["enum"]

    assert enum == [name for name in CLASSES if name != "self"]


def test_a_commands_sentence_is_told_in_the_tools_own_terms():
    said = "even one record exceeds --max-bytes (9) - raise --max-bytes, or set --max-record-bytes; --other stays"

    assert ALL["extract_messages"].reworded(said) == (
        "even one record exceeds `max_bytes` (9) - raise `max_bytes`, or set `max_record_bytes`; --other stays"
    )


# -- the man page ------------------------------------------------------------------------------------------------------


def page():
    return (ROOT / "man" / "man1" / "tr-mcp.1").read_text()


def test_the_page_has_the_table():
    rows = re.findall(r"^\.It Cm (\S+) Ta Nm (\S+)$", page(), re.MULTILINE)

    assert rows == [(tool.name, tool.command) for tool in TABLE]


def test_the_page_registers_the_server_under_its_name_in_every_harness():
    opencode, vibe, claude, codex = re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", page(), re.MULTILINE | re.DOTALL)

    assert json.loads(opencode)["mcp"]["total-recall"]["command"] == ["tr-mcp"]
    [server] = tomllib.loads(vibe)["mcp_servers"]
    assert (server["name"], server["transport"], server["command"]) == ("total-recall", "stdio", "tr-mcp")
    assert json.loads(claude)["mcpServers"]["total-recall"]["command"] == "tr-mcp"
    assert tomllib.loads(codex)["mcp_servers"]["total-recall"]["command"] == "tr-mcp"


def test_the_time_limits_that_the_page_sets_are_those_of_the_slowest_tool():
    slowest = max(tool.seconds for tool in TABLE)

    assert set(re.findall(r"tool_timeout_sec = (\d+)", page())) == {str(slowest)}
    assert f'"timeout": {slowest}000' in page()
