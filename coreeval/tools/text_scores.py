"""The log-probabilities of the tokens of a text under a model."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final, Protocol, Self

from pydantic import Field, field_validator, model_validator

from coreeval.schema import Value

ROUNDING: Final = 1e-3
"""The largest log-probability above 0 that counts as a rounding error of 16-bit numbers (own
choice)."""


class TextScores(Value):
    """A model's scores of a text's tokens; a first token without a score is omitted."""

    logprobs: tuple[float, ...]
    """The natural log-probability of each token given those before it."""
    tokens: tuple[str, ...] = ()
    """The tokens, or their numbers in the vocabulary; empty if they were not requested."""
    means: tuple[float, ...] = ()
    """The mean log-probability of the vocabulary at each position, under the model; weights
    only."""
    deviations: tuple[float, ...] = Field(default=())
    """Its standard deviation at each position, under the model; weights only."""

    @field_validator("logprobs")
    @classmethod
    def _check_logprobs(cls, found: tuple[float, ...]) -> tuple[float, ...]:
        for each in found:
            if not isfinite(each) or each > ROUNDING:
                raise ValueError(f"{each} is not a log-probability")
        return tuple(min(each, 0.0) for each in found)

    @field_validator("means", "deviations")
    @classmethod
    def _check_finite(cls, found: tuple[float, ...]) -> tuple[float, ...]:
        if not all(map(isfinite, found)):
            raise ValueError("a mean or deviation of log-probabilities is not a number")
        return found

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        for part in (self.tokens, self.means, self.deviations):
            if part and len(part) != len(self.logprobs):
                raise ValueError(f"{len(part)} values for {len(self.logprobs)} tokens")
        return self

    @property
    def total(self) -> float:
        """Return the log-probability of the whole text."""
        return float(sum(self.logprobs))


class TextScorer(Protocol):
    """Scores texts with local weights or through an endpoint."""

    def score_texts(self, texts: Iterable[str]) -> Mapping[str, TextScores | str]:
        """Return the scores of each text, or the reason that it has none.

        Raises:
            CoreEvalError: no text can be scored.
        """
        ...
