"""`coreeval prompts list|show|try`: what a role is told, and what a model makes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.completion import (
    complete_providers,
    complete_roles,
    complete_runs,
    complete_tasks,
    unless_completing,
)
from coreeval.cli.options import (
    LARGEST_COUNT,
    ConfigArgument,
    TrustOption,
    find_optional_run,
    with_trusted_endpoints,
)
from coreeval.cli.output import AsJson, show
from coreeval.errors import UsageError

if TYPE_CHECKING:
    from coreeval.graph.prompt_lab.lab import PromptLab, RoleInputs
    from coreeval.schema import RoleName


FIRST_FEW = 3
"""Default number of samples that are tried."""
prompts = typer.Typer(
    name="prompts",
    help="Inspect and test the prompts of the six roles.",
)
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="CONFIG", help="Use this config's task, samples, news and prompts."
    ),
]
RunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="RUN",
        file_okay=False,
        callback=unless_completing(find_optional_run),
        autocompletion=complete_runs,
        help="Use the role's input from this run's last attempt.",
    ),
]
FolderOption = Annotated[
    str | None,
    typer.Option("--prompts", metavar="DIR", help="Use the prompts in this folder, or 'built-in'."),
]


@prompts.command("list")
def list_prompts(
    config: ConfigOption = None, folder: FolderOption = None, as_json: AsJson = False
) -> None:
    """List the prompts: file, version, length, variables."""
    from coreeval.cli.prompts_output import list_document, list_lines
    from coreeval.graph.prompt_lab.lab import BUILT_IN, load_prompt_folder, open_lab

    if config is not None and folder is None:
        bench = open_lab(config)
        document = list_document(bench.setup.prompts, [bench.setup.task])
    else:
        tasks = [open_lab(config).setup.task] if config else None
        document = list_document(load_prompt_folder(folder or BUILT_IN), tasks)
    show(document, as_json, lambda: "\n".join(list_lines(document)))


@prompts.command("show")
def show_prompt(
    role: Annotated[
        str, typer.Argument(metavar="ROLE", show_default=False, autocompletion=complete_roles)
    ],
    task: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="A built-in task, with its bundled samples.",
            autocompletion=complete_tasks,
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A sample; by default the first that reaches this role."),
    ] = None,
    config: ConfigOption = None,
    run: RunOption = None,
    folder: FolderOption = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Also show the JSON schema of the answer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show exactly what a model sees, without calling one."""
    import asyncio

    from coreeval.cli.prompts_output import show_document, show_lines
    from coreeval.graph.prompt_lab.role_inputs import is_as_sent, parse_role, render_request

    known = parse_role(role)
    with _open_lab(task, config, run, folder) as bench:
        aligned, calls = _apply_run(bench, run)
        inputs = asyncio.run(_inputs(aligned, known, run, [sample] if sample else [], 1))
        one = inputs.found[0]
        shown = asyncio.run(render_request(one, bench.setup.prompts))
        sent = is_as_sent(one, shown, calls) if run else None
        document = show_document(inputs, shown, bench.setup.prompts[one.prompt_name], sent=sent)
    show(document, as_json, lambda: "\n".join(show_lines(document, schema=schema)))


@prompts.command("try")
def try_prompt(
    config: ConfigArgument,
    role: Annotated[
        str, typer.Option(metavar="ROLE", show_default=False, autocompletion=complete_roles)
    ],
    sample: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A sample; repeatable.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=LARGEST_COUNT,
            help=f"Use the first N samples; {FIRST_FEW} by default.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="A model to ask; repeatable, to compare.",
            autocompletion=complete_providers,
        ),
    ] = None,
    folder: Annotated[
        list[str] | None,
        typer.Option(
            "--prompts", metavar="DIR", help="A folder of prompts; repeatable, to compare."
        ),
    ] = None,
    run: RunOption = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Also send a composed text to both judges.")
    ] = False,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Ask a model for one role's answer on a few samples, and check it."""
    import asyncio

    from coreeval.cli.prompts_output import try_document, try_lines
    from coreeval.graph.prompt_lab.lab import open_lab
    from coreeval.graph.prompt_lab.role_inputs import parse_role
    from coreeval.graph.prompt_lab.trial import check_judges, list_variants, run_trials

    if sample and limit:
        raise UsageError("--sample and --limit exclude each other")
    known, bench = parse_role(role), open_lab(config)
    if judge:
        with_trusted_endpoints(trust_endpoints, lambda: check_judges(bench, known))
    asked = with_trusted_endpoints(
        trust_endpoints, lambda: list_variants(bench, known, model or [], folder or [])
    )
    aligned, _ = _apply_run(bench, run)
    inputs = asyncio.run(_inputs(aligned, known, run, sample or [], limit or FIRST_FEW))
    trials = asyncio.run(run_trials(aligned, inputs.found, asked, judge=judge))
    document = try_document(known, inputs, asked, trials)
    show(document, as_json, lambda: "\n".join(try_lines(document)))
    if any(each["valid"] < each["samples"] for each in document["totals"]):
        raise typer.Exit(1)


@contextmanager
def _open_lab(
    task: str | None, config: Path | None, run: Path | None, folder: str | None
) -> Iterator["PromptLab"]:
    """Open what the options name: a config, a run's lab, or the bundled samples of a task."""
    from coreeval.graph.prompt_lab import lab

    if task is not None and (config or run):
        raise UsageError("the config or the run names the task", hint="leave out --task")
    if config or run:
        bench = lab.open_lab(config) if config else lab.open_run_lab(run or Path())
        yield lab.use_prompts(bench, folder)
    elif task is not None:
        with lab.open_bundled_lab(task) as bench:
            yield lab.use_prompts(bench, folder)
    else:
        raise UsageError("which task?", hint="give --task T, --config CONFIG or --run RUN")


def _apply_run(bench: "PromptLab", run: Path | None) -> "tuple[PromptLab, Path]":
    """Return the lab with a run's window, and the call file of that run or of the lab."""
    from coreeval.graph.prompt_lab.lab import align_with_run

    return align_with_run(bench, run) if run else (bench, bench.workspace.calls)


async def _inputs(
    bench: "PromptLab", role: "RoleName", run: Path | None, ids: list[str], limit: int
) -> "RoleInputs":
    from coreeval.graph.prompt_lab.lab import collect_dry_inputs, collect_run_inputs

    if run:
        return await collect_run_inputs(bench, role, run, ids, limit)
    return await collect_dry_inputs(bench, role, ids, limit)
