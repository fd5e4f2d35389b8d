"""FinQA as its authors publish it: questions on a page of a report, with calculations.

The context is the text before the table, the table (a row per line, cells separated by ` | `) and
the text after it. A page's questions are one cluster.

**Accepted answers** are the written one and the result of the calculation (`exe_ans`), in this
order. The two often differ by more than rounding, because a person wrote the first and a program
computed the second; FinQA's evaluation uses the result. If the written answer is a percentage, a
result such as 0.17 is a share; a result that is the percentage itself gets its sign.

**Tolerance.** FinQA's evaluation computes the answer from a predicted program and compares it after
rounding to five decimals, which is too strict for a model that writes a number. Here the tolerance
is 1 % of the value: a percentage with two decimals is off by up to 0.005, which is 1 % of 0.5 %.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from coreeval.config import DatasetConfig
from coreeval.evaluation.benchmarks.files import (
    display_path,
    find_repeated_key,
    make_digest,
    repeated_key_of,
)
from coreeval.evaluation.benchmarks.json_elements import JsonElement, iter_json_elements
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    RowOrBad,
    Rows,
    SourceRow,
    make_bad_row,
)
from coreeval.evaluation.benchmarks.tables import locate_files
from coreeval.schema import Task

TOLERANCE: Final = "1%"
_ENDING: Final = ".json"
_UNITS: Final = ("%", "$")
_DECIMALS: Final = 5
"""The number of decimals of `exe_ans` in FinQA's files."""
_LARGEST: Final = 1e15
"""The largest result of FinQA's programs that a float holds with all decimals."""
_YES_NO: Final = ("yes", "no")


class FinqaAnswer(NamedTuple):
    """The answer of an item, by the columns of a table of answers."""

    answers: list[str]
    answer_type: str
    unit: str | None = None
    tolerance: str | None = None


def _files(config: DatasetConfig, split: str) -> list[Path]:
    return locate_files(config, _ENDING)[split]


def _rows(config: DatasetConfig, task: Task, split: str) -> Rows:
    return _iter_rows(_files(config, split), config)


def _iter_rows(paths: list[Path], config: DatasetConfig) -> Rows:
    number = 0
    for path in paths:
        for element in iter_json_elements(path):
            number += 1
            yield _make_row(element, display_path(path, config), number)


def _make_row(element: JsonElement, file: str, number: int) -> RowOrBad:
    record, raw = element.value, str(element.value)
    asked = record.get("qa") if isinstance(record, dict) else None
    if twice := repeated_key_of(record) or find_repeated_key(asked):
        return make_bad_row(file, element.line, twice, raw)
    if not isinstance(record, dict) or not isinstance(asked, dict):
        return make_bad_row(file, element.line, "the entry is not an object with the key qa", raw)
    context, answer = read_report(record), _read_answer(asked)
    if context is None or isinstance(answer, str):
        reason = answer if isinstance(answer, str) else NO_REPORT
        return make_bad_row(file, element.line, reason, raw)
    own = record.get("id")
    return SourceRow(
        file=file,
        line=element.line,
        number=number,
        values={
            "question": asked.get("question"),
            "context": context,
            "program": asked.get("program"),
            **answer._asdict(),
        },
        id=None if own is None else str(own),
        cluster=str(record.get("filename") or ""),
        raw=raw,
    )


NO_REPORT: Final = "pre_text, post_text or table is not a list"


def read_report(record: Mapping[str, object], *, cells: str = " | ", edge: str = "") -> str | None:
    """Return the text of a page with its table, or None if a part of it is not a list.

    Args:
        record: A record of FinQA.
        cells: The text between two cells of a row.
        edge: The text before and after a row.
    """
    before, after = (_join_sentences(record.get(key)) for key in ("pre_text", "post_text"))
    table = record.get("table_ori") or record.get("table")
    if before is None or after is None or not isinstance(table, list):
        return None
    if not all(isinstance(row, list) for row in table):
        return None
    rows = "\n".join(f"{edge}{cells.join(map(str, row))}{edge}" for row in table)
    return "\n".join(filter(None, (before, rows, after)))


def _join_sentences(value: object) -> str | None:
    if not isinstance(value, list):
        return None
    return " ".join(text for text in map(str, value) if text.strip(" ."))


def _read_answer(asked: Mapping[str, object]) -> FinqaAnswer | str:
    """Return the answer of an item, or the reason why it has none."""
    written, computed = asked.get("answer"), asked.get("exe_ans")
    gold = "" if written is None else " ".join(str(written).split())
    for said in (str(computed).strip().casefold(), gold.casefold()):
        if said in _YES_NO:
            return FinqaAnswer([said], "yes_no")
    if isinstance(computed, bool) or not isinstance(computed, int | float):
        return FinqaAnswer([gold], "text") if gold else "qa has neither answer nor exe_ans"
    if not abs(computed) < _LARGEST:
        return f"exe_ans is not a number below {_LARGEST:.0e}"
    unit = next((sign for sign in _UNITS if sign in gold), None)
    result = _write_number(computed)
    if unit == "%" and not _is_ratio(computed, gold):
        result += "%"
    first = [gold] if any(map(str.isdigit, gold)) else []
    return FinqaAnswer([*first, result], "number", unit, TOLERANCE)


def _is_ratio(computed: float, gold: str) -> bool:
    """Return whether a result is a hundredth of the written percentage."""
    found = re.search(r"-?\d[\d,]*\.?\d*", gold)
    if not found:
        return True
    written = float(found[0].replace(",", ""))
    return abs(100 * computed - written) < abs(computed - written)


def _write_number(value: float) -> str:
    text = f"{value:.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


FINQA = BenchmarkFormat(
    splits=lambda config: sorted(locate_files(config, _ENDING)),
    rows=_rows,
    digest=make_digest(_files),
    spellings={"validation": "dev", "val": "dev"},
    kind="answer",
    fields=("question", "context"),
)
