"""Foreign zip archives: the packing that is accepted, and the errors of damaged ones."""

import struct
import zlib
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipInfo

ARCHIVE_DAMAGE: Final = (
    BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError,
)  # fmt: skip
"""The errors raised when reading an archive that is damaged, encrypted (RuntimeError), in a format
unknown to zipfile (NotImplementedError), or has file names that are not UTF-8 (UnicodeDecodeError).
"""
_ENCRYPTED: Final = 1


def check_packing(member: ZipInfo) -> None:
    """Reject archive members of a kind that publishers, GDELT and spreadsheets never write.

    Raises:
        BadZipFile: the file is encrypted, or not compressed with deflate.
    """
    if member.flag_bits & _ENCRYPTED:
        raise BadZipFile("it is encrypted")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        method = member.compress_type
        raise BadZipFile(f"it is compressed with method {method} instead of deflate (8)")
