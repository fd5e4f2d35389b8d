"""Comparison of originals with twins by a share for each text, and n-gram accuracy as a share.

A text is cut at one or several places; each place is asked about once or several times, and a share
is computed from the answers. An original is compared with one twin, and the sign test over the
items (Dixon and Mood 1946) tests whether too many originals have the higher share.

N-gram accuracy (Xu et al., arXiv 2404.18824): the share of a text's starting points from which a
model gives the next n words exactly, with n = 5 and up to five starting points.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from coreeval.evaluation.metrics.text import find_words
from coreeval.evaluation.recitation import (
    ALPHA,
    FEWEST_ITEMS,
    FEWEST_WORDS,
    MOST_REFUSED,
    TWINS,
    ArmFields,
    HalvedText,
    draw_items,
    exact_p,
    find_longest_field,
    keep_words,
    score_means,
)
from coreeval.evaluation.refusals import declines
from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.schema import AnswerKind, Arm, Value

MOST_PAIRS: Final = 100
"""The most texts to ask a target about, several times each (own choice: bounds the cost)."""
NGRAM: Final = 5
"""The number of words requested from a starting point (Xu et al.: n = 5)."""
MOST_STARTS: Final = 5
"""The most starting points of a text (Xu et al.: K = 5)."""
FEWEST_STARTS: Final = 2
"""The fewest starting points of a text (own choice: one alone is a shorter completion)."""
Side = Literal["original", "twin"]
SIDES: Final[tuple[Side, ...]] = ("original", "twin")
ShareVerdict = Literal[
    "recites", "suggestive", "no_recitation", "peaked", "not_peaked", "too_few", "refusing"
]
_WORD = re.compile(r"\S+")


class TextPair(NamedTuple):
    """The longest field of a sample in the original and in one twin, cut for the questions."""

    id: str
    arm: Arm
    """The arm of the twin."""
    texts: Mapping[Side, tuple[HalvedText, ...]]


class Place(NamedTuple):
    """One place of a text, and the number of the answer to its question."""

    id: str
    side: Side
    number: int
    draw: int = 0


Answers = Mapping[Place, tuple[AnswerKind, str]]
"""The kind and text of each answer."""


class ShareFinding(Value):
    """The finding on one target."""

    verdict: ShareVerdict
    reason: str
    asked: int
    """The number of items that the target was asked about."""
    unanswered: int
    """The number of questions without an answer in words."""
    compared: Arm | None
    """The arm of the twins; None without items."""
    items: int
    """The number of items with a share for both texts."""
    higher: int
    """The number of items whose original has the higher share."""
    lower: int
    """The number of items whose twin has the higher share."""
    p_value: float
    """One-sided exact p-value, for the hypothesis that originals do not have the higher share more
    often than twins (sign test)."""
    original: Score
    """The mean share of originals."""
    twin: Score
    difference: Score


def choose_pairs(
    samples: Callable[[], Iterable[tuple[str, ArmFields]]],
    cut: Callable[[str], tuple[HalvedText, ...]],
    *,
    seed: int,
) -> list[TextPair]:
    """Return the texts to ask targets about, at most `MOST_PAIRS`, drawn by seed and id.

    Samples with the same original text are one item.
    The twins are reworded texts, or updated ones if fewer than `FEWEST_ITEMS` texts have a reworded
    one and more have an updated one.

    Args:
        samples: A function that reads the id of each sample, and its fields by arm; each call reads
            them again.
        cut: A function that cuts a text at the places to ask about; empty if the text is too short.
        seed: The seed of the draw, which depends only on the seed and the ids.
    """
    most = list[TextPair]()
    for arm in TWINS:
        made = (pair for each in samples() if (pair := _make_pair(*each, arm, cut)))
        found = draw_items(made, _read_original, seed=seed, most=MOST_PAIRS)
        if len(found) >= FEWEST_ITEMS:
            return found
        most = max(most, found, key=len)
    return most


def _make_pair(
    sample: str, arms: ArmFields, arm: Arm, cut: Callable[[str], tuple[HalvedText, ...]]
) -> TextPair | None:
    field = find_longest_field(arms)
    if not field or arm not in arms:
        return None
    original, twin = cut(arms["original"][field]), cut(arms[arm][field])
    if not original or not twin or original == twin:
        return None
    return TextPair(sample, arm, {"original": original, "twin": twin})


def _read_original(pair: TextPair) -> str:
    """Return the words of the original up to the end of its last place."""
    return " ".join(word for part in pair.texts["original"][-1] for word in find_words(part))


def list_places(pairs: Iterable[TextPair], *, draws: int = 1) -> Iterator[tuple[Place, HalvedText]]:
    """Yield each question: its place, and the text cut there."""
    for pair in pairs:
        for side in SIDES:
            for number, text in enumerate(pair.texts[side]):
                for draw in range(draws):
                    yield Place(pair.id, side, number, draw), text


def cut_ngrams(text: str) -> tuple[HalvedText, ...]:
    """Return a text at its starting points: the shown part, and the next `NGRAM` words.

    The starting points are spread evenly over the text, each after at least `FEWEST_WORDS` words;
    their words do not overlap. The result is empty if there is room for fewer than `FEWEST_STARTS`.
    """
    words = [
        found.span()
        for found in _WORD.finditer(text)
        if any(character.isalnum() for character in found.group())
    ]
    starts = min(MOST_STARTS, (len(words) - FEWEST_WORDS) // NGRAM)
    if starts < FEWEST_STARTS:
        return ()
    spread = len(words) - NGRAM - FEWEST_WORDS
    places = (FEWEST_WORDS + number * spread // (starts - 1) for number in range(starts))
    return tuple(
        HalvedText(text[: words[at][0]].rstrip(), text[words[at][0] : words[at + NGRAM - 1][1]])
        for at in places
    )


def judge_ngrams(pairs: Iterable[TextPair], answers: Answers) -> ShareFinding:
    """Return the finding on a target that was asked for n-grams.

    Args:
        pairs: The texts that it was asked about.
        answers: The target's answers. Truncated ones count.
    """
    known, words = list(pairs), keep_words(answers)
    said = dict[tuple[str, Side], list[bool]]()
    tried = set[str]()
    for place, text in list_places(known):
        if place not in words:
            continue
        matches = says_words(text.rest, words[place])
        said.setdefault((place.id, place.side), []).append(matches)
        if place.side == "original" and (matches or not declines(words[place])):
            tried.add(place.id)
    shares = {key: sum(found) / len(found) for key, found in said.items()}
    unanswered = sum(place not in words for place, _ in list_places(known))
    return judge_shares(
        known,
        shares,
        tried=len(tried),
        unanswered=unanswered,
        verdicts=("recites", "no_recitation"),
    )


def says_words(missing: str, answer: str) -> bool:
    """Return whether an answer has the missing words in sequence; case and marks do not count."""
    due, said = find_words(missing), find_words(answer)
    return any(said[at : at + len(due)] == due for at in range(len(said) - len(due) + 1))


def judge_shares(
    pairs: Sequence[TextPair],
    shares: Mapping[tuple[str, Side], float],
    *,
    tried: int,
    unanswered: int,
    verdicts: tuple[ShareVerdict, ShareVerdict],
) -> ShareFinding:
    """Return the finding on a target from the share of each text.

    Args:
        pairs: The texts that it was asked about.
        shares: The share of each text, by item id and side; texts without answers have none.
        tried: The number of originals that the target tried to continue instead of declining.
        unanswered: The number of questions without an answer in words.
        verdicts: The verdict if originals have the higher share, and the one if they do not.
    """
    columns = np.array(
        [
            [shares[pair.id, side] for side in SIDES]
            for pair in pairs
            if all((pair.id, side) in shares for side in SIDES)
        ]
    ).reshape(-1, len(SIDES))
    differences = columns[:, 0] - columns[:, 1]
    items, higher, lower = len(columns), int((differences > 0).sum()), int((differences < 0).sum())
    p_value = exact_p(higher, lower)
    scores = score_means(np.column_stack([columns, differences])) if items else [NO_SCORE] * 3
    unclear = _find_obstacle(len(pairs), items, tried)
    counts = (
        f"the original scores above its twin for {higher} of {items} texts and below it for "
        f"{lower} (p = {p_value:.2g})"
    )
    verdict, reason = unclear or (
        verdicts[0] if p_value <= ALPHA else verdicts[1],
        counts,
    )
    return ShareFinding(
        verdict=verdict,
        reason=reason,
        asked=len(pairs),
        unanswered=unanswered,
        compared=pairs[0].arm if pairs else None,
        items=items,
        higher=higher,
        lower=lower,
        p_value=p_value,
        original=scores[0],
        twin=scores[1],
        difference=scores[2],
    )


def _find_obstacle(asked: int, items: int, tried: int) -> tuple[ShareVerdict, str] | None:
    """Return the verdict and reason if there are too few answers; None if there are enough."""
    if asked >= FEWEST_ITEMS and tried < (1 - MOST_REFUSED) * asked:
        return "refusing", f"it tried to continue {tried} of {asked} originals"
    if items < FEWEST_ITEMS:
        return "too_few", (
            f"{items} different texts are long enough and have a twin and answers to both; "
            f"{FEWEST_ITEMS} are needed"
        )
    return None
