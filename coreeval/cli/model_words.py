"""What `coreeval models check` prints: as a document, and in words."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from coreeval.cli.date_words import date_words
from coreeval.cli.output import Document, one_line
from coreeval.config import ROLES, PriceConfig
from coreeval.models.check import CheckResult, ModelUse, sum_costs
from coreeval.models.probe import SHORT, ModelProbe
from coreeval.tools.catalogs import Price
from coreeval.tools.cutoffs import DateClaim

WIDTH = 100
WIDEST_MODEL = 36
OUTCOMES = {
    "works": "works",
    "refused": "refused",
    "ignored": "taken, and the answer is not of the shape",
    "truncated": "the answer was cut off",
    "refusal": "the model declined",
    "empty": "the answer was empty",
}
STATES = {
    "usable": "ok",
    "rules": "rules",
    "recorded": "recorded",
}
ALONE = {
    "rules": "played by rules of our own: there is nothing to ask",
    "recorded": "recorded answers: the file can be read, and nothing is asked",
}


# -- the document ---------------------------------------------------------------------------------


def check_document(config: Path, checked: Sequence[CheckResult]) -> Document:
    """Return what was found of each model, and what it cost."""
    return {
        "config": str(config),
        "ok": all(one.error is None for one in checked),
        "models": [_model(one) for one in checked],
        "cost": asdict(sum_costs(checked)),
    }


def _model(one: CheckResult) -> Document:
    configured = one.configured
    return {
        "model": configured.config.model,
        "endpoint": one.endpoint or configured.config.base_url or "",
        "used_by": list(configured.used_by),
        "state": one.state,
        "error": one.error.as_dict() if one.error else None,
        **_found(one.probe),
        "price": _price(configured.price) if configured.price else None,
        **_dates(configured),
        "cost": asdict(one.spent),
    }


def _found(probe: ModelProbe | None) -> Document:
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


def _price(price: PriceConfig) -> Document:
    published = isinstance(price, Price)
    known = price.model_dump(mode="json", exclude_none=True)
    return {"source": "config", "as_of": None, **known} if not published else known


def _dates(configured: ModelUse) -> Document:
    """Return both dates, each with its source; none for a model that is not under test."""
    known = configured.dates
    stated = {"cutoff": known and known.cutoff, "released": known and known.released}
    return {
        **{kind: fact.date if fact else None for kind, fact in stated.items()},
        "dates": {kind: fact.model_dump(mode="json") for kind, fact in stated.items() if fact},
    }


# -- words ----------------------------------------------------------------------------------------


def check_lines(document: Document) -> Iterator[str]:
    """Yield a table with a line for each model, then what there is to say of each."""
    found = document["models"]
    yield from _table(found)
    for one in found:
        yield from _model_lines(one)
    yield _cost_line(document["cost"])
    bad = sum(one["error"] is not None for one in found)
    yield f"{bad} of {len(found)} models cannot be used" if bad else "every model can be used"


def _table(found: Sequence[Document]) -> Iterator[str]:
    wide = min(WIDEST_MODEL, max(len(one["model"]) for one in found))
    yield f"{'model':<{wide}}  {'state':<10}  {'structure':<16}  {'seconds':>7}  used by"
    for one in found:
        name = one_line(one["model"])
        name = name if len(name) <= wide else f"{name[: wide - 1]}…"
        seconds = "" if one["seconds"] is None else f"{one['seconds']:.2f}"
        line = f"{name:<{wide}}  {_state(one):<10}  {one['structured'] or '':<16}  {seconds:>7}"
        yield f"{line}  {_users(one['used_by'])}"


def _state(one: Document) -> str:
    return "NOT usable" if one["error"] else STATES[one["state"]]


def _users(used_by: Sequence[str]) -> str:
    if set(ROLES) <= set(used_by):
        return ", ".join(["every role", *(["target"] if "target" in used_by else [])])
    return ", ".join(used_by)


def _model_lines(one: Document) -> Iterator[str]:
    at = f" at {one['endpoint']}" if one["endpoint"] else ""
    yield f"-- {one_line(one['model'])}{at} ".ljust(WIDTH - 27, "-")
    if one["state"] in ALONE:
        yield from _wrapped(ALONE[one["state"]])
        return
    yield from _error_lines(one["error"])
    for tried in one["tried"]:
        why = f": {tried['why']}" if tried["why"] else ""
        yield from _wrapped(f"{tried['method']}: {OUTCOMES[tried['outcome']]}{why}")
    if one["structured"]:
        yield from _ability_lines(one)
    yield from _wrapped(_known(one))


def _error_lines(error: Document | None) -> Iterator[str]:
    if error:
        yield from _wrapped(f"NOT usable: {error['message']}")
        for name, key in (("where", "where"), ("to do", "hint")):
            if error[key]:
                yield from _wrapped(f"{name}: {error[key]}", "      ")


def _ability_lines(one: Document) -> Iterator[str]:
    yield from _wrapped(f"answers in {one['seconds']:.2f} s as {one['returned'] or '(no name)'}")
    if one["limit"]:
        yield from _wrapped(f"longest answer: sent as {one['limit']}")
    if one["room"] > SHORT:
        yield from _wrapped(f"a word took more than {SHORT} tokens: do not make max_tokens small")
    for name, key in (("log-probabilities", "logprobs"), ("seed", "seed")):
        if one[key]:
            why = f": {one[key]['why']}" if one[key]["why"] else ""
            yield from _wrapped(f"{name}: {one[key]['verdict']}{why}")
    yield from _wrapped(f"tokens: {'counted' if one['counts_tokens'] else 'not counted'}")
    if one["thinks"]:
        yield from _wrapped("thoughts come with the answer; they are passed over")


def _known(one: Document) -> str:
    """Say what is known of a model without asking it."""
    price = one["price"]
    said = "price: unknown"
    if price:
        day = f", {price['as_of']}" if price["as_of"] else ""
        said = f"price: {price['input']:g} in, {price['output']:g} out, USD for a million tokens"
        said = f"{said} ({price['source']}{day})"
    if "target" in one["used_by"]:
        said = f"{said}; cutoff: {_date(one, 'cutoff')}; released: {_date(one, 'released')}"
    return said


def _date(one: Document, kind: str) -> str:
    fact = one["dates"].get(kind)
    return date_words(DateClaim.model_validate(fact)) if fact else "unknown"


def _cost_line(cost: Document) -> str:
    usd = "of unknown price" if cost["usd"] is None else f"for {cost['usd']:.6f} USD"
    tokens = f"{cost['prompt_tokens']} tokens in, {cost['completion_tokens']} out"
    return f"the check: {cost['calls']} answers {usd}, {tokens}"


def _wrapped(text: str, indent: str = "    ") -> list[str]:
    return textwrap.wrap(
        one_line(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
