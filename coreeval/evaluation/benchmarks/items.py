"""Items of a benchmark in any form: those of the CAP paper, and a user's own JSON lines."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coreeval.errors import ConfigError, DatasetError
from coreeval.evaluation.benchmarks import ectsum, finqa
from coreeval.evaluation.benchmarks.item_files import (
    Record,
    found_file,
    json_lines,
    json_list,
    splits_in,
)
from coreeval.evaluation.benchmarks.item_rows import Entry, checked_items, own_item
from coreeval.evaluation.benchmarks.options import bracketed_options
from coreeval.schema import BadRow, Item

Read = Callable[[Path], Iterator[Record]]
Make = Callable[[Record], Entry | str]
"""From a record to what an item is made of, or to what is wrong with it."""


@dataclass(frozen=True)
class Items:
    """One split of a benchmark in memory."""

    items: tuple[Item, ...]
    bad_rows: tuple[BadRow, ...]


@dataclass(frozen=True)
class Layout:
    """How the items of a benchmark are laid out."""

    names: tuple[str, ...]
    """Names that the file of a split may have, most likely first."""
    modified: str
    """Name of the file with its modified items, beside it or in a folder of their own."""
    read: Read
    make: Make


def _prepared(record: Record) -> Entry:
    """The form of CAP's files: input, output, sometimes idx."""
    return Entry.of(record.values, id_key="idx")


def _fineval(record: Record) -> Entry | str:
    entry = _prepared(record)
    options = bracketed_options(str(entry.input))
    if not options:
        return "there are no options ['A': …, 'B': …, 'C': …, 'D': …] in the input"
    return entry.with_options(options)


LAYOUTS: dict[str, Layout] = {
    "fineval": Layout(
        ("ori_{split}.json", "{split}.json"), "mod_{split}.json", json_list, _fineval
    ),
    "finqa": Layout(
        ("ori_{split}.json", "{split}.json", "finqa_{split}.json"),
        "mod_{split}.json",
        json_list,
        finqa.entry,
    ),
    "alphafin": Layout(
        ("research_ori_{split}.json", "{split}.json"),
        "research_mod_{split}.json",
        json_list,
        _prepared,
    ),
    "ectsum": Layout(
        ("ori_{split}_samples.json", "{split}.json"),
        "mod_{split}_samples.json",
        json_list,
        _prepared,
    ),
    "jsonl": Layout(("{split}.jsonl",), "mod_{split}.jsonl", json_lines, own_item),
}
"""By the name of the benchmark; `jsonl` is a user's own: input, output, options, id."""


def load_items(benchmark: str, path: Path, split: str) -> Items:
    """Read a split whole: each entry as an item, or as what is wrong with it.

    Args:
        benchmark: A key of `LAYOUTS`.
        path: The folder with a file for each split, or one file. ECTSum may also be its folder of
            transcripts and summaries.
        split: The name of the split, as the benchmark's files have it.

    Raises:
        ConfigError: there is no such benchmark.
        DatasetError: there is nothing to read, or not one entry is an item.
    """
    layout = _layout(benchmark)
    if benchmark == "ectsum" and ectsum.has_texts(path, split):
        return _gathered(ectsum.texts(path, split), benchmark, path, split, _prepared)
    file = found_file(path, split, layout.names)
    return _gathered(layout.read(file), benchmark, file, split, layout.make)


def load_modified(benchmark: str, path: Path, split: str) -> Items:
    """Read recorded modified items of a split; each has the id, or else the place, of its item.

    Args:
        benchmark: A key of `LAYOUTS`.
        path: The folder with a file for each split, that of the benchmark or another.
        split: The name of the split.

    Raises:
        ConfigError: there is no such benchmark.
        DatasetError: there is nothing to read, or not one entry is an item.
    """
    layout = _layout(benchmark)
    file = found_file(path, split, (layout.modified, *layout.names))
    return _gathered(layout.read(file), benchmark, file, split, layout.make)


def item_splits(benchmark: str, path: Path) -> list[str]:
    """Return the names of the splits that a folder has, sorted."""
    found = splits_in(path, _layout(benchmark).names)
    if benchmark == "ectsum":
        found += [folder.name for folder in path.glob("*/") if ectsum.has_texts(path, folder.name)]
    return sorted(set(found))


def _layout(benchmark: str) -> Layout:
    if benchmark not in LAYOUTS:
        raise ConfigError(
            f"there is no benchmark {benchmark!r} of items",
            hint=f"there are {', '.join(LAYOUTS)}",
        )
    return LAYOUTS[benchmark]


def _gathered(
    records: Iterator[Record], benchmark: str, file: Path, split: str, make: Make
) -> Items:
    found = list(checked_items(records, make, benchmark=benchmark, split=split, file=file.name))
    bad = tuple(row for row in found if isinstance(row, BadRow))
    items = tuple(row for row in found if isinstance(row, Item))
    if not items:
        first = f"; the first: {bad[0].reason}" if bad else ""
        raise DatasetError(
            f"not one of {len(found)} entries is an item of {benchmark}{first}", where=str(file)
        )
    return Items(items, bad)
