import textwrap
from datetime import date
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.series import definition_of, expand, families, known
from tests.evaluation.numleak.series.kit import PLAIN, defined

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
        definition_of(str(file_with(folder, **changes)), base=folder)
    assert caught.value.where.endswith("toy.yaml")
    return caught.value


# -- built in -------------------------------------------------------------------------------------


def test_built_in_definitions_say_all_that_questions_and_judges_need() -> None:
    assert sorted(one.id for one in known()) == BUILT_IN
    for one in known():
        assert one.blind, one.id
        assert len(one.fictitious) >= 3, one.id
        assert one.plausible, one.id
        assert one.plausible.typical, one.id
        assert one.revisions, one.id
        assert one.publisher, one.id
        assert list(one.tolerances[1:]) == sorted(one.tolerances[1:]), one.id


def test_blind_words_hold_no_name_of_the_series() -> None:
    for one in known():
        names = {one.name, *one.aliases}
        assert not [name for name in names if name.lower() in str(one.blind).lower()], one.id


def test_no_two_series_share_a_question() -> None:
    asked = [(one.quantity, one.name) for one in known()]

    assert len(asked) == len(set(asked))


def test_names_that_do_not_exist_are_shared_inside_a_family_alone() -> None:
    by_name: dict[str, set[str]] = {}
    for one in known():
        for name in one.fictitious:
            by_name.setdefault(name, set()).add(one.family or one.id)

    assert all(len(owners) == 1 for owners in by_name.values())


# -- finding them ---------------------------------------------------------------------------------


def test_a_family_stands_for_its_members() -> None:
    assert expand(["mkt_rf", "fama-french", "own.yaml"]) == [
        "mkt_rf", "cma", "hml", "mom", "rmw", "smb", "own.yaml",
    ]  # fmt: skip
    assert set(families()["statsmodels"]) == {
        "sunspots", "co2", "nile", "elnino", "macro_unemp", "macro_gdp",
    }  # fmt: skip


def test_a_misspelt_name_is_told_its_neighbour(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no built-in series 'mkt-rf'") as caught:
        definition_of("mkt-rf", base=tmp_path)

    assert "did you mean 'mkt_rf'?" in caught.value.hint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such series file") as caught:
        definition_of("folder/none.yaml", base=tmp_path)

    assert caught.value.where == str(tmp_path / "folder" / "none.yaml")


# -- one's own ------------------------------------------------------------------------------------


def test_percent_brings_basis_points_and_their_ladder() -> None:
    definition = defined()

    assert (definition.tolerance, definition.unit.basis_points) == (0.25, True)
    assert definition.tolerances == (0.25, 0.1, 0.5, 1.0)


def test_a_unit_of_ones_own_is_a_mapping(tmp_path: Path) -> None:
    unit = {"name": "bushels", "points_name": "bushels", "forms": ["bu"]}
    path = file_with(tmp_path, unit=unit, tolerances=[3])

    definition = definition_of(path.name, base=tmp_path)

    assert (definition.unit.forms, definition.tolerance) == (("bu",), 3)


def test_what_yaml_takes_for_numbers_and_dates_is_read_as_text(tmp_path: Path) -> None:
    text = """
    frequency: annual
    notable: {2020: a year}
    source: {path: f, missing: [-99, n.v.], dates: year}
    """
    raw = PLAIN | yaml.safe_load(text)
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")

    definition = definition_of("toy.yaml", base=tmp_path)

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
        ({"unit": "ppm"}, "say how near counts as right, in parts per million"),
        ({"tolerances": [0.25, 0]}, "a tolerance is above zero"),
        ({"notable": {"1987-Q4": "a crash"}}, "'1987-Q4' is no date of a monthly series"),
        ({"source": {"format": "csv"}}, "a source has a url or a path"),
        ({"source": {"path": "a", "url": "http://b"}}, "a source has a url or a path"),
        ({"source": {"url": "http://b", "package": "statsmodels"}}, "a package has a path"),
        ({"source": {"url": "file:///etc/passwd"}}, "source.url"),
        ({"plausible": {"low": 5, "high": 5}}, "low must be below high"),
        ({"transform": {"change": "percent"}}, "transform.change"),
        ({"id": "Mkt RF"}, "id"),
    ],
)
def test_a_mistake_is_one_message(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    error = complaint(tmp_path, **changes)

    assert message in error.message
    assert "docs/series.md" in error.hint


@pytest.mark.parametrize("text", ["- a list", "id: [", "notable: {x: 2020-13-45}"])
def test_what_is_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.yaml").write_text(textwrap.dedent(text), encoding="utf-8")

    with pytest.raises(ConfigError):
        definition_of("bad.yaml", base=tmp_path)


def test_a_definition_does_not_change() -> None:
    with pytest.raises(ValidationError):
        defined().name = "another"  # type: ignore[misc]
