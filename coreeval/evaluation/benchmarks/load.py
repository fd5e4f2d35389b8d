"""Reading a benchmark: the registry of formats and what is common to them."""

from collections.abc import Iterator
from dataclasses import dataclass

from coreeval.config import DatasetConfig
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import glue, hub, parquet, tables, tweeteval
from coreeval.evaluation.benchmarks.counts import expected_count
from coreeval.evaluation.benchmarks.rows import Rows, Source, checker
from coreeval.schema import BadRow, Sample, Task

FORMATS: dict[str, Source] = {
    "tweeteval": tweeteval.SOURCE,
    "mrpc": glue.MRPC,
    "rte": glue.RTE,
    "jsonl": tables.JSONL,
    "csv": tables.CSV,
    "tsv": tables.TSV,
    "parquet": parquet.SOURCE,
    "hf": hub.SOURCE,
}


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One split of a benchmark in memory."""

    split: str
    samples: tuple[Sample, ...]
    bad_rows: tuple[BadRow, ...]
    note: str | None
    """A warning about the number of rows, see `counts_note`."""


def load_benchmark(config: DatasetConfig, task: Task, *, split: str | None = None) -> Benchmark:
    """Read a whole split (by default the config's); see `iter_benchmark`."""
    chosen = known_split(config, split)
    found = list(_opened(config, task, chosen))
    return Benchmark(
        split=chosen,
        samples=tuple(row for row in found if isinstance(row, Sample)),
        bad_rows=tuple(row for row in found if isinstance(row, BadRow)),
        note=_note(config, len(found), chosen),
    )


def iter_benchmark(
    config: DatasetConfig, task: Task, *, split: str | None = None
) -> Iterator[Sample | BadRow]:
    """Stream a split, by default the config's: each row as a sample, or as what is wrong with it.

    Ids are the source's own (`id`, RTE's `index`, MRPC's two joined by `-`), else
    `<task>/<split>/<number>`: the line of a text or JSON lines file, and the row, header not
    counted, of any other. They do not depend on which other rows are bad.

    Raises:
        DatasetError: at once for missing files, columns or splits; at the end of the stream for a
            split that has not a single sample.
    """
    return _opened(config, task, known_split(config, split))


def _opened(config: DatasetConfig, task: Task, split: str) -> Iterator[Sample | BadRow]:
    rows = FORMATS[config.format].rows(config, task, split)
    return _checked(rows, config, task, split)


def _checked(
    rows: Rows, config: DatasetConfig, task: Task, split: str
) -> Iterator[Sample | BadRow]:
    check, good, first_bad = checker(task, split), 0, None
    for found in map(check, rows):
        if isinstance(found, Sample):
            good += 1
        else:
            first_bad = first_bad or found
        yield found
    if not good:
        raise _nothing(config, task, split, first_bad)


def _nothing(config: DatasetConfig, task: Task, split: str, first: BadRow | None) -> DatasetError:
    if first is None:
        return DatasetError(f"the split {split!r} is empty", where=config.path)
    return DatasetError(
        f"no row of the split {split!r} is a sample of the task {task.name}",
        where=f"{config.path}: {first.file}, line {first.line}",
        hint=f"there, {first.reason}; do dataset.format and task fit the file?",
    )


def known_split(config: DatasetConfig, split: str | None = None) -> str:
    """Return the name that a format has for a split, by default the config's.

    Raises:
        DatasetError: the split is not there.
    """
    source, asked = FORMATS[config.format], split or config.split
    name = source.spellings.get(asked, asked)
    names = source.splits(config)
    if asked in names or name in names:
        return asked if asked in names else name
    raise DatasetError(
        f"there is no split {asked!r}",
        where=config.path,
        hint=f"the splits there are {', '.join(names)} (a path to one file is one split)",
    )


def splits_of(config: DatasetConfig) -> list[str]:
    """Return the names of the splits there, sorted."""
    return FORMATS[config.format].splits(config)


def fingerprint(config: DatasetConfig, split: str | None = None) -> str:
    """Return the sha256 over the files that a split (by default the config's) is read from."""
    return FORMATS[config.format].digest(config, known_split(config, split))


def counts_note(config: DatasetConfig, rows: int, *, split: str | None = None) -> str | None:
    """Return a warning when a known benchmark has not the number of rows that it should have.

    `rows` counts good and bad ones.
    """
    return _note(config, rows, known_split(config, split))


def _note(config: DatasetConfig, rows: int, split: str) -> str | None:
    expected = expected_count(config, split)
    if expected in (None, rows):
        return None
    return (
        f"{config.path}: the split {split} has {rows} rows, the published one has {expected}; "
        "is the download complete?"
    )
