"""A comparison as a document: what `coreeval detect pcr --json` and a run's report.json have."""

from math import isfinite
from typing import Any

from coreeval.evaluation.pcr.comparison import Comparison, Difference, SplitResult
from coreeval.evaluation.pcr.study import COSINE, Settings
from coreeval.evaluation.pcr.verdicts import MIN_ITEMS
from coreeval.evaluation.statistics import LEVEL, SIGNIFICANCE, Estimate

Document = dict[str, Any]


def comparison_document(one: Comparison) -> Document:
    """Return the splits, their difference and the verdict with its reason."""
    return {
        "splits": {split: _split(each) for split, each in one.splits.items()},
        "difference": _difference(one.difference),
        "verdict": one.verdict,
        "reason": one.reason,
        "baselines": _baselines(one),
        "notes": list(one.notes),
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
        "scored": each.scored,
        "performance": number(each.performance),
        "consistency": number(each.consistency),
        "pcr": number(each.pcr.estimate),
        **ends(each.pcr),
    }


def _difference(found: Difference) -> Document:
    return {
        "estimate": number(found.pcr.estimate),
        **ends(found.pcr),
        "p_value": number(found.p_value),
        "p_adjusted": number(found.p_adjusted),
        "standard_error": number(found.standard_error),
        "detectable": number(found.detectable),
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
