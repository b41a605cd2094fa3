"""Questions and answers, from what four harnesses write."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import called, ran, recorded
from total_recall.questions import pairs


def asked(*questions):
    return {"questions": list(questions)}


def question(text, labels=(), several=False, **known):
    return {
        "question": text,
        "header": "H",
        "options": [{"label": label} for label in labels],
        "multiSelect": several,
    } | known


def answers(messages):
    return [(pair["question"], pair["answers"]) for pair in pairs(messages)]


REAL = {
    "claude-questions": [
        ("Which database should we use, and why?", ["Postgres"]),
        ("Which extras do you want?", ["Cache", "Metrics"]),
        ("What is the name of the database file?", ['my "own", name.db']),
    ],
    "codex-questions": [
        ("Which unit should be the default?", ["Fahrenheit"]),
        ("How many digits, please?", ["Two", 'three digits, "exactly"']),
    ],
    "opencode-questions": [
        ("Which database engine should I use?", ["SQLite"]),
        ("Which extras do you want?", ["Backups", 'Tracing, but only "light"']),
    ],
    "opencode-open-question": [],
    "vibe-questions": [
        ("Tabs or spaces?", ["Spaces"]),
        ("Which linters?", ["ruff", "mypy"]),
        ("Project name?", ['Qux, the "third"']),
    ],
    "vibe-unified-questions": [
        ("Tea or coffee?", ["Coffee"]),
        ("Which extras?", ["Milk", "Lemon"]),
        ("Name of the cup?", ['Qux, "mine"']),
    ],
}


@pytest.mark.parametrize("session", REAL)
def test_real_sessions(session):
    """Declined, dismissed, cancelled and open questions, of which most have one, give no pair."""
    assert answers(recorded(session)) == REAL[session]


@pytest.mark.parametrize("session", REAL)
def test_the_text_of_a_result_says_the_same_where_there_is_no_structured_one(session):
    messages = recorded(session)
    for message in messages:
        message.pop("tool_result", None)

    assert answers(messages) == REAL[session]


def test_a_pair_has_the_documented_keys_in_their_order():
    first = next(pairs(recorded("opencode-questions")))

    assert list(first) == ["harness", "session_id", "id", "ts", "header", "question", "options", "answers"]
    assert first["header"] == "Engine"
    assert first["options"] == [
        {"label": "SQLite", "description": "One file, no server"},
        {"label": "Postgres", "description": "A server"},
    ]
    assert (first["id"], first["ts"]) == (4, "2026-11-30T20:58:14.498Z")


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        ("Moon", ["Moon"]),
        ("Moon, Sun", ["Moon", "Sun"]),
        ('Moon, "Wind, locally"', ["Moon", "Wind, locally"]),
        ("Wind, locally, Moon", ["Wind, locally", "Moon"]),
        ("Moon, none of these, really", ["Moon", "none of these, really"]),
        ("none, Moon", ["none, Moon"]),
        ("Moonlight", ["Moonlight"]),
        ("A, B, C", ["A", "B, C"]),
        ("", None),
        ("  ", None),
    ],
)
def test_several_choices_are_told_apart_by_the_options(answer, chosen):
    labels = ["Moon", "Sun", "Wind, locally", "A", "A, B", "B, C"]
    call = asked(question("Q?", labels, several=True))
    messages = ran("AskUserQuestion", call, tool_result={"answers": {"Q?": answer}})

    assert answers(messages) == ([("Q?", chosen)] if chosen else [])


labels = st.lists(st.text(st.sampled_from('ab ,"'), min_size=1, max_size=5), min_size=1, max_size=5, unique=True)


@given(labels, st.data())
def test_every_choice_comes_back_whatever_is_in_its_label(labels, data):
    """Joined as Claude Code joins them; commas in labels may make it ambiguous, never lossy."""
    picks = data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
    text = ", ".join(f'"{label}"' if "," in label else label for label in picks)
    messages = ran("AskUserQuestion", asked(question("Q?", labels, True)), tool_result={"answers": {"Q?": text}})

    found = answers(messages)
    if text.strip():
        forms = {form: label for label in labels for form in (label, f'"{label}"')}
        assert ", ".join(found[0][1]).replace('"', "") == text.replace('"', "")
        assert any(piece in forms.values() for piece in found[0][1])


def test_one_choice_is_never_split():
    messages = ran("AskUserQuestion", asked(question("Q?", ["A", "B"])), tool_result={"answers": {"Q?": "A, B"}})

    assert answers(messages) == [("Q?", ["A, B"])]


TAILS = {
    "claude": [
        ("The user answered: ", ". Read the answers carefully - they may request changes."),
        ("Your questions have been answered: ", ". You can now continue with the user's answers in mind."),
        ("User has answered your questions: ", ". You can now continue with the user's answers in mind."),
        ("User has answered your question(s): ", ""),
    ],
    "opencode": [("User has answered your questions: ", ". You can now continue with the user's answers in mind.")],
}


@pytest.mark.parametrize(("harness", "tail"), [(harness, tail) for harness, tails in TAILS.items() for tail in tails])
def test_every_wording_of_a_text_of_answers(harness, tail):
    """Quotes, commas and equals signs in questions and answers do not mislead."""
    first, second = 'Is "a"="b", or not?', "And the name, please?"
    given = [(first, 'it is "b", no = a'), (second, 'my "own", name')]
    text = tail[0] + ", ".join(f'"{text}"="{answer}"' for text, answer in given) + tail[1]
    tool = {"claude": "AskUserQuestion", "opencode": "question"}[harness]

    messages = ran(tool, asked(question(first), question(second)), text, harness=harness)

    assert answers(messages) == [(text, [answer]) for text, answer in given]


def test_a_note_beside_a_choice_is_an_answer_too():
    structured = {"answers": {"Q?": "A"}, "annotations": {"Q?": {"notes": "but soon"}}}

    assert answers(ran("AskUserQuestion", asked(question("Q?", ["A"])), tool_result=structured)) == [
        ("Q?", ["A", "but soon"])
    ]


def test_answers_are_keyed_by_the_questions_id_in_codex():
    call = asked(question("Q?", ["A"], id="q1"), question("R?", id="r"), question("S?", id="s"))
    output = {"answers": {"q1": {"answers": ["A", "user_note: soon"]}, "r": {"answers": []}}}

    assert answers(ran("request_user_input", call, orjson.dumps(output).decode(), harness="codex")) == [
        ("Q?", ["A", "soon"])
    ]


def test_nothing_chosen_is_no_answer():
    call = asked(question("Q?"), question("R?"))

    assert answers(ran("question", call, harness="opencode", tool_result=[[], ["x"]])) == [("R?", ["x"])]
    assert answers(ran("question", call, 'User has answered: "Q?"="Unanswered", "R?"="x"', harness="opencode")) == [
        ("R?", ["x"])
    ]


def test_free_text_of_vibe_is_not_split():
    call = asked(question("Q?", ["A", "B"], multi_select=True))
    text = "cancelled: False\nanswers: [{'question': 'Q?', 'answer': 'A, B', 'is_other': True}]"

    assert answers(ran("ask_user_question", call, text, harness="vibe")) == [("Q?", ["A, B"])]


@pytest.mark.parametrize("text", ["answers: [", "answers: [" + "[" * 5000 + "]", "answers: [f()]", "answers: [1]", "x"])
def test_answers_that_are_no_python_list_are_no_answers(text):
    assert answers(ran("ask_user_question", asked(question("Q?")), text, harness="vibe")) == []


TWO = asked(question("Tea or coffee?", ["Tea", "Coffee"], header="Drink"), question("Extras?", ["Milk", "A, B"], True))
QWEN = "User has provided the following answers:\n\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (QWEN + "**Drink**: Tea\n**H**: Milk, A, B", [("Tea or coffee?", ["Tea"]), ("Extras?", ["Milk", "A, B"])]),
        (QWEN + "**H**: oat, if any", [("Extras?", ["oat, if any"])]),
        (QWEN + "**Drink**: Both:\n\n**first** tea", [("Tea or coffee?", ["Both:\n\n**first** tea"])]),
        (QWEN + "No valid answers were provided.", []),
        ("User declined to answer the questions.", []),
        ("Cannot ask user questions in non-interactive mode without ACP support.", []),
    ],
)
def test_answers_of_qwen_code_stand_by_the_headers(text, found):
    assert answers(ran("ask_user_question", TWO, text, harness="qwen")) == found


def test_questions_without_a_header_are_numbered_by_qwen_code():
    call = asked(question("Q?", header=""), question("R?", header=""))

    text = QWEN + "**Question 1**: a\n**Question 2**: b"
    assert answers(ran("ask_user_question", call, text, harness="qwen")) == [("Q?", ["a"]), ("R?", ["b"])]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("User selected: Blue, dark", ["Blue, dark"]),
        ("User responded: none:\nof them", ["none:\nof them"]),
        ("The user is not available to respond and will review your work later.", None),
        ("User responded: ", None),
        ("", None),
    ],
)
def test_the_answer_of_copilot_to_its_one_question(text, found):
    call = {"question": "Which?", "choices": ["Red", "Blue, dark"], "allow_freeform": True}
    pair = next(iter(pairs(ran("ask_user", call, text, harness="copilot"))), None)

    assert (pair and pair["answers"]) == found
    if pair:
        assert (pair["question"], pair["header"]) == ("Which?", None)
        assert [option["label"] for option in pair["options"]] == ["Red", "Blue, dark"]


words = st.text(alphabet='ab ,"*:\n', max_size=8)


@given(st.lists(words, min_size=1, max_size=3))
def test_what_was_typed_comes_back_as_it_was(typed):
    """Unless it looks like the beginning of the next answer, which the headers here cannot."""
    call = asked(*(question(f"Q{number}?", header=f"H{number}") for number in range(len(typed))))
    text = QWEN + "\n".join(f"**H{number}**: {text}" for number, text in enumerate(typed))

    found = [(f"Q{number}?", [text]) for number, text in enumerate(typed) if text.strip()]
    assert answers(ran("ask_user_question", call, text, harness="qwen")) == found
    for text in typed:
        one = answers(ran("ask_user", {"question": "Q?"}, f"User responded: {text}", harness="copilot"))
        assert one == ([("Q?", [text])] if text.strip() else [])


def test_copied_questions_count_where_they_were_asked():
    copied = [{**message, "replayed": True} for message in recorded("opencode-questions")]

    assert list(pairs(copied)) == []
    assert len(list(pairs(copied, replayed=True))) == 2


def test_an_unanswered_question_gives_nothing():
    assert answers([called(1, "AskUserQuestion", asked(question("Q?")))]) == []
    assert (
        answers(ran("AskUserQuestion", asked(question("Q?")), "rejected", True, tool_result="User rejected tool use"))
        == []
    )


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["questions", "question", "options", "label", "answers", "annotations", "notes", "Q?", "id"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(anything, anything, st.text(max_size=20))
def test_any_shape_is_read_without_an_error(arguments, structured, content):
    shapes = (
        arguments,
        asked(arguments),
        asked(question("Q?", options=arguments, multiSelect=True)),
        {"question": "Q?", "choices": arguments},
    )
    for shape in shapes:
        for text in (content, QWEN + content, f"User selected: {content}"):
            list(pairs(ran("AskUserQuestion", shape, text, tool_result=structured)))
