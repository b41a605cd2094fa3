"""Damaged records: each costs itself and nothing else, in every layout and for every command."""

from functools import cache

import pytest
import zstandard

from .damage import AGAIN, EMPTY, FILES, UNITS
from .layouts import LAYOUTS, LINES, told
from .programs import agree, run_all

CASES = [(name, fault) for name in LAYOUTS for fault in UNITS if name in LINES or not UNITS[fault].only_lines]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Of a layout: what its target tells, and what it tells without each of its units."""

    @cache
    def of(name):
        folder = tmp_path_factory.mktemp("known")
        laid = LAYOUTS[name](folder / "whole")
        whole = told(laid.messages())
        left = []
        for place in range(len(laid.units())):
            laid = LAYOUTS[name](folder / str(place))
            laid.spoil(place, None)
            left.append(told(laid.messages()))
        return whole, left

    return of


@pytest.fixture
def chosen(known):
    """Of a layout: what its target tells, and its last unit that holds one text of the model's or a tool's, as
    (unit, message)."""

    def of(name):
        whole, left = known(name)
        for place in reversed(range(len(left))):
            for lost, message in enumerate(whole):
                if left[place] == whole[:lost] + whole[lost + 1 :]:
                    if message["content"] and message["role"] != "user":
                        return whole, place, lost
                    break
        raise AssertionError(name)

    return of


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_damaged_record_costs_itself_and_no_other(name, fault, chosen, tmp_path):
    whole, place, lost = chosen(name)
    laid, about = LAYOUTS[name](tmp_path), UNITS[fault]
    laid.spoil(place, about.apply(laid.units()[place]))
    store = laid.store()

    messages = told(store.messages(laid.session(store)))

    without = whole[:lost] + whole[lost + 1 :]
    if about.costs == "text":
        assert messages[:lost] + messages[lost + 1 :] == without
        assert len(messages) == len(whole)
    else:
        outcomes = {"record": [without], "nothing": [whole], "record or nothing": [without, whole]}
        assert messages in outcomes[about.costs]
    said = list(store.notices.said)
    assert len(said) == about.said or about.costs == "record or nothing"
    if said and laid.lines:
        assert said[0].startswith(f"{laid.path}:{place + 1}: 1 damaged line")
    assert not store.notices.failures


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_command_gets_through_a_session_full_of_damage(name, shift, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    units = laid.units()
    faults = [UNITS[fault] for layout, fault in CASES if layout == name]
    # Every second record is left as it is; the shifts bring most faults to records of several kinds.
    for place in range(shift % 2, len(units), 2):
        units[place] = faults[(place // 2 + shift * 9) % len(faults)].apply(units[place])
    laid.put(units)

    found = run_all(laid, tmp_path)

    agree(found, laid)


def _calls(messages):
    return sum(len(message["tool_calls"]) for message in messages)


def _results(messages):
    return sum(message["role"] == "tool" for message in messages)


# Where a call and its result stand in the same unit, neither is ever alone.
APART = [name for name in LINES if name not in ("gemini", "vibe unified")]


@pytest.mark.parametrize("name", APART)
def test_a_call_without_a_result_is_a_call_and_a_result_without_a_call_a_result(name, known, tmp_path):
    whole, left = known(name)
    begun = [place for place, rest in enumerate(left) if _calls(rest) < _calls(whole)]
    answered = [place for place, rest in enumerate(left) if _results(rest) < _results(whole)]
    for places, lost in ((begun, _calls), (answered, _results)):
        laid = LAYOUTS[name](tmp_path / lost.__name__)
        laid.put([None if place in places else unit for place, unit in enumerate(laid.units())])

        found = run_all(laid, tmp_path / f"{lost.__name__} beside")

        agree(found, laid)
        messages = found["tr-extract --full -- {id}"].records
        kept = _results if lost is _calls else _calls
        # Copilot CLI says of a call once more that it starts.
        started = name == "copilot" and lost is _calls
        assert (lost(messages), kept(messages)) == (started, kept(whole))


# Vibe writes nothing but messages, or a journal beside them; two others say calls and results a second time.
@pytest.mark.parametrize("name", [name for name in LINES if not name.startswith(("vibe", "copilot", "gemini"))])
def test_bookkeeping_alone_is_an_empty_session(name, known, tmp_path):
    whole, left = known(name)
    laid = LAYOUTS[name](tmp_path / "store")
    bookkeeping = [unit if rest == whole else None for unit, rest in zip(laid.units(), left, strict=True)]
    laid.put(bookkeeping)

    found = run_all(laid, tmp_path, also=(2,))

    agree(found, laid)
    [row] = found["tr-list -- {id}"].records
    assert any(bookkeeping)
    assert found["tr-extract --full -- {id}"].records == []
    assert row["empty"]
    assert "read_error" not in row


def _row(laid):
    store = laid.store()
    row = store.row(laid.session(store))
    counts = ("user_count", "assistant_count", "tool_count")
    return {fact: row[fact] for fact in ("session_id", "title", "directory", *counts, "start_time", "end_time")}


def _write(laid, data):
    laid.path.write_bytes(zstandard.compress(data) if laid.path.suffix == ".zst" else data)


@pytest.mark.parametrize("fault", FILES)
@pytest.mark.parametrize("name", LINES)
def test_what_stands_between_records_costs_none(name, fault, known, tmp_path):
    whole, _ = known(name)
    laid = LAYOUTS[name](tmp_path)
    before = _row(laid)
    write, said = FILES[fault]
    _write(laid, write(laid.units()))
    store = laid.store()

    assert told(store.messages(laid.session(store))) == whole
    assert len(store.notices.said) == said
    # On a damaged line the record of a title is not looked for.
    passed = {"title"} if said else set()
    assert {fact for fact, value in _row(laid).items() if value != before[fact]} <= passed


@pytest.mark.parametrize(("name", "fault"), [(name, f) for i, f in enumerate(FILES) for name in LINES[i % 3 :: 3]])
def test_every_command_takes_what_stands_between_records(name, fault, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    write, _ = FILES[fault]
    _write(laid, write(laid.units()))

    agree(run_all(laid, tmp_path), laid)


# The records of Codex CLI have no ids, and of Mistral Vibe's messages only some.
IDENTIFIED = [name for name in LINES if not name.startswith(("codex", "vibe"))]


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("name", IDENTIFIED)
def test_a_record_that_stands_twice_counts_once(name, again, known, tmp_path):
    whole, _ = known(name)
    laid = LAYOUTS[name](tmp_path)
    before = _row(laid)
    laid.put(AGAIN[again](laid.units()))
    store = laid.store()

    assert told(store.messages(laid.session(store))) == whole
    assert not store.notices.said
    assert _row(laid) == before


# Gemini CLI names a file after the beginning of an id; the whole id stands in its first line only.
NAMED = [name for name in LINES if name != "gemini"]


@pytest.mark.parametrize(("name", "fault"), [(name, f) for i, f in enumerate(EMPTY) for name in NAMED[i % 2 :: 2]])
def test_a_file_without_a_record_is_a_session_without_messages(name, fault, tmp_path):
    laid = LAYOUTS[name](tmp_path / "store")
    _write(laid, EMPTY[fault])

    found = run_all(laid, tmp_path)

    rows = found["tr-list"].records
    assert laid.witness in [row["session_id"] for row in rows]
    assert not any(row.get("read_error") for row in rows)
