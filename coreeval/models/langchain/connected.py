"""A package's models as one event loop uses them: made once, schemas bound once."""

from collections.abc import Callable, Mapping
from typing import cast

import httpx2
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import SecretStr

from coreeval.models.forms import Form

Asked = Runnable[list[dict[str, str]], dict[str, object]]
"""Takes messages, gives what the model said as `raw`."""


class Connected:
    """The models of one chat, by their longest answer.

    Args:
        make: Makes the model for a longest answer.
    """

    def __init__(self, make: Callable[[int], BaseChatModel]) -> None:
        self._make = make
        self._models: dict[int, BaseChatModel] = {}
        self._bound: dict[tuple[int, str, int], tuple[Mapping[str, object], Asked]] = {}
        """By the schema's identity, the method and the limit; the schema is kept so it stays."""

    def asked(self, form: Form) -> Asked:
        """Return what asks the model in a form.

        Raises:
            ValueError, TypeError, NotImplementedError: its package does not know the way.
        """
        key = (id(form.schema), form.method, form.max_tokens)
        if key not in self._bound:
            self._bound[key] = (form.schema, _bind(self._model(form.max_tokens), form))
        return self._bound[key][1]

    def secret(self, key: SecretStr) -> str:
        """Return the key that is sent: ours, or the one that the package has found for itself."""
        values = (value for model in self._models.values() for value in vars(model).values())
        keys = (key, *(value for value in values if isinstance(value, SecretStr)))
        return next((said for one in keys if (said := one.get_secret_value())), "")

    async def close(self) -> None:
        """Let go of the connections that are ours; packages see to their own."""
        for model in self._models.values():
            http = getattr(model, "http_async_client", None)
            if isinstance(http, httpx2.AsyncClient):
                await http.aclose()
        self._models.clear()
        self._bound.clear()

    def _model(self, limit: int) -> BaseChatModel:
        if limit not in self._models:
            self._models[limit] = self._make(limit)
        return self._models[limit]


def _bind(model: BaseChatModel, form: Form) -> Asked:
    if form.method == "text":
        return cast("Asked", model | RunnableLambda(_as_raw))
    schema = {"title": form.name, "description": "The answer.", **form.schema}
    bound = model.with_structured_output(schema, method=form.method, include_raw=True)
    return cast("Asked", bound)


def _as_raw(message: AIMessage) -> dict[str, object]:
    return {"raw": message}
