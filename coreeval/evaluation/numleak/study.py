"""From recorded answers to a verdict for each model and series, whoever asked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from coreeval.evaluation.numleak.basis import Basis, basis_of
from coreeval.evaluation.numleak.leak import Leak, Signal, leak_of
from coreeval.evaluation.numleak.leak.scores import scores_of
from coreeval.evaluation.numleak.parsing import BadReply, points_of
from coreeval.evaluation.numleak.points import Comparison, Point
from coreeval.evaluation.numleak.replies import COUNTED, FOR_DEFENCES, Reply
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.evaluation.numleak.shifts import shifted
from coreeval.evaluation.numleak.statistics import Measured, Settings, adjusted_together, measure
from coreeval.evaluation.numleak.statistics.variants import Variants, variants_of
from coreeval.evaluation.numleak.strays import Parted, parted, told
from coreeval.evaluation.numleak.verdicts import Judgement, Verdict, verdict_of

Key = tuple[str, str]
"""A model and the id of a series."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """One model on one series: what it said, what that measures, and what follows."""

    model: str
    series: str
    """What the answers call the series: its id."""
    definition: SeriesDefinition
    cutoff: date | None
    """Of the model; None where it is not known."""
    points: tuple[Point, ...]
    comparisons: tuple[Comparison, ...]
    left_out: tuple[BadReply, ...]
    """Answers that could not be counted, and why."""
    measured: Measured
    variants: Variants
    """What further ways of asking show; no verdict rests on them."""
    judgement: Judgement
    """Given on the `basis`, without answers that are no value of the series, if they are few."""
    basis: Basis
    """The answers that the verdict rests on."""
    judged: Measured
    """What those answers measure."""
    notes: tuple[str, ...]
    """What must be known of the series and of the numbers, a sentence each."""
    leak: Leak | None = None
    """How far the memory reaches into signals; None where none was asked for or given."""

    @property
    def verdict(self) -> Verdict:
        """What is said of memory."""
        return self.judgement.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why, a sentence each."""
        return self.judgement.reasons


def audited(
    replies: Iterable[Reply],
    series: Mapping[str, Series],
    settings: Settings,
    cutoffs: Mapping[str, date | None],
    signals: Sequence[Signal] = (),
) -> tuple[Audit, ...]:
    """Measure each model on each series that it was asked about, in the order of the answers.

    Args:
        replies: What was said; each series in it is in `series`.
        series: By id.
        settings: How answers are resampled.
        cutoffs: The last day of each model's training data; a model that is not there has none.
        signals: The user's own, held against what each model recalls.
    """
    groups = _grouped(one for one in replies if one.variant not in FOR_DEFENCES)
    read = {
        key: points_of(
            [reply for reply in each if reply.variant in COUNTED],
            series[key[1]],
            cutoffs.get(key[0]),
        )
        for key, each in groups.items()
    }
    scored = {key: scores_of(each, series[key[1]]) for key, each in groups.items()}
    points = {key: readings.points for key, readings in read.items()}
    bases = {
        key: basis_of(each, cutoffs.get(key[0]), series[key[1]].values)
        for key, each in points.items()
    }
    parts = {key: parted(each.points, series[key[1]].values) for key, each in bases.items()}

    def measured(key: Key, those: Sequence[Point], shift: int = 0) -> Measured:
        model, name = key
        return measure(
            those,
            read[key].comparisons,
            definition=series[name].definition,
            others=_siblings(model, name, series, points),
            values=shifted(series[name].values, shift),
            settings=settings,
        )

    found = adjusted_together({key: measured(key, each) for key, each in points.items()})
    judged = adjusted_together(
        {
            key: found[key]
            if part.kept == points[key]
            else measured(key, part.kept, bases[key].shift)
            for key, part in parts.items()
        }
    )
    return tuple(
        Audit(
            model=key[0],
            series=key[1],
            definition=series[key[1]].definition,
            cutoff=cutoffs.get(key[0]),
            points=tuple(readings.points),
            comparisons=tuple(readings.comparisons),
            left_out=(*readings.bad, *scored[key].bad),
            measured=found[key],
            variants=variants_of(
                readings.points,
                readings.continued,
                definition=series[key[1]].definition,
                settings=settings,
            ),
            judgement=_judgement(judged[key], bases[key], parts[key], found[key].overall.parsed),
            basis=bases[key],
            judged=judged[key],
            notes=(*series[key[1]].notes, *found[key].notes),
            leak=leak_of(
                parted(points[key], series[key[1]].values).kept,
                scored[key],
                series[key[1]],
                signals,
                settings,
            ),
        )
        for key, readings in read.items()
    )


def _grouped(replies: Iterable[Reply]) -> dict[Key, list[Reply]]:
    groups: dict[Key, list[Reply]] = {}
    for reply in replies:
        groups.setdefault((reply.model, reply.series), []).append(reply)
    return groups


def _siblings(
    model: str, name: str, series: Mapping[str, Series], points: Mapping[Key, Sequence[Point]]
) -> dict[str, Sequence[Point]]:
    """Return what the model said about the other series of a family."""
    family = series[name].definition.family
    return {
        other: points[model, other]
        for other, one in series.items()
        if family and one.definition.family == family and other != name and (model, other) in points
    }


def _judgement(judged: Measured, basis: Basis, part: Parted, answered: int) -> Judgement:
    verdict, reasons = verdict_of(judged)
    return Judgement(verdict, (*reasons, *basis.says, *told(part.strays, answered)))
