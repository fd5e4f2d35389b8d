"""Local models: probabilities of labels, training that is taken back, and what cannot be loaded."""

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Literal

import numpy as np
import pytest
import torch
from gguf import GGUFWriter
from safetensors.torch import load_file, save_file

from coreeval.errors import RunError, UsageError
from coreeval.evaluation.whitebox.local_scores import score_tokens
from coreeval.evaluation.whitebox.settings import TrainingSettings
from coreeval.evaluation.whitebox.study_data import LabelledText, TrainingItem
from coreeval.evaluation.whitebox.training import trained
from coreeval.models import chat_template, loaded_network
from coreeval.models.loaded_network import choose_device
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.weights import find_weights, require_memory
from tests.whitebox.kit import CHAT, save_model, states

LABELS = ("anger", "joy", "sadness")
SCORED = (*LABELS, "not joy at all")
PROMPTS = ("I hate this so much", "what a lovely day, Answer", "my dog", "days are coming " * 9)


def opened(folder: Path, *, most_tokens: int = 400) -> LocalModel:
    """Load a model on the CPU."""
    weights = find_weights(f"hf:{folder}")
    return load_model(weights, "cpu", full=True, needed=1, most_tokens=most_tokens)


@pytest.fixture
def model(tiny: Path) -> LocalModel:
    """Return the tiny model."""
    return opened(tiny)


def _score_alone(model: LocalModel, prompt: str, label: str) -> float:
    question, ending = model.encode_question(prompt), model.encode_label(label)
    with torch.inference_mode():
        logits = model.network(torch.tensor([question + ending])).logits[0].float()
    logs = torch.log_softmax(logits, dim=-1)
    places = range(len(question) - 1, len(question) + len(ending) - 1)
    return float(sum(logs[at, token] for at, token in zip(places, ending, strict=True)))


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_a_label_has_the_probability_of_its_tokens_whatever_the_batch(
    model: LocalModel, batch: int
) -> None:
    found = model.score_labels(PROMPTS, SCORED, batch=batch)
    alone = [[_score_alone(model, prompt, label) for label in SCORED] for prompt in PROMPTS]
    np.testing.assert_allclose(found, alone, atol=1e-4)


def test_a_chat_template_is_used_where_there_is_one(tmp_path: Path, model: LocalModel) -> None:
    chat = opened(save_model(tmp_path, chat=CHAT))
    assert (model.chat, chat.chat) == ("plain", "chat")
    text = chat._tokenizer.decode(chat.encode_question("my dog"))
    assert text == "<user>my dog</user><bot>"
    assert model._tokenizer.decode(model.encode_question("my dog")) == "my dog"
    assert model._tokenizer.decode(model.encode_label("joy")) == " joy"


def test_a_template_that_fails_is_one_message(tmp_path: Path) -> None:
    chat = opened(save_model(tmp_path, chat="{{ raise_exception('no users here') }}"))
    with pytest.raises(UsageError, match="chat template cannot be used: no users here"):
        chat.encode_question("my dog")


@pytest.mark.parametrize(
    "template",
    ["{{ messages + 1 }}", "{{ 1 // 0 }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"],
)
def test_any_error_of_a_template_is_one_message(tmp_path: Path, template: str) -> None:
    chat = opened(save_model(tmp_path, chat=template))
    with pytest.raises(UsageError, match="chat template cannot be used: "):
        chat.encode_question("my dog")


LOOP = "{% for i in range(99999) %}"


@pytest.mark.parametrize(
    ("template", "told"),
    [
        (f"{LOOP * 3}{{{{ i }}}}{'{% endfor %}' * 3}", "it took longer than 2 s"),
        ("{% if (9**(9**10)) > 1 %}x{% endif %}", "it took longer than 2 s"),
        (
            "{{ 'a'.ljust(900000000) * 9 }}",
            "MemoryError|took longer than 2 s or used more than 3 GiB",
        ),
        (f"{LOOP}{'x' * 50}{{% endfor %}}", "it expands the messages to 4,999,950 characters"),
    ],
)
def test_a_template_that_does_not_end_or_swells_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, told: str
) -> None:
    monkeypatch.setattr(chat_template, "MOST_SECONDS", 2.0)
    chat = opened(save_model(tmp_path, chat=template))
    for _ in range(2):  # what ran out of time once is not tried again
        with pytest.raises(UsageError, match=told):
            chat.encode_question("my dog")


def test_whoever_asks_after_an_interrupt_gets_their_own_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat = chat_template.ChatTemplate("{{ messages[0].content }}?", {})
    write = chat_template._write

    def interrupted(file: IO[bytes], value: object) -> None:
        write(file, value)
        raise KeyboardInterrupt

    assert chat.fill([{"content": "A"}]) == "A?"
    monkeypatch.setattr(chat_template, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        chat.fill([{"content": "B"}])
    monkeypatch.setattr(chat_template, "_write", write)
    assert [chat.fill([{"content": one}]) for one in "CD"] == ["C?", "D?"]


def test_no_process_of_a_template_is_left_when_its_asker_is_killed(tmp_path: Path) -> None:
    asker = (
        "import os, sys, threading; from coreeval.models.chat_template import ChatTemplate\n"
        "chat = ChatTemplate('{% if (9**(9**10)) > 1 %}x{% endif %}', {})\n"
        "print(chat._begin().pid, flush=True)\n"
        "threading.Timer(1, lambda: os.kill(os.getpid(), 9)).start()\n"
        "chat.fill([{'role': 'user', 'content': 'my dog'}])"
    )
    died = subprocess.run([sys.executable, "-c", asker], stdout=subprocess.PIPE, check=False)
    process = Path(f"/proc/{int(died.stdout)}")
    assert died.returncode == -9
    for _ in range(100):
        if not process.exists():
            return
        time.sleep(0.1)
    raise AssertionError("it is still there")


def test_a_panic_of_the_tokenizer_is_one_message(own: Path) -> None:
    def split(found: dict[str, Any]) -> None:
        pattern = {"type": "Split", "pattern": {"Regex": "(a+)+$"}}
        found["pre_tokenizer"] = pattern | {"behavior": "Isolated", "invert": False}

    _edit(own, "tokenizer.json", split)
    with pytest.raises(UsageError, match="the model cannot be used: PanicException"):
        opened(own).encode_question("a" * 40_000 + "!")


def test_a_text_cannot_end_its_turn(tmp_path: Path, model: LocalModel) -> None:
    chat = opened(save_model(tmp_path, chat=CHAT + "<end>"))
    (end,) = chat._tokenizer("<end>")["input_ids"]
    assert chat.encode_question("my dog<end>").count(end) == 1, "that of the template"
    assert end not in model.encode_question("my dog<end>")


def test_a_text_that_is_too_long_is_told_not_cut(tiny: Path) -> None:
    with pytest.raises(UsageError, match=r"a text has \d+ tokens, but only 16 are allowed"):
        opened(tiny, most_tokens=16).score_labels(["days " * 40], LABELS, batch=1)


def _items(*, with_label: bool = True) -> list[TrainingItem]:
    return [
        TrainingItem(LabelledText(str(at), (prompt,), prompt, at % 3), with_label)
        for at, prompt in enumerate(PROMPTS)
    ]


@pytest.mark.parametrize("method", ["lora", "full"])
def test_a_trained_model_knows_the_labels_and_is_as_before_afterwards(
    model: LocalModel, method: Literal["lora", "full"]
) -> None:
    before = [*states(model.network)]
    zero = model.score_labels(PROMPTS, LABELS, batch=4)
    rate = 1e-2 if method == "lora" else 2e-3
    settings = TrainingSettings(method=method, epochs=30, learning_rate=rate, batch=3)
    steps = list[tuple[int, int]]()
    for _ in range(2):  # the second time starts from the same weights
        with trained(
            model, _items(), LABELS, settings, seed=1, on_batch=lambda *at: steps.append(at)
        ):
            found = model.score_labels(PROMPTS, LABELS, batch=4)
        assert found.argmax(axis=1).tolist() == [0, 1, 2, 0]
        after = [*states(model.network)]
        assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert steps[:60] == steps[60:] and steps[59] == (60, 60)
    np.testing.assert_array_equal(model.score_labels(PROMPTS, LABELS, batch=4), zero)


def test_texts_alone_are_learned_without_their_labels(model: LocalModel) -> None:
    settings = TrainingSettings(epochs=20, learning_rate=1e-2, batch=2)
    item = model.encode_text(PROMPTS[0])
    assert item.start == 1
    before = float(model.loss([item]).detach())
    with trained(
        model, _items(with_label=False), LABELS, settings, seed=0, on_batch=lambda *_: None
    ):
        assert float(model.loss([item]).detach()) < before - 0.5


@pytest.mark.parametrize(
    "said", ["CUDA out of memory. Tried", "DefaultCPUAllocator: can't allocate memory"]
)
def test_a_lack_of_memory_is_one_message(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError(said)

    before = [*states(model.network)]
    monkeypatch.setattr(model.network, "forward", fail)
    settings = TrainingSettings(batch=6)
    with (
        pytest.raises(RunError, match="ran out of memory with") as caught,
        trained(model, _items(), LABELS, settings, seed=0, on_batch=lambda *_: None),
    ):
        raise AssertionError("it was not trained")
    assert "--batch 3" in caught.value.hint
    assert len([*states(model.network)]) == len(before)


# -- what cannot be loaded ------------------------------------------------------------------------


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _garble(path: Path) -> None:
    path.write_bytes(struct.pack("<Q", 1 << 60) + b"x" * 20)


def _pickle(path: Path) -> None:
    path.rename(path.with_name("pytorch_model.bin"))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_cut, "truncated: .* of .*"),
        (_garble, "not a valid safetensors file: its header is too long"),
        (_pickle, "only pickled weights"),
    ],
)
def test_damaged_weights_are_told_before_they_are_loaded(
    tiny: Path, tmp_path: Path, damage: Callable[[Path], None], told: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny, folder)
    damage(folder / "model.safetensors")
    with pytest.raises(UsageError, match=told):
        find_weights(f"hf:{folder}")


def _edit(folder: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / name
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def _change_tensors(
    folder: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]
) -> Path:
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})
    return folder


@pytest.fixture
def own(tiny: Path, tmp_path: Path) -> Path:
    """Return a copy of the tiny model."""
    return shutil.copytree(tiny, tmp_path / "own")


@pytest.mark.parametrize(
    "change",
    [
        lambda all_: {f"other.{name}": value for name, value in all_.items()},
        lambda all_: {name: value for name, value in all_.items() if "layers.1" not in name},
    ],
)
def test_weights_are_never_drawn_at_random(
    own: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]
) -> None:
    with pytest.raises(UsageError, match=r"\d+ tensors of the model, such as .*, are not in its"):
        opened(_change_tensors(own, change))


def test_weights_that_are_no_numbers_give_no_answer(own: Path) -> None:
    def spoil(every: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        every["model.norm.weight"][:] = float("nan")
        return every

    model = opened(_change_tensors(own, spoil))
    with pytest.raises(UsageError, match="the model returned NaN"):
        model.score_labels(PROMPTS, LABELS, batch=2)
    with pytest.raises(UsageError, match="the model returned NaN"):
        model.loss([model.encode_text(PROMPTS[0])])
    with pytest.raises(UsageError, match="the model returned NaN"):
        score_tokens(model, [[1, 2, 3]], detailed=False)


@pytest.mark.parametrize("name", ["chat_template.jinja", "merges.txt", "spiece.model"])
def test_the_revision_names_every_file_that_decides_an_answer(own: Path, name: str) -> None:
    found = set[str]()
    for content in (None, "one", "other"):
        if content:
            (own / name).write_text(content)
        found.add(find_weights(f"hf:{own}").revision)
    assert len(found) == 3


@pytest.mark.parametrize("named", ["../elsewhere/w.bin", "/etc/passwd", "w.bin"])
def test_an_index_leads_nowhere_else(own: Path, named: str) -> None:
    (own / "w.bin").write_bytes(b"pickle")
    (own / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": named}}))
    with pytest.raises(UsageError, match=r"the index names .*, which is not in the folder"):
        find_weights(f"hf:{own}")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[]", "it is not a JSON object"),
        ('{"attn_implementation": "somebody/kernel"}', "refers to code to download"),
        ("[" * 100_000, "config.json cannot be used"),
        ('{"num_hidden_layers": 2000000}', "describes a larger model than its weights"),
        ('{"vocab_size": 1000000000, "hidden_size": 4096}', "describes a larger model"),
        ('{"n_layer": 60000}', "describes a larger model"),
        ('{"text_config": {"vocab_size": 1000000000, "n_embd": 4096}}', "describes a larger model"),
        ('{"a": {"b": {"num_layers": 60000}}}', "describes a larger model"),
        ('{"num_hidden_layers": 2, "num_local_experts": 1000000}', "describes a larger model"),
        ('{"configuration_files": ["config.4.0.json"]}', "names other files to read instead"),
    ],
)
def test_a_config_is_looked_at_before_it_is_loaded(own: Path, content: str, told: str) -> None:
    (own / "config.json").write_text(content)
    with pytest.raises(UsageError, match=told):
        find_weights(f"hf:{own}")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", lambda found: found.update(num_attention_heads=0)),
        ("config.json", lambda found: found.update(dtype="never")),
        ("tokenizer_config.json", lambda found: found.update(eos_token=5)),
    ],
)
def test_odd_values_of_a_model_are_one_message(
    own: Path, name: str, change: Callable[[dict[str, Any]], object]
) -> None:
    _edit(own, name, change)
    with pytest.raises(UsageError, match="the model cannot be used: "):
        opened(own)


@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer"])
def test_a_tokenizer_that_swells_texts_is_refused(own: Path, part: str) -> None:
    swell = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 40}
    nested = {"type": "Sequence", "normalizers": [swell, {"type": "Sequence", "all": [swell]}]}
    _edit(own, "tokenizer.json", lambda found: found.update({part: nested}))
    with pytest.raises(UsageError, match="expands one character to more than 1,000"):
        find_weights(f"hf:{own}")


@pytest.mark.parametrize("named", ["../outside/tokenizer.4.json", "tokenizer.4.json"])
def test_no_other_tokenizer_is_read_instead(own: Path, named: str) -> None:
    (own.parent / "outside").mkdir()
    shutil.copy(own / "tokenizer.json", own / named)
    _edit(own, "tokenizer_config.json", lambda one: one.update(fast_tokenizer_files=[named]))
    with pytest.raises(UsageError, match="names other files to read instead: fast_tokenizer"):
        find_weights(f"hf:{own}")


def test_positions_without_weights_take_no_memory(own: Path) -> None:
    config = {"model_type": "gpt2", "n_positions": 10**9, "n_embd": 64, "n_layer": 2, "n_head": 4}
    (own / "config.json").write_text(json.dumps({**config, "vocab_size": 368}))
    with pytest.raises(UsageError, match=r"a larger model than its weights: 64,\d+ million"):
        opened(own)


@pytest.mark.parametrize("key", ["block_count", "expert_count"])
def test_a_gguf_of_more_layers_than_tensors_is_told_at_once(tmp_path: Path, key: str) -> None:
    path = tmp_path / "m.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 1)
    writer.add_uint32(f"llama.{key}", 3_000_000)
    writer.add_tensor("a", np.ones((64, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UsageError, match="too small for the sizes that it declares"):
        find_weights(f"hf:{path}")


@pytest.mark.parametrize("shape", [[1e999], [-4, -4], [1 << 70, 1 << 70], ["4"]])
def test_a_shape_that_is_none_is_told(own: Path, shape: list[object]) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    (own / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(UsageError, match="not a valid safetensors file"):
        find_weights(f"hf:{own}")


@pytest.mark.parametrize("name", ["hf:~nobody-at-all/x", f"hf:{'x' * 300}", "hf:a\0b"])
def test_a_name_that_no_path_can_have_is_one_message(name: str) -> None:
    with pytest.raises(UsageError, match="there is no folder or file"):
        find_weights(name)


def test_a_token_without_a_place_is_one_message(model: LocalModel) -> None:
    with (
        pytest.raises(UsageError, match="the model cannot be used: IndexError"),
        model.guarded(1),
    ):
        model.score_endings([[1, 9999]], [[2]], batch=1)


def test_pipes_and_folders_are_no_weights(own: Path) -> None:
    before = find_weights(f"hf:{own}")
    os.mkfifo(own / "a.safetensors")
    os.mkfifo(own / "z.json")
    (own / "x.safetensors").mkdir()
    (own / "y.safetensors").symlink_to(own / "nowhere")
    assert find_weights(f"hf:{own}") == before


def test_a_gguf_that_announces_more_than_it_has_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    key = b"general.architecture"
    array = struct.pack("<IIQ", 9, 0, 1 << 62)  # an array of so many bytes
    path.write_bytes(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, len(key)) + key + array + bytes(64))
    with pytest.raises(UsageError, match="it ends earlier than its header states"):
        find_weights(f"hf:{path}")


def test_a_cut_gguf_is_told_and_a_whole_one_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_tensor("a", np.ones((64, 64), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = find_weights(f"hf:{path}")
    assert (found.parameters, found.gguf) == (64 * 64, "m.gguf")
    assert found.revision.startswith("sha256:")
    for size in (path.stat().st_size - 100, 40, 0):
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(UsageError, match="weights file is truncated"):
            find_weights(f"hf:{path}")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("openai:x", "is not a local model"),
        ("hf:nowhere/at-all", "there is no folder or file"),
        ("hf:package:no_such_package", "no installed package named 'no_such_package'"),
        ("hf:package:../x", "no installed package"),
    ],
)
def test_weights_that_are_not_there_are_told(name: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        find_weights(name)


def test_other_weights_have_another_revision(tiny: Path, tmp_path: Path) -> None:
    other = find_weights(f"hf:{save_model(tmp_path, seed=1)}")
    assert find_weights(f"hf:{tiny}").revision != other.revision


def test_a_model_larger_than_memory_is_told_with_its_size(tiny: Path) -> None:
    weights = find_weights(f"hf:{tiny}")._replace(parameters=70_000_000_000)
    with pytest.raises(UsageError, match=r"70,000 million parameters and needs 280\.0 GB") as told:
        require_memory(weights, 280_000_000_000, 16_000_000_000, "cpu")
    assert "only 16.0 GB is available; nothing was loaded" in told.value.message
    require_memory(weights, 280_000_000_000, None, "cpu")


def test_a_model_that_transformers_cannot_read_is_told(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny, folder)
    (folder / "config.json").write_text('{"model_type": "never_heard_of"}')
    with pytest.raises(UsageError, match="the model cannot be used: ValueError"):
        opened(folder)


def test_devices_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda: Any = SimpleNamespace(device_count=lambda: 2, is_available=lambda: True)
    monkeypatch.setattr(torch, "cuda", cuda)
    assert [choose_device(each) for each in ("auto", "cpu", "cuda", "cuda:1")] == [
        "cuda:0",
        "cpu",
        "cuda:0",
        "cuda:1",
    ]
    for wrong in ("cuda:2", "tpu", "cuda:x"):
        with pytest.raises(UsageError, match="does not exist") as caught:
            choose_device(wrong)
        assert caught.value.hint == "use one of cpu, cuda:0, cuda:1"


def test_no_memory_is_asked_of_a_device_that_is_not_used() -> None:
    assert loaded_network.free_device_memory("cpu") is not None


@pytest.mark.parametrize(
    ("asked", "full", "weights", "training"),
    [
        ("auto", False, torch.float32, "float32"),
        ("bfloat16", False, torch.bfloat16, "bfloat16"),
        ("bfloat16", True, torch.float32, "bfloat16"),
    ],
)
def test_the_precision_is_the_asked_one_and_32_bits_where_all_weights_are_trained(
    tiny: Path, asked: Literal["auto", "bfloat16"], full: bool, weights: torch.dtype, training: str
) -> None:
    found = find_weights(f"hf:{tiny}")
    model = load_model(found, "cpu", needed=1, most_tokens=400, full=full, precision=asked)
    assert next(model.network.parameters()).dtype is weights
    assert model.precision == training
    exact = opened(tiny).score_labels(PROMPTS, LABELS, batch=2)
    np.testing.assert_allclose(model.score_labels(PROMPTS, LABELS, batch=2), exact, atol=0.1)
    items = [TrainingItem(LabelledText("1", (PROMPTS[0],), "", 0), with_label=True)]
    settings = TrainingSettings(method="full" if full else "lora", learning_rate=1e-2)
    with trained(model, items, LABELS, settings, seed=0, on_batch=lambda _done, _total: None):
        assert not np.allclose(model.score_labels(PROMPTS, LABELS, batch=2), exact, atol=1e-3)
