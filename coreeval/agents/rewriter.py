"""The rewriter (CoreEval paper, eq. 4), played by a model without news: D^s."""

from collections.abc import Sequence
from typing import ClassVar

from coreeval.agents.kinds import item_kind
from coreeval.agents.llm_role import (
    LLMRole,
    check_not_blank,
    feedback_data,
    habits,
    item_data,
    locked_data,
    word_limits,
)
from coreeval.agents.roles import Fields
from coreeval.models import ModelClient, OutputSchema
from coreeval.prompts import PromptSet
from coreeval.schema import Defect, Extraction, Rewrite, RoleName, Sample, Task


class LLMRewriter(LLMRole):
    """A rewriter that expresses the same in other words.

    It sees sensitive spans, and may decline. A blank field is not a rewrite and is requested again.
    Unchanged fields do not count as reworded, even if the model says so.
    """

    role: ClassVar[RoleName] = "rewriter"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._reworded = item_kind(task).reworded(task)
        self._schema = OutputSchema(Rewrite, name="rewrite", records={"fields": self._reworded})

    async def __call__(
        self,
        sample: Sample,
        extraction: Extraction,
        *,
        feedback: Sequence[Defect] = (),
        previous: Fields | None = None,
    ) -> Rewrite:
        """Reword one sample."""
        own = {name: text for name, text in sample.fields.items() if name in self._reworded}
        item = item_data(self.task, sample) | {
            "facts": [triple.model_dump() for triple in extraction.triples],
            "sensitive": [one.model_dump() for one in extraction.sensitive],
            "locked": locked_data(extraction.locked),
            "habits": habits(own, self.task.language),
            "words": word_limits(self.task, own),
        }
        messages = self._messages(
            item=item,
            feedback={"previous": previous, "defects": feedback_data(feedback)},
        )
        answer: Rewrite = await self._client.ask(
            messages, self._schema, check=lambda answer: check_not_blank(answer.fields)
        )
        changed = answer.reworded and not answer.declined and answer.fields != own
        fields = sample.fields | answer.fields
        return answer.model_copy(update={"reworded": changed, "fields": fields})
