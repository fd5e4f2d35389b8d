"""`coreeval.numleak`: the same verdict as the command, from answers and values in memory."""

import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from coreeval.api.numleak import NumleakResult, numleak
from coreeval.api.series_values import Values
from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from tests.api.documents import read_document
from tests.cli.kit import Shell
from tests.evaluation.numleak.audits import guesses, knows, refuses, series, write
from tests.support.tides import tides

DRAWS = 100
Row = dict[str, object]


@pytest.fixture(scope="module")
def about() -> Series:
    """A monthly series in percent without any pattern."""
    return series(family=None)


def truth(about: Series) -> dict[str, float]:
    return {str(period): value for period, value in about.values.items()}


def answers(replies: Iterator[Reply] | list[Reply]) -> list[Row]:
    return [{"date": reply.date, "response": reply.response} for reply in replies]


def frame_of(values: dict[str, float]) -> pd.Series:
    return pd.Series(values.values(), index=pd.to_datetime(list(values)))


VALUES: dict[str, Callable[[dict[str, float]], Values]] = {
    "mapping": lambda known: known,
    "mapping of dates": lambda known: {date.fromisoformat(f"{m}-01"): v for m, v in known.items()},
    "pairs": lambda known: list(known.items()),
    "dicts": lambda known: [{"date": day, "value": value} for day, value in known.items()],
    "series": frame_of,
    "frame": lambda known: pd.DataFrame({"date": list(known), "value": known.values()}),
    "frame with an index": lambda known: frame_of(known).rename("return").to_frame(),
    "arrow": lambda known: pa.table({"date": list(known), "value": list(known.values())}),
    "month ends": lambda known: pd.Series(
        known.values(), index=pd.to_datetime(list(known)) + pd.offsets.MonthEnd(0)
    ),
    "periods": lambda known: pd.Series(known.values(), index=pd.PeriodIndex(known, freq="M")),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_in_any_form_give_the_same_verdict(about: Series, kind: str) -> None:
    rows = answers(knows("m", about))
    found = numleak(rows, VALUES[kind](truth(about)), unit="percent", draws=DRAWS)
    assert found.verdict == "memorized"
    assert found.reasons
    [row] = found.table
    assert (row["model"], row["series"], row["n"]) == ("model", "series", 60)
    assert row["within_tolerance"] == row["pearson_r"] == row["parse_rate"] == 1.0
    assert row["parse_rate_low"] > 0.9 and row["tolerance"] == 0.25  # type: ignore[operator]
    assert len(found.bad_rows) == 0
    assert read_document(found)["series"][0]["notes"][0].startswith(
        "the frequency (monthly) is inferred"
    )


def test_recorded_answers_get_the_document_of_the_command(shell: Shell) -> None:
    own = tides(shell.folder)
    replies = [*knows("a", own), *guesses("b", own), *refuses("c", own)]
    file = write(shell.folder / "said.jsonl", replies)
    said = shell(
        "detect", "numleak", "--responses", file, "--series", "tides.yaml", "--cutoff", "a=2024-06",
        "--draws", str(DRAWS), "--json",
    ).document  # fmt: skip
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for given in (file, rows):
        found = numleak(
            given, {"tides": "tides.yaml"}, cutoff={"a": "2024-06"}, draws=DRAWS
        ).document
        assert {**found, "responses": []} == {**said, "responses": []}
    verdicts = numleak(rows, {"tides": "tides.yaml"}, draws=DRAWS).verdicts
    assert verdicts == {
        ("a", "tides"): "memorized", ("b", "tides"): "fabricating", ("c", "tides"): "refusing",
    }  # fmt: skip


def test_the_truth_may_be_in_the_answers(shell: Shell, about: Series) -> None:
    known = truth(about)
    rows = [{**row, "truth": known[str(row["date"])]} for row in answers(knows("m", about))]
    recorded = [{"model": "model", "series": "series", **row} for row in rows]
    shell.write("said.jsonl", "".join(f"{json.dumps(row)}\n" for row in recorded))
    options = ("--responses", "said.jsonl", "--draws", str(DRAWS), "--json")
    said = shell("detect", "numleak", *options).document
    found = read_document(numleak(rows, draws=DRAWS))
    for document in (found, said):
        text = json.dumps(document).replace("said.jsonl", "<answers>")
        document.update(json.loads(text))
    assert found == said


def test_a_stated_unit_counts_if_the_truth_is_in_the_answers(about: Series) -> None:
    known = {day: value + 50 for day, value in truth(about).items()}
    rows: list[Row] = [
        {"date": day, "response": f"{value:.2f} million", "truth": value}
        for day, value in known.items()
    ]
    assert numleak(rows, draws=DRAWS).verdict == "inconclusive"
    found = numleak(rows, unit="million", tolerances=[0.5], name="people", draws=DRAWS)
    [said] = read_document(found)["series"]
    assert (said["verdict"], said["unit"], said["name"]) == ("memorized", "million", "people")
    assert "the tolerance is 0.5 million" in said["notes"][0]


@pytest.mark.parametrize("make", [list, pd.DataFrame, pa.Table.from_pylist])
def test_answers_in_any_form_are_read(
    about: Series, make: Callable[[list[Row]], list[Row]]
) -> None:
    rows: list[Row] = [
        {"date": f"{row['date']}-01", "response": row["response"], "model": "mine"}
        for row in answers(knows("m", about))
    ]
    found = numleak(make(rows), truth(about), name="My index", unit="percent", draws=DRAWS)
    assert found.verdicts == {("mine", "my-index"): "memorized"}
    assert read_document(found)["series"][0]["name"] == "My index"


def test_a_frame_with_an_index_of_dates_is_read(about: Series) -> None:
    rows = answers(knows("m", about))
    frame = pd.DataFrame({"response": [row["response"] for row in rows]})
    frame.index = pd.to_datetime([str(row["date"]) for row in rows])
    assert numleak(frame, truth(about), draws=DRAWS).verdict == "memorized"


def test_numbers_are_answers() -> None:
    known = {f"{year}": float(year % 7) + year / 100 for year in range(1960, 2020)}
    rows: list[Row] = [{"date": int(year), "response": value} for year, value in known.items()]
    found = numleak(rows, known, draws=DRAWS)
    [row] = found.table
    assert row["parsed"] == 60 and row["mae"] == 0
    assert read_document(found)["series"][0]["unit"] == "units"


def test_several_series_are_told_apart(about: Series) -> None:
    other = series("waves", seed=8, family=None)
    rows: list[Row] = [
        {"series": name, **row}
        for name, one in (("tides", about), ("waves", other))
        for row in answers(knows("m", one))
    ]
    by_name = {"tides": truth(about), "waves": frame_of(truth(other))}
    table = [
        {"series": name, "date": day, "value": value}
        for name, one in (("tides", about), ("waves", other))
        for day, value in truth(one).items()
    ]
    for values in (by_name, table, pd.DataFrame(table)):
        found = numleak(rows, values, unit="percent", draws=DRAWS)
        assert set(found.verdicts.values()) == {"memorized"} and len(found.verdicts) == 2
    with pytest.raises(UsageError, match="there are 2 audits: model on tides, model on waves"):
        _ = found.verdict
    with pytest.raises(UsageError, match="the answers are about 2 series: tides, waves"):
        numleak(rows, truth(about), draws=DRAWS)
    unused = numleak(rows[:60], by_name, draws=DRAWS)
    assert unused.document["notes"] == ["no answer is about the series waves"]


def test_bad_rows_are_counted_and_shown(about: Series) -> None:
    rows: list[Row] = [
        *answers(knows("m", about)),
        {"date": "2001-01"},
        {"date": "2000-01", "response": "1"},
    ]
    values = [
        *truth(about).items(),
        ("2000-02", 99.0),
        ("soon", 1.0),
        ("2031-01", None),
        ("x", "y"),
    ]
    found = numleak(rows, values, draws=DRAWS)  # type: ignore[arg-type]
    assert found.bad_rows["source"][:2] == ("<answers>", "<answers>")
    assert found.bad_rows["row"][:2] == (61, 62)
    reasons = found.bad_rows["reason"]
    assert reasons[0] == "response is missing" and str(reasons[1]).startswith("duplicate question")
    assert set(reasons[2:]) == {
        "2000-02 has more than one value",
        "'soon' is not a date that fits a monthly series",
        "the value is missing",
        "the value 'y' is not a number",
    }
    assert len(found.bad_rows) == 7 and "7 bad rows are skipped" in found.summary
    assert read_document(found)["bad_rows"][0]["line"] == 61


def test_answers_about_other_dates_are_left_out_with_the_reason(about: Series) -> None:
    rows: list[Row] = [*answers(knows("m", about)), {"date": "1900-01", "response": "1.00%"}]
    found = numleak(rows, truth(about), draws=DRAWS)
    assert found.left_out["date"] == ("1900-01",) and found.left_out[0]["reason"]


@pytest.mark.parametrize(
    ("days", "frequency"),
    [
        (pd.date_range("1990-01-01", periods=60, freq="YS"), "annual"),
        (pd.date_range("1990-01-01", periods=60, freq="QE"), "quarterly"),
        (pd.date_range("1990-01-01", periods=60, freq="W"), "weekly"),
        (pd.date_range("1990-01-01", periods=60, freq="B"), "daily"),
        ([f"{1990 + n // 4}-Q{n % 4 + 1}" for n in range(60)], "quarterly"),
        ([str(1950 + n) for n in range(60)], "annual"),
    ],
)
def test_the_frequency_follows_from_the_dates(days: list[str], frequency: str) -> None:
    values = {day: n * 1.37 % 5 for n, day in enumerate(days)}
    rows: list[Row] = [{"date": day, "response": f"{value:.2f}"} for day, value in values.items()]
    found = numleak(rows, values, draws=DRAWS)
    [row] = found.table
    assert (row["n"], row["parsed"]) == (60, 60)
    assert (
        f"the frequency ({frequency}) is inferred" in read_document(found)["series"][0]["notes"][0]
    )


@pytest.mark.parametrize("words", ["It was {:.2f}%", "It was {:.2f} percent.", "{:.2f} per cent"])
def test_answers_in_percent_need_no_unit(about: Series, words: str) -> None:
    known = truth(about)
    rows: list[Row] = [{"date": day, "response": words.format(v)} for day, v in known.items()]
    [row] = numleak(rows, known, draws=DRAWS).table
    assert row["parsed"] == row["n"] == len(known)


@pytest.mark.parametrize(
    "words", ["{:.2f} million ({:.1f} percent)", "About {:.2f} million people, a rate of {:.1f}%."]
)
def test_an_aside_in_percent_is_not_the_value(about: Series, words: str) -> None:
    known = {day: value + 50 for day, value in truth(about).items()}
    rows: list[Row] = [
        {"date": day, "response": words.format(value, value / 3), "truth": value}
        for day, value in known.items()
    ]
    for found in (numleak(rows, draws=DRAWS), numleak(rows, known, draws=DRAWS)):
        [row] = found.table
        assert (found.verdict, row["parsed"]) == ("inconclusive", 0)
        assert "numbers with a unit are not read" in str(row["notes"])
    assert numleak(rows, known, unit="million", draws=DRAWS).verdict == "memorized"


def test_the_unit_of_each_series_follows_from_its_own_answers(about: Series) -> None:
    rows: list[Row] = [
        {"series": name, "date": day, "response": f"{value:.2f}{unit}"}
        for name, unit in (("tides", "%"), ("waves", ""))
        for day, value in truth(about).items()
    ]
    values = {name: truth(about) for name in ("tides", "waves")}
    found = read_document(numleak(rows, values, draws=DRAWS))["series"]
    assert [one["unit"] for one in found] == ["percent", "units"]


def test_terms_are_taken_as_given(about: Series) -> None:
    rows = answers(knows("m", about))
    found = numleak(
        rows,
        truth(about),
        name="the tide",
        quantity="height",
        unit="fathoms",
        frequency="monthly",
        tolerances=[0.5, 0.1],
        cutoff=date(2005, 1, 31),
        draws=DRAWS,
    )
    [one] = read_document(found)["series"]
    assert (one["unit"], one["tolerance"], one["cutoff"]) == ("fathoms", 0.5, "2005-01-31")
    assert one["notes"][0] == "the tolerance is 0.5 fathoms"


def test_a_built_in_series_needs_only_its_id(about: Series) -> None:
    pytest.importorskip("statsmodels", reason="the extra 'series' is not installed")
    rows: list[Row] = [
        {"date": str(year), "response": f"{year % 90}"} for year in range(1900, 1960)
    ]
    found = numleak(rows, "sunspots", draws=DRAWS)
    assert found.verdict != "memorized"
    assert read_document(found)["series"][0]["unit"] == "sunspots"


def test_it_reads_well_and_draws(about: Series, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    found: NumleakResult = numleak(
        answers(knows("m", about)), truth(about), model=hostile, unit="percent", draws=DRAWS
    )
    assert "memorized: " in repr(found) and "<script>" not in found._repr_html_()
    assert len(found.to_pandas()) == found.to_arrow().num_rows == 1
    assert all(file.suffix == ".svg" and file.stat().st_size for file in found.draw(tmp_path))
    page = found.write_page(str(tmp_path / "page.html")).read_text(encoding="utf-8")
    assert "<script>" not in page and "memorized" in page


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"answers": []}, "answers"),
        ({"answers": {"date": "2000", "response": "1"}}, "answers"),
        ({"values": None}, "values"),
        ({"values": 7}, "values"),
        ({"values": {}}, "values"),
        ({"values": [1.0, 2.0]}, "values"),
        ({"values": pd.DataFrame({"day": ["2000-01"], "x": [1.0]})}, "values"),
        ({"values": {"someday": 1.0}}, "values"),
        ({"values": {"2020-13-45": 1.0}}, "values"),
        ({"values": {f"{y}": 1.0 for y in range(1990, 2010)}}, "tolerances"),
        ({"tolerances": [0]}, "coreeval.numleak"),
        ({"tolerances": [-1]}, "tolerances"),
        ({"frequency": "hourly"}, "frequency"),
        ({"frequency": "daily"}, "values"),
        ({"cutoff": "soon"}, "cutoff"),
        ({"cutoff": {"other": "2020-01"}}, "cutoff"),
        ({"draws": 10}, "draws"),
    ],
)
def test_what_cannot_be_used_is_told(about: Series, changes: dict[str, object], where: str) -> None:
    usual = {"answers": answers(knows("m", about)), "values": truth(about), "draws": DRAWS}
    with pytest.raises(UsageError) as raised:
        numleak(**{**usual, **changes})  # type: ignore[arg-type]
    assert raised.value.where == where
    assert raised.value.hint


def test_rows_that_are_no_answers_are_an_error() -> None:
    with pytest.raises(DatasetError, match="the file has 1 line, but none is an answer"):
        numleak([{"month": "2000-01", "said": "1"}], {"2000-01": 1.0, "2000-02": 2.0})
