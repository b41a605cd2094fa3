"""What a Codex response item or UI event says, as text: nothing here knows of files or of the order of lines.

Every field may hold any JSON value; what is not of the expected type says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import orjson

from ..record import Record, attachment, base64_size

# What the harness itself puts into the user role, known by its beginning where no mark says who wrote a message.
ENVELOPES = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<hook_prompt",
    "<user_shell_command>",
    "<skill>",
)
_CLASS_OF_ENVELOPE = {"<user_shell_command>": "command", "<skill>": "skill"}

CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "web_search_call"))
OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output"))
REMOTE_COMPACTIONS = frozenset(("compaction", "compaction_summary"))
ITEMS = CALLS | OUTPUTS | REMOTE_COMPACTIONS | {"message", "agent_message", "reasoning"}

_IMAGE_OPEN = re.compile(r"<image(?: [^\n]*)?>\s*")
_DATA_URL = re.compile(r"data:([\w.+/-]*)[^,]{0,200},")
# The head that the shell and patch tools put before their output.
_EXIT_CODE = re.compile(r"(?:Exit code: |(?:[A-Z][^\n]*\n){0,5}Process exited with code )(-?\d+)\n")
_FAILURE = re.compile(
    r"apply_patch verification failed|unsupported (?:custom tool )?call|failed to parse function arguments"
    r"|(?:Wall time[^\n]*\n)?aborted by user|(?:exec command|patch) rejected by user|exec_command failed"
    r"|Script failed\n"
)
_TASK = re.compile(r"Message Type: [^\n]*\n(?:[^\n]+\n)*?Payload:\n")
_NESTED = 200  # the JSON encoder of what we print gives up at 254 levels


def string(value: Any) -> str | None:
    """The value if it is a text that says something."""
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> Record:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def joined(texts: list[str]) -> str:
    """Texts one below the other."""
    lines = [text if text.endswith("\n") else text + "\n" for text in texts[:-1]]
    return "".join(lines + texts[-1:])


def text_of(content: Any) -> str:
    """The text of a message's or an output's `content`: a string or a list of parts; images become markers.

    An attached image stands between two parts that wrap it, `<image name=...>` and `</image>`: they go with it.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = []
    for place, part in enumerate(content):
        part = mapping(part)
        if part.get("type") == "input_image":
            texts.append(_image(part.get("image_url")))
        elif (text := string(part.get("text"))) and not _wraps_image(content, place, text):
            texts.append(text)
    return joined(texts)


def _image(url: Any) -> str:
    url = url if isinstance(url, str) else mapping(url).get("url")
    found = _DATA_URL.match(url) if isinstance(url, str) else None
    if found is None:
        return attachment("image", None, None)
    return attachment("image", found[1] or None, base64_size(url[found.end() :]))


def _wraps_image(content: list[Any], place: int, text: str) -> bool:
    if text == "</image>":
        return place > 0 and mapping(content[place - 1]).get("type") == "input_image"
    if not text.startswith("<image") or place + 1 == len(content):
        return False
    return mapping(content[place + 1]).get("type") == "input_image" and bool(_IMAGE_OPEN.fullmatch(text))


def words_of(content: Any) -> str:
    """The texts of a message without its images."""
    if not isinstance(content, list):
        return text_of(content)
    return joined(
        [
            text
            for place, part in enumerate(content)
            if (text := string(mapping(part).get("text"))) and not _wraps_image(content, place, text)
        ]
    )


def squeezed(content: Any) -> str:
    """The texts of a message without images and white space: what a UI prompt event and its item have in common."""
    return "".join(words_of(content).split())


def prompt_event(payload: Record) -> str | None:
    """The text, without white space, of a UI event that shows a typed prompt; None for any other event."""
    if payload.get("type") == "user_message":
        return squeezed(payload.get("message"))
    item = mapping(payload.get("item"))
    if payload.get("type") == "item_completed" and item.get("type") == "UserMessage":
        return squeezed(item.get("content"))
    return None


def kinds(payload: Record) -> list[Any] | None:
    """What each part of a user message is (`user.text`, `environments.environment_context`, ...), where it is said."""
    content = payload.get("content")
    found = mapping(payload.get("internal_chat_message_metadata_passthrough")).get("content_item_kinds")
    if isinstance(found, list) and isinstance(content, list) and len(found) == len(content) > 0:
        return found
    return None


def runs(content: list[Any], kinds: list[Any]) -> Iterator[tuple[str | None, list[Any]]]:
    """The parts of a user message by who wrote them: (None, parts) for a person's, (class, parts) for injected ones."""
    for kind, pairs in groupby(zip(kinds, content, strict=True), lambda pair: _class_of_kind(pair[0])):
        yield kind, [part for _, part in pairs]


def _class_of_kind(kind: Any) -> str | None:
    if not isinstance(kind, str):
        return "injected-text"
    if kind.startswith("user."):
        return None
    if kind == "shell.user_command":
        return "command"
    return "skill" if kind.startswith(("skill.", "skills.")) else "injected-text"


def class_of_envelope(text: str) -> str | None:
    """The class of an injected text that is known by its beginning; None when no envelope is there."""
    for envelope in ENVELOPES:
        if text.startswith(envelope):
            return _CLASS_OF_ENVELOPE.get(envelope, "injected-text")
    return None


def thinking_of(payload: Record) -> str | None:
    """The readable part of a reasoning item: its summaries, and the reasoning itself where it is not encrypted."""
    texts = []
    for part in (payload.get("summary"), payload.get("content")):
        if isinstance(part, list):
            texts += [text for piece in part if (text := string(mapping(piece).get("text")))]
    return "\n\n".join(texts) or None


_TOOL_OF_CALL = {"web_search_call": "web_search", "local_shell_call": "local_shell"}


def called(payload: Record) -> tuple[str | None, str]:
    """(call id, tool name) of an item that calls a tool."""
    call_id = string(payload.get("call_id")) or string(payload.get("id"))
    if name := _TOOL_OF_CALL.get(payload["type"]):
        return call_id, name
    name = string(payload.get("name")) or ""
    server = string(payload.get("namespace")) or ""
    return call_id, f"{server}__{name}" if server.startswith("mcp__") else name


def arguments_of(payload: Record) -> Any:
    """The arguments of an item that calls a tool."""
    kind = payload["type"]
    if kind in _TOOL_OF_CALL:
        return printable(payload.get("action"))
    return printable(payload.get("input")) if kind == "custom_tool_call" else _parsed(payload.get("arguments"))


def _parsed(arguments: Any) -> Any:
    if isinstance(arguments, str):
        try:
            value = orjson.loads(arguments)
        except ValueError:
            return arguments
        nested = arguments.count("[") + arguments.count("{") > _NESTED
        return printable(value, arguments) if nested else value
    return printable(arguments)


def printable(value: Any, otherwise: str = "") -> Any:
    """The value, or `otherwise` when it is nested too deeply to be printed again as JSON."""
    if isinstance(value, (dict, list)):
        try:
            orjson.dumps(value)
        except TypeError:
            return otherwise
    return value


def output_of(output: Any) -> tuple[str, bool]:
    """(text, whether it failed) of a tool's output: a text, a list of parts, or an object with `content`.

    No flag says that a call failed: it shows in the exit code, in the head of the text or in a JSON wrapper's
    metadata, or in what the harness says instead of an output.
    """
    failed = False
    if isinstance(output, dict):
        failed = output.get("success") is False
        output = output.get("content", output.get("output"))
    text = text_of(output)
    if text.startswith('{"output":'):
        try:
            wrapper = orjson.loads(text)
        except ValueError:
            wrapper = {}
        if isinstance(wrapper.get("output"), str) and wrapper.keys() <= {"output", "metadata"}:
            code = mapping(wrapper.get("metadata")).get("exit_code")
            return wrapper["output"], failed or (isinstance(code, int) and code != 0)
    if code := _EXIT_CODE.match(text):
        return text, failed or int(code[1]) != 0
    return text, failed or _FAILURE.match(text) is not None


def structured(text: str) -> Any:
    """The JSON object that an output consists of, or None."""
    if text.startswith("{"):
        try:
            return printable(orjson.loads(text))
        except ValueError:
            pass
    return None


def nested_call(item: Record) -> tuple[str, Record, str, bool] | None:
    """(tool name, arguments, output, whether it failed) of a UI item for what a script of code mode ran."""
    failed = item.get("status") in ("failed", "declined")
    if item.get("type") == "CommandExecution":
        command = item.get("command")
        known: Record = {"command": printable(command)}
        if isinstance(command, list) and len(command) == 3 and command[1] in ("-c", "-lc"):
            known = {"cmd": printable(command[2])}
        if folder := string(item.get("cwd")):
            known["workdir"] = folder.removeprefix("file://")
        code = item.get("exit_code")
        failed = failed or (isinstance(code, int) and code != 0)
        return "exec_command", known, string(item.get("aggregated_output")) or "", failed
    if item.get("type") == "FileChange":
        output = joined([text for key in ("stdout", "stderr") if (text := string(item.get(key)))])
        return "apply_patch", {"changes": printable(item.get("changes"))}, output, failed
    return None


def agent_text(payload: Record, *, task: bool) -> str:
    """The text of a message from one agent to another; of a `task` only what follows the message's head.

    Its body may be encrypted: then nothing of it can be read (a cipher text has no blanks).
    """
    content = payload.get("content")
    texts = []
    for part in content if isinstance(content, list) else []:
        part = mapping(part)
        text = string(part.get("text")) or string(part.get("encrypted_content")) or ""
        if part.get("type") != "encrypted_content" or " " in text:
            texts.append(text)
    text = joined(texts)
    head = _TASK.match(text) if task else None
    return text[head.end() :] if head and text[head.end() :].strip() else text


def about_thread(meta: Record) -> Record:
    """What a session_meta says about its thread, in few words; only what is known.

    `id`; `child` (true for a sub-agent), `agent` (its path), `parent`; `forked` (another thread's id); `base`
    ([rollout id, first ordinal and first byte that are not inherited]: what comes before this rollout stands in that
    one); `start` (a sub-agent's first ordinal that is no copy).
    """
    source = mapping(mapping(meta.get("source")).get("subagent"))
    spawn = mapping(source.get("thread_spawn"))
    base = mapping(meta.get("history_base"))
    child = meta.get("thread_source") == "subagent" or "subagent" in mapping(meta.get("source"))
    known = {
        "id": string(meta.get("id")),
        "child": child or None,
        "agent": string(meta.get("agent_path")) or string(spawn.get("agent_path")),
        "parent": string(meta.get("parent_thread_id")) or string(spawn.get("parent_thread_id")),
        "forked": string(meta.get("forked_from_id")),
        "start": _ordinal(meta.get("subagent_history_start_ordinal")),
    }
    if rollout := string(base.get("thread_id")):
        known["base"] = [rollout, _ordinal(base.get("end_ordinal_exclusive")), _ordinal(base.get("end_byte_offset"))]
    return {key: value for key, value in known.items() if value is not None}


def _ordinal(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_ORIGINS = {"cli": "cli", "exec": "sdk", "mcp": "sdk", "vscode": "ide"}


def origin_of(meta: Record) -> str | None:
    """`cli`, `sdk` or `ide`: which kind of program started the thread."""
    source = meta.get("source")
    return _ORIGINS.get(source) if isinstance(source, str) else None
