"""A causal language model on this machine: label probabilities, and losses on texts."""

import copy
import inspect
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import CoreEvalError, RunError, UsageError
from coreeval.models.chat_template import ChatTemplate, TemplateError, open_template
from coreeval.models.weights import (
    EXTRA,
    Weights,
    declares_too_much,
    free_memory,
    require_memory,
)
from coreeval.tools.extras import require_extra

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


def choose_device(asked: str, *, where: str = "--device") -> str:
    """Return the device to use: the requested one, or a GPU if there is one.

    Args:
        asked: `auto`, `cpu`, `cuda` or `cuda:N`.
        where: The setting that an error names.

    Raises:
        UsageError: torch is not installed, or the device does not exist.
    """
    with require_extra(EXTRA, "a local model"):
        import torch

    if asked == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    there = ["cpu", *(f"cuda:{at}" for at in range(torch.cuda.device_count()))]
    wanted = "cuda:0" if asked == "cuda" else asked
    if wanted not in there:
        hint = f"use one of {', '.join(there)}"
        raise UsageError(f"device {asked!r} does not exist", where=where, hint=hint)
    return wanted


def free_device_memory(device: str) -> int | None:
    """Return the free bytes of a device; None if unknown."""
    if device == "cpu":
        return free_memory()
    import torch

    return int(torch.cuda.mem_get_info(device)[0])


class LocalModel:
    """A loaded model.

    Args:
        network: The model of transformers.
        tokenizer: Its tokenizer.
        name: Its name in errors, such as `hf:models/smol`.
        device: Where it is.
        most_tokens: The most tokens of a question with its label.
    """

    def __init__(
        self,
        network: Any,  # noqa: ANN401 - transformers has no types
        tokenizer: Any,  # noqa: ANN401
        name: str,
        device: str,
        most_tokens: int,
    ) -> None:
        self.network, self.name, self.device = network, name, device
        self._tokenizer = tokenizer
        self._takes = inspect.signature(network.forward).parameters
        self._cache = "cache" if "cache" in self._takes else "past_key_values"
        self.window: int | None = getattr(network.config, "max_position_embeddings", None)
        self._most = min(most_tokens, self.window or most_tokens)
        self.chat: Chat = "chat" if getattr(tokenizer, "chat_template", None) else "plain"
        added = getattr(tokenizer, "added_tokens_decoder", {}).values()
        self._controls = sorted(
            (str(one) for one in added if one.special and len(str(one)) > 1), key=len, reverse=True
        )
        """Special tokens, which texts may not contain, longest first."""

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

    def _break_controls(self, text: str) -> str:
        """Return a text without special tokens that open or close a turn."""
        for control in self._controls:
            text = text.replace(control, f"{control[0]} {control[1:]}")
        return text

    def _tokenise(self, text: str, **options: bool) -> list[int]:
        try:
            return list(self._tokenizer(text, **options)["input_ids"])
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # from Rust: not an `Exception`
                raise
            raise refuse_model(error, self.name) from None

    def _limit(self, tokens: list[int]) -> list[int]:
        if len(tokens) > self._most:
            raise UsageError(
                f"a text has {len(tokens)} tokens, but only {self._most} are allowed",
                where="--max-tokens",
                hint="allow more tokens, within the model's limit, or remove long samples",
            )
        return tokens

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

    def check_numbers(self, logits: "torch.Tensor") -> None:
        """Check the network's output.

        Raises:
            UsageError: the values are not finite.
        """
        if logits.isnan().any():
            raise UsageError(
                "the model returned NaN: its weights are damaged, or its training diverged",
                where=self.name,
                hint="download or copy the weights again; if you trained them, use a lower "
                "learning rate",
            )

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

    @contextmanager
    def guarded(self, batch: int) -> Iterator[None]:
        """Report errors of torch inside the block as errors for the user.

        Raises:
            RunError: the device is out of memory.
            UsageError: the model cannot be run, for example because it has no embedding for a
                token.
        """
        try:
            yield
        except CoreEvalError:
            raise
        except (RuntimeError, MemoryError, LookupError, TypeError, ValueError) as error:
            if not is_out_of_memory(error):
                raise refuse_model(error, self.name) from error
            self.free_cache()
            raise RunError(
                f"{self.device} ran out of memory with {batch} texts at a time",
                where="--batch",
                hint=f"use --batch {max(1, batch // 2)}, or use a smaller model",
            ) from None

    def free_cache(self) -> None:
        """Release memory that torch caches."""
        if self.device != "cpu":
            import torch

            torch.cuda.empty_cache()


def refuse_model(error: BaseException, where: str) -> UsageError:
    """Return the error that says that a model cannot be used."""
    return UsageError(
        f"the model cannot be used: {type(error).__name__}: {describe(error)}",
        where=where,
        hint="check that it is a causal language model with its tokenizer, and that the installed "
        "transformers supports it",
    )


def describe(error: BaseException) -> str:
    """Return the first line of an error."""
    return (str(error).splitlines() or ["?"])[0][:300]


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that a device is out of memory."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "out of memory" in said or "allocate memory" in said


def _refuse_larger(network: "torch.nn.Module", weights: Weights) -> None:
    """Refuse a network that is much larger than its files: transformers would fill the rest.

    Raises:
        UsageError: it is.
    """
    numbers = sum(one.numel() for one in (*network.parameters(), *network.buffers()))
    if declares_too_much(numbers, weights):
        raise UsageError(
            f"the config describes a larger model than its weights: {numbers / 1e6:,.0f} million "
            f"parameters, but the files contain {weights.parameters / 1e6:,.1f} million",
            where=str(weights.folder / weights.gguf),
            hint="download or copy the model again, with its config.json",
        )


def load_model(
    weights: Weights, device: str, *, full: bool, needed: int, most_tokens: int
) -> LocalModel:
    """Load a model from this machine, without downloads and without running the model's code.

    Args:
        weights: Where it is.
        device: The device to load it on.
        full: Whether all weights will be trained, which takes 32 bits per weight.
        needed: The bytes that it needs.
        most_tokens: The most tokens of a question with its label.

    Raises:
        UsageError: it does not fit into memory, or transformers cannot read it.
    """
    with require_extra(EXTRA, "a local model"):
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    require_memory(weights, needed, free_device_memory(device), device)
    where = str(weights.folder / weights.gguf)
    kind = torch.float32 if full or device == "cpu" else torch.bfloat16
    named = {"gguf_file": weights.gguf} if weights.gguf else {"use_safetensors": True}
    place = {"local_files_only": True, "trust_remote_code": False}
    shared = {"gguf_file": weights.gguf} if weights.gguf else {}
    try:
        with redirect_stderr(io.StringIO()):  # progress bars, which no setting turns off
            config = AutoConfig.from_pretrained(weights.folder, **place, **shared)
            with torch.device("meta"):  # takes no memory
                empty = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
            _refuse_larger(empty, weights)
            tokenizer = AutoTokenizer.from_pretrained(weights.folder, **place, **shared)
            network, found = AutoModelForCausalLM.from_pretrained(
                weights.folder,
                config=config,
                dtype=kind,
                output_loading_info=True,
                **place,
                **named,
            )
    except CoreEvalError:
        raise
    except Exception as error:  # noqa: BLE001 - files of somebody else's go wrong in every way
        raise refuse_model(error, where) from None
    if missing := sorted({*found["missing_keys"], *map(str, found["mismatched_keys"])}):
        raise UsageError(
            f"{len(missing)} tensors of the model, such as {missing[0]}, are not in its files; "
            "transformers would initialize them randomly",
            where=where,
            hint="download or copy the model again, with its config.json",
        )
    return LocalModel(network.to(device), tokenizer, weights.name, device, most_tokens)
