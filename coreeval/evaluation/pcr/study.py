"""From files of pairs to comparisons: the metric, the consistency and the draws by their names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.pcr.comparison import Comparison, compare
from coreeval.evaluation.pcr.form import Form
from coreeval.evaluation.pcr.pairs import Pair
from coreeval.evaluation.pcr.replicates import Resampled, resample
from coreeval.evaluation.scoring import (
    CONSISTENCY,
    PERFORMANCE,
    THRESHOLD,
    Consistency,
    cosine,
)
from coreeval.tools.embeddings import Embedder

COSINE = "cosine"
CONSISTENCIES = (*CONSISTENCY, COSINE)
METRICS = tuple(PERFORMANCE)
DRAWS = 10_000
"""Another seed then moves an end of an interval by about a hundredth of its width (measured)."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that decides the numbers."""

    metric: str
    consistency: str
    threshold: float = THRESHOLD
    """Cosine similarity from which two answers mean the same."""
    form: Form = field(default_factory=Form)
    draws: int = DRAWS
    """Bootstrap draws, and as many permutations."""
    seed: int = 0
    train: str = "train"
    test: str = "test"
    exchangeable: bool = False
    """Whether the splits are vouched to be random parts of one pool."""

    @property
    def compared(self) -> tuple[str, str]:
        """The training split and the test split."""
        return self.train, self.test


def study(
    files: Mapping[str, Sequence[Pair]],
    settings: Settings,
    *,
    references: Mapping[str, Sequence[Pair]] | None = None,
    embeds: Embedder | None = None,
    covariates: str = "",
) -> dict[str, Comparison]:
    """Compare the two splits of each file.

    Args:
        files: Answers, by the name of a model or a benchmark.
        settings: Everything that decides the numbers.
        references: Answers of models that are presumed to have seen neither split.
        embeds: What cosine consistency needs.
        covariates: By what the texts of the splits differ, as a clause; a vouch in the settings
            does not stand then.

    Raises:
        UsageError: a metric or a consistency that there is not, or that these pairs cannot have.
        DatasetError: a file lacks one of the two splits.
    """
    return compare(
        resampled(files, settings, embeds=embeds),
        settings.compared,
        settings.form,
        references=resampled(references or {}, settings, embeds=embeds),
        exchangeable=settings.exchangeable,
        covariates=covariates,
    )


def resampled(
    files: Mapping[str, Sequence[Pair]], settings: Settings, *, embeds: Embedder | None = None
) -> dict[str, Resampled]:
    """Score and resample each file; what depends on alpha and scale comes later, at no cost."""
    if settings.metric not in PERFORMANCE:
        raise UsageError(
            f"there is no metric {settings.metric!r}", where="metric", hint=", ".join(METRICS)
        )
    for name, pairs in files.items():
        _require_splits(name, pairs, settings)
    once = partial(
        resample,
        performance=PERFORMANCE[settings.metric],
        consistency=_consistency(settings, embeds),
        compared=settings.compared,
        draws=settings.draws,
        seed=settings.seed,
    )
    return {name: once(pairs) for name, pairs in files.items()}


def _consistency(settings: Settings, embeds: Embedder | None) -> Consistency:
    if settings.consistency in CONSISTENCY:
        return CONSISTENCY[settings.consistency]
    if settings.consistency != COSINE or embeds is None:
        raise UsageError(
            f"there is no consistency {settings.consistency!r}",
            where="consistency",
            hint=f"{', '.join(CONSISTENCIES)}; {COSINE} needs embeddings",
        )
    return cosine(embeds, threshold=settings.threshold)


def _require_splits(name: str, pairs: Sequence[Pair], settings: Settings) -> None:
    there = list(dict.fromkeys(pair.split for pair in pairs))
    for wanted in settings.compared:
        if wanted not in there:
            raise DatasetError(
                f"there is no pair of the split {wanted!r}",
                where=name,
                hint=f"there are {', '.join(there)}" if there else "no line of it is a pair",
            )
