"""Who composed a text in the user role of Claude Code: a person, another agent, or the harness.

Newer versions say it outright (`origin`, `promptSource`, `isMeta`, ...); what older ones inject stands in a fixed
envelope that begins the record. A mark with a value that is not known here counts as the harness's.
"""

from __future__ import annotations

import re
from typing import Any

from ..record import Record

# `promptSource` of what a person typed, or handed to the program that drives the session.
_PEOPLE = frozenset(("typed", "queued", "suggestion_accepted", "sdk"))
_TURNS = frozenset((None, "human", "sdk"))

_COMMAND = re.compile(r"\s*<(?:command-(?:name|message)|bash-(?:input|stdout|stderr)|local-command-(?:stdout|stderr))>")
_CLOSED = re.compile(
    r"</(?:command-(?:name|message|args)|bash-(?:input|stdout|stderr)|local-command-(?:stdout|stderr))>\s*\Z"
)
_ENVELOPES = ("<task-notification>", "<system-reminder>", "<local-command-caveat>")
_INTERRUPTS = frozenset(("[Request interrupted by user]", "[Request interrupted by user for tool use]"))
_PASTED = re.compile(r'</?pasted_content id="[^"<>]*">\n?')

_INJECTED = ("injected", "injected-text")
_RUN = ("injected", "command")


def author(record: Record, text: str, delegated: bool) -> tuple[str, str | None]:
    """The authorship of a text in the user role, and its class where that does not follow from the authorship.

    `record` holds the marks: a `user` record, or the `attachment` of a queued prompt. With `delegated`, prompts are
    those of the agent that spawned this one.
    """
    prompt = ("delegated" if delegated else "human"), None
    if _set(record, "isMeta") or _set(record, "isVisibleInTranscriptOnly") or record.get("rowSource") == "harness":
        return _INJECTED
    begins = _COMMAND.match(text)
    # Commands that expand to a prompt carry a person's marks too; a person who quotes one writes on after it.
    if begins and _CLOSED.search(text, max(0, len(text) - 64)):
        return _RUN
    origin = record.get("origin")
    if origin is not None:
        known = isinstance(origin, dict) and origin.get("kind") == "human"
        return prompt if known else _INJECTED
    source = record.get("promptSource")
    if source is not None:
        return prompt if isinstance(source, str) and source in _PEOPLE else _INJECTED
    if begins:
        return _RUN
    if text.startswith(_ENVELOPES) or text.strip() in _INTERRUPTS or not _turn_of_people(record):
        return _INJECTED
    return prompt


def _set(record: Record, mark: str) -> bool:
    return record.get(mark) not in (None, False)


def _turn_of_people(record: Record) -> bool:
    turn = record.get("turnOrigin")
    return (turn is None or isinstance(turn, str)) and turn in _TURNS


def shown(prompt: str) -> str:
    """A prompt without the tags that the terminal puts round a pasted text."""
    return _PASTED.sub("", prompt) if "<pasted_content" in prompt else prompt


def origin_of(entrypoint: Any) -> str | None:
    """`cli`, `sdk` or `ide` for the program that started the session; another's name as it is."""
    if not isinstance(entrypoint, str) or not entrypoint:
        return None
    if entrypoint.startswith("sdk"):
        return "sdk"
    return "ide" if "vscode" in entrypoint or "jetbrains" in entrypoint else entrypoint
