"""Promises that hold for every executable."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from sample import ROOT, TOOLS, isolated, module_of
from total_recall.stores.registry import HARNESSES

# Programs that read the stores, as opposed to filters of standard input and servers.
READERS = [tool for tool in ("tr-stores", "tr-list", "tr-extract", "tr-user", "tr-raw") if tool in TOOLS]


@pytest.mark.parametrize("tool", TOOLS)
def test_an_executable_is_the_template_with_its_own_name(tool):
    template = (ROOT / "bin" / "tr-list").read_text()

    expected = template.replace("tr-list", tool).replace("commands.list", f"commands.{module_of(tool)}")

    assert (ROOT / "bin" / tool).read_text() == expected
    assert (ROOT / "bin" / tool).stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("tool", TOOLS)
def test_help_and_version_need_no_store_and_no_home(tool, tr):
    bare = {"HOME": "", "TOTAL_RECALL_SANDBOX": ""}

    assert tr(tool, "--help", env=bare).status == 0
    version = tr(tool, "--version", env=bare)

    assert version.status == 0
    assert version.out.decode().rsplit(" ", 1) == [tool, "0.1.0\n"]
    assert version.err == ""


@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_option_is_one_sentence_and_status_2(tool, tr):
    ran = tr(tool, "--no-such-option")

    assert ran.status == 2
    assert ran.out == b""
    assert ran.err.startswith(f"{tool}: ")
    assert ran.err.count("\n") == 1
    assert "--no-such-option" in ran.err


@pytest.mark.parametrize("tool", READERS)
def test_no_home_is_no_traceback(tool, tr):
    ran = tr(tool, env=dict.fromkeys(("HOME", "TOTAL_RECALL_SANDBOX", *_roots()), ""))

    assert ran.status == (2 if tool not in ("tr-stores", "tr-list") else 0)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("tool", READERS)
def test_closed_standard_input_does_no_harm(tool, environment, tmp_path):
    assert _shell(f"{tool} <&-", environment, tmp_path).returncode == 0


@pytest.mark.parametrize("tool", READERS)
def test_a_full_disk_is_status_5_and_a_sentence(tool, environment, tmp_path):
    done = _shell(f"{tool} > /dev/full", environment, tmp_path)

    assert done.returncode == 5
    assert done.stderr == f"{tool}: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("tool", READERS)
def test_closed_standard_output_is_status_5(tool, environment, tmp_path):
    done = _shell(f"{tool} >&-", environment, tmp_path)

    assert done.returncode == 5
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("tool", READERS)
def test_closed_standard_error_does_no_harm(tool, environment, tmp_path):
    assert _shell(f"{tool} 2>&- | wc -l", environment, tmp_path).stdout.strip() != "0"


@pytest.mark.parametrize("tool", READERS)
def test_a_reader_that_goes_away_ends_it_silently_by_sigpipe(tool, environment, tmp_path):
    done = _shell(f"{tool} | true; echo ${{PIPESTATUS[0]}}", environment, tmp_path)

    assert done.stdout.strip() in ("141", "0")
    assert done.stderr == ""


@pytest.mark.parametrize("tool", READERS)
@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_the_same_store_gives_the_same_bytes_in_any_locale_and_zone(tool, locale, tr):
    plain = tr(tool)
    other = tr(tool, env={"LC_ALL": locale, "TZ": "Asia/Tokyo", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert other.out == plain.out
    assert other.status == plain.status


@pytest.mark.parametrize("tool", READERS)
def test_an_unknown_harness_is_named_with_the_known_ones(tool, tr):
    ran = tr(tool, "-H", "emacs")

    assert ran.status == 2
    assert "unknown harness 'emacs' - known: opencode, vibe, claude, codex" in ran.err


@pytest.mark.parametrize("tool", [tool for tool in READERS if tool not in ("tr-stores", "tr-list")])
def test_a_session_that_is_not_there_is_status_2_and_nothing_printed(tool, tr):
    ran = tr(tool, "no-such-session")

    assert (ran.status, ran.out) == (2, b"")
    assert "no session matching 'no-such-session' under " in ran.err


def test_the_sandbox_refuses_a_store_that_its_override_does_not_name(tr):
    ran = tr("tr-list", "-H", "claude", env={"TOTAL_RECALL_CLAUDE_ROOT": " "})

    assert (ran.status, ran.out) == (2, b"")
    assert "TOTAL_RECALL_SANDBOX is set but TOTAL_RECALL_CLAUDE_ROOT is not" in ran.err


@pytest.mark.parametrize("tool", READERS)
def test_nothing_is_written_outside_the_shadow_folder(tool, environment, sample_stores, tmp_path, tr):
    before = _contents(sample_stores)

    assert tr(tool).status == 0

    assert _contents(sample_stores) == before
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("tool", READERS)
def test_an_unwritable_shadow_folder_is_said_and_nothing_else_changes(tool, tr, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")

    ran = tr(tool, env={"TOTAL_RECALL_SHADOW_ROOT": str(blocked), "XDG_CACHE_HOME": str(blocked)})

    assert ran.status == 0
    assert ran.out == tr(tool).out or tool == "tr-stores"


@pytest.mark.parametrize("tool", TOOLS)
def test_heavy_modules_are_imported_by_none_that_does_not_need_them(tool):
    needs = {
        "tantivy": {"tr-index", "tr-search", "tr-mcp"},
        "httpx": {"tr-summarise", "tr-recap", "tr-mcp"},
        "mcp": {"tr-mcp"},
    }
    code = f"import sys, total_recall.commands.{module_of(tool)}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "lib")}
    )

    loaded = set(done.stdout.split())
    for heavy, tools in needs.items():
        if tool not in tools:
            assert heavy not in loaded
    assert "_hashlib" not in loaded  # which loads OpenSSL
    if tool in READERS:
        assert not {"pathlib", "asyncio", "tempfile", "importlib.metadata", "httpx", "pydantic"} & loaded


def _roots():
    return [f"TOTAL_RECALL_{name.upper()}_ROOT" for name in HARNESSES]


def _shell(line, environment, folder):
    python = Path(sys.executable).parent
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        env=environment | {"PATH": f"{ROOT / 'bin'}:{python}:{os.environ['PATH']}"},
        cwd=folder,
        timeout=120,
    )


def _contents(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


def test_the_isolated_environment_names_no_home_of_ours(tmp_path):
    assert isolated(tmp_path)["HOME"] == str(tmp_path)
