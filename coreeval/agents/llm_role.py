"""The parts that the six roles share if a model plays them: prompts, and the form of inputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from string import Template
from typing import Any, ClassVar

from coreeval.agents.edits import count_shared_words, length_limits
from coreeval.agents.events import bundle_reports
from coreeval.agents.kinds import item_kind
from coreeval.agents.roles import Fields
from coreeval.agents.text.voice import voice_hints
from coreeval.agents.text.words import count_words, normalise
from coreeval.agents.thresholds import thresholds_of
from coreeval.languages import LANGUAGES
from coreeval.models import InvalidAnswer, ModelClient, OutputSchema
from coreeval.prompts import OPTIONAL, Message, PromptName, PromptSet, to_prompt_json
from coreeval.schema import (
    Certainty,
    Defect,
    Evidence,
    Lock,
    Plan,
    RoleName,
    Sample,
    Task,
    Value,
)

SHOWN_SNIPPET = 2000
"""The most characters of a snippet or of the passages of an article that are shown to a model."""
_STATEMENTS = 3
_STATEMENTS_OF_LONG_TEXT = 6
"""The most statements into which the news is split, for a pair's premise, a context or a summary
(pilot §6)."""


class FirstDraft(Value):
    """The parts of a model's answer before the text of a tweet.

    The author and the purpose come first, since the voice depends on them; then a first draft and
    its flaws, since a second draft is better.
    """

    moment: str
    draft: str
    stumble: str


class LLMRole:
    """A role played by a model: its prompt, in which the task's values are filled in once."""

    role: ClassVar[RoleName]
    _schema: OutputSchema[Any]

    def __init__(self, task: Task, client: ModelClient, prompts: PromptSet) -> None:
        self.task = task
        self._client = client
        self._prompt = prompts[self.prompt_name(task)]
        fixed = _fixed(task, self.role)
        self._fixed = {name: fixed[name] for name in self._prompt.variables & fixed.keys()}

    @property
    def schema(self) -> Mapping[str, object]:
        """Return the JSON schema of an answer."""
        return self._schema.schema

    @classmethod
    def prompt_name(cls, task: Task) -> PromptName:
        """Return the name of the prompt that the role uses for a task."""
        return cls.role

    def _messages(self, **data: object) -> list[Message]:
        """Return the prompt with these values in its data blocks."""
        absent = OPTIONAL - self._prompt.variables
        return self._prompt.fill(
            **self._fixed,
            **{name: to_prompt_json(value) for name, value in data.items() if name not in absent},
        )


def _fixed(task: Task, role: RoleName) -> dict[str, str]:
    def told(text: str) -> str:
        return Template(text).safe_substitute(target=task.target or "the target").strip()

    def line_for(role: RoleName) -> str:
        return told(task.lines.get(role, "nothing beyond the rules below"))

    return {
        "language": LANGUAGES[task.language],
        "task": told(task.description),
        "line": line_for(role),
        "line_rewriter": line_for("rewriter"),
        "line_composer": line_for("composer"),
        "question": told(task.question),
        "labels": "\n".join(f"- {label.name}: {told(label.meaning)}" for label in task.labels),
        "run": str(thresholds_of(task).headline_run + 1),
        "most": str(
            _STATEMENTS_OF_LONG_TEXT if item_kind(task).needs_many_statements(task) else _STATEMENTS
        ),
        "unchecked": ", ".join(unchecked_fields(task)) or "none here",
    }


def unchecked_fields(task: Task) -> list[str]:
    """Return the fields that may make unsupported claims, such as a hypothesis."""
    return [name for name in task.fields if name not in (task.factual_fields or task.fields)]


def item_data(task: Task, sample: Sample) -> dict[str, object]:
    """Return a sample in the form for roles that know its label."""
    meaning = next((label.meaning for label in task.labels if label.id == sample.label), "")
    item: dict[str, object] = {
        "fields": {name: cut_text(text) for name, text in sample.fields.items()},
        "label": sample.label_text,
        "label_means": meaning,
    }
    return item | ({"target": task.target} if task.target else {})


@dataclass(frozen=True)
class ShownLength:
    """The most of a text that is shown; the limit of characters applies if it has few spaces."""

    words: int
    characters: int


SHOWN = ShownLength(1_500, 15_000)
"""The most of one field of an original that a role is shown (own choice)."""
JUDGED = ShownLength(16_000, 120_000)
"""The most of one field that a judge is shown: about 21,000 tokens of English (own choice)."""


def cut_text(text: str, most: ShownLength = SHOWN) -> str:
    """Return a text, cut at a limit with a remark on its full length."""
    if len(text) <= most.words:  # a text has no more words than characters
        return text
    words = text.split(" ")
    if len(words) > most.words:
        text = " ".join(words[: most.words])
        if len(text) <= most.characters:
            return f"{text} [cut: {most.words:,} of {len(words):,} words]"
    if len(text) <= most.characters:
        return text
    characters = sum(map(len, words)) + len(words) - 1
    return f"{text[: most.characters]} [cut: {most.characters:,} of {characters:,} characters]"


def judged_text(fields: Fields) -> Fields:
    """Return texts as shown to judges: complete, unless they are longer than `JUDGED`."""
    return {name: cut_text(text, JUDGED) for name, text in fields.items()}


def locked_data(locks: Iterable[Lock]) -> list[dict[str, str]]:
    """Return locked spans as data."""
    return [lock.model_dump() for lock in locks]


def difficulty_data(task: Task, sample: Sample, certainty: Certainty) -> dict[str, str]:
    """Return how hard the label of an original is to find, as data."""
    shared = count_shared_words(task, sample.fields)
    told = {"shared_words": f"{shared.both} of {shared.second}"} if shared else {}
    return {"certainty": certainty} | told


def word_limits(
    task: Task, fields: Fields, plan: Plan | None = None, evidence: Sequence[Evidence] = ()
) -> dict[str, dict[str, int]]:
    """Return each field's number of words, and the fewest and most allowed."""
    return {
        name: asdict(length_limits(task, text, plan, evidence)) for name, text in fields.items()
    }


def offered_word_limits(
    task: Task, fields: Fields, evidence: Sequence[Evidence]
) -> dict[str, dict[str, int]]:
    """Return the word limits of each field for a text from the news on offer.

    If no event on offer has as many words as a sentence of news, the new sentence may be as short
    as the longest title.
    """
    limits = word_limits(task, fields)
    if task.text_kind == "tweet" or not evidence:
        return limits
    events = bundle_reports(dict.fromkeys(evidence, "structure"))
    material = max(
        sum(count_words(f"{one.title} {one.snippet}") for one in event.reports) for event in events
    )
    longest = max(count_words(one.title) for one in evidence)
    for limit in limits.values():
        if material < limit["original"]:
            limit["fewest"] = min(limit["fewest"], longest)
    return limits


def habits(fields: Fields, language: str) -> dict[str, list[str]]:
    """Return the author's writing habits in words, for each field."""
    return {name: list(voice_hints(text, language)) for name, text in fields.items()}


def plan_data(plan: Plan) -> dict[str, object]:
    """Return a plan as data; it quotes the news it cites, because item numbers vary by call."""
    return {
        "statements": [
            one.model_dump(include={"text", "quote", "translation", "modality", "speaker"})
            for one in plan.statements
        ],
        "replacements": [
            {"number": number, **one.model_dump(include={"before", "after", "field"})}
            for number, one in enumerate(plan.replacements, start=1)
        ],
        "claims": plan.claims,
        "replaces_all": plan.replaces_all,
        "delete": [one.model_dump() for one in plan.delete],
        "persons": [one.model_dump() for one in plan.persons],
    }


def news_data(evidence: Sequence[Evidence]) -> list[dict[str, object]]:
    """Return news items numbered from 1, without the values that a source does not provide."""
    return [_news_item(number, item) for number, item in enumerate(evidence, start=1)]


def event_news_data(evidence: Sequence[Evidence]) -> list[dict[str, object]]:
    """Return news items as `news_data` does; those of one event have the same `event`."""
    bundles = bundle_reports(dict.fromkeys(evidence, "structure"))
    events = {
        report.id: number for number, event in enumerate(bundles, 1) for report in event.reports
    }
    return [
        {"event": events[item.id], **data}
        for item, data in zip(evidence, news_data(evidence), strict=True)
    ]


def _news_item(number: int, item: Evidence) -> dict[str, object]:
    shown: dict[str, object] = {"number": number, "title": item.title}
    if item.snippet:
        shown["snippet"] = item.snippet[:SHOWN_SNIPPET]
    return shown | {"domain": item.domain, "published": item.published_at.date().isoformat()}


def feedback_data(defects: Sequence[Defect]) -> list[dict[str, str]]:
    """Return defects as feedback data."""
    return [{"check": defect.check, "message": defect.message} for defect in defects]


def occurs(span: str, text: str) -> bool:
    """Return whether a span occurs in a text, regardless of how quotes and spaces are written."""
    return bool(span.strip()) and normalise(span) in normalise(text)


def check_not_blank(fields: Fields) -> None:
    """Raise an error if a field of an answer is blank."""
    for name, text in fields.items():
        if not text.strip():
            raise InvalidAnswer(f"{name} is blank")
