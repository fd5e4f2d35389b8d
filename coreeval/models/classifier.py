"""An encoder on this machine with a classification head, which learns the labels of one task.

Encoders such as BERT write no text, so they cannot be asked before they are trained: the head
starts from random values, new ones for each training.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import UsageError
from coreeval.models.loaded_network import (
    LoadedNetwork,
    LoadedParts,
    Precision,
    load_parts,
    require_tensors,
)
from coreeval.models.weights import Weights

if TYPE_CHECKING:
    import torch

_HEAD_DEVIATION: Final = 0.02
"""The standard deviation of the head's first values, as in BERT."""


@dataclass(frozen=True)
class LabelledTokens:
    """A question and the number of its label."""

    tokens: tuple[int, ...]
    label: int


class LocalClassifier(LoadedNetwork[LabelledTokens]):
    """A loaded encoder with a classification head.

    Args:
        parts: What transformers loaded; the tensors that no file has are those of the head.
        name: Its name in errors, such as `hf:models/bert`.
        device: Where it is.
        most_tokens: The most tokens of a question.
        labels: The labels of the task.
    """

    def __init__(
        self, parts: LoadedParts, name: str, device: str, most_tokens: int, labels: Sequence[str]
    ) -> None:
        super().__init__(parts, name, device, most_tokens)
        longest = getattr(parts.tokenizer, "model_max_length", None)
        if isinstance(longest, int) and longest > 0:
            self._most = min(self._most, longest)
        self._numbers = {label: number for number, label in enumerate(labels)}
        self._missing = {name.rpartition(".")[0] for name in parts.missing}

    def encode_answer(self, prompt: str, label: str) -> LabelledTokens:
        """Return a question with the number of its label.

        Raises:
            UsageError: the question is too long.
        """
        return LabelledTokens(tuple(self._encode(prompt)), self._numbers[label])

    def encode_text(self, text: str) -> LabelledTokens:
        """Refuse a text without a label.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "an encoder cannot be trained on texts without labels",
            where=self.name,
            hint="omit --leak text, or use a causal language model",
        )

    def _encode(self, prompt: str) -> list[int]:
        return self._limit(self._tokenise(self._break_controls(prompt)))

    def score_labels(
        self, prompts: Sequence[str], labels: Sequence[str], *, batch: int
    ) -> NDArray[np.float64]:
        """Return the log-probability of each label after each question.

        Returns:
            An array of shape (questions, labels).
        """
        import torch

        questions = [self._encode(prompt) for prompt in prompts]
        columns = [self._numbers[label] for label in labels]
        found = np.empty((len(questions), len(columns)))
        order = sorted(range(len(questions)), key=lambda at: len(questions[at]))
        self.network.eval()
        with self.guarded(batch), torch.inference_mode():
            for start in range(0, len(order), batch):
                some = order[start : start + batch]
                logs = torch.log_softmax(self._run([questions[at] for at in some]), dim=-1)
                found[some] = logs[:, columns].double().cpu().numpy()
        return found

    def loss(self, texts: Sequence[LabelledTokens]) -> "torch.Tensor":
        """Return the mean loss of the labels."""
        import torch

        due = torch.tensor([one.label for one in texts], device=self.device)
        return torch.nn.functional.cross_entropy(self._run([one.tokens for one in texts]), due)

    def _run(self, texts: Sequence[Sequence[int]]) -> "torch.Tensor":
        """Return the logits of the labels of tokenised texts."""
        import torch

        longest = max(map(len, texts))
        ids = torch.tensor([[*one, *[0] * (longest - len(one))] for one in texts])
        mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in texts])
        said = self.network(input_ids=ids.to(self.device), attention_mask=mask.to(self.device))
        self.check_numbers(said.logits)
        logits: torch.Tensor = said.logits.float()
        return logits

    @property
    def head(self) -> "Mapping[str, torch.nn.Module]":
        """Return the layers that no file has, by name: the head, and perhaps a pooler."""
        return {
            name: module for name, module in self.network.named_modules() if name in self._missing
        }

    @contextmanager
    def starting_afresh(self) -> Iterator[None]:
        """Give the head new random values for the block, and afterwards the former ones."""
        import torch

        layers = self.head.values()
        head = [each for layer in layers for each in layer.named_parameters(recurse=False)]
        before = [each.data.clone() for _, each in head]
        for name, each in head:
            if each.dim() > 1:
                torch.nn.init.normal_(each, std=_HEAD_DEVIATION)
            else:
                torch.nn.init.constant_(each, 0.0 if name == "bias" else 1.0)
        try:
            yield
        finally:
            for (_, each), data in zip(head, before, strict=True):
                each.data.copy_(data)


def load_classifier(
    weights: Weights,
    device: str,
    labels: Sequence[str],
    *,
    needed: int,
    most_tokens: int,
    precision: Precision | Literal["auto"] = "auto",
) -> LocalClassifier:
    """Load an encoder from this machine, and add a head with random values.

    Its weights have 32 bits, because the head is trained as a whole. The arguments are those of
    `load_model`, and the labels of the task.

    Raises:
        UsageError: it does not fit into memory, or transformers cannot read it.
    """
    parts = load_parts(
        weights,
        device,
        "AutoModelForSequenceClassification",
        needed=needed,
        full=True,
        precision=precision,
        config={"num_labels": len(labels)},
    )
    inside = f"{parts.network.base_model_prefix}."
    require_tensors(
        weights,
        [name for name in parts.missing if name.startswith(inside) and "pooler" not in name],
    )
    return LocalClassifier(parts, weights.name, device, most_tokens, labels)
