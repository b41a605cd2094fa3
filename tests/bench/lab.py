"""Where the benchmark runs: the corpora, the executables of both sides, an environment that reads nothing else."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.bench.measure import Process, Samples, interleaved, output

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.join(os.path.dirname(os.path.dirname(HERE)), "bin")
BARE = os.path.join(HERE, "bare.py")
STORES = (".claude/projects", ".codex/sessions", ".local/share/opencode/opencode.db", ".vibe/logs/session")
# Packages that a command may import; what one does import, the bare Python that it is compared with imports too.
_PACKAGES = ("click", "orjson", "tantivy", "zstandard", "re2", "httpx", "mcp")
_COMPARED = {
    "jq": ("jq", "--version"),
    "rg": ("rg", "--version"),
    "sqlite3": ("sqlite3", "--version"),
    "find": ("find", "--version"),
    "fast-resume": ("fast-resume", "--version"),
    "agentsview": ("agentsview", "--version"),
    "opencode": ("opencode", "--version"),
}


class Missing(Exception):
    """An executable is not installed, or not written yet."""


class Lab:
    """`folder` holds corpora, shadow folders and caches; `size` is that of the stores that most rows read."""

    def __init__(self, folder: str, size: str, runs: int) -> None:
        self.folder = folder
        self.size = size
        self.runs = runs

    # -- what is read ------------------------------------------------------------------------------------------

    def home(self, name: str) -> str:
        """The folder of a corpus, made if it is not there."""
        folder = os.path.join(self.folder, name)
        if not os.path.exists(os.path.join(folder, "corpus.json")):
            shutil.rmtree(folder, ignore_errors=True)
            print(f"bench: making the stores {name} ...", file=sys.stderr)
            subprocess.run([sys.executable, os.path.join(HERE, "corpus.py"), name, folder], check=True, stdout=2)
        return folder

    def about(self, name: str) -> dict[str, Any]:
        """What the corpus says of itself."""
        with open(os.path.join(self.home(name), "corpus.json"), "rb") as file:
            found: dict[str, Any] = json.load(file)
        return found

    def megabytes(self, name: str) -> float:
        """The size of the stores of a corpus."""
        return sum(store["bytes"] for store in self.about(name)["stores"].values()) / 1e6

    def giant(self, harness: str, name: str = "giant") -> tuple[str, str]:
        """(session id, path of the file with its records) of the one session of a harness in a corpus of giants."""
        with open(os.path.join(self.home(name), "sessions.jsonl"), "rb") as file:
            ids = {row["harness"]: row["session_id"] for row in map(json.loads, file)}
        store = dict(zip(("claude", "codex", "opencode", "vibe"), STORES, strict=True))[harness]
        path = os.path.join(self.home(name), store)
        if os.path.isdir(path):
            found = (os.path.join(place, each) for place, _, names in os.walk(path) for each in names)
            path = next(each for each in found if each.endswith(".jsonl"))
        return ids[harness], path

    # -- what is run -------------------------------------------------------------------------------------------

    def environment(self, name: str, shadow: str = "") -> dict[str, str]:
        """Only the corpus can be reached; derived state and caches lie in folders of their own."""
        return {
            "PATH": os.pathsep.join([BIN, os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),
            "HOME": self.home(name),
            "TOTAL_RECALL_SHADOW_ROOT": self.shadow(name, shadow),
            "XDG_CACHE_HOME": os.path.join(self.folder, "cache", name),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }

    def shadow(self, name: str, shadow: str = "") -> str:
        """The shadow root of a corpus."""
        return os.path.join(self.folder, "shadow", shadow or name)

    def forgetting(self, name: str, shadow: str = "") -> Callable[[], None]:
        """Removes the shadow folder."""
        return lambda: shutil.rmtree(self.shadow(name, shadow), ignore_errors=True)

    def ours(self, name: str, tool: str, *words: str, shadow: str = "", **known: Any) -> Process:
        """One of our executables on a corpus. Raises Missing."""
        path = os.path.join(BIN, tool)
        if not os.path.exists(path):
            raise Missing(f"{tool} is not there yet")
        return Process([sys.executable, path, *words], self.environment(name, shadow), **known)

    def theirs(self, name: str, tool: str, *words: str, **known: Any) -> Process:
        """Another program on a corpus. Raises Missing."""
        path = shutil.which(tool)
        if path is None:
            raise Missing(f"{tool} is not installed")
        return Process([path, *words], self.environment(name), **known)

    def bare(self, name: str, *words: str, **known: Any) -> Process:
        """The bare Python that does the same work."""
        return Process([sys.executable, BARE, *words], self.environment(name), **known)

    def importing(self, process: Process) -> Process:
        """A Python that does nothing but import the packages that a command imports."""
        told = subprocess.run(
            [process.words[0], "-X", "importtime", *process.words[1:]],
            env=process.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        ).stderr
        names = set(re.findall(r"\|\s+(\w+)$", told, re.MULTILINE))
        used = [name for name in _PACKAGES if name in names]
        return Process([sys.executable, "-c", f"import {', '.join(used)}" if used else ""], process.environment)

    def measured(self, *processes: Process, runs: int = 0) -> list[Samples]:
        """Each of them, in turns."""
        return interleaved(processes, runs or self.runs)

    # -- the head of the table ---------------------------------------------------------------------------------

    def head(self) -> list[str]:
        """Machine, versions and corpora, a line each."""
        stores = self.about(self.size)["stores"]
        parts = [f"{each} {facts['sessions']} sessions {facts['bytes'] / 1e6:.0f} MB" for each, facts in stores.items()]
        compared = [f"{tool} {_version(*words)}" for tool, words in _COMPARED.items()]
        packages = ", ".join(f"{name} {version}" for name, version in _packages().items())
        return [
            f"machine   {_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
            f"python    {platform.python_version()}, {packages}",
            f"beside    {', '.join(compared)}",
            f"stores    {self.size}: {', '.join(parts)}",
        ]


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            found = re.search(r"model name\s*:\s*(.+)", file.read())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _packages() -> dict[str, str]:
    code = "from importlib.metadata import version as v; print(*(f'{n}={v(n)}' for n in %r))"
    told = output(Process([sys.executable, "-c", code % (("click", "orjson", "tantivy"),)], os.environ)).decode()
    return dict(pair.split("=") for pair in told.split())


def _version(tool: str, option: str) -> str:
    if shutil.which(tool) is None:
        return "not installed"
    told = subprocess.run([tool, option], capture_output=True, text=True).stdout
    found = re.search(r"\d+(\.\d+)+", told)
    return found[0] if found else "?"
