"""A comparison as a document (`detect pcr --json`, report.json) and as a picture."""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coreeval.evaluation.pcr.comparison import Comparison, ReferenceResult, SplitResult
from coreeval.evaluation.pcr.differences import Effect, ExcessDifference, PointsDifference
from coreeval.evaluation.pcr.study import COSINE, Ablation, PcrSettings
from coreeval.evaluation.pcr.verdicts import MIN_ITEMS, Verdict
from coreeval.evaluation.pictures import COLOURS, open_figure, shorten_name
from coreeval.evaluation.statistics import LEVEL, SIGNIFICANCE, Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Document = dict[str, Any]


def comparison_document(one: Comparison) -> Document:
    """Return the splits, their difference, and the verdict with its reason."""
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
    """Return the splits of a reference and their difference, without a verdict."""
    return {
        "splits": {split: _split_document(each) for split, each in one.splits.items()},
        "difference": _effect_document(one.difference),
    }


def settings_document(asked: PcrSettings, embeddings: str | None) -> Document:
    """Return all settings that affect the numbers."""
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
    """Return a number that JSON can represent, with null for undefined values."""
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


VERDICT_COLOURS: Final[Mapping[Verdict, str]] = {
    "fine_tuned": "#0072B2",
    "contaminated": "#D55E00",
    "difficulty_or_memory": "#CC79A7",
    "comparable": "#009E73",
    "inconclusive": "#707070",
    "insufficient_signal": "#B0B0B0",
}
"""The palette of Okabe and Ito, which colour-blind readers can distinguish."""
_BAND: Final[Mapping[str, Any]] = {"color": "#009E73", "alpha": 0.12, "linewidth": 0}


def draw_comparisons(
    path: Path,
    found: Mapping[str, Comparison],
    *,
    compared: tuple[str, str],
    margin: float,
    title: str,
) -> Path:
    """Plot PCR of each split and the difference with its verdict, with intervals."""
    splits = list(dict.fromkeys(name for one in found.values() for name in one.splits))
    rows = sum(len(one.splits) for one in found.values())
    with open_figure(path, 10.5, 1.5 + 0.22 * rows + 0.3 * len(found)) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1))
        for row, one in enumerate(found.values()):
            _splits(left, row, one, splits)
            _difference(right, row, one)
        _name_rows(left, list(found))
        _one_legend(left)
        left.set_xlabel("PCR of each split")
        right.axvspan(-margin, margin, **_BAND)
        right.axvline(0, color="black", linewidth=0.8)
        right.set_xlabel(f"PCR({compared[0]}) - PCR({compared[1]}); shaded: treated as zero")
        right.margins(x=0.15)
        figure.suptitle(title, fontsize=10)
    return path


def draw_ablation(path: Path, ablation: Ablation, *, compared: tuple[str, str], title: str) -> Path:
    """Plot the difference against alpha for each scale, and against the threshold, if any."""
    scales = list(dict.fromkeys(form.scale for form, _ in ablation.forms))
    rows = 2 if ablation.thresholds else 1
    with open_figure(path, 11, 3.6 * rows) as figure:
        panels = figure.subplots(rows, len(scales), squeeze=False)
        for scale, panel in zip(scales, panels[0], strict=True):
            cells = [(form.alpha, each) for form, each in ablation.forms if form.scale == scale]
            near = next(form.near for form, _ in ablation.forms if form.scale == scale)
            panel.axhspan(-near, near, **_BAND)
            _differences(panel, cells, f"alpha ({scale}); shaded: treated as zero")
        panels[0][0].set_ylabel(f"PCR({compared[0]}) - PCR({compared[1]})")
        panels[0][0].legend(fontsize=8)
        figure.suptitle(title, fontsize=10)
        if ablation.thresholds:
            _consistencies(panels[1][0], ablation.thresholds)
            _differences(panels[1][1], ablation.thresholds, "similarity threshold")
            panels[1][1].set_ylabel(f"PCR({compared[0]}) - PCR({compared[1]})")
            for spare in panels[1][2:]:
                spare.set_axis_off()
    return path


def ablation_path(path: Path) -> Path:
    """Return the path of the second figure, next to the first."""
    return path.with_name(f"{path.stem}-ablation{path.suffix}")


# -- parts of pictures ----------------------------------------------------------------------------


def _splits(panel: "Axes", row: int, one: Comparison, splits: Sequence[str]) -> None:
    step = 0.7 / max(2, len(one.splits))
    for place, (name, split) in enumerate(one.splits.items()):
        colour = COLOURS[splits.index(name) % len(COLOURS)]
        height = row + (place - (len(one.splits) - 1) / 2) * step
        _whisker(panel, split.pcr, height, colour, name)


def _difference(panel: "Axes", row: int, one: Comparison) -> None:
    found = one.difference.pcr
    _whisker(panel, found, row, VERDICT_COLOURS[one.verdict], None)
    words = one.verdict.replace("_", " ")
    at = found.estimate if found.estimate == found.estimate else 0.0
    panel.annotate(
        words,
        (at, row),
        (0, 7),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5},
    )


def _whisker(panel: "Axes", found: Estimate, y: float, colour: str, label: str | None) -> None:
    panel.plot([found.ci_low, found.ci_high], [y, y], color=colour, linewidth=2)
    panel.plot([found.estimate], [y], "o", color=colour, markersize=5, label=label)


def _name_rows(panel: "Axes", names: Sequence[str]) -> None:
    panel.set_yticks(range(len(names)), [shorten_name(name) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)


def _one_legend(panel: "Axes") -> None:
    """Add a legend that names each split once, regardless of the number of models."""
    handles, labels = panel.get_legend_handles_labels()
    known = dict(zip(reversed(labels), reversed(handles), strict=True))
    names = list(dict.fromkeys(labels))
    panel.legend([known[name] for name in names], names, fontsize=8)


def _differences(
    panel: "Axes", cells: Sequence[tuple[float, Mapping[str, Comparison]]], label: str
) -> None:
    names = list(cells[0][1])
    for place, name in enumerate(names):
        found = [each[name].difference.pcr for _, each in cells]
        shift = (place - (len(names) - 1) / 2) * 0.4 / len(names)
        places = [x + shift for x in range(len(cells))]
        colour = COLOURS[place % len(COLOURS)]
        panel.plot(
            places, [one.estimate for one in found], "o-", color=colour, label=shorten_name(name)
        )
        for x, one in zip(places, found, strict=True):
            panel.plot([x, x], [one.ci_low, one.ci_high], color=colour, linewidth=1)
    panel.axhline(0, color="black", linewidth=0.8)
    _tick_values(panel, [value for value, _ in cells], label)


def _consistencies(panel: "Axes", cells: Sequence[tuple[float, Mapping[str, Comparison]]]) -> None:
    styles = ("o-", "s--", "^:", "v-.")
    for place, (name, one) in enumerate(cells[0][1].items()):
        colour = COLOURS[place % len(COLOURS)]
        for split, style in zip(one.splits, styles, strict=False):
            found = [each[name].splits[split].consistency for _, each in cells]
            label = f"{shorten_name(name)}, {split}"
            panel.plot(range(len(cells)), found, style, color=colour, label=label)
    panel.set_ylabel("consistency")
    panel.legend(fontsize=8)
    _tick_values(panel, [value for value, _ in cells], "similarity threshold")


def _tick_values(panel: "Axes", values: Sequence[float], label: str) -> None:
    panel.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    panel.set_xlabel(label)
