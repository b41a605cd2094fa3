"""What the tools of each harness are for: one table, and the classes that follow from it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# tool name -> kind. A name that is not here is looked up by what stands after its last separator.
TOOLS: dict[str, dict[str, str]] = {
    "claude": {
        "Bash": "shell",
        "Read": "read",
        "NotebookRead": "read",
        "Write": "write",
        "Edit": "write",
        "MultiEdit": "write",
        "NotebookEdit": "write",
        "Grep": "search",
        "Glob": "search",
        "LS": "search",
        "WebFetch": "web",
        "WebSearch": "web",
        "Skill": "skill",
        "TodoWrite": "todo",
        "TaskCreate": "todo",
        "TaskUpdate": "todo",
        "AskUserQuestion": "question",
        "Agent": "agent",
        "Task": "agent",
    },
    "codex": {
        "shell": "shell",
        "shell_command": "shell",
        "exec_command": "shell",
        "local_shell": "shell",
        "container.exec": "shell",
        "apply_patch": "write",
        "read_file": "read",
        "view_image": "read",
        "list_dir": "search",
        "grep_files": "search",
        "tool_search": "search",
        "web_search": "web",
        "update_plan": "todo",
        "request_user_input": "question",
        "spawn_agent": "agent",
    },
    "opencode": {
        "bash": "shell",
        "read": "read",
        "write": "write",
        "edit": "write",
        "multiedit": "write",
        "patch": "write",
        "apply_patch": "write",
        "grep": "search",
        "glob": "search",
        "list": "search",
        "webfetch": "web",
        "websearch": "web",
        "codesearch": "web",
        "skill": "skill",
        "todowrite": "todo",
        "question": "question",
        "task": "agent",
    },
    "vibe": {
        "bash": "shell",
        "file_system.bash": "shell",
        "shell": "shell",
        "read": "read",
        "read_file": "read",
        "file_system.read_file": "read",
        "write_file": "write",
        "file_system.write_file": "write",
        "edit": "write",
        "search_replace": "write",
        "file_system.edit": "write",
        "grep": "search",
        "file_system.grep": "search",
        "web_fetch": "web",
        "web_search": "web",
        "skill": "skill",
        "todo": "todo",
        "vibe.todo": "todo",
        "ask_user_question": "question",
        "ui.ask_user_question": "question",
        "task": "agent",
        "agents.spawn": "agent",
    },
    "gemini": {
        "run_shell_command": "shell",
        "read_file": "read",
        "read_many_files": "read",
        "write_file": "write",
        "replace": "write",
        "edit": "write",
        "grep_search": "search",
        "search_file_content": "search",
        "glob": "search",
        "list_directory": "search",
        "web_fetch": "web",
        "google_web_search": "web",
        "activate_skill": "skill",
        "write_todos": "todo",
        "ask_user": "question",
        "invoke_agent": "agent",
        "delegate_to_agent": "agent",
        "codebase_investigator": "agent",
    },
    "qwen": {
        "run_shell_command": "shell",
        "read_file": "read",
        "read_many_files": "read",
        "write_file": "write",
        "edit": "write",
        "replace": "write",
        "grep_search": "search",
        "search_file_content": "search",
        "glob": "search",
        "list_directory": "search",
        "web_fetch": "web",
        "web_search": "web",
        "skill": "skill",
        "todo_write": "todo",
        "ask_user_question": "question",
        "agent": "agent",
        "task": "agent",
    },
    "pi": {
        "bash": "shell",
        "read": "read",
        "write": "write",
        "edit": "write",
        "grep": "search",
        "find": "search",
        "ls": "search",
        "subagent": "agent",
    },
    "copilot": {
        "bash": "shell",
        "powershell": "shell",
        "view": "read",
        "read_file": "read",
        "create": "write",
        "edit": "write",
        "str_replace_editor": "write",
        "apply_patch": "write",
        "grep": "search",
        "rg": "search",
        "glob": "search",
        "web_fetch": "web",
        "web_search": "web",
        "skill": "skill",
        "update_todo": "todo",
        "ask_user": "question",
        "task": "agent",
    },
}

# Tools of other servers (mcp__files__read, browser.fetch) are known by the word after the last separator.
_BY_SUFFIX = {
    "read": "read",
    "read_file": "read",
    "fetch": "web",
    "webfetch": "web",
    "scrape": "web",
    "crawl": "web",
    "extract": "web",
    "search": "web",
    "skill": "skill",
}
_SEPARATOR = re.compile(r"[./-]|__|_(?=[^_]*$)")

# The names of our own tools, as an agent sees them: what they printed is no source for a search.
OWN_TOOLS = frozenset(
    (
        "list_sessions",
        "profile_session",
        "extract_messages",
        "extract_user_messages",
        "extract_by_type",
        "extract_qa_pairs",
        "todo_history",
        "she_said_he_said_action",
        "index_sessions",
        "do_android_dream_of_electric_sheep",
        "message_context",
        "summary_cache",
        "summarise_from",
        "cache_delete_latest",
        "prior_period_summary",
        "line_histogram",
    )
)
_OWN_TOOL = re.compile(
    rf"(?:^|[._/-])(?:{'|'.join(sorted(OWN_TOOLS))})$|(?:^|[._/-])total[-_]recall[._/-]+harness$",
)
_OWN_COMMAND = re.compile(r"tr-[a-z]|total-recall")


@lru_cache(maxsize=256)
def kind_of(harness: str, name: str) -> str | None:
    """`shell`, `read`, `write`, `search`, `web`, `skill`, `todo`, `question`, `agent`, or None."""
    kind = TOOLS.get(harness, {}).get(name)
    if kind is None and (parts := _SEPARATOR.split(name))[1:]:
        kind = _BY_SUFFIX.get(parts[-1].lower())
    return kind


def commands_of(harness: str, name: str, arguments: Any) -> list[str]:
    """The shell texts that a call ran, as the model wrote them; empty unless the tool is a shell."""
    if kind_of(harness, name) != "shell" or not isinstance(arguments, dict):
        return []
    for key in ("command", "cmd"):
        given = arguments.get(key)
        if isinstance(given, str):
            return [given]
        if isinstance(given, list) and all(isinstance(word, str) for word in given):
            if len(given) >= 3 and given[1] in ("-c", "-lc"):
                return [given[2]]
            from ..shell import quoted

            return [quoted(given)]
    return []


def is_own(harness: str, name: str, arguments: Any) -> bool:
    """Whether a call is one of total-recall's own tools, or a shell command that runs one."""
    if _is_own_tool(name):
        return True
    for text in commands_of(harness, name, arguments):
        if _OWN_COMMAND.search(text):
            from ..shell import commands

            for words in commands(text):
                program = words[0].rsplit("/", 1)[-1]
                if program == "total-recall" or (program.startswith("tr-") and program[3:].replace("-", "").isalpha()):
                    return True
    return False


@lru_cache(maxsize=256)
def _is_own_tool(name: str) -> bool:
    return _OWN_TOOL.search(name) is not None


def is_shell(harness: str, name: str) -> bool:
    """Whether a tool runs commands: of all others the name alone tells whether a call is our own."""
    return kind_of(harness, name) == "shell"


def call_class(harness: str, name: str, arguments: Any) -> str:
    """The class of a record that holds this call: `tool-input`, or `self`."""
    return "self" if is_own(harness, name, arguments) else "tool-input"


def result_class(harness: str, name: str | None, own: bool = False) -> str:
    """The class of a tool's result; `own` when its call was of class `self`."""
    if own:
        return "self"
    kind = kind_of(harness, name) if name else None
    return {"read": "file-read", "web": "web-fetch", "skill": "skill"}.get(kind or "", "tool-output")
