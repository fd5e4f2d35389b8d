"""What the tasks of the lm-evaluation-harness call."""

from collections.abc import Mapping

from datasets import Dataset  # type: ignore[import-untyped]

from coreeval.releases.exports.harness.scoring import UNPARSED, Pair, benchmark, file_of, read_label

Scores = dict[str, float | Pair]


def arm_data(arm: str, **_: object) -> dict[str, Dataset]:
    """Return the questions of an arm, wherever this folder is."""
    return {benchmark()["split"]: Dataset.from_parquet(file_of(arm))}


def score_choices(doc: Mapping[str, str], results: list[tuple[float, bool]]) -> Scores:
    """Score the label whose words the model finds most likely."""
    likelihoods = [likelihood for likelihood, _ in results]
    likeliest = likelihoods.index(max(likelihoods))
    return score_pair(doc["label_text"], benchmark()["labels"][likeliest])


def score_answer(doc: Mapping[str, str], results: list[str]) -> Scores:
    """Score what the model wrote; `unparsed` is 1 where that is no label."""
    said = read_label(results[0])
    return score_pair(doc["label_text"], said) | {"unparsed": float(said == UNPARSED)}


def score_pair(due: str, said: str) -> Scores:
    """Score a label or letter against the one that is right."""
    return {"acc": float(due == said), "macro_f1": (due, said)}
