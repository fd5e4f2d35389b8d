"""Checks the abilities of the configured models by asking them."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.config import Config, ConfigLike, PriceConfig, read_config
from coreeval.models import check as checks
from coreeval.models import close_models
from coreeval.models.capabilities import Capabilities
from coreeval.models.check import CheckResult, ModelProbe, ModelUse, group_models, sum_costs
from coreeval.tools.catalogs import Price, load_run_prices
from coreeval.tools.cutoffs import load_run_cutoffs
from coreeval.tools.endpoints import model_pairs, refuse_untrusted
from coreeval.tools.env_file import hold_env_file, read_env_file
from coreeval.tools.formatting import format_quantity
from coreeval.tools.loops import run_coroutine
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.trust import TrustRecord, retry_with_trust
from coreeval.tools.workspace import Workspace, workspace_for

_COLUMNS: Final = parse_columns(
    "model endpoint state structured seconds:number used_by:texts problem"
)


@hold_env_file()
def check_models(
    config: ConfigLike, *, overrides: Sequence[str] = (), trust_endpoints: bool = False
) -> CommandResult:
    """Send each configured model a short test question; this takes a few calls.

    Args:
        config: The path of a YAML config, or a config in memory.
        overrides: `key.path=value` settings that override the config's.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.

    Returns:
        A result whose table has a row for each model; `ok` of its document is true if every
        model can be used.

    Raises:
        ConfigError: the config cannot be read.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
    """
    loaded = read_config(config, overrides)
    read_env_file(loaded.folder, loaded.config)
    here = workspace_for(loaded.folder)
    checked = retry_with_trust(
        lambda: run_coroutine(_check_models(loaded.config, here)), lambda _: trust_endpoints
    )
    models = [*map(_model_document, checked)]
    document = {
        "config": str(config if isinstance(config, str | Path) else loaded.source),
        "ok": all(one.error is None for one in checked),
        "models": models,
        "cost": asdict(sum_costs(checked)),
    }
    rows = [
        {**row, "problem": one.error.message if one.error else ""}
        for row, one in zip(models, checked, strict=True)
    ]
    bad, number = sum(one.error is not None for one in checked), format_quantity(len(rows), "model")
    said = f"{bad} of {number} cannot be used" if bad else f"{number} can be used"
    return CommandResult(document, said, Table.from_dicts("models", _COLUMNS, rows))


async def _check_models(config: Config, workspace: Workspace) -> list[CheckResult]:
    prices, cutoffs = load_run_prices(config), load_run_cutoffs(config)
    record = TrustRecord(workspace)
    named = group_models(config.models, prices, cutoffs, config.detect.judges)
    pairs = model_pairs((one.config for one in named), os.environ)
    refuse_untrusted(pairs, record.endpoints(), record=record.path)
    store = open_calls(workspace.calls)
    try:
        return await checks.check_models(
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


def _model_document(one: CheckResult) -> dict[str, object]:
    configured = one.configured
    return {
        "model": configured.config.model,
        "endpoint": one.endpoint or configured.config.base_url or "",
        "used_by": list(configured.used_by),
        "state": one.state,
        "error": one.error.as_dict() if one.error else None,
        **_probe_document(one.probe),
        "price": _price_document(configured.price) if configured.price else None,
        **_date_documents(configured),
        "cost": asdict(one.spent),
    }


def _probe_document(probe: ModelProbe | None) -> dict[str, object]:
    if probe is None or not probe.answers:
        tried = [asdict(each) for each in probe.tried] if probe else []
        names = ("seconds", "returned", "structured", "limit", "room", "logprobs", "seed")
        return {
            "tried": tried,
            **dict.fromkeys((*names, "counts_tokens", "thinks")),
        }
    limit = "max_tokens" if probe.plain_limit else "max_completion_tokens"
    return {
        "seconds": round(probe.seconds, 3) if probe.seconds is not None else None,
        "returned": str(probe.answers[-1].response_metadata["model_name"]),
        "structured": probe.method,
        "tried": [asdict(each) for each in probe.tried],
        "limit": limit if probe.model.config.provider == "openai" else None,
        "room": probe.room,
        "logprobs": asdict(probe.logprobs) if probe.logprobs else None,
        "seed": asdict(probe.seed) if probe.seed else None,
        "counts_tokens": probe.counts_tokens,
        "thinks": probe.thinks,
    }


def _price_document(price: PriceConfig) -> dict[str, object]:
    published = isinstance(price, Price)
    known = price.model_dump(mode="json", exclude_none=True)
    return {"source": "config", "as_of": None, **known} if not published else known


def _date_documents(configured: ModelUse) -> dict[str, object]:
    """Return both dates with their sources; empty for a model that is not under test."""
    known = configured.dates
    stated = {"cutoff": known and known.cutoff, "released": known and known.released}
    return {
        **{kind: fact.date if fact else None for kind, fact in stated.items()},
        "dates": {kind: fact.model_dump(mode="json") for kind, fact in stated.items() if fact},
    }
