"""`coreeval refresh`, `resume` and `retry`: the run."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.app import pause_garbage_collection
from coreeval.cli.batch_output import batch_lines
from coreeval.cli.options import (
    LARGEST_COUNT,
    LATEST_RUN,
    BudgetOption,
    ConfigArgument,
    FromOption,
    IdsOption,
    LabelsOption,
    RunArgument,
    SampleOrderOption,
    SetOption,
    StaleOption,
    TrustOption,
    UnpricedOption,
    budget_overrides,
    read_subset,
    with_trusted_endpoints,
)
from coreeval.cli.output import (
    AsJson,
    Document,
    brief,
    command,
    comparability_lines,
    control_lines,
    note,
    offline_lines,
    one_line,
    outcome_lines,
    show,
)
from coreeval.cli.score_lines import score_lines
from coreeval.errors import WAITING
from coreeval.meanings import STATES
from coreeval.tools.formatting import describe_price, format_quantity

if TYPE_CHECKING:
    from coreeval.graph.execute import RunSummary
    from coreeval.graph.run import IfChanged
    from coreeval.runs.manifest import Cost, Manifest


WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait for open batches instead of exiting.")
]


def refresh(
    config: ConfigArgument,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=LARGEST_COUNT, help="Use only N samples."),
    ] = None,
    sample: SampleOrderOption = None,
    ids: IdsOption = None,
    label: LabelsOption = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="A new or empty folder for the run."),
    ] = None,
    budget: BudgetOption = None,
    allow_unpriced: UnpricedOption = False,
    setting: SetOption = None,
    release: FromOption = None,
    stale_after: StaleOption = None,
    batch: Annotated[
        bool | None,
        typer.Option(
            "--batch/--no-batch",
            help="Use the providers' batch APIs, at half the list price; the exit code is 5 "
            "while batches are open.",
            show_default=False,
        ),
    ] = None,
    wait: WaitOption = False,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Refresh a benchmark. Ctrl-C stops the run cleanly."""
    with pause_garbage_collection():
        from coreeval.api.progress import show_progress
        from coreeval.graph.execute import RunHooks
        from coreeval.graph.run import refresh as work

    subset = read_subset(limit, sample, ids, label)
    overrides = [*(setting or ()), *budget_overrides(budget, allow_unpriced)]
    overrides += _batch_overrides(config, overrides, batch)

    def begin() -> "RunSummary":
        with show_progress() as watch:
            return work(
                config,
                limit=None if subset else limit,
                subset=subset,
                run_dir=run_dir,
                overrides=overrides,
                parent=release,
                stale_after=stale_after,
                around=RunHooks(watch=watch, waits=wait, remark=note),
            )

    _finish(with_trusted_endpoints(trust_endpoints, begin), as_json)


def _batch_overrides(config: Path, overrides: list[str], batch: bool | None) -> list[str]:
    """Return the config override for --batch; existing batch settings in the config are kept."""
    from coreeval.config import load_config

    if batch and load_config(config.resolve(), overrides).run.batch:
        return []
    return [] if batch is None else [f"run.batch={str(batch).lower()}"]


def resume(
    run: RunArgument = LATEST_RUN,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="If the config has changed, continue with the config of the run."
        ),
    ] = False,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew", help="If the config has changed, start a new run with the changed config."
        ),
    ] = False,
    wait: WaitOption = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Cancel open batches and send the remaining calls at full price."
        ),
    ] = False,
    budget: BudgetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Resume a stopped run, by default the newest.

    Answered calls are not repeated.
    """
    with pause_garbage_collection():
        from coreeval.api.progress import show_progress
        from coreeval.graph.execute import RunHooks
        from coreeval.graph.run import resume as work

    if keep and anew:
        raise typer.BadParameter("--keep and --anew cannot be used together")
    before = _read_manifest(run)
    choice: IfChanged = "keep" if keep else "anew" if anew else "refuse"

    def go_on() -> "RunSummary":
        with show_progress() as watch:
            around = RunHooks(watch=watch, waits=wait, live=live)
            return work(run, if_changed=choice, budget_usd=budget, around=around)

    done = with_trusted_endpoints(trust_endpoints, go_on)
    if before.status == "complete" and done.run_dir == run.resolve():
        note("the run was already complete; nothing to do")
    _finish(done, as_json)


def retry(
    run: RunArgument,
    budget: BudgetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Retry only the samples that failed."""
    with pause_garbage_collection():
        from coreeval.api.progress import show_progress
        from coreeval.graph.execute import RunHooks
        from coreeval.graph.run import retry as work

    before = _read_manifest(run)

    def take_up() -> "RunSummary":
        with show_progress() as watch:
            return work(run, budget_usd=budget, around=RunHooks(watch=watch))

    done = with_trusted_endpoints(trust_endpoints, take_up)
    if not before.failed:
        note("no samples of the run had failed")
    _finish(done, as_json)


def _read_manifest(run: Path) -> "Manifest":
    from coreeval.runs.manifest import read_manifest
    from coreeval.tools.workspace import RunFiles

    return read_manifest(RunFiles(run).manifest)


def _finish(done: "RunSummary", as_json: bool) -> None:
    """Print the result; the exit code says whether work is left."""
    from coreeval.graph.run_document import build_run_document

    code = exit_code(done)
    try:
        show(build_run_document(done), as_json, lambda: "\n".join(_words(done)))
    except KeyboardInterrupt:  # the run has ended, even if printing fails
        if code != WAITING:
            raise
    if code:
        raise typer.Exit(code)


def exit_code(done: "RunSummary") -> int:
    """Return 0 if every sample of both passes has an outcome other than failed.

    Otherwise it is 130 for a signal, 5 if the run waits for batches, and 1 if samples failed.
    """
    if done.manifest.status == "interrupted":
        return 130
    if done.manifest.status == "waiting":
        return WAITING
    return 1 if done.manifest.failed else 0


def _words(done: "RunSummary") -> Iterator[str]:
    from coreeval.graph.run_document import (
        describe_estimate_error,
        read_run_batches,
        read_run_comparability,
        read_run_scores,
    )
    from coreeval.runs.no_result import explain_no_result

    manifest, run = done.manifest, done.run_dir
    yield f"{STATES[manifest.status]}: {format_quantity(manifest.counts['total'], 'sample')}"
    yield from outcome_lines(manifest.counts)
    if manifest.parent:
        from_it = f"of the accepted samples, from release {manifest.parent.version}"
        yield f"  {'kept':<20}{manifest.kept:>8}   {from_it}"
    if manifest.bad_rows:
        yield (
            f"  {'bad rows':<20}{manifest.bad_rows:>8}   lines that are not samples; see the status"
        )
    yield from control_lines(manifest.control.counts if manifest.control else None)
    yield from comparability_lines(read_run_comparability(done))
    if manifest.status == "complete":
        yield from score_lines(read_run_scores(done), run)
    yield from _cost_lines(manifest.cost, waits=manifest.status == "waiting")
    yield from batch_lines(read_run_batches(done))
    yield from _estimate_lines(describe_estimate_error(manifest))
    if manifest.status == "complete":
        yield f"dataset: {brief(run / 'dataset')}"
        yield f"report:  {brief(run / 'report.html')}"
        yield f"why:     {command('trace', run)}"
    else:
        yield f"resume:  {command('resume', run)}"
    if manifest.bad_rows:
        yield f"rows:    {command('status', run)}"
    if manifest.failed:
        yield from summarize_failures(run)
    yield from offline_lines(manifest.offline_roles)
    if remark := explain_no_result(run, manifest):
        yield remark


def summarize_failures(run: Path) -> Iterator[str]:
    """Yield why samples failed, most frequent causes first, and how to retry them."""
    from coreeval.models.failures import TOO_LONG
    from coreeval.runs.open import open_run_reader

    with open_run_reader(run) as (_, _, store):
        causes = [one for one in store.listing.overview().causes if one.outcome == "failed"]
        firsts = [(one, store.result(one.example)) for one in causes[:MOST_FAILURES]]
    for one, first in firsts:
        reason = one_line(first.reason if first else one.cause)
        yield (
            f"failed:  {format_quantity(one.samples, 'sample')}; cause: "
            f"{textwrap.shorten(reason, MOST_REASON_CHARS)}"
        )
    if causes and all(TOO_LONG in one.cause for one in causes):
        yield "         use a model with a longer context and refresh again"
    else:
        yield f"again:   {command('retry', run)}"


MOST_FAILURES = 3
"""The most causes of failed samples in the summary."""
MOST_REASON_CHARS = 600
"""The most characters of a failure in the summary, taken from the first sample with this cause."""


def _cost_lines(cost: "Cost", *, waits: bool) -> Iterator[str]:
    if cost.billed_calls or cost.cached_calls:
        usd = describe_price(cost.billed_usd)
        of = "" if cost.budget_usd is None else f" of {cost.budget_usd:.2f}"
        yield (
            f"calls:   {cost.billed_calls} billed {usd}{of}, {cost.cached_calls} answered from "
            "the store"
        )
    if cost.unknown_usd:
        whose = "in open batches" if waits else "with an unknown outcome"
        yield f"         up to {cost.unknown_usd:.2f} USD more for calls {whose}"
    if cost.cached_tokens:
        share = cost.cached_tokens / cost.prompt_tokens
        yield f"         {share:.0%} of the prompt tokens came from the providers' caches"


def _estimate_lines(misses: Sequence[Document] | None) -> Iterator[str]:
    for miss in misses or ():
        if miss["measure"] in _MEASURES:
            unit, form = _MEASURES[miss["measure"]]
            low, likely, high = (format(miss["estimated"][at], form) for at in _ENDS)
            yield (
                f"         {unit}: {format(miss['actual'], form)} "
                f"(estimated: {likely}, {low} to {high})"
            )


_ENDS = ("low", "likely", "high")
_MEASURES = {"calls": ("calls", ",.0f"), "usd": ("USD", ".2f")}
