"""Membership as a detector: do log-probabilities separate the originals from unread texts?"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    TextAnswer,
    list_clusters,
    make_verdict_table,
    make_weights_tables,
    read_text_scores,
)
from coreeval.evaluation.scores import Score
from coreeval.tools.formatting import format_estimate
from coreeval.tools.tables import Foreign, Table, numbers, texts

if TYPE_CHECKING:
    from coreeval.evaluation.whitebox.membership_reference import ReferenceScores
    from coreeval.evaluation.whitebox.membership_texts import MembershipItem, MembershipSettings


def make_membership(
    settings: "MembershipSettings | None" = None, reference: "ReferenceScores | None" = None
) -> Detector:
    """Return the detector with a user's settings, or with the default settings.

    Args:
        settings: The settings: which texts are scored.
        reference: The scores of these texts from a model that cannot have read the originals.
    """

    def choose(inputs: DetectorInputs) -> "list[MembershipItem]":
        from coreeval.evaluation.whitebox.membership_texts import MembershipSettings, choose_items

        clusters = list_clusters(inputs)
        samples = (
            (
                sample.id,
                clusters[sample.id],
                {arm: "\n".join(texts.values()) for arm, texts in arms.items()},
            )
            for sample, arms in inputs.texts()
        )
        return choose_items(samples, settings or MembershipSettings(), seed=inputs.seed)

    def ask(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
        from coreeval.evaluation.whitebox.membership_texts import list_texts

        for request in list_texts(choose(inputs)):
            yield DetectorQuestion(request.key, request.text)

    def score(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
        from coreeval.evaluation.whitebox.membership import judge_membership

        found = judge_membership(choose(inputs), read_text_scores(answers), reference=reference)
        return found.model_dump(mode="json", exclude=None if reference else {"reference"})

    return Detector(
        name="membership",
        title="membership",
        question="Does the target assign a higher probability to the originals than it would if it "
        "had not read them?",
        access="log_probabilities",
        limits="It cannot distinguish memory from a first rewriting that lowers a text's "
        "probability more than a second one does. To rule this out, also score a model older "
        "than the benchmark. The absence of a difference does not clear a model.",
        verdicts={
            "member": "remembered",
            "no_membership": "not_shown",
            "shifted": "cannot_tell",
            "no_control": "cannot_tell",
            "too_few": "cannot_tell",
        },
        questions=ask,
        score=score,
        scores_texts=True,
        tables=_make_tables,
    )


def _make_tables(document: Json) -> Sequence[Table]:
    from coreeval.evaluation.whitebox.membership_scores import DEFINITIONS
    from coreeval.evaluation.whitebox.membership_terms import TERM_DEFINITIONS

    rows = [row for each in document["targets"] for row in _list_rows(each)]
    columns = [
        *(texts(head, gap=2 * bool(at), most=40) for at, head in enumerate(("target", "score"))),
        *(texts(head, gap=2, most=40) for head in ("difference", "estimate")),
        numbers("samples", gap=2, most=40),
    ]
    said = [*TERM_DEFINITIONS.items(), *DEFINITIONS.items()]
    title = "; ".join(f"{name}: {what}" for name, what in said)
    notes = [
        (Foreign(each["target"]), Foreign(note))
        for each in document["targets"]
        for note in each["notes"]
    ]
    tables = [
        make_verdict_table(document, MEMBERSHIP.statement),
        Table(columns, rows, f"Differences of mean scores and AUC, with 95 % intervals. {title}."),
    ]
    if compared := [row for each in document["targets"] for row in _list_comparisons(each)]:
        tables.append(_make_comparison(compared))
    if notes:
        tables.append(Table([texts("target", most=40), texts("note", gap=2)], notes, "Notes."))
    return [*tables, *make_weights_tables(document)]


def _list_rows(target: Json) -> Iterable[tuple[str | Foreign, ...]]:
    name = Foreign(target["target"])
    for each in target["methods"]:
        for term, value in each["terms"].items():
            score = Score.model_validate(value)
            digits = ".4f" if each["method"] in ("dc_pdd", "zlib") else ".3f"
            yield name, each["method"], term, format_estimate(score, digits), str(score.n)
        for pair in each["aucs"]:
            score = Score.model_validate(pair["auc"])
            what = f"AUC {pair['first']}/{pair['second']}"
            yield name, each["method"], what, format_estimate(score, ".3f"), str(score.n)
        for arm, share in (each["confidence_drops"] or {}).items():
            yield name, each["method"], f"confidence drops: {arm}", f"{share:.2f}", ""


def _list_comparisons(target: Json) -> Iterable[tuple[str | Foreign, ...]]:
    if not (reference := target.get("reference")):
        return
    names = Foreign(target["target"]), Foreign(reference["name"])
    for term, values in reference["terms"].items():
        scores = [Score.model_validate(values[of]) for of in ("model", "reference", "difference")]
        shown = (format_estimate(score, ".3f") for score in scores)
        yield *names, term, *shown, str(scores[-1].n)


def _make_comparison(rows: Sequence[tuple[str | Foreign, ...]]) -> Table:
    from coreeval.evaluation.whitebox.membership_reference import DECISIVE

    columns = [
        *(
            texts(head, gap=2 * bool(at), most=40)
            for at, head in enumerate(("target", "reference"))
        ),
        *(texts(head, gap=2, most=40) for head in ("difference", "of target", "of reference")),
        texts("target beyond reference", gap=2, most=40),
        numbers("samples", gap=2, most=40),
    ]
    title = (
        "Comparison with a reference that cannot have read the originals: differences of the "
        "score that decides the verdict, in standard deviations of each model's scores of the "
        "reworded texts. The 95 % intervals are over the samples scored by both models. The "
        f"verdict `member` requires that the target's {' and '.join(DECISIVE)} exceed those of the "
        "reference."
    )
    return Table(columns, rows, title)


MEMBERSHIP: Final = make_membership()
