"""The label judge for questions: answers them blind, and judges options one by one."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator

from coreeval.agents.label_judge import LabelAnswer
from coreeval.agents.llm_role import LLMRole, judged_text, news_data
from coreeval.agents.roles import Fields
from coreeval.models import InvalidAnswer, ModelClient, OutputSchema
from coreeval.models.answers import refuse_truth_value
from coreeval.prompts import PromptName, PromptSet
from coreeval.schema import Confidence, Evidence, LabelVerdict, OptionVerdict, RoleName, Task, Value
from coreeval.tasks.kinds.choice import option_fields
from coreeval.tasks.task_file import UNDECIDED

LONGEST_ANSWER = 500
"""The most characters stored of a judge's answer."""


class LLMAnswerJudge(LLMRole):
    """A judge that answers one question, and rates how naturally it reads.

    It is shown the question, its context if it has one, its options, and the news if an item
    without a context depends on it. It does not see which answer is right, the item's origin, or
    that another version exists.
    """

    role: ClassVar[RoleName] = "label_judge"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        letters = option_fields(task.fields)
        fixed = {"label": [*letters, UNDECIDED]} if letters else {}
        self._schema = OutputSchema(LabelAnswer, name="answer", choices=fixed)

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return "answer_judge"

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        """Answer one question, without seeing the fields of the gold."""
        item = {name: fields[name] for name in self.task.shown_fields if name in fields}
        news = news_data(evidence) if evidence else None
        messages = self._messages(item=judged_text(item), news=news)
        answer = await self._client.ask(messages, self._schema)
        return LabelVerdict(**dict(answer) | {"label": answer.label.strip()[:LONGEST_ANSWER]})


class OptionAnswer(Value):
    """The judge's answer about one option; the reason comes first, so that it is found first."""

    letter: str
    why: str
    truth: Literal["right", "wrong", "open"]
    same_type: bool
    plausible: bool


class OptionsAnswer(Value):
    """The judge's answer about all options of one question."""

    options: tuple[OptionAnswer, ...]


class LLMOptionJudge(LLMRole):
    """A judge of the single options of one question, which uses only the news.

    It does not know which option should be right. An answer that omits an option is requested
    again.
    """

    role: ClassVar[RoleName] = "label_judge"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._letters = option_fields(task.fields)
        self._schema = OutputSchema(
            OptionsAnswer, name="options", choices={"letter": self._letters}
        )

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return "option_judge"

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence]) -> list[OptionVerdict]:
        """Judge the options of one question."""

        def check(answer: OptionsAnswer) -> None:
            if [one.letter for one in answer.options] != self._letters:
                raise InvalidAnswer(
                    f"there must be one entry for each of {', '.join(self._letters)}, in order"
                )

        item = {name: fields[name] for name in self.task.shown_fields}
        messages = self._messages(item=judged_text(item), news=news_data(evidence))
        answer = await self._client.ask(messages, self._schema, check=check)
        return [OptionVerdict(**dict(one)) for one in answer.options]


class SummaryVerdict(Value):
    """The judge's answer about a summary."""

    missing: str
    added: str
    label: Literal["faithful", "incomplete", "unfaithful"]
    confidence: Confidence
    odd: str
    fluency: Annotated[Literal[1, 2, 3], BeforeValidator(refuse_truth_value)]


class LLMSummaryJudge(LLMRole):
    """A judge of whether a summary states the main points of its document, and nothing else.

    It does not know whether the summary is an original or new.
    """

    role: ClassVar[RoleName] = "label_judge"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._schema = OutputSchema(SummaryVerdict, name="summary")

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return "summary_judge"

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        """Judge one summary by its document."""
        item = {name: fields[name] for name in self.task.fields}
        answer = await self._client.ask(self._messages(item=judged_text(item)), self._schema)
        told = " ... ".join(part for part in (answer.added, answer.missing) if part)
        return LabelVerdict(
            label=answer.label,
            cue=told[:LONGEST_ANSWER],
            confidence=answer.confidence,
            fluency=answer.fluency,
            odd=answer.odd,
        )
