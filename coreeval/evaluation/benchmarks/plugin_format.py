"""Dataset formats of plugins: the protocol, and the adapter that makes a plugin a format."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, Protocol, cast, get_args

from coreeval.config import DatasetConfig
from coreeval.config.plugins import PluginUse
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import file_digest
from coreeval.evaluation.benchmarks.rows import (
    BenchmarkFormat,
    RowOrBad,
    Rows,
    SourceRow,
    make_bad_row,
)
from coreeval.schema import Task, TaskKind
from coreeval.tools.plugins import Plugin, load_plugin

_KINDS: Final[tuple[str, ...]] = get_args(TaskKind)


class FormatRow(NamedTuple):
    """A row of a benchmark's file, not yet checked against the task."""

    line: int
    """The line in the file, from 1; the row if the file has no lines."""
    values: Mapping[str, object]
    """Values by name: the task's fields and the values that its kind needs, such as `label`."""
    id: str | None = None
    """The source's own id; None to number the rows."""
    cluster: str = ""
    """A value shared with related rows, e.g. those about one document; empty if unknown."""
    defect: str = ""
    """The reason why the row is not a sample, which is reported as a bad row; empty if it may be
    one."""


class FormatPlugin(Protocol):
    """A dataset format; a plugin of the group `formats`.

    Optional attributes: `kind`, the kind of task that the benchmarks are for (by default, any), and
    `fields`, the fields that they have (by default, those of the task).
    """

    plugin_api: int

    def files(self, dataset: DatasetConfig) -> Mapping[str, Sequence[Path]]:
        """Return the files of each split.

        Args:
            dataset: The config's `dataset`: `path`, `columns`, `subset` and the rest.
        """
        ...

    def rows(self, file: Path, dataset: DatasetConfig) -> Iterable[FormatRow]:
        """Yield the rows of one file, in order."""
        ...


@cache
def open_plugin_format(name: str) -> BenchmarkFormat:
    """Return the format of a plugin.

    Raises:
        PluginError: there is no such plugin, or it does not fit its protocol.
        UnallowedPlugin: the user has not allowed its code to run.
    """
    plugin = load_plugin(PluginUse("formats", name, "dataset.format"), FormatPlugin)
    reader = _PluginReader(plugin)
    return BenchmarkFormat(
        splits=lambda dataset: sorted(reader.files(dataset)),
        rows=reader.read,
        digest=lambda dataset, split: file_digest(reader.files(dataset)[split]),
        kind=_read_kind(plugin),
        fields=_read_fields(plugin),
    )


def _read_kind(plugin: Plugin) -> TaskKind | None:
    kind = plugin.read_text("kind")
    if kind and kind not in _KINDS:
        raise plugin.refuse(f"kind is {kind!r}, but it must be one of {', '.join(_KINDS)}")
    return cast("TaskKind", kind) if kind else None


def _read_fields(plugin: Plugin) -> tuple[str, ...]:
    fields = getattr(plugin.loaded, "fields", ())
    if isinstance(fields, str) or not all(isinstance(each, str) for each in fields):
        raise plugin.refuse("fields must be a list of names")
    return tuple(fields)


class _PluginReader:
    """Reads benchmarks with a plugin, and checks what it returns."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._format = cast(FormatPlugin, plugin.loaded)

    def files(self, dataset: DatasetConfig) -> dict[str, list[Path]]:
        """Return the files of each split.

        Raises:
            DatasetError: there are no files, or one of them does not exist.
            PluginFailed: the plugin failed.
        """
        with self._plugin.guard("files"):
            found = {str(split): list(map(Path, each)) for split, each in self._list(dataset)}
        for path in (path for paths in found.values() for path in paths):
            if not path.is_file():
                raise DatasetError(
                    f"{dataset.format} needs a file that is missing", where=str(path)
                )
        if not found:
            raise DatasetError(
                f"{dataset.format} finds no split in dataset.path",
                where=dataset.path,
                hint="check dataset.path; the plugin says which files it reads",
            )
        return found

    def _list(self, dataset: DatasetConfig) -> Iterable[tuple[str, Sequence[Path]]]:
        return self._format.files(dataset).items()

    def read(self, dataset: DatasetConfig, _task: Task, split: str) -> Rows:
        """Open a split; see `BenchmarkFormat.rows`."""
        return self._read_files(dataset, self.files(dataset)[split])

    def _read_files(self, dataset: DatasetConfig, paths: Sequence[Path]) -> Rows:
        number = 0
        for path in paths:
            with self._plugin.guard("rows"):
                for row in self._format.rows(path, dataset):
                    number += 1
                    yield self._make_row(row, path.name, number)

    def _make_row(self, row: object, file: str, number: int) -> RowOrBad:
        if not isinstance(row, FormatRow) or not isinstance(row.values, Mapping):
            raise self._plugin.fail("must yield FormatRow(line=..., values={...}) from rows")
        raw = str(dict(row.values))
        if row.defect:
            return make_bad_row(file, row.line, row.defect, raw)
        return SourceRow(
            file=file,
            line=row.line,
            number=number,
            values=row.values,
            id=row.id,
            cluster=row.cluster,
            raw=raw,
        )
