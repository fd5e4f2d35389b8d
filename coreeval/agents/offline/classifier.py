"""Naive Bayes over a benchmark's train split: what the label judge adds to its word lists."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coreeval.schema import Sample

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]

FEWEST = 200
"""Train samples under which the word lists are surer than anything fitted."""
DAMPING = 0.35
"""Naive Bayes counts words as if independent and is far too sure; its logs are shrunk by this."""


@dataclass(frozen=True)
class Bayes:
    """A fitted classifier."""

    pipeline: "Pipeline"

    def log_probabilities(self, text: str) -> dict[str, float]:
        """Return the damped log probability of each label name."""
        row = self.pipeline.predict_log_proba([text])[0]
        return {
            str(name): DAMPING * float(value)
            for name, value in zip(self.pipeline.classes_, row, strict=True)
        }


def fit_bayes(train: Sequence[Sample], seed: int) -> Bayes | None:
    """Return a classifier fitted on train samples, or None where there are too few of them.

    Fitting has no randomness; the seed only orders the rows, so that two runs add the same floats.
    """
    counts = Counter(sample.label_text for sample in train)
    if len(train) < FEWEST or len(counts) < 2:
        return None
    from sklearn.feature_extraction.text import CountVectorizer  # type: ignore[import-untyped]
    from sklearn.naive_bayes import MultinomialNB  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline
    from sklearn.utils import shuffle  # type: ignore[import-untyped]

    rows = shuffle(sorted(train, key=lambda sample: sample.id), random_state=seed)
    vectors = CountVectorizer(ngram_range=(1, 2), min_df=2, token_pattern=r"(?u)[#@]?\w\w+|[^\w\s]")
    pipeline = make_pipeline(vectors, MultinomialNB(alpha=0.5, fit_prior=False))
    texts = [" ".join(sample.fields.values()) for sample in rows]
    return Bayes(pipeline.fit(texts, [sample.label_text for sample in rows]))
