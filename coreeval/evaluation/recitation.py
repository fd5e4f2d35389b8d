"""Whether a target recites the texts of a benchmark: guided completion against reworded twins.

A target gets the first half of a text and is asked for the rest, word for word (guided completion,
Golchin and Surdeanu, arXiv 2308.08493). A text may be easy to continue without having been read, so
each text is compared with its twins: the same facts in other words, and other facts. No target can
have read the twins; if it recites only the originals, it remembers the published wording.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from math import comb
from typing import Final, Literal, NamedTuple, Protocol, TypeVar
from unicodedata import normalize

import numpy as np

from coreeval.evaluation.metrics.performance import count_common_words
from coreeval.evaluation.metrics.text import find_words
from coreeval.evaluation.refusals import declines
from coreeval.evaluation.scores import DRAWS, Score
from coreeval.evaluation.statistics import LEVEL, Array, bootstrap_sums, ensure_width
from coreeval.schema import AnswerKind, Arm, Value
from coreeval.tools.text import UNSEEN, unescape

MOST_ITEMS: Final = 300
"""The most texts that a target is asked about (own choice: enough to detect a recited
twentieth)."""
FEWEST_ITEMS: Final = 20
"""The fewest texts with answers for a verdict (own choice)."""
FEWEST_WORDS: Final = 6
"""The fewest words in each half of a text (own choice: shorter halves are completed by chance)."""
RECITED: Final = 0.8
"""The least share of the missing words, in their order, in an answer that recites a text (own
choice: "near-exact" by Golchin and Surdeanu, without their judge)."""
LONGEST_ANSWER: Final = 1.5
"""The number of words of an answer to read, for each missing word (own choice: a longer answer has
more of them by chance)."""
MOST_WORDS: Final = 200
"""The most missing words to compare, from the first one (own choice: a target that recites a long
text may stop early or be cut off)."""
ALPHA: Final = 0.01
"""The level of the one-sided exact test (own choice: below the 5 % of false alarms allowed)."""
MOST_ALIKE: Final = 2
"""The most originals that the same answer can continue; an answer given more often continues none
of them (own choice: it is a refusal in any language)."""
MOST_REFUSED: Final = 0.5
"""The share of originals that a target does not continue from which there is no verdict (own
choice)."""
TWINS: Final[tuple[Arm, ...]] = ("semantic", "updated")
"""The arms of twins, the closest first: it has the facts of the original."""
TWIN_WORDS: Final[Mapping[Arm, str]] = {
    "semantic": "reworded twins",
    "updated": "updated twins",
}
RecitationVerdict = Literal["recites", "no_recitation", "too_few", "refusing"]
_WORD = re.compile(r"\S+")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_LIST_MARK = re.compile(r"(?m)^[^\w\n]{0,9}\d{1,4}[ \t]?[^\w\s]{1,4}[ \t]")
_FILLERS = re.compile(r"[\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]")
"""Zero-width characters that `UNSEEN` keeps because some scripts need them."""
_LINE_ENDS = re.compile(r"[\x0b-\x0d\x85\u2028\u2029]")


class HasId(Protocol):
    """An item of a probe."""

    @property
    def id(self) -> str:
        """The sample's id."""


Drawn = TypeVar("Drawn", bound=HasId)
Key = TypeVar("Key")
ArmFields = Mapping[Arm, Mapping[str, str]]
"""The fields of the sample by arm."""


class HalvedText(NamedTuple):
    """A text whose second half is requested."""

    beginning: str
    rest: str


class RecitationItem(NamedTuple):
    """A sample with its halved texts by arm: the original and at least one twin."""

    id: str
    texts: Mapping[Arm, HalvedText]


class TwinComparison(Value):
    """The recitation by a target of the originals and of their twins in one arm."""

    items: int
    """The number of items with both answers; an answer without words recites nothing."""
    original: int
    """The number of items whose original the target recites."""
    twin: int
    """The number of items whose twin the target recites."""
    only_original: int
    only_twin: int
    p_value: float
    """One-sided exact p-value, for the hypothesis that originals are not recited more often
    (McNemar 1947)."""
    overlap: Score
    """The mean share of the originals' missing words in its answers, in their order."""
    overlap_twin: Score
    overlap_difference: Score


class Recitation(Value):
    """The finding on one target."""

    verdict: RecitationVerdict
    reason: str
    asked: int
    """The number of items that the target was asked about."""
    unanswered: int
    """The number of questions without an answer in words."""
    twins: dict[str, TwinComparison]
    """The comparisons by arm, without arms that have no items."""


def halve_text(text: str) -> HalvedText | None:
    """Split a text in the middle of its words; return None if it is not fit for a question.

    It is not fit if a half would be too short, or if repeating the first half recites the second.
    """
    starts = [found.start() for found in _WORD.finditer(text)]
    if len(starts) < 2 * FEWEST_WORDS:
        return None
    middle = starts[len(starts) // 2]
    halves = HalvedText(text[:middle].rstrip(), text[middle:].rstrip())
    counts = [len(find_words(_resolve_signs(each))) for each in halves]
    if min(counts) < FEWEST_WORDS or measure_recited(halves, halves.beginning) >= RECITED:
        return None
    return halves


def choose_items(samples: Iterable[tuple[str, ArmFields]], *, seed: int) -> list[RecitationItem]:
    """Return the items to ask targets about, at most `MOST_ITEMS`, drawn by seed and id.

    Samples with the same original text, such as questions about one passage, are one item.

    Args:
        samples: The id of each sample, and its fields by arm. The longest field is halved.
        seed: The seed of the draw, which depends only on the seed and the ids.
    """
    found = (item for sample, arms in samples if (item := _make_item(sample, arms)))
    return draw_items(found, read_original, seed=seed, most=MOST_ITEMS)


def read_original(item: RecitationItem) -> str:
    """Return the words of the original; two texts with the same words are the same text."""
    return " ".join(word for half in item.texts["original"] for word in find_words(half))


def draw_items(
    found: Iterable[Drawn], unit: Callable[[Drawn], str], *, seed: int, most: int
) -> list[Drawn]:
    """Return at most `most` of the items, drawn by seed and ids, in the order of their ids.

    Of the items of one unit, only the first one of the draw is kept, because the test counts
    independent items.

    Args:
        found: The items.
        unit: A function that returns the unit of an item, such as its original text.
        seed: The seed of the draw.
        most: The most items.
    """

    def place(item: Drawn) -> tuple[int, str]:
        return _rank(item.id, seed), item.id

    kept = dict[str, Drawn]()
    for item in found:
        known = unit(item)
        kept[known] = min(item, kept.get(known, item), key=place)
        if len(kept) > 2 * most:  # bounds the memory; a later item cannot bring these back
            kept = dict(nsmallest(most, kept.items(), key=lambda each: place(each[1])))
    return sorted(nsmallest(most, kept.values(), key=place), key=lambda item: item.id)


def find_longest_field(arms: ArmFields) -> str:
    """Return the name of the original's longest field; "" if it has no fields."""
    fields = arms.get("original", {})
    return max(fields, key=lambda name: len(fields[name]), default="")


def _rank(sample: str, seed: int) -> int:
    return zlib.crc32(f"{seed}\n{sample}".encode())


def _make_item(sample: str, arms: ArmFields) -> RecitationItem | None:
    field = find_longest_field(arms)
    original = halve_text(arms["original"][field]) if field else None
    if original is None:
        return None
    texts: dict[Arm, HalvedText] = {"original": original}
    for arm in TWINS:
        halved = halve_text(arms[arm][field]) if arm in arms else None
        if halved and measure_recited(halved, original.rest) < RECITED:
            texts[arm] = halved
    return RecitationItem(sample, texts) if len(texts) > 1 else None


def measure_recited(text: HalvedText, answer: str) -> float:
    """Return the share of the missing words that an answer has in their order, from 0 to 1.

    The longest common subsequence over the missing words: the recall of ROUGE-L (Lin 2004). It is
    searched in the whole answer, in pieces of `LONGEST_ANSWER` words per missing word that start at
    intervals of a quarter of the missing words, so the target's own words may come first.
    """
    readings = _read_alike(_resolve_signs(text.rest), _resolve_signs(answer))
    return max(_share_said(missing, said) for missing, said in dict.fromkeys(readings))


def _resolve_signs(text: str) -> str:
    """Return a text with its HTML references resolved and without invisible characters.

    Letters of other widths and styles are replaced by plain ones (NFKC).
    """
    lines = _LINE_ENDS.sub("\n", unescape(text))
    seen = _FILLERS.sub("", UNSEEN.sub("", lines))
    return normalize("NFKC", seen)


def _read_alike(rest: str, answer: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the words of both texts, first with and then without tags and list marks.

    Tags and list marks may be part of the text or added by the target. A text with fewer than
    `FEWEST_WORDS` other words is only read with them.
    """
    for marks in ((), (_TAG,), (_LIST_MARK,), (_TAG, _LIST_MARK)):
        missing, said = (tuple(find_words(_without(marks, text))) for text in (rest, answer))
        if not marks or len(missing) >= FEWEST_WORDS:
            yield missing, said


def _without(marks: Iterable[re.Pattern[str]], text: str) -> str:
    for mark in marks:
        text = mark.sub(" ", text)
    return text


def _share_said(missing: Sequence[str], said: Sequence[str]) -> float:
    missing = missing[:MOST_WORDS]
    most = int(LONGEST_ANSWER * len(missing))
    step = max(1, (most - len(missing)) // 2)
    starts = range(0, max(1, len(said) - most + step), step)
    common = max(count_common_words(missing, said[start : start + most]) for start in starts)
    return common / len(missing)


def judge_recitation(
    items: Iterable[RecitationItem], answers: Mapping[tuple[str, Arm], tuple[AnswerKind, str]]
) -> Recitation:
    """Return the finding on a target.

    Args:
        items: The items that the target was asked about.
        answers: The kind and text of the target's answers, by item id and arm. Truncated answers
            count.
    """
    known = list(items)
    asked = [(item, arm) for item in known for arm in item.texts]
    words = {
        key: text if kind in ("answered", "truncated") else ""
        for key, (kind, text) in answers.items()
    }
    said = {
        (item.id, arm): measure_recited(item.texts[arm], words[item.id, arm])
        for item, arm in asked
        if (item.id, arm) in words
    }
    twins = {arm: found for arm in TWINS if (found := _compare(known, said, arm))}
    tried = _count_tried(known, said, words)
    verdict, reason = _judge(len(known), tried, twins)
    return Recitation(
        verdict=verdict,
        reason=reason,
        asked=len(known),
        unanswered=sum(not find_words(words.get((item.id, arm), "")) for item, arm in asked),
        twins=dict(twins),
    )


def keep_words(answers: Mapping[Key, tuple[AnswerKind, str]]) -> dict[Key, str]:
    """Return the texts of the answers that have words; truncated ones count."""
    return {
        key: text
        for key, (kind, text) in answers.items()
        if kind in ("answered", "truncated") and text.strip()
    }


def _count_tried(
    items: Iterable[RecitationItem],
    said: Mapping[tuple[str, Arm], float],
    words: Mapping[tuple[str, Arm], str],
) -> int:
    """Return the number of originals that a target has tried to continue.

    A target has not tried if it says nothing, declines, gives the answer that it gives for others,
    or repeats the first half.
    """
    tried, answers = 0, Counter[tuple[str, ...]]()
    for item in items:
        key: tuple[str, Arm] = (item.id, "original")
        if said.get(key, 0.0) >= RECITED:
            tried += 1
        elif key in said and not declines(words[key]):
            texts = (words[key], item.texts["original"].beginning)
            answer, begun = (find_words(each) for each in texts)
            if count_common_words(answer, begun) < RECITED * len(answer):
                answers[tuple(answer)] += 1
    return tried + sum(number for number in answers.values() if number <= MOST_ALIKE)


def _compare(
    items: Iterable[RecitationItem], said: Mapping[tuple[str, Arm], float], arm: Arm
) -> TwinComparison | None:
    pairs = [
        (said[item.id, "original"], said[item.id, arm])
        for item in items
        if (item.id, "original") in said and (item.id, arm) in said
    ]
    if not pairs:
        return None
    shares = np.array(pairs)
    recited = shares >= RECITED
    only_original = int((recited[:, 0] & ~recited[:, 1]).sum())
    only_twin = int((recited[:, 1] & ~recited[:, 0]).sum())
    columns = np.column_stack([shares, shares[:, 0] - shares[:, 1]])
    overlap, overlap_twin, difference = score_means(columns)
    return TwinComparison(
        items=len(pairs),
        original=int(recited[:, 0].sum()),
        twin=int(recited[:, 1].sum()),
        only_original=only_original,
        only_twin=only_twin,
        p_value=exact_p(only_original, only_twin),
        overlap=overlap,
        overlap_twin=overlap_twin,
        overlap_difference=difference,
    )


def score_means(columns: Array, *, differences: int = 1) -> list[Score]:
    """Return the mean of each column with its bootstrap interval; differences come last."""
    n, shares = columns.shape[0], columns.shape[1] - differences
    drawn = bootstrap_sums(columns, DRAWS, np.random.default_rng(0)) / n
    ends = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    scores = list[Score]()
    for at, mean in enumerate(columns.mean(axis=0).tolist()):
        low, high = float(ends[0, at]), float(ends[1, at])
        if at < shares:
            low, high = ensure_width(mean, low, high, n)
        scores.append(Score(estimate=mean, ci_low=low, ci_high=high, n=n))
    return scores


def exact_p(only_original: int, only_twin: int) -> float:
    """Return the one-sided p-value of McNemar's exact test; 1 if no item differs.

    Under the null hypothesis, if only one text of an item is recited, it is equally likely to be
    the original or the twin (McNemar 1947).
    """
    differing = only_original + only_twin
    extreme = sum(comb(differing, k) for k in range(only_original, differing + 1))
    return extreme / (1 << differing)


def _judge(
    asked: int, tried: int, twins: Mapping[Arm, TwinComparison]
) -> tuple[RecitationVerdict, str]:
    arm = next((arm for arm in TWINS if arm in twins and twins[arm].items >= FEWEST_ITEMS), None)
    recites = arm is not None and twins[arm].p_value <= ALPHA
    if asked and not recites and tried < (1 - MOST_REFUSED) * asked:
        return "refusing", f"it tried to continue {tried} of {asked} originals"
    if arm is None or not (recites or tried >= FEWEST_ITEMS):
        most = max((found.items for found in twins.values()), default=0)
        return "too_few", (
            f"{min(most, tried)} different texts have at least {2 * FEWEST_WORDS} words, a twin "
            f"and answers; at least {FEWEST_ITEMS} are needed"
        )
    found = twins[arm]
    counts = (
        f"it recited {found.original} of {found.items} originals and {found.twin} of their "
        f"{TWIN_WORDS[arm]} (p = {found.p_value:.2g})"
    )
    return ("recites" if recites else "no_recitation"), counts
