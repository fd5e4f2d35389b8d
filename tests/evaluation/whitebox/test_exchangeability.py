"""Orders of a file: shards, exact p-values by hand, and verdicts."""

import random
import re
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import ttest_1samp  # type: ignore[import-untyped]

from coreeval.errors import DatasetError
from coreeval.evaluation.detectors.base import DetectorInputs, SampleTexts
from coreeval.evaluation.detectors.exchangeability import EXCHANGEABILITY
from coreeval.evaluation.whitebox.exchangeability import (
    ExchangeabilitySettings,
    ShardFinding,
    combine_orders,
    compare_shards,
    join_neighbours,
    judge_exchangeability,
    judge_shards,
    list_orders,
    make_shards,
)
from coreeval.schema import Sample
from coreeval.tasks import load_task
from coreeval.tools.text_scores import TextScores

TEXTS = [f"text number {at:02}" for at in range(40)]
SETTINGS = ExchangeabilitySettings(shard=70, shuffles=9)


def test_shards_are_neighbours_and_every_order_has_the_same_texts() -> None:
    shards = make_shards(TEXTS, SETTINGS, seed=1)
    assert [text for shard in shards for text in shard.texts] == TEXTS
    assert all(len(shard.join(0)) <= 70 for shard in shards)
    for shard in shards:
        assert shard.join(0).split("\n") == list(shard.texts)
        assert len(shard.orders) == 10
        assert all(sorted(order) == sorted(shard.orders[0]) for order in shard.orders)
    again, other = (make_shards(TEXTS, SETTINGS, seed=seed) for seed in (1, 2))
    assert again == shards != other


def test_neighbours_of_one_cluster_stay_together_in_every_order() -> None:
    grouped = [("a", ["one"]), ("a", ["two"]), ("b", ["six"]), ("b", ["six"]), ("a", ["one"])]
    assert join_neighbours(grouped) == ["one\ntwo", "six", "one"]

    def read() -> Iterator[SampleTexts]:
        for at in range(20):
            fields = {"context": f"passage {at // 2:02}", "question": f"question {at:02}"}
            name, cluster = str(at), str(at // 2)
            sample = Sample(id=name, split="test", fields=fields, label=0, label_text="x",
                            cluster=cluster)  # fmt: skip
            yield SampleTexts(sample, {"original": fields})

    task = load_task("reading_comprehension")
    assert EXCHANGEABILITY.questions
    inputs = DetectorInputs(task=task, seed=1, texts=read, fields=read)
    orders = [question.text for question in EXCHANGEABILITY.questions(inputs)]
    assert len(set(orders)) > 9
    for order in orders:
        for at in range(10):
            even, odd = f"question {2 * at:02}", f"question {2 * at + 1:02}"
            assert f"passage {at:02} {even} {odd}" in order


def test_a_shared_passage_is_in_the_joined_text_once() -> None:
    passages = [f"passage {at} {'word ' * 110}" for at in range(60)]
    samples = [(passage, [passage, f"{at}?"]) for passage in passages for at in range(5)]
    joined = join_neighbours(samples)
    assert joined[0] == "\n".join([passages[0], "0?", "1?", "2?", "3?", "4?"])
    shards = make_shards(joined, ExchangeabilitySettings(), seed=1)
    assert sum(len(shard.texts) for shard in shards) == 60
    # a line that one text repeats is not shared
    assert join_neighbours([("a", ["{", "x", "x"]), ("a", ["{", "y", "y"])]) == ["{\nx\nx\ny\ny"]


def test_empty_and_long_texts_are_in_no_shard() -> None:
    texts = [*TEXTS[:3], "", "  ", "long " * 50, *TEXTS[3:6]]
    shards = make_shards(texts, SETTINGS, seed=1)
    assert [list(shard.texts) for shard in shards] == [TEXTS[:3], TEXTS[3:6]]


@pytest.mark.parametrize("texts", [[], ["one"], ["long " * 50] * 4, ["same"] * 9])
def test_texts_without_an_order_are_one_error(texts: list[str]) -> None:
    with pytest.raises(DatasetError, match="no two different texts"):
        make_shards(texts, SETTINGS, seed=1)


def test_the_error_suggests_a_shard_that_half_of_the_neighbours_fit_into() -> None:
    texts = [f"{at} {'long ' * at}".strip() for at in range(20, 41)]
    with pytest.raises(DatasetError) as raised:
        make_shards(texts, SETTINGS, seed=1)
    found = re.search(r"set --shard (\d+):", raised.value.hint or "")
    assert found
    shards = make_shards(texts, ExchangeabilitySettings(shard=int(found[1])), seed=1)
    assert sum(len(shard.texts) for shard in shards) == 12
    with pytest.raises(DatasetError) as raised:
        make_shards(["one"], SETTINGS, seed=1)
    assert "several different texts" in (raised.value.hint or "")
    assert "--shard" not in (raised.value.hint or "")


def test_the_exact_p_value_counts_all_combinations() -> None:
    # one shard: the published order is the second of four
    assert combine_orders(np.array([[3.0, 1.0, 2.0, 4.0]])) == 2 / 4
    # two shards, sums of the published ones 3 + 1 = 4: of 3 + {1, 0}, 1 + {1, 0} one is as high
    assert combine_orders(np.array([[3.0, 1.0], [1.0, 0.0]])) == 1 / 4
    # a tie counts against the published order
    assert combine_orders(np.array([[1.0, 1.0], [1.0, 1.0]])) == 1.0


def test_many_combinations_are_drawn() -> None:
    values = np.random.default_rng(3).normal(size=(12, 10))
    values[:, 0] += 1.0
    found = combine_orders(values)
    assert found == combine_orders(values)
    assert found == pytest.approx(combine_orders(values, combinations=99_999), abs=0.01)
    values[:, 0] += 9.0
    assert combine_orders(values) == 1 / 10_000


def test_the_t_test_is_that_of_scipy() -> None:
    values = np.random.default_rng(4).normal(size=(8, 6))
    due = ttest_1samp(values[:, 0] - values[:, 1:].mean(axis=1), 0.0, alternative="greater")
    statistic, p = compare_shards(values)
    assert statistic == pytest.approx(due.statistic)
    assert p == pytest.approx(due.pvalue)
    assert compare_shards(np.ones((3, 4))) == (None, None)


def make_found(shards: int, gain: float, seed: int) -> list[ShardFinding]:
    chance = random.Random(seed)
    return [
        ShardFinding(
            texts=5,
            published=chance.gauss(gain, 1),
            others=tuple(chance.gauss(0, 1) for _ in range(9)),
        )
        for _ in range(shards)
    ]


def test_a_preference_is_found_and_none_is_rarely() -> None:
    assert judge_shards(make_found(12, 1.5, 0), 60).verdict == "ordered"
    verdicts = [judge_shards(make_found(12, 0.0, seed), 60).verdict for seed in range(200)]
    assert verdicts.count("ordered") <= 6  # level 0.01: more than 6 of 200 in 1 of 200 trials
    assert set(verdicts) <= set(EXCHANGEABILITY.verdicts)


def test_few_texts_or_orders_are_told() -> None:
    assert judge_shards(make_found(3, 9.0, 0), 15).reason.startswith("15 texts in shards")
    one = [ShardFinding(texts=40, published=0.0, others=(-1.0,) * 9)]
    found = judge_shards(one, 40)
    assert found.verdict == "too_few" and "a larger --shuffles" in found.reason
    assert (found.exact_p, found.t_p) == (0.1, None)


def test_a_shard_without_all_its_scores_is_left_out() -> None:
    shards = make_shards(TEXTS, SETTINGS, seed=1)
    scores = {each.key: TextScores(logprobs=(-1.0,)) for each in list_orders(shards)}
    del scores["0:4"]
    found = judge_exchangeability(shards, scores, len(TEXTS))
    assert len(found.shards) == len(shards) - 1
    assert found.left_out == len(shards[0].texts)
    found = judge_exchangeability(shards, {}, len(TEXTS))
    assert found.verdict == "too_few" and "use a larger --shard if" in found.reason


def test_orders_that_are_all_as_probable_say_nothing() -> None:
    shards = make_shards(TEXTS, SETTINGS, seed=1)
    same = {one.key: TextScores(logprobs=(0.0, 0.0)) for one in list_orders(shards)}
    found = judge_exchangeability(shards, same, len(TEXTS))
    assert found.verdict == "too_few"
    assert "every order of every shard the same log-probability" in found.reason
