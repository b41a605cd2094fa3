"""The plain bytes of a zstd file, as far as they go: all that stands before damage or a cut, and then an error."""

from __future__ import annotations

import errno
import io
from typing import IO, Any

import zstandard

# The compressed bytes given to the decoder at once: what one of these calls had made is lost when it meets damage.
_PIECE = 4096
_SKIPPED = 1 << 20


class Plain(io.RawIOBase):
    """A zstd file (one frame or several) as a stream of what was compressed, which it closes with itself.

    A seek forward decompresses what it passes, a seek backward starts again. Raises OSError where the file is damaged
    or ends inside a frame, after everything before that place has been read.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._begin()

    def _begin(self) -> None:
        self._decoder: Any = None
        self._made = memoryview(b"")
        self._damage: zstandard.ZstdError | None = None
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only from the beginning")
        if offset < self._position:
            self._source.seek(0)
            self._begin()
        while self._position < offset and self.read(min(offset - self._position, _SKIPPED)):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        while not self._made:
            if self._damage:
                raise OSError(errno.EIO, f"damaged zstd stream after {self._position} plain bytes ({self._damage})")
            piece = self._source.read(_PIECE)
            if not piece and self._decoder is not None:
                raise OSError(errno.EIO, f"zstd stream cut short after {self._position} plain bytes")
            if not piece:
                return 0
            self._made = memoryview(self._decompressed(piece))
        count = min(len(buffer), len(self._made))
        buffer[:count] = self._made[:count]
        self._made = self._made[count:]
        self._position += count
        return count

    def _decompressed(self, piece: bytes) -> bytes:
        made = []
        while piece:
            if self._decoder is None:
                self._decoder = zstandard.ZstdDecompressor().decompressobj()
            try:
                made.append(self._decoder.decompress(piece))
            except zstandard.ZstdError as error:
                self._damage = error
                break
            piece = b""
            if self._decoder.eof:
                piece, self._decoder = self._decoder.unused_data, None
        return b"".join(made)

    def close(self) -> None:
        self._source.close()
        super().close()
