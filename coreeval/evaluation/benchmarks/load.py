"""Loads a benchmark: the registry of formats, the common steps, and the published row counts.

The counts reveal an incomplete download. TweetEval's and MRPC's numbers are those of the files;
stance adds up to the 2,620 and 1,249 of Table 1 of the CoreEval paper. RTE's numbers are GLUE's, as
are those of MRPC's GLUE form.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import DatasetConfig
from coreeval.config.plugins import parse_plugin
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks import (
    arrow,
    ectsum,
    finqa,
    glue,
    hub,
    mmlu,
    squad,
    tables,
    tweeteval,
)
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    Rows,
    make_checker,
    refuse_mostly_bad,
)
from coreeval.evaluation.benchmarks.tweeteval import LABELS, TEXT, folders
from coreeval.schema import BadRow, Sample, Task

Counts = dict[str, int]

TWEETEVAL: dict[str, Counts] = {
    "emotion": {"train": 3257, "val": 374, "test": 1421},
    "irony": {"train": 2862, "val": 955, "test": 784},
}
STANCE: dict[str, Counts] = {
    "abortion": {"train": 587, "val": 66, "test": 280},
    "atheism": {"train": 461, "val": 52, "test": 220},
    "climate": {"train": 355, "val": 40, "test": 169},
    "feminism": {"train": 597, "val": 67, "test": 285},
    "hillary": {"train": 620, "val": 69, "test": 295},
}
MRPC: Counts = {"train": 4076, "dev": 408, "test": 1725}
GLUE_MRPC: Counts = {"train": 3668, "dev": 408, "test": 1725}
RTE: Counts = {"train": 2490, "dev": 277, "test": 277}


def find_row_count(config: DatasetConfig, split: str) -> int | None:
    """Return the number of rows that a split should have, or None if it is unknown.

    It is known only for folders with the official name and all files, so an excerpt of a benchmark
    does not count as a damaged copy.
    """
    if config.format == "tweeteval":
        return _tweeteval_count(config, split)
    root = Path(config.path)
    if config.format not in ("mrpc", "rte") or root.name.lower() != config.format:
        return None
    return _glue_count(root, config.format, split)


def _tweeteval_count(config: DatasetConfig, split: str) -> int | None:
    counts = [
        _folder_counts(folder, target).get(split) for target, folder in folders(config).items()
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _folder_counts(folder: Path, target: str) -> Counts:
    files = [f"{split}{kind}" for split in ("train", "val", "test") for kind in (TEXT, LABELS)]
    if not _has_all(folder, files):
        return {}
    if target and folder.parent.name == "stance":
        return STANCE.get(target, {})
    return {} if target else TWEETEVAL.get(folder.name, {})


def _glue_count(root: Path, name: str, split: str) -> int | None:
    if name == "rte":
        return RTE.get(split) if _has_all(root, ["train.tsv", "dev.tsv"]) else None
    if _has_all(root, ["msr_paraphrase_train.txt", "msr_paraphrase_test.txt"]):
        return MRPC.get(split)
    return GLUE_MRPC.get(split) if _has_all(root, ["train.tsv", "dev.tsv"]) else None


def _has_all(folder: Path, names: list[str]) -> bool:
    return all((folder / name).is_file() for name in names)


FORMATS: dict[str, BenchmarkFormat] = {
    "tweeteval": tweeteval.SOURCE,
    "mrpc": glue.MRPC,
    "rte": glue.RTE,
    "squad": squad.SQUAD,
    "mmlu": mmlu.MMLU,
    "finqa": finqa.FINQA,
    "ectsum": ectsum.ECTSUM,
    "jsonl": tables.JSONL,
    "csv": tables.CSV,
    "tsv": tables.TSV,
    "parquet": arrow.PARQUET,
    "hf": hub.HUB,
}


def find_format(name: str) -> BenchmarkFormat:
    """Return a format by its name in a config: a built-in format, or a plugin's.

    Raises:
        PluginError: there is no such plugin, or it does not fit its protocol.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    if name in FORMATS:
        return FORMATS[name]
    from coreeval.evaluation.benchmarks.plugin_format import open_plugin_format  # for few configs

    return open_plugin_format(parse_plugin(name) or name)


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One split of a benchmark in memory."""

    split: str
    samples: tuple[Sample, ...]
    bad_rows: tuple[BadRow, ...]
    note: str | None
    """A warning about the number of rows, see `counts_note`."""


def load_benchmark(config: DatasetConfig, task: Task, *, split: str | None = None) -> Benchmark:
    """Load a whole split, by default the config's; see `iter_benchmark`."""
    chosen = resolve_split(config, split)
    found = list(_open_samples(config, task, chosen))
    return Benchmark(
        split=chosen,
        samples=tuple(row for row in found if isinstance(row, Sample)),
        bad_rows=tuple(row for row in found if isinstance(row, BadRow)),
        note=_count_note(config, len(found), chosen),
    )


def iter_benchmark(
    config: DatasetConfig, task: Task, *, split: str | None = None
) -> Iterator[Sample | BadRow]:
    """Stream a split, by default the config's: each row as a sample or as a bad row.

    Ids are the source's own (`id`, RTE's `index`, MRPC's two joined by `-`), or
    `<task>/<split>/<number>`: the line number in a text or JSON Lines file, otherwise the row
    number without the header. They do not depend on which other rows are bad.

    Raises:
        DatasetError: at once for missing files, columns or splits; at the end of the stream if a
            split does not have a single sample, and before it if most of very many rows are bad.
    """
    return _open_samples(config, task, resolve_split(config, split))


def _open_samples(config: DatasetConfig, task: Task, split: str) -> Iterator[Sample | BadRow]:
    source = find_format(config.format)
    _check_task(config, task, source)
    rows = source.rows(config, task, split)
    return _check_rows(rows, config, task, split)


def _check_task(config: DatasetConfig, task: Task, source: BenchmarkFormat) -> None:
    """Raise a DatasetError if the samples of a format do not fit the task."""
    if source.kind not in (None, task.kind):
        raise DatasetError(
            f"{config.format} is for tasks of the kind {source.kind}, but the task {task.name} has "
            f"the kind {task.kind}",
            where=config.path,
            hint="dataset.format and task must match",
        )
    for name in task.fields if source.fields else ():
        if name not in source.fields:
            there = ", ".join(source.fields)
            raise DatasetError(
                f"{config.format} has no field {name!r}, which the task {task.name} requires",
                where=config.path,
                hint=f"in the task file, `fields: [...]` may contain {there}",
            )


def _check_rows(
    rows: Rows, config: DatasetConfig, task: Task, split: str
) -> Iterator[Sample | BadRow]:
    check, good, bad, first_bad = make_checker(task, split), 0, 0, None
    for found in map(check, rows):
        if isinstance(found, Sample):
            good += 1
        else:
            bad, first_bad = bad + 1, first_bad or found
            refuse_mostly_bad(bad, good, first_bad, where=config.path)
        yield found
    if not good:
        raise _no_rows_error(config, task, split, first_bad)


def _no_rows_error(
    config: DatasetConfig, task: Task, split: str, first: BadRow | None
) -> DatasetError:
    if first is None:
        return DatasetError(f"the split {split!r} is empty", where=config.path)
    return DatasetError(
        f"the split {split!r} contains no valid sample of the task {task.name}",
        where=f"{config.path}: {first.file}, line {first.line}",
        hint=f"first bad row: {first.reason}; check that dataset.format and task match the file",
    )


def resolve_split(config: DatasetConfig, split: str | None = None) -> str:
    """Return a format's own name for a split, by default the config's.

    Raises:
        DatasetError: the split does not exist.
    """
    source, asked = find_format(config.format), split or config.split
    name = source.spellings.get(asked, asked)
    names = source.splits(config)
    if asked in names or name in names:
        return asked if asked in names else name
    raise DatasetError(
        f"there is no split {asked!r}",
        where=config.path,
        hint=f"available splits: {', '.join(names)} (if the path is a single file, that file is "
        "the only split)",
    )


def list_splits(config: DatasetConfig) -> list[str]:
    """Return the sorted names of the existing splits."""
    return find_format(config.format).splits(config)


def fingerprint(config: DatasetConfig, split: str | None = None) -> str:
    """Return the SHA-256 of the files of a split, by default the config's."""
    return find_format(config.format).digest(config, resolve_split(config, split))


def counts_note(config: DatasetConfig, rows: int, *, split: str | None = None) -> str | None:
    """Return a warning if a known benchmark does not have the expected number of rows.

    `rows` counts good and bad rows.
    """
    return _count_note(config, rows, resolve_split(config, split))


def _count_note(config: DatasetConfig, rows: int, split: str) -> str | None:
    expected = find_row_count(config, split)
    if expected in (None, rows):
        return None
    return (
        f"{config.path}: the split {split} has {rows} rows, but the published one has {expected}; "
        "the download may be incomplete"
    )
