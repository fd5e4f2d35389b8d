"""The fact judge (CoreEval paper, section 3.4, incorrect information), played by a model."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from coreeval.agents.kinds import item_kind
from coreeval.agents.llm_role import LLMRole, judged_text, news_data
from coreeval.agents.roles import Fields
from coreeval.models import InvalidAnswer, ModelClient, OutputSchema
from coreeval.prompts import PromptSet
from coreeval.schema import (
    Evidence,
    FactDefect,
    FactVerdict,
    JudgedStatement,
    RoleName,
    StatementClass,
    Task,
    Text,
    Value,
)

_CLAIMS = ("fact", "attributed")
"""The kinds of statement that need evidence (pilot §6)."""


class StatementAnswer(Value):
    """A judged statement that cites a news item by its number in the prompt."""

    text: Text
    field: str
    words: str
    kind: StatementClass
    supported: Literal["yes", "no", "not_needed"]
    evidence: int | None
    quote: str
    defect: FactDefect


class FactAnswer(Value):
    """The judge's answer, without a summary, since code forms the conjunction."""

    statements: tuple[StatementAnswer, ...]


class LLMFactJudge(LLMRole):
    """A judge that checks facts statement by statement, without seeing the label or the original.

    A verdict that omits a field, cites an item that was not shown, supports a claim without a
    citation, or contradicts itself is requested again, since a verdict decides what is published.
    """

    role: ClassVar[RoleName] = "fact_judge"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        kind = item_kind(task)
        self._fields = kind.judged(task)
        self._claimless = frozenset(kind.claimless(task))
        self._schema = OutputSchema(FactAnswer, name="fact_check", choices={"field": self._fields})

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence]) -> FactVerdict:
        """Judge the facts of one text against the evidence."""
        text = {name: fields[name] for name in self._fields}

        def check(answer: FactAnswer) -> None:
            judged = {one.field for one in answer.statements}
            missing = {name for name in text if text[name].strip()} - judged - self._claimless
            if missing:
                raise InvalidAnswer(f"no statement of {', '.join(sorted(missing))} is judged")
            for index, one in enumerate(answer.statements):
                if problem := _problem(one, len(evidence)):
                    raise InvalidAnswer(f"statement {index} {problem}")

        messages = self._messages(text=judged_text(text), news=news_data(evidence))
        answer = await self._client.ask(messages, self._schema, check=check)
        return FactVerdict(statements=tuple(_judged(one, evidence) for one in answer.statements))


def _problem(one: StatementAnswer, items: int) -> str:
    """Return the problem of a judged claim; empty if there is none."""
    if one.kind not in _CLAIMS:
        return ""
    if one.supported == "not_needed":
        return f'is of kind {one.kind} and needs "yes" or "no"'
    if one.supported == "no":
        return ""
    if one.evidence is None or not 1 <= one.evidence <= items:
        return f"is supported by item {one.evidence}; items are numbered 1 to {items}"
    if not one.quote.strip():
        return "is supported without a quote"
    return "" if one.defect == "none" else f"is supported and yet has the defect {one.defect}"


def _judged(one: StatementAnswer, evidence: Sequence[Evidence]) -> JudgedStatement:
    claim = one.kind in _CLAIMS
    supported = claim and one.supported == "yes"
    unsupported = claim and not supported
    number = one.evidence if supported else None
    return JudgedStatement(
        text=one.text,
        field=one.field,
        words=one.words,
        kind=one.kind,
        supported="yes" if supported else "no" if unsupported else "not_needed",
        evidence_id=evidence[number - 1].id if number else "",
        quote=one.quote if supported else "",
        defect=_defect(one.defect) if unsupported else "none",
    )


def _defect(named: FactDefect) -> FactDefect:
    """Return the defect of an unsupported claim; `unsupported` if the judge did not name one."""
    return "unsupported" if named == "none" else named
