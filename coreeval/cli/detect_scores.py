"""`coreeval detect membership` and `exchangeability`: tests on log-probabilities of texts.

The texts are scored by weights on this machine (`hf:`), or by a target of the run whose endpoint
returns log-probabilities of prompts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coreeval.cli.options import (
    LARGEST_COUNT,
    BudgetOption,
    RunArgument,
    TrustOption,
    with_trusted_endpoints,
)
from coreeval.cli.output import AsJson, brief, show
from coreeval.cli.weights_options import (
    BatchOption,
    DeviceOption,
    HubOption,
    time_line,
    weights_lines,
)
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.evaluation.detectors.base import Detector, Json
    from coreeval.evaluation.whitebox.exchangeability import ExchangeabilitySettings
    from coreeval.graph.text_scoring import ScoringRequest, TextScoring

WEIGHTS = "hf:"
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Weights as hf:FOLDER, hf:FILE.gguf, hf:package:NAME or, with --hub, "
        "hf:OWNER/NAME@REVISION; or a target of the run whose endpoint scores prompts, such as "
        "vLLM's.",
    ),
]
MaxTokensOption = Annotated[
    int,
    typer.Option(
        min=16, max=LARGEST_COUNT, help="Skip texts longer than this many tokens, and report them."
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Estimate the number of texts and the time; score nothing."),
]


def membership(
    run: RunArgument,
    model: ModelOption,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="MODEL",
            help="A model too old to have read the originals, in the same form as --model; the "
            "verdict "
            "`member` then requires a larger effect than this model shows.",
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, max=LARGEST_COUNT, help="Maximum number of samples to score.")
    ] = 300,
    context: Annotated[
        int, typer.Option(min=0, max=100, help="Number of context texts for CoDeC; 0 skips CoDeC.")
    ] = 3,
    batch: BatchOption = 8,
    max_tokens: MaxTokensOption = 2048,
    device: DeviceOption = "auto",
    hub: HubOption = False,
    dry_run: DryRunOption = False,
    budget: BudgetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Test whether a model assigns originals a higher probability than comparable unseen texts."""
    from coreeval.evaluation.detectors.membership import make_membership
    from coreeval.evaluation.whitebox.membership_texts import MembershipSettings

    settings = MembershipSettings(samples=samples, context=context)
    request = _make_request(model, device, hub, batch, max_tokens)
    if reference is not None:
        from coreeval.cli.detect_reference import score_beside

        with_trusted_endpoints(
            trust_endpoints,
            lambda: score_beside(run, settings, request, reference, budget, dry_run, as_json),
        )
        return
    detector = make_membership(settings)
    if not model.startswith(WEIGHTS):
        _ask_endpoint(detector, run, model, budget, dry_run, trust_endpoints, as_json)
        return
    _score_run(detector, run, request, dry_run, as_json)


def exchangeability(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A run's directory, a config, or [FORMAT:]PATH[@SPLIT].",
            show_default=False,
        ),
    ],
    model: ModelOption,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="Built-in task or task file that defines the fields."),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="A column with texts; repeatable."),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(
            min=2, max=LARGEST_COUNT, help="Maximum number of texts, counted from the start."
        ),
    ] = 300,
    shuffles: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of shuffled orders per shard.")
    ] = 19,
    shard: Annotated[
        int, typer.Option(min=50, max=LARGEST_COUNT, help="Maximum number of characters per shard.")
    ] = 1500,
    batch: BatchOption = 8,
    max_tokens: MaxTokensOption = 2048,
    device: DeviceOption = "auto",
    hub: HubOption = False,
    dry_run: DryRunOption = False,
    budget: BudgetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Test whether a model prefers the published order of a benchmark's texts to random orders."""
    from coreeval.evaluation.detectors.exchangeability import make_exchangeability
    from coreeval.evaluation.whitebox.exchangeability import ExchangeabilitySettings

    settings = ExchangeabilitySettings(texts=samples, shuffles=shuffles, shard=shard)
    is_run, local = Path(source).is_dir() and ":" not in source, model.startswith(WEIGHTS)
    if is_run and not local:
        detector = make_exchangeability(settings)
        _ask_endpoint(detector, Path(source), model, budget, dry_run, trust_endpoints, as_json)
        return
    if not local:
        raise UsageError(
            f"{model!r} cannot score the texts of a file",
            where="--model",
            hint="name weights (hf:FOLDER), or pass a run that has the model as a target; the "
            "budget and call store of the run are then used",
        )
    request = _make_request(model, device, hub, batch, max_tokens)
    if is_run:
        _score_run(make_exchangeability(settings), Path(source), request, dry_run, as_json)
        return
    _score_file(source, (task, tuple(field or ())), settings, request, dry_run, as_json)


def _make_request(
    model: str, device: str, hub: bool, batch: int, max_tokens: int
) -> "ScoringRequest":
    from coreeval.graph.text_scoring import ScoringRequest

    return ScoringRequest(model=model, device=device, hub=hub, batch=batch, max_tokens=max_tokens)


def _ask_endpoint(
    detector: "Detector",
    run: Path,
    model: str,
    budget: float | None,
    dry_run: bool,
    trust_endpoints: bool,
    as_json: bool,
) -> None:
    from coreeval.cli.detect_run import detect_run, show_detection_estimate

    work = show_detection_estimate if dry_run else detect_run
    with_trusted_endpoints(trust_endpoints, lambda: work(detector, run, [model], budget, as_json))


def _score_run(
    detector: "Detector", run: Path, request: "ScoringRequest", dry_run: bool, as_json: bool
) -> None:
    from coreeval.api.progress import show_progress
    from coreeval.cli.detect_run import detection_lines
    from coreeval.graph.execute import RunHooks
    from coreeval.graph.text_scoring import plan_run_scoring, run_scoring

    plan = plan_run_scoring(detector, run, request)
    if dry_run:
        _show_estimate(plan.scoring, as_json)
        return
    with show_progress() as watch:
        found = run_scoring(plan, around=RunHooks(watch=watch))
    show(found.document, as_json, lambda: "\n".join(detection_lines(detector, found)))
    if found.summary.manifest.status == "interrupted":
        raise typer.Exit(130)


def _score_file(
    source: str,
    how: tuple[str | None, tuple[str, ...]],
    settings: "ExchangeabilitySettings",
    request: "ScoringRequest",
    dry_run: bool,
    as_json: bool,
) -> None:
    from coreeval.api.progress import show_progress
    from coreeval.evaluation.overlap.sources import ReadOptions
    from coreeval.graph.campaign import explain_stop
    from coreeval.graph.text_scoring import plan_order_scoring

    task, fields = how
    plan = plan_order_scoring(source, ReadOptions(task=task, fields=fields), settings, request)
    if dry_run:
        _show_estimate(plan, as_json)
        return
    with show_progress() as watch, explain_stop(Path(source)):
        found = plan.score(watch)
    document = {
        "detector": plan.detector.name,
        "question": plan.detector.question,
        "source": source,
        "targets": [{"target": plan.weights.name, **found}],
    }
    show(document, as_json, lambda: "\n".join(_table_lines(plan.detector, document)))


def _table_lines(detector: "Detector", document: "Json") -> Iterator[str]:
    from coreeval.tools.tables import text_lines

    for table in detector.make_tables(document):
        yield from text_lines(table)
        yield ""


def _show_estimate(plan: "TextScoring", as_json: bool) -> None:
    document = scoring_document(plan)
    show(document, as_json, lambda: "\n".join(scoring_lines(document)))


def scoring_document(plan: "TextScoring") -> dict[str, Any]:
    """Return the texts that weights would score, and the duration."""
    return {
        "model": plan.weights.name,
        "revision": plan.weights.revision,
        "parameters": plan.weights.parameters,
        "device": plan.device,
        "memory_bytes": plan.memory,
        "time": plan.estimate().model_dump(mode="json"),
        "results": str(plan.results.path),
    }


def scoring_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about the texts that weights would score."""
    times = document["time"]
    left = f"{times['left']} of {times['texts']} remain to be scored"
    yield from weights_lines(document)
    yield f"texts:    {left}, about {times['tokens']} tokens"
    yield time_line(times)
    yield f"scores:   {brief(Path(document['results']))}"
