"""`coreeval prompts list|show|try`: lists, renders and tries the prompts of roles."""

from pathlib import Path
from typing import Annotated

import typer

from coreeval.api.arguments import FIRST_FEW
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
from coreeval.cli.output import AsJson, Document, show

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
        help="Use the input that the role received in this run, on the sample's last attempt.",
    ),
]
FolderOption = Annotated[
    str | None,
    typer.Option(
        "--prompts",
        metavar="DIR",
        help="Use the prompts in this folder; 'built-in' uses the built-in ones.",
    ),
]


@prompts.command("list")
def list_prompts(
    config: ConfigOption = None, folder: FolderOption = None, as_json: AsJson = False
) -> None:
    """List the prompts with their files, versions, lengths and variables."""
    from coreeval.api import prompts as work
    from coreeval.cli.prompts_output import list_lines

    document = work.list_prompts(config, prompts=folder).document
    show(document, as_json, lambda: "\n".join(list_lines(document)))


@prompts.command("show")
def show_prompt(
    role: Annotated[
        str,
        typer.Argument(
            metavar="ROLE",
            help="A role, such as rewriter.",
            show_default=False,
            autocompletion=complete_roles,
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="Use a built-in task and its bundled samples.",
            autocompletion=complete_tasks,
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="A sample; by default, the first sample that reaches this role."
        ),
    ] = None,
    config: ConfigOption = None,
    run: RunOption = None,
    folder: FolderOption = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Also show the JSON schema of the answer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show exactly what a model would be sent, without calling it."""
    from coreeval.api.prompts import render_prompt
    from coreeval.cli.prompts_output import show_lines

    found = render_prompt(role, task=task, sample=sample, config=config, run=run, prompts=folder)
    show(found.document, as_json, lambda: "\n".join(show_lines(found.document, schema=schema)))


@prompts.command("try")
def try_prompt(
    config: ConfigArgument,
    role: Annotated[
        str,
        typer.Option(
            metavar="ROLE",
            help="A role, such as rewriter.",
            show_default=False,
            autocompletion=complete_roles,
        ),
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
            help="A model to test; repeatable, to compare several models.",
            autocompletion=complete_providers,
        ),
    ] = None,
    folder: Annotated[
        list[str] | None,
        typer.Option(
            "--prompts",
            metavar="DIR",
            help="A folder of prompts; repeatable, to compare several folders.",
        ),
    ] = None,
    run: RunOption = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="Also send each composed text to both judges.")
    ] = False,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Send the prompt of one role to a model for a few samples, and check the answers."""
    from coreeval.api import prompts as work
    from coreeval.cli.prompts_output import try_lines

    document: Document = with_trusted_endpoints(
        trust_endpoints,
        lambda: work.try_prompt(
            config,
            role=role,
            samples=sample or (),
            limit=limit,
            models=model or (),
            prompts=folder or (),
            run=run,
            judge=judge,
        ),
    ).document
    show(document, as_json, lambda: "\n".join(try_lines(document)))
    if any(each["valid"] < each["samples"] for each in document["totals"]):
        raise typer.Exit(1)
