"""The catalogue: facts outlive the run, and no damage to it is ever more than a forgotten fact."""

import os
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from sample import ROOT
from total_recall.catalogue import Catalogue
from total_recall.notices import Notices


@pytest.fixture
def folder(tmp_path):
    yield str(tmp_path)
    while OPEN:
        OPEN.pop().close()


OPEN = []


def opened(folder):
    notices = Notices()
    OPEN.append(Catalogue(folder, notices))
    return OPEN[-1], notices


def never(_):
    raise AssertionError("asked to compute what is known")


def test_what_was_learned_is_known_to_the_next_run_until_its_signature_changes(folder):
    first, _ = opened(folder)
    assert first("facts", "k", (1, "a"), lambda kept: {"n": 1, "before": kept}) == {"n": 1, "before": None}
    first.close()

    second, notices = opened(folder)
    assert second("facts", "k", (1, "a"), never) == {"n": 1, "before": None}
    assert second("facts", "k", (2, "a"), lambda kept: kept) == ('[1,"a"]', {"n": 1, "before": None})
    assert list(notices.said) == []


def test_values_fetched_at_once_are_the_same_and_give_way_to_newer_ones(folder):
    catalogue, _ = opened(folder)
    for number in range(600):
        catalogue("row", str(number), (number,), lambda _, n=number: {"n": n})
    catalogue.close()

    again, _ = opened(folder)
    again.expect("row")
    assert [again("row", str(n), (n,), never)["n"] for n in range(600)] == list(range(600))
    assert again("row", "7", ("new",), lambda _: "newer") == "newer"
    assert again("row", "7", ("new",), never) == "newer"


def test_it_is_private_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        catalogue, _ = opened(folder)
        catalogue.put("a", "b", "c", 1)
        catalogue.flush()
        modes = {stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) for name in os.listdir(folder)}
    finally:
        os.umask(before)
    assert modes == {0o600}


@pytest.mark.parametrize("damage", [b"not a database at all, but long enough to be looked at" * 50, b"\0" * 4096])
def test_a_damaged_catalogue_is_built_again(damage, folder):
    with open(os.path.join(folder, "catalogue.db"), "wb") as file:
        file.write(damage)

    catalogue, notices = opened(folder)
    catalogue.put("a", "b", "c", 1)
    catalogue.close()

    assert opened(folder)[0].get("a", "b") == ("c", 1)
    assert len(notices.said) <= 1


def test_another_programs_database_is_built_again_and_a_newer_one_left_alone(folder):
    path = os.path.join(folder, "catalogue.db")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    catalogue, notices = opened(folder)
    assert "older version or by another program" in "".join(notices.said)
    catalogue.close()

    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 999")
    database.close()
    catalogue, notices = opened(folder)
    assert catalogue("a", "b", (1,), lambda _: "computed") == "computed"
    assert catalogue("a", "b", (1,), never) == "computed", "remembered within the run"
    assert "newer version" in "".join(notices.said)
    catalogue.close()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (999,)
    database.close()


def test_two_writers_do_not_harm_each_other(folder):
    one, notices_of_one = opened(folder)
    two, notices_of_two = opened(folder)
    for number in range(300):
        one.put("a", f"one{number}", "s", number)
        two.put("a", f"two{number}", "s", number)
    one.close()
    two.close()

    third, _ = opened(folder)
    assert [third.get("a", f"{name}{n}")[1] for name in ("one", "two") for n in range(300)] == [
        *range(300),
        *range(300),
    ]
    assert not notices_of_one.said
    assert not notices_of_two.said


OPENERS = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from total_recall.catalogue import Catalogue
from total_recall.notices import Notices
print("ready", flush=True)
sys.stdin.readline()
for folder in sorted(os.scandir(sys.argv[2]), key=lambda entry: entry.name):
    notices = Notices()
    catalogue = Catalogue(folder.path, notices)
    catalogue.put("a", sys.argv[3], "s", 1)
    catalogue.close()
    print(*notices.said, sep="\\n", flush=True)
"""


@pytest.mark.parametrize("before", [None, b"", b"garbage, and long enough to be looked at" * 50])
def test_processes_that_find_none_at_once_make_one_and_lose_nothing(before, tmp_path):
    for number in range(12):
        (tmp_path / f"{number:02}").mkdir()
        if before is not None:
            (tmp_path / f"{number:02}" / "catalogue.db").write_bytes(before)
    command = [sys.executable, "-c", OPENERS, str(ROOT / "lib"), str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    openers = [subprocess.Popen([*command, str(number)], **pipes) for number in range(6)]
    for opener in openers:
        opener.stdout.readline()
    for opener in openers:
        opener.stdin.write("go\n")
        opener.stdin.flush()
    said = [opener.communicate()[0].split("\n") for opener in openers]

    told = sorted(text for texts in said for text in texts if text)
    assert len(told) == (12 if before else 0), "what was damaged is rebuilt once"
    assert all("is damaged" in text for text in told)
    for folder in sorted(tmp_path.iterdir()):
        catalogue, _ = opened(str(folder))
        assert [catalogue.get("a", str(number)) for number in range(6)] == [("s", 1)] * 6


def test_forgotten_keys_are_gone(folder):
    catalogue, _ = opened(folder)
    for key in "abc":
        catalogue.put("row", key, "s", key)
    catalogue.flush()
    catalogue.keep_only("row", {"b"})

    assert [catalogue.get("row", key) for key in "abc"] == [None, ("s", "b"), None]


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from total_recall.catalogue import Catalogue
from total_recall.notices import Notices
catalogue = Catalogue(sys.argv[2], Notices())
print("ready", flush=True)
number = 0
while True:
    number += 1
    catalogue.put("a", str(number % 500), str(number), {"n": number, "text": "x" * 500})
    if number % 50 == 0:
        catalogue.flush()
"""


@pytest.mark.parametrize("moment", range(5))
def test_killed_while_it_writes_it_opens_and_every_fact_in_it_is_whole(moment, folder):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(ROOT / "lib"), folder], stdout=subprocess.PIPE, text=True
    )
    writer.stdout.readline()
    time.sleep(0.02 + moment * 0.013)
    writer.kill()
    writer.wait()
    writer.stdout.close()

    catalogue, notices = opened(folder)
    for number in range(500):
        kept = catalogue.get("a", str(number))
        if kept is not None:
            assert kept[0] == str(kept[1]["n"])
            assert kept[1]["n"] % 500 == number
    assert list(notices.said) == []
