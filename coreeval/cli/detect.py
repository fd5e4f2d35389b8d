"""`coreeval detect`: is a score memory? By asking targets, or from recorded outputs.

The group, `detect pcr`, and `detect drop`, which prints what the score drops of a run are made of,
as its report has it.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from coreeval.cli.detect_numleak import numleak
from coreeval.cli.detect_overlap import overlap
from coreeval.cli.options import (
    BudgetOption,
    RunArgument,
    SetOption,
    TrustOption,
    UnpricedOption,
    budget_overrides,
)
from coreeval.cli.output import AsJson, Document, command, show
from coreeval.errors import RunStateError, UsageError

if TYPE_CHECKING:
    from coreeval.tools.workspace import RunFiles


_SAID = {
    "remembered": "remembered",
    "not_shown": "not shown",
    "cannot_tell": "cannot tell",
    "not_measured": "not measured",
}


def drop(
    run: RunArgument,
    items: Annotated[
        Path | None,
        typer.Option(
            "--items", metavar="FILE.csv", dir_okay=False, help="Write every sample of each target."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a run's drops are made of: memory, rewriting, label noise; nothing is asked."""
    from coreeval.runs.manifest import read_manifest
    from coreeval.tools.workspace import RunFiles

    files = RunFiles(run)
    read_manifest(files.manifest)
    document = _drop_document(run, files)
    if items:
        _copy_items(run, files.items, items)
    show(document, as_json, lambda: "\n".join(_drop_lines(document, items)))


def _drop_document(run: Path, files: "RunFiles") -> Document:
    """Return the performance drops from the report.

    Raises:
        RunStateError: there is no report yet, or one from before drops were decomposed; or no
            target labelled texts.
        RunCorrupt: it is damaged.
    """
    from coreeval.evaluation.report.report_file import read_report

    report, again = read_report(files), command("evaluate", run)
    if report is None:
        raise RunStateError(
            "the run has no report yet", where=str(run), hint=f"first: {command('resume', run)}"
        )
    found: dict[str, Any] = report["decomposition"]
    if not found["targets"]:
        asked = report["arms"]["targets"]
        why = "the report is from before drops were taken apart" if asked else "nobody was asked"
        hint = f"write it anew: {again}" if asked else f"{again} --target provider:name"
        raise RunStateError(f"no drop can be taken apart: {why}", where=str(run), hint=hint)
    return {"run": str(run), **found}


def _copy_items(run: Path, table: Path, to: Path) -> None:
    """Copy the table of samples.

    Raises:
        RunStateError: it does not exist, or the copy cannot be written.
    """
    try:
        shutil.copyfile(table, to)
    except OSError as error:
        raise RunStateError(
            f"the table of samples cannot be copied: {error.strerror or error}",
            where=str(error.filename or to),
            hint=f"look at the path, or write the table anew: {command('evaluate', run)}",
        ) from None


def _drop_lines(document: Document, items: Path | None) -> Iterator[str]:
    control = document["control"]
    if control:
        window = control["window"]
        yield f"control arm: news from {window['start'][:10]} to {window['end'][:10]}"
    else:
        yield "no control arm: rewriting cannot be told from memory (run.control_window adds one)"
    yield from _text_lines(document["texts"])
    for target in document["targets"]:
        yield ""
        yield from _target_lines(target)
    yield ""
    yield f"against each other: {document['panel']['note']}"
    yield from _matrix_lines(document["agreement"])
    if items:
        yield f"samples: {items}"


def _target_lines(target: Document) -> Iterator[str]:
    yield f"{target['target']}: {target['verdict'].replace('_', ' ')}"
    yield from (f"  {reason}" for reason in target["reasons"])
    yield f"  {'accuracy, points':<22}{'lost':>8}  {'95 % interval':<18}{'n':>7}"
    for name, term in target["accuracy"]["terms"].items():
        lost = term["lost"]
        yield (
            f"  {name.replace('_', ' '):<22}{_points(lost['estimate']):>8}  {_interval(lost):<18}"
            + (f"{lost['n']:>7}")
        )
    for kind, found in target["items"]["kinds"].items():
        yield f"  samples flagged by {kind}: {len(found['ids'])} of {target['items']['n']}"


def _text_lines(texts: Document | None) -> Iterator[str]:
    """Yield the differences between the arms' texts, a line for each covariate."""
    for kind, check in texts["kinds"].items() if texts else ():
        yield ""
        arms = ", ".join(check["weights"])
        yield f"texts for memory of {kind} ({arms}; {texts['n']} samples)" if texts else ""
        for one in check["covariates"]:
            means = " ".join(f"{one['means'][arm]:>9.3g}" for arm in check["weights"])
            of = one["difference"]
            span = f"{of['estimate']:+.3g} ({of['ci_low']:+.3g} to {of['ci_high']:+.3g})"
            differs = "  differs" if one["differs"] else ""
            yield f"  {one['covariate'].replace('_', ' '):<12}{means}   {span}{differs}"


def _matrix_lines(agreement: Document) -> Iterator[str]:
    yield "what the detectors say:"
    for row in agreement["rows"]:
        said = (f"{name} {_SAID[cell['said']]}" for name, cell in row["cells"].items())
        yield f"  {row['target']}: {', '.join(said)}"


def _points(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:+.1f}"


def _interval(found: Document) -> str:
    if found["ci_low"] is None:
        return ""
    return f"{_points(found['ci_low'])} … {_points(found['ci_high'])}"


detect = typer.Typer(name="detect", help="Find out how much of a score is memory.")
METRICS = "exact_match, exact_match_squad, accuracy, rouge_1, rouge_2, rouge_l, bleu, macro_f1"
CONSISTENCIES = "exact, option, jaccard, cosine"
WHERE = "coreeval detect pcr"
detect.command("drop")(drop)
detect.command("numleak")(numleak)
detect.command("overlap")(overlap)


@detect.command("pcr")
def pcr(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG]",
            help="Ask the targets of this YAML config about its benchmark; or else give --pairs.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pairs",
            metavar="[NAME=]FILE",
            help="JSON lines, an item with both answers each; repeatable, one for each model.",
        ),
    ] = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="[NAME=]FILE",
            help="The same of models that have seen neither split; repeatable, two or more.",
        ),
    ] = None,
    exchangeable_splits: Annotated[
        bool,
        typer.Option(
            "--exchangeable-splits",
            help="Vouch that the splits are random parts of one pool, alike in difficulty.",
        ),
    ] = False,
    metric: Annotated[str, typer.Option("--metric", metavar="M", help=f"One of {METRICS}.")] = "",
    consistency: Annotated[
        str, typer.Option("--consistency", metavar="C", help=f"One of {CONSISTENCIES}.")
    ] = "",
    alpha: Annotated[
        float,
        typer.Option(min=0.0, help="What keeps the ratio finite; 0.001 where consistency is tiny."),
    ] = 0.01,
    scale: Annotated[
        Literal["tanh", "linear", "sigmoid"], typer.Option(help="What the ratio goes through.")
    ] = "tanh",
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Cosine similarity that counts as the same.")
    ] = 0.95,
    embeddings: Annotated[
        str, typer.Option(metavar="MODEL", help="For cosine: minilm, minilm:PATH, provider:name.")
    ] = "minilm",
    train: Annotated[
        str, typer.Option("--train-split", metavar="NAME", help="The split that may be trained on.")
    ] = "train",
    test: Annotated[
        str, typer.Option("--test-split", metavar="NAME", help="The split that must be unseen.")
    ] = "test",
    margin: Annotated[
        float | None,
        typer.Option(min=0.0, help="Differences within it count as none; else 0.03 (of tanh)."),
    ] = None,
    interval: Annotated[
        Literal["percentile", "bca"], typer.Option(help="Which bootstrap interval.")
    ] = "percentile",
    draws: Annotated[int, typer.Option(min=100, help="Bootstrap draws and permutations.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")] = 0,
    ablation: Annotated[
        bool, typer.Option("--ablation", help="Again under other alphas, scales, thresholds.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result as .svg or .png.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Where the pairs of targets are put."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked and cost; ask nothing.")
    ] = False,
    budget: BudgetOption = None,
    allow_unpriced: UnpricedOption = False,
    setting: SetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Compare performance over consistency in training with that in test (the CAP paper's PCR)."""
    from coreeval.evaluation.pcr.study import PcrSettings
    from coreeval.evaluation.pcr.verdicts import PcrOptions

    _refuse_mixed(context, asking=config is not None)
    if config is None and not pairs:
        hint = "give --pairs FILE.jsonl, or a CONFIG whose targets are asked"
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
"""Options that a config has as keys of detect.pcr."""
_OF_RECORDED = ("pairs", "reference")
_OF_ASKING = ("out", "dry_run", "budget", "allow_unpriced", "setting", "trust_endpoints")


def _refuse_mixed(context: typer.Context, *, asking: bool) -> None:
    """Refuse options that would be passed over: those of recorded pairs, or those of asking."""
    flags = {param.name or "": param.opts[0] for param in context.command.params}
    sources = {name: context.get_parameter_source(name) for name in flags}
    given = [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    for name in given:
        if asking and name in _OF_RECORDED:
            hint = "give CONFIG to ask targets, or --pairs for what they said before"
            if name == "reference":
                hint = "give a target of CONFIG `role: reference`"
            raise UsageError(f"CONFIG and {flags[name]} exclude each other", where=WHERE, hint=hint)
        if asking and name in _OF_CONFIG:
            key = f"detect.pcr.{_OF_CONFIG[name]}"
            hint = f"write {key} into it, or give --set {key}=..."
            raise UsageError(f"{flags[name]} comes from the config here", where=WHERE, hint=hint)
        if not asking and name in _OF_ASKING:
            hint = "give CONFIG to ask targets"
            raise UsageError(f"{flags[name]} is for asking targets", where=WHERE, hint=hint)


def _parse_choice(text: str, option: str, known: str) -> str:
    """Return a required option; the kind of score must be stated, not guessed."""
    if not text:
        raise UsageError(f"{option} is missing", where=WHERE, hint=f"give one of {known}")
    return text
