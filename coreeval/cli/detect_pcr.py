"""`coreeval detect pcr`: text and plots from a config or recorded pairs.

With a config: the expected cost, the questions, and their result.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.app import pause_garbage_collection
from coreeval.cli.options import with_trusted_endpoints
from coreeval.cli.output import Document, brief, note, show
from coreeval.cli.pcr_output import pcr_lines
from coreeval.errors import UsageError
from coreeval.evaluation.covariates import describe_unlike_splits
from coreeval.evaluation.pcr.outcome import (
    PairSource,
    PcrInput,
    compare_pairs,
    draw_outcome,
    name_models,
    pcr_document,
)
from coreeval.evaluation.pcr.pairs import Pairs, read_pairs
from coreeval.evaluation.pcr.pairs_from_items import TargetPairs, Twins
from coreeval.evaluation.pcr.study import COSINE, PcrSettings
from coreeval.tools.embeddings import Embedder, open_cached_embeddings
from coreeval.tools.workspace import workspace_for

if TYPE_CHECKING:
    from coreeval.graph.pcr.item_campaign import ItemAnswers, ItemPlan


WHERE = "coreeval detect pcr"


@dataclass(frozen=True, kw_only=True)
class PcrDisplay:
    """How to show results."""

    ablation: bool
    plot: Path | None
    as_json: bool

    def check(self) -> None:
        """Raise an error if the file is not an image, before anything is asked or computed."""
        from coreeval.evaluation.pictures import require_picture

        if self.plot:
            require_picture(self.plot)


def compare_files(
    pairs: Sequence[str],
    references: Sequence[str],
    settings: PcrSettings,
    embeddings: str,
    shown: PcrDisplay,
) -> None:
    """Compare files given as FILE or NAME=FILE."""
    named, others = (
        _parse_file_options(pairs, "--pairs"),
        _parse_file_options(references, "--reference"),
    )
    shown.check()
    models, clean = _read_models(named), _read_models(others)
    if twice := sorted(models.keys() & clean.keys()):
        raise UsageError(
            f"{twice[0]!r} is both a model to compare and a reference",
            where=WHERE,
            hint="write NAME=FILE, or pass the model to only one of the two options",
        )
    both = models | clean
    read = PcrInput(
        files={name: path for name, (path, _) in both.items()},
        pairs={name: own for name, (_, own) in both.items()},
        references=list(clean),
    )
    if settings.consistency != COSINE:
        report_comparisons(read, settings, None, shown)
        return
    with open_cached_embeddings(embeddings, workspace_for(Path.cwd())) as embeds:
        report_comparisons(read, settings, embeds, shown)


def report_comparisons(
    read: PcrInput,
    settings: PcrSettings,
    embeds: Embedder | None,
    shown: PcrDisplay,
    more: Sequence[str] = (),
) -> None:
    """Print and plot the comparison of all pairs; `more` are additional lines for people."""
    told = compare_pairs(read, settings, embeds, ablation=shown.ablation)
    plots = draw_outcome(told, shown.plot) if shown.plot else []
    document = pcr_document(told, plots)
    show(document, shown.as_json, lambda: "\n".join([*pcr_lines(document), *more]))


def _parse_file_options(pairs: Sequence[str], option: str) -> dict[str, Path]:
    """Return each file by its name: the part before `=`, or else the file's own name."""
    named = [_parse_file_option(text, option) for text in pairs]
    files = dict(named)
    if len(files) < len(named):
        raise UsageError(
            "two files have the same model name",
            where=WHERE,
            hint=f"write {option} NAME=FILE for each file",
        )
    return files


def _read_models(files: Mapping[str, Path]) -> dict[str, tuple[PairSource, Pairs]]:
    """Return each model's pairs with their file; models that share a file are named by key."""
    return dict(name_models((name, path, read_pairs(path)) for name, path in files.items()))


def _parse_file_option(text: str, option: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if Path(text).exists() or not equals:
        return Path(text).stem, Path(text)
    if not name.strip() or not file:
        raise UsageError(f"{text!r} is not of the form NAME=FILE", where=option)
    return name, Path(file)


@dataclass(frozen=True, kw_only=True)
class PcrRequest:
    """What to ask, and how to show the result."""

    config: Path
    overrides: Sequence[str]
    out: Path | None
    dry_run: bool
    trust_endpoints: bool
    shown: PcrDisplay


def ask_and_compare(asking: PcrRequest, settings: PcrSettings) -> None:
    """Ask a config's targets about its benchmark, and compare its two splits."""
    with pause_garbage_collection():
        from coreeval.api.configs import summarize_estimate
        from coreeval.api.progress import show_progress
        from coreeval.cli.estimate import estimate_document, estimate_lines
        from coreeval.graph.estimate.pcr_lines import estimate_items
        from coreeval.graph.pcr.item_campaign import ask_items, build_item_plan

    asking.shown.check()
    plan = with_trusted_endpoints(
        asking.trust_endpoints,
        lambda: build_item_plan(asking.config, overrides=asking.overrides, settings=settings),
    )
    made = estimate_items(plan)
    if asking.dry_run:
        again = _format_command(asking)
        lines = estimate_lines(made, again)
        show(estimate_document(made), asking.shown.as_json, lambda: "\n".join(lines))
        return
    with _open_embeddings(plan) as embeds:
        note(summarize_estimate(made))
        with show_progress() as watch:
            found = ask_items(plan, out=asking.out, embeds=embeds, watch=watch)
        cosine = embeds if plan.settings.consistency == COSINE else None
        report_comparisons(
            _make_input(plan, found),
            plan.settings,
            cosine,
            asking.shown,
            [*_repeat_lines(plan, found)],
        )


@contextmanager
def _open_embeddings(plan: "ItemPlan") -> "Iterator[Embedder | None]":
    """Open the embeddings before anything is spent, if paraphrases or answers need them."""
    if plan.needs_embeddings:
        with open_cached_embeddings(plan.config.detect.pcr.embeddings, plan.workspace) as embeds:
            yield embeds
    else:
        yield None


def _format_command(asking: PcrRequest) -> str:
    settings = [word for each in asking.overrides for word in ("--set", each)]
    return shlex.join([*WHERE.split(), str(brief(asking.config)), *settings])


def _repeat_lines(plan: "ItemPlan", found: "ItemAnswers") -> Iterator[str]:
    """Yield the command for the same numbers from the files, with only the non-default options."""
    asked, usual = plan.settings, PcrSettings(metric="", consistency="")
    references = _reference_names(plan)
    words = [word for name, path in found.files.items()
             for word in ("--reference" if name in references else "--pairs",
                          f"{name}={brief(path)}")]  # fmt: skip
    words += ["--metric", asked.metric, "--consistency", asked.consistency]
    options = {
        "--alpha": (asked.form.alpha, usual.form.alpha),
        "--scale": (asked.form.scale, usual.form.scale),
        "--threshold": (asked.threshold, usual.threshold),
        "--train-split": (asked.train, usual.train),
        "--test-split": (asked.test, usual.test),
        "--interval": (asked.form.interval, usual.form.interval),
        "--margin": (asked.form.margin, usual.form.margin),
        "--draws": (asked.draws, usual.draws),
        "--seed": (asked.seed, usual.seed),
    }
    for option, (chosen, default) in options.items():
        words += [option, str(chosen)] if chosen != default else []
    words += ["--exchangeable-splits"] if asked.exchangeable else []
    if asked.consistency == COSINE:
        words += ["--embeddings", plan.config.detect.pcr.embeddings]
    yield f"again: {shlex.join([*WHERE.split(), *words])}"


def _make_input(plan: "ItemPlan", found: "ItemAnswers") -> PcrInput:
    bad = tuple(row for each in plan.drawn for row in each.bad_rows)
    silent = {name: one.silence for name, one in found.asked.items() if one.silence}
    return PcrInput(
        files=found.files,
        pairs={name: Pairs(good=one.pairs, bad=bad) for name, one in found.asked.items()},
        questions={
            name: _questions_document(plan, found.twins, one) for name, one in found.asked.items()
        },
        silent=silent,
        references=_reference_names(plan),
        covariates=describe_unlike_splits(
            {
                each.split: [(item.input, item.cluster or item.input) for item in each.items]
                for each in plan.drawn
            }
        ),
    )


def _reference_names(plan: "ItemPlan") -> list[str]:
    targets = plan.config.models.targets
    return [target.model for target in targets if target.role == "reference"]


def _questions_document(plan: "ItemPlan", twins: Sequence[Twins], asked: TargetPairs) -> Document:
    return {
        "modification": plan.modification,
        "answer": plan.config.detect.pcr.answer,
        "splits": {each.drawn.split: _split_document(each, asked) for each in twins},
    }


def _split_document(twins: Twins, asked: TargetPairs) -> Document:
    one = asked.splits[twins.drawn.split]
    return {
        "items": twins.drawn.total,
        "drawn": len(twins.drawn.items),
        "left_out": twins.reasons,
        "unchanged": twins.identical_count,
        "questions": dict(one.kinds),
        "unclear": one.unclear,
    }
