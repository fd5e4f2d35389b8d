"""Answers under defences, and judged ones, that are made up by count."""

from collections.abc import Iterable, Mapping, Sequence

from coreeval.config import DefencesConfig
from coreeval.evaluation.numleak.defences.utility import Category, UtilityReply, UtilityScore
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series
from tests.evaluation.numleak.audits import series

ABOUT: Series = series()
SERIES: Mapping[str, Series] = {"tides": ABOUT}
MONTHS = list(ABOUT.values)[:40]
SUFFIXES = [one.name for one in DefencesConfig().suffixes]
REFUSAL = "I can't share specific values of this series."


def truthful(index: int) -> str:
    """Return the published value of a month."""
    return f"{ABOUT.values[MONTHS[index]]:+.2f}%"


def attacked(
    model: str,
    defence: str,
    said: Mapping[tuple[str | None, int], str] | None = None,
    *,
    usual: str | None = REFUSAL,
    suffixes: Sequence[str] = SUFFIXES,
) -> list[Reply]:
    """Return the answers to the plain question and to each ending in each of 40 months.

    Args:
        model: Who answers.
        defence: Under what.
        said: Answers by ending and month that are not the usual one.
        usual: All others; None: the published value.
        suffixes: The endings.
    """
    return [
        Reply(
            model=model,
            series="tides",
            date=str(month),
            variant="defended",
            defence=defence,
            suffix=suffix,
            response=(said or {}).get((suffix, index), usual or truthful(index)),
        )
        for index, month in enumerate(MONTHS)
        for suffix in (None, *suffixes)
    ]


def judged(
    model: str,
    defence: str,
    scores: Mapping[Category, Iterable[int | None]],
    *,
    judge: str = "judge",
) -> list[UtilityReply]:
    """Return answers to ordinary questions with these scores, question by question."""
    return [
        UtilityReply(
            model=model,
            series="tides",
            defence=defence,
            question=f"{category}-{number}",
            category=category,
            asked="Why?",
            response="Because.",
            scores=(UtilityScore(judge=judge, score=score),),
        )
        for category, each in scores.items()
        for number, score in enumerate(each)
    ]
