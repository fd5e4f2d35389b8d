"""A quiz: which of two texts is the published one, the original or its rewording?

The Data Contamination Quiz (Golchin and Surdeanu, arXiv 2311.06233) shows a text among rewordings
of it and asks which one is from the benchmark. A run has one rewording of an original, so a quiz
here has two options, and chance is one half. Each quiz is asked twice, with the original in each
position, so a preference for a position picks the original once and the rewording once.

The updated text of a sample has no rewording in a run, so no twin has a quiz: the comparison is
with chance. A target that recognises texts written by models picks originals without having read
them.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

import numpy as np

from coreeval.evaluation.answer_parsers import read_choice
from coreeval.evaluation.metrics.text import find_words
from coreeval.evaluation.recitation import (
    ALPHA,
    FEWEST_ITEMS,
    FEWEST_WORDS,
    MOST_ITEMS,
    MOST_REFUSED,
    ArmFields,
    draw_items,
    exact_p,
    find_longest_field,
    keep_words,
    score_means,
)
from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.schema import AnswerKind, Value

QuizVerdict = Literal["picks_originals", "no_preference", "too_few", "refusing"]
FirstText = Literal["original", "reworded"]
"""The text that is shown first, as option A."""
ORDERS: Final[tuple[FirstText, ...]] = ("original", "reworded")


class QuizItem(NamedTuple):
    """A sample whose original has a rewording."""

    id: str
    original: str
    reworded: str

    def order(self, first: FirstText) -> dict[str, str]:
        """Return the options by letter, with the given text first."""
        texts = (self.original, self.reworded)
        return dict(zip("AB", texts if first == "original" else reversed(texts), strict=True))


class Quiz(Value):
    """The finding on one target."""

    verdict: QuizVerdict
    reason: str
    asked: int
    """The number of items that the target was asked about, each in both orders."""
    unanswered: int
    """The number of questions without an answer that picks one text."""
    items: int
    """The number of items with a picked text in both orders."""
    original: int
    """The number of items whose original was picked in both orders."""
    reworded: int
    """The number of items whose rewording was picked in both orders."""
    first: int
    """The number of items of which the first text was picked in both orders."""
    last: int
    picked: Score
    """The share of the answers that pick the original; one half by chance."""
    p_value: float
    """One-sided exact p-value, for the hypothesis that originals are not picked in both orders more
    often than their rewordings (sign test)."""


def choose_quiz_items(samples: Iterable[tuple[str, ArmFields]], *, seed: int) -> list[QuizItem]:
    """Return the items to ask targets about, at most `MOST_ITEMS`, drawn by seed and id.

    Samples with the same original text are one item.

    Args:
        samples: The id of each sample, and its fields by arm. The longest field is shown.
        seed: The seed of the draw, which depends only on the seed and the ids.
    """
    found = (item for sample, arms in samples if (item := _make_item(sample, arms)))
    return draw_items(found, _read_original, seed=seed, most=MOST_ITEMS)


def _read_original(item: QuizItem) -> str:
    return " ".join(find_words(item.original))


def _make_item(sample: str, arms: ArmFields) -> QuizItem | None:
    field = find_longest_field(arms)
    if not field or "semantic" not in arms:
        return None
    original, reworded = arms["original"][field], arms["semantic"][field]
    words = find_words(original)
    if len(words) < FEWEST_WORDS or words == find_words(reworded):
        return None
    return QuizItem(sample, original, reworded)


def judge_quiz(
    items: Iterable[QuizItem], answers: Mapping[tuple[str, FirstText], tuple[AnswerKind, str]]
) -> Quiz:
    """Return the finding on a target.

    Each item counts for the text that was picked in both orders; items whose picks follow the
    position do not count. Under the null hypothesis, the original and its rewording are equally
    likely to be picked in both (sign test, Dixon and Mood 1946).

    Args:
        items: The items that the target was asked about.
        answers: The kind and text of the target's answers, by item id and first text.
    """
    known, words = list(items), keep_words(answers)
    letters = {
        (item.id, first): letter
        for item in known
        for first in ORDERS
        if (item.id, first) in words
        and (letter := read_choice(words[item.id, first], item.order(first)))
    }
    pairs = [
        (letters[item.id, "original"], letters[item.id, "reworded"])
        for item in known
        if all((item.id, first) in letters for first in ORDERS)
    ]
    original, reworded = pairs.count(("A", "B")), pairs.count(("B", "A"))
    p_value = exact_p(original, reworded)
    verdict, reason = _judge(len(known), len(pairs), original, reworded, p_value)
    return Quiz(
        verdict=verdict,
        reason=reason,
        asked=len(known),
        unanswered=len(ORDERS) * len(known) - len(letters),
        items=len(pairs),
        original=original,
        reworded=reworded,
        first=pairs.count(("A", "A")),
        last=pairs.count(("B", "B")),
        picked=_score_picks(pairs),
        p_value=p_value,
    )


def _score_picks(pairs: list[tuple[str, str]]) -> Score:
    """Return the share of answers that pick the original, over items."""
    if not pairs:
        return NO_SCORE
    shares = np.array([((one == "A") + (other == "B")) / 2 for one, other in pairs])
    return score_means(shares[:, np.newaxis], differences=0)[0]


def _judge(
    asked: int, items: int, original: int, reworded: int, p_value: float
) -> tuple[QuizVerdict, str]:
    if asked >= FEWEST_ITEMS and items < (1 - MOST_REFUSED) * asked:
        return "refusing", f"it picked a text in both orders for {items} of {asked} originals"
    if items < FEWEST_ITEMS:
        return "too_few", (
            f"{items} different texts have at least {FEWEST_WORDS} words, a reworded twin and "
            f"answers in both orders; {FEWEST_ITEMS} are needed"
        )
    counts = (
        f"in both orders it picked {original} of {items} originals and {reworded} rewordings "
        f"(p = {p_value:.2g})"
    )
    return ("picks_originals" if p_value <= ALPHA else "no_preference"), counts
