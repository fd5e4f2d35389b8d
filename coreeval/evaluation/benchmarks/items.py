"""Items of a benchmark in any form: those of the CAP paper, and a user's own JSON Lines.

FinQA is read as its authors publish it and in the form of CAP's files; ECTSum as its authors
publish it, with a folder of transcripts and one of summaries per split. The default scores of the
benchmarks are in defaults.yaml.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from coreeval.config.user_files import parse_yaml
from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.benchmarks.ectsum import has_ectsum_texts, iter_calls
from coreeval.evaluation.benchmarks.finqa import NO_REPORT, read_report
from coreeval.evaluation.benchmarks.item_records import (
    ItemEntry,
    ItemRecord,
    check_items,
    find_bracketed_options,
    find_file,
    list_splits_in,
    make_own_entry,
    read_json_lines,
    read_json_list,
)
from coreeval.schema import BadRow, Item, Value

FINQA_QUESTION = "Question:"
FINQA_PROMPT = (
    "Read the report and answer the question on it.\n"
    "Report: {report}\nQuestion: {question}\nAnswer:"
)
"""The prompt for an original record, which has no prompt."""


def finqa_entry(record: ItemRecord) -> ItemEntry | str:
    """Return an item's entry from input and output as given, or from an original FinQA record."""
    if "qa" not in record.values:
        return _finqa_cap_entry(record)
    asked = record.values["qa"]
    if not isinstance(asked, dict) or not isinstance(asked.get("question"), str):
        return "qa has no question"
    report = read_report(record.values, cells="|", edge="|")
    if report is None:
        return NO_REPORT
    text = FINQA_PROMPT.format(report=report, question=asked["question"])
    return ItemEntry(
        input=text,
        output=_finqa_answer(asked),
        id=record.values.get("id"),
        cluster=record.values.get("filename") or _document_name(report),
    )


def _finqa_cap_entry(record: ItemRecord) -> ItemEntry:
    """Return the entry of a record in CAP's format; text before the question is the document."""
    made = ItemEntry.of(record.values)
    report, question, _ = str(made.input).rpartition(FINQA_QUESTION)
    return replace(made, cluster=_document_name(report)) if question else made


def _document_name(report: str) -> str:
    """Return a name for an unnamed document; equal texts get the same name."""
    return f"report {sha256(report.encode(errors='replace')).hexdigest()[:16]}"


def _finqa_answer(asked: dict[str, object]) -> str:
    """Return the written answer, or the computed one if there is none."""
    written, computed = asked.get("answer"), asked.get("exe_ans")
    return str(written or ("" if computed is None else computed))


ECTSUM_PROMPT = (
    "Sum up this earnings call in a few bullet points, one line each.\nCall: {call}\nSummary:"
)
"""The prompt for a transcript."""


def read_ectsum(path: Path, split: str) -> Iterator[ItemRecord]:
    """Yield a record for each transcript, sorted by name; the name is the id."""
    for place, call in enumerate(iter_calls(path, split), start=1):
        if call.defect:
            yield ItemRecord(place, {"idx": call.name}, call.defect)
            continue
        text = ECTSUM_PROMPT.format(call=" ".join(call.document.split()))
        yield ItemRecord(place, {"idx": call.name, "input": text, "output": call.summary.strip()})


Read = Callable[[Path], Iterator[ItemRecord]]
Make = Callable[[ItemRecord], ItemEntry | str]
"""A function that makes the entry of an item from a record, or returns the record's defect."""


@dataclass(frozen=True)
class BenchmarkItems:
    """One split of a benchmark in memory."""

    items: tuple[Item, ...]
    bad_rows: tuple[BadRow, ...]


@dataclass(frozen=True)
class ItemLayout:
    """The files and the format of a benchmark's items."""

    names: tuple[str, ...]
    """Possible names of a split's file, most likely first."""
    modified: str
    """The name of the file with its modified items, in the same folder or in a separate one."""
    read: Read
    make: Make


def _cap_entry(record: ItemRecord) -> ItemEntry:
    """Return the entry of a record in CAP's format: input, output and sometimes idx."""
    return ItemEntry.of(record.values, id_key="idx")


def _fineval_entry(record: ItemRecord) -> ItemEntry | str:
    entry = _cap_entry(record)
    options = find_bracketed_options(str(entry.input))
    if not options:
        return "there are no options ['A': …, 'B': …, 'C': …, 'D': …] in the input"
    return entry.with_options(options)


LAYOUTS: dict[str, ItemLayout] = {
    "fineval": ItemLayout(
        ("ori_{split}.json", "{split}.json"), "mod_{split}.json", read_json_list, _fineval_entry
    ),
    "finqa": ItemLayout(
        ("ori_{split}.json", "{split}.json", "finqa_{split}.json"),
        "mod_{split}.json",
        read_json_list,
        finqa_entry,
    ),
    "alphafin": ItemLayout(
        ("research_ori_{split}.json", "{split}.json"),
        "research_mod_{split}.json",
        read_json_list,
        _cap_entry,
    ),
    "ectsum": ItemLayout(
        ("ori_{split}_samples.json", "{split}.json"),
        "mod_{split}_samples.json",
        read_json_list,
        _cap_entry,
    ),
    "jsonl": ItemLayout(("{split}.jsonl",), "mod_{split}.jsonl", read_json_lines, make_own_entry),
}
"""The layouts by benchmark name; `jsonl` is the format of users' own files: input, output, options,
id."""


def load_items(benchmark: str, path: Path, split: str) -> BenchmarkItems:
    """Load a whole split: each entry as an item or as a bad row.

    Args:
        benchmark: A key of `LAYOUTS`.
        path: The folder with a file for each split, or one file. For ECTSum, it may also be the
            folder of transcripts and summaries.
        split: The name of the split as in the benchmark's files.

    Raises:
        ConfigError: there is no such benchmark.
        DatasetError: there is nothing to read, or no entry is an item.
    """
    layout = _find_layout(benchmark)
    if benchmark == "ectsum" and has_ectsum_texts(path, split):
        return _gather_items(read_ectsum(path, split), benchmark, path, split, _cap_entry)
    file = find_file(path, split, layout.names)
    return _gather_items(layout.read(file), benchmark, file, split, layout.make)


def load_modified(benchmark: str, path: Path, split: str) -> BenchmarkItems:
    """Load the recorded modified items of a split, matched to items by id or by position.

    Args:
        benchmark: A key of `LAYOUTS`.
        path: The folder with a file for each split: the benchmark's own or another.
        split: The name of the split.

    Raises:
        ConfigError: there is no such benchmark.
        DatasetError: there is nothing to read, or no entry is an item.
    """
    layout = _find_layout(benchmark)
    file = find_file(path, split, (layout.modified, *layout.names))
    return _gather_items(layout.read(file), benchmark, file, split, layout.make)


def list_item_splits(benchmark: str, path: Path) -> list[str]:
    """Return the sorted names of the splits in a folder."""
    found = list_splits_in(path, _find_layout(benchmark).names)
    if benchmark == "ectsum":
        found += [folder.name for folder in path.glob("*/") if has_ectsum_texts(path, folder.name)]
    return sorted(set(found))


def _find_layout(benchmark: str) -> ItemLayout:
    if benchmark not in LAYOUTS:
        raise ConfigError(
            f"there is no item benchmark {benchmark!r}",
            hint=f"available: {', '.join(LAYOUTS)}",
        )
    return LAYOUTS[benchmark]


def _gather_items(
    records: Iterator[ItemRecord], benchmark: str, file: Path, split: str, make: Make
) -> BenchmarkItems:
    found = list(check_items(records, make, benchmark=benchmark, split=split, file=file.name))
    bad = tuple(row for row in found if isinstance(row, BadRow))
    items = tuple(row for row in found if isinstance(row, Item))
    if not items:
        first = f"; the first: {bad[0].reason}" if bad else ""
        raise DatasetError(
            f"none of the {len(found)} entries is a valid item of {benchmark}{first}",
            where=str(file),
        )
    return BenchmarkItems(items, bad)


ModificationName = Literal["option_shuffle", "year_shift", "paraphrase"]


class ItemDefaults(Value):
    """The default settings of a comparison; fields are named like scores and modifications."""

    performance: str
    consistency: str
    modification: ModificationName
    train_split: str = "train"
    test_split: str = "test"
    alpha: float = 0.01
    """The summand added to performance and consistency (CAP paper, section 3.4)."""
    threshold: float = 0.95
    """The least cosine similarity at which answers have the same meaning; only for `cosine`."""


@cache
def load_defaults() -> dict[str, ItemDefaults]:
    """Return the defaults of the CAP paper by benchmark name."""
    text = (files("coreeval.evaluation.benchmarks") / "defaults.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, ItemDefaults]).validate_python(parse_yaml(text))
