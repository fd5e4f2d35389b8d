"""`coreeval detect`: is a score memory? The group, `detect pcr`, and detectors on runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from coreeval.cli.detect_dose import dose
from coreeval.cli.detect_finetune import finetune
from coreeval.cli.detect_numleak import numleak
from coreeval.cli.detect_overlap import overlap
from coreeval.cli.detect_scores import exchangeability, membership
from coreeval.cli.options import (
    LARGEST_COUNT,
    LARGEST_SEED,
    MOST_DRAWS,
    BudgetOption,
    RunArgument,
    SetOption,
    TrustOption,
    UnpricedOption,
    allow_given,
    budget_overrides,
    with_trusted_endpoints,
)
from coreeval.cli.output import AsJson
from coreeval.config.plugins import parse_plugin
from coreeval.errors import UsageError
from coreeval.evaluation.detectors import ASKED, find_detector
from coreeval.evaluation.detectors.base import Detector


class _DetectGroup(TyperGroup):
    """The detectors; those of plugins are looked up by name: `plugin:NAME` or `module:Class`."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - typer hides the classes
        """Return the command with a name."""
        found = super().get_command(ctx, cmd_name)
        return found if found or not parse_plugin(cmd_name) else _open_plugin_command(cmd_name)


def _open_plugin_command(name: str) -> object:
    """Return the command that runs a plugin's detector, named by the user."""
    allow_given("detectors", name)
    found = find_detector(name)
    assert found, "the name is a plugin's"
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command(name)(_make_command(found))
    return typer.main.get_command(made)


detect = typer.Typer(
    name="detect", cls=_DetectGroup, help="Measure how much of a score is due to memory."
)
METRICS = (
    "exact_match, exact_match_squad, token_f1, accuracy, rouge_1, rouge_2, rouge_l, bleu, macro_f1"
)
CONSISTENCIES = "exact, option, same_answer, jaccard, cosine"
WHERE = "coreeval detect pcr"
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="A target of the run; repeatable. By default, all targets that answer in text.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Estimate the calls and their cost; send nothing.")
]
detect.command("numleak")(numleak)
detect.command("overlap")(overlap)
detect.command("finetune")(finetune)
detect.command("dose")(dose)
detect.command("membership")(membership)
detect.command("exchangeability")(exchangeability)


@detect.command("pcr")
def pcr(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG]",
            help="Test the targets of this YAML config on its benchmark; alternatively, use "
            "--pairs.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pairs",
            metavar="[NAME=]FILE",
            help="A JSON Lines file with one item and its two answers per line; repeatable, "
            "one file per model.",
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="[NAME=]FILE",
            help="Pairs of answers from a reference model that has seen neither split; "
            "repeatable; at least two files are needed.",
        ),
    ] = None,
    exchangeable_splits: Annotated[
        bool,
        typer.Option(
            "--exchangeable-splits",
            help="Declare that the splits are random parts of one pool and equally difficult.",
        ),
    ] = False,
    metric: Annotated[str, typer.Option("--metric", metavar="M", help=f"One of {METRICS}.")] = "",
    consistency: Annotated[
        str, typer.Option("--consistency", metavar="C", help=f"One of {CONSISTENCIES}.")
    ] = "",
    alpha: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=LARGEST_COUNT,
            help="Constant that keeps the ratio finite; use 0.001 if consistency is very low.",
        ),
    ] = 0.01,
    scale: Annotated[
        Literal["tanh", "linear", "sigmoid"], typer.Option(help="Transformation of the ratio.")
    ] = "tanh",
    threshold: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Minimum cosine similarity at which two answers count as having the same meaning.",
        ),
    ] = 0.95,
    embeddings: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Embeddings for cosine consistency: minilm, minilm:PATH or provider:name.",
        ),
    ] = "minilm",
    train: Annotated[
        str,
        typer.Option(
            "--train-split",
            metavar="NAME",
            help="The split that the model may have been trained on.",
        ),
    ] = "train",
    test: Annotated[
        str,
        typer.Option(
            "--test-split", metavar="NAME", help="The split that the model must not have seen."
        ),
    ] = "test",
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=LARGEST_COUNT,
            help="Largest difference to treat as zero; 0.03 by default (on the tanh scale).",
        ),
    ] = None,
    interval: Annotated[
        Literal["percentile", "bca"], typer.Option(help="Type of bootstrap interval.")
    ] = "percentile",
    draws: Annotated[
        int,
        typer.Option(min=100, max=MOST_DRAWS, help="Number of bootstrap draws and permutations."),
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Random seed.")] = 0,
    ablation: Annotated[
        bool,
        typer.Option(
            "--ablation", help="Repeat the comparison with other alphas, scales and thresholds."
        ),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot the result as .svg or .png.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Folder to which the targets' pairs of answers are written.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    budget: BudgetOption = None,
    allow_unpriced: UnpricedOption = False,
    setting: SetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Compare the performance consistency ratio (PCR) on training and test items (CAP paper)."""
    from coreeval.evaluation.pcr.study import PcrSettings
    from coreeval.evaluation.pcr.verdicts import PcrOptions

    _refuse_mixed(context, asking=config is not None)
    if config is None and not pairs:
        hint = "use --pairs FILE.jsonl, or pass a CONFIG that names targets to test"
        raise UsageError("--pairs is missing", where=WHERE, hint=hint)
    settings = PcrSettings(
        metric=metric if config else _parse_choice(metric, "--metric", METRICS),
        consistency=consistency
        if config
        else _parse_choice(consistency, "--consistency", CONSISTENCIES),
        threshold=threshold,
        form=PcrOptions(alpha=alpha, scale=scale, interval=interval, margin=margin),
        draws=draws,
        seed=seed,
        train=train,
        test=test,
        exchangeable=exchangeable_splits,
    )
    if config is None:
        from coreeval.cli.detect_pcr import PcrDisplay, compare_files

        shown = PcrDisplay(ablation=ablation, plot=plot, as_json=as_json)
        compare_files(pairs or [], reference or [], settings, embeddings, shown)
        return
    from coreeval.cli.detect_pcr import PcrDisplay, PcrRequest, ask_and_compare

    asking = PcrRequest(
        config=config,
        overrides=(*(setting or ()), *budget_overrides(budget, allow_unpriced)),
        out=out,
        dry_run=dry_run,
        trust_endpoints=trust_endpoints,
        shown=PcrDisplay(ablation=ablation, plot=plot, as_json=as_json),
    )
    ask_and_compare(asking, settings)


_OF_CONFIG = {
    "metric": "metric",
    "consistency": "consistency",
    "alpha": "alpha",
    "scale": "scale",
    "threshold": "threshold",
    "embeddings": "embeddings",
    "train": "train_split",
    "test": "test_split",
    "exchangeable_splits": "exchangeable_splits",
}
"""Options with the keys of detect.pcr that set them in a config."""
_OF_RECORDED = ("pairs", "reference")
_OF_ASKING = ("out", "dry_run", "budget", "allow_unpriced", "setting", "trust_endpoints")


def _refuse_mixed(context: typer.Context, *, asking: bool) -> None:
    """Refuse options that would be ignored: those of recorded pairs, or those of asking."""
    flags = {param.name or "": param.opts[0] for param in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in flags}
    given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    for name in given:
        if asking and name in _OF_RECORDED:
            hint = "pass CONFIG to test targets, or --pairs to use recorded answers"
            if name == "reference":
                hint = "set `role: reference` for a target of CONFIG"
            raise UsageError(
                f"CONFIG and {flags[name]} cannot be used together", where=WHERE, hint=hint
            )
        if asking and name in _OF_CONFIG:
            key = f"detect.pcr.{_OF_CONFIG[name]}"
            hint = f"set {key} in the config, or use --set {key}=..."
            raise UsageError(
                f"{flags[name]} cannot be used with CONFIG, because the config sets this value",
                where=WHERE,
                hint=hint,
            )
        if not asking and name in _OF_ASKING:
            hint = "pass CONFIG to test targets"
            raise UsageError(
                f"{flags[name]} applies only when targets are tested", where=WHERE, hint=hint
            )


def _parse_choice(text: str, option: str, known: str) -> str:
    """Return the value of a required option; a score cannot be guessed."""
    if not text:
        raise UsageError(f"{option} is missing", where=WHERE, hint=f"use one of {known}")
    return text


def _make_command(detector: Detector) -> Callable[..., None]:
    """Return the command that runs a detector on a run."""
    probes = detector.probes
    known = ", ".join(probes)

    def run_on(
        run: RunArgument,
        target: TargetOption = None,
        probe: Annotated[
            str | None,
            typer.Option(
                metavar="P", help=f"An additional type of question: {known}.", hidden=not probes
            ),
        ] = None,
        dry_run: DryRunOption = False,
        budget: BudgetOption = None,
        trust_endpoints: TrustOption = False,
        as_json: AsJson = False,
    ) -> None:
        from coreeval.cli.detect_run import detect_run, show_detection_estimate

        if probe is not None and probe not in probes:
            raise UsageError(
                f"unknown probe {probe!r}",
                where=f"coreeval detect {detector.name}",
                hint=f"omit --probe, or use one of {known}" if probes else "omit --probe",
            )
        chosen = detector if probe is None else probes[probe]
        work = show_detection_estimate if dry_run else detect_run
        with_trusted_endpoints(
            trust_endpoints, lambda: work(chosen, run, target or [], budget, as_json)
        )

    run_on.__doc__ = detector.question
    return run_on


for each in (detector for detector in ASKED.values() if not detector.scores_texts):
    detect.command(each.name)(_make_command(each))
