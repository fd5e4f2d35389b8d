"""`coreeval.pcr`: is a score on training items better than consistency explains? (CAP, PCR)."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from coreeval.api.arguments import (
    require_choice,
    require_draws,
    require_number,
    require_seed,
)
from coreeval.api.rows import (
    PathLike,
    Rows,
    count_bad_rows,
    is_path,
    list_rows,
    make_bad_table,
    number_rows,
)
from coreeval.api.tables import Result, Table, parse_columns
from coreeval.errors import UsageError
from coreeval.evaluation.pcr.comparison import Comparison
from coreeval.evaluation.pcr.outcome import (
    PairSource,
    PcrInput,
    PcrOutcome,
    compare_pairs,
    draw_outcome,
    name_models,
    pcr_document,
)
from coreeval.evaluation.pcr.pairs import Pairs, collect_pairs, read_pairs
from coreeval.evaluation.pcr.study import (
    CONSISTENCIES,
    COSINE,
    DRAWS,
    METRICS,
    PcrSettings,
)
from coreeval.evaluation.pcr.verdicts import PcrOptions, Verdict
from coreeval.tools.embeddings import open_cached_embeddings
from coreeval.tools.workspace import workspace_for

if TYPE_CHECKING:
    from pydantic import JsonValue

PairRows = Rows | PathLike
"""Pairs of answers: rows, or the path of a file of them."""
_SPLITS = parse_columns(
    "model split n:integer scored:integer unanswered:integer performance:number "
    "consistency:number pcr:number ci_low:number ci_high:number"
)


class PcrDifference(NamedTuple):
    """PCR of the training split minus that of the test split, with its 95 % interval."""

    estimate: float
    ci_low: float
    ci_high: float
    p_value: float
    """The p-value of a permutation test; the null hypothesis is that the splits do not differ."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PcrResult(Result):
    """The comparison of the splits for each model."""

    outcome: PcrOutcome
    """The result, as computed by the command."""

    @property
    def document(self) -> "Mapping[str, JsonValue]":
        """The document that `coreeval detect pcr --pairs FILE --json` prints."""
        return cast("Mapping[str, JsonValue]", pcr_document(self.outcome, ()))

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """The verdict on each model."""
        return {name: one.verdict for name, one in self.outcome.comparisons.items()}

    @property
    def verdict(self) -> Verdict:
        """The verdict on the only model.

        Raises:
            UsageError: there are several models.
        """
        return self._only.verdict

    @property
    def reason(self) -> str:
        """The reasons for the verdict on the only model."""
        return self._only.reason

    @property
    def notes(self) -> tuple[str, ...]:
        """Further notes on the scores of the only model."""
        return self._only.notes

    @property
    def difference(self) -> PcrDifference:
        """The difference between the splits of the only model."""
        found = self._only.difference
        return PcrDifference(*found.pcr[:3], found.p_value)

    @property
    def splits(self) -> Table:
        """The scores of each split, by model."""
        return Table.from_dicts("splits", _SPLITS, self._split_rows())

    @property
    def table(self) -> Table:
        """The scores of each split, by model."""
        return self.splits

    @property
    def bad_rows(self) -> Table:
        """The rows that are not pairs, each with the reason."""
        pairs, files = self.outcome.pairs, self.outcome.files
        by_file = {str(files[name]): each.bad for name, each in pairs.items()}
        return make_bad_table(row for bad in by_file.values() for row in bad)

    @property
    def summary(self) -> str:
        """The verdicts with their reasons, in a line."""
        said = [
            f"{name}: {one.verdict.replace('_', ' ')}: {one.reason}"
            for name, one in self.outcome.comparisons.items()
        ]
        return "; ".join([*said, *count_bad_rows(self.bad_rows)])

    def draw(self, path: PathLike) -> list[Path]:
        """Plot PCR and its differences to an .svg or .png file; return the written files.

        Raises:
            UsageError: the file is not an image, or matplotlib is not installed.
        """
        from coreeval.evaluation.pictures import require_picture

        require_picture(Path(path))
        return draw_outcome(self.outcome, Path(path))

    @property
    def _only(self) -> Comparison:
        found = self.outcome.comparisons
        if len(found) != 1:
            raise UsageError(
                f"there are {len(found)} models: {', '.join(found)}",
                where="coreeval.pcr",
                hint="use .verdicts, .splits or .document, which have all of them",
            )
        return next(iter(found.values()))

    def _split_rows(self) -> Iterator[dict[str, str | int | float]]:
        for model, one in self.outcome.comparisons.items():
            for split, each in one.splits.items():
                yield {
                    "model": model,
                    "split": split,
                    "n": each.n,
                    "scored": each.scored,
                    "unanswered": each.unanswered,
                    "performance": each.performance,
                    "consistency": each.consistency,
                    "pcr": each.pcr.estimate,
                    "ci_low": each.pcr.ci_low,
                    "ci_high": each.pcr.ci_high,
                }


def pcr(
    pairs: PairRows | Mapping[str, PairRows],
    *,
    metric: str,
    consistency: str,
    references: Mapping[str, PairRows] | None = None,
    exchangeable_splits: bool = False,
    train_split: str = "train",
    test_split: str = "test",
    alpha: float = 0.01,
    scale: Literal["tanh", "linear", "sigmoid"] = "tanh",
    threshold: float = 0.95,
    embeddings: str = "minilm",
    margin: float | None = None,
    interval: Literal["percentile", "bca"] = "percentile",
    draws: int = DRAWS,
    seed: int = 0,
    ablation: bool = False,
) -> PcrResult:
    """Compare the ratio of performance to consistency between training and test items.

    This is `coreeval detect pcr --pairs` for pairs in memory.

    Args:
        pairs: One row per item: `split`, `id`, `reference`, `original_output`, `modified_output`,
            and optionally choices, options, statuses, `cluster` and `model` (coreeval docs pcr).
            The rows are a list of dicts, a data frame, an Arrow table or the path of a JSON Lines
            file; or pass a mapping from model names to such rows.
        metric: exact_match, exact_match_squad, token_f1, accuracy, rouge_1, rouge_2, rouge_l, bleu
            or macro_f1.
        consistency: exact, option, same_answer, jaccard or cosine.
        references: Pairs of models that have seen neither split, keyed by name; at least two
            models.
        exchangeable_splits: Whether the splits are random parts of one pool.
        train_split: The split that the model may have been trained on.
        test_split: The split that the model must not have seen.
        alpha: Constant that keeps the ratio finite.
        scale: Transformation of the ratio.
        threshold: The lowest cosine similarity at which two answers count as having the same
            meaning, for cosine consistency.
        embeddings: minilm, minilm:PATH or provider:name, for cosine consistency.
        margin: The largest difference to treat as zero; None for 0.03 on the tanh scale.
        interval: Type of bootstrap interval.
        draws: Number of bootstrap draws and permutations.
        seed: Random seed.
        ablation: Whether to repeat the comparison with other alphas, scales and thresholds.

    Raises:
        UsageError: an argument cannot be used, or the embeddings do not exist.
        DatasetError: a file cannot be read, a split is missing, or references answered other items.
    """
    settings = PcrSettings(
        metric=require_choice("metric", metric, METRICS),
        consistency=require_choice("consistency", consistency, CONSISTENCIES),
        threshold=require_number("threshold", threshold, 0, 1),
        form=PcrOptions(
            alpha=require_number("alpha", alpha, 0),
            scale=require_choice("scale", scale, ("tanh", "linear", "sigmoid")),
            interval=require_choice("interval", interval, ("percentile", "bca")),
            margin=None if margin is None else require_number("margin", margin, 0),
        ),
        draws=require_draws(draws),
        seed=require_seed(seed),
        train=train_split,
        test=test_split,
        exchangeable=exchangeable_splits,
    )
    read = _read_input(pairs, references or {})
    opened = (
        open_cached_embeddings(embeddings, workspace_for(Path.cwd()))
        if consistency == COSINE
        else nullcontext()
    )
    with opened as embeds:
        return PcrResult(outcome=compare_pairs(read, settings, embeds, ablation=ablation))


def _read_input(
    pairs: PairRows | Mapping[str, PairRows], references: Mapping[str, PairRows]
) -> PcrInput:
    given = pairs if isinstance(pairs, Mapping) else {_name_source(pairs): pairs}
    if "original_output" in given:
        hint = "pass a list of dicts"
        raise UsageError("a single pair is not enough", where="pairs", hint=hint)
    models, clean = _read_models(given, "pairs"), _read_models(references, "references")
    if twice := sorted(models.keys() & clean.keys()):
        raise UsageError(
            f"{twice[0]!r} is both a model to compare and a reference",
            where="coreeval.pcr",
            hint="rename it, or remove it from one of the two",
        )
    both = models | clean
    return PcrInput(
        files={name: source for name, (source, _) in both.items()},
        pairs={name: own for name, (_, own) in both.items()},
        references=list(clean),
        reference_key="references",
    )


def _name_source(pairs: PairRows) -> str:
    return Path(pairs).stem if is_path(pairs) else "pairs"


def _read_models(given: Mapping[str, PairRows], where: str) -> dict[str, tuple[PairSource, Pairs]]:
    return dict(name_models((name, *_read(name, each, where)) for name, each in given.items()))


def _read(name: str, given: PairRows, where: str) -> tuple[PairSource, Pairs]:
    if is_path(given):
        return Path(given), read_pairs(Path(given))
    source = f"<{name}>"
    return source, collect_pairs(source, number_rows(list_rows(given, where)))
