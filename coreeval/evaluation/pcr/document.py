"""A comparison as a document: what `coreeval detect pcr --json` and a run's report.json have."""

from math import isfinite
from typing import Any

from coreeval.evaluation.pcr.comparison import Comparison, Reference, SplitResult
from coreeval.evaluation.pcr.differences import Adjusted, Effect, Points
from coreeval.evaluation.pcr.study import COSINE, Settings
from coreeval.evaluation.pcr.verdicts import MIN_ITEMS
from coreeval.evaluation.statistics import LEVEL, SIGNIFICANCE, Estimate

Document = dict[str, Any]


def comparison_document(one: Comparison) -> Document:
    """Return the splits, their difference and the verdict with its reason."""
    return {
        "splits": {split: _split(each) for split, each in one.splits.items()},
        "difference": _effect(one.difference),
        "adjusted": _adjusted(one.adjusted) if one.adjusted else None,
        "exchangeable_splits": one.exchangeable,
        "test": {
            "basis": one.test.basis,
            "p_value": number(one.test.p_value),
            "p_adjusted": number(one.test.p_adjusted),
        },
        "doses": [
            {key: number(value) for key, value in dose._asdict().items()} for dose in one.doses
        ],
        "verdict": one.verdict,
        "reason": one.reason,
        "baselines": _baselines(one),
        "notes": list(one.notes),
    }


def reference_document(one: Reference) -> Document:
    """Return the splits of a reference and their difference; it has no verdict."""
    return {
        "splits": {split: _split(each) for split, each in one.splits.items()},
        "difference": _effect(one.difference),
    }


def settings_document(asked: Settings, embeddings: str | None) -> Document:
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


def ends(found: Estimate) -> Document:
    """Return the ends of an interval."""
    return {"ci_low": number(found.ci_low), "ci_high": number(found.ci_high)}


def number(value: float) -> float | None:
    """Return a number that JSON has; what is not defined is null."""
    return value if isfinite(value) else None


def _split(each: SplitResult) -> Document:
    return {
        "n": each.n,
        "clusters": each.clusters,
        "unanswered": each.unanswered,
        "statuses": {
            whose: dict(counts)
            for whose, counts in zip(("original", "modified"), each.statuses, strict=True)
        },
        "scored": each.scored,
        "performance": number(each.performance),
        "consistency": number(each.consistency),
        "pcr": number(each.pcr.estimate),
        **ends(each.pcr),
    }


def _effect(found: Effect) -> Document:
    return {
        "estimate": number(found.pcr.estimate),
        **ends(found.pcr),
        **_tested(found),
        "points": {
            "estimate": number(found.points.estimate.estimate),
            **ends(found.points.estimate),
            **_tested(found.points),
        },
    }


def _tested(found: Effect | Points) -> Document:
    return {
        "p_value": number(found.p_value),
        "p_adjusted": number(found.p_adjusted),
        "standard_error": number(found.standard_error),
        "detectable": number(found.detectable),
    }


def _adjusted(found: Adjusted) -> Document:
    return {
        **_effect(found),
        "references": list(found.references),
        "method": found.method,
        "shared": dict(found.shared),
    }


def _baselines(one: Comparison) -> Document:
    declines = {name: each.decline for name, each in one.splits.items()}
    discrepancy = one.difference.discrepancy
    return {
        "decline": {name: number(each.estimate) for name, each in declines.items()},
        "discrepancy": number(discrepancy.estimate),
        "intervals": {
            "decline": {name: ends(each) for name, each in declines.items()},
            "discrepancy": ends(discrepancy),
        },
    }
