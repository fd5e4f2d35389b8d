"""The replacer (CoreEval paper, eq. 2 and 3), played by a model: knowledge and new triples."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal

from coreeval.agents.kinds import item_kind
from coreeval.agents.llm_role import (
    LLMRole,
    check_not_blank,
    difficulty_data,
    event_news_data,
    feedback_data,
    habits,
    item_data,
    locked_data,
    occurs,
    offered_word_limits,
    plan_data,
    unchecked_fields,
)
from coreeval.agents.roles import Fields, PlanWithText
from coreeval.models import InvalidAnswer, ModelClient, OutputSchema
from coreeval.prompts import PromptName, PromptSet
from coreeval.schema import (
    Certainty,
    Composition,
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
    """A replacement; it is an insertion if `before` is None."""

    before: Triple | None
    after: Triple
    field: str
    statement: int


class _Knowledge(Value):
    """The content of the news, which precedes the text written from it."""

    reason: str
    decision: Literal["use", "none_fits", "unsafe"]
    statements: tuple[NumberedStatement, ...]


class _Changes(Value):
    replacements: tuple[PlannedReplacement, ...]
    replaces_all: bool
    delete: tuple[Deletion, ...]
    persons: tuple[Person, ...]


class _Sketch(Value):
    sketch: str


class _Claims(Value):
    claims: dict[str, str]


class PlanAnswer(_Changes, _Claims, _Knowledge, _Sketch):
    """A plan by a model, which begins with a summary of the new text, to reveal forced parts.

    A model answers in the order of the schema, in which the fields of the last base class come
    first.
    """


class _Sentences(Value):
    fields: dict[str, str]


class SentencesAnswer(_Changes, _Sentences, _Knowledge):
    """A plan and sentences of news, which come before the list of replacements."""


class _Drafts(Value):
    """Several versions of a personal text: the best of three different ones is better than one."""

    moment: str
    drafts: tuple[str, ...]
    stumble: str


class TweetAnswer(_Changes, _Sentences, _Drafts, _Knowledge):
    """A plan and a personal text, which comes after its drafts."""


AnyPlan = PlanAnswer | SentencesAnswer | TweetAnswer


class LLMReplacer(LLMRole):
    """A replacer that chooses the news of one event and plans the replacements.

    A plan that cites items or statements that do not exist is requested again, since its meaning is
    unclear; so is one that decides to use news and uses none. Deletions of spans that are not in
    their field are dropped.
    """

    role: ClassVar[RoleName] = "replacer"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._schema = OutputSchema(
            PlanAnswer,
            name="plan",
            choices={"field": task.fields},
            records={"claims": unchecked_fields(task)},
        )

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        evidence: Sequence[Evidence],
        *,
        read_by: str = "",
        certainty: Certainty = "high",
        feedback: Sequence[Defect] = (),
        previous: Plan | None = None,
        previous_fields: Fields | None = None,
    ) -> Plan:
        """Plan the replacements, or report that nothing fits; without news, no model is called."""
        if not evidence:
            return _NO_NEWS
        messages = self._messages(
            item=_original_data(self.task, sample, extraction),
            news=event_news_data(evidence),
            feedback={
                "previous": plan_data(previous) if feedback and previous else None,
                "defects": feedback_data(feedback),
            },
        )
        answer = await self._client.ask(
            messages, self._schema, check=lambda answer: _check(answer, len(evidence))
        )
        return _plan(answer, sample, evidence, claims=answer.claims)


class LLMReplacerComposer(LLMRole):
    """A replacer that also writes the text, in the same call.

    It has the rules of `LLMReplacer` and `LLMComposer`, in a prompt for the task's kind of text.
    """

    role: ClassVar[RoleName] = "replacer"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._kind = item_kind(task)
        self._written = self._kind.written(task)
        answer: type[SentencesAnswer | TweetAnswer]
        answer = TweetAnswer if task.text_kind == "tweet" else SentencesAnswer
        self._schema = OutputSchema[SentencesAnswer | TweetAnswer](
            answer,
            name="plan_and_text",
            choices={"field": task.fields},
            records={"fields": self._written},
        )

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return item_kind(task).writer_prompt(task)

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        evidence: Sequence[Evidence],
        *,
        read_by: str = "",
        certainty: Certainty = "high",
        feedback: Sequence[Defect] = (),
        previous: Plan | None = None,
        previous_fields: Fields | None = None,
    ) -> Plan:
        """Plan and write, or report that nothing fits; without news, no model is called."""
        if not evidence:
            return _NO_NEWS
        own = {name: text for name, text in sample.fields.items() if name in self._written}
        voiced = {name: own[name] for name in self._kind.compared(self.task) if name in own}
        item = _original_data(self.task, sample, extraction) | {
            "read_by": read_by,
            "habits": habits(voiced, self.task.language),
            "words": offered_word_limits(self.task, own, evidence),
        }
        last = {"plan": plan_data(previous), "fields": previous_fields} if previous else None
        messages = self._messages(
            item=item,
            difficulty=difficulty_data(self.task, sample, certainty),
            news=event_news_data(evidence),
            feedback={
                "previous": last if feedback else None,
                "defects": feedback_data(feedback),
            },
        )

        def check(answer: SentencesAnswer | TweetAnswer) -> None:
            _check(answer, len(evidence))
            if answer.decision == "use":
                check_not_blank(answer.fields)

        answer = await self._client.ask(messages, self._schema, check=check)
        plan = _plan(answer, sample, evidence)
        if plan.decision != "use":
            return plan
        cited = {known for one in plan.statements for known in one.evidence_ids}
        used = [one for one in evidence if one.id in cited]
        fields = self._kind.finish(self.task, sample, answer.fields, used)
        return PlanWithText(**dict(plan), text=Composition(fields=fields))


_NO_NEWS = Plan(decision="none_fits", reason="there is no news to choose from")


def _original_data(task: Task, sample: Sample, extraction: Extraction) -> dict[str, object]:
    """Return a sample and its extraction as data."""
    return item_data(task, sample) | {
        "entities": [
            entity.model_dump(include={"span", "field", "type"}) for entity in extraction.entities
        ],
        "triples": [triple.model_dump() for triple in extraction.triples],
        "locked": locked_data(extraction.locked),
        "need": extraction.need,
    }


def _check(answer: AnyPlan, items: int) -> None:
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


def _check_indexes(answer: AnyPlan) -> None:
    for index, replacement in enumerate(answer.replacements, start=1):
        if not 1 <= replacement.statement <= len(answer.statements):
            raise InvalidAnswer(
                f"replacement {index} rests on statement {replacement.statement}; statements are "
                f"counted from 1 to {len(answer.statements)}"
            )


def _plan(
    answer: AnyPlan,
    sample: Sample,
    evidence: Sequence[Evidence],
    *,
    claims: Mapping[str, str] = MappingProxyType({}),
) -> Plan:
    if answer.decision != "use":
        return Plan(decision=answer.decision, reason=answer.reason)
    return Plan(
        decision="use",
        statements=tuple(_statement(one, evidence) for one in answer.statements),
        replacements=tuple(_replacement(one) for one in answer.replacements),
        claims=dict(claims),
        replaces_all=answer.replaces_all,
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
    )
