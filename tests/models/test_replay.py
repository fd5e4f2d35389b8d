"""Recorded answers take a model's place, and only for what was recorded."""

import json
from pathlib import Path

import pytest

from coreeval.config import ModelConfig
from coreeval.errors import ConfigError, ModelCallError, NoValidAnswer, UsageError
from coreeval.models import OutputSchema, open_model
from coreeval.models.client import MAX_DRAWS
from coreeval.models.replay import hash_request, write_answers
from coreeval.schema import Value
from coreeval.tools.stores.call_store import CallStore, open_calls
from tests.models.conftest import MakeClient
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, Reply, script


class Answer(Value):
    label: str


SHAPE = OutputSchema(Answer, name="answer")
ASKED = [{"role": "user", "content": "a text"}]


def recorded(path: Path, *lines: object) -> ModelConfig:
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    return ModelConfig(model=f"replay:{path}")


def line(content: str = '{"label": "joy"}', **more: object) -> dict[str, object]:
    return {"messages": ASKED, "schema": "answer", "draw": 0, "content": content, **more}


@pytest.mark.parametrize("schema", ["answer", SHAPE.schema])
async def test_an_answer_is_found_by_the_schema_or_its_name(
    tmp_path: Path, store: CallStore, schema: object
) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    config = recorded(tmp_path / "a.jsonl", line(schema=schema, usage=usage))
    client = exchange(store).open_client(config, "extractor")
    assert await client.ask(ASKED, SHAPE) == Answer(label="joy")
    (kept,) = store.records()
    assert (kept.prompt_tokens, kept.completion_tokens) == (5, 2)


@pytest.mark.parametrize("more", [{}, {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}])
async def test_a_recorded_answer_costs_nothing_whether_its_tokens_are_known_or_not(
    tmp_path: Path, store: CallStore, more: dict[str, object]
) -> None:
    config = recorded(tmp_path / "a.jsonl", {**line(), **more})
    await exchange(store).open_client(config, "extractor").ask(ASKED, SHAPE)
    assert [one.usd for one in store.records()] == [0.0]


async def test_what_was_not_recorded_is_an_error_that_says_so(
    tmp_path: Path, store: CallStore
) -> None:
    config = recorded(tmp_path / "a.jsonl", line(), line("no", draw=1))
    client = exchange(store).open_client(config, "extractor")
    with pytest.raises(ModelCallError, match=r"not among the recorded answers.*another"):
        await client.ask([{"role": "user", "content": "another"}], SHAPE)


async def test_a_changed_file_is_another_model(tmp_path: Path, store: CallStore) -> None:
    path = tmp_path / "a.jsonl"
    first = recorded(path, line())
    await exchange(store).open_client(first, "extractor").ask(ASKED, SHAPE)
    second = recorded(path, line('{"label": "anger"}'))
    answer = await exchange(store).open_client(second, "extractor").ask(ASKED, SHAPE)
    assert answer == Answer(label="anger")


async def test_a_run_can_be_replayed_from_its_call_store(
    make_client: MakeClient, server: LLMServer, store: CallStore, tmp_path: Path
) -> None:
    server.answers = script("no", Reply(content=None, refusal="I will not"), '{"label": "joy"}')
    assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")
    path = tmp_path / "answers.jsonl"
    assert write_answers(store.records(), path, model="openai:stub") == 3
    fresh = open_calls(tmp_path / "fresh.db")
    replayed = exchange(fresh).open_client(ModelConfig(model=f"replay:{path}"), "extractor")
    assert await replayed.ask(ASKED, SHAPE) == Answer(label="joy")
    assert len(server.requests) == 3
    errors = [record.error for record in fresh.records()]
    assert sorted(errors) == sorted(record.error for record in store.records())
    fresh.close()


async def test_an_answer_in_words_is_read_as_leniently_as_when_it_was_given(
    tmp_path: Path, store: CallStore
) -> None:
    wordy = line('It is {"label": "joy",} I think')
    strict = exchange(store).open_client(recorded(tmp_path / "a.jsonl", wordy), "extractor")
    with pytest.raises(ModelCallError):
        await strict.ask(ASKED, SHAPE)
    mild = recorded(tmp_path / "b.jsonl", wordy | {"method": "text"})
    answer = await exchange(store).open_client(mild, "extractor").ask(ASKED, SHAPE)
    assert answer == Answer(label="joy")


async def test_answers_that_a_retry_brought_are_found_at_once(
    make_client: MakeClient, server: LLMServer, store: CallStore, tmp_path: Path
) -> None:
    server.answers = script(*["no"] * MAX_DRAWS, '{"label": "joy"}')
    with pytest.raises(NoValidAnswer, match="in 4 draws"):
        await make_client().ask(ASKED, SHAPE)
    path = tmp_path / "answers.jsonl"
    write_answers(store.records(), path, model="openai:stub")
    fresh = open_calls(tmp_path / "fresh.db")
    replayed = exchange(fresh).open_client(ModelConfig(model=f"replay:{path}"), "extractor")
    with pytest.raises(NoValidAnswer, match="in 4 draws"):  # where there was no retry
        await replayed.ask(ASKED, SHAPE)
    assert await make_client().ask(ASKED, SHAPE) == Answer(label="joy")
    write_answers(store.records(), path, model="openai:stub")
    retried = exchange(fresh).open_client(ModelConfig(model=f"replay:{path}"), "extractor")
    assert await retried.ask(ASKED, SHAPE) == Answer(label="joy")
    fresh.close()


async def test_a_line_may_hide_its_request(tmp_path: Path, store: CallStore) -> None:
    hidden = hash_request(line(schema=SHAPE.schema))
    assert "a text" not in json.dumps(hidden)
    config = recorded(tmp_path / "a.jsonl", hidden)
    assert await exchange(store).open_client(config, "extractor").ask(ASKED, SHAPE) == Answer(
        label="joy"
    )


async def test_only_the_answers_of_one_model_are_written(
    make_client: MakeClient, server: LLMServer, store: CallStore, tmp_path: Path
) -> None:
    path = tmp_path / "answers.jsonl"
    for model, label in (("openai:stub", "joy"), ("openai:other", "anger")):
        server.answers = script(json.dumps({"label": label}))
        await make_client(model=model).ask(ASKED, SHAPE)
    assert write_answers(store.records(), path, model="openai:other") == 1
    replayed = exchange(store).open_client(ModelConfig(model=f"replay:{path}"), "extractor")
    assert await replayed.ask(ASKED, SHAPE) == Answer(label="anger")
    path.unlink()
    with pytest.raises(UsageError, match="no answer from 'openai:stab'") as caught:
        write_answers(store.records(), path, model="openai:stab")
    assert "openai:stub" in caught.value.hint and not path.exists()


async def test_two_answers_of_one_model_are_refused_before_anything_is_written(
    make_client: MakeClient, server: LLMServer, store: CallStore, tmp_path: Path
) -> None:
    path = tmp_path / "answers.jsonl"
    for seed, label in ((1, "joy"), (2, "anger")):
        server.answers = script(json.dumps({"label": label}))
        await make_client(seed=seed).ask(ASKED, SHAPE)
    with pytest.raises(ConfigError, match="two answers") as caught:
        write_answers(store.records(), path, model="openai:stub")
    assert server.url in caught.value.where and '"seed":2' in caught.value.where
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not a recorded answer"),
        ("[1]", "not a recorded answer"),
        ('{"messages": [], "schema": "x"}', "content"),
        ('{"messages": [], "schema": "x", "content": "", "more": 1}', "more"),
        ('{"content": ""}', "messages and schema, or asked"),
        ('{"messages": [], "schema": "x", "content": "", "asked": "0"}', "or asked"),
        ("\n".join(json.dumps(line(content)) for content in ("a", "b")), "two answers"),
    ],
)
def test_a_bad_file_names_the_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{json.dumps(line('ok', draw=9))}\n\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=says) as caught:
        open_model(ModelConfig(model=f"replay:{path}"))
    assert f"{path}, line " in caught.value.where


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        open_model(ModelConfig(model=f"replay:{tmp_path}/none.jsonl"))
