"""Definitions of series, and the page that documents them."""

import re
import textwrap
from datetime import date
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.series import (
    SeriesDefinition,
    Unit,
    expand_families,
    find_definition,
    list_definitions,
    list_families,
    open_series,
)
from coreeval.evaluation.numleak.series.definition import (
    Plausible,
    SeriesSource,
    Transform,
    load_units,
    name_unit,
)
from tests.evaluation.numleak.series.kit import PLAIN, defined, written

BUILT_IN = [
    "cma", "co2", "cpi_yoy", "elnino", "hml", "macro_gdp", "macro_unemp", "mkt_rf", "mom",
    "nasdaq", "nile", "noaa_us_tavg", "rmw", "smb", "sp500", "sunspots", "unrate",
]  # fmt: skip


def file_with(folder: Path, **changes: object) -> Path:
    path = folder / "toy.yaml"
    path.write_text(yaml.safe_dump(PLAIN | changes), encoding="utf-8")
    return path


def complaint(folder: Path, **changes: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        find_definition(str(file_with(folder, **changes)), base=folder)
    assert "toy.yaml" in caught.value.where
    return caught.value


# -- built in -------------------------------------------------------------------------------------


def test_built_in_definitions_say_all_that_questions_and_judges_need() -> None:
    assert sorted(one.id for one in list_definitions()) == BUILT_IN
    for one in list_definitions():
        assert one.blind, one.id
        assert len(one.fictitious) >= 3, one.id
        assert one.plausible, one.id
        assert one.plausible.typical, one.id
        assert one.revisions, one.id
        assert one.publisher, one.id
        assert list(one.tolerances[1:]) == sorted(one.tolerances[1:]), one.id


def test_blind_words_hold_no_name_of_the_series() -> None:
    for one in list_definitions():
        names = {one.name, *one.aliases}
        assert not [name for name in names if name.lower() in str(one.blind).lower()], one.id


def test_no_two_series_share_a_question() -> None:
    asked = [(one.quantity, one.name) for one in list_definitions()]

    assert len(asked) == len(set(asked))


def test_names_that_do_not_exist_are_shared_inside_a_family_alone() -> None:
    by_name: dict[str, set[str]] = {}
    for one in list_definitions():
        for name in one.fictitious:
            by_name.setdefault(name, set()).add(one.family or one.id)

    assert all(len(owners) == 1 for owners in by_name.values())


# -- finding them ---------------------------------------------------------------------------------


def test_a_family_stands_for_its_members() -> None:
    assert expand_families(["mkt_rf", "fama-french", "own.yaml"]) == [
        "mkt_rf", "cma", "hml", "mom", "rmw", "smb", "own.yaml",
    ]  # fmt: skip
    assert set(list_families()["statsmodels"]) == {
        "sunspots", "co2", "nile", "elnino", "macro_unemp", "macro_gdp",
    }  # fmt: skip


def test_a_misspelt_name_is_told_its_neighbour(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no built-in series 'mkt-rf'") as caught:
        find_definition("mkt-rf", base=tmp_path)

    assert "did you mean 'mkt_rf'?" in caught.value.hint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such series file") as caught:
        find_definition("folder/none.yaml", base=tmp_path)

    assert caught.value.where == str(tmp_path / "folder" / "none.yaml")


# -- one's own ------------------------------------------------------------------------------------


def test_percent_brings_basis_points_and_their_ladder() -> None:
    definition = defined()

    assert (definition.tolerance, definition.unit.basis_points) == (0.25, True)
    assert definition.tolerances == (0.25, 0.1, 0.5, 1.0)


def test_a_unit_of_ones_own_is_a_mapping(tmp_path: Path) -> None:
    unit = {"name": "bushels", "points_name": "bushels", "forms": ["bu"]}
    path = file_with(tmp_path, unit=unit, tolerances=[3])

    definition = find_definition(path.name, base=tmp_path)

    assert (definition.unit.forms, definition.tolerance) == (("bu",), 3)


def test_what_yaml_takes_for_numbers_and_dates_is_read_as_text(tmp_path: Path) -> None:
    text = """
    frequency: annual
    notable: {2020: a year}
    source: {path: f, missing: [-99, n.v.], dates: year}
    """
    raw = PLAIN | yaml.safe_load(text)
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")

    definition = find_definition("toy.yaml", base=tmp_path)

    assert (list(definition.notable), definition.source.dates) == (["2020"], ("year",))
    assert definition.source.missing == ("-99", "n.v.")
    assert defined(frequency="daily", notable={date(2020, 3, 5): "a day"}).notable_periods


def test_an_unknown_key_is_told_its_neighbour(tmp_path: Path) -> None:
    error = complaint(tmp_path, tolerence=[1])

    assert error.message == "unknown key 'tolerence'"
    assert error.hint == "did you mean 'tolerances'?"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": "percentage"}, "there is no unit 'percentage'"),
        ({"unit": "ppm"}, "error of a right answer, in parts per million"),
        ({"tolerances": [0.25, 0]}, "a tolerance must be above zero"),
        ({"notable": {"1987-Q4": "a crash"}}, "'1987-Q4' is not a date of a monthly series"),
        ({"source": {"format": "csv"}}, "a source must have either a url or a path"),
        ({"source": {"path": "a", "url": "http://b"}}, "a source must have either a url or a path"),
        ({"source": {"url": "http://b", "package": "statsmodels"}}, "a package source must have"),
        ({"source": {"url": "file:///etc/passwd"}}, "source.url"),
        ({"plausible": {"low": 5, "high": 5}}, "low must be below high"),
        ({"transform": {"change": "percent"}}, "transform.change"),
        ({"id": "Mkt RF"}, "id"),
    ],
)
def test_a_mistake_is_one_message(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    error = complaint(tmp_path, **changes)

    assert message in error.message
    page = "coreeval docs series lists every key and its values"
    assert error.hint in (page, "did you mean 'percent_change'?")


@pytest.mark.parametrize("text", ["- a list", "id: [", "notable: {x: 2020-13-45}"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(textwrap.dedent(text), encoding="utf-8")

    with pytest.raises(ConfigError):
        find_definition("bad.yaml", base=tmp_path)


def test_a_definition_does_not_change() -> None:
    with pytest.raises(ValidationError):
        defined().name = "another"  # type: ignore[misc]


DOCS = (Path(__file__).parents[4] / "docs" / "series.md").read_text("utf-8")
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)]


def rows(heading: str) -> dict[str, str]:
    """Return the table of a section: each name in its first column, with the rest of the row."""
    section = DOCS.partition(f"{heading}\n")[2].partition("\n#")[0]
    found = re.findall(r"^\| (`[^|]+`) \|(.+)$", section, re.MULTILINE)
    return {name: rest for names, rest in found for name in re.findall(r"`([^`]+)`", names)}


def test_every_key_is_described_and_none_besides() -> None:
    tables: dict[str, type[BaseModel]] = {
        "## A series of your own": SeriesDefinition,
        "### `source`": SeriesSource,
        "### `transform`": Transform,
        "### `plausible`": Plausible,
        "### A unit of your own": Unit,
    }
    for heading, model in tables.items():
        assert set(rows(heading)) == set(model.model_fields), heading


def test_needed_keys_are_called_so() -> None:
    needed = {
        key for key, rest in rows("## A series of your own").items() if rest.startswith(" yes")
    }

    assert needed == {key for key, field in SeriesDefinition.model_fields.items()
                      if field.is_required()}  # fmt: skip


def test_the_built_in_series_are_listed_with_their_tolerance() -> None:
    table = rows("## Built in")

    assert set(table) == {one.id for one in list_definitions()}
    for one in list_definitions():
        assert f", {one.tolerance:g} |" in table[one.id], one.id
    for name in list_families():
        assert f"`{name}`" in DOCS


def test_all_units_are_listed() -> None:
    assert all(f"`{name}`" in rows("## A series of your own")["unit"] for name in load_units())


def test_the_series_shown_can_be_read(tmp_path: Path) -> None:
    [shown] = [block for block in BLOCKS if "id" in block]
    (tmp_path / "wind.yaml").write_text(yaml.safe_dump(shown), encoding="utf-8")
    (tmp_path / "wind.csv").write_text("year,month,level\n2020,12,80\n2021,1,100\n2021,2,-9\n")

    series = open_series("wind.yaml", base=tmp_path)

    assert written(series) == {"2021-01": 25.0}
    assert shown.keys() == PLAIN.keys() | SeriesDefinition.model_fields.keys()


def test_the_unit_shown_is_one() -> None:
    [shown] = [block for block in BLOCKS if set(block) == {"unit"}]

    assert defined(unit=shown["unit"], tolerances=[1]).unit.forms == ("bushel", "bushels", "bu")


@pytest.mark.parametrize(
    ("text", "name", "scale", "form"),
    [
        ("%", "percent", None, "percent"),
        ("billions of US dollars", "billions of US dollars", 1e9, "$"),
        ("millions of dollars", "millions of dollars", 1e6, "$"),
        ("thousands of persons", "thousands of persons", 1e3, "persons"),
        ("million", "million", 1e6, "million"),
        ("visitors", "visitors", 1.0, "visitors"),
        ("mm of rain", "mm of rain", 1.0, "mm of rain"),
    ],
)
def test_a_unit_in_words_has_a_power_of_ten(
    text: str, name: str, scale: float | None, form: str
) -> None:
    unit = name_unit(text)
    assert (unit.name, unit.scale) == (name, scale)
    assert form in unit.forms
