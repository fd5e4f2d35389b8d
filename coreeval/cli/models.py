"""`coreeval models check`: what the configured models can do, found out by asking them."""

from typing import TYPE_CHECKING

import typer

from coreeval.cli.arguments import ConfigArgument, SetOption
from coreeval.cli.output import AsJson, show

if TYPE_CHECKING:
    from coreeval.config import Config
    from coreeval.models.check import Checked
    from coreeval.tools.workspace import Workspace

models = typer.Typer(name="models", help="Find out what the configured models can do.")


@models.command("check")
def check(config: ConfigArgument, setting: SetOption = None, as_json: AsJson = False) -> None:
    """Ask each configured model a tiny question; costs a handful of calls."""
    import asyncio

    from dotenv import load_dotenv

    from coreeval.cli.model_words import check_document, check_lines
    from coreeval.config import load_config
    from coreeval.tools.workspace import workspace_for

    path = config.resolve()
    load_dotenv(path.parent / ".env")
    checked = asyncio.run(_check(load_config(path, setting or ()), workspace_for(path.parent)))
    document = check_document(config, checked)
    show(document, as_json, lambda: "\n".join(check_lines(document)))
    if not document["ok"]:
        raise typer.Exit(1)


async def _check(config: "Config", workspace: "Workspace") -> "list[Checked]":
    from coreeval.models import close_models
    from coreeval.models.abilities import Abilities
    from coreeval.models.check import check_models
    from coreeval.tools.cutoffs import cutoffs_of
    from coreeval.tools.prices import prices_of
    from coreeval.tools.stores.calls import open_calls

    prices, cutoffs = prices_of(config), cutoffs_of(config)
    store = open_calls(workspace.calls)
    try:
        return await check_models(
            config.models,
            prices,
            Abilities(store),
            cutoffs=cutoffs,
            judges=config.detect.judges,
        )
    finally:
        await close_models()
        store.close()
