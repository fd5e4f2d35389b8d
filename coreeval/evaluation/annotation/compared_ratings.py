"""Ratings prepared to measure agreement: which ratings are the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from coreeval.evaluation.annotation.criteria import (
    FORMS,
    NO_OPTION,
    Criterion,
    CriterionForm,
    CriterionName,
    GivenAnswer,
    RatedText,
)
from coreeval.evaluation.annotation.ratings import RatingCollection
from coreeval.tasks.kinds.choice import LETTERS

Ratings = Mapping[str, Mapping[str, int]]
"""The ratings by one criterion: item -> rater -> value."""
Answers = Mapping[str, Mapping[str, GivenAnswer]]


@dataclass(frozen=True, kw_only=True)
class ComparedRatings:
    """The ratings by one criterion."""

    pairs: Ratings
    """The ratings for pairs of raters: ratings of one item are equal if they mean the same."""
    categories: Ratings
    """The ratings for kappa and alpha, which compare the ratings of all items."""
    values: tuple[int, ...]
    """The categories."""
    names: Mapping[int, str]
    """The names of categories; a category without a name is shown by its number."""

    def select(self, items: Sequence[str]) -> "ComparedRatings":
        """Return the ratings of some items."""
        pairs, categories = (
            {item: each[item] for item in items} for each in (self.pairs, self.categories)
        )
        return replace(self, pairs=pairs, categories=categories)


def compare_ratings(criterion: Criterion, collected: RatingCollection) -> ComparedRatings:
    """Return the ratings by a criterion, prepared to measure agreement.

    Letters are separate categories. Answers in words are not: kappa and alpha compare which answers
    are right, and only pairs of raters are compared by their words.
    """
    ratings = collected.ratings[criterion.name]
    return _COMPARED[criterion.form](criterion, ratings, collected)


def _compare_values(
    criterion: Criterion, ratings: Ratings, collected: RatingCollection
) -> ComparedRatings:
    return ComparedRatings(pairs=ratings, categories=ratings, values=criterion.values, names={})


def _compare_letters(
    criterion: Criterion, ratings: Ratings, collected: RatingCollection
) -> ComparedRatings:
    names = (*LETTERS, NO_OPTION)
    letters = {
        item: {rater: names.index(given.words) for rater, given in by.items()}
        for item, by in collected.answers[criterion.name].items()
    }
    used = sorted({letter for by in letters.values() for letter in by.values()})
    return ComparedRatings(
        pairs=letters, categories=letters, values=tuple(used), names=dict(enumerate(names))
    )


def _compare_words(
    criterion: Criterion, ratings: Ratings, collected: RatingCollection
) -> ComparedRatings:
    groups = {
        item: _number_answers(by, collected.texts[item])
        for item, by in collected.answers[criterion.name].items()
    }
    return ComparedRatings(
        pairs=groups,
        categories=ratings,
        values=criterion.values,
        names={0: "wrong answers", 1: "right answers"},
    )


def _number_answers(given: Mapping[str, GivenAnswer], text: RatedText) -> dict[str, int]:
    """Return a number by rater; raters whose answers mean the same have the same number."""
    is_same = FORMS["text"].is_same
    first = list[GivenAnswer]()
    numbers = dict[str, int]()
    for rater, answer in given.items():
        known = (n for n, each in enumerate(first) if is_same(text, each, answer))
        numbers[rater] = next(known, len(first))
        if numbers[rater] == len(first):
            first.append(answer)
    return numbers


_COMPARED: Final[
    Mapping[CriterionForm, Callable[[Criterion, Ratings, RatingCollection], ComparedRatings]]
] = {"scale": _compare_values, "option": _compare_letters, "text": _compare_words}


def list_given(name: CriterionName, item: str, collected: RatingCollection) -> dict[str, int | str]:
    """Return each rater's rating of an item by a criterion: a value, a letter or an answer."""
    if name in collected.answers:
        return {rater: given.words for rater, given in collected.answers[name][item].items()}
    return dict(collected.ratings[name][item])
