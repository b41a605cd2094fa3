"""What the person was asked through a question tool, and answered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .calls import Call, answered, value_of
from .record import Record
from .stores.tools import kind_of

_NOTE = "user_note: "  # Codex puts it before what was typed beside a choice
_REPR_LENGTH = 1_000_000
_ANSWERS = re.compile(r"^answers: (\[.*\])\s*$", re.MULTILINE | re.DOTALL)
# How a text of answers ends: Claude Code and OpenCode add a sentence to the model after the last one.
_AFTER_ANSWERS = re.compile(
    r'"(?:\. (?:You can now continue|Read the answers carefully)[^"]*| user notes: .*|\.?)$', re.DOTALL
)

_HEADERS = "User has provided the following answers:\n"  # Qwen Code's beginning
_ONE_ANSWER = re.compile(r"User (?:selected|responded): (.*)", re.DOTALL)  # GitHub Copilot CLI's


def pairs(messages: Iterable[Record], *, replayed: bool = False) -> Iterator[Record]:
    """One record for each question that was answered, in the order of asking.

    What was declined, dismissed or is still open gives none. A question copied from an earlier session counts there,
    unless `replayed`.
    """
    for call in answered(messages, lambda harness, name: kind_of(harness, name) == "question"):
        if call.succeeded and (replayed or not call.record.get("replayed")):
            yield from _pairs(call)


def _pairs(call: Call) -> Iterator[Record]:
    arguments = value_of(call.arguments)
    questions = _questions(arguments) if isinstance(arguments, dict) else []
    record = call.record
    for question, answers in zip(questions, _answers(call, questions), strict=True):
        if answers:
            yield {
                "harness": record["harness"],
                "session_id": record["session_id"],
                "id": record["id"],
                "ts": record["ts"],
                "header": _text(question.get("header")),
                "question": _text(question.get("question")) or "",
                "options": [_option(option) for option in _options(question)],
                "answers": answers,
            }


def _questions(arguments: Record) -> list[Record]:
    """What a call asks: several questions, or on GitHub Copilot CLI the one that the arguments are."""
    if isinstance(arguments.get("question"), str):
        return [arguments]
    return [item for item in _list(arguments.get("questions")) if isinstance(item, dict)]


def _options(question: Record) -> list[Any]:
    return _list(question.get("options")) or _list(question.get("choices"))


def _option(option: Any) -> Record:
    if isinstance(option, dict):
        return {"label": _text(option.get("label")) or "", "description": _text(option.get("description"))}
    return {"label": str(option), "description": None}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _list(value: Any) -> list[Any]:
    value = value_of(value)
    return value if isinstance(value, list) else []


# -- the answers, in the order of the questions ----------------------------------------------------------------


def _answers(call: Call, questions: list[Record]) -> list[list[str]]:
    """The answers to each question: from the tool's structured result, else from its text; [] where there is none."""
    result = call.result or {}
    content = result.get("content") or ""
    given = value_of(result.get("tool_result"))
    if given is None or isinstance(given, str):
        given = value_of(content)
    if isinstance(given, str):
        given = _python(given)
    answers = given.get("answers") if isinstance(given, dict) else given
    if isinstance(given, dict) and given.get("cancelled") is True:
        return [[] for _ in questions]
    if isinstance(answers, dict):
        return [_of_mapping(question, answers, _mapping(given, "annotations")) for question in questions]
    if isinstance(answers, list):
        return [_of_list(number, question, answers) for number, question in enumerate(questions)]
    return _of_text(content, questions)


def _mapping(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _of_mapping(question: Record, answers: dict[str, Any], annotations: dict[str, Any]) -> list[str]:
    """Codex keys answers by the question's id, Claude Code by its text; the latter keeps notes beside them."""
    id, text = _text(question.get("id")), _text(question.get("question"))
    given = answers[id] if id in answers else answers.get(text or "")
    if isinstance(given, dict):
        given = given.get("answers")
    found = _chosen(given, question) if isinstance(given, str) else _texts(given)
    return found + _texts(_mapping(annotations, text or "").get("notes"))


def _of_list(number: int, question: Record, answers: list[Any]) -> list[str]:
    """OpenCode gives a list for each question in their order, Vibe an object for each that names its question."""
    if not any(isinstance(answer, dict) for answer in answers):
        return _texts(answers[number]) if number < len(answers) else []
    named = [a for a in answers if isinstance(a, dict) and a.get("question") == question.get("question")]
    for answer in named[:1]:
        given = answer.get("answer")
        if answer.get("isOther") or answer.get("is_other") or not isinstance(given, str):
            return _texts(given)
        return _chosen(given, question)
    return []


def _texts(given: Any) -> list[str]:
    """The answers that say something; a note typed beside a choice is an answer of its own."""
    texts = given if isinstance(given, list) else [given]
    return [text.removeprefix(_NOTE) for text in texts if isinstance(text, str) and text.removeprefix(_NOTE).strip()]


def _python(text: str) -> Any:
    """The value of answers that were written as Python writes a list (Vibe before 2.26); None for another text."""
    match = _ANSWERS.search(text)
    if match is None or len(match[1]) > _REPR_LENGTH:
        return None
    try:
        return ast.literal_eval(match[1])
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _of_text(text: str, questions: list[Record]) -> list[list[str]]:
    """The answers out of a text for the model, in one of the shapes that harnesses have."""
    if match := _ONE_ANSWER.match(text):
        return [_texts(match[1])] if len(questions) == 1 else [[] for _ in questions]
    pieces = (_by_header if text.startswith(_HEADERS) else _by_question)(text, questions)
    found = [_chosen(piece, question) for piece, question in zip(pieces, questions, strict=True)]
    return [[] if given == ["Unanswered"] else given for given in found]


def _by_header(text: str, questions: list[Record]) -> list[str]:
    """Qwen Code: a line `**header**: answer` for each question that was answered."""
    headers = [_text(question.get("header")) or f"Question {number}" for number, question in enumerate(questions, 1)]
    return [piece for piece, _ in _between(text, [f"\n**{header}**: " for header in headers])]


def _by_question(text: str, questions: list[Record]) -> list[str]:
    """Claude Code and OpenCode: `... "question"="answer", "question"="answer". ...`."""
    pieces = _between(text, [f'"{question.get("question")}"="' for question in questions])
    bare = (piece if last else piece.removesuffix(", ") for piece, last in pieces)
    return [piece[: end.start()] if (end := _AFTER_ANSWERS.search(piece)) else piece for piece in bare]


def _between(text: str, anchors: list[str]) -> Iterator[tuple[str, bool]]:
    """What follows each anchor up to the next one, and whether none comes after it; "" for an anchor that is missing.

    Wordings change, and answers may hold quotes, commas and line ends: what is held on to are the exact texts of the
    questions.
    """
    starts = []
    at = 0
    for anchor in anchors:
        found = text.find(anchor, at)
        at = found + len(anchor) if found >= 0 else at
        starts.append((found, at) if found >= 0 else None)
    for number, start in enumerate(starts, 1):
        end = next((later[0] for later in starts[number:] if later), None)
        yield (text[start[1] : end] if start else "", end is None)


def _chosen(text: str, question: Record) -> list[str]:
    """The choices in an answer; several are joined by ", ", a label with a comma may stand in double quotes.

    What is no option is what the person typed, commas and all.
    """
    if not text.strip():
        return []
    several = any(question.get(key) is True for key in ("multiSelect", "multi_select", "multiple"))
    if not several:
        return [text]
    labels = {label for option in _options(question) if (label := _option(option)["label"])}
    written = {form: label for label in labels for form in (label, f'"{label}"')}
    forms = sorted(written, key=lambda form: (-len(form), form))
    best: tuple[int, list[str]] = (0, [])
    reached = {0}
    waiting: list[tuple[int, list[str]]] = [(0, [])]
    while waiting:
        at, found = waiting.pop()
        if at > best[0]:
            best = (at, found)
        if at > len(text):
            break
        for form in reversed(forms):  # the longest is tried first: it is put on the stack last
            end = at + len(form)
            if (
                text.startswith(form, at)
                and (end == len(text) or text.startswith(", ", end))
                and end + 2 not in reached
            ):
                reached.add(end + 2)
                waiting.append((end + 2, [*found, written[form]]))
    at, found = best
    return [*found, text[at:]] if at < len(text) else found
