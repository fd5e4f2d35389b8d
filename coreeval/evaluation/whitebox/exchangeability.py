"""Whether a model prefers the published order of a benchmark's texts to any other (Oren et al.).

The texts of a benchmark may be in any order, and a model that has not read the file finds all
orders equally probable. A preference for the published order therefore proves reading, without any
unread text for comparison (Oren et al. 2023, arXiv 2310.17623). The texts are divided into
independent shards.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from random import Random
from typing import Final, Literal, NamedTuple

import numpy as np

from coreeval.errors import DatasetError
from coreeval.evaluation.statistics import Array
from coreeval.schema import Value
from coreeval.tools.formatting import format_quantity
from coreeval.tools.text_scores import TextScores

ExchangeabilityVerdict = Literal["ordered", "exchangeable", "too_few"]
MOST_TEXTS: Final = 300
"""The most texts that are scored, from the first on (own choice)."""
SHARD_CHARACTERS: Final = 1500
"""The most characters of a shard (own choice: some 430 tokens, which fit any window)."""
SHUFFLES: Final = 19
"""The number of other orders of each shard (own choice: shards are combined, so few are enough)."""
FEWEST_TEXTS: Final = 20
"""The fewest texts in shards for a verdict (own choice)."""
ALPHA: Final = 0.01
"""The level of the exact one-sided test (own choice: as for recitation)."""
COMBINATIONS: Final = 9_999
"""The number of combinations of the shards' orders to compare with the published one."""
SEPARATOR: Final = "\n"


class ExchangeabilitySettings(Value):
    """What is scored."""

    texts: int = MOST_TEXTS
    shuffles: int = SHUFFLES
    shard: int = SHARD_CHARACTERS
    """The most characters of a shard."""


@dataclass(frozen=True)
class Shard:
    """Consecutive texts of a file."""

    texts: Sequence[str]
    """The texts in their published order."""
    orders: Sequence[Sequence[int]]
    """The published order first, then random ones."""

    def join(self, order: int) -> str:
        """Return the texts in one of the orders, as one text."""
        return SEPARATOR.join(self.texts[at] for at in self.orders[order])


class OrderRequest(NamedTuple):
    """The texts of a shard in one order, to be scored as one text."""

    key: str
    text: str


class ShardFinding(Value):
    """A model's log-probabilities of the orders of a shard."""

    texts: int
    published: float
    """The log-probability of the published order."""
    others: tuple[float, ...]
    """The log-probabilities of the random orders."""


class Exchangeability(Value):
    """The finding on one model."""

    verdict: ExchangeabilityVerdict
    reason: str
    texts: int
    """Texts in shards that were scored."""
    shuffles: int
    exact_p: float | None
    """One-sided p-value over random combinations of the shards' orders."""
    t_statistic: float | None
    t_p: float | None
    """One-sided p-value of the paper's t-test over shards; None for fewer than two shards."""
    mean_gain: float | None
    """Mean over shards of the log-probability of the published order minus that of random
    orders."""
    shards: tuple[ShardFinding, ...]
    left_out: int
    """The number of texts in no shard: longer than a shard, or in a shard without scores."""


def join_neighbours(texts: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the texts in their order, with neighbours of one cluster joined into one text.

    The texts of a cluster, such as questions about one passage, are neighbours in a published file.
    Any model finds this order more probable than one that separates them, so they keep it in every
    order. A part that several of them share, such as the passage, is in the joined text once.

    Args:
        texts: The cluster of each sample, and the parts of its text: its fields or lines.
    """
    return [
        SEPARATOR.join(_join_parts(parts for _, parts in neighbours))
        for _, neighbours in groupby(texts, key=itemgetter(0))
    ]


def _join_parts(texts: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the parts of each text that no earlier text has."""
    seen = set[str]()
    for parts in texts:
        yield from (part for part in parts if part not in seen)
        seen.update(parts)


def make_shards(
    texts: Sequence[str], settings: ExchangeabilitySettings, *, seed: int
) -> list[Shard]:
    """Divide texts into shards of neighbours, each with its orders.

    Args:
        texts: The texts in their published order; empty ones are skipped.
        settings: What is scored.
        seed: The seed of the random orders.

    Raises:
        DatasetError: no two texts fit into a shard.
    """
    groups, size = list[list[str]]([[]]), 0
    chosen = [" ".join(each.split()) for each in texts if each.strip()][: settings.texts]
    for text in chosen:
        if groups[-1] and size + len(text) > settings.shard:
            groups.append([])
            size = 0
        groups[-1].append(text)
        size += len(text) + len(SEPARATOR)
    shards = [
        Shard(group, _draw_orders(len(group), settings.shuffles, Random(f"{seed} {number}")))
        for number, group in enumerate(groups)
        if len(group) > 1 and len(set(group)) > 1
    ]
    if not shards:
        raise DatasetError(
            f"no two different texts fit together within {settings.shard:,} characters",
            where="the benchmark's texts",
            hint=_suggest_shard(chosen),
        )
    return shards


def _suggest_shard(texts: Sequence[str]) -> str:
    pairs = sorted(
        len(one) + len(SEPARATOR) + len(other) for one, other in pairwise(texts) if one != other
    )
    if not pairs:
        return (
            "use a benchmark with several different texts; neighbouring samples of one cluster "
            "count as one text"
        )
    length = pairs[len(pairs) // 2]
    return (
        f"set --shard {length}: half of the neighbouring texts fit together within {length:,} "
        "characters, where neighbouring samples of one cluster count as one text"
    )


def _draw_orders(number: int, shuffles: int, chance: Random) -> list[list[int]]:
    return [list(range(number)), *(chance.sample(range(number), number) for _ in range(shuffles))]


def list_orders(shards: Sequence[Shard]) -> list[OrderRequest]:
    """Return each shard in each of its orders."""
    return [
        OrderRequest(f"{number}:{order}", shard.join(order))
        for number, shard in enumerate(shards)
        for order in range(len(shard.orders))
    ]


def judge_exchangeability(
    shards: Sequence[Shard], scores: Mapping[str, TextScores], texts: int
) -> Exchangeability:
    """Return the finding from the log-probabilities of the orders.

    Args:
        shards: The shards.
        scores: The scores of their orders by key. A shard with a missing score is left out.
        texts: The number of texts that the shards were cut from.
    """
    found = list[ShardFinding]()
    for number, shard in enumerate(shards):
        totals = [
            scores[key].total
            for order in range(len(shard.orders))
            if (key := f"{number}:{order}") in scores
        ]
        if len(totals) == len(shard.orders):
            found.append(
                ShardFinding(texts=len(shard.texts), published=totals[0], others=tuple(totals[1:]))
            )
    return judge_shards(found, texts)


def judge_shards(found: Sequence[ShardFinding], texts: int) -> Exchangeability:
    """Return the finding from shards with scored orders.

    Args:
        found: The shards.
        texts: The number of texts that they were cut from.
    """
    number = sum(each.texts for each in found)
    values = np.array([[each.published, *each.others] for each in found])
    exact = combine_orders(values) if len(found) else None
    statistic, t_p = compare_shards(values) if len(found) > 1 else (None, None)
    gains = values[:, 0] - values[:, 1:].mean(axis=1) if len(found) else None
    verdict, reason = _judge(number, values, exact)
    if verdict == "too_few" and number < texts:
        reason += (
            f"; {format_quantity(texts - number, 'text')} without a score: use a larger --shard if "
            "texts are longer than a shard, and a smaller one if shards are longer than the "
            "model's window"
        )
    return Exchangeability(
        verdict=verdict,
        reason=reason,
        texts=number,
        shuffles=values.shape[1] - 1 if len(found) else 0,
        exact_p=exact,
        t_statistic=statistic,
        t_p=t_p,
        mean_gain=None if gains is None else float(gains.mean()),
        shards=tuple(found),
        left_out=texts - number,
    )


def combine_orders(values: Array, *, combinations: int = COMBINATIONS) -> float:
    """Return the one-sided p-value of the published orders of all shards together.

    For a model that has not read the file, the published order of a shard is exchangeable with its
    random orders, and shards are independent. So the sum over shards of the published orders is
    compared with the sum of each combination of one order from each shard, or with `combinations`
    random combinations if there are more: (1 + the number at least as high) / (1 + all) (Phipson
    and Smyth 2010).

    Args:
        values: Log-probabilities of shape (shards, orders), the published order first.
        combinations: The number of random combinations.
    """
    shards, orders = values.shape
    own = values[:, 0].sum() - 1e-9
    if orders**shards <= combinations:
        sums = np.zeros(1)
        for row in values:
            sums = (sums[:, None] + row).ravel()
        return float(np.mean(sums >= own))
    drawn = np.random.default_rng(0).integers(orders, size=(combinations, shards))
    sums = values[np.arange(shards), drawn].sum(axis=1)
    return float((1 + np.count_nonzero(sums >= own)) / (1 + combinations))


def compare_shards(values: Array) -> tuple[float | None, float | None]:
    """Return the t statistic and its one-sided p-value over shards; None if no shard differs.

    The value of a shard is the log-probability of its published order minus the mean of its random
    orders (Oren et al. 2023, section 3.2).

    Args:
        values: Log-probabilities of shape (shards, orders), the published order first.
    """
    from scipy.special import stdtr  # type: ignore[import-untyped]  # slow to import

    gains = values[:, 0] - values[:, 1:].mean(axis=1)
    error = float(gains.std(ddof=1)) / len(gains) ** 0.5
    if error == 0:
        return None, None
    statistic = float(gains.mean()) / error
    return statistic, float(stdtr(len(gains) - 1, -statistic))


def _judge(texts: int, values: Array, exact: float | None) -> tuple[ExchangeabilityVerdict, str]:
    if exact is None or texts < FEWEST_TEXTS:
        return "too_few", f"{texts} texts in shards were scored, but {FEWEST_TEXTS} are needed"
    if np.ptp(values) == 0:
        return "too_few", "the model gives every order of every shard the same log-probability"
    shards, orders = values.shape
    if orders**shards < 1 / ALPHA:
        return "too_few", (
            f"{shards} shards with {orders} orders each cannot reach p = {ALPHA}: use more texts "
            "or a larger --shuffles"
        )
    best = int((values[:, 0] >= values.max(axis=1)).sum())
    said = (
        f"the published order is the most probable of {orders} orders in {best} of {shards} shards "
        f"(p = {exact:.2g})"
    )
    return ("ordered" if exact <= ALPHA else "exchangeable"), said
