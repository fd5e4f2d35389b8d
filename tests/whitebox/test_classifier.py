"""Encoders with a classification head: they learn labels, and every training is taken back."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from transformers import ModernBertConfig, ModernBertForSequenceClassification

from coreeval.errors import UsageError
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import LabelledText, TrainingItem
from coreeval.evaluation.whitebox.training import trained
from coreeval.graph.finetune import run_finetune
from coreeval.graph.finetune_plan import FinetuneRequest, plan_finetune
from coreeval.models.classifier import LocalClassifier, load_classifier
from coreeval.models.local_model import load_model
from coreeval.models.weights import find_weights
from tests.graph.kit import Lab
from tests.whitebox.kit import save_encoder, save_model

LABELS = ("anger", "joy", "sadness")
TEXTS = ("I hate this so much", "what a lovely day", "my dog died", "days are coming " * 9)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny encoder."""
    return save_encoder(tmp_path_factory.mktemp("encoder"))


def opened(folder: Path, labels: tuple[str, ...] = LABELS) -> LocalClassifier:
    """Load an encoder on the CPU."""
    return load_classifier(find_weights(f"hf:{folder}"), "cpu", labels, needed=1, most_tokens=400)


def items(number: int) -> list[TrainingItem]:
    """Return texts whose labels are learnt easily."""
    some = [(TEXTS[at % 3], at % 3) for at in range(number)]
    return [
        TrainingItem(LabelledText(str(at), (text,), text, label), with_label=True)
        for at, (text, label) in enumerate(some)
    ]


def ignored(_done: int, _total: int) -> None:
    """Ignore the progress."""


def test_only_encoders_are_told_to_be_encoders(encoder: Path, tmp_path: Path) -> None:
    assert find_weights(f"hf:{encoder}").is_encoder
    assert not find_weights(f"hf:{save_model(tmp_path)}").is_encoder
    config = encoder / "config.json"
    before = config.read_text()
    try:
        config.write_text(json.dumps(json.loads(before) | {"architectures": ["BertForCausalLM"]}))
        assert not find_weights(f"hf:{encoder}").is_encoder
    finally:
        config.write_text(before)


@pytest.mark.parametrize("batch", [1, 3])
def test_labels_have_probabilities_whatever_the_batch_and_their_order(
    encoder: Path, batch: int
) -> None:
    model = opened(encoder)
    found = model.score_labels(TEXTS, LABELS, batch=batch)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, atol=1e-5)
    alone = np.concatenate([model.score_labels([one], LABELS, batch=1) for one in TEXTS])
    np.testing.assert_allclose(found, alone, atol=1e-5)
    turned = model.score_labels(TEXTS, LABELS[::-1], batch=batch)
    np.testing.assert_allclose(found, turned[:, ::-1], atol=1e-6)


@pytest.mark.parametrize(("method", "rate"), [("full", 5e-3), ("lora", 2e-2)])
def test_a_training_teaches_the_labels_and_is_taken_back(
    encoder: Path, method: Literal["full", "lora"], rate: float
) -> None:
    model = opened(encoder)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    settings = TrainingSettings(method=method, epochs=12, learning_rate=rate, batch=3, dropout=0)
    with trained(model, items(12), LABELS, settings, seed=1, on_batch=ignored):
        learnt = model.score_labels(TEXTS[:3], LABELS, batch=3)
        head = [layer.weight.clone() for layer in model.head.values()]
    assert learnt.argmax(axis=1).tolist() == [0, 1, 2]
    after = model.network.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert not torch.equal(head[0], before["classifier.weight"])


@pytest.mark.parametrize(
    ("file", "odd"),
    [
        ("config.json", {"return_dict": False}),
        ("tokenizer_config.json", {"model_max_length": "abc"}),
        ("tokenizer_config.json", {"model_max_length": True}),
    ],
)
def test_settings_that_only_concern_other_programs_change_nothing(
    encoder: Path, tmp_path: Path, file: str, odd: dict[str, object]
) -> None:
    folder = Path(shutil.copytree(encoder, tmp_path / "odd"))
    settings = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(settings | odd))
    found = []
    for model in (opened(encoder), opened(folder)):
        torch.manual_seed(1)
        with model.starting_afresh():
            found.append(model.score_labels(TEXTS[:2], LABELS, batch=2))
    np.testing.assert_array_equal(found[0], found[1])


def test_the_head_starts_anew_with_each_seed(encoder: Path) -> None:
    model, heads = opened(encoder), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        with model.starting_afresh():
            heads.append(model.head["classifier"].weight.detach().clone())
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_a_pooler_that_no_file_has_starts_anew_too_and_the_same_seed_gives_the_same(
    tmp_path: Path,
) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_encoder(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in tensors.items() if not name.startswith("pooler")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    settings, found = TrainingSettings(method="full", epochs=1, dropout=0), []
    for noise in (1, 2):
        torch.manual_seed(noise)
        model = opened(folder)
        assert set(model.head) == {"classifier", "bert.pooler.dense"}
        with trained(model, items(3), LABELS, settings, seed=1, on_batch=ignored):
            found.append(model.score_labels(TEXTS, LABELS, batch=2))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_head_for_other_labels_and_one_without_biases_are_made_anew(
    tmp_path: Path, method: Literal["full", "lora"]
) -> None:
    config = ModernBertConfig(
        vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_labels=5, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        cls_token_id=2, sep_token_id=2,
    )  # fmt: skip
    save_encoder(tmp_path)
    ModernBertForSequenceClassification(config).save_pretrained(tmp_path)
    model = opened(tmp_path)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    settings = TrainingSettings(method=method, epochs=1, learning_rate=1e-2, dropout=0)
    with trained(model, items(3), LABELS, settings, seed=1, on_batch=ignored):
        assert np.isfinite(model.score_labels(TEXTS, LABELS, batch=2)).all()
    after = model.network.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_special_tokens_in_a_text_are_text(encoder: Path) -> None:
    model = opened(encoder)
    number = model._tokenizer.convert_tokens_to_ids("[CLS]")
    assert number not in model.encode_answer("my [CLS] dog", "joy").tokens


def test_a_text_that_is_too_long_and_one_without_a_label_are_refused(encoder: Path) -> None:
    model = opened(encoder)
    with pytest.raises(UsageError, match="only 400 are allowed"):
        model.encode_answer("dog " * 500, "joy")
    with pytest.raises(UsageError, match="cannot be trained on texts without labels"):
        model.encode_text("my dog")


def test_an_encoder_is_refused_where_a_model_must_write(encoder: Path) -> None:
    with pytest.raises(UsageError, match="is an encoder, which writes no text"):
        load_model(find_weights(f"hf:{encoder}"), "cpu", needed=1, most_tokens=100)


def test_missing_layers_of_an_encoder_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_encoder(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    del tensors["encoder.layer.1.output.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UsageError, match=r"1 tensors of the model, such as .*dense\.weight"):
        opened(folder)


def test_weights_in_a_package_beside_other_configs_are_found(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shipped_encoder"
    (package / "model" / "1_Pooling").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model" / "1_Pooling" / "config.json").write_text("{}")
    for path in encoder.iterdir():
        (package / "model" / path.name).write_bytes(path.read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    assert find_weights("hf:package:shipped_encoder").folder == package / "model"


def test_a_contamination_test_with_an_encoder(
    finished: Lab, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coreeval.evaluation.whitebox import study_data

    monkeypatch.setattr(study_data, "FEWEST", 3)
    asked = FinetuneRequest(
        run_dir=finished.files.root,
        model=f"hf:{encoder}",
        arms=("updated",),
        seeds=1,
        train=4,
        held_out=4,
        training=TrainingSettings(method="full", epochs=1, learning_rate=1e-3, max_tokens=600),
        device="cpu",
    )
    with pytest.raises(UsageError, match="cannot be trained on texts without labels") as caught:
        plan_finetune(replace(asked, leaks=("test", "text")))
    assert caught.value.where == "--leak"
    found = run_finetune(plan_finetune(asked))
    (entry,) = found.document["targets"]
    assert entry["study"]["is_encoder"]
    assert any("starts from random values" in note for note in entry["notes"])
