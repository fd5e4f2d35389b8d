"""Asking with log-probabilities whoever tells them; whoever does not is asked plainly."""

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, TypeAdapter

from coreeval.errors import RequestRejected
from coreeval.evaluation.numleak.probes import Question
from coreeval.evaluation.numleak.readout.bits import TOP
from coreeval.evaluation.numleak.replies import Reply, Token
from coreeval.graph.desk import Words, in_words
from coreeval.graph.numleak.plan import TARGET_ROLE, Audit
from coreeval.models import ModelClient, ModelPool


class ReadOutDesk:
    """Asks one target for values with log-probabilities, as long as it takes such requests.

    One that was rejected is put plainly; where that is answered, the others are put plainly, too.

    Args:
        exchange: Where models are opened.
        audit: Whom to ask.
        plain: Asks the target without them.
    """

    def __init__(self, exchange: ModelPool, audit: Audit, plain: ModelClient) -> None:
        self._plain = plain
        self._peeking = exchange.open_client(
            audit.target, TARGET_ROLE, max_draws=1, settle=True, logprobs=TOP
        )
        self._takes = plain.model.has_logprobs

    async def ask(self, question: Question) -> Words:
        """Return what is said to a question, with the first tokens where they come.

        Raises:
            ModelCallError: the question did not get through.
            CoreEvalError: no more can be asked.
        """
        if self._takes:
            try:
                return await in_words(self._peeking, question.messages)
            except RequestRejected:
                said = await in_words(self._plain, question.messages)
                self._takes = False
                return said
        return await in_words(self._plain, question.messages)


class _Candidate(BaseModel):
    token: str
    logprob: float


class _Place(_Candidate):
    top_logprobs: list[_Candidate]


_PLACES = TypeAdapter(list[_Place])


def tokens_of(said: Words) -> tuple[Token, ...] | None:
    """Return the first tokens of an answer as its record has them; None where none came."""
    if not said.logprobs:
        return None
    return tuple(
        Token(
            text=place.token,
            logprob=place.logprob,
            top=tuple((one.token, one.logprob) for one in place.top_logprobs),
        )
        for place in _PLACES.validate_json(said.logprobs)
    )


def untold(audits: Sequence[Audit], replies: Sequence[Reply]) -> Iterator[str]:
    """Yield which targets were asked for log-probabilities and told none."""
    telling = {reply.model for reply in replies if reply.first_tokens}
    for audit in audits:
        name = audit.target.model
        wanted = any(one.logprobs for asked in audit.asked for one in asked.questions)
        if wanted and name not in telling:
            why = "a persona has none" if audit.target.is_embedded else "it gave none"
            yield f"{name} has no read-out entropy, which needs log-probabilities: {why}"
