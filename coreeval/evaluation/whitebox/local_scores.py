"""The log-probabilities of texts under a model on this machine, stored one by one."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import UsageError
from coreeval.evaluation.whitebox.result_file import ResultFile
from coreeval.models.local_model import LocalModel, TokenisedText
from coreeval.schema import Value
from coreeval.tools.text_scores import TextScores

DECIMALS: Final = 5
NO_TOKENS: Final = "it has fewer than two tokens"


class ScoringHeader(Value):
    """What scores depend on besides the text: the first line of their file."""

    model: str
    revision: str
    """The commit of the hub, or the hash of the weights files."""
    device: str
    max_tokens: int


class ScoredText(Value):
    """The result of scoring a text."""

    key: str
    """The hash of the text."""
    scores: TextScores | None = None
    reason: str = ""
    """Why there are none."""


class ScoreFile(ResultFile[str, ScoredText]):
    """The scores of texts by one model."""

    def __init__(self, path: Path, header: ScoringHeader) -> None:
        super().__init__(
            path,
            header,
            result=ScoredText,
            key=lambda result: result.key,
            what="scored texts",
        )


def hash_text(text: str) -> str:
    """Return the key of a text in a score file."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def ignore_batch(_done: int, _total: int) -> None:
    """Ignore the progress."""


class LocalScorer:
    """A `TextScorer` with weights.

    Args:
        open_model: Returns the model; called if a text has not been scored.
        batch: The number of texts per batch.
        detailed: Whether tokens, means and deviations are returned with the log-probabilities.
        results: The file of stored scores; None stores none.
        on_batch: Receives the number of texts that are scored and their total.
    """

    def __init__(
        self,
        open_model: Callable[[], LocalModel],
        *,
        batch: int = 8,
        detailed: bool = True,
        results: ScoreFile | None = None,
        on_batch: Callable[[int, int], None] = ignore_batch,
    ) -> None:
        self._open_model, self._batch, self._detailed = open_model, batch, detailed
        self._results, self._on_batch = results, on_batch

    def score_texts(self, texts: Iterable[str]) -> dict[str, TextScores | str]:
        """Return the scores of each text, or why it has none: too long, or too few tokens.

        Raises:
            RunError: the device ran out of memory; scores so far are kept.
            RunCorrupt: a kept result is damaged.
        """
        every = {hash_text(text): text for text in texts}
        known = self._results.read() if self._results else {}
        found = {key: known[key] for key in every if key in known}
        left = {key: text for key, text in every.items() if key not in known}
        for some in self._score_new(left) if left else ():
            if self._results:
                self._results.add(*some)
            found |= {each.key: each for each in some}
            self._on_batch(len(found), len(every))
        return {
            text: found[key].reason if (scores := found[key].scores) is None else scores
            for key, text in every.items()
        }

    def _score_new(self, texts: dict[str, str]) -> Iterator[list[ScoredText]]:
        model, refused = self._open_model(), list[ScoredText]()
        tokenised = dict[str, TokenisedText]()
        for key, text in texts.items():
            try:
                tokenised[key] = model.encode_text(text)
            except UsageError as error:
                refused.append(ScoredText(key=key, reason=error.message))
                continue
            if len(tokenised[key].tokens) < 2:
                refused.append(ScoredText(key=key, reason=NO_TOKENS))
                del tokenised[key]
        if refused:
            yield refused
        order = sorted(tokenised, key=lambda key: -len(tokenised[key].tokens))
        for start in range(0, len(order), self._batch):
            keys = order[start : start + self._batch]
            scores = score_tokens(
                model, [tokenised[key].tokens for key in keys], detailed=self._detailed
            )
            yield [ScoredText(key=key, scores=each) for key, each in zip(keys, scores, strict=True)]


def score_tokens(
    model: LocalModel, texts: Sequence[Sequence[int]], *, detailed: bool
) -> list[TextScores]:
    """Return the scores of tokenised texts, computed in one batch.

    The mean and the deviation of the vocabulary's log-probabilities are under the model's own
    distribution, as in Min-K%++ (Zhang et al. 2024, arXiv 2404.02936, section 4).
    """
    import torch

    longest = max(map(len, texts))
    ids = torch.tensor([[*one, *[0] * (longest - len(one))] for one in texts])
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in texts])
    found = list[TextScores]()
    model.network.eval()
    with model.guarded(len(texts)), torch.inference_mode():
        said = model.network(
            input_ids=ids.to(model.device), attention_mask=mask.to(model.device), use_cache=False
        )
        model.check_numbers(said.logits)
        for row, tokens in enumerate(texts):
            logs = torch.log_softmax(said.logits[row, : len(tokens) - 1].float(), dim=-1)
            due = torch.tensor(tokens[1:], device=logs.device)
            columns = [logs.gather(1, due.unsqueeze(1)).squeeze(1)]
            if detailed:
                chance = logs.exp()
                mean = (chance * logs).sum(dim=1)
                spread = (chance * (logs - mean.unsqueeze(1)).square()).sum(dim=1)
                columns += [mean, spread.sqrt()]
            found.append(_make_scores(tokens, [one.double().cpu().numpy() for one in columns]))
    return found


def _make_scores(tokens: Sequence[int], columns: Sequence[NDArray[np.float64]]) -> TextScores:
    rounded = [tuple(np.round(each, DECIMALS).tolist()) for each in columns]
    if len(rounded) == 1:
        return TextScores(logprobs=rounded[0])
    return TextScores(
        logprobs=rounded[0],
        tokens=tuple(map(str, tokens[1:])),
        means=rounded[1],
        deviations=rounded[2],
    )
