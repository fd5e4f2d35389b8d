"""Populations of TweetEval's tweets, labelled by classifiers fitted here with or without them.

Each test tweet is reworded by rules, and lengthened twice by a tweet of another benchmark: what
stands for the news, half a text that has nothing to do with the label. The two change places at
random in every study, so that nothing but what a rewriting costs lies between them. A study draws
tweets with replacement, so that all tweets are the population and its losses are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.calibration_worlds import LABELS, Planted, Study, coded
from coreeval.agents.offline.rewrite import TRANSFORMS, reword
from coreeval.config import DatasetConfig
from coreeval.evaluation.benchmarks.load import load_benchmark
from coreeval.evaluation.embedded_targets import Classifier, TextMemory, make_classifier
from coreeval.evaluation.label_scores import Codes, Floats, Mask
from coreeval.evaluation.scores import ARMS
from coreeval.schema import Arm, Sample
from coreeval.tasks import load_task

TWEETS: Final = Path("../shared/data/tweeteval")
SEED: Final = 7
Texts = Mapping[Arm, Sequence[str]]


@dataclass(frozen=True, eq=False)
class Tweets:
    """What one classifier says of all test tweets in all arms."""

    planted: Planted
    due: Codes
    said: Codes
    """Shape (tweets, arms)."""
    remembered: Mask

    @cached_property
    def joints(self) -> Mapping[Arm, Floats]:
        """For each arm the share of each label (lines) with each answer (columns)."""
        found = {arm: self._joint(column) for column, arm in enumerate(ARMS)}
        either = (found["updated"] + found["control"]) / 2
        return found | {"updated": either, "control": either}

    def _joint(self, column: int) -> Floats:
        counts = np.zeros((len(LABELS), len(LABELS)))
        np.add.at(counts, (self.due, self.said[:, column]), 1)
        return counts / len(self.due)

    def study(self, n: int, rng: np.random.Generator) -> Study:
        """Draw n tweets; for each, which of its two longer texts is the control is chance."""
        places = rng.integers(len(self.due), size=n)
        said = self.said[places].copy()
        both = [ARMS.index("updated"), ARMS.index("control")]
        said[:, both] = rng.permuted(said[:, both], axis=1)
        known = self.remembered[places]
        ways = tuple((arm, 0) for arm in ARMS)
        return Study(coded(self.due[places], said, ways), known, np.zeros(n, bool))


def tweets(shares: Sequence[float]) -> Iterator[Tweets]:
    """Yield a classifier fitted on train alone, and with each share of the test tweets.

    With each share two: one fitted on them besides, one that recalls them word for word.
    """
    train, test = _samples("emotion", "train"), _samples("emotion", "test")
    texts = _texts([sample.fields["text"] for sample in test])
    due = np.array([LABELS.index(sample.label_text) for sample in test])
    clean = _said(_fitted(train), texts)
    yield Tweets(Planted("fitted without them"), due, clean, np.zeros(len(test), bool))
    lot = np.random.default_rng(SEED).random(len(test))
    for share in shares:
        known = np.asarray(lot < share)
        some = [sample for sample, seen in zip(test, known, strict=True) if seen]
        fitted = _said(_fitted([*train, *some]), texts)
        yield Tweets(Planted("fitted with them", words=share), due, fitted, known)
        recalled = _recalled(TextMemory(some), texts, clean)
        yield Tweets(Planted("recalls them", words=share), due, recalled, known)


def _samples(task: str, split: str) -> tuple[Sample, ...]:
    config = DatasetConfig(format="tweeteval", path=str(TWEETS / task), split=split)
    return load_benchmark(config, load_task(task)).samples


def _texts(originals: Sequence[str]) -> Texts:
    news = [sample.fields["text"] for sample in _samples("irony", "train")]
    drawn = np.random.default_rng(SEED).choice(len(news), size=(2, len(originals)), replace=False)
    reworded = [reword(text, [], TRANSFORMS) for text in originals]
    first, second = (
        [f"{text} {_half(news[at])}" for text, at in zip(reworded, places, strict=True)]
        for places in drawn
    )
    return {"original": originals, "semantic": reworded, "updated": first, "control": second}


def _half(text: str) -> str:
    words = text.split()
    return " ".join(words[: len(words) // 2])


def _fitted(samples: Sequence[Sample]) -> Classifier:
    classifier = make_classifier(("text",), SEED)
    classifier.fit([each.fields for each in samples], [each.label_text for each in samples])
    return classifier


def _said(classifier: Classifier, texts: Texts) -> Codes:
    columns = [classifier.predict([{"text": text} for text in texts[arm]]) for arm in ARMS]
    return np.column_stack([_codes(column) for column in columns])


def _recalled(memory: TextMemory, texts: Texts, otherwise: Codes) -> Codes:
    said = otherwise.copy()
    for column, arm in enumerate(ARMS):
        labels = memory.recall([{"text": text} for text in texts[arm]])
        known = np.array([label is not None for label in labels])
        said[known, column] = _codes([label for label in labels if label is not None])
    return said


def _codes(labels: Sequence[str]) -> Codes:
    return np.array([LABELS.index(str(label)) for label in labels], np.int16)
