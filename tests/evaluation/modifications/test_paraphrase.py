"""A paraphrase by a model: what passes, what is asked for again, and what is given up."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from pydantic import BaseModel

from coreeval.config import ModelConfig
from coreeval.errors import NoValidAnswer
from coreeval.evaluation.modifications import Modified, Paraphraser, Unmodified
from coreeval.evaluation.modifications.paraphrase import similarity
from coreeval.models import InvalidAnswer, OutputSchema, close_models
from coreeval.schema import Item
from coreeval.tools.embeddings import Vectors
from coreeval.tools.stores.call_store import open_calls
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, script

T = TypeVar("T", bound=BaseModel)
INPUT = "What did sales of 2.5 do in 2014? A. rise B. fall"
ITEM = Item(id="x", split="test", input=INPUT, output="A", options={"A": "rise", "B": "fall"})
GOOD = "In 2014, which way did sales of 2.5 go? A. rise B. fall"


class Told:
    """Gives answers in turn until one passes, as the models' Asker does."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers
        self.reasons: list[str] = []
        self.messages: list[dict[str, str]] = []

    async def ask(
        self,
        messages: Sequence[dict[str, str]],
        shape: OutputSchema[T],
        *,
        check: Callable[[T], None],
    ) -> T:
        self.messages = list(messages)
        for text in self._answers:
            answer = shape.parse(json.dumps({"input": text}), mend=False)
            try:
                check(answer)
            except InvalidAnswer as error:
                self.reasons.append(str(error))
            else:
                return answer
        raise NoValidAnswer(f"no valid answer; the last one: {self.reasons[-1]}")


class Near:
    """Embeds all texts alike, except those that speak of bread."""

    name = "near"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        return np.array([[1, "bread" in text] for text in texts], dtype=np.float32)


async def test_a_good_paraphrase_passes_with_all_else_as_it_was() -> None:
    asker = Told(GOOD)
    found = await Paraphraser(asker, Near())(ITEM)
    assert found == Modified(item=ITEM.model_copy(update={"input": GOOD}), changes={})
    shown = asker.messages[1]["content"]
    assert all(f'"{kept}"' in shown for kept in ("2.5", "2014", "rise", "fall"))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (f" {INPUT}\n", "it is the input itself"),
        (GOOD.replace("2.5", "3.5"), "numbers or options were changed: 2.5"),
        (GOOD.replace("2014", "2014 and 2015"), "numbers or options were changed: 2015"),
        (GOOD.replace("B. fall", "B. drop"), "numbers or options were changed: fall"),
        (
            GOOD.replace("sales", "bread"),
            "it is too far from the input: stay nearer to its words "
            "(similarity 0.707, at least 0.9)",
        ),
    ],
)
async def test_a_bad_one_is_asked_for_again(bad: str, reason: str) -> None:
    asker = Told(bad, GOOD)
    found = await Paraphraser(asker, Near())(ITEM)
    assert isinstance(found, Modified)
    assert asker.reasons == [reason]


def test_the_end_of_a_long_text_counts() -> None:
    text = "word " * 300
    assert similarity(text, text, Near()) == pytest.approx(1)
    assert similarity(text, f"{text} and bread " * 3, Near()) < 1
    assert similarity("面" * 300, "面" * 300 + "bread", Near()) < 1


async def test_a_floor_of_ones_own() -> None:
    far = GOOD.replace("sales", "bread")
    found = await Paraphraser(Told(far), Near(), floor=0.7)(ITEM)
    assert isinstance(found, Modified)


async def test_without_a_valid_one_the_item_stays_unmodified() -> None:
    found = await Paraphraser(Told(INPUT), Near())(ITEM)
    assert found == Unmodified(
        id="x", reason="no valid answer; the last one: it is the input itself"
    )


async def test_a_models_asker_keeps_bad_ones_and_pays_once(tmp_path: Path) -> None:
    replies = script(json.dumps({"input": INPUT}), json.dumps({"input": GOOD}))
    store = open_calls(tmp_path / "calls.db")
    async with LLMServer(replies).running() as server:
        told = {"model": "openai:stub", "base_url": server.url}
        asker = exchange(store).open_client(ModelConfig.model_validate(told), "paraphraser")
        found = [await Paraphraser(asker, Near())(ITEM) for _ in range(2)]
        await close_models()
    assert [one.item.input for one in found if isinstance(one, Modified)] == [GOOD, GOOD]
    assert len(server.requests) == 2
    assert sorted((call.valid, call.role) for call in store.records()) == [
        (False, "paraphraser"),
        (True, "paraphraser"),
    ]
    store.close()
