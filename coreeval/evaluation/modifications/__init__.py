"""Modifications of items (CAP paper, section 3.5): the answer stays what it was, or moves along."""

from collections.abc import Callable

from coreeval.evaluation.modifications.labels import shuffle_label_order
from coreeval.evaluation.modifications.options import shuffle_options
from coreeval.evaluation.modifications.order import derangement
from coreeval.evaluation.modifications.outcome import Modified, Unmodified
from coreeval.evaluation.modifications.paraphrase import Paraphraser
from coreeval.evaluation.modifications.year_shift import shift_years

BY_RULE: dict[str, Callable[..., Modified | Unmodified]] = {
    "option_shuffle": shuffle_options,
    "year_shift": shift_years,
}
"""By name, those that need no model: `modify(item, seed=7)`."""

__all__ = [
    "BY_RULE",
    "Modified",
    "Paraphraser",
    "Unmodified",
    "derangement",
    "shift_years",
    "shuffle_label_order",
    "shuffle_options",
]
