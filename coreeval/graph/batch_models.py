"""The models of a run that use batches, and requests to their endpoints."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from coreeval.config import ROLES, ModelConfig, PriceConfig
from coreeval.errors import CoreEvalError, ModelUnusable, RunError
from coreeval.graph.run_context import RunContext
from coreeval.models import open_model
from coreeval.models.batch_dispatch import Batching
from coreeval.models.batches import BatchEndpoint
from coreeval.models.failures import CallFailure, to_final_error
from coreeval.models.model import Model
from coreeval.runs.own_config import locate_batches
from coreeval.tools.catalogs import find_price, load_run_prices
from coreeval.tools.stores.batch_records import Batch, QueueLength
from coreeval.tools.trust import load_trusted_endpoints

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class BatchModel:
    """A model that uses batches."""

    model: Model
    endpoint: BatchEndpoint
    price: PriceConfig | None
    """Its price without batches; None if unknown."""
    folder: str
    """The folder that its batches are written into; "" if they are sent."""

    @property
    def key_env(self) -> str:
        """The environment variable of its key."""
        return self.model.config.key_variable

    def to_error(self, failure: CallFailure) -> CoreEvalError:
        """Return the error of a failure that ends the run."""
        if self.folder:
            hint = "check the folder (run.batch.files), then resume"
            return RunError(failure.message, where=self.folder, hint=hint)
        endpoint = self.model.identity.endpoint
        final = to_final_error(
            failure,
            model=self.model.name,
            endpoint=endpoint,
            key_env=self.key_env,
        )
        if isinstance(final, CoreEvalError):
            return final
        return ModelUnusable(
            f"{self.model.name}: its batches cannot be used: {failure.message}",
            where=endpoint,
            hint="resume later; answers are kept",
        )


class BatchModels:
    """The models of a run by endpoint, name and key, opened when the first is needed.

    Args:
        run: The run.
        batching: What it asks through batches.
    """

    def __init__(self, run: RunContext, batching: Batching) -> None:
        self._run, self._batching = run, batching
        self._known: list[tuple[Model, PriceConfig | None]] | None = None
        self._silent = dict[str, CoreEvalError]()
        """The endpoints that did not respond in the current poll."""
        self._locate = locate_batches(run.manifest)

    def begin_look(self) -> None:
        """Start a new poll: ask all endpoints, including those that did not respond before."""
        self._silent.clear()

    def find(self, about: Batch | QueueLength) -> BatchModel:
        """Return the model of a batch or a queue, with the key with which it was sent.

        A key is identified by the name of its environment variable, so that it may be renewed while
        a batch is open; if no model has that variable any more, any key of the model is used.

        Args:
            about: The batch or the queue.

        Raises:
            ModelUnusable: the config does not name it any more.
            CoreEvalError: it cannot be opened.
        """
        if self._known is None:
            self._known = list(self._open())
        same = [
            each
            for each in self._known
            if (each[0].identity.endpoint, each[0].name) == (about.endpoint, about.model)
        ]
        own = [each for each in same if each[0].config.key_variable == about.key_env]
        found = next(iter([*own, *same]), None)
        folder = self._find_folder(about)
        batches = found and self._open_endpoint(found[0], folder)
        if found is None or batches is None:
            raise ModelUnusable(
                f"a batch of {about.model} is open, but the config does not name this model",
                where=about.endpoint,
                hint="add the model to the config again, or start a new run",
            )
        return BatchModel(model=found[0], endpoint=batches, price=found[1], folder=folder)

    def _find_folder(self, about: Batch | QueueLength) -> str:
        """Return the present folder of a batch, or the one for a queue; "" if batches are sent."""
        if isinstance(about, QueueLength):
            return self._batching.config.files or ""
        return self._locate(about.folder)

    async def ask(self, known: BatchModel, question: Callable[[], Awaitable[T]]) -> T:
        """Ask an endpoint about a batch, with retries; only once per poll if it does not respond.

        Raises:
            CoreEvalError: the request failed.
        """
        place = known.folder or known.model.identity.endpoint
        if place in self._silent:
            raise self._silent[place]
        try:
            return await self._batching.retry.run(question)
        except CallFailure as failure:
            error = known.to_error(failure)
            if failure.retryable:
                self._silent[place] = error
        raise error

    def _open(self) -> Iterator[tuple[Model, PriceConfig | None]]:
        trusted, prices = (
            load_trusted_endpoints(self._run.workspace),
            load_run_prices(self._run.config),
        )
        for config in _list_configs(self._run):
            if config.is_rule_based or config.is_plugin or config.is_on_this_machine:
                continue
            model = open_model(config, trusted=trusted)
            yield model, find_price(config, prices)

    def _open_endpoint(self, model: Model, folder: str) -> BatchEndpoint | None:
        if not folder:
            return model.chat.open_batches()
        from coreeval.models.batch_folder import BatchFolder  # needed by few configs

        return BatchFolder(Path(folder), model.config)


def _list_configs(run: RunContext) -> Iterator[ModelConfig]:
    models = run.config.models
    for role in ROLES:
        yield models.for_role(role)
    yield from models.targets
    yield from run.config.detect.judges
