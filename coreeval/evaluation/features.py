"""A small classifier of texts: logistic regression on words, and on what two texts share."""

import re
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from typing import Protocol

Fields = Mapping[str, str]
"""Texts by the name of their field."""

WORDS = ("word", (1, 2))
PIECES = ("char_wb", (3, 5))
WORD = re.compile(r"\w+(?:'\w+)*")
NEGATIONS = frozenset(
    ("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot")
)
"""Besides every word that ends in n't."""


class Classifier(Protocol):
    """What scikit-learn's classifiers and pipelines have in common here."""

    def fit(self, fields: Sequence[Fields], labels: Sequence[str]) -> object:
        """Learn from texts and their labels."""
        ...

    def predict(self, fields: Sequence[Fields]) -> Sequence[str]:
        """Label texts."""
        ...


def classifier_of(names: Sequence[str], seed: int) -> Classifier:
    """Return a classifier, not fitted yet, on tf-idf and for several fields on their overlap.

    Classes are weighted by their rarity because the score to compare is the macro-F1.
    """
    features = _pair_features if len(names) > 1 else _text_features
    return _logistic(features(names), seed)


def overlap(first: str, second: str) -> dict[str, float]:
    """Return how much two texts share: words, word pairs and triples, numbers, negation, length."""
    one, two = words(first), words(second)
    found = {
        f"{measure}_{n}": value
        for n in (1, 2, 3)
        for measure, value in _shares(_grams(one, n), _grams(two, n)).items()
    }
    here, there = ({word for word in words if word[0].isdigit()} for words in (one, two))
    negated = [any(word in NEGATIONS or word.endswith("n't") for word in ws) for ws in (one, two)]
    return found | {
        "numbers_jaccard": _shares(here, there)["jaccard"],
        "numbers_equal": float(here == there),
        "numbers_nested": float(here <= there or there <= here),
        "negation_agrees": float(negated[0] == negated[1]),
        "length_ratio": min(len(one), len(two)) / max(len(one), len(two), 1),
        "length_difference": float(abs(len(one) - len(two))),
    }


def words(text: str) -> list[str]:
    """Return lower-case words; the `didn 't` of tokenised texts is one of them."""
    return WORD.findall(text.lower().replace("\u2019", "'").replace(" 't", "'t"))


def _grams(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}


def _shares(one: Set[object], two: Set[object]) -> dict[str, float]:
    """Return Jaccard and containment each way; an empty set is contained in every other."""
    both = len(one & two)
    first, second = (both / len(grams) if grams else 1.0 for grams in (one, two))
    jaccard = both / len(one | two) if one or two else 1.0
    return {"jaccard": jaccard, "first_in_second": first, "second_in_first": second}


def _logistic(features: object, seed: int) -> Classifier:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]

    model = LogisticRegression(class_weight="balanced", max_iter=1000, random_state=seed)
    pipeline: Classifier = make_pipeline(features, model)
    return pipeline


def _text_features(names: Sequence[str]) -> object:
    """Return tf-idf of words and of pieces of words, which carry hashtags and spelling."""
    from sklearn.pipeline import make_union

    return make_union(*(_tfidf(name, *kind) for name in names for kind in (WORDS, PIECES)))


def _pair_features(names: Sequence[str]) -> object:
    """Return tf-idf of the words of each field, and the overlap of every two fields."""
    from sklearn.feature_extraction import DictVectorizer  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import (  # type: ignore[import-untyped]
        FunctionTransformer,
        StandardScaler,
    )

    def overlaps(rows: Sequence[Fields]) -> list[dict[str, float]]:
        return [
            {
                f"{one}_{two}_{name}": value
                for one, two in combinations(names, 2)
                for name, value in overlap(row[one], row[two]).items()
            }
            for row in rows
        ]

    scaled = (FunctionTransformer(overlaps), DictVectorizer(sparse=False), StandardScaler())
    return make_union(make_pipeline(*scaled), *(_tfidf(name, *WORDS) for name in names))


def _tfidf(field: str, analyzer: str, lengths: tuple[int, int]) -> object:
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]

    return TfidfVectorizer(
        preprocessor=lambda row: row[field].lower(),
        analyzer=analyzer,
        ngram_range=lengths,
        sublinear_tf=True,
    )
