"""Tiny models with random weights, made on the spot: no download, seconds to train."""

from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

WORDS = (
    "Read the tweet and decide which emotion its author expresses. anger joy optimism sadness "
    "what a lovely day I hate this so much my dog died better days are coming Label: Answer"
)
CHAT = "{% for m in messages %}<user>{{ m['content'] }}</user>{% endfor %}<bot>"


def save_model(folder: Path, *, chat: str | None = None, seed: int = 0) -> Path:
    """Write a model of two layers without a pad token, and its tokenizer."""
    raw = Tokenizer(models.BPE(unk_token=None))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator([WORDS], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<end>")
    tokenizer.chat_template = chat
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=600,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def states(network: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield a copy of each weight."""
    for each in network.state_dict().values():
        yield each.clone()


def save_encoder(folder: Path, *, seed: int = 0) -> Path:
    """Write an encoder of two layers without a head, and its tokenizer."""
    raw = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        special_tokens=["[PAD]", "[UNK]", "[CLS]"], show_progress=False
    )
    raw.train_from_iterator([WORDS], trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=600,
    )
    BertModel(config).save_pretrained(folder)
    return folder
