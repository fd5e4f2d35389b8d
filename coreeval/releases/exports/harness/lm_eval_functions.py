"""The functions that the tasks of the lm-evaluation-harness call."""

from collections.abc import Mapping

from datasets import Dataset  # type: ignore[import-untyped]

from coreeval.releases.exports.harness.grading import read_label
from coreeval.releases.exports.harness.scoring import UNPARSED, Pair, benchmark, file_of

Scores = dict[str, float | Pair]


def arm_data(arm: str, **_: object) -> dict[str, Dataset]:
    """Return the questions of an arm, independent of the location of this folder."""
    return {benchmark()["split"]: Dataset.from_parquet(file_of(arm))}


def score_choices(doc: Mapping[str, str], results: list[tuple[float, bool]]) -> Scores:
    """Score the label that is most likely according to the model."""
    likelihoods = [likelihood for likelihood, _ in results]
    likeliest = likelihoods.index(max(likelihoods))
    return score_pair(doc["label_text"], benchmark()["labels"][likeliest])


def score_answer(doc: Mapping[str, str], results: list[str]) -> Scores:
    """Score the model's output; `unparsed` is 1 if it is not a label."""
    said = read_label(results[0])
    return score_pair(doc["label_text"], said) | {"unparsed": float(said == UNPARSED)}


def score_pair(due: str, said: str) -> Scores:
    """Score a label or letter by comparing it with the right one."""
    return {"acc": float(due == said), "macro_f1": (due, said)}
