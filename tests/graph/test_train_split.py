"""Drawing items: always the same, a few among many, and none that a target was fitted on."""

from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from coreeval.config import load_config
from coreeval.evaluation.embedded_targets import split_train
from coreeval.graph.bundled import MEMORY, demo_data
from coreeval.graph.setup import Setup, set_up
from coreeval.graph.train_split import draw_train, iter_train_rows, max_train_items
from coreeval.tools.clock import utc_now
from coreeval.tools.draws import draw_lowest
from tests.graph.kit import config_of

IDS = st.lists(st.text(max_size=4), max_size=40, unique=True)


def setup(folder: Path, *targets: str, **changes: object) -> Setup:
    config = config_of("http://127.0.0.1:9/v1") | {
        "dataset": {"format": "jsonl", "path": str(demo_data() / MEMORY)},
        "models": {"default": "offline", "targets": list(targets)},
        "detect": {"pcr": {"samples": 30}},
    }
    path = folder / "any.yaml"
    path.write_text(yaml.safe_dump(config | changes))
    return set_up(load_config(path), utc_now())


@given(IDS, st.integers(0, 45), st.integers(0, 45), st.randoms(use_true_random=False))
def test_few_are_the_first_of_many_in_whatever_order_they_come(
    ids: list[str], few: int, more: int, chance: Random
) -> None:
    many = draw_lowest(ids, few + more, id_of=str, seed=7)
    assert len(many) == min(len(ids), few + more)
    chance.shuffle(ids)
    assert draw_lowest(ids, few, id_of=str, seed=7) == many[:few]


def test_another_seed_draws_others_and_all_are_as_likely() -> None:
    ids = [str(number) for number in range(50)]
    draws = [draw_lowest(ids, 10, id_of=str, seed=seed) for seed in range(400)]
    assert draws[0] != draws[1]
    times = [sum(one in draw for draw in draws) for one in ids]
    assert min(times) > 400 * 0.2 - 40 and max(times) < 400 * 0.2 + 40  # five standard deviations


def test_models_are_compared_on_all_of_the_train_split(tmp_path: Path) -> None:
    found = setup(tmp_path, "openai:some")
    assert len(list(iter_train_rows(found))) == 200
    drawn = draw_train(found, 30)
    assert len({one.id for one in drawn}) == 30
    assert {one.split for one in drawn} == {"train"}
    assert drawn[:5] == draw_train(found, 5)


def test_with_embedded_targets_only_what_none_is_fitted_on_is_drawn(tmp_path: Path) -> None:
    everything = list(iter_train_rows(setup(tmp_path, "openai:some")))
    found = list(iter_train_rows(setup(tmp_path, "openai:some", "offline:clean")))
    fitted_on, to_compare = split_train(everything)
    assert found == to_compare
    assert 0 < len(fitted_on) < 200


def test_of_another_split_than_they_are_fitted_on_all_may_be_drawn(tmp_path: Path) -> None:
    detect = {"pcr": {"train_split": "train"}}
    dataset = {"format": "jsonl", "path": str(demo_data() / MEMORY), "train_split": "test"}
    found = setup(tmp_path, "offline:clean", detect=detect, dataset=dataset)
    assert len(list(iter_train_rows(found))) == 200


@pytest.mark.parametrize(
    ("targets", "limit", "most"),
    [
        (["openai:some"], None, 30),
        (["openai:some"], 5, 5),
        (["openai:some"], 50, 30),
        ([], None, 0),
    ],
)
def test_as_many_as_are_wanted_and_no_more_than_samples(
    tmp_path: Path, targets: list[str], limit: int | None, most: int
) -> None:
    assert max_train_items(setup(tmp_path, *targets).config, limit) == most


def test_without_pcr_nothing_is_drawn(tmp_path: Path) -> None:
    assert max_train_items(setup(tmp_path, "openai:some", detect={}).config, None) == 0
