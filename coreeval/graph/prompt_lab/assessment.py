"""Assesses a role's answer with the graph's checks, and summarises it in one line."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coreeval.agents import checks, reflect, safety
from coreeval.agents.extractor import ExtractionAnswer
from coreeval.agents.kinds import FactQuestion, WrittenItem, item_kind
from coreeval.agents.roles import CompositionRequest, Fields
from coreeval.agents.text.words import find_span
from coreeval.graph.prompt_lab.role_inputs import RoleInput
from coreeval.graph.setup import Setup
from coreeval.schema import (
    Composition,
    Defect,
    Entity,
    Extraction,
    FactVerdict,
    LabelVerdict,
    Lock,
    Plan,
    Rewrite,
    RoleName,
    Task,
    Value,
)


@dataclass(frozen=True)
class CheckFinding:
    """One defect found by code."""

    check: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """The assessment of an answer."""

    findings: tuple[CheckFinding, ...]
    verdict: str
    """A summary of the answer in one line."""


def assess_answer(situation: RoleInput, answer: Value, said: str, setup: Setup) -> Assessment:
    """Check a role's answer like the graph.

    Args:
        situation: The input of the role.
        answer: The role's answer, parsed from the model's text.
        said: The model's text.
        setup: The window that evidence must come from, and the rules about real people.
    """
    return _ASSESSORS[situation.role](
        _AnswerCase(situation=situation, said=said, setup=setup), answer
    )


def merge_composition(task: Task, written: Composition) -> Fields:
    """Return a composition's texts as the graph accepts them."""
    return {name: checks.restore_spacing(task, text) for name, text in written.fields.items()}


@dataclass(frozen=True, kw_only=True)
class _AnswerCase:
    situation: RoleInput
    said: str
    setup: Setup

    def restraint(self, extraction: Extraction) -> checks.Restraint:
        """Return the rules' restrictions on this sample's texts."""
        screened = self.screen(extraction)
        return checks.Restraint(
            neutral_only=screened.policy == "neutral_only", takedown=self.setup.rules.takedown
        )

    def screen(self, extraction: Extraction) -> safety.ScreenResult:
        """Return the result of screening the sample against the safety rules."""
        return safety.screen_sample(
            self.situation.sample,
            extraction,
            self.setup.rules.policy,
            self.setup.task.language,
        )


def _assess_extraction(case: _AnswerCase, answer: Extraction) -> Assessment:
    sample, task = case.situation.sample, case.situation.task
    clean = checks.clean_extraction(task, sample, answer)
    raw = ExtractionAnswer.model_validate_json(case.said)
    screened = case.screen(clean)
    told = f"{screened.policy} ({screened.reason})" if screened.reason else screened.policy
    parts = {
        "entities": len(clean.entities),
        "triples": len(clean.triples),
        "locked": len(clean.locked),
        "queries": len(clean.queries),
    }
    counted = ", ".join(f"{number} {name}" for name, number in parts.items())
    return Assessment(
        findings=(
            *_iter_absent(raw, sample.fields),
            *_iter_missed_locks(raw, clean, sample.fields),
        ),
        verdict=f"{counted}; policy: {told}",
    )


def _iter_absent(raw: Extraction, fields: Fields) -> Iterator[CheckFinding]:
    """Yield a finding for each incorrectly copied span, which the role moves or drops."""
    spans: list[Entity | Lock] = [*raw.entities, *raw.locked]
    for one in spans:
        if find_span(fields.get(one.field, ""), one.span) is None:
            yield CheckFinding("span", f"{one.field}: {one.span!r} does not occur in this field")
    for triple in raw.triples:
        if find_span(fields.get(triple.field, ""), triple.head) is None:
            yield CheckFinding(
                "triple", f"{triple.field}: the head {triple.head!r} does not occur in this field"
            )


def _iter_missed_locks(
    raw: Extraction, clean: Extraction, fields: Fields
) -> Iterator[CheckFinding]:
    """Yield a finding for each text that code locks but the model did not lock."""
    given = {(one.field, find_span(fields.get(one.field, ""), one.span)) for one in raw.locked}
    for lock in clean.locked:
        if (lock.field, lock.span) not in given:
            yield CheckFinding("lock_missed", f"{lock.field}: {lock.span!r} must stay ({lock.why})")


def _assess_plan(case: _AnswerCase, answer: Plan) -> Assessment:
    given = case.situation.given
    defects = checks.check_plan(
        case.situation.task,
        case.situation.sample,
        given["extraction"],
        answer,
        given["evidence"],
        case.setup.window,
        restraint=case.restraint(given["extraction"]),
    )
    verdict = f"{answer.decision}: {answer.reason}".rstrip(": ")
    return Assessment(findings=_list_findings(defects), verdict=verdict)


def _assess_rewrite(case: _AnswerCase, answer: Rewrite) -> Assessment:
    one = case.situation
    status, defects = checks.check_rewrite(
        one.task, one.sample, one.given["extraction"], answer, case.setup.rules.takedown
    )
    return Assessment(
        findings=_list_findings(defects), verdict=f"{status}: {answer.reason}".rstrip(": ")
    )


def _assess_composition(case: _AnswerCase, answer: Composition) -> Assessment:
    task, request = case.situation.task, build_request(case.situation)
    fields = merge_composition(task, answer)
    restraint = case.restraint(request.extraction)
    defects = checks.check_composition(
        task, request, fields, case.setup.window, restraint=restraint
    )
    verdict = "would be rejected before a judge" if defects else "would go to the judges"
    return Assessment(findings=_list_findings(defects), verdict=verdict)


def _assess_facts(case: _AnswerCase, answer: FactVerdict) -> Assessment:
    given = case.situation.given
    asked = FactQuestion(fields=given["fields"], evidence=given["evidence"])
    return assess_facts(asked, answer)


def _assess_label(case: _AnswerCase, answer: LabelVerdict) -> Assessment:
    return assess_label(case.situation, case.situation.given["fields"], answer)


def assess_facts(asked: FactQuestion, verdict: FactVerdict) -> Assessment:
    """Return the assessment of a facts verdict, regardless of a retry's first role."""
    no_plan = Plan(decision="use")
    defects = reflect.find_fact_defects(asked, asked.fields, verdict, no_plan)
    claims = [one for one in verdict.statements if one.supported != "not_needed"]
    carried = sum(one.supported == "yes" for one in claims)
    others = len(verdict.statements) - len(claims)
    said = (
        f"supported claims: {carried} of {len(claims)}; statements that need no support: {others}"
    )
    return Assessment(findings=_list_findings(defects), verdict=said)


def assess_label(situation: RoleInput, fields: Fields, verdict: LabelVerdict) -> Assessment:
    """Return whether a blind label matches the sample's own."""
    sample = situation.sample
    item = WrittenItem(task=situation.task, sample=sample, fields=sample.fields | fields)
    defects = reflect.find_label_defects(item, verdict)
    gold = item_kind(situation.task).describe_gold(sample, item.fields)
    cue = f", by {verdict.cue!r}" if verdict.cue else ""
    read = f"fluency {verdict.fluency}" + (f", see {verdict.odd!r}" if verdict.odd else "")
    said = f"{verdict.label} ({verdict.confidence} confidence{cue}); gold: {gold}; {read}"
    return Assessment(findings=_list_findings(defects), verdict=said)


def build_request(situation: RoleInput) -> CompositionRequest:
    """Return the composer's request."""
    request = situation.given["request"]
    assert isinstance(request, CompositionRequest)
    return request


def _list_findings(defects: Sequence[Defect]) -> tuple[CheckFinding, ...]:
    return tuple(CheckFinding(defect.check, defect.message) for defect in defects)


_ASSESSORS: Mapping[RoleName, Callable[[_AnswerCase, Any], Assessment]] = {
    "extractor": _assess_extraction,
    "replacer": _assess_plan,
    "rewriter": _assess_rewrite,
    "composer": _assess_composition,
    "fact_judge": _assess_facts,
    "label_judge": _assess_label,
}
