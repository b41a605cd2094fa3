"""The table of the MCP server: each tool a row. The MCP SDK is not imported here, so that it can be read without it."""

from __future__ import annotations

from collections.abc import Sequence

from total_recall.record import CLASSES, RAW_TYPES, ROLES
from total_recall.stores.registry import HARNESSES

from .fields import MOST_CHARACTERS, MOST_INTEGER, Field, out_of_range
from .tool import MOST_BYTES, REPORT_BYTES, Tool, Values

MOST_RECORDS = 1000
LISTED_ROWS = 200


def tools(bound: Sequence[str] = ()) -> dict[str, Tool]:
    """The tools by name, in a fixed order, of a server for these harnesses; none named is all.

    Where there is a choice, every tool that reads sessions takes the harness as a field.
    """
    harnesses = tuple(bound) or HARNESSES
    advice = f"pass one of {'|'.join(harnesses)}, or omit it for all"
    field = Field("string", "Only this harness. Empty = all.", advice, "--harness", choices=harnesses)
    found = {}
    for tool in TABLE:
        fields = tool.fields
        if len(harnesses) > 1 and tool.takes_harness and tool.name != "harness":
            fields = {**fields, "harness": field}
        found[tool.name] = tool._replace(fields=fields, bound=tuple(bound))
    return found


def _join_terms(values: Values) -> None:
    """tr-said takes its terms in one option, with commas between them."""
    terms = [term for term in values["words"] if term.strip()]
    joined = ",".join(terms)
    if not terms or joined.count(",") >= len(terms) or len(joined) > MOST_CHARACTERS:
        raise out_of_range("words", _TERMS_ADVICE)
    values["words"] = joined


def _choose_lines(values: Values) -> None:
    """A selector needs mode: extract, and extract needs one selector."""
    line, start, end = values["line"], values["start"], values["end"]
    if end and not start:
        raise out_of_range("end", "`end` needs `start`: pass both, or line")
    if end and start > end:
        raise out_of_range("start", f"start {start} is past end {end}: pass start up to end")
    if line and start:
        raise out_of_range("line", "pass one of line, or start and end, not both")
    if values["mode"] == "extract" and not (line or start):
        raise out_of_range("mode", "mode: extract needs line, or start and end")
    if values["mode"] != "extract" and (line or start):
        raise out_of_range("line" if line else "start", "a selector needs mode: extract")


# -- fields that several tools share ----------------------------------------------------------------------------------

_TERMS_ADVICE = "pass one or more terms as an array of strings, each without a comma"


def _flag(about: str, option: str | None, default: bool = False) -> Field:
    return Field("boolean", about, f"pass true or false, or omit it for {str(default).lower()}", option, default)


def _amount(about: str, advice: str, option: str | None, default: int | None, most: int | None = None) -> Field:
    """A number of which 0 means the default, as an omitted one does."""
    return Field("integer", about, advice, option, default, 0, most, zero_is_unset=True)


def _number(about: str, advice: str, option: str | None, least: int, default: int | None = None) -> Field:
    """A number of which 0, where it is allowed, means 0."""
    return Field("integer", about, advice, option, default, least, MOST_INTEGER)


def _max_bytes(default: int = REPORT_BYTES, option: str | None = None) -> Field:
    advice = f"pass 1 to {MOST_BYTES}, or omit it for {default}"
    return _amount("The most UTF-8 bytes to return; 0 = the default.", advice, option, default, MOST_BYTES)


def _limit(default: int) -> Field:
    advice = f"pass 1 to {MOST_RECORDS}, or omit it for {default}"
    return _amount("The most records to return; 0 = the default.", advice, "--limit", default, MOST_RECORDS)


def _hours_back(default: int, advice: str) -> Field:
    about = f"Hours to look back: 1 or more; 0 = the default window. Default: {default}."
    return _amount(about, f"{advice}; omitted or 0 = the last {default} hours", "--hours", default)


_SESSION = {
    "session_id": Field(
        "string",
        "Session ID (partial match). Empty = most recent.",
        "pass a session id or a part of one, or omit it for the most recent session",
    )
}
_BOUNDS = {
    "limit": _limit(100),
    "offset": _number(
        "First record, from 0; page with next_offset. Omitted = the most recent records.",
        "pass 0 or more, or omit it for the most recent records",
        "--offset",
        0,
    ),
    "max_bytes": _max_bytes(MOST_BYTES, "--max-bytes"),
    "max_record_bytes": _amount(
        "Cut longer texts inside a record; 0 = never.",
        f"pass 1 to {MOST_BYTES}, or omit it to cut nothing",
        "--max-record-bytes",
        None,
        MOST_BYTES,
    ),
}


def _window(hours: int, session_option: str | None = None) -> dict[str, Field]:
    advice = "pass session_id, or directory, or hours_back: 1 or more, or all: true on purpose"
    about = "Session ID (partial match). Empty = the window (hours_back / directory / all)."
    return {
        "session_id": Field("string", about, advice, session_option),
        "hours_back": _hours_back(hours, advice),
        "directory": Field("string", "Only sessions whose directory contains this.", advice, "--directory"),
        "all": _flag("true = the whole store, on purpose; not with hours_back.", None),
    }


TABLE = (
    Tool(
        "harness",
        "tr-stores",
        "Which session stores this server reads: the harness it is bound to, or all, each with its root, how many "
        "sessions it holds and what is wrong with it. The tool for `why do I see nothing?`.",
        {},
        options=("--envelope",),
        shape="document",
    ),
    Tool(
        "list_sessions",
        "tr-list",
        "Recent sessions, most recently updated first, a row each: id, title, directory, times, counts of prompts, "
        "answers and tool calls, parent and child sessions, read_error where one is damaged. As many rows as "
        "max_bytes holds; window_count and held_back say what is left out. Every other tool takes these ids.",
        {**_window(240), "max_bytes": _max_bytes(option="--max-bytes")},
        options=(f"--limit={LISTED_ROWS}", "--envelope"),
        shape="document",
    ),
    Tool(
        "profile_session",
        "tr-profile",
        "One session at a glance: counts by role, first and last time, tools, files and tokens used, and its turning "
        "points (prompts, compactions, todo changes, commits) with their record ids.",
        {**_SESSION, "cache": _flag("false = count anew and leave the cached profile alone.", "--no-cache", True)},
        options=(f"--max-bytes={REPORT_BYTES}", "--envelope"),
        shape="document",
    ),
    Tool(
        "extract_messages",
        "tr-extract",
        "The messages of one session as JSON records: what came after its last compaction, or all of it with full: "
        "true. The most recent 100 unless limit and offset say otherwise; bounds.next_offset goes on. For the few "
        "messages round a search hit message_context is cheaper.",
        {**_SESSION, "full": _flag("true = the whole session.", "--full"), **_BOUNDS},
        options=("--envelope",),
        shape="document",
    ),
    Tool(
        "extract_user_messages",
        "tr-user",
        "What the person typed in one session, from its beginning, without anything the harness injected: the cheapest "
        "way to learn what was asked for. Paged like extract_messages.",
        {**_SESSION, **_BOUNDS},
        options=("--envelope",),
        shape="document",
    ),
    Tool(
        "extract_by_type",
        "tr-raw",
        "The stored records of one session as `type,timestamp,json` lines, for large, damaged or poisoned sessions: "
        "what the other tools cannot parse is still here. A `# {header}` comes first, `# TRUNCATED: ...` last when "
        "there is more.",
        {
            **_SESSION,
            "types": Field(
                "array",
                "Which records.",
                f"pass any of {'|'.join((*RAW_TYPES, 'all'))} as an array, or omit it for all",
                "--type",
                ["all"],
                choices=(*RAW_TYPES, "all"),
            ),
            "include_injected": _flag("true = also what the harness injected.", "--include-injected"),
            **_BOUNDS,
        },
        options=("--header",),
        shape="bounded",
    ),
    Tool(
        "extract_qa_pairs",
        "tr-qa",
        "The questions an agent put through its question tool, the options it offered and what the person answered: "
        "decisions already taken. Cancelled questions are left out.",
        {**_window(48), "max_bytes": _max_bytes()},
        options=("--report",),
        may_miss=True,
    ),
    Tool(
        "todo_history",
        "tr-todo",
        "The todo list of one session as a stream of changes with times (added, a new status, updated, removed): what "
        "was planned, done and dropped.",
        {
            **_SESSION,
            "full": _flag("false = only since the last compaction.", "--no-full", True),
            "max_bytes": _max_bytes(),
        },
        options=("--report",),
    ),
    Tool(
        "she_said_he_said_action",
        "tr-said",
        "Who said it and who did it: what the person said, what the assistant said and which tool calls mention any "
        "of the words, session by session, most recent first. Case-insensitive substrings, complete and without an "
        "index; outputs of tools are not searched (do_android_dream_of_electric_sheep does that).",
        {
            "words": Field("array", "Terms, any of which matches.", _TERMS_ADVICE, "--words", required=True),
            **_window(48),
            "max_bytes": _max_bytes(),
        },
        options=("--report",),
        arrange=_join_terms,
        may_miss=True,
    ),
    Tool(
        "index_sessions",
        "tr-index",
        "Brings the search index up to date for the sessions in scope and says what was indexed. A search does this "
        "by itself; use it ahead of many searches, or with all: true for the whole store. Unchanged sessions cost "
        "nothing.",
        {**_window(24), "max_bytes": _max_bytes()},
        options=("--report",),
        seconds=600,
        read_only=False,
    ),
    Tool(
        "do_android_dream_of_electric_sheep",
        "tr-search",
        "Search past sessions: prompts, answers, thinking, tool calls and their outputs, best first. Words are OR-ed "
        'and ranked; AND OR NOT + - "phrases" (groups) work. Finds the error message, the decision, the command of '
        "earlier work. The second line says how many sessions were searched and what could not be. A hit is "
        "`session_id | score | time | ROLE | id | snippet`: give session_id and id to message_context.",
        {
            "query": Field(
                "string",
                "Words to look for.",
                'pass words that are not blank, like ECONNREFUSED or "exact phrase"',
                required=True,
            ),
            **_window(48, "--session"),
            "role": Field(
                "string",
                "Only records of this role.",
                f"pass one of {'|'.join(ROLES)}, or omit it for all",
                "--role",
                choices=ROLES,
            ),
            "type": Field(
                "array",
                "Only text of these classes.",
                f"pass any of {'|'.join(CLASSES[:-1])} as an array, or omit it for all",
                "--class",
                choices=CLASSES[:-1],
            ),
            "group": Field(
                "string",
                "One result a hit, or one a session.",
                "pass hit or session, or omit it for hit",
                "--group",
                "hit",
                choices=("hit", "session"),
            ),
            "limit": _limit(20),
            "max_bytes": _max_bytes(),
        },
        options=("--report",),
        operands=lambda values: [values["query"]],
        may_miss=True,
    ),
    Tool(
        "message_context",
        "tr-context",
        "The messages round one record, whole, one JSON record a line: give the session and the record id of a search "
        "hit, an event or a todo. before: 0 with after: 0 is that record alone.",
        {
            **_SESSION,
            "id": _number(
                "Record id; 0 = the session's beginning.",
                "pass the record id of a hit; 0 is the session's beginning",
                None,
                0,
            )._replace(required=True),
            "before": _number("Messages before it.", "pass 0 or more, or omit it for 3", "-B", 0, 3),
            "after": _number("Messages after it.", "pass 0 or more, or omit it for 3", "-A", 0, 3),
            "max_bytes": _max_bytes(),
        },
        options=("--header",),
        operands=lambda values: [f"{values['session_id'] or ''}:{values['id']}"],
    ),
    Tool(
        "summary_cache",
        "tr-cache",
        "Which parts of a session are summarised already, and how many messages and tokens the rest (tail) has, which "
        "is what summarise_from would cost. Calls no model, changes nothing.",
        _SESSION,
        shape="document",
    ),
    Tool(
        "summarise_from",
        "tr-summarise",
        "Has a language model summarise a session from from_id to its end, keeps the new part and returns all parts. "
        "from_id is the first record not yet summarised: tail.from_id of summary_cache. Sends redacted session text "
        "to the configured provider.",
        {
            **_SESSION,
            "from_id": _number(
                "First record to summarise, 1 or more.",
                "pass tail.from_id of summary_cache, which is 1 or more",
                "--from-id",
                1,
            )._replace(required=True),
            "max_bytes": _max_bytes(),
        },
        seconds=600,
        read_only=False,
        idempotent=False,
        open_world=True,
    ),
    Tool(
        "cache_delete_latest",
        "tr-cache-drop",
        "Deletes the newest part of a session's summary, so that summarise_from can make it anew, and returns what "
        "summary_cache returns. Refused when there is no part.",
        _SESSION,
        shape="document",
        read_only=False,
        destructive=True,
        idempotent=False,
    ),
    Tool(
        "prior_period_summary",
        "tr-recap",
        "Where things stand, for use after a compaction or a restart: recent sessions, plan files, the todo log and "
        "commits since the last compaction, then a model's account of the current state and the user's goals, then "
        "where to check it. Sends redacted session text to the configured provider. A lead, not a fact: verify work "
        "in flight.",
        {
            **_SESSION,
            "hours_back": _hours_back(24, "pass 1 or more for the table of recent sessions"),
            "max_bytes": _max_bytes(),
        },
        seconds=600,
        open_world=True,
    ),
    Tool(
        "line_histogram",
        "tr-histogram",
        "A big text file by the size and place of its lines, or some of its lines: for the full_report of a truncated "
        "answer, and for any log. mode: extract returns line, or start to end.",
        {
            "file_path": Field("string", "The file.", "pass the path of a file", required=True),
            "mode": Field(
                "string",
                "Profile the file, or return lines of it.",
                "pass histogram or extract, or omit it for histogram",
                None,
                "histogram",
                choices=("histogram", "extract"),
            ),
            "line": _number("The line to return, from 1.", "pass 1 or more, with mode: extract", "--line", 1),
            "start": _number("First line, from 1.", "pass 1 or more, with end and mode: extract", "--start", 1),
            "end": _number("Last line.", "pass 1 or more, with start and mode: extract", "--end", 1),
        },
        operands=lambda values: [values["file_path"]],
        arrange=_choose_lines,
        takes_harness=False,
    ),
)
