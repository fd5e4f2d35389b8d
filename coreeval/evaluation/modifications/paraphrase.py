"""Paraphrase: an item's input in other words, by a model, held to what it said before."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from pydantic import BaseModel

from coreeval.errors import NoValidAnswer
from coreeval.evaluation.modifications.outcome import Modified, Unmodified
from coreeval.evaluation.scoring.text import spaced
from coreeval.models import InvalidAnswer, OutputSchema
from coreeval.prompts import Prompt, load_built_in_prompt, to_prompt_json
from coreeval.schema import Item, Text, Value
from coreeval.tools.embeddings import Embedder

FLOOR = 0.9
"""Least cosine similarity of the two inputs by MiniLM; see docs/scoring.md for what it rests on."""
PIECE = 150
"""Words of a piece: with their parts and punctuation, what MiniLM reads at once."""
_NUMBER = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]*\d+(?:[.,]\d+)*[A-Za-z0-9]*")
"""With the letters that it is written together with: `FY14`, and what a lost mark left behind."""
_BLANK = "____"
Answer = TypeVar("Answer", bound=BaseModel)


class Asks(Protocol):
    """What answers: the models' Asker in a role of its own, through the call store."""

    async def ask(
        self,
        messages: Sequence[dict[str, str]],
        shape: OutputSchema[Answer],
        *,
        check: Callable[[Answer], None],
    ) -> Answer:
        """Return a valid answer; raise NoValidAnswer where there is none."""
        ...


class Paraphrase(Value):
    """What the model answers."""

    input: Text


class Paraphraser:
    """Puts items into other words; what changes numbers or drifts off is asked for again.

    Args:
        asker: The model.
        embeds: Says how near the new text is to the old one.
        floor: Least cosine similarity that passes.
        prompt: The wording; the built-in one by default.
    """

    def __init__(
        self, asker: Asks, embeds: Embedder, *, floor: float = FLOOR, prompt: Prompt | None = None
    ) -> None:
        self._asker = asker
        self._embeds = embeds
        self._floor = floor
        self._prompt = prompt or load_built_in_prompt("paraphraser")
        self._shape = OutputSchema(Paraphrase)

    async def __call__(self, item: Item) -> Modified | Unmodified:
        """Return the item in other words, or why there is none.

        Raises:
            ModelCallError: the model was not reached.
        """
        shown = {"input": item.input, "keep": dict(_kept(item))}
        messages = self._prompt.fill(item=to_prompt_json(shown))
        try:
            said = await self._asker.ask(
                messages, self._shape, check=lambda answer: self._check(item, answer.input)
            )
        except NoValidAnswer as error:
            return Unmodified(id=item.id, reason=str(error))
        return Modified(item=item.model_copy(update={"input": said.input}), changes={})

    def _check(self, item: Item, text: str) -> None:
        if " ".join(text.split()) == " ".join(item.input.split()):
            raise InvalidAnswer("it is the input itself")
        if changed := _kept(item) - _kept(item, text) or _numbers(text) - _numbers(item.input):
            raise InvalidAnswer(f"numbers or options were changed: {', '.join(changed)}")
        if (near := similarity(item.input, text, self._embeds)) < self._floor:
            raise InvalidAnswer(
                f"it is too far from the input: stay nearer to its words (similarity {near:.3f}, "
                f"at least {self._floor})"
            )


def similarity(first: str, second: str, embeds: Embedder) -> float:
    """Return the cosine similarity of two texts of any length.

    A text's vector is the mean over its pieces: a small model reads no more than a few hundred
    words, and the end of a long text would not count.
    """
    one, other = (embeds(_pieces(text)).astype(np.float64).mean(axis=0) for text in (first, second))
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else 0.0


def _pieces(text: str) -> list[str]:
    tokens = [*spaced(" ".join(text.split()))]
    return [" ".join(tokens[at : at + PIECE]) for at in range(0, len(tokens), PIECE)]


def _numbers(text: str) -> Counter[str]:
    return Counter(_NUMBER.findall(text))


def _kept(item: Item, text: str | None = None) -> Counter[str]:
    """Return what must stay, as often as it occurs: numbers, blanks, and the texts of options."""
    where = item.input if text is None else text
    marks = (mark for mark in (*item.options.values(), _BLANK) if mark in where)
    return _numbers(where) | Counter({mark: where.count(mark) for mark in marks})
