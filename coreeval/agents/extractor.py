"""The extractor (CoreEval paper, eq. 1 and the triples of section 3.3), played by a model."""

from typing import ClassVar, TypeVar

from coreeval.agents.edits import explain_length, find_fixed_locks
from coreeval.agents.kinds import item_kind
from coreeval.agents.llm_role import (
    LLMRole,
    check_not_blank,
    habits,
    item_data,
    locked_data,
    occurs,
    word_limits,
)
from coreeval.agents.roles import ExtractionWithRewrite, Fields
from coreeval.models import InvalidAnswer, ModelClient, OutputSchema
from coreeval.prompts import PromptName, PromptSet
from coreeval.schema import Entity, Extraction, Lock, Rewrite, RoleName, Sample, Task

Spanned = TypeVar("Spanned", Entity, Lock)
_MOST_QUERIES = 4
_MOST_SIBLINGS = 3
_MOST_STRUCTURES = 2
_MOST_ALIASES = 4
_MOST_SPANS = 200
"""The most entities, triples and other spans per text: each costs a search or a judge's reading
(own choice)."""


class ExtractionAnswer(Extraction):
    """An extraction by a model; code limits the queries, since a schema cannot."""

    queries: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()
    structures: tuple[str, ...] = ()


class ExtractorRewriterAnswer(ExtractionAnswer):
    """An extraction, followed by a rewording of the sample."""

    declined: bool
    reworded: bool
    fields: dict[str, str]
    reason: str


class LLMExtractor(LLMRole):
    """An extractor that finds entities, triples, locks, sensitive spans and queries.

    Spans that are not in their field are moved to the field that contains them, or dropped. If no
    span is found in any field, the model is asked again. A sensitive flag is kept with any span,
    because without it harm could be published.
    """

    role: ClassVar[RoleName] = "extractor"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._schema = OutputSchema(
            ExtractionAnswer, name="extraction", choices={"field": task.fields}
        )

    async def __call__(self, sample: Sample) -> Extraction:
        """Return the extraction of one sample."""
        messages = self._messages(item=item_data(self.task, sample))
        answer = await self._client.ask(
            messages, self._schema, check=lambda answer: _check_spans(answer, sample)
        )
        return _cleaned(answer, sample.fields)


class LLMExtractorRewriter(LLMRole):
    """An extractor that also rewords the sample, in the same call.

    It has the rules of `LLMExtractor` and `LLMRewriter`. It sees the spans that code locks, and may
    decline to reword a text because of its own flags. An item that is too long to be reworded gets
    the prompt and the answer schema of `LLMExtractor`.
    """

    role: ClassVar[RoleName] = "extractor"

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        super().__init__(task, client, prompts)
        self._reworded = item_kind(task).reworded(task)
        self._extractor = LLMExtractor(task, client, prompts)
        self._schema = OutputSchema(
            ExtractorRewriterAnswer,
            name="extraction_and_rewrite",
            choices={"field": task.fields},
            records={"fields": self._reworded},
        )

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return "extractor_rewriter"

    async def __call__(self, sample: Sample) -> Extraction:
        """Return the extraction of one sample, and its rewording."""
        if explain_length(self.task, sample):
            return await self._extractor(sample)

        def check(answer: ExtractorRewriterAnswer) -> None:
            _check_spans(answer, sample)
            check_not_blank(answer.fields)

        own = {name: text for name, text in sample.fields.items() if name in self._reworded}
        item = item_data(self.task, sample) | {
            "fixed": locked_data(find_fixed_locks(self.task, sample)),
            "habits": habits(own, self.task.language),
            "words": word_limits(self.task, own),
        }
        answer = await self._client.ask(self._messages(item=item), self._schema, check=check)
        declined = answer.declined
        rewrite = Rewrite(
            fields=sample.fields if declined else sample.fields | answer.fields,
            reworded=answer.reworded and not declined and answer.fields != own,
            declined=declined,
            reason=answer.reason,
        )
        extraction = _cleaned(answer, sample.fields)
        return ExtractionWithRewrite(**dict(extraction), rewrite=rewrite)


def _check_spans(answer: ExtractionAnswer, sample: Sample) -> None:
    for name in ("entities", "triples", "locked", "sensitive"):
        if len(getattr(answer, name)) > _MOST_SPANS:
            raise InvalidAnswer(f"{name} has more than {_MOST_SPANS} entries")
    given: list[Entity | Lock] = [*answer.entities, *answer.locked]
    if given and not any(_home(one, sample.fields) for one in given):
        raise InvalidAnswer(
            f"no span stands in the text, for example {given[0].span[:60]!r}; "
            "copy spans character by character"
        )


def _cleaned(answer: ExtractionAnswer, fields: Fields) -> Extraction:
    entities = [one.model_copy(update={"aliases": one.aliases[:_MOST_ALIASES]}) for one in
                _at_home(answer.entities, fields)]  # fmt: skip
    return Extraction(
        entities=tuple(entities),
        triples=answer.triples,
        locked=_at_home(answer.locked, fields),
        sensitive=answer.sensitive,
        queries=_first(answer.queries, _MOST_QUERIES),
        siblings=_first(answer.siblings, _MOST_SIBLINGS),
        structures=_first(answer.structures, _MOST_STRUCTURES),
        need=answer.need,
        deixis_only=answer.deixis_only,
    )


def _first(queries: tuple[str, ...], most: int) -> tuple[str, ...]:
    """Return the first few distinct queries."""
    return tuple(dict.fromkeys(query.strip() for query in queries if query.strip()))[:most]


def _at_home(spans: tuple[Spanned, ...], fields: Fields) -> tuple[Spanned, ...]:
    homes = ((one, _home(one, fields)) for one in spans)
    return tuple(one.model_copy(update={"field": home}) for one, home in homes if home)


def _home(one: Entity | Lock, fields: Fields) -> str:
    """Return the field that contains a span, checking the span's own first; empty if none does."""
    order = (one.field, *fields)
    return next((name for name in order if occurs(one.span, fields.get(name, ""))), "")
