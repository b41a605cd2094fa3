"""Imports point one way: from output back to the records, never forward."""

import ast
import re

import pytest
from sample import ROOT
from total_recall.stores.registry import HARNESSES

# Each may import those before it on the list, and of its own layer.
LAYERS = [
    ["record", "times", "notices", "regular", "shell_syntax", "shell", "jtd", "redact", "terminal"],
    ["stores"],
    ["calls", "patterns", "todos", "questions", "dialogue", "git", "profile", "histogram"],
    ["selection", "shadow", "locking", "catalogue", "profile_cache", "indexed", "ledger", "derived"],
    ["output"],
    ["bounds", "follow"],
    ["analysis", "query", "passages", "ranking", "indexing", "reading", "index"],
    ["lexicon", "snippets", "sources", "search", "scan", "traces"],
    ["scope", "coverage", "freshness", "finding", "context", "prompts", "llm", "summarise", "recap"],
    ["command"],
    ["extraction", "report", "render", "summarising"],
    ["commands"],
]
PACKAGE = ROOT / "lib" / "total_recall"
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def imported(path):
    """The modules of ours that a module imports, by the first name below total_recall."""
    inside = path.relative_to(PACKAGE).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = inside[: len(inside) - node.level + 1]
        whole = [*base, *(node.module or "").split(".")] if node.module else list(base)
        yield from {whole[0]} if whole else {alias.name for alias in node.names}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_nothing_that_comes_after_it(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for name in imported(path):
        if name != "__version__":
            assert RANK[name] <= RANK[own], f"{own} imports {name}"


def test_only_output_writes_to_standard_output_and_only_command_to_standard_error():
    for path in modules():
        text = path.read_text()
        name = path.relative_to(PACKAGE).name
        assert not re.search(r"(?<![\w.])print\(|click\.echo|sys\.std(out|err)\.write", text), name
        assert ("os.write(1" in text) == (name == "output.py"), name
        assert ("os.write(2" in text) == (name == "command.py"), name


def test_an_adapter_knows_nothing_of_commands_and_a_command_nothing_of_a_harness():
    for path in (PACKAGE / "commands").glob("*.py"):
        for name in HARNESSES:
            assert f"stores.{name}" not in path.read_text(), path.name
