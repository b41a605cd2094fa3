"""Times in any unit and of any type, in the future, long ago, missing, equal; windows across midnight."""

import os
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone

import orjson
import pytest

from .layouts import LAYOUTS, told
from .programs import agree, environment, run, run_all

NOW = datetime.now(timezone.utc).replace(microsecond=0)
PRINTED = "2026-11-30T21:20:38.123Z"

# What may stand where a time should be, and how it is printed.
MOMENTS = {
    "seconds": (1796073638, "2026-11-30T21:20:38.000Z"),
    "seconds with a fraction": (1796073638.123, PRINTED),
    "milliseconds": (1796073638123, PRINTED),
    "microseconds": (1796073638123456, PRINTED),
    "nanoseconds": (1796073638123456789, PRINTED),
    "milliseconds in a string": ("1796073638123", PRINTED),
    "six digits": ("2026-11-30T21:20:38.123456Z", PRINTED),
    "nine digits": ("2026-11-30T21:20:38.123456789Z", PRINTED),
    "an offset": ("2026-12-01T02:50:38.123+05:30", PRINTED),
    "no zone": ("2026-11-30T21:20:38.123", PRINTED),
    "a blank between": ("2026-11-30 21:20:38.123", PRINTED),
    "a date alone": ("2026-11-30", "2026-11-30T00:00:00.000Z"),
    "the far future": ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    "zero": (0, None),
    "zero as written by Go": ("0001-01-01T00:00:00Z", None),
    "a negative number": (-1796073638123, None),
    "beyond all years": (10**30, None),
    "nothing": ("", None),
    "null": (None, None),
    "a word": ("yesterday", None),
    "a date that is none": ("2026-02-30T00:00:00Z", None),
    "something behind it": ("2026-11-30T21:20:38.123Zjunk", None),
    "other digits": ("\u0661\u0667\u0669\u0666\u0660\u0667\u0663\u0666\u0663\u0668", None),
    "true": (True, None),
    "a list": ([2026, 11, 30], None),
    "an object": ({"seconds": 1796073638}, None),
}
_KEYS = {"timestamp", "createdAt", "updatedAt", "start", "end", "created", "completed"}
TIMED = [name for name in LAYOUTS if name not in ("vibe", "codex 0.20")]


def _retimed(value, moment):
    """A record with another time wherever it has one."""
    if isinstance(value, dict):
        return {key: moment if key in _KEYS else _retimed(member, moment) for key, member in value.items()}
    return [_retimed(member, moment) for member in value] if isinstance(value, list) else value


def _retime(laid, moments):
    laid.put(
        [orjson.dumps(_retimed(orjson.loads(unit), moment)) for unit, moment in zip(laid.units(), moments, strict=True)]
    )


def _timeless(messages):
    return [{key: value for key, value in message.items() if key != "ts"} for message in told(messages)]


@pytest.mark.parametrize("moment", [name for name in MOMENTS if name != "beyond all years"])
@pytest.mark.parametrize("name", TIMED)
def test_a_time_is_read_or_is_none_and_costs_no_record(name, moment, tmp_path):
    laid = LAYOUTS[name](tmp_path)
    before = laid.messages()
    written, printed = MOMENTS[moment]
    _retime(laid, [written] * len(laid.units()))

    messages = laid.messages()

    assert _timeless(messages) == _timeless(before)
    if laid.harness in ("claude", "codex"):
        assert {message["ts"] for message in messages} == {printed}
    elif laid.harness == "opencode":
        # A part without a time of its own has its message's.
        assert all(m["ts"] in (printed, b["ts"]) or printed is None for m, b in zip(messages, before, strict=True))
        assert all(message["ts"] for message in messages)


@pytest.mark.parametrize("name", TIMED)
def test_every_command_bears_any_times(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    written = [moment for moment, _ in MOMENTS.values() if moment != 10**30]
    _retime(laid, [written[place % len(written)] for place in range(len(laid.units()))])

    agree(run_all(laid, tmp_path), laid)


_COLUMNS = {"session": ("time_created", "time_updated"), "message": ("time_created",), "part": ("time_created",)}


@pytest.mark.parametrize("moment", [name for name in MOMENTS if name != "null"])  # no column of theirs takes null
def test_columns_of_times_hold_anything(moment, tmp_path):
    laid = LAYOUTS["opencode"](tmp_path / "store")
    written = MOMENTS[moment][0]
    stored = orjson.dumps(written).decode() if isinstance(written, (list, dict)) else written
    stored = float(stored) if stored == 10**30 else stored
    before = len(laid.messages())
    with closing(sqlite3.connect(laid.path)) as database:
        for table, columns in _COLUMNS.items():
            for column in columns:
                database.execute(
                    f"UPDATE {table} SET {column} = ? WHERE {'id' if table == 'session' else 'session_id'} = ?",
                    (stored, laid.target),
                )
        database.commit()

    found = run_all(laid, tmp_path)

    agree(found, laid)
    assert len(found["tr-extract --full -- {id}"].records) == before


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_metadata_of_a_vibe_folder_holds_anything(moment, tmp_path):
    laid = LAYOUTS["vibe"](tmp_path / "store")
    path = laid.path.with_name("meta.json")
    written, printed = MOMENTS[moment]
    if written == 10**30:
        written = 1e30
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"start_time": written, "end_time": written}))

    found = run_all(laid, tmp_path)

    agree(found, laid)
    assert found["tr-list -- {id}"].records[0]["start_time"] == printed


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_dated_before_1970_is_a_session_like_others(name, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    for path in laid.root.rglob("*"):
        os.utime(path, (-1e9, -1e9))

    agree(run_all(laid, tmp_path), laid)


# -- windows ---------------------------------------------------------------------------------------------------

MIDNIGHT = NOW.replace(hour=0, minute=0, second=0)
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# session -> its first and its last moment, and the time of its file
SPANS = {
    "across": (MIDNIGHT - 10 * _MINUTE, MIDNIGHT + 10 * _MINUTE, MIDNIGHT + 10 * _MINUTE),
    "yesterday": (MIDNIGHT - 14 * _HOUR, MIDNIGHT - 13 * _HOUR, MIDNIGHT - 13 * _HOUR),
    "ahead": (NOW + 9 * _DAY, NOW + 10 * _DAY, MIDNIGHT - 2 * _DAY),
    "ancient": (
        datetime(1999, 1, 1, tzinfo=timezone.utc),
        datetime(1999, 1, 2, tzinfo=timezone.utc),
        MIDNIGHT - 9 * _DAY,
    ),
    "timeless": (None, None, MIDNIGHT - 3 * _DAY),
}


def _written(moment):
    return moment.isoformat().replace("+00:00", "Z")


@pytest.fixture(scope="module")
def spans(tmp_path_factory):
    """A Codex store with a session for each of SPANS; gives a function that runs a command on it."""
    scratch = tmp_path_factory.mktemp("spans")
    laid = LAYOUTS["codex 0.45"](scratch / "store")
    units = [orjson.loads(unit) for unit in laid.units()]
    for path in laid.path.parent.glob("*.jsonl"):
        path.unlink()
    for session, (start, end, modified) in SPANS.items():
        units[0]["payload"]["id"] = session
        for place, unit in enumerate(units):
            unit["timestamp"] = _written(start + (end - start) * place / (len(units) - 1)) if start else None
        path = laid.path.with_name(f"rollout-{session}.jsonl")
        path.write_bytes(b"".join(orjson.dumps(unit) + b"\n" for unit in units))
        os.utime(path, (modified.timestamp(),) * 2)
    env = environment(scratch, laid)
    return lambda *words: run(*words, env=env)


def _listed(ran):
    assert ran.status == 0, ran
    return [row["session_id"] for row in ran.records]


def test_a_session_ahead_of_now_is_marked_and_leads_no_list(spans):
    rows = spans("tr-list").records

    assert [row["session_id"] for row in rows] == ["across", "yesterday", "ahead", "timeless", "ancient"]
    assert [row.get("clock") for row in rows] == [None, None, "ahead", None, None]
    assert spans("tr-extract").records[0]["session_id"] == "across"


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        # A file that was last written before the window holds nothing of it, whatever its records say.
        (MIDNIGHT, None, {"across"}),
        (MIDNIGHT - 3 * _DAY, None, {"across", "yesterday", "ahead"}),
        (None, MIDNIGHT - _MINUTE, {"across", "yesterday", "ancient"}),
        (MIDNIGHT - _MINUTE, MIDNIGHT + _MINUTE, {"across"}),
        (MIDNIGHT - 12 * _HOUR, MIDNIGHT - _HOUR, set()),
        (datetime(1999, 1, 1, 12, tzinfo=timezone.utc), datetime(2000, 1, 1, tzinfo=timezone.utc), {"ancient"}),
    ],
)
def test_a_window_selects_the_sessions_whose_span_it_overlaps(since, until, expected, spans):
    bounds = [f"--{name}={_written(at)}" for name, at in (("since", since), ("until", until)) if at]

    assert set(_listed(spans("tr-list", *bounds))) == expected
    said = {hit["session_id"] for hit in spans("tr-said", "--words", "codex", "--hours", "0", *bounds).records}
    assert said - {"timeless"} <= expected
    found = {hit["session_id"] for hit in spans("tr-search", "codex", "--limit", "0", *bounds).records}
    assert found - {"timeless"} <= expected


def test_messages_on_both_sides_of_midnight_are_told_apart(spans):
    whole = spans("tr-extract", "--full", "across").records
    before = spans("tr-extract", "--full", "across", "--until", _written(MIDNIGHT - timedelta(milliseconds=1))).records
    after = spans("tr-extract", "--full", "across", "--since", _written(MIDNIGHT)).records

    assert 0 < len(before) < len(whole)
    assert before + after == whole


WINDOWED = (["tr-list"], ["tr-index"], ["tr-said", "--words", "codex"], ["tr-qa"], ["tr-search", "codex"])


@pytest.mark.parametrize("words", WINDOWED, ids=lambda words: words[0])
@pytest.mark.parametrize("hours", ["1e308", "inf", "99999999999999999999", "0.0001", "-0"])
def test_any_window_of_hours_is_a_window(words, hours, spans):
    assert spans(*words, f"--hours={hours}").status in (0, 1)


@pytest.mark.parametrize("words", WINDOWED, ids=lambda words: words[0])
@pytest.mark.parametrize("hours", ["-1", "nan", "", "1h", "0x10"])
def test_what_is_no_window_of_hours_is_refused_with_what_would_work(words, hours, spans):
    ran = spans(*words, f"--hours={hours}")

    assert (ran.status, ran.out) == (2, b"")
    assert "use 0 for no bound" in ran.err


def test_sessions_of_the_same_moment_are_in_the_same_order_whatever_the_folder_s(tmp_path):
    orders = []
    for names in (["b", "a", "c"], ["c", "b", "a"]):
        laid = LAYOUTS["codex 0.45"](tmp_path / "".join(names))
        units = laid.units()
        laid.path.unlink()
        for session in names:
            head = orjson.loads(units[0])
            head["payload"]["id"] = session
            path = laid.path.with_name(f"rollout-{session}.jsonl")
            path.write_bytes(b"\n".join([orjson.dumps(head), *units[1:]]) + b"\n")
            os.utime(path, (1796073638, 1796073638))
        env = environment(tmp_path / "of" / "".join(names), laid)
        orders.append([row["session_id"] for row in run("tr-list", env=env).records[:3]])
        orders.append([hit["session_id"] for hit in run("tr-search", "pangolia", env=env).records])

    assert orders[0] == orders[2]
    assert orders[1] == orders[3]
