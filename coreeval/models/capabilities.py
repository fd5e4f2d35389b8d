"""What a model at an endpoint supports, found out once and stored in the workspace."""

from dataclasses import dataclass, field

from coreeval.config import METHODS, Method
from coreeval.models.model import Model
from coreeval.tools.stores.call_store import CallStore

MISSES = 4
"""The number of invalid first answers in a row after which a method that never worked is dropped;
chance failures are a few per cent (research: performance §5)."""


@dataclass
class _ModelCapabilities:
    """What is known about one model."""

    useless: set[Method] = field(default_factory=set)
    """Methods that the endpoint rejected or that never returned a valid answer."""
    plain_limit: bool | None = None
    refused_limits: set[bool] = field(default_factory=set)
    """Found out by this process; stored findings may be out of date."""
    misses: int = 0
    worked: bool = False

    def methods(self) -> list[Method]:
        """Return the remaining methods, the strictest first; there is always at least one."""
        return [method for method in METHODS if method not in self.useless] or [METHODS[-1]]


class Capabilities:
    """What is known about each model at its endpoint; one instance per process.

    Args:
        store: Where it is stored for later runs.
    """

    def __init__(self, store: CallStore) -> None:
        self._store = store
        self._known: dict[tuple[str, str], _ModelCapabilities] = {}

    def method(self, model: Model, *, looser: bool = False) -> Method:
        """Return how to ask a model for structure: as configured, or the best method known.

        Args:
            model: The model.
            looser: Return the next less strict method, if there is one.
        """
        if model.config.structured != "auto":
            return model.config.structured
        left = self._load(model).methods()
        return left[1] if looser and len(left) > 1 else left[0]

    def plain_limit(self, model: Model) -> bool:
        """Return whether the answer limit is called `max_tokens` in requests.

        OpenAI's newer models require `max_completion_tokens`; all other servers know `max_tokens`.
        """
        known = self._load(model).plain_limit
        return model.plain_limit if known is None else known

    def drop_method(self, model: Model, method: Method) -> bool:
        """Record that an endpoint rejects a method; return whether another one is left."""
        if model.config.structured != "auto":
            return False
        known = self._load(model)
        if known.methods() == [method]:
            return False
        self._drop_method(model, method)
        return True

    def drop_limit_name(self, model: Model, *, plain: bool) -> bool:
        """Record that it rejects a name of the limit; return whether the other name may work."""
        known = self._load(model)
        known.refused_limits.add(plain)
        if (not plain) in known.refused_limits:
            return False
        known.plain_limit = not plain
        self._save(model)
        return True

    def record_outcome(self, model: Model, method: Method, *, valid: bool) -> None:
        """Record whether the answer to an original question, asked by a method, was valid."""
        known = self._load(model)
        if model.config.structured != "auto" or known.methods()[0] != method:
            return
        known.worked = known.worked or valid
        known.misses = 0 if known.worked else known.misses + 1
        if known.misses >= MISSES and len(known.methods()) > 1:
            self._drop_method(model, method)

    def set_known(self, model: Model, method: Method, *, plain_limit: bool) -> None:
        """Store the findings of a check, replacing earlier ones.

        Args:
            model: The model.
            method: The strictest method of asking for structure that returned an answer.
            plain_limit: Whether the limit was called `max_tokens` in that request.
        """
        known = self._load(model)
        if model.config.structured == "auto":
            known.useless = set(METHODS[: METHODS.index(method)])
            known.misses, known.worked = 0, True
        known.plain_limit = None if plain_limit == model.plain_limit else plain_limit
        self._save(model)

    def _drop_method(self, model: Model, method: Method) -> None:
        known = self._load(model)
        known.useless.add(method)
        known.misses, known.worked = 0, False
        self._save(model)

    def _load(self, model: Model) -> _ModelCapabilities:
        key = (model.identity.endpoint, model.identity.model)
        if key not in self._known:
            told = self._store.ability(*key)
            useless = told.get("useless", "").split()
            self._known[key] = _ModelCapabilities(
                useless={method for method in METHODS if method in useless},
                plain_limit={"yes": True, "no": False}.get(told.get("plain_limit", "")),
            )
        return self._known[key]

    def _save(self, model: Model) -> None:
        known = self._load(model)
        limit = {True: "yes", False: "no", None: ""}[known.plain_limit]
        told = {"useless": " ".join(sorted(known.useless)), "plain_limit": limit}
        self._store.learn(model.identity.endpoint, model.identity.model, told)
