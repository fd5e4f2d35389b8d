"""Zip archives of others: how their files may be packed, and what damaged ones raise."""

import struct
import zlib
from typing import Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipInfo

ARCHIVE_DAMAGE: Final = (
    BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError,
)  # fmt: skip
"""What reading an archive raises that is damaged, locked (RuntimeError), of a form that zipfile
does not know (NotImplementedError), or names its files in no UTF-8 (UnicodeDecodeError)."""
_ENCRYPTED: Final = 1


def check_packing(member: ZipInfo) -> None:
    """Reject archive members of a kind that publishers, GDELT and spreadsheets never write.

    Raises:
        BadZipFile: the file is encrypted, or not compressed with deflate.
    """
    if member.flag_bits & _ENCRYPTED:
        raise BadZipFile("it is encrypted")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise BadZipFile(f"it is packed by method {member.compress_type}; deflate (8) is read")
