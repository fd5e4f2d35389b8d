"""The replacer (CoreEval paper, eq. 2 and 3), played by a model: knowledge and new triples."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from coreeval.agents.edits import firm_locks
from coreeval.agents.llm_role import (
    LLMRole,
    event_news_data,
    feedback_data,
    item_data,
    locked_data,
    occurs,
    plan_data,
)
from coreeval.models import InvalidAnswer, ModelClient, OutputSchema
from coreeval.prompts import PromptSet
from coreeval.schema import (
    Defect,
    Deletion,
    Evidence,
    Extraction,
    Person,
    Plan,
    Replacement,
    RoleName,
    Sample,
    Statement,
    Task,
    Text,
    Triple,
    Value,
)

_MOST_STATEMENTS = 6


class NumberedStatement(Value):
    """A statement that cites news items by their number in the prompt."""

    text: Text
    evidence: tuple[int, ...]
    quote: Text
    translation: str
    modality: Literal["asserted", "attributed", "question", "hedged"]
    speaker: str


class PlannedReplacement(Value):
    """A replacement; whether it is an insertion follows from `before`."""

    before: Triple | None
    after: Triple
    field: str
    statement: int
    same_type: bool


class PlanAnswer(Value):
    """A plan as a model gives it: the new text in a nutshell first, to hear what is forced."""

    sketch: str
    reason: str
    decision: Literal["use", "none_fits", "unsafe"]
    statements: tuple[NumberedStatement, ...]
    replacements: tuple[PlannedReplacement, ...]
    delete: tuple[Deletion, ...]
    persons: tuple[Person, ...]


class LLMReplacer(LLMRole):
    """A replacer that chooses the news of one event and plans what becomes what.

    A plan that cites items or statements that do not exist is asked for again, since its meaning is
    unclear; so is one that decides to use news and uses none. Deletions of spans that are not in
    their field are dropped: there is nothing to delete.
    """

    role: ClassVar[RoleName] = "replacer"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._schema = OutputSchema(PlanAnswer, name="plan", choices={"field": task.fields})

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        evidence: Sequence[Evidence],
        *,
        feedback: Sequence[Defect] = (),
        previous: Plan | None = None,
    ) -> Plan:
        """Plan the replacements, or report that nothing fits; without news no model is asked."""
        if not evidence:
            return Plan(decision="none_fits", reason="there is no news to choose from")
        item = item_data(self.task, sample) | {
            "entities": [entity.model_dump(include={"span", "field", "type"})
                         for entity in extraction.entities],
            "triples": [triple.model_dump() for triple in extraction.triples],
            "locked": locked_data(firm_locks(self.task, extraction)),
            "need": extraction.need,
        }  # fmt: skip
        messages = self._messages(
            item=item,
            news=event_news_data(evidence),
            feedback={
                "previous": plan_data(previous) if feedback and previous else None,
                "defects": feedback_data(feedback),
            },
        )
        answer = await self._client.ask(
            messages, self._schema, check=lambda answer: _check(answer, len(evidence))
        )
        return _plan(answer, sample, evidence)


def _check(answer: PlanAnswer, items: int) -> None:
    if answer.decision != "use":
        return
    if not answer.statements or not answer.replacements:
        raise InvalidAnswer('"use" needs at least one statement and one replacement')
    if len(answer.statements) > _MOST_STATEMENTS:
        raise InvalidAnswer(f"there are more than {_MOST_STATEMENTS} statements")
    for index, statement in enumerate(answer.statements, start=1):
        wrong = [number for number in statement.evidence if not 1 <= number <= items]
        if wrong or not statement.evidence:
            cited = f"item {wrong[0]}" if wrong else "no item"
            raise InvalidAnswer(f"statement {index} cites {cited}; items are numbered 1 to {items}")
    _check_indexes(answer)


def _check_indexes(answer: PlanAnswer) -> None:
    for index, replacement in enumerate(answer.replacements, start=1):
        if not 1 <= replacement.statement <= len(answer.statements):
            raise InvalidAnswer(
                f"replacement {index} rests on statement {replacement.statement}; statements are "
                f"counted from 1 to {len(answer.statements)}"
            )


def _plan(answer: PlanAnswer, sample: Sample, evidence: Sequence[Evidence]) -> Plan:
    if answer.decision != "use":
        return Plan(decision=answer.decision, reason=answer.reason)
    return Plan(
        decision="use",
        statements=tuple(_statement(one, evidence) for one in answer.statements),
        replacements=tuple(_replacement(one) for one in answer.replacements),
        delete=tuple(one for one in answer.delete if occurs(one.span, sample.fields[one.field])),
        persons=tuple(person for person in answer.persons if person.name.strip()),
        reason=answer.reason,
    )


def _statement(one: NumberedStatement, evidence: Sequence[Evidence]) -> Statement:
    numbers = dict.fromkeys(one.evidence)
    return Statement(
        text=one.text,
        evidence_ids=tuple(evidence[number - 1].id for number in numbers),
        quote=one.quote,
        translation=one.translation,
        modality=one.modality,
        speaker=one.speaker,
    )


def _replacement(one: PlannedReplacement) -> Replacement:
    return Replacement(
        before=one.before,
        after=one.after,
        mode="replace" if one.before else "insert",
        field=one.field,
        statement_index=one.statement - 1,
        same_type=one.same_type,
    )
