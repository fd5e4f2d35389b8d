"""Audits recorded answers: a verdict for each model and series, also as JSON.

`numleak_document` returns the output of `coreeval detect numleak --json`, which is also a part of a
run's report.json. The definition of a series without one is inferred from its recorded answers and
their truth.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from datetime import date
from math import isfinite, nan
from typing import Any

from coreeval.evaluation.numleak.basis import (
    OutlierSplit,
    VerdictBasis,
    choose_basis,
    describe_outliers,
    shift_values,
    split_outliers,
)
from coreeval.evaluation.numleak.leak import Leak, Signal, measure_leak
from coreeval.evaluation.numleak.leak.signals import SentimentReadings, read_scores
from coreeval.evaluation.numleak.memory_verdicts import MemoryJudgement, Verdict, judge_memory
from coreeval.evaluation.numleak.parsing import AnswerReadings, BadReply, read_points
from coreeval.evaluation.numleak.parsing.answer_unit import are_in_percent
from coreeval.evaluation.numleak.periods import Frequency, Period
from coreeval.evaluation.numleak.replies import (
    COUNTED_VARIANTS,
    DEFENCE_VARIANTS,
    DateComparison,
    Point,
    Reply,
)
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.evaluation.numleak.series.own_values import (
    PLAIN_UNIT,
    UNKNOWN_UNIT,
    OwnSeries,
    define_series,
    infer_frequency,
    scale_tolerance,
)
from coreeval.evaluation.numleak.statistics import (
    AuditSettings,
    Metric,
    SeriesMeasurements,
    adjust_together,
    measure,
)
from coreeval.evaluation.numleak.statistics.variant_comparison import Variants, measure_variants
from coreeval.evaluation.statistics import LEVEL

AuditKey = tuple[str, str]
"""A model's name and a series id."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The audit of one model on one series: its answers, their measurements and the verdict."""

    model: str
    series: str
    """The id of the series, as used in the answers."""
    definition: SeriesDefinition
    cutoff: date | None
    """The model's training cutoff; None if unknown."""
    points: tuple[Point, ...]
    comparisons: tuple[DateComparison, ...]
    left_out: tuple[BadReply, ...]
    """Answers that could not be counted, each with the reason."""
    measured: SeriesMeasurements
    variants: Variants
    """Results of the probe variants; no verdict depends on them."""
    judgement: MemoryJudgement
    """The verdict on the `basis`, without a few answers that are not values of the series."""
    basis: VerdictBasis
    """The answers on which the verdict is based."""
    judged: SeriesMeasurements
    """Measurements of the answers on which the verdict is based."""
    notes: tuple[str, ...]
    """Notes on the series and on the numbers, one sentence each."""
    leak: Leak | None = None
    """How far memory affects signals; None if no signal was asked for or given."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the model's memory of the series."""
        return self.judgement.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for the verdict, one sentence each."""
        return self.judgement.reasons


def audit_replies(
    replies: Iterable[Reply],
    series: Mapping[str, Series],
    settings: AuditSettings,
    cutoffs: Mapping[str, date | None],
    signals: Sequence[Signal] = (),
) -> tuple[Audit, ...]:
    """Measure each model on each series that it was asked about, in the order of the answers.

    Args:
        replies: The answers; `series` contains every series that they name.
        series: The series by id.
        settings: How answers are resampled.
        cutoffs: The last day of each model's training data; a missing model has none.
        signals: The user's signals, to compare with each model's recall.
    """
    groups = _group_replies(one for one in replies if one.variant not in DEFENCE_VARIANTS)
    read = {
        key: _read_answers(each, series[key[1]], cutoffs.get(key[0]))
        for key, each in groups.items()
    }
    points = {key: each.readings.points for key, each in read.items()}

    def measure_key(key: AuditKey, those: Sequence[Point], shift: int = 0) -> SeriesMeasurements:
        model, name = key
        return measure(
            those,
            read[key].readings.comparisons,
            definition=series[name].definition,
            others=_find_siblings(model, name, series, points),
            values=shift_values(series[name].values, shift),
            settings=settings,
        )

    found = adjust_together({key: measure_key(key, each) for key, each in points.items()})
    judged = adjust_together(
        {
            key: found[key]
            if each.outliers.kept == points[key]
            else measure_key(key, each.outliers.kept, each.basis.shift)
            for key, each in read.items()
        }
    )
    return tuple(
        each.to_audit(key, found[key], judged[key], signals, settings) for key, each in read.items()
    )


@dataclass(frozen=True)
class _Answers:
    """A model's parsed answers about a series."""

    series: Series
    cutoff: date | None
    readings: AnswerReadings
    sentiments: SentimentReadings
    basis: VerdictBasis
    outliers: OutlierSplit
    """The value questions of the basis, with outliers set aside."""

    def to_audit(
        self,
        key: AuditKey,
        found: SeriesMeasurements,
        judged: SeriesMeasurements,
        signals: Sequence[Signal],
        settings: AuditSettings,
    ) -> Audit:
        """Return the audit of these answers.

        Args:
            key: The model and the id of the series.
            found: Measurements of all answers.
            judged: Measurements of the answers on which the verdict is based.
            signals: As for `audit_replies`.
            settings: As for `audit_replies`.
        """
        readings, series = self.readings, self.series
        return Audit(
            model=key[0],
            series=key[1],
            definition=series.definition,
            cutoff=self.cutoff,
            points=tuple(readings.points),
            comparisons=tuple(readings.comparisons),
            left_out=(*readings.bad, *self.sentiments.bad),
            measured=found,
            variants=measure_variants(
                readings.points,
                readings.continued,
                definition=series.definition,
                settings=settings,
            ),
            judgement=_judge(judged, self.basis, self.outliers, found.overall.parsed),
            basis=self.basis,
            judged=judged,
            notes=(*series.notes, *found.notes),
            leak=measure_leak(
                split_outliers(readings.points, series.values).kept,
                self.sentiments,
                series,
                signals,
                settings,
            ),
        )


def _read_answers(replies: Sequence[Reply], series: Series, cutoff: date | None) -> _Answers:
    counted = [reply for reply in replies if reply.variant in COUNTED_VARIANTS]
    readings = read_points(counted, series, cutoff)
    basis = choose_basis(readings.points, cutoff, series.values)
    return _Answers(
        series=series,
        cutoff=cutoff,
        readings=readings,
        sentiments=read_scores(replies, series),
        basis=basis,
        outliers=split_outliers(basis.points, series.values),
    )


def _group_replies(replies: Iterable[Reply]) -> dict[AuditKey, list[Reply]]:
    groups: dict[AuditKey, list[Reply]] = {}
    for reply in replies:
        groups.setdefault((reply.model, reply.series), []).append(reply)
    return groups


def _find_siblings(
    model: str, name: str, series: Mapping[str, Series], points: Mapping[AuditKey, Sequence[Point]]
) -> dict[str, Sequence[Point]]:
    """Return the model's answers about the other series of the same family, by id."""
    family = series[name].definition.family
    return {
        other: points[model, other]
        for other, one in series.items()
        if family and one.definition.family == family and other != name and (model, other) in points
    }


def _judge(
    judged: SeriesMeasurements, basis: VerdictBasis, part: OutlierSplit, answered: int
) -> MemoryJudgement:
    verdict, reasons = judge_memory(judged)
    return MemoryJudgement(
        verdict, (*reasons, *basis.says, *describe_outliers(part.outliers, answered))
    )


Document = dict[str, Any]
_OF_SIGNATURE = ("parse_rate", "pearson_r", "mae", "within_tolerance", "sign_accuracy")

_OF_BASIS = ("exactness", "follows_p", "follows_p_adjusted")
"""Fields of `SeriesMeasurements` that are only reported for the verdict's basis."""


def numleak_document(
    replies: Iterable[Reply],
    series: Mapping[str, Series],
    settings: AuditSettings,
    cutoffs: Mapping[str, date | None],
    notes: Sequence[str] = (),
    signals: Sequence[Signal] = (),
) -> Document:
    """Return the audits of recorded answers as a document (arguments as for `audit_replies`).

    `notes` name the questions that were not asked, or not as configured.
    """
    found = audit_replies(replies, series, settings, cutoffs, signals)
    return audits_document(found, settings, notes)


def audits_document(
    audits: Iterable[Audit], settings: AuditSettings, notes: Sequence[str] = ()
) -> Document:
    """Return a document with each audit, the settings behind the numbers, and the notes."""
    return {
        "series": [_audit_document(audit) for audit in audits],
        "settings": {"draws": settings.draws, "seed": settings.seed, "level": LEVEL},
        "notes": list(notes),
    }


def _audit_document(audit: Audit) -> Document:
    definition, found = audit.definition, as_json(audit.measured)
    overall = found.pop("overall")
    for name in _OF_BASIS:
        del found[name]
    return {
        "model": audit.model,
        "series": audit.series,
        "name": definition.name,
        "unit": definition.unit.name,
        "points_name": definition.unit.points_name,
        "cutoff": audit.cutoff.isoformat() if audit.cutoff else None,
        **{key: overall[key] for key in ("n", "parsed", "dates", "statuses", *_OF_SIGNATURE)},
        **found,
        "variants": as_json(audit.variants),
        "leak": as_json(audit.leak),
        "verdict": audit.verdict,
        "reasons": list(audit.reasons),
        "basis": _basis_document(audit),
        "notes": list(audit.notes),
        "left_out": [
            {"date": bad.reply.date, "variant": bad.reply.variant, "reason": bad.reason}
            for bad in audit.left_out
        ],
    }


def _basis_document(audit: Audit) -> Document:
    """Return the basis of the verdict: its choice of dates, in the unit of the series."""
    basis, judged = audit.basis, audit.judged
    return {
        "strata": list(basis.strata),
        "dates": basis.dates,
        "shift": basis.shift + judged.exactness.shift,
        "factor": basis.factor * judged.exactness.factor,
        "pearson_r": as_json(judged.overall.pearson_r),
        "p_adjusted": as_json(judged.p_adjusted),
        **{name: as_json(getattr(judged, name)) for name in _OF_BASIS},
    }


def as_json(value: object) -> Any:  # noqa: ANN401 - JSON is whatever the value is
    """Convert a value for JSON: field names become keys, and undefined numbers become null."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Metric) and value.ci_low == value.ci_high:
        value = value._replace(ci_low=nan, ci_high=nan)  # nothing varied: interval unknown
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return as_json(value._asdict())
    if isinstance(value, Period):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return as_json({name: getattr(value, name) for name in value.__dataclass_fields__})
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(each) for each in value]
    return value


def infer_series(
    name: str, replies: Sequence[Reply], *, file: str, definition: SeriesDefinition | None = None
) -> Series | None:
    """Build a series from the truth in recorded answers; None if they do not suffice.

    Args:
        name: The id of the series.
        replies: All answers about the series.
        file: The file that the answers were read from.
        definition: The definition of the series; None to infer it from the truth.
    """
    frequency = definition.frequency if definition else infer_frequency([r.date for r in replies])
    if frequency is None or not (values := _truths_by_date(replies, frequency)):
        return None
    if definition:
        return Series(definition=definition, values=values, origin=file)
    tolerance = scale_tolerance(values)
    if tolerance <= 0:
        return None
    in_percent = are_in_percent(reply.response for reply in replies)
    about = OwnSeries(
        name=name,
        unit="percent" if in_percent else PLAIN_UNIT,
        tolerances=(tolerance,),
        source=file,
    )
    implied = define_series(about, values, frequency)
    unit = "the unit is percent" if in_percent else UNKNOWN_UNIT
    note = (
        f"{name} has no definition: its frequency is assumed to be {frequency}, its true values "
        f"are those in the file, and its tolerance is {implied.tolerance:g}, one twentieth of the "
        f"standard deviation of these values; {unit}; to define the series, pass --series FILE.yaml"
    )
    return Series(definition=implied, values=values, notes=(note,), origin=file)


def _truths_by_date(replies: Iterable[Reply], frequency: Frequency) -> dict[Period, float]:
    """Return the truth by date in chronological order; rows without a date are skipped."""
    found = dict[Period, float]()
    for reply in replies:
        with suppress(ValueError):
            if reply.truth is not None and reply.other_date is None:
                found[Period.parse(reply.date, frequency)] = reply.truth
    return dict(sorted(found.items()))
