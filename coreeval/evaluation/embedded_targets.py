"""Embedded targets, `offline:NAME`: small classifiers fitted locally, for runs without a model.

`offline:classifier` only knows its train split. The three others are one classifier, fitted on half
of the train split, with different memories (docs/targets.md): `offline:clean` has none,
`offline:finetuned` has seen the train split, `offline:contaminated` the test split. They show how a
report describes memory, for targets whose memory is known. `offline:reference-1` to `-6` have no
memory either and learned from ever smaller shares of that half: clean references of different
abilities. The same data and seed give the same answers.

The classifier is logistic regression on words, and on what two texts share. The memory stores texts
word for word and simulates contamination without a model. It is more brittle than a model's memory:
it does not recognise the same facts in other words.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import TYPE_CHECKING, Protocol

from coreeval.errors import ConfigError, DatasetError
from coreeval.schema import Prediction, Sample, Task
from coreeval.tools.extras import check_extra

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped]


Fields = Mapping[str, str]
"""Texts by field name."""

WORDS = ("word", (1, 2))
PIECES = ("char_wb", (3, 5))
WORD = re.compile(r"\w+(?:'\w+)*")
NEGATIONS = frozenset(
    ("no", "not", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot")
)
"""All words that end in n't also count."""


class Classifier(Protocol):
    """The methods of scikit-learn's classifiers and pipelines that are used here."""

    def fit(self, fields: Sequence[Fields], labels: Sequence[str]) -> object:
        """Learn from labelled texts."""
        ...

    def predict(self, fields: Sequence[Fields]) -> Sequence[str]:
        """Return the label of each text."""
        ...


def make_classifier(names: Sequence[str], seed: int) -> Classifier:
    """Return an unfitted classifier on tf-idf and, for several fields, on their overlap.

    Classes are weighted by their rarity because the score to compare is the macro-F1.
    """
    features = _pair_features if len(names) > 1 else _text_features
    return _logistic(features(names), seed)


def measure_overlap(first: str, second: str) -> dict[str, float]:
    """Measure what two texts share: words, word pairs and triples, numbers, negation, length."""
    one, two = split_words(first), split_words(second)
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


def split_words(text: str) -> list[str]:
    """Return the lower-case words of a text; `didn 't` in tokenised texts counts as one word."""
    return WORD.findall(text.lower().replace("\u2019", "'").replace(" 't", "'t"))


def _grams(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}


def _shares(one: Set[object], two: Set[object]) -> dict[str, float]:
    """Return the Jaccard index and the containment each way; any set contains the empty set."""
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
    """Return tf-idf of words and of character n-grams, which capture hashtags and spelling."""
    from sklearn.pipeline import make_union

    return make_union(*(_tfidf(name, *kind) for name in names for kind in (WORDS, PIECES)))


def _pair_features(names: Sequence[str]) -> object:
    """Return tf-idf of the words of each field, and the overlap of every pair of fields."""
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
                for name, value in measure_overlap(row[one], row[two]).items()
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


RUN = 5
"""The number of consecutive words that are remembered together."""
RECALLED = 0.8
"""The share of a text's runs that one remembered text must contain for a recall: on TweetEval
emotion, 1 of 178 texts reworded by rules still reaches it (docs/targets.md)."""


class TextMemory:
    """Texts with their labels, stored as hashed runs of words.

    Args:
        samples: The samples to remember; equal texts have the first label.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._labels = [sample.label_text for sample in samples]
        self._known = _hash_runs([sample.fields for sample in samples])

    def recall(self, fields: Sequence[Fields]) -> list[str | None]:
        """Return, for each text, the label of the remembered text that it matches, or None."""
        runs = _hash_runs(fields)
        shared = (runs @ self._known.T).tocsr()
        whole = runs.getnnz(axis=1)
        return [self._best(shared[row], float(whole[row])) for row in range(len(fields))]

    def _best(self, shared: "csr_matrix", whole: float) -> str | None:
        if not shared.nnz or shared.data.max() < RECALLED * whole:
            return None
        return self._labels[int(shared.indices[shared.data == shared.data.max()].min())]


def split_train(train: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Divide the train split into the half to fit classifiers on and the half to compare.

    `offline:clean` has seen nothing of the second half. The split depends on a text's words, so
    copies of a text are in the same half.
    """
    halves: tuple[list[Sample], list[Sample]] = ([], [])
    for sample in train:
        halves[is_held_out(sample)].append(sample)
    return halves


def is_held_out(sample: Sample) -> bool:
    """Return whether a sample of the train split is in the half to compare."""
    said = " ".join(word for text in sample.fields.values() for word in split_words(text))
    return zlib.crc32(said.encode()) % 2 == 1


def _hash_runs(fields: Sequence[Fields]) -> "csr_matrix":
    """Return the runs of words in each text, as a matrix with one row per text."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(
        analyzer=lambda one: list(_runs(one)), norm=None, alternate_sign=False, binary=True
    )
    return hashing.transform(fields)


def _runs(fields: Fields) -> Iterator[str]:
    """Yield the runs of words of each field; a shorter text is a single run."""
    for name, text in fields.items():
        said = split_words(text)
        for start in range(max(1, len(said) - RUN + 1)):
            yield " ".join((name, *said[start : start + RUN]))


@dataclass(frozen=True)
class OfflineTarget:
    """A fitted classifier that answers with label names, and the texts that it remembers."""

    name: str
    """The name as spelled in the config, e.g. `offline:classifier`."""
    classifier: Classifier
    memory: TextMemory | None = None

    def predict(self, fields: Sequence[Fields]) -> list[str]:
        """Return the label of each text, given as text by field name."""
        if not fields:
            return []
        labels = [str(label) for label in self.classifier.predict(fields)]
        recalled = self.memory.recall(fields) if self.memory else [None] * len(fields)
        return [known or label for known, label in zip(recalled, labels, strict=True)]


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """The samples that an embedded target may learn from."""

    train: Sequence[Sample]
    test: Callable[[], Sequence[Sample]]
    """A function that returns the samples of the run; only a contaminated target reads them."""


def fit_target(name: str, task: Task, seen: TrainingData, *, seed: int) -> OfflineTarget:
    """Fit the embedded target with a name such as `offline:classifier`.

    Raises:
        ConfigError: no embedded target has this name.
        DatasetError: the train split has no samples or only one class.
    """
    check_embedded(name)
    kind = EMBEDDED[name.removeprefix("offline:")]
    remembered = kind.remembers(seen)
    return OfflineTarget(
        name=name,
        classifier=_fit_classifier(task, kind.fitted_on(seen), seed),
        memory=TextMemory(remembered) if remembered else None,
    )


def is_classifier(name: str) -> bool:
    """Return whether `offline:NAME` is an embedded target; NumLeak personas have similar names."""
    return name.partition(":")[::2] in {("offline", each) for each in EMBEDDED}


def has_no_memory(name: str) -> bool:
    """Return whether a target is embedded and has seen no text of the benchmark's arms."""
    return is_classifier(name) and name.partition(":")[2] not in REMEMBERING


def check_embedded(name: str) -> None:
    """Check that there is an embedded target with a name such as `offline:classifier`.

    Raises:
        ConfigError: no embedded target has this name.
        UsageError: scikit-learn is not installed.
    """
    if not is_classifier(name):
        known = ", ".join(f"offline:{each}" for each in sorted(EMBEDDED))
        raise ConfigError(
            f"there is no embedded target {name!r}", where="models.targets", hint=f"known: {known}"
        )
    check_extra("demo", "sklearn", name, where="models.targets")


@dataclass(frozen=True)
class _TargetKind:
    fitted_on: Callable[[TrainingData], Sequence[Sample]]
    remembers: Callable[[TrainingData], Sequence[Sample]]


def _half(seen: TrainingData) -> Sequence[Sample]:
    return split_train(seen.train)[0]


def _part_of_half(number: int) -> Callable[[TrainingData], Sequence[Sample]]:
    """Return a function that draws a reference's training samples, fewer for higher numbers.

    The share falls from nine tenths of the half to four tenths, so that abilities differ like those
    of models.
    """

    def part(seen: TrainingData) -> Sequence[Sample]:
        known = _half(seen)
        return Random(number).sample(known, k=len(known) * (10 - number) // 10)

    return part


EMBEDDED = {
    "classifier": _TargetKind(lambda seen: seen.train, lambda _: ()),
    "clean": _TargetKind(_half, lambda _: ()),
    "finetuned": _TargetKind(_half, lambda seen: seen.train),
    "contaminated": _TargetKind(_half, lambda seen: seen.test()),
    **{f"reference-{n}": _TargetKind(_part_of_half(n), lambda _: ()) for n in range(1, 7)},
}
"""Embedded targets by the NAME of `offline:NAME`: the samples to fit on and to remember."""
REMEMBERING = frozenset(("finetuned", "contaminated"))
"""The targets with a memory, of the train or the test split."""


def _fit_classifier(task: Task, samples: Sequence[Sample], seed: int) -> Classifier:
    _require_classes(task, samples)
    classifier = make_classifier(task.fields, seed)
    classifier.fit([sample.fields for sample in samples], [one.label_text for one in samples])
    return classifier


def predict_samples(
    target: OfflineTarget, samples: Sequence[Sample], *, source: str
) -> tuple[Prediction, ...]:
    """Label samples that carry the texts of a source with an embedded target; uses no template."""
    answers = target.predict([sample.fields for sample in samples])
    return tuple(
        Prediction(
            target=target.name, source=source, sample_id=sample.id, template=0, answer=answer
        )
        for sample, answer in zip(samples, answers, strict=True)
    )


def _require_classes(task: Task, samples: Sequence[Sample]) -> None:
    classes = {sample.label_text for sample in samples}
    if len(classes) >= 2:
        return
    found = f"only the label {classes.pop()!r}" if classes else "no samples"
    raise DatasetError(
        f"an embedded target cannot be trained for {task.name!r}: its train split has {found}",
        where="dataset.train_split",
        hint="set a split with at least two labels, or remove offline targets from models.targets",
    )
