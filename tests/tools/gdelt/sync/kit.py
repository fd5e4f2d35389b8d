"""What the tests of the store share: small files of GDELT's, and a look into a store."""

import gzip
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sqlite3 import connect
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from coreeval.schema import Window
from tests.support.mirror_server import MirrorServer
from tests.tools.gdelt.file_samples import gal_line, gkg_line

NOW = datetime(2026, 10, 5, 12, 0, tzinfo=UTC)
GKG, GAL = "gdeltv2/{}.gkg.csv.zip", "gdeltv3/gal/{}.gal.json.gz"
EVENTS, MENTIONS = "gdeltv2/{}.export.CSV.zip", "gdeltv2/{}.mentions.CSV.zip"
ROWS = 3
"""Articles of a GKG file of the kit."""


def noon() -> datetime:
    """Return the time that the tests hold it to be."""
    return NOW


def stamp(at: datetime) -> str:
    return f"{at:%Y%m%d%H%M%S}"


def quarters(start: datetime, count: int) -> list[datetime]:
    return [start + timedelta(minutes=15) * number for number in range(count)]


def zipped(*entries: tuple[str, str | bytes]) -> bytes:
    """Return an archive; the same entries make identical bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def gkg_file(at: datetime, rows: int = ROWS) -> str:
    lines = (
        gkg_line(
            title=f"Ministers agree on bridge {number} of {at:%H:%M}",
            url=f"https://news.example/{stamp(at)}/{number}",
            date=stamp(at),
            persons="Ann Lee,12",
        )
        for number in range(rows)
    )
    return "".join(line + "\n" for line in lines)


def gkg_zip(at: datetime, rows: int = ROWS) -> bytes:
    return zipped((f"{stamp(at)}.gkg.csv", gkg_file(at, rows)))


def gal_gz(at: datetime) -> bytes:
    when = f"{at:%Y-%m-%dT%H:%M:%SZ}"
    line = gal_line(
        f"Ferries return {stamp(at)}", f"https://gal.example/{stamp(at)}", when, "They do."
    )
    return gzip.compress((line + "\n").encode(), mtime=0)


def event_line(at: datetime, url: str, *, mentions: int = 4, sources: int = 2, root: int = 0,
               sqldate: str = "20261005") -> str:  # fmt: skip
    columns = [""] * 61
    columns[0], columns[1], columns[25] = "1", sqldate, str(root)
    columns[31], columns[32], columns[33] = str(mentions), str(sources), str(mentions)
    columns[59], columns[60] = stamp(at), url
    return "\t".join(columns)


def mention_line(at: datetime, url: str, *, confidence: int = 50, kind: str = "1") -> str:
    columns = ["1", stamp(at), stamp(at), kind, "news.example", url, "1", "-1", "0", "10", "1"]
    return "\t".join([*columns, str(confidence), "1000", "-2.5", "", ""])


def fill(
    mirror: MirrorServer, batches: Iterable[datetime], feeds: Sequence[str] = ("gkg",)
) -> None:
    """Let a mirror have some batches."""
    for at in batches:
        url = f"https://news.example/{stamp(at)}/0"
        if "gkg" in feeds:
            mirror.put(GKG.format(stamp(at)), gkg_zip(at))
        if "gal" in feeds:
            minute = at + timedelta(minutes=3)
            mirror.put(GAL.format(stamp(minute)), gal_gz(minute))
        if "events" in feeds:
            mirror.put(EVENTS.format(stamp(at)), zipped(("e.CSV", event_line(at, url) + "\n")))
        if "mentions" in feeds:
            mirror.put(MENTIONS.format(stamp(at)), zipped(("m.CSV", mention_line(at, url) + "\n")))


def rows_of(store: Path, kind: str = "segments") -> list[dict[str, Any]]:
    """Return the rows of a store's data files, those that are listed and no others."""
    listed = [name for (name,) in asked(store, "SELECT path FROM segments ORDER BY path")]
    found: list[dict[str, Any]] = []
    for name in listed:
        if name.startswith(f"{kind}/"):
            found += pq.read_table(store / name).to_pylist()
    return found


def urls_of(store: Path) -> list[str]:
    return sorted(row["url"] for row in rows_of(store))


def asked(store: Path, query: str) -> list[tuple[Any, ...]]:
    """Ask a store's ledger."""
    with closing(connect(store / "store.db")) as ledger:
        return ledger.execute(query).fetchall()


def data_files(store: Path) -> set[str]:
    """Return the data files that are there, listed or not."""
    return {
        file.relative_to(store).as_posix()
        for kind in ("segments", "signals")
        for file in (store / kind).rglob("*")
        if file.is_file()
    }


def aside_of(store: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of a file that were kept aside."""
    lines = gzip.decompress((store / "aside" / f"{name}.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def window(start: str, end: str) -> Window:
    """Return a window by its days."""
    first, last = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (start, end))
    return Window(start=first, end=last)
