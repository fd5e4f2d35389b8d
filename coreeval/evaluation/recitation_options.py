"""Wrong options of a choice: can a target name an option that it is not shown?

Testset slot guessing (TS-Guessing: Deng et al., arXiv 2311.09783) shows a question with its other
options and asks for a wrong one that is masked. The updated twin, whose options no target can have
read, shows how often a target guesses. It does not show how easy an original is to guess: three of
the four seasons give away the fourth. So a higher share for originals is at most suggestive.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from coreeval.evaluation.metrics.performance import rouge_l
from coreeval.evaluation.metrics.text import find_words
from coreeval.evaluation.recitation import (
    ArmFields,
    HalvedText,
    draw_items,
    keep_words,
    score_means,
)
from coreeval.evaluation.recitation_shares import (
    MOST_PAIRS,
    SIDES,
    Answers,
    ShareFinding,
    Side,
    TextPair,
    judge_shares,
    list_places,
)
from coreeval.evaluation.refusals import declines
from coreeval.evaluation.scores import NO_SCORE, Score
from coreeval.tasks.kinds import Texts
from coreeval.tasks.kinds.choice import option_fields

MASK: Final = "[MASK]"
FEWEST_OPTIONS: Final = 3
"""The fewest options of a question (own choice: with two options, one is the other's opposite)."""
ALIKE: Final = 0.65
"""The ROUGE-L of two options from which one gives away the other (Deng et al.)."""
_COMMON: Final = frozenset(
    ("yes", "no", "true", "false", "none", "all", "both", "neither", "either", "other", "unknown")
)
"""The starts of options that fit any question (own choice)."""
CAVEAT: Final = (
    "options of originals may be easier to guess, and a comparison with twins does not control "
    "for this"
)


class OptionFinding(ShareFinding):
    """The finding on one target; the shares are of masked options named exactly."""

    rouge_l: Score
    """The mean ROUGE-L of the answers with the masked options of originals."""
    rouge_l_twin: Score
    rouge_l_difference: Score


def choose_options(
    samples: Iterable[tuple[str, str, ArmFields]], clusters: Mapping[str, str], *, seed: int
) -> list[TextPair]:
    """Return the questions to ask targets, at most `MOST_PAIRS`, drawn by seed.

    The masked option is drawn by seed and id from the wrong options that other options do not give
    away, neither in the original nor in its twin. Only one question of a cluster is asked.

    Args:
        samples: The id of each sample, the letter of its right option, and its fields by arm.
        clusters: The cluster of each sample by id.
        seed: The seed of the draw, which depends only on the seed and the ids.
    """
    found = (pair for each in samples if (pair := _mask_option(*each, seed)))
    return draw_items(found, lambda pair: clusters[pair.id], seed=seed, most=MOST_PAIRS)


def _mask_option(sample: str, right: str, arms: ArmFields, seed: int) -> TextPair | None:
    original, twin = arms.get("original"), arms.get("updated")
    if original is None or twin is None:
        return None
    letters = option_fields(list(original))
    if (
        right not in letters
        or len(letters) < FEWEST_OPTIONS
        or letters != option_fields(list(twin))
    ):
        return None
    wrong = [
        letter
        for letter in letters
        if letter != right
        and find_words(original[letter]) != find_words(twin[letter])
        and all(_is_telling(fields, letters, letter) for fields in (original, twin))
    ]
    if not wrong:
        return None
    letter = wrong[zlib.crc32(f"{seed}\n{sample}\noption".encode()) % len(wrong)]
    texts: dict[Side, tuple[HalvedText, ...]] = {
        side: (HalvedText(_show_masked(fields, letters, letter), fields[letter]),)
        for side, fields in zip(SIDES, (original, twin), strict=True)
    }
    return TextPair(sample, "updated", texts)


def _is_telling(fields: Texts, letters: Iterable[str], masked: str) -> bool:
    """Return whether an option has its own words, which the other options do not give away."""
    words = find_words(fields[masked])
    if not any(any(map(str.isalpha, word)) for word in words) or words[0] in _COMMON:
        return False
    others = (fields[letter] for letter in letters if letter != masked)
    return all(rouge_l(other, fields[masked]) < ALIKE for other in others)


def _show_masked(fields: Texts, letters: list[str], masked: str) -> str:
    shown = [text for name, text in fields.items() if name not in letters]
    options = (f"{letter}. {MASK if letter == masked else fields[letter]}" for letter in letters)
    return "\n".join((*shown, *options))


def judge_options(pairs: Iterable[TextPair], answers: Answers) -> OptionFinding:
    """Return the finding on a target that was asked for masked options.

    Args:
        pairs: The questions that the target was asked.
        answers: The target's answers. Truncated ones count.
    """
    known, words = list(pairs), keep_words(answers)
    exact, overlap = dict[tuple[str, Side], float](), dict[tuple[str, Side], float]()
    tried, unanswered = 0, 0
    for place, text in list_places(known):
        if place not in words:
            unanswered += 1
            continue
        said = _read_option(words[place])
        exact[place.id, place.side] = float(find_words(said) == find_words(text.rest))
        overlap[place.id, place.side] = rouge_l(text.rest, said)
        tried += place.side == "original" and not declines(words[place])
    found = judge_shares(
        known, exact, tried=tried, unanswered=unanswered, verdicts=("suggestive", "no_recitation")
    )
    reason = f"{found.reason}; {CAVEAT}" if found.verdict == "suggestive" else found.reason
    if found.verdict == "too_few":
        reason = f"{found.items} choices have an updated twin, an option to mask and both answers"
    scores = dict(zip(_SCORES, _score_overlaps(known, overlap), strict=True))
    return OptionFinding(**{**dict(found), "reason": reason, **scores})


_SCORES: Final = ("rouge_l", "rouge_l_twin", "rouge_l_difference")


def _score_overlaps(
    pairs: Iterable[TextPair], overlap: Mapping[tuple[str, Side], float]
) -> list[Score]:
    rows = [
        [overlap[pair.id, side] for side in SIDES]
        for pair in pairs
        if all((pair.id, side) in overlap for side in SIDES)
    ]
    if not rows:
        return [NO_SCORE] * len(_SCORES)
    columns = np.array(rows)
    return score_means(np.column_stack([columns, columns[:, 0] - columns[:, 1]]))


def _read_option(answer: str) -> str:
    """Return the first line of an answer with words, without the letter of an option."""
    lines: Iterator[str] = (line.strip() for line in answer.splitlines() if find_words(line))
    line = next(lines, "").lstrip("*_\"'`( ")
    return line[2:] if line[:1].isalpha() and line[1:2] in (".", ")", ":") else line
