"""Functions for lm-evaluation-harness tasks with choices, answers or summaries."""

from coreeval.releases.exports.harness.grading import (
    Doc,
    Grades,
    grade_answer,
    grade_summary,
    read_letter,
)
from coreeval.releases.exports.harness.lm_eval_functions import Scores, score_pair
from coreeval.releases.exports.harness.scoring import UNPARSED


def score_letter(doc: Doc, results: list[str]) -> Scores:
    """Score the option that a model chose in words; `unparsed` is 1 if it chose none."""
    said = read_letter(doc, results[0])
    return score_pair(doc["label_text"], said) | {"unparsed": float(said == UNPARSED)}


def score_short_answer(doc: Doc, results: list[str]) -> Grades:
    """Score a model's answer."""
    return grade_answer(doc, results[0])


def score_summary(doc: Doc, results: list[str]) -> Grades:
    """Score a model's summary."""
    return grade_summary(doc, results[0])
