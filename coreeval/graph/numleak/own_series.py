"""The series of a run: its own copy, which later changes of their files do not reach."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BeforeValidator, Field, model_validator

from coreeval.config import NumleakConfig
from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import RunCorrupt, RunStateError
from coreeval.evaluation.numleak.leak import Signal
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import LARGEST_VALUE, Reply
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.graph.numleak.plan import SeriesSet, load_signals, open_series_set
from coreeval.runs.manifest import describe_first_problem
from coreeval.schema import Value
from coreeval.tools.files import write_text
from coreeval.tools.workspace import RunFiles

_HINT: Final = "restore it from a copy of the run, or start a new run"


def _name_periods(values: Mapping[object, object]) -> dict[str, object]:
    return {str(period): value for period, value in values.items()}


class _OwnSeries(Value):
    """A series as it was when a run first asked about it."""

    definition: SeriesDefinition
    values: Annotated[
        dict[str, Annotated[float, Field(ge=-LARGEST_VALUE, le=LARGEST_VALUE)]],
        Field(min_length=1),
        BeforeValidator(_name_periods),
    ]
    notes: tuple[str, ...]
    origin: str
    digest: str
    text: str

    def to_series(self) -> Series:
        frequency = self.definition.frequency
        values = {Period.parse(text, frequency): value for text, value in self.values.items()}
        return Series(
            definition=self.definition,
            values=dict(sorted(values.items())),
            notes=self.notes,
            origin=self.origin,
            digest=self.digest,
            text=self.text,
        )


class _OwnInputs(Value):
    """The content of the copy."""

    series: Annotated[tuple[_OwnSeries, ...], Field(min_length=1)]
    siblings: tuple[_OwnSeries, ...]
    left_out: tuple[str, ...]
    signals: tuple[Signal, ...]

    @model_validator(mode="after")
    def _check_families(self) -> Self:
        families = {one.definition.family for one in self.series}
        if any(one.definition.family not in families for one in self.siblings):
            raise ValueError("a sibling is not in the family of any series")
        return self


def open_run_series(
    files: RunFiles, asked: NumleakConfig, *, base: Path, cache: Path, replies: Iterable[Reply]
) -> tuple[SeriesSet, tuple[Signal, ...]]:
    """Return the series and signals of a run from its copy, which the first call makes.

    Args:
        files: The files of the run.
        asked: The run's settings.
        base: The folder that relative paths are resolved against.
        cache: Folder where fetched files are kept.
        replies: The answers so far.

    Raises:
        UsageError: there is no copy, and a series or signal cannot be opened.
        RunStateError: there is no copy, and the answers are about other series.
        RunCorrupt: the copy is damaged.
    """
    if not files.series.exists():
        universe, signals = (
            open_series_set(asked, base=base, cache=cache),
            load_signals(asked, base),
        )
        _refuse_changed_series(universe, replies, where=files.root)
        write_text(files.series, _make_copy(universe, signals).model_dump_json())
    return _read_copy(files.series)


def _make_copy(universe: SeriesSet, signals: tuple[Signal, ...]) -> _OwnInputs:
    return _OwnInputs(
        series=_copy_series(universe.series),
        siblings=_copy_series(universe.siblings),
        left_out=universe.left_out,
        signals=signals,
    )


def _copy_series(series: Sequence[Series]) -> tuple[_OwnSeries, ...]:
    return tuple(_OwnSeries.model_validate(one, from_attributes=True) for one in series)


def _read_copy(path: Path) -> tuple[SeriesSet, tuple[Signal, ...]]:
    try:
        kept = _OwnInputs.model_validate_json(read_bytes(path, most_bytes=MOST_DATA_BYTES))
        universe = SeriesSet(
            series=tuple(one.to_series() for one in kept.series),
            siblings=tuple(one.to_series() for one in kept.siblings),
            left_out=kept.left_out,
        )
    except (OSError, ValueError) as error:
        problem = f"the run's copy of its series is damaged: {describe_first_problem(error)}"
        raise RunCorrupt(problem, where=str(path), hint=_HINT) from None
    return universe, kept.signals


def _refuse_changed_series(universe: SeriesSet, replies: Iterable[Reply], *, where: Path) -> None:
    """Refuse series other than those of the answers in a run of an older version, without a copy.

    Raises:
        RunStateError: a series has another id or another value than when it was asked about.
    """
    known, told = {one.definition.id: one for one in universe.all}, set[str]()
    changed = set[str]()
    for reply in replies:
        told.add(reply.series)
        series = known.get(reply.series) if reply.variant == "value" else None
        if series and _find_value(series, reply.date) != reply.truth:
            changed.add(reply.series)
    if told - known.keys():
        changed |= known.keys() - told
    if told and changed:
        raise RunStateError(
            f"the series have changed since targets were asked: {', '.join(sorted(changed))}",
            where=str(where),
            hint="restore the files of the series, or start a new run",
        )


def _find_value(series: Series, day: str) -> float | None:
    """Return the value of a date; None if it has none, or is not a date of the series."""
    with suppress(ValueError):
        return series.values.get(Period.parse(day, series.definition.frequency))
    return None
