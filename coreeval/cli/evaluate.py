"""`coreeval evaluate`: asks targets about the arms of a finished run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.app import pause_garbage_collection
from coreeval.cli.completion import complete_providers
from coreeval.cli.options import (
    BudgetOption,
    RunArgument,
    TrustOption,
    budget_arguments,
    with_trusted_endpoints,
)
from coreeval.cli.output import (
    AsJson,
    Document,
    brief,
    command,
    comparability_lines,
    one_line,
    show,
)
from coreeval.errors import WAITING
from coreeval.evaluation.detectors import DETECTORS, SUMMARIES
from coreeval.meanings import STATES
from coreeval.schema import TaskKind
from coreeval.tools.formatting import (
    describe_price,
    format_interval,
    format_number,
    format_quantity,
)
from coreeval.tools.tables import Column, Row, Table, intervals, numbers, text_lines, texts

if TYPE_CHECKING:
    from coreeval.graph.execute import RunSummary


def evaluate(
    run: RunArgument,
    target: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            autocompletion=complete_providers,
            help="A target to evaluate: provider:name, or a YAML mapping with a target's keys; "
            "repeatable. By default, all targets of the run.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the calls and their cost; send nothing.")
    ] = False,
    budget: BudgetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate targets on a run's arms.

    Questions that they have already answered are skipped.
    """
    if dry_run:
        with_trusted_endpoints(
            trust_endpoints, lambda: _show_estimate(run, target or [], budget, as_json)
        )
        return
    with pause_garbage_collection():
        from coreeval.api.progress import show_progress
        from coreeval.graph.evaluate import evaluate as work
        from coreeval.graph.execute import RunHooks

    def ask() -> "RunSummary":
        with show_progress() as watch:
            around = RunHooks(watch=watch)
            return work(run, targets=target or (), budget_usd=budget, around=around)

    done = with_trusted_endpoints(trust_endpoints, ask)
    document = _document(done)
    show(document, as_json, lambda: "\n".join(_words(document, done.run_dir)))
    if code := _EXIT_CODES.get(done.manifest.status):
        raise typer.Exit(code)


_EXIT_CODES = {"interrupted": 130, "waiting": WAITING}


def _show_estimate(run: Path, targets: list[str], budget: float | None, as_json: bool) -> None:
    from coreeval.cli.estimate import estimate_document, estimate_lines
    from coreeval.graph.estimate.evaluation_estimate import estimate_evaluation

    made = estimate_evaluation(run, targets=targets, budget_usd=budget)
    chosen = (word for one in targets for word in ("--target", one))
    following = command("evaluate", run, *chosen, *budget_arguments(budget))
    show(estimate_document(made), as_json, lambda: "\n".join(estimate_lines(made, following)))


def _document(done: "RunSummary") -> Document:
    manifest, report = done.manifest, done.run_dir / "report.json"
    complete = manifest.status == "complete"
    found = json.loads(report.read_text(encoding="utf-8")) if complete else {}
    return {
        "run": str(done.run_dir),
        "status": manifest.status,
        "asked": list(manifest.evaluation.asked if manifest.evaluation else ()),
        "cost": manifest.cost.model_dump(mode="json"),
        "comparability": found.get("comparability"),
        "arms": found.get("arms"),
        **{name: found.get(name) for name in SUMMARIES},
        "report": str(done.run_dir / "report.html"),
    }


def _words(document: Document, run: Path) -> Iterator[str]:
    yield f"{STATES[document['status']]}: evaluated {', '.join(document['asked'])}"
    if document["arms"] is None:
        yield f"resume:  {command('resume', run)}"
        return
    yield from comparability_lines(document["comparability"])
    kind = document["arms"].get("kind", "labels")
    for target in document["arms"]["targets"]:
        yield from _target_lines(target, kind)
    yield from _order_lines(document["arms"]["ranking"])
    for name, summarize in SUMMARIES.items():
        if document[name] and (lines := list(summarize(document[name]))):
            yield from ("", *lines)
            found = DETECTORS[name].find(document)
            yield from (f"  {one_line(one.target)}: {one_line(one.reason)}" for one in found)
    cost = document["cost"]
    usd = describe_price(cost["billed_usd"])
    yield (
        f"calls of the run so far: {cost['billed_calls']} billed {usd}, {cost['cached_calls']} "
        "answered from the store or recorded"
    )
    yield f"report:  {brief(run / 'report.html')}"


def _target_lines(target: Document, kind: TaskKind) -> Iterator[str]:
    from coreeval.evaluation.grading import SCORING  # not needed for --help, and loads the stores

    columns, score, scores = _list_columns(kind), SCORING[kind].headline, target["all_samples"]
    yield ""
    yield target["target"]
    arms = [
        (arm["arm"], *_figures(arm[score]), *(arm["answers"][each] for each in _BAD_ANSWERS))
        for arm in scores["arms"]
    ]
    yield from text_lines(Table(columns, arms), "  ")
    if not any(arm[score]["n"] for arm in scores["arms"]):
        yield "  the target refused every question, so there is nothing to score"
    pairs = [
        (f"{pair['first']['arm']} -> {pair['second']['arm']}",
         *_figures(pair[f"{score}_difference"], sign="+"))
        for pair in scores["comparisons"]
    ]  # fmt: skip
    if pairs:
        yield "  differences between arms, on the n samples that are in both arms"
    yield from text_lines(Table(columns, pairs), "  ", heads=False)


def _order_lines(ranking: Document | None) -> Iterator[str]:
    """Yield whether targets rank the same on original and updated texts."""
    if ranking:
        yield ""
        ranked = format_quantity(len(ranking["targets"]), "target")
        yield f"ranking of {ranked}, original versus updated (n: targets)"
        rows = [(name, *_figures(ranking[name], sign="+")) for name in ("kendall", "spearman")]
        columns = _list_columns("labels")
        yield from text_lines(Table(columns, rows), "  ", heads=False)


_BAD_ANSWERS = ("refused", "unparsed", "truncated")


def _list_columns(kind: TaskKind) -> tuple[Column, ...]:
    """Return the columns of the table of arms, with the score's name for the kind of task."""
    from coreeval.evaluation.grading import SCORING

    name = SCORING[kind].headline_name
    return (texts("arm", 22), numbers(name, 9), intervals(18), numbers("n", 7),
            *(numbers(kind, 11) for kind in _BAD_ANSWERS))  # fmt: skip


def _figures(score: Document, sign: str = "") -> Row:
    """Return the cells of a score: the number, its interval and its n."""
    known = format_interval(score["ci_low"], score["ci_high"], f"{sign}.3f", joint=" … ")
    return (format_number(score["estimate"], f"{sign}.3f"), known, score["n"])
