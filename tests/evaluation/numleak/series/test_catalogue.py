"""From a name to a series: files beside the YAML, of a library, and of a publisher."""

import io
import os
import time
import zipfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import yaml

from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.series import Series, catalogue, layouts, open_series
from tests.evaluation.numleak.series.kit import PLAIN, read, written
from tests.support.mirror_server import Answer, MirrorServer
from tests.support.numleak_data import FILES, SERIES, beside_numleak

FILE = "date,value\n2020-01,1.5\n2020-02,-2\n"
VALUES = {"2020-01": 1.5, "2020-02": -2.0}
PLAIN_HEADERS = {"Content-Type": "text/csv"}


def own(folder: Path, **changes: object) -> str:
    """Write a definition and return its name."""
    (folder / "toy.yaml").write_text(yaml.safe_dump(PLAIN | changes), encoding="utf-8")
    return "toy.yaml"


def packed_up(files: dict[str, str | bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return archive.getvalue()


# -- on this machine ------------------------------------------------------------------------------


def test_a_file_lies_beside_the_definition(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "toy.csv").write_text(FILE, encoding="utf-8-sig")
    own(tmp_path / "deep")

    series = open_series("deep/toy.yaml", base=tmp_path)

    assert (written(series), series.definition.id) == (VALUES, "toy")
    assert series.origin == str(tmp_path / "deep" / "toy.csv")
    assert len(series.digest) == 64


def test_a_file_given_takes_the_place_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("observation_date,UNRATE\n2020-04-01,14.8\n")

    series = open_series("unrate", base=tmp_path, file=Path("mine.csv"))

    assert written(series) == {"2020-04": 14.8}


def test_a_missing_file_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the file of toy cannot be read") as caught:
        open_series(own(tmp_path), base=tmp_path)

    assert caught.value.where == str(tmp_path / "toy.csv")
    assert caught.value.hint == "set detect.numleak.files: {toy: PATH}"


def test_an_unknown_series_lists_the_built_in_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no built-in series 'gdp'") as caught:
        open_series("gdp", base=tmp_path)

    assert "mkt_rf" in caught.value.hint
    assert "fama-french" in caught.value.hint


# -- archives -------------------------------------------------------------------------------------


def test_the_csv_of_an_archive_is_read_whatever_lies_beside_it() -> None:
    assert written(read(packed_up({"T.CSV": FILE, "readme.md": "x"}))) == VALUES


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (packed_up({"a.csv": FILE, "b.csv": FILE}), "the archive has 2 CSV files instead of one"),
        (packed_up({"a.xls": FILE}), "the archive has 0 CSV files"),
        (packed_up({"a.csv": FILE})[:40], "the archive cannot be unpacked"),
        (b"\xd0\xcf\x11\xe0\0\0", "this is not a text file"),
        (FILE.encode("utf-16"), "this is not a text file"),
    ],
    ids=["two", "none", "cut", "not text", "utf-16"],  # an archive's bytes hold the time
)
def test_what_is_no_csv_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        read(data)


def test_an_archive_is_not_unpacked_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "MOST_BYTES", 1 << 20)
    bomb = packed_up({"a.csv": FILE.encode() + b" " * (1 << 21)})

    assert len(bomb) < 1 << 14
    with pytest.raises(DatasetError, match="more than 1 MiB when unpacked"):
        read(bomb)


# -- of a library ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "first", "last", "count", "value"),
    [
        ("sunspots", "1700", "2008", 309, ("1957", 190.2)),
        ("nile", "1871", "1970", 100, ("1913", 456.0)),
        ("co2", "1958-04", "2001-12", 517, ("2001-12", 371.02)),
        ("elnino", "1950-01", "2010-12", 732, ("1997-12", 27.08)),
        ("macro_unemp", "1959-Q1", "2009-Q3", 203, ("1982-Q4", 10.7)),
        ("macro_gdp", "1960-Q1", "2009-Q3", 199, ("1982-Q3", -2.717)),
    ],
)
def test_series_of_statsmodels_need_no_download(
    tmp_path: Path, name: str, first: str, last: str, count: int, value: tuple[str, float]
) -> None:
    pytest.importorskip("statsmodels")

    series = open_series(name, base=tmp_path)

    assert (str(series.first), str(series.last), len(series.values)) == (first, last, count)
    assert written(series)[value[0]] == pytest.approx(value[1], abs=0.005)
    assert series.origin.startswith("statsmodels 0.")
    assert not [note for note in series.notes if "implausible" in note or "notable" in note]


def test_a_library_that_is_missing_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)

    with pytest.raises(DatasetError, match="statsmodels, which is not installed") as caught:
        open_series("nile", base=tmp_path)

    assert caught.value.hint.startswith("pip install 'coreeval[series]', or set detect.numleak")


# -- of a publisher -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mirror() -> Iterator[MirrorServer]:
    with MirrorServer().running() as running:
        yield running


def from_url(folder: Path, mirror: MirrorServer, path: str) -> Series:
    source = {"format": "csv", "url": f"{mirror.url}/{path}"}
    cache = folder / "cache"
    clock = datetime(2026, 11, 21, tzinfo=UTC)
    return open_series(own(folder, source=source), base=folder, cache=cache, clock=lambda: clock)


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "cache").glob("*")) if (folder / "cache").exists() else []


def test_a_file_is_fetched_once_and_kept(tmp_path: Path, mirror: MirrorServer) -> None:
    mirror.put("once.csv", Answer(body=FILE.encode(), headers=PLAIN_HEADERS), Answer(status=500))

    first = from_url(tmp_path, mirror, "once.csv?id=X")
    again = from_url(tmp_path, mirror, "once.csv?id=X")

    assert written(first) == written(again) == VALUES
    assert (first.digest, first.origin) == (again.digest, f"{mirror.url}/once.csv?id=X")
    assert mirror.asked.count("once.csv") == 1
    assert [file.name.partition("-")[2] for file in kept(tmp_path)] == ["once.csv_id=X"]


def test_a_file_kept_for_long_says_how_to_renew_it(tmp_path: Path, mirror: MirrorServer) -> None:
    mirror.put("old.csv", Answer(body=FILE.encode(), headers=PLAIN_HEADERS))
    fresh = from_url(tmp_path, mirror, "old.csv")
    [file] = kept(tmp_path)
    then = time.mktime((2026, 9, 1, 12, 0, 0, 0, 0, 0))
    os.utime(file, (then, then))

    stale = from_url(tmp_path, mirror, "old.csv")

    assert not [note for note in fresh.notes if "fetched" in note]
    assert stale.notes[0] == (
        f"the file was fetched on 2026-09-01; to download it again, delete {file}"
    )


def test_the_present_year_is_put_into_the_url(tmp_path: Path, mirror: MirrorServer) -> None:
    mirror.put("1895-2026.csv", Answer(body=FILE.encode(), headers=PLAIN_HEADERS))

    assert written(from_url(tmp_path, mirror, "1895-{year}.csv")) == VALUES


def test_a_publisher_may_have_moved_its_file(tmp_path: Path, mirror: MirrorServer) -> None:
    body = packed_up({"toy.CSV": FILE})
    mirror.put("new.zip", Answer(body=body, headers={"Content-Type": "application/zip"}))
    mirror.put("old.zip", Answer(status=302, headers={"Location": "/new.zip"}))

    assert written(from_url(tmp_path, mirror, "old.zip")) == VALUES


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(status=404), "the publisher's server responded with status 404"),
        (Answer(status=302, headers={"Location": "/loop"}), "redirect"),
        (Answer(body=FILE.encode() * 9000, cut=True), "the file cannot be downloaded:"),
        (Answer(body=b"<html>log in first</html>"), "columns besides the dates"),
        (Answer(body=b""), "the file is empty"),
    ],
)
def test_what_is_not_the_whole_file_is_not_kept(
    tmp_path: Path, mirror: MirrorServer, answer: Answer, message: str
) -> None:
    mirror.put("loop", answer)

    with pytest.raises(DatasetError, match=message) as caught:
        from_url(tmp_path, mirror, "loop")

    assert caught.value.where == f"{mirror.url}/loop"
    assert kept(tmp_path) == []


def test_a_file_beyond_the_bound_is_not_taken(
    tmp_path: Path, mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "MOST_BYTES", 1 << 20)
    mirror.put("big.csv", Answer(body=b" " * (3 << 20), headers=PLAIN_HEADERS))

    with pytest.raises(DatasetError, match="the response has more than 1 MiB"):
        from_url(tmp_path, mirror, "big.csv")

    assert kept(tmp_path) == []


def test_a_kept_file_beyond_the_bound_is_not_read(
    tmp_path: Path, mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.put("kept.csv", Answer(body=FILE.encode(), headers=PLAIN_HEADERS))
    from_url(tmp_path, mirror, "kept.csv")
    [file] = kept(tmp_path)
    os.truncate(file, 1 << 21)
    monkeypatch.setattr(catalogue, "MOST_BYTES", 1 << 20)
    with pytest.raises(DatasetError, match="has more than 1 MiB") as caught:
        from_url(tmp_path, mirror, "kept.csv")
    assert caught.value.where == str(file)


def test_without_a_network_the_url_and_the_way_around_are_named(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/ftp/F-F_Research_Data_Factors_CSV.zip"
    name = own(tmp_path, source={"format": "french", "url": url}, column="SMB")

    with pytest.raises(DatasetError, match="the file cannot be downloaded") as caught:
        open_series(name, base=tmp_path, cache=tmp_path / "cache")

    assert caught.value.where == url
    assert "detect.numleak.files: {toy: PATH}" in caught.value.hint
    assert kept(tmp_path) == []


# -- the files of NumLeak's authors ---------------------------------------------------------------


@beside_numleak
@pytest.mark.parametrize(
    ("name", "count", "first", "value"),
    [
        ("mkt_rf", 1196, "1926-07", ("1987-10", -23.19)),
        ("smb", 1196, "1926-07", ("2000-02", 21.25)),
        ("hml", 1196, "1926-07", ("2020-03", -13.83)),
        ("unrate", 938, "1948-01", ("2020-04", 14.8)),
        ("cpi_yoy", 938, "1948-01", ("1980-01", 13.868613)),
        ("sp500", 1865, "1871-02", ("1871-02", 1.351351)),
        ("noaa_us_tavg", 540, "1980-01", ("1980-02", 32.85)),
    ],
)
def test_real_files_are_read(
    tmp_path: Path, name: str, count: int, first: str, value: tuple[str, float]
) -> None:
    series = open_series(name, base=tmp_path, file=FILES[name])

    assert (len(series.values), str(series.first)) == (count, first)
    assert written(series)[value[0]] == value[1]
    assert not [note for note in series.notes if "implausible" in note or "notable" in note]


@beside_numleak
def test_a_month_that_fred_leaves_empty_has_no_value_and_gives_no_change(tmp_path: Path) -> None:
    october = Period(date(2025, 10, 1), "monthly")

    for name in ("unrate", "cpi_yoy"):
        series = open_series(name, base=tmp_path, file=FILES[name])
        assert october not in series.values
        assert october.shift(-1) in series.values
        assert "1 date has no value between 1948-01 and 2026-03: 2025-10" in series.notes


@beside_numleak
def test_the_annual_block_of_frenchs_file_is_a_series_of_its_own(tmp_path: Path) -> None:
    path = SERIES / "F-F_Research_Data_Factors.csv"
    source = {"format": "french", "path": str(path)}
    name = own(tmp_path, source=source, column="Mkt-RF", frequency="annual")

    series = open_series(name, base=tmp_path)

    assert (len(series.values), written(series)["1927"], written(series)["2025"]) == (
        99, 29.44, 13.30,
    )  # fmt: skip
