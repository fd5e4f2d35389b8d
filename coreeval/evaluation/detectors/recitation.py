"""Recitation as a detector: does a target complete the originals but not their twins?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    TextAnswer,
    make_verdict_table,
)
from coreeval.evaluation.detectors.recitation_probes import COMPLETION_QUESTION, PROBES
from coreeval.evaluation.scores import Score
from coreeval.tools.formatting import format_estimate
from coreeval.tools.tables import Foreign, Table, numbers, texts

if TYPE_CHECKING:
    from coreeval.evaluation.recitation import RecitationItem


def _choose(inputs: DetectorInputs) -> "list[RecitationItem]":
    from coreeval.evaluation.recitation import choose_items

    return choose_items(((sample.id, arms) for sample, arms in inputs.texts()), seed=inputs.seed)


def _key(item: str, arm: str) -> str:
    return f"{arm}:{item}"


def _ask(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
    task = inputs.task
    for item in _choose(inputs):
        for arm, text in item.texts.items():
            question = COMPLETION_QUESTION.format(
                task=task.name, description=task.description, beginning=text.beginning
            )
            yield DetectorQuestion(_key(item.id, arm), question)


def _score(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
    from coreeval.evaluation.recitation import judge_recitation

    items = _choose(inputs)
    said = {
        (item.id, arm): (answers[key].kind, answers[key].text)
        for item in items
        for arm in item.texts
        if (key := _key(item.id, arm)) in answers
    }
    return judge_recitation(items, said).model_dump(mode="json")


_COLUMNS: Final = (
    texts("target", most=40),
    texts("twins", gap=2, most=40),
    *(numbers(head, gap=2, most=40) for head in ("texts", "recited", "of twins")),
    *(texts(head, gap=2, most=40) for head in ("overlap", "of twins", "difference")),
    numbers("p", gap=2, most=40),
)
_SHARES: Final = ("overlap", "overlap_twin", "overlap_difference")


def _make_tables(document: Json) -> Sequence[Table]:
    rows = [
        (
            Foreign(each["target"]),
            arm,
            str(found["items"]),
            str(found["original"]),
            str(found["twin"]),
            *(format_estimate(Score.model_validate(found[part]), ".2f") for part in _SHARES),
            f"{found['p_value']:.2g}",
        )
        for each in document["targets"]
        for arm, found in each["twins"].items()
    ]
    title = (
        "Recited: the number of texts recited. Overlap: the mean share of the missing words that "
        "were recited, with 95 % intervals."
    )
    return [make_verdict_table(document, RECITATION.question), Table(_COLUMNS, rows, title)]


RECITATION: Final = Detector(
    name="recitation",
    title="recitation",
    question="Test whether a target that is shown the start of a text recites the rest more often "
    "for originals than for their twins (the reworded and updated texts).",
    access="answers",
    verdicts={
        "recites": "remembered",
        "no_recitation": "not_shown",
        "too_few": "cannot_tell",
        "refusing": "cannot_tell",
    },
    terms={
        "recited": (
            "recited",
            "an answer with at least 80 % of the missing words, in order.",
        ),
    },
    questions=_ask,
    score=_score,
    tables=_make_tables,
    probes=PROBES,
)
