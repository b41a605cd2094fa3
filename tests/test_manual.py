"""Man pages, --help and the commands agree; the examples of the pages run."""

import os
import re
import shutil
import subprocess

import click
import pytest
from sample import ROOT, TOOLS, command

PAGES = sorted((ROOT / "man").glob("man*/*"))
EXAMPLE = re.compile(r"^\.Dl (?:\\?\$ )(.+)$", re.MULTILINE)
# Not run: they write a completion file into a person's home, or wait for more input.
NOT_RUN = ("_COMPLETE=", "--follow", "less ")


@pytest.mark.parametrize("tool", TOOLS)
def test_the_page_has_the_options_of_the_command(tool):
    page = (ROOT / "man" / "man1" / f"{tool}.1").read_text()
    given = [p for p in command(tool).params if isinstance(p, click.Option)]
    declared = {name for p in given for name in (*p.opts, *p.secondary_opts)}

    documented = set()
    for line in re.findall(r"^\.It (Fl .*)$", page, re.MULTILINE):
        documented |= {f"-{name}" for name in re.findall(r"Fl ([\w-]+)", line)}

    assert documented - {"-h", "--help"} == declared - {"-h", "--help"}


@pytest.mark.parametrize("tool", TOOLS)
def test_the_synopsis_names_every_option(tool):
    page = (ROOT / "man" / "man1" / f"{tool}.1").read_text()
    synopsis = page[page.index(".Sh SYNOPSIS") : page.index(".Sh DESCRIPTION")]
    declared = {max(p.opts, key=len) for p in command(tool).params if isinstance(p, click.Option)}

    named = {f"-{name}" for name in re.findall(r"Fl ([\w-]+)", synopsis)}

    assert declared - named - {"--version", "--quiet", "--harness"} == set()


@pytest.mark.parametrize("tool", TOOLS)
def test_the_one_line_purpose_is_a_sentence_in_help(tool):
    text = command(tool).help

    assert text
    assert text.split("\n")[0].endswith((".", ","))


def test_every_reference_to_a_page_of_ours_is_to_a_page_that_exists():
    ours = {path.name for path in PAGES}
    for page in PAGES:
        for name, section in re.findall(r"\.Xr (\S+) (\d)", page.read_text()):
            if name.startswith(("tr-", "total-recall")):
                assert f"{name}.{section}" in ours, f"{page.name} refers to {name}({section})"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_page_is_clean_for_the_linter(page):
    if shutil.which("mandoc") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("mandoc is missing")
        pytest.skip("mandoc is not installed")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)

    assert done.stdout == ""


def examples():
    """(page, command line) of every example that can be run."""
    for page in PAGES:
        for line in EXAMPLE.findall(page.read_text()):
            text = line.replace("\\e", "\\").replace("\\&", "").replace("\\-", "-").strip('"')
            if not any(part in text for part in NOT_RUN):
                yield pytest.param(text, id=f"{page.name}: {text[:60]}")


@pytest.mark.parametrize("line", list(examples()))
def test_an_example_of_a_page_runs(line, environment, tmp_path):
    if shutil.which("jq") is None and "jq " in line:
        pytest.skip("jq is not installed")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=120,
    )

    # 141: head had enough; 1: a search that found nothing in the sample
    assert done.returncode in (0, 1, 141), done.stderr
    assert "Traceback" not in done.stderr


def test_the_readme_is_made_from_the_tour():
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    readme = (ROOT / "README.md").read_text()
    for line in EXAMPLE.findall((ROOT / "man" / "man7" / "total-recall.7").read_text())[:3]:
        assert line in readme, "the first three lines to type are in README and tour alike"
