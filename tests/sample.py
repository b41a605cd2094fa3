"""The sample: one real store of each harness, and an environment in which only it can be reached."""

import os
import shutil
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "tests" / "fixtures"

# harness -> the fixture that the sample has of it, and where in it the store's root is
SAMPLE = {
    "opencode": ("opencode/main-1.18.33", "opencode"),
    "vibe": ("vibe/legacy-2.18.4", "logs/session"),
    "claude": ("claude", ".claude/projects"),
    "codex": ("codex", ".codex/sessions"),
    "gemini": ("gemini", ".gemini/tmp"),
    "qwen": ("qwen", ".qwen/projects"),
    "pi": ("pi", ".pi/agent/sessions"),
    "copilot": ("copilot", ".copilot/session-state"),
}


def store_environment(folder, harnesses=SAMPLE):
    """The variables that point at stores copied into `folder`."""
    return {f"TOTAL_RECALL_{name.upper()}_ROOT": str(folder / name / SAMPLE[name][1]) for name in harnesses}


def isolated(home):
    """An environment in which no live store can be reached."""
    kept = {key: value for key, value in os.environ.items() if key in ("LANG", "TMPDIR", "PYTHONWARNINGS", "CI")}
    return kept | {
        "PATH": os.pathsep.join([str(ROOT / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TOTAL_RECALL_SANDBOX": "1",
    }


def copy_sample(folder):
    """Copy the sample stores into `folder`, one folder a harness."""
    for name, (fixture, _) in SAMPLE.items():
        shutil.copytree(FIXTURES / fixture, folder / name, symlinks=True)
    return folder


TOOLS = sorted(path.name for path in (ROOT / "bin").iterdir())


def module_of(tool):
    """The module in total_recall.commands that an executable runs."""
    return "dispatch" if tool == "total-recall" else tool.removeprefix("tr-").replace("-", "_")


def command(tool):
    """The click command of an executable."""
    return import_module(f"total_recall.commands.{module_of(tool)}").main.command
