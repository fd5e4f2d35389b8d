"""The bodies of responses, gathered up to a limit: a server decides how much it sends."""

from typing import Final

MOST_BYTES: Final = 8 << 20
"""Bytes of a response that is read as a whole, after unpacking: 8 MiB (own choice). The longest
answer that is read has 1 MiB, the longest list of models 1 MB, and 250 rows of GDELT's 200 kB."""


class BodyTooLong(Exception):
    """A body has more bytes than are read of one, or takes longer than is waited for."""


class Body:
    """Bytes as they come in, unpacked.

    Args:
        most_bytes: How many are taken.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = bytearray()

    def add(self, piece: bytes) -> None:
        """Take the next bytes.

        Raises:
            BodyTooLong: they are too many, together with those before.
        """
        if len(self._bytes) + len(piece) > self._most:
            raise BodyTooLong(f"the response has more than {self._most / (1 << 20):g} MiB")
        self._bytes += piece

    def whole(self) -> bytes:
        """Return all bytes."""
        return bytes(self._bytes)
