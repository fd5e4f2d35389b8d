"""`coreeval models check`: what the configured models can do, found out by asking them."""

import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from coreeval.cli.options import ConfigArgument, SetOption, TrustOption, with_trusted_endpoints
from coreeval.cli.output import AsJson, Document, one_line, show
from coreeval.tools.clock import utc_now
from coreeval.tools.formatting import describe_price, format_number, format_quantity
from coreeval.tools.tables import Table, numbers, text_lines, texts

if TYPE_CHECKING:
    from coreeval.config import Config, PriceConfig
    from coreeval.models.check import CheckResult, ModelProbe, ModelUse
    from coreeval.tools.workspace import Workspace


models = typer.Typer(name="models", help="Check what the configured models can do.")


@models.command("check")
def check(
    config: ConfigArgument,
    setting: SetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Send each configured model a short test question; takes a few calls."""
    import asyncio

    from coreeval.config import load_config
    from coreeval.tools.env_file import read_env_file
    from coreeval.tools.workspace import workspace_for

    path = config.resolve()
    loaded, workspace = load_config(path, setting or ()), workspace_for(path.parent)
    read_env_file(path.parent, loaded)
    checked = with_trusted_endpoints(
        trust_endpoints, lambda: asyncio.run(_check_models(loaded, workspace))
    )
    document = check_document(config, checked)
    show(document, as_json, lambda: "\n".join(check_lines(document)))
    if not document["ok"]:
        raise typer.Exit(1)


async def _check_models(config: "Config", workspace: "Workspace") -> "list[CheckResult]":
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


WIDTH = 100
WIDEST_MODEL = 36
OUTCOMES = {
    "works": "works",
    "refused": "refused",
    "ignored": "accepted, but the answer does not match the schema",
    "truncated": "the answer was cut off",
    "refusal": "the model declined",
    "empty": "the answer was empty",
}
STATES = {
    "usable": "ok",
    "rules": "rules",
    "plugin": "plugin",
    "recorded": "recorded",
    "local": "ok",
}
UNCHECKED = {
    "rules": "played by built-in rules: nothing to check",
    "plugin": "played by a plugin, which is not run here",
    "local": "weights on this machine: complete, and they fit into memory; not loaded",
    "recorded": "recorded answers: the file is readable; no calls made",
}


# -- the document ---------------------------------------------------------------------------------


def check_document(config: Path, checked: "Sequence[CheckResult]") -> Document:
    """Return the findings for each model and the cost of the check."""
    from coreeval.models.check import sum_costs

    return {
        "config": str(config),
        "ok": all(one.error is None for one in checked),
        "models": [_model_document(one) for one in checked],
        "cost": asdict(sum_costs(checked)),
    }


def _model_document(one: "CheckResult") -> Document:
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


def _probe_document(probe: "ModelProbe | None") -> Document:
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


def _describe_age(day: str) -> str:
    """Return a day with its age."""
    age = (utc_now().date() - date.fromisoformat(day)).days
    return f"{day}, {format_quantity(age, 'day')} ago" if age >= 0 else day


def _price_document(price: "PriceConfig") -> Document:
    from coreeval.tools.catalogs import Price

    published = isinstance(price, Price)
    known = price.model_dump(mode="json", exclude_none=True)
    return {"source": "config", "as_of": None, **known} if not published else known


def _date_documents(configured: "ModelUse") -> Document:
    """Return both dates with their sources; none for a model that is not under test."""
    known = configured.dates
    stated = {"cutoff": known and known.cutoff, "released": known and known.released}
    return {
        **{kind: fact.date if fact else None for kind, fact in stated.items()},
        "dates": {kind: fact.model_dump(mode="json") for kind, fact in stated.items() if fact},
    }


# -- words ----------------------------------------------------------------------------------------


def check_lines(document: Document) -> Iterator[str]:
    """Yield a table with a line for each model, then remarks on each."""
    found = document["models"]
    yield from _table_lines(found)
    for one in found:
        yield from _model_lines(one)
    yield _cost_line(document["cost"])
    bad = sum(one["error"] is not None for one in found)
    yield (
        f"{bad} of {format_quantity(len(found), 'model')} cannot be used"
        if bad
        else "every model can be used"
    )


def _table_lines(found: Sequence[Document]) -> Iterator[str]:
    columns = (texts("model", most=WIDEST_MODEL), texts("state", 10, gap=2),
               texts("structure", 16, gap=2), numbers("seconds", 7, gap=2),
               texts("used by", gap=2))  # fmt: skip
    rows = [
        (one["model"], _format_state(one), one["structured"] or "",
         format_number(one["seconds"], ".2f", ""), _format_users(one["used_by"]))
        for one in found
    ]  # fmt: skip
    yield from text_lines(Table(columns, rows))


def _format_state(one: Document) -> str:
    return "NOT usable" if one["error"] else STATES[one["state"]]


def _format_users(used_by: Sequence[str]) -> str:
    from coreeval.config import ROLES

    if set(ROLES) <= set(used_by):
        return ", ".join(["every role", *(["target"] if "target" in used_by else [])])
    return ", ".join(used_by)


def _model_lines(one: Document) -> Iterator[str]:
    at = f" at {one['endpoint']}" if one["endpoint"] else ""
    yield f"-- {one_line(one['model'])}{at} ".ljust(WIDTH - 27, "-")
    if one["state"] in UNCHECKED:
        yield from _wrap_line(UNCHECKED[one["state"]])
        return
    yield from _error_lines(one["error"])
    for tried in one["tried"]:
        why = f": {tried['why']}" if tried["why"] else ""
        yield from _wrap_line(f"{tried['method']}: {OUTCOMES[tried['outcome']]}{why}")
    if one["structured"]:
        yield from _ability_lines(one)
    yield from _wrap_line(_known_facts(one))


def _error_lines(error: Document | None) -> Iterator[str]:
    if error:
        yield from _wrap_line(f"NOT usable: {error['message']}")
        for name, key in (("where", "where"), ("to do", "hint")):
            if error[key]:
                yield from _wrap_line(f"{name}: {error[key]}", "      ")


def _ability_lines(one: Document) -> Iterator[str]:
    from coreeval.models.check import SHORT

    yield from _wrap_line(f"answers in {one['seconds']:.2f} s as {one['returned'] or '(no name)'}")
    if one["limit"]:
        yield from _wrap_line(f"answer length limit: sent as {one['limit']}")
    if one["room"] > SHORT:
        yield from _wrap_line(
            f"a one-word answer took more than {SHORT} tokens: do not set max_tokens low"
        )
    for name, key in (("log-probabilities", "logprobs"), ("seed", "seed")):
        if one[key]:
            why = f": {one[key]['why']}" if one[key]["why"] else ""
            yield from _wrap_line(f"{name}: {one[key]['verdict']}{why}")
    yield from _wrap_line(f"tokens: {'counted' if one['counts_tokens'] else 'not counted'}")
    if one["thinks"]:
        yield from _wrap_line("the answer includes reasoning, which is ignored")


def _known_facts(one: Document) -> str:
    """Return the facts known about a model without asking it."""
    price = one["price"]
    said = "price: unknown"
    if price:
        day = f", {_describe_age(price['as_of'])}" if price["as_of"] else ""
        said = f"price: {price['input']:g} in, {price['output']:g} out, USD per million tokens"
        said = f"{said} ({price['source']}{day})"
    if "target" in one["used_by"]:
        said = f"{said}; cutoff: {_date(one, 'cutoff')}; released: {_date(one, 'released')}"
    return said


def _date(one: Document, kind: str) -> str:
    from coreeval.tools.cutoffs import DateClaim
    from coreeval.tools.window_lines import format_date

    fact = one["dates"].get(kind)
    return format_date(DateClaim.model_validate(fact)) if fact else "unknown"


def _cost_line(cost: Document) -> str:
    usd = describe_price(cost["usd"])
    tokens = f"{cost['prompt_tokens']} tokens in, {cost['completion_tokens']} out"
    return f"the check: {format_quantity(cost['calls'], 'answer')} {usd}, {tokens}"


def _wrap_line(text: str, indent: str = "    ") -> list[str]:
    return textwrap.wrap(
        one_line(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
