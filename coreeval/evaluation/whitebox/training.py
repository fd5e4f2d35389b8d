"""Trains a local model on leaked samples, and restores it afterwards."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Final

from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import TrainingItem
from coreeval.models.loaded_network import Encoded, LoadedNetwork
from coreeval.models.weights import EXTRA
from coreeval.tools.extras import require_extra

if TYPE_CHECKING:
    import torch

LARGEST_NORM: Final = 1.0
"""Gradients are clipped to this norm, the default of Hugging Face's Trainer."""


@contextmanager
def trained(
    model: LoadedNetwork[Any],
    items: Sequence[TrainingItem],
    labels: Sequence[str],
    settings: TrainingSettings,
    *,
    seed: int,
    on_batch: Callable[[int, int], None],
) -> Iterator[None]:
    """Train a model for the block; afterwards, restore it.

    Args:
        model: The model.
        items: The training data; without any, the model is not changed.
        labels: The labels of the task.
        settings: The training settings.
        seed: The seed of the order, of adapters and of dropout.
        on_batch: Receives the number of batches done and their total.

    Raises:
        RunError: the device is out of memory.
    """
    if not items:
        yield
        return
    with _trainable(model, settings, seed) as parameters:
        model.network.train()
        with model.guarded(settings.batch):
            _run_epochs(model, items, labels, settings, parameters, Random(seed), on_batch)
        model.network.eval()
        yield


def _run_epochs(
    model: LoadedNetwork[Any],
    items: Sequence[TrainingItem],
    labels: Sequence[str],
    settings: TrainingSettings,
    parameters: "Sequence[torch.Tensor]",
    chance: Random,
    on_batch: Callable[[int, int], None],
) -> None:
    import torch

    steps = -(-len(items) // settings.batch) * settings.epochs
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=0.0)
    done = 0
    for epoch in range(settings.epochs):
        order = list(range(len(items)))
        chance.shuffle(order)
        for start in range(0, len(order), settings.batch):
            some = order[start : start + settings.batch]
            texts = [encode_item(model, items[at], labels, turn=at + epoch) for at in some]
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - done / steps)
            with torch.autocast(model.device.partition(":")[0], torch.bfloat16,
                                enabled=model.precision == "bfloat16"):  # fmt: skip
                loss = model.loss(texts)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, LARGEST_NORM)
            optimizer.step()
            optimizer.zero_grad()
            done += 1
            on_batch(done, steps)


def encode_item(
    model: LoadedNetwork[Encoded], item: TrainingItem, labels: Sequence[str], *, turn: int
) -> Encoded:
    """Return a text in the form for training: the text alone, or a question with its label.

    The templates of the task alternate, so that each epoch uses another one.
    """
    text = item.text
    if not item.with_label:
        return model.encode_text(text.text)
    return model.encode_answer(text.prompts[turn % len(text.prompts)], labels[text.label])


@contextmanager
def _trainable(
    model: LoadedNetwork[Any], settings: TrainingSettings, seed: int
) -> "Iterator[Sequence[torch.Tensor]]":
    """Yield the parameters to train, and restore them at the end."""
    import torch

    torch.manual_seed(seed)
    way = _with_adapters if settings.method == "lora" else _with_all
    with model.starting_afresh(), way(model, settings) as parameters:
        try:
            yield parameters
        finally:
            model.network.zero_grad(set_to_none=True)
            model.network.eval()
    model.free_cache()


@contextmanager
def _with_adapters(
    model: LoadedNetwork[Any], settings: TrainingSettings
) -> "Iterator[Sequence[torch.Tensor]]":
    """Add low-rank adapters to all linear layers (Hu et al. 2021) and remove them at the end."""
    with require_extra(EXTRA, "training adapters"):
        from peft import LoraConfig, get_peft_model

    network = model.network
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules="all-linear",
        exclude_modules=[*model.head] or None,
    )
    with warnings.catch_warnings():  # peft and transformers warn about each other's old names
        warnings.simplefilter("ignore", FutureWarning)
        adapted = get_peft_model(network, config)
    for layer in model.head.values():
        layer.requires_grad_(True)
    try:
        yield [each for each in network.parameters() if each.requires_grad]
    finally:
        adapted.unload()
        network.requires_grad_(True)
        if hasattr(network, "peft_config"):
            del network.peft_config


@contextmanager
def _with_all(
    model: LoadedNetwork[Any], _settings: TrainingSettings
) -> "Iterator[Sequence[torch.Tensor]]":
    """Keep a copy of all weights, and restore them at the end."""
    network = model.network
    before = {
        name: each.detach().to("cpu", copy=True) for name, each in network.state_dict().items()
    }
    network.requires_grad_(True)
    try:
        yield list(network.parameters())
    finally:
        network.load_state_dict(before)
