"""`coreeval prompts list|show|try`: what a role is told, and what a model makes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.arguments import ConfigArgument
from coreeval.cli.output import AsJson, show
from coreeval.cli.trust import TrustOption, with_trusted_endpoints
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.graph.bench.opening import Bench, Inputs
    from coreeval.schema import RoleName

FIRST_FEW = 3
"""Samples that are tried unless said otherwise."""
prompts = typer.Typer(
    name="prompts",
    help="Look at the prompts of the six roles, and try them out.",
)
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="CONFIG", help="Take task, samples, news and prompts of it."),
]
RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="RUN",
        file_okay=False,
        help="Take what the role was given in this run, on the last attempt.",
    ),
]
FolderOption = Annotated[
    str | None,
    typer.Option(
        "--prompts", metavar="DIR", help="Take the prompts of this folder; 'built-in' for none."
    ),
]


@prompts.command("list")
def list_prompts(
    config: ConfigOption = None, folder: FolderOption = None, as_json: AsJson = False
) -> None:
    """List the prompts: file, version, length, variables."""
    from coreeval.cli.prompt_words import list_document, list_lines
    from coreeval.graph.bench.opening import BUILT_IN, open_bench, prompts_in

    if config is not None and folder is None:
        bench = open_bench(config)
        document = list_document(bench.setup.prompts, [bench.setup.task])
    else:
        tasks = [open_bench(config).setup.task] if config else None
        document = list_document(prompts_in(folder or BUILT_IN), tasks)
    show(document, as_json, lambda: "\n".join(list_lines(document)))


@prompts.command("show")
def show_prompt(
    role: Annotated[str, typer.Argument(metavar="ROLE", show_default=False)],
    task: Annotated[
        str | None, typer.Option(metavar="T", help="A built-in task, on its bundled samples.")
    ] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="ID", help="A sample; else the first that comes to it.")
    ] = None,
    config: ConfigOption = None,
    run: RunOption = None,
    folder: FolderOption = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Show the JSON schema of the answer, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show exactly what a model sees: no model is asked."""
    import asyncio

    from coreeval.cli.prompt_words import show_document, show_lines
    from coreeval.graph.bench.shown import as_sent, shown_in
    from coreeval.graph.bench.situations import role_named

    known = role_named(role)
    with _bench(task, config, run, folder) as bench:
        aligned, calls = _aligned(bench, run)
        inputs = asyncio.run(_inputs(aligned, known, run, [sample] if sample else [], 1))
        one = inputs.found[0]
        shown = asyncio.run(shown_in(one, bench.setup.prompts))
        sent = as_sent(one, shown, calls) if run else None
        document = show_document(inputs, shown, bench.setup.prompts[known], sent=sent)
    show(document, as_json, lambda: "\n".join(show_lines(document, schema=schema)))


@prompts.command("try")
def try_prompt(
    config: ConfigArgument,
    role: Annotated[str, typer.Option(metavar="ROLE", show_default=False)],
    sample: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A sample; repeatable.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help=f"The first N samples; {FIRST_FEW} if absent."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="PROVIDER:NAME", help="Ask this model; repeatable, to compare."),
    ] = None,
    folder: Annotated[
        list[str] | None,
        typer.Option("--prompts", metavar="DIR", help="Prompts; repeatable, to compare."),
    ] = None,
    run: RunOption = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Put a composed text to both judges, too.")
    ] = False,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Ask a model for one role's answer on a few samples, and check it."""
    import asyncio

    from coreeval.cli.prompt_words import try_document, try_lines
    from coreeval.graph.bench.contenders import check_judges, contenders
    from coreeval.graph.bench.opening import open_bench
    from coreeval.graph.bench.situations import role_named
    from coreeval.graph.bench.trial import try_out

    if sample and limit:
        raise UsageError("--sample and --limit exclude each other")
    known, bench = role_named(role), open_bench(config)
    if judge:
        with_trusted_endpoints(trust_endpoints, lambda: check_judges(bench, known))
    asked = with_trusted_endpoints(
        trust_endpoints, lambda: contenders(bench, known, model or [], folder or [])
    )
    aligned, _ = _aligned(bench, run)
    inputs = asyncio.run(_inputs(aligned, known, run, sample or [], limit or FIRST_FEW))
    trials = asyncio.run(try_out(aligned, inputs.found, asked, judge=judge))
    document = try_document(known, inputs, asked, trials)
    show(document, as_json, lambda: "\n".join(try_lines(document)))
    if any(each["valid"] < each["samples"] for each in document["totals"]):
        raise typer.Exit(1)


@contextmanager
def _bench(
    task: str | None, config: Path | None, run: Path | None, folder: str | None
) -> Iterator["Bench"]:
    """Open what the options name: a config, a run's own, or the bundled samples of a task."""
    from coreeval.graph.bench import opening

    if task is not None and (config or run):
        raise UsageError("the config or the run names the task", hint="leave out --task")
    if config or run:
        bench = opening.open_bench(config) if config else opening.bench_of_run(run or Path())
        yield opening.with_prompts(bench, folder)
    elif task is not None:
        with opening.bundled_bench(task) as bench:
            yield opening.with_prompts(bench, folder)
    else:
        raise UsageError("which task?", hint="give --task T, --config CONFIG or --run RUN")


def _aligned(bench: "Bench", run: Path | None) -> "tuple[Bench, Path]":
    """Return the bench with a run's window, and the file of the calls of whichever it is."""
    from coreeval.graph.bench.opening import aligned

    return aligned(bench, run) if run else (bench, bench.workspace.calls)


async def _inputs(
    bench: "Bench", role: "RoleName", run: Path | None, ids: list[str], limit: int
) -> "Inputs":
    from coreeval.graph.bench.opening import inputs_from_bench, inputs_from_run

    if run:
        return await inputs_from_run(bench, role, run, ids, limit)
    return await inputs_from_bench(bench, role, ids, limit)
