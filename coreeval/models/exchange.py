"""Where models are opened and askers connected to them; what they share is here."""

from collections.abc import Mapping

from coreeval.config import ROLES, AnyConfig, ModelConfig, ModelsConfig
from coreeval.models.abilities import Abilities
from coreeval.models.asker import MAX_DRAWS, Asker
from coreeval.models.model import Model
from coreeval.models.pace import Pace
from coreeval.models.providers import open_model
from coreeval.models.purse import Purse
from coreeval.models.retry import Retry
from coreeval.models.sender import Sender
from coreeval.models.traffic import Traffic
from coreeval.schema import RoleName
from coreeval.tools.catalogs import load_run_prices
from coreeval.tools.endpoints import Pairs
from coreeval.tools.stores.call_store import CallStore


class Exchange:
    """Connects the roles of a process to their models.

    Roles of one model at one endpoint share its pace, all share the purse.

    Args:
        calls: The call store.
        purse: Who pays.
        in_flight: Most requests at a time to one model whose config does not say.
        retry: How often a request that fails on the wire is sent again.
        env: Where keys come from; the environment where it is not given.
        traffic: Told where each call stands.
        trusted: Variables and the origins that they may be sent to; see `open_model`.
    """

    def __init__(
        self,
        calls: CallStore,
        purse: Purse,
        *,
        in_flight: int,
        retry: Retry | None = None,
        env: Mapping[str, str] | None = None,
        traffic: Traffic | None = None,
        trusted: Pairs = (),
    ) -> None:
        self.calls = calls
        self._purse = purse
        self._in_flight = in_flight
        self._retry = retry or Retry()
        self._env = env
        self._traffic = traffic or Traffic()
        self._trusted = trusted
        self._abilities = Abilities(calls)
        self._paces: dict[tuple[str, str], Pace] = {}

    def asker(
        self,
        config: ModelConfig,
        role: str,
        *,
        max_draws: int = MAX_DRAWS,
        settle: bool = False,
        logprobs: int = 0,
    ) -> Asker:
        """Return an asker for a model in a role; `logprobs` tokens are told at each place.

        Raises:
            ConfigError: there is no such provider, or what follows the colon is missing.
            CredentialError: the key is missing from the environment.
            UntrustedEndpoint: the key would be sent where nobody has agreed to.
        """
        model = open_model(config, self._env, trusted=self._trusted)
        sender = Sender(
            model=model,
            pace=self._pace(model),
            purse=self._purse,
            abilities=self._abilities,
            retry=self._retry,
            role=role,
            traffic=self._traffic,
        )
        return Asker(
            sender, self.calls, role=role, max_draws=max_draws, settle=settle, logprobs=logprobs
        )

    def askers(self, models: ModelsConfig) -> dict[RoleName, Asker]:
        """Return an asker for each role that a model plays; roles played by rules have none."""
        return {
            role: self.asker(models.of(role), role)
            for role in ROLES
            if not models.of(role).by_rules
        }

    def _pace(self, model: Model) -> Pace:
        key = (model.identity.endpoint, model.identity.model)
        if key not in self._paces:
            self._paces[key] = Pace(
                most=model.config.max_in_flight or self._in_flight,
                requests_per_minute=model.config.requests_per_minute,
                tokens_per_minute=model.config.tokens_per_minute,
            )
        return self._paces[key]


def open_exchange(
    config: AnyConfig,
    calls: CallStore,
    *,
    trusted: Pairs,
    limited: bool = True,
    traffic: Traffic | None = None,
) -> Exchange:
    """Return the exchange of a run or a trial.

    Args:
        config: Its config.
        calls: The call store.
        trusted: Variables and the origins that they may be sent to; see `open_model`.
        limited: Whether the run's budget holds.
        traffic: Told where each call stands.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    prices = load_run_prices(config)
    budget = config.run.budget_usd if limited else None
    purse = Purse(calls.ledger, prices, budget_usd=budget)
    return Exchange(
        calls, purse, in_flight=config.run.concurrency, traffic=traffic, trusted=trusted
    )
