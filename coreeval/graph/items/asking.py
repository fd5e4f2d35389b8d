"""Asking about items and their twins; and having a model write these."""

from collections.abc import Sequence

from coreeval.evaluation.modifications import Modified, Paraphraser, Unmodified
from coreeval.evaluation.pcr.answered import Answer, Answers
from coreeval.evaluation.pcr.twins import Drawn, Twins, twins_of
from coreeval.graph.desk import Desk, in_words
from coreeval.models import ModelClient


async def answers_of(desk: Desk, asker: ModelClient, twins: Sequence[Twins]) -> Answers:
    """Ask a target about all items and their twins; equal texts are one question."""

    async def ask(text: str) -> Answer:
        said = await in_words(asker, [{"role": "user", "content": text}])
        return Answer(said.kind, said.text if said.kind == "answered" else "")

    pairs = [pair for each in twins for pair in each.pairs]
    texts = list(dict.fromkeys(item.input for pair in pairs for item in pair))
    return await desk.gather(asker.model.name, "ask", texts, ask, lambda answer: answer.kind)


async def paraphrased(
    desk: Desk, model: str, paraphraser: Paraphraser, drawn: Sequence[Drawn]
) -> tuple[Twins, ...]:
    """Have a model write the twin of each item."""
    items = {(each.split, item.id): item for each in drawn for item in each.items}

    async def write(key: tuple[str, str]) -> Modified | Unmodified:
        return await paraphraser(items[key])

    def kind(outcome: Modified | Unmodified) -> str:
        return "reworded" if isinstance(outcome, Modified) else "left out"

    made = await desk.gather(model, "reword", list(items), write, kind)
    return tuple(
        twins_of(each, [made[each.split, item.id] for item in each.items]) for each in drawn
    )
