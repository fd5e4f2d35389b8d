"""Sending one question: in turn, within the budget, again where that may help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coreeval.config import Method
from coreeval.errors import ModelUnusable
from coreeval.models.abilities import Abilities
from coreeval.models.counts import IMPOSSIBLE_COUNT
from coreeval.models.failures import CallFailure, Final, final_error
from coreeval.models.forms import Form
from coreeval.models.model import Model
from coreeval.models.pace import Pace, Turn
from coreeval.models.purse import Purse
from coreeval.models.retry import Retry
from coreeval.models.traffic import OpenCall, Traffic
from coreeval.tools.stores.call_store import Reservation

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

DOWN_AFTER = 10
"""Questions given up one after the other, each after all its tries, until the model counts as down:
a text that its endpoint chokes on stands alone."""
CHARACTERS_A_TOKEN = 4
"""About, for tokens-per-minute limits, which are put right when the answer counts them."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is sent, whichever way the endpoint is asked for structure."""

    key: str
    """Under which the answer will be stored."""
    messages: Sequence[Mapping[str, str]]
    """What is asked, as `role` and `content`."""
    schema: Mapping[str, object]
    """Empty where the answer may have any form."""
    name: str
    """What the schema is called."""
    size: int
    """Bytes of messages and schema."""
    max_tokens: int
    draw: int
    looser: bool = False
    """Whether to ask for structure less strictly than the model is believed to need."""
    logprobs: int = 0
    """How many of the most probable tokens are to be told at each place; 0: none."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What came of sending a question."""

    answer: "AIMessage"
    method: Method
    tries: Sequence[str]
    """Why earlier requests for it came to nothing."""
    reservation: Reservation | None
    """What the record of the call settles."""


@dataclass(frozen=True, kw_only=True)
class Sender:
    """The way to one model.

    Args:
        model: Who is asked.
        pace: How fast; shared with other roles of the same model.
        purse: Who pays; shared by the run.
        abilities: How models are asked for structure; shared by the process.
        retry: How often and how patiently a request is sent again.
        role: Who asks.
        traffic: Told where each call stands; shared by the process.
    """

    model: Model
    pace: Pace
    purse: Purse
    abilities: Abilities
    retry: Retry
    role: str = ""
    traffic: Traffic = field(default_factory=Traffic)

    async def send(self, question: Question) -> Sent:
        """Return the answer to one question.

        Raises:
            BudgetSpent: the budget does not allow another call.
            NoValidAnswer: the endpoint declined the text.
            ModelCallError: the request was rejected, or given up after all tries.
            CredentialError: the endpoint refused the key.
            ModelUnusable: the model cannot be used at all, now or later.
        """
        try:
            with self.traffic.call(self.role, self.model.name) as call:
                return await self._again_and_again(question, call)
        except CallFailure as failure:
            final = self._final(failure)
        raise final

    async def _again_and_again(self, question: Question, call: OpenCall) -> Sent:
        tries: list[str] = []

        async def once() -> Sent:
            return await self._in_some_way(question, tries, call)

        def rest(reason: str) -> None:
            tries.append(reason)
            call.at("resting")

        return await self.retry.run(once, rest)

    def _final(self, failure: CallFailure) -> Final:
        """Return the error that a failure is when nothing more is tried."""
        endpoint = self.model.identity.endpoint
        if failure.retryable:
            self.pace.lost_in_a_row += 1
            if self.pace.lost_in_a_row >= DOWN_AFTER:
                return ModelUnusable(
                    f"{self.model.name}: {DOWN_AFTER} calls in a row were given up, the last "
                    f"because: {failure.message}",
                    where=endpoint,
                    hint="see to the endpoint; coreeval retry takes up what has failed",
                )
        return final_error(
            failure,
            model=self.model.name,
            endpoint=endpoint,
            key_env=self.model.config.key_env,
        )

    async def settle(self, sent: Sent, usd: float | None) -> None:
        """Note what an answer cost; None where that is not known."""
        await self.purse.settle(sent.reservation, usd)

    def judged(self, sent: Sent, *, valid: bool) -> None:
        """Note whether the answer to a plain question was one: the way of asking may not work."""
        self.abilities.note(self.model, sent.method, valid=valid)

    async def _in_some_way(self, question: Question, tries: list[str], call: OpenCall) -> Sent:
        """Send one request that the endpoint takes, whatever it takes."""
        while True:
            form = self._form(question)
            try:
                return await self._once(question, form, tries, call)
            except CallFailure as failure:
                if not self._another_way(failure, form):
                    raise
                tries.append(failure.message)

    def _form(self, question: Question) -> Form:
        method: Method = "text"
        if question.schema:
            method = self.abilities.method(self.model, looser=question.looser)
        return Form(
            schema=question.schema,
            name=question.name,
            method=method,
            max_tokens=question.max_tokens,
            plain_limit=self.abilities.plain_limit(self.model),
            draw=question.draw,
            logprobs=question.logprobs,
        )

    def _another_way(self, failure: CallFailure, form: Form) -> bool:
        if failure.refused == "method" and form.schema:
            return self.abilities.refused(self.model, form.method)
        if failure.refused == "limit":
            return self.abilities.refused_limit(self.model, plain=form.plain_limit)
        return False

    async def _once(
        self, question: Question, form: Form, tries: Sequence[str], call: OpenCall
    ) -> Sent:
        about = question.size // CHARACTERS_A_TOKEN
        call.at("turn")
        async with self.pace.turn(about) as turn:
            call.at("budget")
            reservation = await self.purse.reserve(
                self.model, question.key, prompt_bytes=question.size, max_tokens=form.max_tokens
            )
            call.at("answer")
            answer = await self._asked(question, form, turn, reservation)
        method: Method = answer.response_metadata.get("method", form.method)  # as it was recorded
        return Sent(answer=answer, method=method, tries=tries, reservation=reservation)

    async def _asked(
        self, question: Question, form: Form, turn: Turn, reservation: Reservation | None
    ) -> "AIMessage":
        try:
            answer = await self.model.chat.ask([dict(one) for one in question.messages], form)
        except CallFailure as failure:
            turn.failed(failure)
            self.traffic.refused(self.model.name, failure)
            if failure.billed:
                await self.purse.write_off(reservation)
            else:
                await self.purse.give_back(reservation)
            raise
        except BaseException:
            await self.purse.write_off(reservation)
            raise
        if told := answer.response_metadata.get(IMPOSSIBLE_COUNT):
            self.traffic.counted_impossibly(self.model.name, str(told))
        usage = answer.usage_metadata
        turn.answered(
            answer.response_metadata["limits"], usage["total_tokens"] if usage else turn.tokens
        )
        return answer
