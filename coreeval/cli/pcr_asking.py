"""`coreeval detect pcr CONFIG`: what asking will cost, the asking, and its result."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.loading import loading
from coreeval.cli.output import Document, brief, note, show
from coreeval.cli.pcr_report import WHERE, Read, Shown, opened, report
from coreeval.cli.trust import with_trusted_endpoints
from coreeval.evaluation.covariates import describe_unlike_splits
from coreeval.evaluation.pcr.pairs import Pairs
from coreeval.evaluation.pcr.pairs_from_items import TargetPairs, Twins
from coreeval.evaluation.pcr.study import COSINE, PcrSettings

if TYPE_CHECKING:
    from coreeval.graph.item_campaign import ItemAnswers, ItemPlan
    from coreeval.tools.embeddings import Embedder


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is to be asked, and how it is to be shown."""

    config: Path
    overrides: Sequence[str]
    out: Path | None
    dry_run: bool
    trust_endpoints: bool
    shown: Shown


def ask_and_compare(asking: Asking, settings: PcrSettings) -> None:
    """Ask the targets of a config about its benchmark, and compare its two splits."""
    with loading():
        from coreeval.cli.estimate_words import estimate_document, estimate_lines, in_short
        from coreeval.cli.progress import watching
        from coreeval.graph.estimate.campaign_estimate import estimate_items
        from coreeval.graph.item_campaign import ask_items, build_item_plan

    asking.shown.check()
    plan = with_trusted_endpoints(
        asking.trust_endpoints,
        lambda: build_item_plan(asking.config, overrides=asking.overrides, settings=settings),
    )
    made = estimate_items(plan)
    if asking.dry_run:
        again = _command(asking)
        lines = estimate_lines(made, again)
        show(estimate_document(made), asking.shown.as_json, lambda: "\n".join(lines))
        return
    with _opened(plan) as embeds:
        note(in_short(made))
        with watching() as watch:
            found = ask_items(plan, out=asking.out, embeds=embeds, watch=watch)
        cosine = embeds if plan.settings.consistency == COSINE else None
        report(_read(plan, found), plan.settings, cosine, asking.shown, [*_again(plan, found)])


@contextmanager
def _opened(plan: "ItemPlan") -> "Iterator[Embedder | None]":
    """Open the embeddings before anything is paid, where paraphrases or answers need them."""
    from coreeval.graph.item_campaign import PARAPHRASE

    if plan.modification == PARAPHRASE or plan.settings.consistency == COSINE:
        with opened(plan.config.detect.pcr.embeddings, plan.workspace) as embeds:
            yield embeds
    else:
        yield None


def _command(asking: Asking) -> str:
    settings = [word for each in asking.overrides for word in ("--set", each)]
    return shlex.join([*WHERE.split(), str(brief(asking.config)), *settings])


def _again(plan: "ItemPlan", found: "ItemAnswers") -> Iterator[str]:
    """Yield how the same numbers come from the files; only what differs from usual is said."""
    asked, usual = plan.settings, PcrSettings(metric="", consistency="")
    references = _references(plan)
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


def _read(plan: "ItemPlan", found: "ItemAnswers") -> Read:
    bad = tuple(row for each in plan.drawn for row in each.bad_rows)
    silent = {name: one.silence for name, one in found.asked.items() if one.silence}
    return Read(
        files=found.files,
        pairs={name: Pairs(good=one.pairs, bad=bad) for name, one in found.asked.items()},
        asked={name: _asked_document(plan, found.twins, one) for name, one in found.asked.items()},
        silent=silent,
        references=_references(plan),
        covariates=describe_unlike_splits(
            {each.split: [item.input for item in each.items] for each in plan.drawn}
        ),
    )


def _references(plan: "ItemPlan") -> list[str]:
    targets = plan.config.models.targets
    return [target.model for target in targets if target.role == "reference"]


def _asked_document(plan: "ItemPlan", twins: Sequence[Twins], asked: TargetPairs) -> Document:
    return {
        "modification": plan.modification,
        "answer": plan.config.detect.pcr.answer,
        "splits": {each.drawn.split: _split(each, asked) for each in twins},
    }


def _split(twins: Twins, asked: TargetPairs) -> Document:
    one = asked.splits[twins.drawn.split]
    return {
        "items": twins.drawn.total,
        "drawn": len(twins.drawn.items),
        "left_out": twins.reasons,
        "unchanged": twins.identical_count,
        "questions": dict(one.kinds),
        "unclear": one.unclear,
    }
