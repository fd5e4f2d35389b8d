"""`coreeval models check`: tests the abilities of the configured models."""

import textwrap
from collections.abc import Iterator, Sequence
from datetime import date

import typer

from coreeval.cli.options import ConfigArgument, SetOption, TrustOption, with_trusted_endpoints
from coreeval.cli.output import AsJson, Document, one_line, show
from coreeval.tools.clock import utc_now
from coreeval.tools.formatting import describe_price, format_number, format_quantity
from coreeval.tools.tables import Table, numbers, text_lines, texts

models = typer.Typer(name="models", help="Check what the configured models can do.")


@models.command("check")
def check(
    config: ConfigArgument,
    setting: SetOption = None,
    trust_endpoints: TrustOption = False,
    as_json: AsJson = False,
) -> None:
    """Send each configured model a short test question; this makes a few calls."""
    from coreeval.api.model_checks import check_models

    document: Document = with_trusted_endpoints(
        trust_endpoints, lambda: check_models(config, overrides=setting or ()).document
    )
    show(document, as_json, lambda: "\n".join(check_lines(document)))
    if not document["ok"]:
        raise typer.Exit(1)


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
    "plugin": "played by a plugin, which this check does not run",
    "local": "weights on this machine: they are complete and fit into memory; they were not loaded",
    "recorded": "recorded answers: the file is readable; no calls were made",
}


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

    yield from _wrap_line(
        f"answered in {one['seconds']:.2f} s under the name {one['returned'] or '(no name)'}"
    )
    if one["limit"]:
        yield from _wrap_line(f"answer length limit: sent as {one['limit']}")
    if one["room"] > SHORT:
        yield from _wrap_line(
            f"a one-word answer took more than {SHORT} tokens: do not set a low max_tokens"
        )
    for name, key in (("log-probabilities", "logprobs"), ("seed", "seed")):
        if one[key]:
            why = f": {one[key]['why']}" if one[key]["why"] else ""
            yield from _wrap_line(f"{name}: {one[key]['verdict']}{why}")
    yield from _wrap_line(f"token counts: {'reported' if one['counts_tokens'] else 'not reported'}")
    if one["thinks"]:
        yield from _wrap_line("the answer includes reasoning, which is ignored")


def _describe_age(day: str) -> str:
    """Return a date with its age."""
    age = (utc_now().date() - date.fromisoformat(day)).days
    return f"{day}, {format_quantity(age, 'day')} ago" if age >= 0 else day


def _known_facts(one: Document) -> str:
    """Return the known facts about a model, without asking it."""
    price = one["price"]
    said = "price: unknown"
    if price:
        day = f", {_describe_age(price['as_of'])}" if price["as_of"] else ""
        said = f"price in USD per million tokens: {price['input']:g} in, {price['output']:g} out"
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
