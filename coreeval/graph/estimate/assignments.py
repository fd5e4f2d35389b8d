"""The models that a run asks (roles, targets, judges), with their prices and throughput."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coreeval.config import ROLES, AnyConfig, Config, ModelConfig, PriceConfig
from coreeval.config.models import hide_folder
from coreeval.graph.estimate.model import EstimateLine, UnpricedModel
from coreeval.schema import RoleName
from coreeval.tools.catalogs import FREE, Prices, find_nearest_names, load_run_prices


@dataclass(frozen=True, kw_only=True)
class ModelPrice:
    """A model's price, if it is known, and its source."""

    price: PriceConfig | None
    origin: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelThroughput:
    """The rate limits of one model."""

    model: str
    in_flight: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


RECORDED_NOTE = "recorded answers cost nothing"
LOCAL_NOTE = "weights on this machine cost nothing"


@dataclass(frozen=True, kw_only=True)
class RoleAssignments:
    """The models of a run and their prices."""

    roles: dict[RoleName, ModelConfig]
    """Roles played by models."""
    targets: tuple[ModelConfig, ...]
    """Targets to ask, without embedded ones."""
    judges: tuple[ModelConfig, ...] = ()
    """Models that judge the cost of defences, without embedded ones."""
    prices: Prices
    concurrency: int

    def list_throughputs(self) -> list[ModelThroughput]:
        """Return the throughput limits of each model."""
        asked = (*self.judges, *self.roles.values(), *self.targets)
        models = {find_recorded_name(model): model for model in asked}
        return [
            ModelThroughput(
                model=name,
                in_flight=model.max_in_flight or self.concurrency,
                requests_per_minute=model.requests_per_minute,
                tokens_per_minute=model.tokens_per_minute,
            )
            for name, model in models.items()
        ]

    def find_price(self, model: ModelConfig) -> ModelPrice:
        """Return a model's price from the config, from a file, or from the package's table."""
        if model.price is not None:
            return ModelPrice(price=model.price, origin="the config")
        if (known := self.prices.get(model.model)) is not None:
            return ModelPrice(price=known, origin=f"{known.source}, {known.as_of}")
        if model.is_on_this_machine:
            origin = RECORDED_NOTE if model.provider == "replay" else LOCAL_NOTE
            return ModelPrice(price=FREE, origin=origin)
        return ModelPrice(price=None)

    def list_unpriced(self, lines: Iterable[EstimateLine]) -> tuple[UnpricedModel, ...]:
        """Return the models of lines without a cost, with suggestions for the intended names."""
        names = dict.fromkeys(line.model for line in lines if line.usd is None)
        return tuple(
            UnpricedModel(model=name, nearest=tuple(find_nearest_names(name, self.prices)))
            for name in names
        )


def assign_roles(config: Config) -> RoleAssignments:
    """Return the models that a run of a config asks.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    models = config.models
    targets = models.targets if config.detect.asks_targets else ()
    roles = {role: models.for_role(role) for role in ROLES if models.for_role(role).is_asked}
    return _assign(config, roles, targets, config.detect.judges if targets else ())


def assign_targets(config: AnyConfig, targets: Sequence[ModelConfig]) -> RoleAssignments:
    """Return the models to ask if only targets are asked.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    return _assign(config, {}, targets)


def _assign(
    config: AnyConfig,
    roles: dict[RoleName, ModelConfig],
    targets: Sequence[ModelConfig],
    judges: Sequence[ModelConfig] = (),
) -> RoleAssignments:
    return RoleAssignments(
        roles=roles,
        targets=tuple(target for target in targets if not target.is_rule_based),
        judges=tuple(judge for judge in judges if not judge.is_rule_based),
        prices=load_run_prices(config),
        concurrency=config.run.concurrency,
    )


def find_recorded_name(model: ModelConfig) -> str:
    """Return the name for recording a model's calls; files of answers lose their folder."""
    return hide_folder(model.model)


def iter_role_models(assignments: RoleAssignments) -> Iterator[tuple[str, ModelConfig]]:
    """Yield each role and each target with its model."""
    yield from assignments.roles.items()
    yield from (("target", target) for target in assignments.targets)
