"""A comparison as a document: what `coreeval detect pcr --json` and a run's report.json have."""

from math import isfinite
from typing import Any

from coreeval.evaluation.pcr.comparison import Comparison, ReferenceResult, SplitResult
from coreeval.evaluation.pcr.differences import Effect, ExcessDifference, PointsDifference
from coreeval.evaluation.pcr.study import COSINE, PcrSettings
from coreeval.evaluation.pcr.verdicts import MIN_ITEMS
from coreeval.evaluation.statistics import LEVEL, SIGNIFICANCE, Estimate

Document = dict[str, Any]


def comparison_document(one: Comparison) -> Document:
    """Return the splits, their difference and the verdict with its reason."""
    return {
        "splits": {split: _split_document(each) for split, each in one.splits.items()},
        "difference": _effect_document(one.difference),
        "adjusted": _excess_document(one.adjusted) if one.adjusted else None,
        "exchangeable_splits": one.exchangeable,
        "test": {
            "basis": one.test.basis,
            "p_value": json_number(one.test.p_value),
            "p_adjusted": json_number(one.test.p_adjusted),
        },
        "doses": [
            {key: json_number(value) for key, value in dose._asdict().items()} for dose in one.doses
        ],
        "verdict": one.verdict,
        "reason": one.reason,
        "baselines": _baseline_document(one),
        "notes": list(one.notes),
    }


def reference_document(one: ReferenceResult) -> Document:
    """Return the splits of a reference and their difference; it has no verdict."""
    return {
        "splits": {split: _split_document(each) for split, each in one.splits.items()},
        "difference": _effect_document(one.difference),
    }


def settings_document(asked: PcrSettings, embeddings: str | None) -> Document:
    """Return everything that decides the numbers."""
    form = asked.form
    return {
        "metric": asked.metric,
        "consistency": asked.consistency,
        "threshold": asked.threshold if asked.consistency == COSINE else None,
        "embeddings": embeddings,
        "alpha": form.alpha,
        "scale": form.scale,
        "train_split": asked.train,
        "test_split": asked.test,
        "interval": form.interval,
        "level": LEVEL,
        "draws": asked.draws,
        "seed": asked.seed,
        "margin": form.near,
        "min_items": MIN_ITEMS,
        "significance": round(SIGNIFICANCE, 6),
    }


def interval_document(found: Estimate) -> Document:
    """Return the ends of an interval."""
    return {"ci_low": json_number(found.ci_low), "ci_high": json_number(found.ci_high)}


def json_number(value: float) -> float | None:
    """Return a number that JSON has; what is not defined is null."""
    return value if isfinite(value) else None


def _split_document(each: SplitResult) -> Document:
    return {
        "n": each.n,
        "clusters": each.clusters,
        "unanswered": each.unanswered,
        "statuses": {
            whose: dict(counts)
            for whose, counts in zip(("original", "modified"), each.statuses, strict=True)
        },
        "scored": each.scored,
        "performance": json_number(each.performance),
        "consistency": json_number(each.consistency),
        "pcr": json_number(each.pcr.estimate),
        **interval_document(each.pcr),
    }


def _effect_document(found: Effect) -> Document:
    return {
        "estimate": json_number(found.pcr.estimate),
        **interval_document(found.pcr),
        **_test_document(found),
        "points": {
            "estimate": json_number(found.points.estimate.estimate),
            **interval_document(found.points.estimate),
            **_test_document(found.points),
        },
    }


def _test_document(found: Effect | PointsDifference) -> Document:
    return {
        "p_value": json_number(found.p_value),
        "p_adjusted": json_number(found.p_adjusted),
        "standard_error": json_number(found.standard_error),
        "detectable": json_number(found.detectable),
    }


def _excess_document(found: ExcessDifference) -> Document:
    return {
        **_effect_document(found),
        "references": list(found.references),
        "method": found.method,
        "shared": dict(found.shared),
    }


def _baseline_document(one: Comparison) -> Document:
    declines = {name: each.decline for name, each in one.splits.items()}
    discrepancy = one.difference.discrepancy
    return {
        "decline": {name: json_number(each.estimate) for name, each in declines.items()},
        "discrepancy": json_number(discrepancy.estimate),
        "intervals": {
            "decline": {name: interval_document(each) for name, each in declines.items()},
            "discrepancy": interval_document(discrepancy),
        },
    }
