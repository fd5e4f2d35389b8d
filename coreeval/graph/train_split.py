"""Items of the train split that PCR compares, drawn by hash.

A draw is always the same, and a smaller one is part of a larger one.
"""

from collections.abc import Iterator

from coreeval.config import Config
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.evaluation.embedded_targets import is_held_out
from coreeval.graph.setup import Setup
from coreeval.schema import Sample
from coreeval.tools.draws import draw_lowest


def max_train_items(config: Config, limit: int | None) -> int:
    """Return the most train split items that a run draws; 0 without a target.

    A run with a limit on samples takes no more train items than samples.
    """
    return config.pcr_samples if limit is None else min(limit, config.pcr_samples)


def draw_train(setup: Setup, most: int) -> list[Sample]:
    """Draw items of the train split, at most `most`.

    Raises:
        DatasetError: the split does not exist, or has no sample.
    """
    rows = draw_lowest(
        iter_train_rows(setup), most, id_of=lambda one: one.id, seed=setup.config.run.seed
    )
    return list(rows)


def iter_train_rows(setup: Setup) -> Iterator[Sample]:
    """Stream the items of the train split that may be drawn.

    With embedded targets, these are from the half that none of them is fitted on, so that the one
    that has seen nothing has seen none of them.
    """
    config = setup.config
    rows = iter_benchmark(config.dataset, setup.task, split=config.pcr_train_split)
    samples = (row for row in rows if isinstance(row, Sample))
    return filter(is_held_out, samples) if _is_fitted_on_train(config) else samples


def _is_fitted_on_train(config: Config) -> bool:
    embedded = any(target.is_embedded for target in config.models.targets)
    return embedded and config.pcr_train_split == config.dataset.train_split
