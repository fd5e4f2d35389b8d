"""Reads and grades answers with CoreEval's code, copied next to this file."""

import hashlib
import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from coreeval.releases.exports.harness.scoring import UNPARSED, benchmark

PACKAGE = "coreeval_grading"
Doc = Mapping[str, Any]
"""A question with its gold: the columns of the data."""
Grades = dict[str, float]


@cache
def grading() -> Any:  # noqa: ANN401 - its modules are beside this one only in an export
    """Return the copied package; several exports can be loaded, each with its own copy."""
    folder = Path(__file__).with_name(PACKAGE)
    name = f"{PACKAGE}_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is not the package exported with this file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@cache
def _labels() -> Any:  # noqa: ANN401 - see above
    return grading().LabelReader(benchmark()["labels"])


def read_label(answer: str) -> str:
    """Return the label of an answer, otherwise `UNPARSED`."""
    return str(_labels().read(answer) or UNPARSED)


def read_short_answer(answer: str) -> str:
    """Return a model's short answer, given alone, in prose or as {"answer": "..."}."""
    return str(grading().read_free_answer(answer, short=True))


def read_summary(answer: str) -> str:
    """Return a model's summary, given alone or as {"answer": "..."}."""
    return str(grading().read_free_answer(answer, short=False))


def read_letter(doc: Doc, answer: str) -> str:
    """Return the letter of the option that an answer chooses, otherwise `UNPARSED`."""
    options = dict(zip(doc["letters"], doc["choices"], strict=True))
    return str(grading().read_choice(answer, options) or UNPARSED)


def grade_answer(doc: Doc, answer: str) -> Grades:
    """Grade a short answer; an answer that cannot be parsed is wrong.

    `acc` is 1 if CoreEval counts it as right, and `score` is CoreEval's score. `exact_match` and
    `f1` are those of SQuAD 1.1, which ignore numbers and units.
    """
    said, code = read_short_answer(answer), grading()
    due = code.Accepted(
        answers=list(doc["answers"]),
        type=doc["answer_type"],
        unit=doc["unit"] or "",
        tolerance=doc["tolerance"] or "",
        question=doc["question"],
    )
    grade = code.grade_short_answer(said, due)
    is_exact, token_f1 = code.compare_squad(due.answers, said)
    return {
        "acc": float(grade.right),
        "score": float(grade.score),
        "exact_match": float(is_exact),
        "f1": float(token_f1),
    }


def grade_summary(doc: Doc, answer: str) -> Grades:
    """Grade a summary.

    `supported` is the share of its sentences that the document supports; `acc` is 1 if it supports
    all of them. `rougeL` compares the summary with the reference.
    """
    said, code = read_summary(answer), grading()
    supported = float(code.support_share(doc["document"], said))
    score = float(code.rouge_l(doc["summary"], said))
    return {"acc": float(supported == 1), "rougeL": score, "supported": supported}
