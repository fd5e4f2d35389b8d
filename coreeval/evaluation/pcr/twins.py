"""The items of a split that are asked about, each with its modified twin."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from coreeval.evaluation.benchmarks.items import Items
from coreeval.evaluation.modifications import BY_RULE, Modified, Unmodified
from coreeval.schema import BadRow, Item

Modify = Callable[[Item], Modified | Unmodified]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Items of a split, drawn by chance, in the split's order."""

    split: str
    total: int
    """Items that the split has."""
    items: tuple[Item, ...]
    bad_rows: tuple[BadRow, ...]


@dataclass(frozen=True, kw_only=True)
class Twins:
    """What is asked of a split: pairs of an item and its modified twin."""

    drawn: Drawn
    pairs: tuple[tuple[Item, Item], ...]
    left_out: tuple[Unmodified, ...]
    """Items without a twin."""

    @property
    def unchanged(self) -> int:
        """Recorded twins whose text is that of their item."""
        return sum(item.input == twin.input for item, twin in self.pairs)

    @property
    def reasons(self) -> dict[str, int]:
        """How many items were left out for each reason, the commonest first."""
        counts: dict[str, int] = {}
        for one in self.left_out:
            counts[one.reason] = counts.get(one.reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda each: -each[1]))


def draw(found: Items, split: str, *, most: int, seed: int) -> Drawn:
    """Draw so many items of a split, the same ones for the same seed."""
    items, chance = found.items, Random(f"{seed}:{split}")
    places = sorted(chance.sample(range(len(items)), min(most, len(items))))
    return Drawn(
        split=split,
        total=len(items),
        items=tuple(items[place] for place in places),
        bad_rows=found.bad_rows,
    )


def by_rule(name: str, *, seed: int) -> Modify:
    """Return a modification that needs no model."""
    return lambda item: BY_RULE[name](item, seed=seed)


def recorded(found: Sequence[Item]) -> Modify:
    """Return the modification that somebody made before: an item's twin has its id."""
    twins: Mapping[str, Item] = {twin.id: twin for twin in found}

    def modify(item: Item) -> Modified | Unmodified:
        twin = twins.get(item.id)
        if twin is None:
            return Unmodified(id=item.id, reason="there is no recorded modified item for it")
        return Modified(item=twin, changes={})

    return modify


def twins_of(drawn: Drawn, outcomes: Iterable[Modified | Unmodified]) -> Twins:
    """Put each item beside what became of it, in the order of the items."""
    made = list(zip(drawn.items, outcomes, strict=True))
    return Twins(
        drawn=drawn,
        pairs=tuple((item, one.item) for item, one in made if isinstance(one, Modified)),
        left_out=tuple(one for _, one in made if isinstance(one, Unmodified)),
    )
