"""Checks cost limits and the prices that they use before a run begins."""

from collections.abc import Sequence
from datetime import date

from coreeval.config import ROLES, AnyConfig, Config, ModelConfig
from coreeval.errors import ConfigError
from coreeval.models.sample_cost import KEY as SAMPLE_LIMIT_KEY
from coreeval.tools.catalogs import (
    Prices,
    describe_old_prices,
    find_nearest_names,
    find_price,
    load_run_prices,
    worst_case_cost,
)


def list_asked_models(config: Config) -> list[ModelConfig]:
    """Return the models of a run: of roles, targets and judges."""
    models = config.models
    asked = (*(models.for_role(role) for role in ROLES), *models.targets, *config.detect.judges)
    return [model for model in asked if model.is_asked]


def list_price_remarks(config: Config, today: date) -> list[str]:
    """Return a remark on each price of a run that was looked up long ago.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    return describe_old_prices(config, list_asked_models(config), load_run_prices(config), today)


def _find_sample_limit(config: AnyConfig) -> float | None:
    return config.run.max_usd_per_sample if isinstance(config, Config) else None


def describe_sample_limit(config: Config) -> list[str]:
    """Return remarks on the limit per sample if a single answer of a role may cost more.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    limit = config.run.max_usd_per_sample
    if limit is None:
        return []
    prices, dear = load_run_prices(config), dict[str, tuple[float, list[str]]]()
    for role in ROLES:
        model = config.models.for_role(role)
        price = find_price(model, prices) if model.is_asked else None
        most = worst_case_cost(price, prompt_bytes=0, max_tokens=model.max_tokens) if price else 0.0
        if most > limit:
            dear.setdefault(model.model, (most, []))[1].append(role)
    return [
        f"{SAMPLE_LIMIT_KEY}: one answer of {model} ({', '.join(roles)}) may cost {most:.4f} USD, "
        f"which is more than {limit:.4f} USD, so a sample may fail: raise the limit, or lower "
        "max_tokens"
        for model, (most, roles) in dear.items()
    ]


def check_money(
    config: AnyConfig, models: Sequence[ModelConfig], prices: Prices | None = None
) -> None:
    """Check that limits can be enforced: every model has a price, and a budget covers one call.

    Raises:
        ConfigError: they cannot.
    """
    budget, per_sample = config.run.budget_usd, _find_sample_limit(config)
    if budget is None and per_sample is None:
        return
    key, what = "run.budget_usd", "budget"
    if budget is None:
        key, what = SAMPLE_LIMIT_KEY, "limit of a sample"
    if prices is None:
        prices = load_run_prices(config)
    for model in models:
        price = find_price(model, prices)
        if price is None and not config.run.allow_unpriced:
            raise ConfigError(
                f"the {what} cannot be enforced: the price of {model.model} is unknown",
                where=key,
                hint=f"{_suggest_prices(model.model, prices)}set its price in the config (price: "
                "{input: …, output: …}, USD per million tokens) or in run.prices; or set "
                "run.allow_unpriced: true (--allow-unpriced, if the command has it), which ignores "
                "its cost; or set no budget",
            )
        longest = (
            worst_case_cost(price, prompt_bytes=0, max_tokens=model.max_tokens) if price else 0.0
        )
        if budget is not None and longest > budget:
            raise ConfigError(
                f"the budget of {budget:.4f} USD does not cover one call of {model.model}, which "
                f"may cost {longest:.4f} USD for its answer alone",
                where="run.budget_usd",
                hint="raise the budget, or lower the model's max_tokens",
            )


def _suggest_prices(name: str, prices: Prices) -> str:
    near = find_nearest_names(name, prices)
    return f"models with a known price: {', '.join(near)}; " if near else ""
