"""Records for people: aligned, within the width, and without anything that a terminal obeys."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from total_recall.record import message, session_row
from total_recall.render import Page, rendered
from total_recall.report import answered, hit_line, quoted, said
from total_recall.terminal import clean, fitted, width_of


def shown(*records, markdown=False, width=100):
    page = Page(markdown, width, {}, False)
    lines = rendered((orjson.dumps(record) + b"\n" for record in records), page)
    return [line.decode() for line in lines]


def row(**known):
    known = {"title": "A title", "directory": "/home/dev/alpha", "end_time": "2026-11-30T21:15:05.000Z"} | known
    return session_row("claude", "11111111-2222-4333-8444-555555555555", "/x.jsonl", **known)


@pytest.mark.parametrize("width", [40, 80, 110, 200])
def test_a_row_fits_the_width(width):
    lines = shown(row(title="日本語のとても長い題名" * 20, directory="/very/long" * 30), row(), width=width)

    assert lines[0].startswith("UPDATED")
    assert all(width_of(line) <= max(width, 70) for line in lines)


def test_columns_are_aligned_whatever_the_script():
    lines = shown(row(title="日本語"), row(title="🦔 hedgehog"), row(title="e\u0301te\u0301"), row(title="plain"))

    assert len({width_of(line.split("/home")[0]) for line in lines[1:]}) == 1


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07after",
        "\x1b]52;c;Y2xpcA==\x1b\\after",
        "a\rb",
        "a\x08b",
        "\x9b2J",
        "\u202eevil\u202c",
        "\x1bP+q\x1b\\x",
        "bell\x07",
        "\x1b",
        "\x1b]unterminated",
    ],
)
def test_nothing_that_a_terminal_obeys_is_printed(hostile):
    record = message("claude", "s", 1, "user", None, hostile, authorship="human", thinking=hostile)
    printed = "\n".join(shown(row(title=hostile, directory=hostile), record, {"unknown": hostile}))

    assert not set(printed) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x202C]))


def test_an_unterminated_escape_swallows_nothing():
    assert clean("\x1b]0;keep this") == "0;keep this"


@given(st.text(max_size=60), st.integers(1, 30))
def test_a_fitted_text_fills_its_width_exactly(text, width):
    assert width_of(fitted(clean(text).replace("\n", " ").replace("\t", " "), width)) == width


def test_a_line_that_is_no_record_of_ours_is_itself():
    page = Page(False, 80, {}, False)

    assert list(rendered([b"plain text\n", b'{"a":1}\n', b"{broken\n", b"user,0,{}\n"], page)) == [
        b"plain text",
        b'{"a":1}',
        b"{broken",
        b"user,0,{}",
    ]


KEYS = [*row(), *message("h", "s", 1, "user", None, authorship="human")]
VALUES = st.none() | st.integers(-(2**40), 2**40) | st.text() | st.lists(st.booleans())


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_our_keys_with_any_values_never_fail(record):
    assert shown(record)


def test_markdown_escapes_the_cells_of_a_table():
    lines = shown(row(title="a|b\nc"), markdown=True)

    assert "a\\|b c" in lines[2]


def test_a_transcript_shows_calls_results_and_thinking():
    call = {"id": "c", "name": "Bash", "arguments": {"command": "make\ntest"}}
    result = "\n".join(f"line {n}" for n in range(50))
    text = "\n".join(
        shown(
            message("claude", "s", 1, "assistant", None, "", authorship="model", thinking="hm", tool_calls=[call]),
            message("claude", "s", 2, "tool", None, result, authorship="tool", tool_name="Bash", is_error=True),
        )
    )

    assert "→ Bash: make test" in text
    assert "· hm" in text
    assert "Bash · - · 2 · is_error" in text
    assert "[30 more lines: tr-context -C 0 s:2]" in text


def test_an_envelope_is_its_records_and_its_notice():
    lines = shown({"window_count": 3, "held_back": 2, "notice": "TRUNCATED: 1 of 3", "sessions": [row()]})

    assert lines[-1] == "(TRUNCATED: 1 of 3)"
    assert "A title" in lines[-2]


def hit(who, text, session="s1"):
    return {"harness": "h", "session_id": session, "id": 1, "ts": None, "who": who, "text": text, "matched": ["x"]}


def test_the_dialogue_report_has_a_section_a_session_and_a_part_a_side():
    lines = list(said([hit("she", "b"), hit("he", "a"), hit("they", "bash: c"), hit("he", "z", "s2")], {"s1": "Title"}))

    assert lines == [
        "=== Title (s1)",
        "--- HE SAID:",
        "a",
        "--- SHE SAID:",
        "b",
        "--- THEY DID (tool calls):",
        "bash: c",
        "",
        "=== - (s2)",
        "--- HE SAID:",
        "z",
        "",
    ]
    assert shown(hit("she", "b"), hit("he", "a"))[1:3] == ["--- HE SAID:", "a"]


@pytest.mark.parametrize("line", ["=== forged (s9)", "--- [EOF-TRUNCATED] ---", "# header", "ANSWERS:", "  - choice"])
def test_recorded_text_cannot_pose_as_a_line_of_the_report(line):
    assert quoted(f"before\n{line}") == f"before\n\\{line}"


def test_a_hit_is_one_line_of_six_fields():
    found = {"session_id": "s", "score": 1.5, "ts": None, "role": "user", "id": 7, "class": "reasoning"}

    line = hit_line(found | {"snippet": "a | b\nc \\| d"})

    assert line == "s | 1.50 | - | USER (thinking) | 7 | a \\| b\\nc \\\\\\| d"


def test_questions_are_printed_with_options_and_answers():
    pair = {
        "harness": "claude",
        "session_id": "s",
        "ts": "2026-11-30T21:15:05.000Z",
        "header": "DB",
        "question": "Which?",
        "options": [{"label": "A", "description": "first"}, {"label": "B", "description": None}],
        "answers": ["A"],
    }

    assert list(answered([pair])) == [
        "=== s (claude)",
        "--- QA 1 (2026-11-30T21:15:05.000Z)",
        "HEADER: DB",
        "QUESTION: Which?",
        "OPTIONS:",
        "  - A — first",
        "  - B",
        "ANSWERS:",
        "  - A",
        "",
    ]
