"""A local model as a target: batches, seeds, limits, the call store, and what goes wrong."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from coreeval.config import ModelConfig, ModelsConfig
from coreeval.errors import ModelUnusable, NoValidAnswer, RequestRejected, UsageError
from coreeval.evaluation.answer_parsers import LabelShape
from coreeval.evaluation.targets import hash_question
from coreeval.models import ModelClient, PlainOutput, hf, open_model, preflight
from coreeval.models.capabilities import Capabilities
from coreeval.models.check import check_models
from coreeval.models.generation import Sampling, _Row, choose, generate
from coreeval.models.local_model import LocalModel, load_model
from coreeval.models.weights import find_weights
from coreeval.tasks import load_task
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.graph.kit import Lab
from tests.support.exchanges import exchange
from tests.whitebox.kit import CHAT, save_model

PROMPTS = ("I hate this so much", "what a lovely day", "my dog", "days are coming " * 9)


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hf, "_LOADED", {})


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    """Return the folder of a tiny model with a chat template."""
    return save_model(tmp_path / "chat", chat=CHAT)


def opened(folder: Path) -> LocalModel:
    """Load a model on the CPU."""
    return load_model(find_weights(f"hf:{folder}"), "cpu", full=True, needed=1, most_tokens=1 << 20)


def asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def config_of(folder: Path, **more: object) -> ModelConfig:
    return ModelConfig.model_validate(
        {"model": f"hf:{folder}", "max_tokens": 6, "extra": {"device": "cpu"}, **more}
    )


def client_of(store: CallStore, config: ModelConfig) -> ModelClient:
    return exchange(store).open_client(config, "target", max_draws=1, settle=True)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_an_answer_does_not_depend_on_those_beside_it(chat: Path, temperature: float) -> None:
    model = opened(chat)
    questions = [model.encode_messages(asked(text)) for text in PROMPTS]
    ways = [
        Sampling(temperature=temperature, seed=at, max_tokens=3 + 2 * at, logprobs=2)
        for at in range(len(questions))
    ]
    together = generate(model, questions, ways)
    for question, way, said in zip(questions, ways, together, strict=True):
        (alone,) = generate(model, [question], [way])
        assert (alone.text, alone.tokens, alone.finish) == (said.text, said.tokens, said.finish)
        assert said.tokens == way.max_tokens == len(said.places) and said.finish == "length"
        best = [place["top_logprobs"][0]["logprob"] for place in said.places]
        told = [place["logprob"] for place in said.places]
        assert (told == best) == (temperature == 0)


def test_the_most_probable_tokens_are_those_of_the_network(tiny: Path) -> None:
    model = opened(tiny)
    question = model.encode_messages(asked(PROMPTS[0]))
    (said,) = generate(model, [question], [Sampling(max_tokens=5, logprobs=1)])
    tokens = list(question)
    with torch.inference_mode():
        for place in said.places:
            logs = torch.log_softmax(model.network(torch.tensor([tokens])).logits[0, -1], -1)
            assert place["logprob"] == pytest.approx(float(logs.max()), abs=1e-4)
            tokens.append(int(logs.argmax()))
    assert said.text == model.decode(tokens[len(question) :]).lstrip().partition("\n\n")[0]


def test_a_question_with_fixed_answers_gets_the_most_probable(chat: Path) -> None:
    model = opened(chat)
    choices = [f'{{"label": "{one}"}}' for one in ("anger", "joy", "not joy at all")]
    scores = model.score_labels(PROMPTS, choices, batch=4)
    questions = [model.encode_question(text) for text in PROMPTS]
    said = choose(model, questions, choices, [Sampling()] * len(PROMPTS))
    assert [one.text for one in said] == [choices[at] for at in scores.argmax(axis=1)]
    hot = [Sampling(temperature=1e6, seed=seed) for seed in range(40)]
    drawn = choose(model, [questions[0]] * 40, choices, hot)
    assert {one.text for one in drawn} == set(choices)


def fed(model: LocalModel, text: str) -> _Row:
    """Return an answer whose tokens are those of a text."""
    row = _Row(model, 3, Sampling(max_tokens=100))
    for token in [*model._tokenizer(text)["input_ids"], *model.end_tokens]:
        logs = torch.full((len(model._tokenizer),), -9.0)
        logs[token] = 0.0
        row.take(logs)
    return row


def test_an_answer_ends_at_its_end_token_and_without_a_template_at_a_blank_line(
    chat: Path, tiny: Path
) -> None:
    row = fed(opened(chat), "my dog\n\ndied")
    assert (row.answer().text, row.finish) == ("my dog\n\ndied", "stop")
    row = fed(opened(tiny), "\n\nmy dog\n\ndied")
    assert (row.answer().text, row.finish) == ("my dog", "stop")


async def test_questions_are_answered_once_and_kept_under_the_digest_of_the_weights(
    chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, loads = list[int](), list[str]()
    answer, load = hf.LocalQueue._answer_some, load_model

    def answered(self: hf.LocalQueue, some: Any) -> Any:  # noqa: ANN401 - passed on
        sizes.append(len(some))
        return answer(self, some)

    def loaded(*given: Any, **more: Any) -> LocalModel:  # noqa: ANN401
        loads.append("loaded")
        return load(*given, **more)

    monkeypatch.setattr(hf.LocalQueue, "_answer_some", answered)
    monkeypatch.setattr(hf, "load_model", loaded)
    config = config_of(chat, extra={"device": "cpu", "batch": 3}, structured="text")
    with closing(open_calls(tmp_path / "calls.db")) as store:
        client = client_of(store, config)
        assert not loads
        for _ in range(2):
            done = await asyncio.gather(
                *(client.ask(asked(text), LabelShape(load_task("emotion"))) for text in PROMPTS),
                return_exceptions=True,
            )
            assert [one.kind for one in done if isinstance(one, NoValidAnswer)] == ["truncated"] * 4
        assert (sizes, len(loads)) == ([3, 1], 1)
        kept = [*store.records()]
    request = json.loads(kept[0].request)
    assert request["endpoint"] == find_weights(f"hf:{chat}").revision
    assert (request["provider"], request["model"]) == ("hf", "chat")
    assert request["parameters"]["precision"] == "float32"
    assert "extra" not in request["parameters"]
    assert {one.usd for one in kept} == {0.0}
    assert all(one.completion_tokens == 6 and one.prompt_tokens > 6 for one in kept)
    assert {one.method for one in kept} == {"text"}


async def test_a_label_is_always_one_of_the_task(chat: Path, tmp_path: Path) -> None:
    with closing(open_calls(tmp_path / "calls.db")) as store:
        done = await ask_all(store, config_of(chat), PROMPTS)
    labels = {str(getattr(one, "label", "")) for one in done}
    assert labels <= {"anger", "joy", "optimism", "sadness"}


async def test_draws_at_a_temperature_differ_and_come_again(chat: Path, tmp_path: Path) -> None:
    said = list[list[str]]()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        with closing(open_calls(tmp_path / f"{name}.db")) as store:
            config = config_of(chat, temperature=1.5, seed=seed)
            client = exchange(store).open_client(config, "target", max_draws=1)
            for chain in range(2):
                with suppress(NoValidAnswer):  # cut off
                    await client.ask(asked("my dog"), PlainOutput(), chain=chain)
            said.append([one.response for one in store.records()])
    assert said[0] == said[1] != said[2]
    assert len({*said[0], *said[2]}) == 4


def test_other_weights_are_another_model(tmp_path: Path) -> None:
    one = open_model(config_of(save_model(tmp_path / "m", chat=CHAT)))
    other = open_model(config_of(save_model(tmp_path / "m", chat=CHAT, seed=5)))
    assert one.identity.endpoint != other.identity.endpoint


async def ask_all(store: CallStore, config: ModelConfig, texts: Sequence[str]) -> list[object]:
    client = client_of(store, config)
    return await asyncio.gather(
        *(client.ask(asked(text), LabelShape(load_task("emotion"))) for text in texts),
        return_exceptions=True,
    )


async def test_a_question_longer_than_the_window_fails_alone(chat: Path, tmp_path: Path) -> None:
    with closing(open_calls(tmp_path / "calls.db")) as store:
        long, short = await ask_all(store, config_of(chat), ["days " * 900, "my dog"])
    assert isinstance(long, RequestRejected)
    assert "must fit the model's context of 600 tokens" in str(long)
    assert getattr(short, "label", "")


async def test_a_template_that_fails_is_told(tmp_path: Path) -> None:
    broken = save_model(tmp_path / "m", chat="{{ raise_exception('no users here') }}")
    with closing(open_calls(tmp_path / "calls.db")) as store:
        (said,) = await ask_all(store, config_of(broken), ["my dog"])
    assert isinstance(said, RequestRejected) and "no users here" in str(said)


async def test_where_memory_is_short_fewer_are_asked_at_a_time(
    chat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, room, score = list[int](), [2], LocalModel.score_endings

    def scored(self: LocalModel, questions: Any, *given: Any, **more: Any) -> Any:  # noqa: ANN401
        sizes.append(len(questions))
        if len(questions) > room[0]:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return score(self, questions, *given, **more)

    monkeypatch.setattr(LocalModel, "score_endings", scored)
    with closing(open_calls(tmp_path / "calls.db")) as store:
        done = await ask_all(store, config_of(chat), [f"day {at}" for at in range(10)])
        assert all(getattr(one, "label", "") for one in done)
        assert sizes == [8, 4, 2, 2, 4, 2, 2, 2]
        room[0] = 0
        (said,) = await ask_all(store, config_of(chat), ["another"])
    assert isinstance(said, ModelUnusable) and "ran out of memory on one question of" in str(said)
    assert "extra.batch" in said.hint


def test_a_model_larger_than_memory_is_refused_before_it_is_loaded(
    chat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preflight(config_of(chat))
    monkeypatch.setattr(hf, "free_device_memory", lambda _device: 1000)
    with pytest.raises(UsageError, match=r"needs .* on cpu, but only .* is available; nothing"):
        preflight(config_of(chat))


async def test_a_check_of_models_loads_nothing(chat: Path, tmp_path: Path) -> None:
    models = ModelsConfig.model_validate(
        {"default": "offline", "targets": [config_of(chat).model_dump(exclude_none=True)]}
    )
    with closing(open_calls(tmp_path / "calls.db")) as store:
        found = await check_models(models, {}, Capabilities(store), cutoffs={}, trusted=())
    assert [one.state for one in found] == ["rules", "local"]
    assert not hf._LOADED


async def test_weights_that_went_away_end_the_run_with_one_message(
    chat: Path, tmp_path: Path
) -> None:
    with closing(open_calls(tmp_path / "calls.db")) as store:
        client = client_of(store, config_of(chat))
        (chat / "config.json").write_text("{}")
        with pytest.raises(ModelUnusable, match="the model cannot be used: ValueError"):
            await client.ask(asked("my dog"), PlainOutput())


DYING = """
import os, signal, sqlite3, sys, time
from coreeval.__main__ import run
from coreeval.models import hf
answer, left = hf.LocalQueue._answer_some, iter(range(4))
calls = sqlite3.connect(os.environ["CALLS"], check_same_thread=False)
count = lambda: calls.execute("SELECT count(*) FROM calls").fetchone()
before = count()
def answered(self, some):
    if next(left) == 3:
        while count() == before:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(self, some)
hf.LocalQueue._answer_some = answered
sys.exit(run())
"""


def test_a_killed_evaluation_goes_on_and_asks_nothing_twice(finished: Lab, chat: Path) -> None:
    target = json.dumps({"model": f"hf:{chat}", "extra": {"device": "cpu", "batch": 1}})
    command = ("evaluate", str(finished.files.root), "--target", target)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CALLS": str(finished.workspace.calls)}

    def asked_keys() -> list[str]:
        with closing(open_calls(finished.workspace.calls)) as store:
            known = [(one.key, json.loads(one.request)["provider"]) for one in store.records()]
        return [key for key, provider in known if provider == "hf"]

    killed = subprocess.run([sys.executable, "-c", DYING, *command], env=env, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = asked_keys()
    assert 1 <= len(before) <= 3
    words = [sys.executable, "-m", "coreeval", *command, "--json"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(finished.files.report_json.read_text())
    assert [one["target"] for one in report["targets"]] == [f"hf:{chat}"]
    after = asked_keys()
    assert len(after) == len(set(after)) > len(before) and set(before) < set(after)


def test_other_weights_under_the_same_name_are_asked_anew(chat: Path) -> None:
    task, config = load_task("emotion"), config_of(chat)
    before = hash_question(task, hf.hash_weights(config))
    save_model(chat, chat=CHAT, seed=1)
    assert hash_question(task, hf.hash_weights(config)) != before
    provider = ModelConfig.model_validate({"model": "openai:x"})
    assert hash_question(task, hf.hash_weights(provider)) == hash_question(task)
