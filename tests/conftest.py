"""The sample stores, a home of its own for every test, and .bats files as tests."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson
import pytest
from sample import ROOT, copy_sample, isolated, store_environment

# A shell that runs the tests in the background has them ignore interrupts, and so would every program they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def sample_stores(tmp_path_factory):
    """A folder with a copy of one real store of each harness; no test changes it."""
    return copy_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def environment(sample_stores, tmp_path):
    """The environment of a command that reads the sample stores; derived state goes into the test's own folder."""
    home = tmp_path / "home"
    home.mkdir()
    return isolated(home) | store_environment(sample_stores) | {"TOTAL_RECALL_SHADOW_ROOT": str(tmp_path / "shadow")}


class Ran:
    """What a command printed, and its status."""

    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout
        self.err = done.stderr.decode("utf-8", "replace")

    @property
    def records(self):
        return [orjson.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def tr(environment, tmp_path):
    """Run an executable on the sample stores: `tr("tr-list", "--hours", "1")`."""

    def run(*words, env=None, stdin=b"", **options):
        done = subprocess.run(
            [sys.executable, ROOT / "bin" / words[0], *map(str, words[1:])],
            env=environment | (env or {}),
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            timeout=120,
            **options,
        )
        return Ran(done)

    return run


# -- bats ------------------------------------------------------------------------------------------------------

_VERDICT = re.compile(r"(not )?ok (\d+) (.*?)(?: # skip ?(.*))?$")


def pytest_collect_file(file_path, parent):
    """Every .bats file is a test file."""
    return BatsFile.from_parent(parent, path=file_path) if file_path.suffix == ".bats" else None


class BatsFile(pytest.File):
    """A .bats file; bats runs it once, whichever of its tests are asked for."""

    verdicts = None

    def collect(self):
        titles = re.findall(r"^@test ([\"'])(.+)\1 \{", self.path.read_text(), re.MULTILINE)
        if not titles:
            raise self.CollectError(f"{self.path} holds no test")
        for number, (_, title) in enumerate(titles, 1):
            yield BatsTest.from_parent(self, name=title, number=number)

    def verdict(self, number, sample):
        if self.verdicts is None:
            self.verdicts = self._run(sample)
        return self.verdicts.get(number, (False, None, ["bats gave no verdict for this test"]))

    def _run(self, sample):
        bats = shutil.which("bats", path=isolated("/nonexistent")["PATH"])
        if bats is None:
            pytest.fail("bats is not installed")
        python = Path(sys.executable).parent
        done = subprocess.run(
            [bats, "--tap", self.path],
            capture_output=True,
            text=True,
            env=os.environ | {"SAMPLE": str(sample), "PATH": f"{python}:{os.environ['PATH']}"},
        )
        verdicts, number = {}, None
        for line in done.stdout.splitlines():
            if match := _VERDICT.match(line):
                number = int(match[2])
                verdicts[number] = (not match[1], match[4], [])
            elif number:
                verdicts[number][2].append(line.removeprefix("# "))
        if not verdicts:
            pytest.fail(done.stdout + done.stderr, pytrace=False)
        return verdicts


class BatsTest(pytest.Item):
    """One @test of a .bats file."""

    def __init__(self, *, number, **options):
        super().__init__(**options)
        self.number = number
        self.fixturenames = []

    def runtest(self):
        passed, skipped, notes = self.parent.verdict(self.number, _sample(self.session))
        if skipped is not None:
            pytest.skip(skipped or "skipped by bats")
        if not passed:
            pytest.fail("\n".join(notes), pytrace=False)

    def reportinfo(self):
        return self.path, None, self.name


def _sample(session):
    """The sample stores for bats: copied once for the whole run."""
    folder = getattr(session, "_bats_sample", None)
    if folder is None:
        folder = session._bats_sample = copy_sample(Path(tempfile.mkdtemp(prefix="total-recall-sample-")))
    return folder


def pytest_sessionfinish(session):
    """Remove the copies made for bats."""
    if folder := getattr(session, "_bats_sample", None):
        shutil.rmtree(folder, ignore_errors=True)
