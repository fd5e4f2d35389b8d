"""`coreeval estimate`: the expected cost of a run.

`evaluate` and the commands of `detect` print their estimates with the same functions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typing_extensions import TypedDict

from coreeval.cli.options import (
    LARGEST_COUNT,
    ConfigArgument,
    FromOption,
    IdsOption,
    LabelsOption,
    SampleOrderOption,
    SetOption,
    StaleOption,
    TrustOption,
    lineage_arguments,
    read_subset,
    with_trusted_endpoints,
)
from coreeval.cli.output import AsJson, Document, brief, command, show
from coreeval.tools.formatting import (
    describe_price,
    format_amount,
    format_expected_time,
    format_expected_usd,
    format_quantity,
)
from coreeval.tools.tables import Row, Table, numbers, text_lines, texts

if TYPE_CHECKING:
    from coreeval.evaluation.benchmarks.subset import Subset
    from coreeval.graph.estimate.model import BudgetFit, CostEstimate, EstimateLine, Range


def estimate(
    config: ConfigArgument,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=LARGEST_COUNT, help="Use only N samples."),
    ] = None,
    sample: SampleOrderOption = None,
    ids: IdsOption = None,
    label: LabelsOption = None,
    rows: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=LARGEST_COUNT,
            help="Make the estimate for N samples similar to those in the config's benchmark.",
        ),
    ] = None,
    preview: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            max=LARGEST_COUNT,
            help="Refresh the first N samples and base the estimate on them.",
        ),
    ] = None,
    setting: SetOption = None,
    release: FromOption = None,
    stale_after: StaleOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Estimate the calls, tokens, cost and time of a run."""
    from coreeval.graph.estimate.run_estimate import estimate as reckon

    if preview is not None and release is not None:
        raise typer.BadParameter("--preview and --from cannot be used together")
    _check_rows(rows, {"--limit": limit, "--ids": ids, "--label": label, "--from": release})
    subset, overrides = read_subset(limit, sample, ids, label), setting or ()
    taken = _TakenSamples(limit=None if subset else limit, subset=subset, rows=rows)

    def make() -> "CostEstimate":
        if preview is not None:
            return _estimate_with_preview(config, preview, overrides, taken)
        return reckon(config, overrides=overrides, parent=release, stale_after=stale_after, **taken)

    made = with_trusted_endpoints(trust_endpoints, make)
    run = command(
        "refresh",
        config,
        *_subset_arguments(None if limit and limit > made.samples else limit, sample, ids, label),
        *(word for each in overrides for word in ("--set", each)),
        *lineage_arguments(release, stale_after),
    )
    show(estimate_document(made), as_json, lambda: "\n".join(estimate_lines(made, run)))


class _TakenSamples(TypedDict):
    """The samples to estimate for."""

    limit: int | None
    subset: "Subset | None"
    rows: int | None


def _check_rows(rows: int | None, parts: Mapping[str, object]) -> None:
    """Refuse --rows together with options that select a part of the benchmark."""
    given = [name for name, value in parts.items() if value]
    if rows is not None and given:
        raise typer.BadParameter(f"--rows and {given[0]} cannot be used together")


def _subset_arguments(
    limit: int | None, order: str | None, ids: Path | None, labels: Sequence[str] | None
) -> Iterator[str]:
    """Yield the options that make `refresh` take the same samples."""
    if limit is not None:
        yield from ("--limit", str(limit))
        yield from ("--sample", order) if order else ()
    yield from ("--ids", str(ids)) if ids else ()
    for label in labels or ():
        yield from ("--label", label)


def _estimate_with_preview(
    config: Path, samples: int, overrides: Sequence[str], taken: _TakenSamples
) -> "CostEstimate":
    from coreeval.api.progress import show_progress
    from coreeval.graph.estimate.preview import preview
    from coreeval.graph.execute import RunHooks

    with show_progress("preview") as watch:
        return preview(config, samples, overrides=overrides, around=RunHooks(watch=watch), **taken)


UNKNOWN = "unknown"


def estimate_document(estimate: "CostEstimate") -> Document:
    """Return the `--json` output."""
    return estimate.model_dump(mode="json")


def estimate_lines(estimate: "CostEstimate", run: str) -> Iterator[str]:
    """Yield the estimate in words: the totals, each role, and the basis.

    Args:
        estimate: The estimate.
        run: The command line of the estimated run.
    """
    yield from _heading_lines(estimate)
    yield ""
    yield from _sum_lines(estimate)
    yield from _batch_lines(estimate)
    if estimate.lines:
        yield ""
        yield from _role_lines(estimate.lines)
    yield ""
    yield from _budget_lines(estimate)
    yield from _origin_lines(estimate.lines)
    yield from (f"note: {note}" for note in estimate.notes)
    if estimate.preview is None:
        yield "nothing was spent"
    if estimate.missing_news:
        yield f"{estimate.missing_news.message}; next: {estimate.missing_news.to_do}"
        yield f"then: {run}"
    else:
        yield f"next: {run}"


def _heading_lines(estimate: "CostEstimate") -> Iterator[str]:
    yield f"{estimate.name}: {format_quantity(estimate.samples, 'sample')}, task {estimate.task}"
    if estimate.by_target:
        told = ", ".join(f"{target} {n:,}" for target, n in estimate.by_target.items())
        yield f"  {told}"
    if estimate.window:
        from coreeval.tools.window_lines import window_lines

        yield from window_lines(estimate.window, estimate.window_start)
    if done := estimate.preview:
        usd = describe_price(done.usd)
        refreshed = format_quantity(done.samples, "sample")
        calls = format_quantity(done.billed_calls, "call")
        yield f"preview: {refreshed} refreshed, {calls} {usd}"
        yield f"  {brief(Path(done.run))}"
        yield f"the figures below are for the other {format_quantity(estimate.to_pay, 'sample')}"
        if done.failed:
            yield f"  {done.failed} of the preview's samples failed: see the run's status"
    elif kept := estimate.samples - estimate.to_pay:
        told = format_quantity(kept, "sample is", "samples are")
        yield f"{told} kept from a release and used only to evaluate targets"


# -- the sums -------------------------------------------------------------------------------------


def _sum_lines(estimate: "CostEstimate") -> Iterator[str]:
    totals = estimate.totals
    money = [_figure_row("USD", totals.usd, format_expected_usd)]
    if totals.usd is None:
        money.append(_figure_row("USD, priced models", totals.priced_usd, format_expected_usd))
    at_once = f"at most {estimate.concurrency} concurrent requests per model"
    rows = [
        _figure_row("calls", totals.calls, "{:,.0f}".format),
        _figure_row("prompt tokens", totals.prompt_tokens, format_amount),
        *_cached_rows(totals.cached_tokens),
        _figure_row("answer tokens", totals.completion_tokens, format_amount),
        *money,
        (*_figure_row("time", estimate.seconds, format_expected_time), at_once),
    ]
    ends = (numbers(end, 12) for end in ("low", "likely", "high"))
    yield from text_lines(Table((texts(width=22), *ends, texts(gap=3)), rows))


def _cached_rows(cached: "Range") -> Iterator[Row]:
    """Yield the prompt tokens from the providers' caches; nothing if they cannot have any."""
    if cached.high:
        yield _figure_row("  from caches", cached, format_amount)


def _batch_lines(estimate: "CostEstimate") -> Iterator[str]:
    """Yield cost and time of the same calls in batches."""
    batch = estimate.batch
    if batch is None:
        return
    rounds = f"{batch.rounds.low:.0f} to {batch.rounds.high:.0f} rounds; a batch takes up to 24 h"
    rows = [
        _figure_row("USD, in batches", batch.usd, format_expected_usd),
        (*_figure_row("time, in batches", batch.seconds, format_expected_time), rounds),
    ]
    ends = (numbers("", 12) for _ in range(3))
    table = text_lines(Table((texts(width=22), *ends, texts(gap=3)), rows))
    yield from (line for line in table if line.strip())
    if batch.unpriced:
        yield f"  sent individually, because there is no batch price: {', '.join(batch.unpriced)}"


def _figure_row(name: str, figures: "Range | None", written: Callable[[float], str]) -> Row:
    if figures is None:
        return (name, *3 * [UNKNOWN])
    return (name, *map(written, (figures.low, figures.likely, figures.high)))


def _role_lines(lines: Sequence["EstimateLine"]) -> Iterator[str]:
    wide = max(len(line.model) for line in lines)
    names = [line.role if line.stage == "run" else f"{line.role}, {line.stage}" for line in lines]
    role = max(13, *(len(name) + 2 for name in names))
    heads = (numbers(head, 10) for head in ("calls", "prompt", "cached", "answers", "USD"))
    rows = [
        (name, line.model, f"{line.calls.likely:,.0f}", format_amount(line.prompt_tokens.likely),
         _format_share(line.cached_tokens.likely, line.prompt_tokens.likely),
         format_amount(line.completion_tokens.likely),
         UNKNOWN if line.usd is None else format_expected_usd(line.usd.likely))
        for name, line in zip(names, lines, strict=True)
    ]  # fmt: skip
    yield from text_lines(Table((texts("likely", role), texts("model", wide), *heads), rows))


def _format_share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else ""


# -- money, and what everything rests on ----------------------------------------------------------


def _budget_lines(estimate: "CostEstimate") -> Iterator[str]:
    priced: dict[str, list[str]] = {}
    for line in estimate.lines:
        if line.price:
            priced.setdefault(line.price, []).append(line.model)
    for origin, models in priced.items():
        yield f"price of {', '.join(dict.fromkeys(models))}: {origin}"
    for one in estimate.unpriced:
        near = f"; similar names with a price: {', '.join(one.nearest)}" if one.nearest else ""
        yield f"price of {one.model}: {UNKNOWN}{near}"
        yield "  set price: {input: …, output: …} in the config, or set run.prices"
    if estimate.budget:
        yield f"budget of {estimate.budget.usd:.2f} USD: {_fit_line(estimate.budget)}"


def _fit_line(fit: "BudgetFit") -> str:
    if fit.likely is None:
        return "whether this suffices is unknown because a price is missing"
    if fit.high:
        return "sufficient, even for the high estimate"
    return (
        "sufficient for the likely cost, but not for the high estimate"
        if fit.likely
        else "not enough"
    )


def _origin_lines(lines: Sequence["EstimateLine"]) -> Iterator[str]:
    """Yield the source of each figure, with its roles if the sources differ."""
    from coreeval.graph.estimate.model import RESTS_ON

    if not lines:
        return
    yield "sources of the figures"
    for figure in RESTS_ON:
        by_origin: dict[str, list[EstimateLine]] = {}
        for line in lines:
            by_origin.setdefault(line.rests_on[figure].origin, []).append(line)
        for origin, those in by_origin.items():
            roles = ", ".join(dict.fromkeys(line.role for line in those))
            whose = f" ({roles})" if len(by_origin) > 1 else ""
            number = _format_samples([line.rests_on[figure].n for line in those])
            yield f"  {figure:<9}{origin}{number}{whose}"


def _format_samples(counts: Sequence[int]) -> str:
    """Return the sample counts as text; empty for assumed figures."""
    least, most = min(counts), max(counts)
    if not most:
        return ""
    return f": {least}" if least == most else f": {least} to {most}"
