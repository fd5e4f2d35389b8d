"""The label judge (CoreEval paper, section 3.4, label alignment), played blind by a model."""

from typing import ClassVar, Literal

from coreeval.agents.llm_role import LLMRole
from coreeval.agents.roles import Fields
from coreeval.models import ModelClient, OutputSchema
from coreeval.prompts import PromptSet
from coreeval.schema import LabelVerdict, RoleName, Task, Value
from coreeval.tasks.task_file import UNDECIDED


class LabelAnswer(Value):
    """What the judge answers: the cue first, so that it is looked for first."""

    cue: str
    label: str
    confidence: Literal["low", "medium", "high"]
    odd: str
    fluency: Literal[1, 2, 3]


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

    async def __call__(self, fields: Fields) -> LabelVerdict:
        """Label one text."""
        text = {name: fields[name] for name in self.task.fields}
        answer = await self._client.ask(self._messages(text=text), self._schema)
        return LabelVerdict(**dict(answer))
