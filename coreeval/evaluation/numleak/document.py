"""Audits as a document: what `coreeval detect numleak --json` and a run's report.json have."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date
from math import isfinite, nan
from typing import Any

from coreeval.evaluation.numleak.leak import Signal
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.statistics import Metric, Settings
from coreeval.evaluation.numleak.study import Audit, audited
from coreeval.evaluation.statistics import LEVEL

Document = dict[str, Any]
_OF_SIGNATURE = ("parse_rate", "pearson_r", "mae", "within_tolerance", "sign_accuracy")

_OF_BASIS = ("exactness", "follows_p", "follows_p_adjusted")
"""Parts of `Measured` that are told of the answers that the verdict rests on."""


def numleak_document(
    replies: Iterable[Reply],
    series: Mapping[str, Series],
    settings: Settings,
    cutoffs: Mapping[str, date | None],
    notes: Sequence[str] = (),
    signals: Sequence[Signal] = (),
) -> Document:
    """Return the audits of recorded answers, from the answers alone (`audited` has arguments).

    `notes` say what was not asked, or not as it was meant.
    """
    found = audited(replies, series, settings, cutoffs, signals)
    return audits_document(found, settings, notes)


def audits_document(
    audits: Iterable[Audit], settings: Settings, notes: Sequence[str] = ()
) -> Document:
    """Return each audit, what decides the numbers, and what is to be known of the asking."""
    return {
        "series": [_audit(audit) for audit in audits],
        "settings": {"draws": settings.draws, "seed": settings.seed, "level": LEVEL},
        "notes": list(notes),
    }


def _audit(audit: Audit) -> Document:
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
        "basis": _basis(audit),
        "notes": list(audit.notes),
        "left_out": [
            {"date": bad.reply.date, "variant": bad.reply.variant, "reason": bad.reason}
            for bad in audit.left_out
        ],
    }


def _basis(audit: Audit) -> Document:
    """Return what the verdict rests on: some of the dates, in the unit of the series."""
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
    """Return a value as JSON has it: names for fields, null for what is not defined."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Metric) and value.ci_low == value.ci_high:
        value = value._replace(ci_low=nan, ci_high=nan)  # nothing varied: no interval is known
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
