"""The label judge (CoreEval paper, section 3.4, label alignment), played blind by a model."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator

from coreeval.agents.llm_role import LLMRole
from coreeval.agents.roles import Fields
from coreeval.models import InvalidAnswer, ModelClient, OutputSchema
from coreeval.models.answers import refuse_truth_value
from coreeval.prompts import PromptName, PromptSet
from coreeval.schema import Confidence, Evidence, LabelVerdict, RoleName, Task, Value
from coreeval.tasks.task_file import UNDECIDED


class LabelAnswer(Value):
    """The judge's answer; the cue comes first, so that it is found first."""

    cue: str
    label: str
    confidence: Confidence
    odd: str
    fluency: Annotated[Literal[1, 2, 3], BeforeValidator(refuse_truth_value)]


class LLMLabelJudge(LLMRole):
    """A judge that labels one text in a separate call and rates how naturally it reads.

    It is shown the text, the question and the labels with their meanings. It does not see the
    text's label, its origin, or that another version exists.
    """

    role: ClassVar[RoleName] = "label_judge"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        names = [*(label.name for label in task.labels), UNDECIDED]
        self._schema = OutputSchema(LabelAnswer, name="label", choices={"label": names})

    async def __call__(self, fields: Fields, evidence: Sequence[Evidence] = ()) -> LabelVerdict:
        """Label one text, without news."""
        text = {name: fields[name] for name in self.task.fields}
        answer = await self._client.ask(self._messages(text=text), self._schema)
        return LabelVerdict(**dict(answer))


class _Number(Value):
    number: int


class NumberedLabel(LabelAnswer, _Number):
    """The judge's answer about one of several texts; the text's number comes first."""


class BatchAnswer(Value):
    """The judge's answer about several texts."""

    texts: tuple[NumberedLabel, ...]


class LLMBatchLabelJudge(LLMRole):
    """A judge that labels several originals in one call, each as if it were alone.

    An answer that omits a text, or has one twice, is requested again.
    """

    role: ClassVar[RoleName] = "label_judge"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        names = [*(label.name for label in task.labels), UNDECIDED]
        self._schema = OutputSchema(BatchAnswer, name="labels", choices={"label": names})

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return "label_judge_batch"

    async def __call__(self, texts: Sequence[Fields]) -> list[LabelVerdict]:
        """Label several texts; the verdicts have their order."""

        def check(answer: BatchAnswer) -> None:
            numbers = [one.number for one in answer.texts]
            if numbers != list(range(1, len(texts) + 1)):
                raise InvalidAnswer(
                    f"there must be one entry for each text, numbered 1 to {len(texts)} in order"
                )

        shown = [
            {"number": number} | {name: fields[name] for name in self.task.fields}
            for number, fields in enumerate(texts, start=1)
        ]
        answer = await self._client.ask(self._messages(texts=shown), self._schema, check=check)
        return [LabelVerdict(**one.model_dump(exclude={"number"})) for one in answer.texts]
