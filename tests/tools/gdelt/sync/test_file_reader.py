"""Unpacking: lines as they are, damage after what is good, and never beyond a limit."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from coreeval.tools.gdelt.rows import FileDamage
from coreeval.tools.gdelt.sync import file_reader
from coreeval.tools.gdelt.sync.file_reader import PIECE, FileTooLarge, line_groups
from tests.tools.gdelt.sync.kit import zipped

PLENTY = 1 << 30
TEXT = b"".join(b"%d %s\n" % (number, b"x" * (number % 3000)) for number in range(2000))


def lines(path: Path, most: int = PLENTY, *, one_entry: bool = False) -> list[bytes]:
    return [line for group in line_groups(path, most, one_entry=one_entry) for line in group]


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("end", [b"", b"last", b"\n"])
def test_the_same_lines_in_every_packing(tmp_path: Path, end: bytes) -> None:
    text = TEXT + end
    expected = text.split(b"\n")
    expected = expected if expected[-1] else expected[:-1]
    two_members = gzip.compress(text[:5000]) + gzip.compress(text[5000:])
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr("x", text)
    many = b"".join(gzip.compress(text[at : at + 700]) for at in range(0, len(text), 700))
    packings = [
        text,
        gzip.compress(text),
        two_members,
        many + bytes(512),
        zipped(("x", text)),
        stored.getvalue(),
    ]
    for number, content in enumerate(packings):
        assert lines(put(tmp_path / f"{number}", content)) == expected
    assert len(TEXT) > 3 * PIECE


def test_several_members_are_one_file_unless_one_is_asked_for(tmp_path: Path) -> None:
    path = put(tmp_path / "x", zipped(("../../a", "one\ntwo"), ("/b", "three")))
    assert lines(path) == [b"one", b"two", b"three"]
    with pytest.raises(FileDamage, match="files instead of one"):
        lines(path, one_entry=True)
    assert not (tmp_path.parent.parent / "a").exists()


@pytest.mark.parametrize("pack", [gzip.compress, lambda text: zipped(("x", text))])
def test_a_bomb_is_left_at_the_limit(tmp_path: Path, pack: "type[bytes]") -> None:
    path = put(tmp_path / "bomb", pack(b"0" * 80_000_000))
    assert path.stat().st_size < 200_000
    with pytest.raises((FileTooLarge, FileDamage)):
        lines(path, 1 << 20)


def test_a_bomb_of_lines_is_left_at_the_limit(tmp_path: Path) -> None:
    path = put(tmp_path / "bomb", gzip.compress(b"row\n" * 5_000_000))
    got = 0
    with pytest.raises(FileTooLarge, match="more than 4 MB"):
        for group in line_groups(path, 4 << 20):
            got += len(group)
    assert got <= 1 << 20


@pytest.mark.parametrize("packing", ["gz", "zip"])
def test_a_cut_archive_gives_what_is_left(tmp_path: Path, packing: str) -> None:
    whole = gzip.compress(TEXT) if packing == "gz" else _with_directory_kept(zipped(("x", TEXT)))
    path = put(tmp_path / "x", whole if packing == "zip" else whole[:-40])
    found: list[bytes] = []
    with pytest.raises(FileDamage):
        for group in line_groups(path, PLENTY):
            found += group
    assert found[:1000] == TEXT.split(b"\n")[:1000]


def _with_directory_kept(archive: bytes) -> bytes:
    """Damage the packed bytes near their end; the archive's directory stays as it is."""
    at = archive.index(b"PK\x01\x02") - 30
    return archive[:at] + bytes(20) + archive[at + 20 :]


@pytest.mark.parametrize(
    "content",
    [b"PK\x03\x04 and nothing else", b"\x1f\x8b nonsense", zipped(("x", TEXT))[:-30]],
)
def test_what_cannot_be_unpacked_is_damaged(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(FileDamage):
        lines(put(tmp_path / "x", content))


def test_an_encrypted_archive_is_damaged(tmp_path: Path) -> None:
    archive = bytearray(zipped(("x", TEXT)))
    archive[archive.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(FileDamage, match="encrypted"):
        lines(put(tmp_path / "x", bytes(archive)))


def test_an_endless_line_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "LONGEST_LINE", 1 << 20)
    with pytest.raises(FileDamage, match="a line of more than"):
        lines(put(tmp_path / "x", b"short\n" + b"x" * 3_000_000))
