"""Pairs of several models, and the results of their comparison: a document and plots.

The pairs come from files, from questions just asked, or from a caller's own lists.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coreeval.errors import DatasetError
from coreeval.evaluation.pcr.comparison import (
    Comparison,
    ReferenceResult,
    compare,
    list_references,
    make_empty_comparison,
)
from coreeval.evaluation.pcr.comparison_document import (
    Document,
    ablation_path,
    comparison_document,
    draw_ablation,
    draw_comparisons,
    interval_document,
    json_number,
    reference_document,
    settings_document,
)
from coreeval.evaluation.pcr.pairs import Pairs, pairs_by_model
from coreeval.evaluation.pcr.references import list_shared_items
from coreeval.evaluation.pcr.replicates import FileReplicates
from coreeval.evaluation.pcr.study import Ablation, PcrSettings, ablate, resample_files
from coreeval.evaluation.pcr.verdicts import MIN_ITEMS
from coreeval.tools.embeddings import Embedder

PairSource = Path | str
"""The source of pairs: a file, or a name in angle brackets for pairs in memory."""


@dataclass(frozen=True, kw_only=True)
class PcrInput:
    """Pairs by name, with the information needed to compare them."""

    files: Mapping[str, PairSource]
    pairs: Mapping[str, Pairs]
    questions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Results of the questions by name, if they were asked just now."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """The reason why there is nothing to compare, by name."""
    references: Sequence[str] = ()
    """The names of the references that others are compared with."""
    covariates: str = ""
    """A clause that says how the texts of the splits differ."""
    reference_key: str = "--reference"
    """The name in errors for the place of the references."""


@dataclass(frozen=True, kw_only=True)
class PcrOutcome:
    """The results to report."""

    files: Mapping[str, PairSource]
    pairs: Mapping[str, Pairs]
    questions: Mapping[str, Mapping[str, Any]]
    """Results of the questions by name, if they were asked just now."""
    settings: PcrSettings
    embeddings: str | None
    comparisons: Mapping[str, Comparison]
    references: Mapping[str, ReferenceResult]
    silent: Mapping[str, str]
    """The reason why a reference is not used, by its name."""
    measured: Sequence[str]
    """The names of the compared models that have pairs to compare."""
    ablation: Ablation | None


def name_models(
    read: Iterable[tuple[str, PairSource, Pairs]],
) -> Iterator[tuple[str, tuple[PairSource, Pairs]]]:
    """Yield each model's pairs with their source; models that share a source are named by key.

    Args:
        read: The name of each source, the source, and its pairs.
    """
    seen = set[str]()
    for name, source, pairs in read:
        for model, own in pairs_by_model(pairs, name).items():
            known = f"{name}: {model}" if model in seen else model
            seen.add(known)
            yield known, (source, own)


def compare_pairs(
    read: PcrInput, settings: PcrSettings, embeds: Embedder | None, *, ablation: bool = False
) -> PcrOutcome:
    """Compare the two splits of each model.

    Args:
        read: The pairs.
        settings: All settings that affect the numbers.
        embeds: The embedder for cosine consistency.
        ablation: Whether to repeat the comparison with other alphas, scales and thresholds.

    Raises:
        UsageError: a metric or a consistency does not exist or does not apply to these pairs.
        DatasetError: a model lacks one of the two splits, or references answered other items.
    """
    good = {name: each.good for name, each in read.pairs.items() if name not in read.silent}
    found = resample_files(good, settings, embeds=embeds)
    clean = {name: found.pop(name) for name in read.references if name in found}
    _require_shared(found, clean, settings, read.reference_key)
    comparisons = compare(
        found,
        settings.split_pair,
        settings.form,
        references=clean,
        exchangeable=settings.exchangeable,
        covariates=read.covariates,
    )
    comparisons |= {
        name: make_empty_comparison(settings.split_pair, why)
        for name, why in read.silent.items()
        if name not in read.references
    }
    return PcrOutcome(
        files=read.files,
        pairs=read.pairs,
        questions=read.questions,
        settings=settings,
        embeddings=embeds.name if embeds else None,
        comparisons={name: comparisons[name] for name in read.files if name in comparisons},
        references=list_references(clean, settings.split_pair, settings.form),
        silent={name: why for name, why in read.silent.items() if name in read.references},
        measured=list(found),
        ablation=ablate(
            {name: good[name] for name in found},
            found,
            settings,
            references={name: good[name] for name in clean},
            found_references=clean,
            embeds=embeds,
        )
        if ablation
        else None,
    )


def _require_shared(
    found: Mapping[str, FileReplicates],
    references: Mapping[str, FileReplicates],
    settings: PcrSettings,
    where: str,
) -> None:
    """Raise an error if the references answered other items."""
    for name, one in found.items():
        for reference, other in references.items():
            counts = {
                split: len(list_shared_items(one, {reference: other}, split))
                for split in settings.split_pair
            }
            if short := [split for split, count in counts.items() if count < MIN_ITEMS]:
                raise DatasetError(
                    f"{reference} shares {counts[short[0]]} items of {short[0]} with {name}; at "
                    f"least {MIN_ITEMS} are needed",
                    where=where,
                    hint="references must answer the same items, with the same split and id",
                )


# -- the document ---------------------------------------------------------------------------------


def pcr_document(told: PcrOutcome, plots: Sequence[Path]) -> Document:
    """Return the comparison of one file, or a list of them."""
    found = [_comparison_document(told, name) for name in told.comparisons]
    rest = {
        "plots": [str(path) for path in plots],
        "references": [
            _reference_document(told, name) for name in (*told.references, *told.silent)
        ],
        "settings": settings_document(told.settings, told.embeddings),
    }
    return {**found[0], **rest} if len(found) == 1 else {"comparisons": found, **rest}


def _comparison_document(told: PcrOutcome, name: str) -> Document:
    read = told.pairs[name]
    return {
        "name": name,
        "pairs": str(told.files[name]),
        "asked": told.questions.get(name),
        **comparison_document(told.comparisons[name]),
        "bad_rows": [row.model_dump() for row in read.bad],
        "ablation": _ablation_document(told.ablation, name) if told.ablation else None,
    }


def _reference_document(told: PcrOutcome, name: str) -> Document:
    known = told.references.get(name)
    return {
        "name": name,
        "pairs": str(told.files[name]),
        "asked": told.questions.get(name),
        **(reference_document(known) if known else {"splits": {}, "difference": None}),
        "bad_rows": [row.model_dump() for row in told.pairs[name].bad],
        "unused": told.silent.get(name, ""),
    }


def _ablation_document(ablation: Ablation, name: str) -> Document:
    forms = ({"scale": form.scale, "alpha": form.alpha, **_cell_document(each[name])}
             for form, each in ablation.forms if name in each)  # fmt: skip
    thresholds = (
        {"threshold": at, **_cell_document(each[name])}
        for at, each in ablation.thresholds
        if name in each
    )
    return {"forms": list(forms), "thresholds": list(thresholds)}


def _cell_document(one: Comparison) -> Document:
    return {
        "consistency": {name: json_number(each.consistency) for name, each in one.splits.items()},
        "pcr": {name: json_number(each.pcr.estimate) for name, each in one.splits.items()},
        "difference": json_number((one.adjusted or one.difference).pcr.estimate),
        **interval_document((one.adjusted or one.difference).pcr),
        "p_adjusted": json_number(one.test.p_adjusted),
        "verdict": one.verdict,
    }


# -- plots ----------------------------------------------------------------------------------------


def draw_outcome(told: PcrOutcome, plot: Path) -> list[Path]:
    """Plot the models that have numbers, and the ablation in a separate file next to it."""
    if not told.measured:
        return []
    asked, form = told.settings, told.settings.form
    compared, title = asked.split_pair, f"{asked.metric} over {asked.consistency}"
    first = draw_comparisons(
        plot,
        {name: told.comparisons[name] for name in told.measured},
        compared=compared,
        margin=form.near,
        title=f"{title}, alpha {form.alpha:g}, {form.scale}: PCR with 95 % intervals",
    )
    if not told.ablation:
        return [first]
    second = ablation_path(plot)
    return [first, draw_ablation(second, told.ablation, compared=compared, title=title)]
