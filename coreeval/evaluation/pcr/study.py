"""Comparisons of files of pairs, with the metric and the consistency chosen by name.

An ablation compares again under other choices: does the verdict depend on alpha, the scale or the
threshold? (CAP: Table 3 and Figure 7).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.metrics import CONSISTENCY, PERFORMANCE, THRESHOLD, Consistency, cosine
from coreeval.evaluation.pcr.comparison import Comparison, compare
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.ratio import SCALES
from coreeval.evaluation.pcr.replicates import FileReplicates, resample
from coreeval.evaluation.pcr.verdicts import PcrOptions
from coreeval.tools.embeddings import Embedder

COSINE = "cosine"
CONSISTENCIES = (*CONSISTENCY, COSINE)
METRICS = tuple(PERFORMANCE)
DRAWS = 10_000
"""The number of draws; another seed moves the end of an interval by about 1 % of its width.

Measured.
"""


@dataclass(frozen=True, kw_only=True)
class PcrSettings:
    """All settings that affect the numbers."""

    metric: str
    consistency: str
    threshold: float = THRESHOLD
    """The least cosine similarity at which two answers have the same meaning."""
    form: PcrOptions = field(default_factory=PcrOptions)
    draws: int = DRAWS
    """The number of bootstrap draws and of permutations."""
    seed: int = 0
    train: str = "train"
    test: str = "test"
    exchangeable: bool = False
    """Whether the user vouches that the splits are random parts of one pool."""

    @property
    def split_pair(self) -> tuple[str, str]:
        """The training split and the test split."""
        return self.train, self.test


def study(
    files: Mapping[str, Sequence[Pair]],
    settings: PcrSettings,
    *,
    references: Mapping[str, Sequence[Pair]] | None = None,
    embeds: Embedder | None = None,
    covariates: str = "",
) -> dict[str, Comparison]:
    """Compare the two splits of each file.

    Args:
        files: Answers by the name of a model or a benchmark.
        settings: All settings that affect the numbers.
        references: Answers of models that are presumed to have seen neither split.
        embeds: The embedder for cosine consistency.
        covariates: A clause that says how the texts of the splits differ; if given, `exchangeable`
            in the settings is ignored.

    Raises:
        UsageError: a metric or a consistency does not exist or does not apply to these pairs.
        DatasetError: a file lacks one of the two splits.
    """
    return compare(
        resample_files(files, settings, embeds=embeds),
        settings.split_pair,
        settings.form,
        references=resample_files(references or {}, settings, embeds=embeds),
        exchangeable=settings.exchangeable,
        covariates=covariates,
    )


def resample_files(
    files: Mapping[str, Sequence[Pair]], settings: PcrSettings, *, embeds: Embedder | None = None
) -> dict[str, FileReplicates]:
    """Score and resample each file; alpha and scale are applied later, without resampling again."""
    if settings.metric not in PERFORMANCE:
        raise UsageError(
            f"there is no metric {settings.metric!r}", where="metric", hint=", ".join(METRICS)
        )
    if settings.train == settings.test:
        raise UsageError(
            f"PCR would compare the split {settings.train!r} with itself",
            where="train and test split",
            hint="name two different splits",
        )
    for name, pairs in files.items():
        _require_splits(name, pairs, settings)
    once = partial(
        resample,
        performance=PERFORMANCE[settings.metric],
        consistency=_choose_consistency(settings, embeds),
        compared=settings.split_pair,
        draws=settings.draws,
        seed=settings.seed,
    )
    return {name: once(pairs) for name, pairs in files.items()}


def _choose_consistency(settings: PcrSettings, embeds: Embedder | None) -> Consistency:
    if settings.consistency in CONSISTENCY:
        return CONSISTENCY[settings.consistency]
    if settings.consistency != COSINE or embeds is None:
        raise UsageError(
            f"there is no consistency measure {settings.consistency!r}",
            where="consistency",
            hint=f"use one of {', '.join(CONSISTENCIES)}; {COSINE} needs embeddings",
        )
    return cosine(embeds, threshold=settings.threshold)


def _require_splits(name: str, pairs: Sequence[Pair], settings: PcrSettings) -> None:
    there = list(dict.fromkeys(pair.split for pair in pairs))
    for wanted in settings.split_pair:
        if wanted not in there:
            raise DatasetError(
                f"there are no pairs for the split {wanted!r}",
                where=name,
                hint=f"available splits: {', '.join(there)}"
                if there
                else "no line of the file contains a pair",
            )


ALPHAS: Final = (0.0, 0.001, 0.01, 0.1)
"""The values of alpha in an ablation (CAP, Table 3)."""
THRESHOLDS: Final = (0.80, 0.85, 0.90, 0.95, 0.99)
"""The thresholds in an ablation.

Our choice; CAP's Figure 7 varies the threshold too, and its section 4.2 uses 0.95.
"""


@dataclass(frozen=True, kw_only=True)
class Ablation:
    """The comparisons of all files under other settings; the remaining settings do not change."""

    forms: Sequence[tuple[PcrOptions, Mapping[str, Comparison]]]
    """Comparisons by file, for each scale with each alpha."""
    thresholds: Sequence[tuple[float, Mapping[str, Comparison]]]
    """Comparisons by file, for each threshold; empty unless consistency is `cosine`."""


def ablate(
    files: Mapping[str, Sequence[Pair]],
    found: Mapping[str, FileReplicates],
    settings: PcrSettings,
    *,
    references: Mapping[str, Sequence[Pair]] | None = None,
    found_references: Mapping[str, FileReplicates] | None = None,
    embeds: Embedder | None = None,
) -> Ablation:
    """Repeat the comparison for each scale, alpha and threshold.

    A given margin applies only to the requested scale; the others use their own.

    Args:
        files: Answers by name.
        found: The result of `resample_files` for these answers.
        settings: The requested settings.
        references: Answers of models that are presumed clean.
        found_references: The result of `resample_files` for the references.
        embeds: The embedder; it gets the same texts for each threshold and should cache them.
    """
    asked = settings.form
    forms = [
        replace(asked, scale=scale, alpha=alpha, margin=asked.margin if own else None)
        for scale in SCALES
        for own in [scale == asked.scale]
        for alpha in sorted({*ALPHAS, asked.alpha})
    ]
    again = partial(
        compare, found, settings.split_pair, references=found_references,
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
            for threshold in _list_thresholds(settings)
        ],
    )


def _list_thresholds(settings: PcrSettings) -> Sequence[float]:
    if settings.consistency != COSINE:
        return ()
    return sorted({*THRESHOLDS, settings.threshold})
