"""Times of every unit and form, as RFC 3339 that sorts."""

import pytest
from total_recall.times import epoch, from_epoch, rfc3339, when

NOW = 1_796_080_000.0  # 2026-11-30T23:06:40Z


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (1796073305, "2026-11-30T21:15:05.000Z"),
        (1796073305.25, "2026-11-30T21:15:05.250Z"),
        (1796073305123, "2026-11-30T21:15:05.123Z"),
        (1796073305123456, "2026-11-30T21:15:05.123Z"),
        (1796073305123456789, "2026-11-30T21:15:05.123Z"),
        ("1796073305123", "2026-11-30T21:15:05.123Z"),
        ("2026-11-30T21:15:05.123Z", "2026-11-30T21:15:05.123Z"),
        ("2026-11-30T21:15:05Z", "2026-11-30T21:15:05.000Z"),
        ("2026-11-30T21:15:05.123456+00:00", "2026-11-30T21:15:05.123Z"),
        ("2026-12-01T06:15:05+09:00", "2026-11-30T21:15:05.000Z"),
        ("2026-11-30T21:15:05", "2026-11-30T21:15:05.000Z"),
        ("2026-11-30", "2026-11-30T00:00:00.000Z"),
        (0, None),
        (-5, None),
        (1e30, None),
        (float("nan"), None),
        (True, None),
        (None, None),
        ([], None),
        ("yesterday", None),
        ("", None),
        ("2026-13-45T99:00:00Z", None),
        ("2026-11-30T21:15:05.123\u0662", None),
        ("2026-11-30T21:15:05,123Z", "2026-11-30T21:15:05.123Z"),
        ("2026-W49-1T21:15:05.123Z", "2026-11-30T21:15:05.123Z"),
        ("2026-11-30t21:15:05.123z", "2026-11-30T21:15:05.123Z"),
        ("1970-01-01T00:00:00.000Z", None),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_a_time_is_told_by_its_magnitude_or_read_as_written(written, expected):
    assert rfc3339(written) == expected


def test_the_host_zone_never_matters(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert rfc3339("2026-11-30T21:15:05") == "2026-11-30T21:15:05.000Z"
        assert epoch("2026-11-30T21:15:05") == 1796073305
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("90m", "2026-11-30T21:36:40.000Z"),
        ("12h", "2026-11-30T11:06:40.000Z"),
        ("3d ago", "2026-11-27T23:06:40.000Z"),
        ("2w", "2026-11-16T23:06:40.000Z"),
        ("999999d", "1970-01-01T00:00:00.001Z"),
        ("2026-09-15", "2026-09-15T00:00:00.000Z"),
        ("2026-09-15T10:00:00+02:00", "2026-09-15T08:00:00.000Z"),
        ("now", "2026-11-30T23:06:40.000Z"),
    ],
)
def test_what_a_person_types_is_a_moment(typed, expected):
    assert when(typed, NOW) == expected


@pytest.mark.parametrize("typed", ["tuesday", "", "12", "-3h", "3x"])
def test_what_is_no_moment_is_refused_with_the_forms_that_work(typed):
    with pytest.raises(ValueError, match="RFC 3339, a date"):
        when(typed, NOW)


def test_a_moment_keeps_its_milliseconds():
    for number in range(1_796_073_305_000, 1_796_073_306_000, 7):
        assert from_epoch(number / 1000) == f"2026-11-30T21:15:05.{number % 1000:03d}Z"
