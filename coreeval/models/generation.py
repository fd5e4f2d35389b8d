"""Generates answers with a local model: several questions at a time, token by token.

An answer does not depend on the other questions in the batch: each question has its own limit,
temperature and seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from coreeval.models.local_model import LocalModel

if TYPE_CHECKING:
    import torch

_END_OF_PLAIN: Final = "\n\n"
"""Where an answer of a model without a chat template ends: such a model has no end-of-turn
token."""


class GenerationStopped(Exception):
    """The caller no longer waits for the answers."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are sampled."""

    temperature: float = 0.0
    """0: always the most probable token."""
    seed: int = 0
    max_tokens: int = 64
    logprobs: int = 0
    """The number of most probable tokens reported at each position."""


@dataclass(frozen=True, kw_only=True)
class LocalAnswer:
    """The answer of a local model."""

    text: str
    finish: Literal["stop", "length"]
    prompt_tokens: int
    tokens: int
    places: Sequence[dict[str, Any]] = ()
    """The tokens with their log-probabilities, in the form of chat completions."""


def generate(
    model: LocalModel,
    questions: Sequence[Sequence[int]],
    ways: Sequence[Sampling],
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> list[LocalAnswer]:
    """Return the answers to questions, all of which fit the model's context.

    Args:
        model: The model.
        questions: The tokens of each question.
        ways: How each of them is answered.
        is_stopped: Called before each token; True stops the generation.

    Raises:
        GenerationStopped: it was stopped.
    """
    import torch

    rows = [_Row(model, len(one), way) for one, way in zip(questions, ways, strict=True)]
    model.network.eval()
    with torch.inference_mode():
        said, mask = model.read_questions(questions, use_cache=True)
        place = mask.sum(dim=1, keepdim=True)
        while True:
            logs = torch.log_softmax(said.logits[:, -1].float(), dim=-1).cpu()
            tokens = [row.take(line) for row, line in zip(rows, logs, strict=True)]
            if all(row.finish for row in rows):
                return [row.answer() for row in rows]
            if is_stopped():
                raise GenerationStopped
            given = torch.tensor(tokens, device=model.device).unsqueeze(1)
            mask = torch.cat([mask, torch.ones_like(given)], dim=1)
            past = model.cache_of(said)
            said = model.forward(given, mask, place, keep=1, use_cache=True, **past)
            place = (place + 1).clamp(max=(model.window or mask.shape[1]) - 1)


def choose(
    model: LocalModel,
    questions: Sequence[Sequence[int]],
    choices: Sequence[str],
    ways: Sequence[Sampling],
) -> list[LocalAnswer]:
    """Return one of the given answers to each question.

    It is the answer with the highest joint probability of its tokens; at a temperature T above 0,
    it is drawn with weights of its probability to the power 1/T.
    """
    endings = [model.encode_label(choice) for choice in choices]
    shared = _count_shared(endings)
    begun = [[*question, *endings[0][:shared]] for question in questions]
    scores = model.score_endings(begun, [one[shared:] for one in endings], batch=len(questions))
    chosen = [_draw_choice(line, way) for line, way in zip(scores, ways, strict=True)]
    return [
        LocalAnswer(
            text=choices[at],
            finish="stop",
            prompt_tokens=len(question),
            tokens=len(endings[at]),
        )
        for question, at in zip(questions, chosen, strict=True)
    ]


def _count_shared(endings: Sequence[Sequence[int]]) -> int:
    """Return the length of the common prefix of all endings; each keeps at least one own token."""
    most = min(map(len, endings)) - 1
    places = zip(*(one[:most] for one in endings), strict=True)
    return next((at for at, tokens in enumerate(places) if len(set(tokens)) > 1), most)


def _draw_choice(scores: "np.ndarray[Any, np.dtype[np.float64]]", way: Sampling) -> int:
    if not way.temperature:
        return int(np.argmax(scores))
    chances = np.exp((scores - scores.max()) / way.temperature)
    return int(np.random.default_rng(way.seed).choice(len(scores), p=chances / chances.sum()))


@dataclass
class _Row:
    """One question and its answer so far."""

    model: LocalModel
    prompt_tokens: int
    way: Sampling
    finish: Literal["stop", "length", ""] = ""
    tokens: list[int] = field(default_factory=list)
    places: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        import torch

        room = (self.model.window or self.prompt_tokens + self.way.max_tokens) - self.prompt_tokens
        self._most = min(self.way.max_tokens, room)
        self._chance = torch.Generator().manual_seed(self.way.seed)

    def take(self, logs: "torch.Tensor") -> int:
        """Choose and return the next token; after the end of the answer, any token.

        Args:
            logs: The log-probabilities of all tokens, of shape (tokens,).
        """
        if self.finish:
            return 0
        token = self._draw(logs)
        if token in self.model.end_tokens:
            self.finish = "stop"
            return token
        self.tokens.append(token)
        if self.way.logprobs:
            self.places.append(self._describe(token, logs))
        if self.model.chat == "plain" and _END_OF_PLAIN in self._text.lstrip():
            self.finish = "stop"
        elif len(self.tokens) >= self._most:
            self.finish = "length"
        return token

    def _draw(self, logs: "torch.Tensor") -> int:
        import torch

        if not self.way.temperature:
            return int(logs.argmax())
        chances = torch.softmax(logs / self.way.temperature, dim=-1)
        return int(torch.multinomial(chances, 1, generator=self._chance))

    def _describe(self, token: int, logs: "torch.Tensor") -> dict[str, Any]:
        best = logs.topk(min(self.way.logprobs, len(logs)))
        beside = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return {
            **self._name(token, float(logs[token])),
            "top_logprobs": [self._name(each, value) for each, value in beside],
        }

    def _name(self, token: int, value: float) -> dict[str, Any]:
        return {"token": self.model.decode([token]), "logprob": value}

    @property
    def _text(self) -> str:
        return self.model.decode(self.tokens)

    def answer(self) -> LocalAnswer:
        """Return the complete answer."""
        text = self._text
        if self.model.chat == "plain":
            text = text.lstrip().partition(_END_OF_PLAIN)[0]
        return LocalAnswer(
            text=text,
            finish=self.finish or "length",
            prompt_tokens=self.prompt_tokens,
            tokens=len(self.tokens),
            places=self.places,
        )
