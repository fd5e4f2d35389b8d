"""What a modification makes of an item."""

from coreeval.schema import Item, Value


class Modified(Value):
    """The modified twin of an item, under the same id."""

    item: Item
    changes: dict[str, str]
    """What became what: an option's letter, a year, a label's place; empty for a paraphrase."""


class Unmodified(Value):
    """Why an item has no modified twin; it takes no part in a comparison."""

    id: str
    reason: str
