"""A part of a benchmark: its first, random or stratified samples, or those of labels or ids."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Literal, get_args

from coreeval.errors import DatasetError, UsageError, suggest_name
from coreeval.schema import BadRow, Sample, Value
from coreeval.tools.formatting import format_quantity, list_first, plural

SampleOrder = Literal["first", "random", "stratified"]
"""The order of choice within a limit; `stratified` keeps the shares of the labels."""
MOST_NAMED: Final = 3
"""The most unknown ids that a message names."""


class Subset(Value):
    """The choice of a run's samples: all samples of a benchmark that meet every condition."""

    limit: int | None = None
    """The most samples; None for no limit."""
    order: SampleOrder = "first"
    seed: int = 0
    ids: tuple[str, ...] = ()
    """The ids of the samples; empty for any."""
    labels: tuple[str, ...] = ()
    """The names of their labels; empty for any."""

    @property
    def is_first(self) -> bool:
        """Return whether it is the start of the benchmark, up to the limit."""
        return self.order == "first" and not self.ids and not self.labels

    def describe(self) -> str:
        """Return a description of the choice."""
        chosen = "all samples"
        if self.limit is not None:
            chosen = f"the first {format_quantity(self.limit, 'sample')}"
        if self.order != "first":
            chosen = (
                f"{format_quantity(self.limit or 0, f'{self.order} sample')} (seed {self.seed})"
            )
        listed = f" of {format_quantity(len(self.ids), 'listed id')}" if self.ids else ""
        labelled = (
            f" with the {plural(len(self.labels), 'label')} {', '.join(self.labels)}"
            if self.labels
            else ""
        )
        return f"only part of the benchmark was used: {chosen}{listed}{labelled}"


def build_subset(
    limit: int | None,
    order: str,
    ids: Sequence[str],
    labels: Sequence[str],
    *,
    named: Callable[[str], str] = str,
) -> Subset | None:
    """Return the samples that a user chooses; None for all, or for the first ones.

    Args:
        limit: The most samples; None for no limit.
        order: How they are chosen within the limit.
        ids: Their ids; empty for any.
        labels: The names of their labels; empty for any.
        named: A function that returns the name of an argument, as the user knows it.

    Raises:
        UsageError: the order does not exist or has no limit, or the limit is not positive.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"{limit} is not a valid number of samples", where=named("limit"))
    orders: tuple[str, ...] = get_args(SampleOrder)
    if order not in orders:
        hint = suggest_name(order, orders)
        raise UsageError(f"{order!r} is not a valid order", where=named("sample"), hint=hint)
    if order != "first" and limit is None:
        raise UsageError(
            f"{named('sample')} requires {named('limit')}, but {named('limit')} is missing",
            where=named("sample"),
            hint=f"add {named('limit')} N",
        )
    chosen = Subset.model_validate(
        {"limit": limit, "order": order, "ids": tuple(dict.fromkeys(ids)), "labels": tuple(labels)}
    )
    return None if chosen.is_first else chosen


def choose_ids(rows: Iterable[Sample | BadRow], subset: Subset) -> frozenset[str]:
    """Return the ids of the samples that a subset takes.

    A random choice depends only on the seed and the ids: it does not change if the benchmark is
    reordered, and a larger limit adds to it.

    Raises:
        DatasetError: the benchmark lacks a named id or label, or no sample meets the conditions.
    """
    known = [(row.id, row.label_text) for row in rows if isinstance(row, Sample)]
    _check_known("id", subset.ids, [name for name, _ in known])
    _check_known("label", subset.labels, sorted({label for _, label in known}))
    ids, labels = set(subset.ids), set(subset.labels)
    found = [
        (name, label)
        for name, label in known
        if (not ids or name in ids) and (not labels or label in labels)
    ]
    if not found:
        raise DatasetError("no sample has both a listed id and one of the labels of --label")
    if subset.limit is None:
        return frozenset(name for name, _ in found)
    return frozenset(_choose(found, subset, subset.limit))


def _check_known(what: str, named: Sequence[str], known: Sequence[str]) -> None:
    there = set(known)
    unknown = [name for name in named if name not in there]
    if not unknown:
        return
    listed = list_first([repr(name) for name in unknown], MOST_NAMED)
    example = f"available: {', '.join(known[:MOST_NAMED])}, …"
    raise DatasetError(
        f"the benchmark has no sample with the {what} {listed}",
        hint=suggest_name(unknown[0], islice(known, 10_000), example),
    )


def _choose(found: Sequence[tuple[str, str]], subset: Subset, limit: int) -> Iterator[str]:
    if subset.order == "first":
        yield from (name for name, _ in found[:limit])
        return
    ranked = sorted(found, key=lambda pair: _rank(subset.seed, pair[0]))
    if subset.order == "random":
        yield from (name for name, _ in ranked[:limit])
        return
    left = _share_out(Counter(label for _, label in found), limit)
    for name, label in ranked:
        if left[label]:
            left[label] -= 1
            yield name


def _rank(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{name}".encode(errors="surrogatepass")).digest()


def _share_out(counts: Counter[str], limit: int) -> Counter[str]:
    """Return the number of samples of each label: its share, rounded so the sum is the limit."""
    total = counts.total()
    limit = min(limit, total)
    shares = Counter({label: limit * number // total for label, number in counts.items()})
    rest = sorted(counts, key=lambda label: (-(limit * counts[label] % total), label))
    shares.update(rest[: limit - shares.total()])
    return shares
