"""A network of transformers on this machine: how it is loaded, and what all kinds share."""

import io
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from coreeval.errors import CoreEvalError, RunError, UsageError
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

Precision = Literal["float32", "bfloat16"]
"""The number format of a model's arithmetic; also of its weights, unless all of them are trained,
which needs 32 bits."""
Encoded = TypeVar("Encoded")
"""A text in the form for training."""


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


def choose_precision(asked: Precision | Literal["auto"], device: str) -> Precision:
    """Return the precision to use: the requested one, or bfloat16 on a GPU and float32 on a CPU."""
    if asked != "auto":
        return asked
    return "float32" if device == "cpu" else "bfloat16"


def free_device_memory(device: str) -> int | None:
    """Return the free bytes of a device; None if unknown."""
    if device == "cpu":
        return free_memory()
    import torch

    return int(torch.cuda.mem_get_info(device)[0])


class LoadedParts(NamedTuple):
    """What transformers loaded."""

    network: Any
    tokenizer: Any
    precision: Precision
    missing: Sequence[str]
    """The tensors that are not in the files, which transformers initialized randomly."""


class LoadedNetwork(ABC, Generic[Encoded]):
    """A loaded model that can label texts and be trained.

    Args:
        parts: What transformers loaded.
        name: Its name in errors, such as `hf:models/smol`.
        device: Where it is.
        most_tokens: The most tokens of a text.
    """

    def __init__(self, parts: LoadedParts, name: str, device: str, most_tokens: int) -> None:
        self.network, self.name, self.device = parts.network, name, device
        self.precision = parts.precision
        self._tokenizer = parts.tokenizer
        self.window: int | None = getattr(parts.network.config, "max_position_embeddings", None)
        self._most = min(most_tokens, self.window or most_tokens)
        added = getattr(parts.tokenizer, "added_tokens_decoder", {}).values()
        self._controls = sorted(
            (str(one) for one in added if one.special and len(str(one)) > 1), key=len, reverse=True
        )
        """Special tokens, which texts may not contain, longest first."""

    @abstractmethod
    def encode_answer(self, prompt: str, label: str) -> Encoded:
        """Return a question with its label, in the form for training."""

    @abstractmethod
    def encode_text(self, text: str) -> Encoded:
        """Return a text without a label, in the form for training."""

    @abstractmethod
    def loss(self, texts: Sequence[Encoded]) -> "torch.Tensor":
        """Return the mean loss of texts."""

    @abstractmethod
    def score_labels(
        self, prompts: Sequence[str], labels: Sequence[str], *, batch: int
    ) -> NDArray[np.float64]:
        """Return the log-probability of each label after each question.

        Returns:
            An array of shape (questions, labels).
        """

    @property
    def head(self) -> "Mapping[str, torch.nn.Module]":
        """Return the layers that no file has, by name; adapters train them as a whole."""
        return {}

    @contextmanager
    def starting_afresh(self) -> Iterator[None]:
        """Give the head new random values for the block, and afterwards the former ones."""
        yield

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
        hint="check that it is a causal language model (or an encoder, for `detect finetune`) with "
        "its tokenizer, and that the installed transformers supports it",
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


def load_parts(
    weights: Weights,
    device: str,
    kind: str,
    *,
    needed: int,
    full: bool = False,
    precision: Precision | Literal["auto"] = "auto",
    config: Mapping[str, object] | None = None,
) -> LoadedParts:
    """Load a network from this machine, without downloads and without running the model's code.

    Args:
        weights: Where it is.
        device: The device to load it on.
        kind: The class of transformers, such as `AutoModelForCausalLM`.
        needed: The bytes that it needs.
        full: Whether all weights will be trained, which takes 32 bits per weight.
        precision: The precision of its arithmetic; see `choose_precision`.
        config: Values in place of those in its config; layers that no longer fit are made anew.

    Raises:
        UsageError: it does not fit into memory, or transformers cannot read it.
    """
    with require_extra(EXTRA, "a local model"):
        import torch
        import transformers
    require_memory(weights, needed, free_device_memory(device), device)
    auto = getattr(transformers, kind)
    chosen = choose_precision(precision, device)
    dtype = torch.bfloat16 if chosen == "bfloat16" and not full else torch.float32
    named: dict[str, object] = {"use_safetensors": True}
    if weights.gguf:  # weights left packed would need kernels, which transformers downloads
        unpacked = transformers.GgufConfig(gguf_file=weights.gguf, dequantize=True)
        named = {"gguf_file": weights.gguf, "quantization_config": unpacked}
    place = {"local_files_only": True, "trust_remote_code": False}
    shared = {"gguf_file": weights.gguf} if weights.gguf else {}
    try:
        with _quiet():
            read = transformers.AutoConfig.from_pretrained
            changes = {"return_dict": True, **(config or {})}
            settings = read(weights.folder, **place, **shared, **changes)
            with torch.device("meta"):  # takes no memory
                empty = auto.from_config(settings, trust_remote_code=False)
            _refuse_larger(empty, weights)
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                weights.folder, **place, **shared
            )
            if type(tokenizer.model_max_length) not in (int, float):  # as if the file stated none
                tokenizer.model_max_length = sys.maxsize
            network, found = auto.from_pretrained(
                weights.folder,
                config=settings,
                dtype=dtype,
                ignore_mismatched_sizes=config is not None,
                output_loading_info=True,
                **place,
                **named,
            )
    except CoreEvalError:
        raise
    except Exception as error:  # noqa: BLE001 - files of somebody else's go wrong in every way
        raise refuse_model(error, str(weights.folder / weights.gguf)) from None
    unfit = (one if isinstance(one, str) else one[0] for one in found["mismatched_keys"])
    missing = sorted({*found["missing_keys"], *unfit})
    return LoadedParts(network.to(device), tokenizer, chosen, missing)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress bars of transformers, which no setting turns off, and its remarks."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(level)


def require_tensors(weights: Weights, missing: Sequence[str]) -> None:
    """Check that the files of a model have all its tensors.

    Raises:
        UsageError: some are missing.
    """
    if missing:
        raise UsageError(
            f"{len(missing)} tensors of the model, such as {missing[0]}, are not in its files; "
            "transformers would initialize them randomly",
            where=str(weights.folder / weights.gguf),
            hint="download or copy the model again, with its config.json",
        )
