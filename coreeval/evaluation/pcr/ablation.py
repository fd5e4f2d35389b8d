"""Does the verdict depend on alpha, the scale or the threshold? (CAP: Table 3 and Figure 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from coreeval.evaluation.pcr.comparison import Comparison, compare
from coreeval.evaluation.pcr.form import Form
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.ratio import SCALES
from coreeval.evaluation.pcr.replicates import Resampled
from coreeval.evaluation.pcr.study import COSINE, Settings, study
from coreeval.tools.embeddings import Embedder

ALPHAS: Final = (0.0, 0.001, 0.01, 0.1)
"""CAP, Table 3."""
THRESHOLDS: Final = (0.80, 0.85, 0.90, 0.95, 0.99)
"""Ours; CAP's Figure 7 varies it too, and 0.95 is what its section 4.2 takes."""


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """The comparisons of all files under other choices, everything else as asked."""

    forms: Sequence[tuple[Form, Mapping[str, Comparison]]]
    """Each scale with each alpha."""
    thresholds: Sequence[tuple[float, Mapping[str, Comparison]]]
    """None but for cosine consistency: the others have no threshold."""


def ablate(
    files: Mapping[str, Sequence[Pair]],
    found: Mapping[str, Resampled],
    settings: Settings,
    *,
    references: Mapping[str, Sequence[Pair]] | None = None,
    found_references: Mapping[str, Resampled] | None = None,
    embeds: Embedder | None = None,
) -> Ablation:
    """Compare again under each scale, alpha and threshold.

    A margin that was given holds for the scale that was asked, the others have their own.

    Args:
        files: Answers by name.
        found: What `resampled` made of them.
        settings: What was asked.
        references: Answers of models that are presumed clean.
        found_references: What `resampled` made of them.
        embeds: Is given the same texts for each threshold: it should remember them.
    """
    asked = settings.form
    forms = [
        replace(asked, scale=scale, alpha=alpha, margin=asked.margin if own else None)
        for scale in SCALES
        for own in [scale == asked.scale]
        for alpha in sorted({*ALPHAS, asked.alpha})
    ]
    again = partial(
        compare, found, settings.compared, references=found_references,
        exchangeable=settings.exchangeable,
    )  # fmt: skip
    return Ablation(
        forms=[(form, again(form)) for form in forms],
        thresholds=[
            (
                threshold,
                study(
                    files,
                    replace(settings, threshold=threshold),
                    references=references,
                    embeds=embeds,
                ),
            )
            for threshold in _thresholds(settings)
        ],
    )


def _thresholds(settings: Settings) -> Sequence[float]:
    if settings.consistency != COSINE:
        return ()
    return sorted({*THRESHOLDS, settings.threshold})
