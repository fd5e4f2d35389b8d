"""The composer (CoreEval paper, eq. 5), played by a model: D-hat."""

from typing import ClassVar

from coreeval.agents.kinds import item_kind
from coreeval.agents.llm_role import (
    FirstDraft,
    LLMRole,
    check_not_blank,
    difficulty_data,
    feedback_data,
    habits,
    item_data,
    locked_data,
    news_data,
    plan_data,
    word_limits,
)
from coreeval.agents.roles import CompositionRequest
from coreeval.models import ModelClient, OutputSchema
from coreeval.prompts import PromptName, PromptSet
from coreeval.schema import Composition, RoleName, Task


class ComposedAnswer(Composition, FirstDraft):
    """A composition by a model, after its first draft."""


class LLMComposer(LLMRole):
    """A composer that rewrites the sample, both sentences of a pair in one call.

    A blank field is not a text and is requested again; replacement numbers that are not in the plan
    are dropped.
    """

    role: ClassVar[RoleName] = "composer"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._kind = item_kind(task)
        self._written = self._kind.written(task)
        self._schema = OutputSchema(
            ComposedAnswer, name="composition", records={"fields": self._written}
        )

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return item_kind(task).composer_prompt

    async def __call__(self, request: CompositionRequest) -> Composition:
        """Rewrite the sample, with the plan's facts in the original's voice."""
        sample = request.sample
        own = {name: text for name, text in sample.fields.items() if name in self._written}
        voiced = {name: own[name] for name in self._kind.compared(self.task) if name in own}
        messages = self._messages(
            item=item_data(self.task, request.sample)
            | {
                "read_by": request.read_by,
                "locked": locked_data(request.extraction.locked),
                "habits": habits(voiced, self.task.language),
                "words": word_limits(self.task, own, request.plan, request.evidence),
            },
            difficulty=difficulty_data(self.task, sample, request.certainty),
            plan=plan_data(request.plan),
            news=news_data(request.evidence),
            reworded=request.reworded if self.task.text_kind == "tweet" else None,
            feedback={"previous": request.previous, "defects": feedback_data(request.feedback)},
        )
        answer = await self._client.ask(
            messages, self._schema, check=lambda answer: check_not_blank(answer.fields)
        )
        known = range(len(request.plan.replacements))
        used = tuple(one - 1 for one in answer.used_replacements if one - 1 in known)
        fields = self._kind.finish(self.task, sample, answer.fields, request.evidence)
        return Composition(fields=fields, used_replacements=used, dropped=answer.dropped)
