"""What the judges' answers mean: the conjunction is made here, never by a model (paper, §3.4)."""

from collections.abc import Iterator, Mapping, Sequence

from coreeval.agents.support import Support, evidence_text, quoted_in
from coreeval.agents.words import content_words
from coreeval.schema import (
    Defect,
    DefectKind,
    Evidence,
    FactDefect,
    FactVerdict,
    JudgedStatement,
    LabelVerdict,
    Outcome,
    Plan,
    Route,
    Sample,
    Task,
)
from coreeval.tasks.task_file import UNDECIDED, find_label, fold_name

_ROUTES: Mapping[FactDefect, Route] = {
    "identity": "replace",
    "relation": "replace",
    "memory": "replace",
    "unsupported": "replace",
    "person": "evidence",
}
"""Where a retry goes; anything else goes to the composer (pilot §8).

A claim without support that is not in the plan goes to the composer too: the plan is good."""
_COMPOSERS_OWN: frozenset[FactDefect] = frozenset({"none", "memory", "unsupported"})
ADDED_SHARE = 1 / 3
"""Share of a claim's content words missing from the plan above which the composer added it (own
choice: a claim that the plan made shares nearly all its words with it)."""
_FLUENCY: Mapping[int, tuple[str, Route]] = {
    1: ("does not hang together", "evidence"),
    2: ("reads unnaturally", "compose"),
}
_Found = tuple[JudgedStatement, Defect]
_OUTCOMES: tuple[tuple[DefectKind, Outcome], ...] = (
    ("unsafe", "unsafe"),
    ("facts", "rejected_facts"),
    ("label", "rejected_label"),
    ("form", "rejected_form"),
)
"""Which outcome a sample with several kinds of defect gets: the gravest."""


def fact_defects(
    task: Task,
    fields: Mapping[str, str],
    verdict: FactVerdict,
    evidence: Sequence[Evidence],
    plan: Plan,
) -> list[Defect]:
    """Return what keeps a text from being supported: every fact needs a yes that can be checked.

    A yes counts only with an item that was offered and a quotation that occurs in it. Harm to a
    person is a defect in every field; other facts are asked of the factual fields alone. What the
    plan does not say either was added by the composer, and goes back to it alone.
    """
    factual = task.factual_fields or task.fields
    exempt = set(fields) - set(factual)
    texts = {item.id: evidence_text(item) for item in evidence}
    judged = (_judged(statement, exempt, texts) for statement in verdict.statements)
    found = [_routed(defect, plan) for defect in judged if defect is not None]
    return [*found, *_unjudged(factual, fields, verdict)]


def _routed(found: _Found, plan: Plan) -> Defect:
    statement, defect = found
    planned = Support([text for one in plan.statements for text in (one.text, one.translation)])
    claim = content_words(statement.text)
    added = len(planned.missing_words(statement.text)) > len(claim) * ADDED_SHARE
    composed = defect.route == "replace" and statement.defect in _COMPOSERS_OWN and added
    return defect.model_copy(update={"route": "compose"}) if composed else defect


def _judged(
    statement: JudgedStatement, exempt: set[str], texts: Mapping[str, str]
) -> _Found | None:
    if statement.defect == "person":
        return _fact(statement, "person", "writes about a real person what may not be written")
    if statement.kind not in ("fact", "attributed") or statement.field in exempt:
        return None
    if statement.supported != "yes":
        code = "unsupported" if statement.defect == "none" else statement.defect
        return _fact(statement, code, "no evidence carries it")
    if statement.defect != "none":
        return _fact(statement, statement.defect, "the judge called it supported with a defect")
    if statement.evidence_id not in texts:
        return _fact(statement, "unsupported", "the evidence named for it was not offered")
    if not quoted_in(statement.quote, texts[statement.evidence_id]):
        return _fact(statement, "unsupported", f"its evidence does not say {statement.quote!r}")
    return None


def _fact(statement: JudgedStatement, code: FactDefect, why: str) -> _Found:
    said = f"{statement.words!r} says: " if statement.words else ""
    defect = Defect(
        check=f"facts_{code}",
        kind="facts",
        message=f"{statement.field}: {said}{statement.text!r}: {why} ({code})",
        route=_ROUTES.get(code, "compose"),
    )
    return statement, defect


def _unjudged(
    factual: Sequence[str], fields: Mapping[str, str], verdict: FactVerdict
) -> Iterator[Defect]:
    """A text of which no statement was judged is not thereby supported."""
    if not verdict.statements and any(fields.get(name, "").strip() for name in factual):
        yield Defect(
            check="facts_unjudged",
            kind="facts",
            message="the facts judge listed no statement of the text",
            route="compose",
        )


def label_defects(task: Task, sample: Sample, verdict: LabelVerdict) -> list[Defect]:
    """Return a defect if a blind judge did not give a text the sample's label."""
    given = find_label(task, verdict.label)
    if given is not None and given.id == sample.label:
        return []
    read = "reads as no label for sure" if given is None else f"reads as {given.name}"
    because = f" because of {verdict.cue!r}" if verdict.cue else ""
    message = f"the text {read}{because}; it must read as {sample.label_text}"
    return [Defect(check="label", kind="label", message=message, route="compose")]


def fluency_defects(verdict: LabelVerdict, original: int) -> list[Defect]:
    """Return a defect if a text reads less naturally than its original did to the same judge.

    A text whose parts do not belong together needs other news; a clumsy one, another wording.
    """
    if verdict.fluency >= original:
        return []
    what, route = _FLUENCY[verdict.fluency]
    at = f", see {verdict.odd!r}" if verdict.odd else ""
    return [Defect(check="fluency", kind="form", message=f"the text {what}{at}", route=route)]


def is_contrary(sample: Sample, verdict: LabelVerdict) -> bool:
    """Tell whether a judge definitely gave a text another label than the sample has.

    `unclear` is not definite, and neither is low confidence.
    """
    said = fold_name(verdict.label)
    return said not in (UNDECIDED, fold_name(sample.label_text), "") and verdict.confidence != "low"


def outcome_of(defects: Sequence[Defect]) -> Outcome:
    """Return how a sample ends whose last attempt has these defects; accepted without any.

    The gravest kind decides: unsafe, then facts, then label, then form.
    """
    kinds = {defect.kind for defect in defects}
    return next((outcome for kind, outcome in _OUTCOMES if kind in kinds), "accepted")


def same_defects(one: Sequence[Defect], other: Sequence[Defect]) -> bool:
    """Tell whether two attempts share a defect: same check, same message (pilot §8, early end)."""
    return bool({(d.check, d.message) for d in one} & {(d.check, d.message) for d in other})
