"""Any chat model of LangChain's, asked as this program asks: one request, one answer as JSON text.

A schema is bound once; what the model said is kept as it stands and parsed by the asker.
"""

import asyncio
from collections.abc import Callable
from typing import cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from pydantic import Field, PrivateAttr

from coreeval.models.chat import AskedChat
from coreeval.models.connections import shared
from coreeval.models.failures import CallFailure
from coreeval.models.forms import Form
from coreeval.models.langchain.answers import answer_of
from coreeval.models.langchain.connected import Connected
from coreeval.models.langchain.failures import cut_short, failure_of
from coreeval.models.telling import with_schema


class LangChainChat(AskedChat):
    """Asks one model of a provider's package."""

    make: Callable[[int], BaseChatModel] = Field(exclude=True, repr=False)
    """Makes the package's model for a longest answer."""
    _me: object = PrivateAttr(default_factory=object)
    """What tells its connections from those of others."""

    async def answer(self, messages: list[dict[str, str]], form: Form) -> AIMessage:
        """Return the answer of one request.

        A failure is raised outside the handlers, so that it carries no error of the package and,
        with it, no request and no key.
        """
        told = form.method in ("json_mode", "text")
        outcome = await self._send(with_schema(messages, form.schema) if told else messages, form)
        if isinstance(outcome, CallFailure):
            raise outcome
        return outcome

    async def _send(self, messages: list[dict[str, str]], form: Form) -> AIMessage | CallFailure:
        connected, seconds = shared(self._me, lambda: Connected(self.make)), self.settings.timeout_s
        try:
            asked = connected.asked(form)
        except (ValueError, TypeError, NotImplementedError) as error:
            return CallFailure("unsupported", f"{form.method}: {error}", refused="method")
        try:
            async with asyncio.timeout(seconds):
                said = await asked.ainvoke(messages)
            return answer_of(cast("AIMessage", said["raw"]))
        except TimeoutError:
            return CallFailure("transient", f"no answer within {seconds:g} s", billed=True)
        except Exception as error:  # noqa: BLE001 - each package has errors of its own
            return cut_short(error) or failure_of(error, connected.secret(self.key))
