"""Archives and tables that are made to harm whoever opens them, in every place that opens some.

Each is read by the real command in a process that may have `MEMORY` of address space and
`SECONDS` of processor time. It may be left out as bad, or be refused with one message; the process
may neither die, nor write outside its folders, nor say that the fault is CoreEval's.
"""

import gzip
import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import yaml

from benchmarks.chaos.cases import Case, Outcome
from benchmarks.chaos.processes import Said, say
from coreeval.graph.bundled import demo_data, write_configs

MEMORY = 4 << 30
SECONDS = 120
BOMB = 10 << 30
"""Bytes that a bomb unpacks to."""
CANARY = "canary-of-the-campaign"
SERIES = """
id: wind
name: the wind power index of Nordhaven (NWPI)
quantity: monthly change
unit: percent
sign: signed
decimals: 1
frequency: monthly
column: level
release_lag_days: 20
"""


# -- zips -----------------------------------------------------------------------------------------


def zipped(files: Sequence[tuple[str | zipfile.ZipInfo, bytes]]) -> bytes:
    """Return an archive of some files."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return made.getvalue()


def encrypted(content: bytes) -> bytes:
    """Return an archive whose file says that it is encrypted."""
    made = bytearray(zipped([("a.csv", content)]))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        made[made.index(mark) + place] |= 1
    return bytes(made)


def linked(content: bytes) -> bytes:
    """Return an archive with a symbolic link out of it."""
    link = zipfile.ZipInfo("a.csv")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    return zipped([(link, b"/etc/passwd"), ("b.csv", content)])


def bomb() -> bytes:
    """Return an archive of 10 MB that unpacks to 10 GB, of repeated deflate blocks."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = b"\0" * (1 << 24)
    blocks = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = blocks * (BOMB // len(piece)) + packer.flush()
    made = bytearray(zipped([("a.csv", b"x")]))
    start = made.index(b"PK\x01\x02")
    directory = bytearray(made[start:])
    name = 30 + len("a.csv")
    head = bytearray(made[:name])
    sizes = struct.pack("<II", len(packed), 0xFFFFFFFE)
    head[18:26], directory[20:28] = sizes, sizes
    end = directory.index(b"PK\x05\x06")
    directory[end + 16 : end + 20] = struct.pack("<I", len(head) + len(packed))
    return bytes(head) + packed + bytes(directory)


def gzip_bomb(beginning: bytes) -> bytes:
    """Return gzip that begins like something good and unpacks to 10 GB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    begun = packer.compress(beginning) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = b" " * (1 << 24)
    block = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    return begun + block * (BOMB // len(piece)) + packer.flush()


def wrong_checksum(content: bytes) -> bytes:
    """Return an archive whose checksum is another one."""
    made = bytearray(zipped([("a.csv", content)]))
    made[14] ^= 0xFF
    made[made.index(b"PK\x01\x02") + 16] ^= 0xFF
    return bytes(made)


def zips(content: bytes) -> dict[str, bytes]:
    """Return hostile archives, most of them around something good."""
    odd = zipfile.ZipInfo("a.csv")
    good = zipped([("a.csv", content)])
    latin = zipped([("\u00e9.csv", content)]).replace("\u00e9".encode(), b"\xe9\xff")
    return {
        "encrypted": encrypted(content),
        "a zip in a zip": zipped([("a.csv.zip", zipped([("a.csv.zip", good)]))]),
        "names with ../": zipped([(f"../../{CANARY}", content), (f"..\\..\\{CANARY}", content)]),
        "absolute names": zipped([(f"/tmp/{CANARY}", content), (f"C:\\{CANARY}", content)]),
        "a symbolic link": linked(content),
        "a bomb of 10 GB": bomb(),
        "cut in half": good[: len(good) // 2],
        "without its directory": good[: good.index(b"PK\x01\x02")],
        "a wrong checksum": wrong_checksum(content),
        "names that are not UTF-8": latin,
        "no files": zipped([]),
        "the same name twice": twice(odd, content),
        "a directory of nonsense": good[:-40] + b"\xff" * 40,
        "gzip, a bomb of 10 GB": gzip_bomb(content[:1000]),
        "gzip, cut": gzip.compress(content)[:-20],
        "gzip in gzip": gzip.compress(gzip.compress(content)),
        "zstd": b"\x28\xb5\x2f\xfd" + content[:100],
        "tar": b"a.csv".ljust(257, b"\0") + b"ustar\x0000" + content[:100],
    }


def twice(info: zipfile.ZipInfo, content: bytes) -> bytes:
    """Return an archive with two files of one name."""
    made = bytearray(zipped([(info, content), ("b.csv", content)]))
    return bytes(made.replace(b"b.csv", b"a.csv"))


# -- Parquet --------------------------------------------------------------------------------------


def parquets() -> dict[str, bytes]:
    """Return hostile Parquet files."""
    good = table({"id": ["a"], "text": ["t"], "label": [0]})
    deep: object = "x"
    kind = pa.string()
    for _ in range(90):
        deep, kind = [deep], pa.list_(kind)
    many = pa.table(
        {
            "id": pa.nulls(1 << 22, pa.string()),
            "text": pa.nulls(1 << 22, pa.string()),
            "label": pa.nulls(1 << 22, pa.int64()),
        }
    )
    wide = {f"c{number}": ["x"] for number in range(20_000)}
    footer = bytearray(good)
    footer[-8:-4] = struct.pack("<I", 0x7FFFFFFF)
    return {
        "nested ninety deep": parquet(
            pa.table({"id": ["a"], "text": pa.array([deep], kind), "label": [0]})
        ),
        "four million empty rows": parquet(many),
        "a text of 1 GB, packed": parquet(
            pa.table({"id": ["a"], "text": ["x" * (1 << 28)], "label": [0]})
        ),
        "20,000 columns": table(wide),
        "a footer of 2 GB": bytes(footer),
        "cut in half": good[: len(good) // 2],
        "its bytes shuffled": good[:4] + bytes(Random(1).sample(range(256), 200)) + good[-100:],
        "a magic and no more": b"PAR1PAR1",
        "empty": b"",
    }


def table(columns: Mapping[str, Sequence[object]]) -> bytes:
    """Return a table as Parquet."""
    return parquet(pa.table(dict(columns)))


def parquet(made: object) -> bytes:
    """Return a table as Parquet, packed."""
    out = io.BytesIO()
    pq.write_table(made, out, compression="zstd")
    return out.getvalue()


# -- who reads them -------------------------------------------------------------------------------


def sync(place: Path, name: str, content: bytes) -> Said:
    """Read an archive as GDELT's."""
    ending = "gz" if name.startswith("gzip") else "zip"
    (place / f"20260610120000.gkg.csv.{ending}").write_bytes(content)
    return bounded("gdelt", "sync", "--from", place, "--store", place / "store", place=place)


def refresh(place: Path, _name: str, content: bytes) -> Said:
    """Read a table as a benchmark."""
    (place / "data").mkdir()
    for split in ("train", "test"):
        (place / "data" / f"{split}.parquet").write_bytes(content)
    written = next(path for path in write_configs(place) if path.stem == "emotion")
    raw = yaml.safe_load(written.read_text("utf-8"))
    raw["dataset"] = {"format": "parquet", "path": str(place / "data"), "split": "test"}
    written.write_text(yaml.safe_dump(raw), "utf-8")
    return bounded("validate", written, place=place)


def series(place: Path, name: str, content: bytes) -> Said:
    """Read an archive as a publisher's series."""
    (place / "file.zip").write_bytes(content)
    definition = yaml.safe_load(SERIES) | {"source": {"path": "file.zip", "dates": ["y", "m"]}}
    (place / "series.yaml").write_text(yaml.safe_dump(definition), "utf-8")
    asked = ("--series", place / "series.yaml", "--backtest", "2015:2016")
    return bounded("detect", "numleak", *asked, "--model", "offline:fluent", place=place)


def cassette(place: Path, _name: str, content: bytes) -> Said:
    """Read an archive as a cassette."""
    (place / "c.cassette").write_bytes(content)
    return bounded("cassette", "replay", place / "c.cassette", "--out", place / "out", place=place)


def answers(place: Path, _name: str, content: bytes) -> Said:
    """Read a packed file as recorded answers."""
    (place / "a.jsonl.gz").write_bytes(content)
    asked = ("--metric", "rouge_l", "--consistency", "jaccard")
    return bounded("detect", "pcr", "--pairs", place / "a.jsonl.gz", *asked, place=place)


def bounded(*arguments: object, place: Path) -> Said:
    """Run a command with bounded memory and time."""
    env = {"HOME": str(place), "COREEVAL_HOME": str(place / "home")}
    limits = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    return say(*arguments, folder=place, env=env | limits, memory=MEMORY, seconds=SECONDS)


Read = Callable[[Path, str, bytes], Said]


def attempt(read: Read, make: Callable[[], dict[str, bytes]]) -> Callable[[Path, Random], Outcome]:
    """Return what gives each archive to a reader."""

    def go(folder: Path, _chance: Random) -> Outcome:
        found, every = list[str](), make()
        for number, (name, content) in enumerate(every.items()):
            place = folder / "a" / "b" / str(number)
            place.mkdir(parents=True)
            said = read(place, name, content)
            if wrong := said.defect(0, 1, 2, hinted=False):
                found.append(f"{name}: {wrong}")
            elif any(CANARY in path.name for path in [*folder.rglob("*"), *Path("/tmp").iterdir()]):
                found.append(f"{name}: a file was written where its archive says")
            shutil.rmtree(place)
        return Outcome(
            tried=len(every),
            held=len(every) - len(found),
            measured=f"at most {MEMORY >> 30} GB of addresses",
            broken=tuple(found),
        )

    return go


def news() -> dict[str, bytes]:
    """Return archives of news."""
    return zips((demo_data() / "news" / "20260610120000.gkg.csv").read_bytes())


def numbers() -> dict[str, bytes]:
    """Return archives of a series."""
    dates = [(year, month) for year in range(2000, 2017) for month in range(1, 13)]
    rows = "\n".join(f"{year},{month},1{month}.{year % 10}" for year, month in dates)
    return zips(f"y,m,level\n{rows}\n".encode())


def items() -> dict[str, bytes]:
    """Return packed items."""
    return zips(b'{"id": "1", "text": "a text of a benchmark"}\n' * 50)


PROMISE = "counted as bad, or one message; bounded memory; nothing is written where an archive says"
ARCHIVES = tuple(
    Case(name=f"hostile {what}", promise=PROMISE, attempt=attempt(read, make))
    for what, read, make in (
        ("archives of news", sync, news),
        ("archives of a series", series, numbers),
        ("cassettes", cassette, items),
        ("packed answers", answers, items),
        ("Parquet files", refresh, parquets),
    )
)
