"""Membership scores: how much a text's log-probabilities look like those of a read text.

Each score is higher for texts that were read. No score means anything by itself, because the
probability of a text depends mainly on its words; scores are compared with those of unread twins.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, exp, log
from typing import Final, Literal

from coreeval.tools.text_scores import TextScores

Method = Literal["min_k_plus", "min_k", "dc_pdd", "zlib", "codec"]
SHARE: Final = 0.2
"""The share of least probable tokens in Min-K% (Shi et al. 2024: 20 % is best)."""
LARGEST_DIVERGENCE: Final = 0.01
"""The upper limit of a token's divergence in DC-PDD (the authors' code: `a` of 0.01)."""
DEFINITIONS: Final[Mapping[Method, str]] = {
    "min_k_plus": "Min-K%++ (Zhang et al. 2024, arXiv 2404.02936): each token's "
    "log-probability is standardised with the mean and the standard deviation over the vocabulary "
    "at its position, and the score is the mean of the lowest 20 % of these values",
    "min_k": "Min-K% (Shi et al. 2024, arXiv 2310.16789): the mean of the lowest 20 % of the "
    "tokens' log-probabilities",
    "dc_pdd": "DC-PDD (Zhang et al. 2024, arXiv 2409.14781): at the first occurrence of each "
    "token, its probability is multiplied by the negative log of its frequency in all texts of the "
    "study, and products above 0.01 are set to 0.01; the score is the mean of the products",
    "zlib": "zlib ratio (Carlini et al. 2021, arXiv 2012.07805): the mean log-probability of the "
    "tokens, divided by the size of the zlib-compressed text in bytes",
    "codec": "CoDeC (Zawalski et al. 2025, arXiv 2510.27055): the mean log-probability of the "
    "tokens when the text stands alone, minus that when other texts of the same arm precede it",
}


def min_k(scores: TextScores) -> float:
    """Return the mean of the lowest log-probabilities, of at least one token."""
    return _mean_lowest(scores.logprobs)


def min_k_plus(scores: TextScores) -> float | None:
    """Return the mean of the lowest standardised log-probabilities; None without weights."""
    if not scores.means:
        return None
    return _mean_lowest(
        [
            (logprob - mean) / max(deviation, 1e-6)
            for logprob, mean, deviation in zip(
                scores.logprobs, scores.means, scores.deviations, strict=True
            )
        ]
    )


def _mean_lowest(values: Sequence[float]) -> float:
    number = ceil(SHARE * len(values))
    return sum(sorted(values)[:number]) / number


def zlib_ratio(scores: TextScores, text: str) -> float:
    """Return the mean log-probability over the bytes of the compressed text."""
    return mean_logprob(scores) / len(zlib.compress(text.encode()))


def mean_logprob(scores: TextScores) -> float:
    """Return the mean log-probability of a token."""
    return scores.total / len(scores.logprobs)


class TokenFrequencies:
    """The frequencies of tokens in some texts, with Laplace smoothing."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        self._counts = Counter(token for tokens in texts for token in tokens)
        self._all = self._counts.total() + len(self._counts) + 1

    def find(self, token: str) -> float:
        """Return the frequency of a token, above 0."""
        return (self._counts[token] + 1) / self._all


def dc_pdd(scores: TextScores, frequencies: TokenFrequencies) -> float | None:
    """Return the mean divergence of the tokens from their frequency; None without tokens."""
    first = dict[str, float]()
    for token, logprob in zip(scores.tokens, scores.logprobs, strict=False):
        if token not in first:
            divergence = -exp(logprob) * log(frequencies.find(token))
            first[token] = min(divergence, LARGEST_DIVERGENCE)
    return sum(first.values()) / len(first) if first else None


def context_loss(alone: TextScores, in_context: TextScores) -> float | None:
    """Return how much less probable a token is with other texts before it, on average.

    Args:
        alone: The scores of the text.
        in_context: The scores of the other texts with the text at the end.

    Returns:
        A difference of log-probabilities, above 0 where context made the text less probable; None
        if the context has no token.
    """
    number = len(alone.logprobs)
    if len(in_context.logprobs) <= number:
        return None
    within = in_context.logprobs[-number:]
    return mean_logprob(alone) - sum(within) / number
