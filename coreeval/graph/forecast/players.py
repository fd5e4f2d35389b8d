"""Who is asked in a run: roles, targets and judges with their models, prices and pace."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coreeval.config import ROLES, AnyConfig, Config, ModelConfig
from coreeval.graph.forecast.estimates import Line, Unpriced
from coreeval.graph.forecast.learning import Player
from coreeval.graph.forecast.reckoning import Lane, Priced
from coreeval.schema import RoleName
from coreeval.tools.catalogs import FREE, Prices, find_nearest_names, load_run_prices

RECORDED = "recorded answers cost nothing"


@dataclass(frozen=True, kw_only=True)
class Cast:
    """The models of a run and what they charge."""

    roles: dict[RoleName, ModelConfig]
    """Only roles that models play."""
    targets: tuple[ModelConfig, ...]
    """Only those that are asked; the embedded ones are not."""
    judges: tuple[ModelConfig, ...] = ()
    """Who scores what defences cost; likewise."""
    prices: Prices
    concurrency: int

    def lanes(self) -> list[Lane]:
        """Return how fast each model may be asked."""
        asked = (*self.judges, *self.roles.values(), *self.targets)
        models = {name_of(model): model for model in asked}
        return [
            Lane(
                model=name,
                in_flight=model.max_in_flight or self.concurrency,
                requests_per_minute=model.requests_per_minute,
                tokens_per_minute=model.tokens_per_minute,
            )
            for name, model in models.items()
        ]

    def priced(self, model: ModelConfig) -> Priced:
        """Return what a model charges: by the config, a file, or the table of the package."""
        if model.price is not None:
            return Priced(price=model.price, origin="the config")
        if (known := self.prices.get(model.model)) is not None:
            return Priced(price=known, origin=f"{known.source}, {known.as_of}")
        if model.provider == "replay":
            return Priced(price=FREE, origin=RECORDED)
        return Priced(price=None)

    def unpriced(self, lines: Iterable[Line]) -> tuple[Unpriced, ...]:
        """Return the models of lines without money, with names that may have been meant."""
        names = dict.fromkeys(line.model for line in lines if line.usd is None)
        return tuple(
            Unpriced(model=name, nearest=tuple(find_nearest_names(name, self.prices)))
            for name in names
        )


def cast_of(config: Config) -> Cast:
    """Return who is asked in a run of a config.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    models = config.models
    targets = models.targets if config.detect.asks_targets else ()
    roles = {
        role: models.for_role(role) for role in ROLES if not models.for_role(role).is_rule_based
    }
    return _cast(config, roles, targets, config.detect.judges if targets else ())


def cast_of_targets(config: AnyConfig, targets: Sequence[ModelConfig]) -> Cast:
    """Return who is asked where only targets are.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    return _cast(config, {}, targets)


def _cast(
    config: AnyConfig,
    roles: dict[RoleName, ModelConfig],
    targets: Sequence[ModelConfig],
    judges: Sequence[ModelConfig] = (),
) -> Cast:
    return Cast(
        roles=roles,
        targets=tuple(target for target in targets if not target.is_rule_based),
        judges=tuple(judge for judge in judges if not judge.is_rule_based),
        prices=load_run_prices(config),
        concurrency=config.run.concurrency,
    )


def name_of(model: ModelConfig) -> str:
    """Return a model's name as its calls are recorded: a file of answers without its folder."""
    return f"replay:{Path(model.name).name}" if model.provider == "replay" else model.model


def player_of(role: str, model: ModelConfig) -> Player:
    """Return a model in a role."""
    return Player(
        role=role,
        model=name_of(model),
        max_tokens=model.max_tokens,
        effort=model.reasoning_effort,
    )


def players(cast: Cast) -> Iterator[tuple[str, ModelConfig]]:
    """Yield each role and each target with its model."""
    yield from cast.roles.items()
    yield from (("target", target) for target in cast.targets)


def rules_note(config: Config) -> Sequence[str]:
    """Return a note on the roles that cost nothing."""
    ruled = config.models.rule_based_roles
    return [f"played by rules, without a call: {', '.join(ruled)}"] if ruled else []
