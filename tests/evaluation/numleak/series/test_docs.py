"""docs/series.md says what is so."""

import re
from pathlib import Path

import yaml
from pydantic import BaseModel

from coreeval.evaluation.numleak.series import SeriesDefinition, Unit, families, known, open_series
from coreeval.evaluation.numleak.series.definition import Plausible, Source, Transform
from coreeval.evaluation.numleak.series.units import known_units
from tests.evaluation.numleak.series.kit import PLAIN, defined, written

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
        "### `source`": Source,
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

    assert set(table) == {one.id for one in known()}
    for one in known():
        assert f", {one.tolerance:g} |" in table[one.id], one.id
    for name in families():
        assert f"`{name}`" in DOCS


def test_all_units_are_listed() -> None:
    assert all(f"`{name}`" in rows("## A series of your own")["unit"] for name in known_units())


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
