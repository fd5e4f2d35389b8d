"""Turns judges' answers into defects, and decides whether a sample gets another attempt.

The conjunction of the verdicts is formed here, never by a model (CoreEval paper, §3.4).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coreeval.agents.defects import label_defect
from coreeval.agents.kinds import FactQuestion, WrittenItem, item_kind
from coreeval.agents.text.support import Support, evidence_text, is_quoted_in
from coreeval.agents.text.words import find_content_words, has_span
from coreeval.schema import (
    Certainty,
    Defect,
    DefectKind,
    FactDefect,
    FactVerdict,
    JudgedStatement,
    LabelVerdict,
    OptionVerdict,
    Outcome,
    Plan,
    Route,
    Sample,
    Task,
)
from coreeval.tasks import fold_name
from coreeval.tasks.task_file import UNDECIDED

_ROUTES: Mapping[FactDefect, Route] = {
    "identity": "replace",
    "memory": "replace",
    "unsupported": "replace",
    "person": "evidence",
}
"""The start of a retry, by defect; other defects go to the composer (pilot §8). An unsupported
claim that is not in the plan also goes to the composer, since the plan is good."""
_COMPOSER_DEFECTS: frozenset[FactDefect] = frozenset({"none", "memory", "unsupported"})
ADDED_SHARE = 1 / 3
"""If the share of a claim's content words missing from the plan is larger, the composer added the
claim (own choice: a claim from the plan shares nearly all its words with it)."""
_FLUENCY: Mapping[int, tuple[str, Route]] = {
    1: ("does not hang together", "evidence"),
    2: ("reads unnaturally", "compose"),
}
_StatementDefect = tuple[JudgedStatement, Defect]
_OUTCOMES: tuple[tuple[DefectKind, Outcome], ...] = (
    ("unsafe", "unsafe"),
    ("facts", "rejected_facts"),
    ("label", "rejected_label"),
    ("form", "rejected_form"),
)
"""The outcome for each kind of defect, most serious first; the most serious one decides."""


def find_fact_defects(
    asked: FactQuestion, fields: Mapping[str, str], verdict: FactVerdict, plan: Plan
) -> list[Defect]:
    """Return the defects because of which a text is not supported.

    Every fact needs a verifiable yes, which cites an offered item and a quotation that occurs in
    it. Harm to a person is a defect in every field; other facts are only checked in the factual
    fields. A fact that is not in the plan was added by the composer, and only goes back to the
    composer.
    """
    exempt = set(fields) - set(asked.fields)
    texts = {item.id: evidence_text(item) for item in asked.evidence}
    judged = (_check_statement(statement, exempt, texts) for statement in verdict.statements)
    found = [_choose_route(defect, plan) for defect in judged if defect is not None]
    return [*found, *_check_unjudged(asked.fields, verdict)]


def _choose_route(found: _StatementDefect, plan: Plan) -> Defect:
    statement, defect = found
    planned = Support([text for one in plan.statements for text in (one.text, one.translation)])
    claim = find_content_words(statement.text)
    added = len(planned.missing_words(statement.text)) > len(claim) * ADDED_SHARE
    composed = defect.route == "replace" and statement.defect in _COMPOSER_DEFECTS and added
    return defect.model_copy(update={"route": "compose"}) if composed else defect


def _check_statement(
    statement: JudgedStatement, exempt: set[str], texts: Mapping[str, str]
) -> _StatementDefect | None:
    if statement.defect == "person":
        return _fact_defect(
            statement, "person", "writes about a real person what may not be written"
        )
    if statement.kind not in ("fact", "attributed") or statement.field in exempt:
        return None
    if statement.supported != "yes":
        code = "unsupported" if statement.defect == "none" else statement.defect
        return _fact_defect(statement, code, "no evidence carries it")
    if statement.defect != "none":
        return _fact_defect(
            statement, statement.defect, "the judge called it supported with a defect"
        )
    if statement.evidence_id not in texts:
        return _fact_defect(statement, "unsupported", "the evidence named for it was not offered")
    if not is_quoted_in(statement.quote, texts[statement.evidence_id]):
        return _fact_defect(
            statement, "unsupported", f"its evidence does not say {statement.quote!r}"
        )
    return None


def _fact_defect(statement: JudgedStatement, code: FactDefect, why: str) -> _StatementDefect:
    said = f"{statement.words!r} says: " if statement.words else ""
    defect = Defect(
        check=f"facts_{code}",
        kind="facts",
        message=f"{statement.field}: {said}{statement.text!r}: {why} ({code})",
        route=_ROUTES.get(code, "compose"),
    )
    return statement, defect


def _check_unjudged(fields: Mapping[str, str], verdict: FactVerdict) -> Iterator[Defect]:
    """Yield a defect if no statement of a text was judged, since it then is not supported."""
    if not verdict.statements and any(text.strip() for text in fields.values()):
        yield Defect(
            check="facts_unjudged",
            kind="facts",
            message="the facts judge listed no statement of the text",
            route="compose",
        )


def find_label_defects(item: WrittenItem, verdict: LabelVerdict) -> list[Defect]:
    """Return a defect if a blind judge did not find the gold of a text."""
    kind = item_kind(item.task)
    if kind.is_gold(item.task, item.sample, item.fields, verdict.label):
        return []
    unsure = fold_name(verdict.label) in (UNDECIDED, "")
    read = "reads as no label for sure" if unsure else f"reads as {verdict.label}"
    because = f" because of {verdict.cue!r}" if verdict.cue else ""
    gold = kind.describe_gold(item.sample, item.fields)
    return [label_defect("label", f"the text {read}{because}; it must read as {gold}")]


def find_guessed_defects(item: WrittenItem, verdict: LabelVerdict) -> list[Defect]:
    """Return a defect if a judge certainly found the gold without the passage that it needs."""
    if verdict.confidence != "high" or not item_kind(item.task).is_gold(
        item.task, item.sample, item.fields, verdict.label
    ):
        return []
    message = f"a reader without the passage answered {verdict.label!r}: it can be guessed or known"
    return [label_defect("needs_no_passage", message)]


def find_option_defects(sample: Sample, verdicts: Sequence[OptionVerdict]) -> list[Defect]:
    """Return the defects of a choice's options, which a judge checked one by one."""
    found = ((one, _find_option_fault(one, sample.label_text)) for one in verdicts)
    return [
        label_defect(check, f"option {one.letter} {what}: {one.why}")
        for one, (check, what) in found
        if check
    ]


def _find_option_fault(one: OptionVerdict, right: str) -> tuple[str, str]:
    """Return the check that an option fails and its problem; empty texts if there is none."""
    if one.letter == right:
        fault = "right_option", "is not made right by the news"
        return fault if one.truth != "right" else ("", "")
    if one.truth == "right":
        return "second_right", "is right as well"
    if not one.same_type:
        return "weak_option", "is nothing that the question asks for"
    return ("", "") if one.plausible else ("weak_option", "convinces nobody")


def find_fluency_defects(verdict: LabelVerdict, original: int) -> list[Defect]:
    """Return a defect if the same judge finds a text less natural than its original.

    A text with unrelated parts needs different news; a clumsy one needs a different wording.
    """
    if verdict.fluency >= original:
        return []
    what, route = _FLUENCY[verdict.fluency]
    at = f", see {verdict.odd!r}" if verdict.odd else ""
    return [Defect(check="fluency", kind="form", message=f"the text {what}{at}", route=route)]


def find_ease_defects(
    item: WrittenItem, verdict: LabelVerdict, certainty: Certainty
) -> list[Defect]:
    """Return a defect if the label of a text is plainer than its original's.

    The same judge read both: it was certain of the text's label, but not of the original's, and the
    deciding words are new. The text is right otherwise, so it should be returned at most once.
    """
    plainer = certainty in ("low", "medium") and verdict.confidence == "high"
    if item.task.kind != "labels" or not plainer:
        return []
    original = " ".join(item.sample.fields.values())
    if verdict.cue and all(has_span(original, part) for part in verdict.cue.split(" ... ")):
        return []
    cue = f" by {verdict.cue!r}" if verdict.cue else ""
    message = (
        f"the label is plainer than the original's: a reader was certain of it{cue}, but not of "
        "the original's; show it no more openly than the original does"
    )
    return [label_defect("ease", message)]


def is_contrary(task: Task, sample: Sample, verdict: LabelVerdict) -> bool:
    """Return whether a judge definitely assigned an original another gold than the sample's.

    `unclear` is not definite, and neither is low confidence. A wrong answer to a question without a
    passage only shows that the judge does not know the answer.
    """
    kind = item_kind(task)
    if kind.needs_news(task) or fold_name(verdict.label) in (UNDECIDED, ""):
        return False
    gold = kind.is_gold(task, sample, sample.fields, verdict.label)
    return not gold and verdict.confidence != "low"


def is_same_gold(item: WrittenItem, verdict: LabelVerdict, original_label: str) -> bool:
    """Return whether a rewording has its original's gold, according to a judge that read both.

    This is so if the judge found the gold, or gave the same answer to both. For a question without
    a passage, it is also so unless the judge knew the answer to the original.
    """
    kind = item_kind(item.task)

    def is_gold(said: str) -> bool:
        return kind.is_gold(item.task, item.sample, item.fields, said)

    if is_gold(verdict.label) or verdict.label == original_label:
        return True
    return kind.needs_news(item.task) and not is_gold(original_label)


def choose_outcome(defects: Sequence[Defect]) -> Outcome:
    """Return the outcome of a sample whose last attempt has these defects; accepted if none.

    The most serious kind decides: unsafe, then facts, then label, then form.
    """
    kinds = {defect.kind for defect in defects}
    return next((outcome for kind, outcome in _OUTCOMES if kind in kinds), "accepted")


def share_defect(one: Sequence[Defect], other: Sequence[Defect]) -> bool:
    """Return whether two attempts share a defect: same check and message (pilot §8, early end)."""
    return bool({(d.check, d.message) for d in one} & {(d.check, d.message) for d in other})


FURTHEST_BACK: tuple[Route, ...] = ("evidence", "replace", "compose")
"""The routes, those that redo most first (research: pilot §8)."""


@dataclass(frozen=True, kw_only=True)
class NextAttempt:
    """Another attempt, which starts at `route`."""

    route: Route


@dataclass(frozen=True, kw_only=True)
class FinalOutcome:
    """An outcome after which there is no further attempt."""

    outcome: Outcome
    reason: str


def decide_next(
    defects: Sequence[Defect], *, previous: Sequence[Defect], attempt: int, max_attempts: int
) -> NextAttempt | FinalOutcome:
    """Return the next step for a text with at least one defect.

    The sample ends at the last attempt, if the text is unsafe, or if one of the defects occurs a
    second time, word for word (a fourth attempt saved none of the pilot's rejected samples, pilot
    §8).
    """
    unsafe = any(defect.kind == "unsafe" for defect in defects)
    if unsafe or attempt >= max_attempts or share_defect(defects, previous):
        return FinalOutcome(outcome=choose_outcome(defects), reason=summarise_defects(defects))
    routes = {_escalate(defect, previous) for defect in defects}
    return NextAttempt(route=next(route for route in FURTHEST_BACK if route in routes))


_JUDGED = ("facts_", "label", "fluency")


def _escalate(defect: Defect, previous: Sequence[Defect]) -> Route:
    """Return the route of a defect; a new plan if the composer could not fix a judge's objection.

    If a text has the same kind of defect twice, its plan causes the defect.
    """
    again = any(defect.check == other.check and other.route == "compose" for other in previous)
    judged = defect.check.startswith(_JUDGED)
    return "replace" if again and judged and defect.route == "compose" else defect.route


def summarise_defects(defects: Sequence[Defect]) -> str:
    """Return one line that names each defect."""
    return "; ".join(f"{defect.check}: {defect.message}" for defect in defects)
