"""`coreeval models check`: what the configured models can do, found out by asking them."""

import os
from typing import TYPE_CHECKING

import typer

from coreeval.cli.arguments import ConfigArgument, SetOption
from coreeval.cli.output import AsJson, show
from coreeval.cli.trust import TrustOption, with_trusted_endpoints

if TYPE_CHECKING:
    from coreeval.config import Config
    from coreeval.models.check import CheckResult
    from coreeval.tools.workspace import Workspace

models = typer.Typer(name="models", help="Find out what the configured models can do.")


@models.command("check")
def check(
    config: ConfigArgument,
    setting: SetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Ask each configured model a tiny question; costs a handful of calls."""
    import asyncio

    from coreeval.cli.model_words import check_document, check_lines
    from coreeval.config import load_config
    from coreeval.tools.env_file import read_env_file
    from coreeval.tools.workspace import workspace_for

    path = config.resolve()
    loaded, workspace = load_config(path, setting or ()), workspace_for(path.parent)
    read_env_file(path.parent, loaded)
    checked = with_trusted_endpoints(
        trust_endpoints, lambda: asyncio.run(_check(loaded, workspace))
    )
    document = check_document(config, checked)
    show(document, as_json, lambda: "\n".join(check_lines(document)))
    if not document["ok"]:
        raise typer.Exit(1)


async def _check(config: "Config", workspace: "Workspace") -> "list[CheckResult]":
    from coreeval.models import close_models
    from coreeval.models.capabilities import Capabilities
    from coreeval.models.check import check_models, group_models
    from coreeval.tools.catalogs import load_run_prices
    from coreeval.tools.cutoffs import load_run_cutoffs
    from coreeval.tools.endpoints import model_pairs, refuse_untrusted
    from coreeval.tools.stores.call_store import open_calls
    from coreeval.tools.trust import TrustRecord

    prices, cutoffs, record = (
        load_run_prices(config),
        load_run_cutoffs(config),
        TrustRecord(workspace),
    )
    named = group_models(config.models, prices, cutoffs, config.detect.judges)
    pairs = model_pairs((one.config for one in named), os.environ)
    refuse_untrusted(pairs, record.endpoints(), record=record.path)
    store = open_calls(workspace.calls)
    try:
        return await check_models(
            config.models,
            prices,
            Capabilities(store),
            cutoffs=cutoffs,
            judges=config.detect.judges,
            trusted=record.endpoints(),
        )
    finally:
        await close_models()
        store.close()
