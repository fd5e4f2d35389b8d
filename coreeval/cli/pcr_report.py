"""`coreeval detect pcr`: from pairs to what is printed and drawn, wherever the pairs are from."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from coreeval.cli.output import Document, show
from coreeval.cli.pcr_words import Told, told_document, told_lines
from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.pcr.comparison import compare, list_references, make_empty_comparison
from coreeval.evaluation.pcr.pairs import Pairs, pairs_by_model, read_pairs
from coreeval.evaluation.pcr.references import list_shared_items
from coreeval.evaluation.pcr.replicates import FileReplicates
from coreeval.evaluation.pcr.study import COSINE, PcrSettings, ablate, resample_files
from coreeval.evaluation.pcr.verdicts import MIN_ITEMS
from coreeval.tools.embeddings import Embedder
from coreeval.tools.workspace import Workspace, workspace_for

WHERE = "coreeval detect pcr"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How results are to be shown."""

    ablation: bool
    plot: Path | None
    as_json: bool

    def check(self) -> None:
        """Refuse a file that is no picture, before anything is asked or computed."""
        from coreeval.evaluation.pictures import require_picture

        if self.plot:
            require_picture(self.plot)


@dataclass(frozen=True, kw_only=True)
class Read:
    """Pairs by name, and what is known of them beside."""

    files: Mapping[str, Path]
    pairs: Mapping[str, Pairs]
    asked: Mapping[str, Document] = field(default_factory=dict)
    """What became of the questions, where they were asked just now."""
    silent: Mapping[str, str] = field(default_factory=dict)
    """Why there is nothing to compare, by the names of those where it is so."""
    references: Sequence[str] = ()
    """Names of those that others are compared with."""
    covariates: str = ""
    """By what the texts of the splits differ, as a clause."""


def compare_files(
    pairs: Sequence[str],
    references: Sequence[str],
    settings: PcrSettings,
    embeddings: str,
    shown: Shown,
) -> None:
    """Compare files that are named as FILE or NAME=FILE."""
    named, others = _files(pairs, "--pairs"), _files(references, "--reference")
    shown.check()
    models, clean = dict(_models(named)), dict(_models(others))
    if twice := sorted(models.keys() & clean.keys()):
        raise UsageError(
            f"{twice[0]!r} is both compared and a reference",
            where=WHERE,
            hint="write NAME=FILE, or give the model in one of them only",
        )
    both = models | clean
    read = Read(
        files={name: path for name, (path, _) in both.items()},
        pairs={name: own for name, (_, own) in both.items()},
        references=list(clean),
    )
    if settings.consistency != COSINE:
        report(read, settings, None, shown)
        return
    with opened(embeddings, workspace_for(Path.cwd())) as embeds:
        report(read, settings, embeds, shown)


def report(
    read: Read,
    settings: PcrSettings,
    embeds: Embedder | None,
    shown: Shown,
    more: Sequence[str] = (),
) -> None:
    """Print and draw the comparison of all pairs; `more` are lines for people at the end."""
    good = {name: each.good for name, each in read.pairs.items() if name not in read.silent}
    found = resample_files(good, settings, embeds=embeds)
    clean = {name: found.pop(name) for name in read.references if name in found}
    _require_shared(found, clean, settings)
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
    told = Told(
        files=read.files,
        read=read.pairs,
        asked=read.asked,
        settings=settings,
        embeddings=embeds.name if embeds else None,
        comparisons={name: comparisons[name] for name in read.files if name in comparisons},
        references=list_references(clean, settings.split_pair, settings.form),
        silent={name: why for name, why in read.silent.items() if name in read.references},
        ablation=ablate(
            {name: good[name] for name in found},
            found,
            settings,
            references={name: good[name] for name in clean},
            found_references=clean,
            embeds=embeds,
        )
        if shown.ablation
        else None,
    )
    plots = _drawn(told, shown.plot, list(found)) if shown.plot and found else []
    document = told_document(told, plots)
    show(document, shown.as_json, lambda: "\n".join([*told_lines(document), *more]))


def _require_shared(
    found: Mapping[str, FileReplicates],
    references: Mapping[str, FileReplicates],
    settings: PcrSettings,
) -> None:
    """Refuse references that answered other items."""
    for name, one in found.items():
        for reference, other in references.items():
            counts = {
                split: len(list_shared_items(one, {reference: other}, split))
                for split in settings.split_pair
            }
            if short := [split for split, count in counts.items() if count < MIN_ITEMS]:
                raise DatasetError(
                    f"{reference} shares {counts[short[0]]} items of {short[0]} with {name}; "
                    f"{MIN_ITEMS} are the least",
                    where="--reference",
                    hint="references answer the same items, under the same split and id",
                )


@contextmanager
def opened(model: str, workspace: Workspace) -> Iterator[Embedder]:
    """Open embeddings, which a workspace's cache remembers."""
    from coreeval.tools.embeddings import EmbeddingCache, open_embeddings
    from coreeval.tools.json_cache import JsonCache

    embeds = open_embeddings(model)
    with JsonCache(workspace.cache / "embeddings") as cache:
        yield EmbeddingCache(embeds, cache)


def _files(pairs: Sequence[str], option: str) -> dict[str, Path]:
    """Return each file by its name: what stands before `=`, else the file's own."""
    named = [_named(text, option) for text in pairs]
    files = dict(named)
    if len(files) < len(named):
        raise UsageError(
            "two files have the same name", where=WHERE, hint=f"write {option} NAME=FILE for each"
        )
    return files


def _models(files: Mapping[str, Path]) -> Iterator[tuple[str, tuple[Path, Pairs]]]:
    """Yield the pairs of each model with their file; models of one file are named by their key."""
    seen = set[str]()
    for name, path in files.items():
        for model, own in pairs_by_model(read_pairs(path), name).items():
            known = f"{name}: {model}" if model in seen else model
            seen.add(known)
            yield known, (path, own)


def _named(text: str, option: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if Path(text).exists() or not equals:
        return Path(text).stem, Path(text)
    if not name.strip() or not file:
        raise UsageError(f"{text!r} is no NAME=FILE", where=option)
    return name, Path(file)


def _drawn(told: Told, plot: Path, names: Sequence[str]) -> list[Path]:
    """Draw the results of these names, and the ablation in a file beside it."""
    from coreeval.evaluation.pcr.comparison_plots import (
        ablation_path,
        draw_ablation,
        draw_comparisons,
    )

    asked, form = told.settings, told.settings.form
    compared, title = asked.split_pair, f"{asked.metric} over {asked.consistency}"
    first = draw_comparisons(
        plot,
        {name: told.comparisons[name] for name in names},
        compared=compared,
        margin=form.near,
        title=f"{title}, alpha {form.alpha:g}, {form.scale}: PCR with 95 % intervals",
    )
    if not told.ablation:
        return [first]
    second = ablation_path(plot)
    return [first, draw_ablation(second, told.ablation, compared=compared, title=title)]
