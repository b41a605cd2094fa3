"""Compressed files are read as far as they go, from any place, whatever they are made of."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import zstandard
from total_recall.stores._jsonl import open_session

TEXT = b"".join(b"%06d %d\n" % (n, n * n * 7919) for n in range(40_000))


def put(tmp_path: Path, content: bytes) -> str:
    (tmp_path / "a.zst").write_bytes(content)
    return str(tmp_path / "a.zst")


def frames(*parts: bytes) -> bytes:
    return b"".join(zstandard.ZstdCompressor(write_checksum=True).compress(part) for part in parts)


def read(path: str) -> tuple[bytes, str | None]:
    """What can be read of a file, and the error at its end."""
    lines = []
    with open_session(path) as source:
        try:
            for line in source:
                lines.append(line)  # noqa: PERF402 - what was read before the error counts
        except OSError as error:
            return b"".join(lines), error.strerror
    return b"".join(lines), None


@pytest.mark.parametrize("parts", [(TEXT,), (TEXT[:10], TEXT[10:]), (b"", TEXT, b""), ()])
def test_one_frame_or_several_are_one_text(tmp_path: Path, parts: tuple[bytes, ...]) -> None:
    """Frames written one after the other are one stream."""
    assert read(put(tmp_path, frames(*parts))) == (b"".join(parts), None)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_cut_is_an_error_after_what_stands_before_it(tmp_path: Path, share: float) -> None:
    """A stream that ends inside a frame is never taken for a whole one."""
    whole = frames(TEXT[:1000], TEXT[1000:])
    text, error = read(put(tmp_path, whole[: int(len(whole) * share)]))

    assert error is not None
    assert "cut short" in error
    assert TEXT.startswith(text)
    assert len(text) > 900


def test_damage_is_an_error_after_what_stands_before_it(tmp_path: Path) -> None:
    """Of a frame with a damaged block, the blocks before it are read."""
    whole = bytearray(frames(TEXT))
    whole[len(whole) * 3 // 4 : len(whole) * 3 // 4 + 64] = b"\xff" * 64
    text, error = read(put(tmp_path, bytes(whole)))

    assert error is not None
    assert "damaged" in error
    assert TEXT.startswith(text)
    assert len(text) > len(TEXT) // 2


def test_bytes_after_a_frame_that_are_none_are_an_error(tmp_path: Path) -> None:
    """The whole frame before them is read."""
    text, error = read(put(tmp_path, frames(TEXT[:1000]) + b"no frame"))

    assert text == TEXT[: len(text)]
    assert len(text) > 980
    assert error is not None


@pytest.mark.parametrize("places", [(0,), (5,), (100_000, 3), (3, 100_000, 2), (len(TEXT),), (10**9,)])
def test_any_place_can_be_sought(tmp_path: Path, places: tuple[int, ...]) -> None:
    """Offsets are those of the plain text, forward and backward."""
    with open_session(put(tmp_path, frames(TEXT[:5000], TEXT[5000:]))) as source:
        for place in places:
            source.seek(place)

            assert source.read(20) == TEXT[place : place + 20]


def test_only_the_beginning_is_a_place_to_count_from(tmp_path: Path) -> None:
    """The length of the plain text is not known before it has been read."""
    with open_session(put(tmp_path, frames(TEXT))) as source, pytest.raises(io.UnsupportedOperation):
        source.seek(0, io.SEEK_END)
