"""A causal language model on this machine: label probabilities, and losses on texts."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import UsageError
from coreeval.models.chat_template import ChatTemplate, TemplateError, open_template
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

Chat = Literal["chat", "plain"]
"""Whether a question is rendered with the model's chat template or used as plain text."""
IGNORED: Final = -100
"""The target of a token that is excluded from training."""


@dataclass(frozen=True)
class TokenisedText:
    """A text to train on, and the first token that counts."""

    tokens: tuple[int, ...]
    start: int


class LocalModel(LoadedNetwork[TokenisedText]):
    """A loaded causal language model."""

    def __init__(self, parts: LoadedParts, name: str, device: str, most_tokens: int) -> None:
        super().__init__(parts, name, device, most_tokens)
        self._takes = inspect.signature(parts.network.forward).parameters
        self._cache = "cache" if "cache" in self._takes else "past_key_values"
        self.chat: Chat = "chat" if getattr(parts.tokenizer, "chat_template", None) else "plain"

    # -- tokens -----------------------------------------------------------------------------------

    def encode_question(self, prompt: str) -> list[int]:
        """Return the tokens of a question, up to the start of its answer.

        Raises:
            UsageError: the chat template cannot be used, or the question is too long.
        """
        return self._limit(self.encode_messages([{"role": "user", "content": prompt}]))

    def encode_messages(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Return all tokens of messages, up to the start of the answer.

        Without a chat template, the messages are joined with blank lines.

        Raises:
            UsageError: the chat template cannot be used.
        """
        if self.chat == "plain":
            text = self._break_controls("\n\n".join(one["content"] for one in messages))
            return self._tokenise(text)
        told = [
            {name: self._break_controls(value) for name, value in one.items()} for one in messages
        ]
        try:
            said = self._template.fill(told)
        except TemplateError as error:
            raise UsageError(
                f"the model's chat template cannot be used: {error}",
                where=self.name,
                hint="fix or delete the template in tokenizer_config.json or chat_template.jinja",
            ) from None
        return self._tokenise(said, add_special_tokens=False)

    @cached_property
    def _template(self) -> ChatTemplate:
        """The chat template; if there are several, the one that transformers chooses."""
        source = str(self._tokenizer.get_chat_template())
        return open_template(source, tuple(self._tokenizer.special_tokens_map.items()))

    def encode_label(self, label: str) -> list[int]:
        """Return the tokens of a label after a question."""
        return self.encode_ending(label if self.chat == "chat" else f" {label}")

    def encode_ending(self, text: str) -> list[int]:
        """Return the tokens of a text that continues another text."""
        return self._tokenise(text, add_special_tokens=False)

    def encode_answer(self, prompt: str, label: str) -> TokenisedText:
        """Return a question with its label and the end of the answer; only these are trained on."""
        question, end = self.encode_question(prompt), self._tokenizer.eos_token_id
        ended = [] if end is None else [end]
        return TokenisedText((*question, *self.encode_label(label), *ended), len(question))

    def encode_text(self, text: str) -> TokenisedText:
        """Return a text of which every token but the first is trained on."""
        return TokenisedText(tuple(self._limit(self._tokenise(text))), 1)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without end-of-turn tokens."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))

    @property
    def end_tokens(self) -> frozenset[int]:
        """Return the tokens that end an answer; there may be none."""
        told = getattr(self.network.generation_config, "eos_token_id", None)
        known = [*(told if isinstance(told, list) else [told]), self._tokenizer.eos_token_id]
        return frozenset(one for one in known if one is not None)

    # -- probabilities ----------------------------------------------------------------------------

    def score_labels(
        self, prompts: Sequence[str], labels: Sequence[str], *, batch: int
    ) -> NDArray[np.float64]:
        """Return the log-probability of each label after each question.

        Questions of similar length form a batch, to keep padding small.

        Returns:
            An array of shape (questions, labels).
        """
        questions = [self.encode_question(prompt) for prompt in prompts]
        with self.guarded(batch):
            endings = [self.encode_label(label) for label in labels]
            return self.score_endings(questions, endings, batch=batch)

    def score_endings(
        self, questions: Sequence[Sequence[int]], endings: Sequence[Sequence[int]], *, batch: int
    ) -> NDArray[np.float64]:
        """Return the log-probability of the tokens of each ending after those of each question.

        Returns:
            An array of shape (questions, endings).
        """
        found = np.empty((len(questions), len(endings)))
        order = sorted(range(len(questions)), key=lambda at: len(questions[at]))
        self.network.eval()
        for start in range(0, len(order), batch):
            some = order[start : start + batch]
            found[some] = self._score_batch([questions[at] for at in some], endings)
        return found

    def _score_batch(
        self, questions: Sequence[Sequence[int]], endings: Sequence[Sequence[int]]
    ) -> NDArray[np.float64]:
        import torch

        known = any(len(ending) > 1 for ending in endings)
        with torch.inference_mode():
            first, mask = self.read_questions(questions, use_cache=known)
            begun = torch.log_softmax(first.logits[:, -1].float(), dim=-1)
            columns = [
                begun[:, ending[0]] + self._score_rest(ending, first, mask) for ending in endings
            ]
            return np.asarray(torch.stack(columns, dim=1).double().cpu().numpy())

    def _score_rest(
        self,
        ending: Sequence[int],
        first: Any,  # noqa: ANN401 - transformers has no types
        mask: "torch.Tensor",
    ) -> "torch.Tensor":
        """Return the log-probability of a label after its first token, by question."""
        import torch

        if len(ending) < 2:
            return torch.zeros(len(mask), device=self.device)
        given = torch.tensor([ending[:-1]] * len(mask), device=self.device)
        due = torch.tensor([ending[1:]] * len(mask), device=self.device)
        shown = torch.cat([mask, torch.ones_like(given)], dim=1)
        place = mask.sum(dim=1, keepdim=True) + torch.arange(given.shape[1], device=self.device)
        said = self.forward(
            given,
            shown,
            place,
            keep=given.shape[1],
            use_cache=True,
            **self.cache_of(first, copied=True),
        )
        logs = torch.log_softmax(said.logits.float(), dim=-1)
        return logs.gather(2, due.unsqueeze(2)).squeeze(2).sum(dim=1)

    def read_questions(
        self, questions: Sequence[Sequence[int]], *, use_cache: bool
    ) -> "tuple[Any, torch.Tensor]":
        """Return the network's output after each question, and the attention mask.

        Questions are padded on the left, so that all end at the same position.
        """
        import torch

        longest, lengths = max(map(len, questions)), [len(one) for one in questions]
        ids = torch.tensor([[0] * (longest - len(one)) + list(one) for one in questions])
        mask = torch.tensor([[0] * (longest - n) + [1] * n for n in lengths])
        ids, mask = ids.to(self.device), mask.to(self.device)
        place = (mask.cumsum(dim=1) - 1).clamp(min=0)
        return self.forward(ids, mask, place, keep=1, use_cache=use_cache), mask

    def cache_of(self, said: Any, *, copied: bool = False) -> dict[str, Any]:  # noqa: ANN401 - transformers has no types
        """Return the argument with the network's cached state."""
        cache = getattr(said, "cache", None) or said.past_key_values
        return {self._cache: copy.deepcopy(cache) if copied else cache}

    def forward(
        self,
        ids: "torch.Tensor",
        mask: "torch.Tensor",
        place: "torch.Tensor",
        *,
        keep: int,
        **more: object,
    ) -> Any:  # noqa: ANN401 - transformers has no types
        """Return the network's output at the last `keep` positions.

        Raises:
            UsageError: the output is not finite.
        """
        given = {"position_ids": place, "logits_to_keep": keep}
        taken = {name: value for name, value in given.items() if name in self._takes}
        said = self.network(input_ids=ids, attention_mask=mask, **taken, **more)
        self.check_numbers(said.logits)
        return said

    # -- training ---------------------------------------------------------------------------------

    def loss(self, texts: Sequence[TokenisedText]) -> "torch.Tensor":
        """Return the mean loss of the tokens that are trained on."""
        import torch

        longest = max(len(one.tokens) for one in texts)
        padded = [[*one.tokens, *[0] * (longest - len(one.tokens))] for one in texts]
        mask = [[1] * len(one.tokens) + [0] * (longest - len(one.tokens)) for one in texts]
        due = [
            [IGNORED] * one.start
            + list(one.tokens[one.start :])
            + [IGNORED] * (longest - len(one.tokens))
            for one in texts
        ]
        ids, masks, dues = (torch.tensor(each, device=self.device) for each in (padded, mask, due))
        said = self.network(input_ids=ids, attention_mask=masks, use_cache=False)
        self.check_numbers(said.logits)
        logits = said.logits[:, :-1].float().flatten(0, 1)
        return torch.nn.functional.cross_entropy(
            logits, dues[:, 1:].flatten(), ignore_index=IGNORED
        )


def load_model(
    weights: Weights,
    device: str,
    *,
    needed: int,
    most_tokens: int,
    full: bool = False,
    precision: Precision | Literal["auto"] = "auto",
) -> LocalModel:
    """Load a model from this machine, without downloads and without running the model's code.

    Args:
        weights: Where it is.
        device: The device to load it on.
        needed: The bytes that it needs.
        most_tokens: The most tokens of a question with its label.
        full: Whether all weights will be trained, which takes 32 bits per weight.
        precision: The precision of its arithmetic; see `choose_precision`.

    Raises:
        UsageError: it does not fit into memory, or transformers cannot read it.
    """
    if weights.is_encoder:
        raise UsageError(
            "the model is an encoder, which writes no text",
            where=weights.name,
            hint="use a causal language model; only `detect finetune` takes encoders",
        )
    parts = load_parts(
        weights, device, "AutoModelForCausalLM", needed=needed, full=full, precision=precision
    )
    require_tensors(weights, parts.missing)
    return LocalModel(parts, weights.name, device, most_tokens)
