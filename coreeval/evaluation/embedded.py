"""Embedded targets, `offline:NAME`: small classifiers fitted here, for a run without any model.

They know nothing but their train split, so their scores show what a target without any memory of
the test split does on the three arms. Deterministic: same train split and seed, same answers.
"""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

from coreeval.errors import ConfigError, DatasetError
from coreeval.schema import Arm, Prediction, Sample, Task

Fields = Mapping[str, str]

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


@dataclass(frozen=True)
class EmbeddedTarget:
    """A fitted classifier that answers with label names."""

    name: str
    """As the config spells it, e.g. `offline:classifier`."""
    classifier: Classifier

    def predict(self, fields: Sequence[Fields]) -> list[str]:
        """Label texts, given as text by field name."""
        return [str(label) for label in self.classifier.predict(fields)] if fields else []


def fit_target(name: str, task: Task, train: Sequence[Sample], *, seed: int) -> EmbeddedTarget:
    """Fit the embedded target of a name such as `offline:classifier`.

    Raises:
        ConfigError: there is no embedded target of this name.
        DatasetError: the train split has no samples or only one class.
    """
    check_embedded(name)
    return EMBEDDED[name.removeprefix("offline:")](task, train, seed)


def check_embedded(name: str) -> None:
    """Check that there is an embedded target of a name such as `offline:classifier`.

    Raises:
        ConfigError: there is none.
    """
    if name.removeprefix("offline:") not in EMBEDDED:
        known = ", ".join(f"offline:{each}" for each in sorted(EMBEDDED))
        raise ConfigError(
            f"there is no embedded target {name!r}", where="models.targets", hint=f"known: {known}"
        )


def fit(task: Task, train: Sequence[Sample], seed: int) -> EmbeddedTarget:
    """Fit `offline:classifier`: logistic regression on tf-idf, and on overlap for pairs.

    Classes are weighted by their rarity because the score to compare is the macro-F1.

    Raises:
        DatasetError: the train split has no samples or only one class.
    """
    _require_classes(task, train)
    features = _pair_features if len(task.fields) > 1 else _text_features
    classifier = _logistic(features(task.fields), seed)
    classifier.fit([sample.fields for sample in train], [sample.label_text for sample in train])
    return EmbeddedTarget("offline:classifier", classifier)


EMBEDDED: dict[str, Callable[[Task, Sequence[Sample], int], EmbeddedTarget]] = {"classifier": fit}
"""Embedded targets by the NAME of `offline:NAME`."""


def predict_arm(
    target: EmbeddedTarget, samples: Sequence[Sample], *, arm: Arm
) -> tuple[Prediction, ...]:
    """Put one arm to an embedded target; the samples carry the arm's texts."""
    answers = target.predict([sample.fields for sample in samples])
    return tuple(
        Prediction(target=target.name, sample_id=sample.id, arm=arm, answer=answer, valid=True)
        for sample, answer in zip(samples, answers, strict=True)
    )


def overlap(first: str, second: str) -> dict[str, float]:
    """Return how much two texts share: words, word pairs and triples, numbers, negation, length."""
    one, two = _words(first), _words(second)
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


def _words(text: str) -> list[str]:
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


def _require_classes(task: Task, train: Sequence[Sample]) -> None:
    classes = {sample.label_text for sample in train}
    if len(classes) >= 2:
        return
    found = f"only the label {classes.pop()!r}" if classes else "no samples"
    raise DatasetError(
        f"an embedded target cannot be fitted for {task.name!r}: its train split has {found}",
        where="dataset.train_split",
        hint="name a split with two labels or more, or take offline targets out of models.targets",
    )


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
