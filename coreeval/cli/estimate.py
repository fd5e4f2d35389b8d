"""`coreeval estimate`: what a run will cost, before it is spent."""

from typing import TYPE_CHECKING, Annotated

import typer

from coreeval.cli.arguments import (
    ConfigArgument,
    FromOption,
    SetOption,
    StaleOption,
    lineage_words,
)
from coreeval.cli.output import AsJson, command, show
from coreeval.cli.trust import TrustOption, with_trusted_endpoints

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from coreeval.graph.estimate.model import CostEstimate


def estimate(
    config: ConfigArgument,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Take only the first N samples.")
    ] = None,
    preview: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Refresh the first N for real, and learn from them."),
    ] = None,
    setting: SetOption = None,
    release: FromOption = None,
    stale_after: StaleOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Say what a run will cost: calls, tokens, money, time."""
    from coreeval.cli.estimate_words import estimate_document, estimate_lines
    from coreeval.graph.estimate.run_estimate import estimate as reckon

    if preview is not None and release is not None:
        raise typer.BadParameter("--preview and --from exclude each other")
    if preview is None:
        made = with_trusted_endpoints(
            trust_endpoints,
            lambda: reckon(
                config,
                limit=limit,
                overrides=setting or (),
                parent=release,
                stale_after=stale_after,
            ),
        )
    else:
        samples = preview
        made = with_trusted_endpoints(
            trust_endpoints, lambda: _after_preview(config, samples, limit, setting or ())
        )
    settings = [word for each in setting or () for word in ("--set", each)]
    few = [] if limit is None else ["--limit", str(limit)]
    run = command("refresh", config, *few, *settings, *lineage_words(release, stale_after))
    show(estimate_document(made), as_json, lambda: "\n".join(estimate_lines(made, run)))


def _after_preview(
    config: "Path", samples: int, limit: int | None, overrides: "Sequence[str]"
) -> "CostEstimate":
    from coreeval.cli.progress import watching
    from coreeval.graph.estimate.preview import preview
    from coreeval.graph.execute import RunHooks

    with watching("preview") as watch:
        around = RunHooks(watch=watch)
        return preview(config, samples, limit=limit, overrides=overrides, around=around)
