"""Bounds: windows, budgets and clamps, as rules that hold for any stream."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from total_recall.bounds import Account, Limits, TooLarge, bounded, clamped, cut_text, enveloped

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
streams = st.lists(texts, max_size=40).map(
    lambda words: [{"id": n, "content": word, "thinking": None} for n, word in enumerate(words, 1)]
)
limits = st.builds(
    Limits,
    limit=st.integers(0, 12),
    offset=st.none() | st.integers(0, 45),
    max_bytes=st.integers(0, 900),
    max_record_bytes=st.integers(0, 20),
)


def run(records, limited):
    account = Account(limited)
    return list(bounded(iter(records), limited, account, count_all=True)), account


@given(streams, limits)
def test_what_is_returned_is_a_run_of_the_stream_within_every_bound(records, limited):
    try:
        lines, account = run(records, limited)
    except TooLarge:
        assert limited.max_bytes
        return

    returned = [orjson.loads(line) for line in lines]
    ids = [record["id"] for record in returned]
    assert ids == list(range(account.start + 1, account.start + 1 + len(ids)))
    assert account.total == len(records)
    assert account.returned == len(ids)
    assert account.bytes == sum(map(len, lines))
    assert not limited.limit or len(ids) <= limited.limit
    assert not limited.max_bytes or sum(len(line) + 1 for line in lines) <= limited.max_bytes
    if limited.max_record_bytes:
        assert all(len(record["content"].encode()) <= limited.max_record_bytes for record in returned)


@given(streams, limits.filter(lambda limited: limited.offset is None))
def test_a_tail_keeps_the_newest(records, limited):
    try:
        lines, account = run(records, limited)
    except TooLarge:
        return
    if lines and (limited.limit or limited.max_bytes):
        assert orjson.loads(lines[-1])["id"] == len(records)
        assert account.next_offset is None


@given(streams, st.integers(1, 7), st.integers(0, 1) | st.integers(150, 400))
def test_walking_next_offset_visits_every_record_once(records, limit, max_bytes):
    seen, offset = [], 0
    while offset is not None:
        lines, account = run(records, Limits(limit, offset, max_bytes if max_bytes > 1 else 0))
        seen += [orjson.loads(line)["id"] for line in lines]
        offset = account.next_offset
    assert seen == [record["id"] for record in records]


@given(streams, limits)
def test_an_envelope_fits_its_budget_to_the_byte_and_accounts_for_itself(records, limited):
    try:
        document = enveloped({"session_id": "s", "harness": "h", "full": True}, "messages", iter(records), limited)
    except TooLarge:
        assert limited.max_bytes
        return

    value = orjson.loads(document)
    bounds = value["bounds"]
    assert not limited.max_bytes or len(document) <= limited.max_bytes
    assert list(value) == ["session_id", "harness", "full", "bounds", "messages"]
    assert bounds["returned_records"] == len(value["messages"])
    assert bounds["bytes"] == sum(len(orjson.dumps(record)) for record in value["messages"])
    assert bounds["total_records"] == len(records)
    assert [record["id"] - 1 - bounds["offset"] for record in value["messages"]] == list(range(len(value["messages"])))
    assert all(0 <= index < len(value["messages"]) for index in bounds["clamped_record_indices"])


def test_an_empty_window_is_never_called_cut():
    lines, account = run([{"id": 1, "content": "a"}], Limits(limit=5, offset=99))

    assert lines == []
    assert account.bounds() | {"max_bytes": 0} == {
        "total_records": 1,
        "returned_records": 0,
        "offset": 1,
        "limit": 5,
        "next_offset": None,
        "truncated": False,
        "truncation_reason": None,
        "max_bytes": 0,
        "bytes": 0,
        "clamped_record_indices": [],
        "notice": "",
    }


def test_a_record_that_does_not_fit_names_both_ways_out():
    with pytest.raises(TooLarge, match=r"even one record.*--max-bytes.*--max-record-bytes"):
        run([{"id": 1, "content": "x" * 100}], Limits(max_bytes=50))


def test_the_first_record_is_passed_on_before_the_second_is_read():
    def records():
        yield {"id": 1, "content": "a"}
        raise AssertionError("read too far")

    assert next(iter(bounded(records(), Limits(), Account(Limits())))) == b'{"id":1,"content":"a"}'


def test_a_clamp_reaches_the_strings_of_arguments_and_leaves_the_record_alone():
    record = {"content": "ü" * 9, "thinking": "abc", "tool_calls": [{"name": "x", "arguments": {"a": ["y" * 9, 1]}}]}

    short, cut = clamped(record, 5)

    assert cut
    assert short["content"] == "üü"
    assert short["thinking"] == "abc"
    assert short["tool_calls"][0]["arguments"] == {"a": ["yyyyy", 1]}
    assert record["content"] == "ü" * 9


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 30))
def test_a_cut_text_is_a_beginning_of_the_text_within_the_size(text, size):
    short = cut_text(text, size)

    assert text.startswith(short)
    assert len(short.encode()) <= size
    assert len(text.encode()) <= size or len(short.encode()) > size - 4
