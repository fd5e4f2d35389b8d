"""`coreeval detect numleak`: does a model remember a dated series? From asking or answers."""

from pathlib import Path
from typing import Annotated

import typer

from coreeval.cli.completion import complete_providers
from coreeval.cli.options import (
    LARGEST_COUNT,
    LARGEST_SEED,
    MOST_DRAWS,
    BudgetOption,
    SetOption,
    TrustOption,
    UnpricedOption,
)
from coreeval.cli.output import AsJson
from coreeval.errors import UsageError

WHERE = "coreeval detect numleak"
_ASKING = ("CONFIG", "--backtest")
_ONLY_WITH = {
    "series": ("--responses", "--backtest"),
    "cutoff": ("--responses", "--backtest"),
    "model": ("--backtest",),
    "utility": ("--responses",),
    "dates": ("--backtest",),
    "page": ("CONFIG", "--responses", "--backtest"),
    "setting": ("CONFIG",),
    "dry_run": _ASKING,
    "budget": _ASKING,
    "allow_unpriced": _ASKING,
    "trust_endpoints": _ASKING,
}
"""Options that apply to only some of the command's four modes, with those modes."""


def numleak(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="[CONFIG]",
            help="Test the targets of this YAML config; alternatively, use --responses or "
            "--backtest.",
            show_default=False,
        ),
    ] = None,
    responses: Annotated[
        list[Path] | None,
        typer.Option(
            "--responses",
            metavar="FILE",
            help="A file of recorded answers, as JSON Lines, plain or .gz; repeatable.",
        ),
    ] = None,
    rankings: Annotated[
        list[Path] | None,
        typer.Option(
            "--rankings",
            metavar="FILE",
            help="A file of candidate values and their log-probabilities, as JSON Lines, plain "
            "or .gz; repeatable.",
        ),
    ] = None,
    utility: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file of judged answers to ordinary questions under defences, as JSON Lines.",
        ),
    ] = None,
    backtest: Annotated[
        str,
        typer.Option(
            "--backtest",
            metavar="START:END",
            help="Audit a back-test over this period, such as 2015-01:2020-12; no config is "
            "needed.",
        ),
    ] = "",
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="PROVIDER:NAME",
            autocompletion=complete_providers,
            help="A model that the back-test uses; repeatable.",
        ),
    ] = None,
    series: Annotated[
        list[str] | None,
        typer.Option(
            "--series",
            metavar="NAME[=FILE]",
            help="A built-in series, a family or a YAML file; append =FILE to supply its values; "
            "repeatable.",
        ),
    ] = None,
    cutoff: Annotated[
        list[str] | None,
        typer.Option(
            "--cutoff",
            metavar="[MODEL=]DATE",
            help="The end of a model's training data, if CoreEval does not know it; repeatable.",
        ),
    ] = None,
    dates: Annotated[
        int | None,
        typer.Option(
            min=1, max=LARGEST_COUNT, help="Maximum number of dates per series for a back-test."
        ),
    ] = None,
    signal: Annotated[
        list[str] | None,
        typer.Option(
            "--signal",
            metavar="[NAME=]FILE",
            help="A CSV file of a signal, with the columns `date` and `value`, to test whether "
            "the signal derives from the model's recall; repeatable.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", file_okay=False, help="Write the figures (.svg) to this folder."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write all results to one HTML page."),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(min=100, max=MOST_DRAWS, help="Number of bootstrap draws and permutations."),
    ] = 2_000,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Random seed.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the calls and their cost; send nothing.")
    ] = False,
    budget: BudgetOption = None,
    allow_unpriced: UnpricedOption = False,
    setting: SetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Find out whether a model remembers the values of a dated series (the NumLeak paper's audit).

    Each pair of model and series gets a verdict: memorized, partly_memorized, fluent, fabricating,
    refusing, no_recall or inconclusive.
    """
    ways = {
        "CONFIG": config,
        "--responses": responses,
        "--rankings": rankings,
        "--backtest": backtest,
    }
    way = _one_of([name for name, given in ways.items() if given])
    _refuse_mixed(context, way)
    from coreeval.cli.numleak_output import AuditDisplay

    shown = AuditDisplay(plot=plot, page=page, draws=draws, seed=seed, as_json=as_json)
    if responses:
        from coreeval.cli.numleak_recorded import audit_files

        audit_files(responses, series or [], cutoff or [], shown, signal or [], utility=utility)
        return
    if rankings:
        from coreeval.cli.numleak_recorded import rank_files

        rank_files(rankings, shown)
        return
    from coreeval.cli.numleak_asking import AuditRequest, Preset, ask_and_audit

    asking = AuditRequest(
        config=config,
        preset=Preset(
            period=backtest,
            models=tuple(model or ()),
            series=tuple(series or ()),
            cutoffs=tuple(cutoff or ()),
            dates=dates,
        ),
        overrides=tuple(setting or ()),
        budget=budget,
        allow_unpriced=allow_unpriced,
        dry_run=dry_run,
        trust_endpoints=trust_endpoints,
        shown=shown,
        signals=tuple(signal or ()),
    )
    ask_and_audit(asking)


def _one_of(given: list[str]) -> str:
    """Return the calling mode that was chosen."""
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} cannot be used together",
            where=WHERE,
            hint="CONFIG and --backtest (which needs no config) send questions to models; "
            "--responses and "
            "--rankings read recorded files",
        )
    if not given:
        raise UsageError(
            "there is nothing to audit",
            where=WHERE,
            hint="pass a CONFIG, --responses FILE, --rankings FILE, or --backtest START:END "
            "--series A --model B",
        )
    return given[0]


def _refuse_mixed(context: typer.Context, way: str) -> None:
    """Refuse options that would be ignored."""
    flags = {param.name or "": param.opts[0] for param in context.command.params}
    for name, ways in _ONLY_WITH.items():
        source = context.get_parameter_source(name)
        if source and source.name == "COMMANDLINE" and way not in ways:
            raise UsageError(
                f"{flags[name]} can be used with {' or '.join(ways)}, not with {way}",
                where=WHERE,
                hint=_hint(name, way),
            )


def _hint(name: str, way: str) -> str:
    """Return a hint for an option that does not belong to this calling mode."""
    if way == "CONFIG":
        keys = {"series": "detect.numleak.series", "dates": "detect.numleak.dates"}
        key = keys.get(name, "models.targets")
        return f"set {key} in the config" + (f", or use --set {key}=..." if name in keys else "")
    return "omit this option"
