"""CSV, JSON lines and JUnit: a row or test case for each sample, and a row for each replaced fact.

In JUnit, a failed sample is a failure. A sample that ended without a new text for another reason is
skipped with that reason, because a verdict is not an error.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from coreeval.releases.exports.material import ARMS, ExportSample, Material
from coreeval.releases.junit import JUnitCase, JUnitEnding, write_suite
from coreeval.releases.release import ReleasedArm
from coreeval.releases.release_manifest import FactRow
from coreeval.schema import Label, Task
from coreeval.tasks import kind_of
from coreeval.tools.text import escape_formula, visible

TableCell = str | int
TableRow = dict[str, TableCell]
_TEXTS: set[str] = {*ARMS}
_OF_SAMPLE = ("label", "label_text")
"""The columns of an arm that a row has only once."""


def write_csv(material: Material, out: Path) -> dict[str, int]:
    """Write samples.csv and facts.csv with unescaped values; return the number of rows of each."""
    return _write_csv(material, out, keep_cell, encoding="utf-8")


def write_spreadsheet(material: Material, out: Path) -> dict[str, int]:
    """Write the same files for spreadsheets: no text is a formula or hides characters.

    A byte order mark identifies the files as UTF-8.
    """
    return _write_csv(material, out, escape_cell, encoding="utf-8-sig")


def write_jsonl(material: Material, out: Path) -> dict[str, int]:
    """Write samples.jsonl and facts.jsonl; return the number of rows of each."""
    samples = (_sample_line(material.task, sample) for sample in material.samples())
    facts = (fact.model_dump(mode="json") for fact in material.facts())
    return {
        "samples": write_lines(out / "samples.jsonl", samples),
        "facts": write_lines(out / "facts.jsonl", facts),
    }


def keep_cell(cell: TableCell) -> TableCell:
    """Return a cell unchanged."""
    return cell


def escape_cell(cell: TableCell) -> TableCell:
    """Return a cell with an apostrophe wherever a spreadsheet could read a formula."""
    return escape_formula(visible(cell)) if isinstance(cell, str) else cell


def _write_csv(
    material: Material, out: Path, shown: Callable[[TableCell], TableCell], *, encoding: str
) -> dict[str, int]:
    fields = list_item_columns(material.task)
    samples = (_sample_row(material.task, sample) for sample in material.samples())
    facts = map(_fact_row, material.facts())
    return {
        "samples": _write_csv_file(
            out / "samples.csv", list_sample_columns(fields), samples, shown, encoding
        ),
        "facts": _write_csv_file(
            out / "facts.csv", tuple(FactRow.model_fields), facts, shown, encoding
        ),
    }


def list_sample_columns(fields: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of samples.csv: the sample's metadata, then its texts by arm."""
    own = [name for name in ExportSample.model_fields if name not in _TEXTS]
    return (*own, *(f"{arm}_{field}" for arm in ARMS for field in fields))


def list_item_columns(task: Task) -> list[str]:
    """Return the columns that hold a sample in an arm, without its label."""
    return [name for name in kind_of(task).columns(task) if name not in _OF_SAMPLE]


def _arm_values(task: Task, sample: ExportSample, arm: ReleasedArm) -> Mapping[str, object] | None:
    """Return the columns of a sample in an arm, without its label; None if it has no text."""
    texts = sample.texts(arm)
    if not texts:
        return None
    label = Label(id=sample.label, name=sample.label_text, meaning="")
    values = kind_of(task).write(task, texts, label)
    return {name: value for name, value in values.items() if name not in _OF_SAMPLE}


def _sample_line(task: Task, sample: ExportSample) -> Mapping[str, object]:
    arms = {arm: _arm_values(task, sample, arm) for arm in ARMS}
    return sample.model_dump(mode="json") | arms


def _sample_row(task: Task, sample: ExportSample) -> TableRow:
    columns = list_item_columns(task)
    values = {arm: _arm_values(task, sample, arm) or {} for arm in ARMS}
    texts = {f"{arm}_{name}": _cell(values[arm].get(name)) for arm in ARMS for name in columns}
    return sample.model_dump(exclude=_TEXTS) | texts


def _cell(value: object) -> TableCell:
    """Return a value as a cell; a list becomes JSON, as in CSV benchmarks."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str | int) else ""


def _fact_row(fact: FactRow) -> TableRow:
    return fact.model_dump() | {"after_cutoff": " ".join(fact.after_cutoff or ())}


def _write_csv_file(
    path: Path,
    columns: tuple[str, ...],
    rows: Iterator[TableRow],
    shown: Callable[[TableCell], TableCell],
    encoding: str,
) -> int:
    """Write a table as RFC 4180 CSV and return its number of rows."""
    with path.open("w", encoding=encoding, newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        return sum(table.writerow(shown(row[name]) for name in columns) > 0 for row in rows)


def write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows as JSON, one per line, and return their number."""
    with path.open("w", encoding="utf-8") as file:
        return sum(file.write(json.dumps(row, ensure_ascii=False) + "\n") > 0 for row in rows)


def write_junit(material: Material, out: Path) -> dict[str, int]:
    """Write junit.xml and return its number of test cases."""

    def cases() -> Iterator[JUnitCase]:
        return (_sample_case(material, sample) for sample in material.samples())

    path = out / "junit.xml"
    number = write_suite(path, name=material.name, moment=material.moment, cases=cases)
    return {"testcases": number}


def _sample_case(material: Material, sample: ExportSample) -> JUnitCase:
    ending, reason = _sample_ending(sample)
    return JUnitCase(
        group=f"{material.name}.{material.split}",
        name=sample.id,
        ending=ending,
        kind=sample.outcome,
        message=reason,
    )


def _sample_ending(sample: ExportSample) -> tuple[JUnitEnding, str]:
    """Return a sample's JUnit status, and the reason for it."""
    reason = f"{sample.outcome}: {sample.reason}" if sample.reason else sample.outcome
    if sample.outcome == "failed":
        return "failure", reason
    if sample.outcome != "accepted":
        return "skipped", reason
    return ("passed", "") if sample.updated else ("skipped", "accepted, but withheld")
