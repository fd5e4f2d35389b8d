"""Peakedness: are repeated answers more alike for originals than for their twins?

A target that has memorised a text gives the same answer in each draw. CDD (Dong et al., arXiv
2402.15938) draws answers at a temperature, measures their edit distance to the greedy answer, and
takes the share of the draws that are close to it. Here the answers continue the first half of a
text, and the share of an original is compared with that of its twin.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from coreeval.evaluation.metrics.text import find_words
from coreeval.evaluation.recitation import HalvedText, halve_text, keep_words
from coreeval.evaluation.recitation_shares import (
    SIDES,
    Answers,
    Place,
    ShareFinding,
    Side,
    TextPair,
    judge_shares,
    list_places,
)
from coreeval.evaluation.refusals import declines

DRAWS: Final = 10
"""The number of answers drawn for a text, besides the greedy one (own choice: Dong et al. draw
50)."""
TEMPERATURE: Final = 0.8
"""The temperature of the draws (Dong et al.)."""
NEARNESS: Final = 0.05
"""Alpha: the most edit distance to the greedy answer that counts as close, as a share of the
longest answer (Dong et al.)."""
PEAKED: Final = 0.01
"""Xi: the peakedness above which Dong et al. call a text contaminated."""
MOST_WORDS: Final = 100
"""The most words of an answer to compare (the published code of Dong et al.: 100 tokens)."""
FEWEST_DRAWS: Final = DRAWS // 2
"""The fewest draws with words for a peakedness (own choice)."""
GREEDY: Final = 0
"""The number of the greedy answer to a question; the draws count from 1."""


class PeakednessFinding(ShareFinding):
    """The finding on one target."""

    peaked: int
    """The number of originals, of `items`, whose peakedness is above `PEAKED`."""
    peaked_twin: int


def cut_half(text: str) -> tuple[HalvedText, ...]:
    """Return a text cut in the middle; empty if a half would be too short."""
    halves = halve_text(text)
    return (halves,) if halves else ()


def measure_peakedness(greedy: Sequence[str], draws: Sequence[Sequence[str]]) -> float:
    """Return the share of the draws that are close to the greedy answer, from 0 to 1.

    Peak = F(d <= alpha l): the distribution function of the edit distances d of the draws to the
    greedy answer; l is the number of words of the longest answer, including the greedy one (Dong et
    al., and their published code). Distances count words, and theirs count tokens.

    Args:
        greedy: The words of the answer at temperature 0.
        draws: The words of each answer at `TEMPERATURE`, at least one answer.
    """
    answers = [words[:MOST_WORDS] for words in (greedy, *draws)]
    most = NEARNESS * max(len(words) for words in answers)
    close = sum(measure_edits(answers[0], words) <= most for words in answers[1:])
    return close / len(draws)


def measure_edits(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the fewest words to insert, delete or replace between two texts (Levenshtein 1966)."""
    before = list(range(len(second) + 1))
    for at, word in enumerate(first, start=1):
        row = [at]
        for other, (kept, above) in enumerate(pairwise(before)):
            row.append(min(kept + (word != second[other]), above + 1, row[-1] + 1))
        before = row
    return before[-1]


def judge_peakedness(pairs: Iterable[TextPair], answers: Answers) -> PeakednessFinding:
    """Return the finding on a target.

    A text that the greedy answer declines to continue has no peakedness, because refusals are
    alike.

    Args:
        pairs: The texts that the target was asked about, cut in halves.
        answers: The target's answers; answer 0 of each place is the greedy one. Truncated ones
            count.
    """
    known, words = list(pairs), keep_words(answers)
    shares = dict[tuple[str, Side], float]()
    tried = 0
    for place, _ in list_places(known):
        greedy = words.get(place)
        if greedy is None or declines(greedy):
            continue
        tried += place.side == "original"
        draws = [words[each] for draw in range(1, DRAWS + 1)
                 if (each := place._replace(draw=draw)) in words]  # fmt: skip
        if len(draws) >= FEWEST_DRAWS:
            found = measure_peakedness(find_words(greedy), [find_words(each) for each in draws])
            shares[place.id, place.side] = found
    asked: list[Place] = [place for place, _ in list_places(known, draws=DRAWS + 1)]
    judged = judge_shares(
        known,
        shares,
        tried=tried,
        unanswered=sum(place not in words for place in asked),
        verdicts=("peaked", "not_peaked"),
    )
    both = [pair.id for pair in known if all((pair.id, side) in shares for side in SIDES)]
    return PeakednessFinding(
        **dict(judged),
        peaked=sum(shares[each, "original"] > PEAKED for each in both),
        peaked_twin=sum(shares[each, "twin"] > PEAKED for each in both),
    )
