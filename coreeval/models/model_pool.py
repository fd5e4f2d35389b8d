"""Opens models and creates their clients, which share limiters, budget and capabilities."""

from collections.abc import Mapping

from coreeval.config import ROLES, AnyConfig, ModelConfig, ModelsConfig
from coreeval.models.activity import ActiveCalls
from coreeval.models.batch_dispatch import BatchDispatcher, Batching
from coreeval.models.budget import Budget
from coreeval.models.capabilities import Capabilities
from coreeval.models.client import MAX_DRAWS, ModelClient
from coreeval.models.dispatch import Dispatcher, LiveDispatcher
from coreeval.models.model import Model
from coreeval.models.providers import open_model
from coreeval.models.rate_limit import RateLimiter
from coreeval.models.retry import Retry
from coreeval.schema import RoleName
from coreeval.tools.catalogs import Prices, load_run_prices
from coreeval.tools.endpoints import Pairs
from coreeval.tools.stores.call_store import CallStore


class ModelPool:
    """Connects the roles of a process to their models.

    Roles of one model at one endpoint share its limiter, all share the budget.

    Args:
        calls: The call store.
        budget: The run's budget.
        in_flight: The most concurrent requests to a model whose config has no limit.
        retry: How often a failed request is sent again.
        env: Where keys come from; by default, the environment.
        active_calls: Receives the stage of each call.
        trusted: Variables and the origins that they may be sent to; see `open_model`.
        batching: What is asked through batches; None: nothing.
    """

    def __init__(
        self,
        calls: CallStore,
        budget: Budget,
        *,
        in_flight: int,
        retry: Retry | None = None,
        env: Mapping[str, str] | None = None,
        active_calls: ActiveCalls | None = None,
        trusted: Pairs = (),
        batching: Batching | None = None,
    ) -> None:
        self.calls = calls
        self.batching = batching
        self._budget = budget
        self._in_flight = in_flight
        self._retry = retry or Retry()
        self._env = env
        self._active_calls = active_calls or ActiveCalls()
        self._trusted = trusted
        self._capabilities = Capabilities(calls)
        self._limiters: dict[tuple[str, str], RateLimiter] = {}

    def open_client(
        self,
        config: ModelConfig,
        role: str,
        *,
        max_draws: int = MAX_DRAWS,
        settle: bool = False,
        logprobs: int = 0,
        scores_texts: bool = False,
    ) -> ModelClient:
        """Return a client for a model in a role, with the top `logprobs` tokens at each position.

        With `scores_texts` its answer to a text is `TextScores`; ask for `TextScoresOutput`.

        Raises:
            ConfigError: the provider does not exist, the name after the colon is missing, or the
                provider does not score texts.
            CredentialError: the key is missing from the environment.
            UntrustedEndpoint: the key would be sent to an origin that is not trusted.
        """
        model = open_model(config, self._env, trusted=self._trusted)
        if scores_texts:
            from coreeval.models.completions import open_text_scorer  # the SDK takes 0.7 s

            model = open_text_scorer(model)
        live = LiveDispatcher(
            model=model,
            limiter=self._find_limiter(model),
            budget=self._budget,
            capabilities=self._capabilities,
            retry=self._retry,
            role=role,
            active_calls=self._active_calls,
        )
        return ModelClient(
            model,
            self._choose_dispatcher(live),
            self.calls,
            self._capabilities,
            role=role,
            max_draws=max_draws,
            settle=settle,
            logprobs=logprobs,
            price=self._budget.find_price(model),
        )

    def _choose_dispatcher(self, live: LiveDispatcher) -> Dispatcher:
        """Return a dispatcher that waits for batches if the model is asked through them."""
        batching = self.batching
        if batching is None or not batching.covers(live.model):
            return live
        return BatchDispatcher(live=live, batches=self.calls.batches, batching=batching)

    def role_clients(self, models: ModelsConfig) -> dict[RoleName, ModelClient]:
        """Return a client for each role that a model plays; rules and plugins have none."""
        return {
            role: self.open_client(models.for_role(role), role)
            for role in ROLES
            if models.for_role(role).is_asked
        }

    def _find_limiter(self, model: Model) -> RateLimiter:
        key = (model.identity.endpoint, model.identity.model)
        if key not in self._limiters:
            self._limiters[key] = RateLimiter(
                most=model.config.max_in_flight or self._in_flight,
                requests_per_minute=model.config.requests_per_minute,
                tokens_per_minute=model.config.tokens_per_minute,
            )
        return self._limiters[key]


def open_model_pool(
    config: AnyConfig,
    calls: CallStore,
    *,
    trusted: Pairs,
    prices: Prices | None = None,
    active_calls: ActiveCalls | None = None,
    patience_s: float = 0.0,
    batching: Batching | None = None,
) -> ModelPool:
    """Return the model pool of a run or a trial.

    Args:
        config: Its config.
        calls: The call store.
        trusted: Variables and the origins that they may be sent to; see `open_model`.
        prices: What models charge; None to read what the config names.
        active_calls: Receives the stage of each call.
        patience_s: How long to wait for other processes that share the budget, in seconds.
        batching: What is asked through batches; None: nothing.

    Raises:
        ConfigError: the file of prices cannot be used.
    """
    if prices is None:
        prices = load_run_prices(config)
    return ModelPool(
        calls,
        Budget(calls.ledger, prices, budget_usd=config.run.budget_usd, patience_s=patience_s),
        in_flight=config.run.concurrency,
        active_calls=active_calls,
        trusted=trusted,
        batching=batching,
    )
