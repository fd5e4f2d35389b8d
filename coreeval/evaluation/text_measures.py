"""Measures of what can make a text harder: length, oddness, readability, numbers and names.

The neutral model behind `oddness` is a trigram of characters, smoothed from order to order (MacKay
and Peto 1995, "A hierarchical Dirichlet language model", Natural Language Engineering 1, 289-307).
It is cross-fitted: a text is scored by a model of the other half of the samples, with the texts of
all groups, so the score depends on how odd a text is, and not on whether the model has read it.
Samples of one cluster may share a text, so they are in the same half, and count once for the words
that are rare.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from coreeval.evaluation.metrics.text import find_words

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TextMeasures = Mapping[str, Mapping[str, Floats]]
"""By group, then by measure: one value per text."""

READ: Final = 1000
"""The most characters of a text to compare with other texts; its length counts all (own choice)."""
PRIOR: Final = 10.0
"""The weight of the model's next lower order, as a number of characters (own choice)."""
DEFINITIONS: Final[Mapping[str, str]] = {
    "words": "sequences of letters and digits; single characters in scripts without spaces",
    "characters": "all characters, including blanks",
    "oddness": "cross-entropy of the first 1,000 characters, in bits per character, under a "
    "cross-fitted character trigram model (MacKay and Peto 1995)",
    "rare_words": "% of the words in the first 1,000 characters that occur in no sample of "
    "another cluster",
    "numbers": "% of words with a digit",
    "capitals": "% of words with an initial capital",
    "grade": "Coleman-Liau index: 0.0588 letters per 100 words - 0.296 sentences per 100 words - "
    "15.8 (Coleman and Liau 1975, Journal of Applied Psychology 60, 283-284)",
}
"""The definition of each measure."""
_SENTENCE_END: Final = re.compile(r"[.!?。！？]+")  # noqa: RUF001 - ends of sentences in Chinese
_SENTENCE: Final = re.compile(r"(?<![.!?])[.!?]++(?=[\"'\u2019\u201d)\]]*(?:\s|$))|[。！？]+")  # noqa: RUF001
_NO_LETTER: Final = re.compile(r"[\W\d_]+")
_NUMBER: Final = re.compile(r"\b(?=\w*\d)\w+")
_FIRST: Final = re.compile(r"\b[^\W\d_]")


def measure_texts(
    groups: Mapping[str, Sequence[str]], clusters: Sequence[str] | None = None
) -> TextMeasures:
    """Measure every text.

    Args:
        groups: Texts by group; texts at the same index belong to the same sample.
        clusters: The cluster of each sample; None if each sample is its own cluster.
    """
    most = max(map(len, groups.values()), default=0)
    units = np.arange(most) if clusters is None else _number_in_order(clusters)
    rare, odd = _rare_words(groups, units), _oddness(groups, units)
    found = dict[str, dict[str, Floats]]()
    for name, texts in groups.items():
        rows = np.array([_measures_of(text) for text in texts]).reshape(-1, len(_OWN))
        own = dict(zip(_OWN, rows.T, strict=True))
        found[name] = own | {"oddness": odd[name], "rare_words": rare[name]}
    return found


_OWN: Final = ("words", "characters", "numbers", "capitals", "grade")


def count_sentences(text: str) -> int:
    """Return the number of sentence ends, at least one, without points inside numbers and names.

    The readability index counts all points, as its authors did.
    """
    return max(1, len(_SENTENCE.findall(text)))


def _measures_of(text: str) -> tuple[float, ...]:
    """Return the measures that depend on the text alone, in the order of `_OWN`."""
    count = max(1, len(find_words(text)))
    letters = len(_NO_LETTER.sub("", text))
    sentences = max(1, len(_SENTENCE_END.findall(text)))
    return (
        float(count),
        float(len(text)),
        100 * len(_NUMBER.findall(text)) / count,
        100 * sum(map(str.isupper, _FIRST.findall(text))) / count,
        5.88 * letters / count - 29.6 * sentences / count - 15.8,
    )


def _number_in_order(clusters: Sequence[str]) -> Ints:
    """Return the number of each sample's cluster, in the order of their first samples."""
    places = dict[str, int]()
    return np.array([places.setdefault(each, len(places)) for each in clusters], np.int64)


_SEVERAL: Final = -1
"""Stands for the cluster of a word that occurs in several."""


def _rare_words(groups: Mapping[str, Sequence[str]], units: Ints) -> dict[str, Floats]:
    """Return the percentage of each text's words that occur in no other cluster."""
    read = {name: [find_words(text[:READ]) for text in texts] for name, texts in groups.items()}
    only = dict[str, int]()
    for texts in read.values():
        for own, unit in zip(texts, units.tolist(), strict=False):
            for word in own:
                if only.setdefault(word, unit) != unit:
                    only[word] = _SEVERAL

    def share(own: list[str]) -> float:
        return 100 * sum(only[word] != _SEVERAL for word in own) / max(1, len(own))

    return {name: np.array([share(own) for own in texts]) for name, texts in read.items()}


def _oddness(groups: Mapping[str, Sequence[str]], units: Ints) -> dict[str, Floats]:
    """Return the cross-entropy of each text under a model of the other half of the clusters."""
    texts = [text[:READ] for group in groups.values() for text in group]
    fold = np.concatenate([units[: len(group)] % 2 for group in groups.values()])
    bits = _cross_entropy(texts, fold)
    ends = np.cumsum([len(group) for group in groups.values()])[:-1]
    return dict(zip(groups, np.split(bits, ends), strict=True))


def _cross_entropy(texts: Sequence[str], fold: Ints) -> Floats:
    """Return the bits per character of each text, predicted from the contexts in the other fold."""
    joined = "".join(f"\0\0{text}" for text in texts)
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    letters, code = np.unique(codes, return_inverse=True)
    lengths = np.array([len(text) for text in texts])
    of_text = np.repeat(np.arange(len(texts)), lengths)
    own = np.arange(len(codes))[_inside(lengths)]
    size, other = len(letters), 1 - fold[of_text]
    share = np.full(len(own), 1 / size)
    context = np.zeros(len(own), np.int64)
    for order in range(3):
        if order:
            context = _number_keys(context * size + code[own - order])
        total = _count_in_other_fold(context, other)
        share = (
            _count_in_other_fold(_number_keys(context * size + code[own]), other) + PRIOR * share
        ) / (total + PRIOR)
    sums = np.bincount(of_text, -np.log2(share), minlength=len(texts))
    return np.asarray(sums / np.maximum(lengths, 1))


def _inside(lengths: Ints) -> NDArray[np.bool_]:
    """Mark the characters that belong to a text, given two other characters before each text."""
    found = np.ones(int(lengths.sum()) + 2 * len(lengths), np.bool_)
    starts = np.cumsum(lengths + 2) - lengths - 2
    found[starts] = found[starts + 1] = False
    return found


def _number_keys(keys: Ints) -> Ints:
    """Renumber keys without gaps."""
    if int(keys.max(initial=0)) < 2 * len(keys):
        return keys
    return np.unique(keys, return_inverse=True)[1]


def _count_in_other_fold(keys: Ints, fold: Ints) -> Ints:
    """Return how often each key occurs in a fold; `fold` gives the fold to look in."""
    size = int(keys.max(initial=-1)) + 1
    counts = np.bincount(keys + (1 - fold) * size, minlength=2 * size)
    return np.asarray(counts[keys + fold * size])
