"""The nouns of the field as types: what a benchmark, a sample, evidence and a verdict are.

No logic lives here. Everything is frozen, refuses unknown keys and turns into plain JSON.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from coreeval.languages import ENGLISH, check_language

Language = Annotated[str, AfterValidator(check_language)]
"""An ISO 639-1 code, such as `de`."""
RoleName = Literal["extractor", "replacer", "rewriter", "composer", "fact_judge", "label_judge"]
Outcome = Literal[
    "accepted",
    "rejected_facts",
    "rejected_label",
    "rejected_form",
    "label_unrecoverable",
    "unsafe",
    "no_knowledge",
    "failed",
]
SemanticStatus = Literal["reworded", "unchanged", "label_changed", "policy"]
TrainStatus = Literal["open", "reworded", "unchanged", "label_changed", "policy", "failed"]
Precision = Literal["exact", "url", "cluster", "crawl"]
EvidenceSource = Literal["gdelt", "current_events", "file", "ccnews", "web", "plugin"]
EvidenceDepth = Literal["headline", "description", "article"]
Rung = Literal["named", "alias", "concept", "sibling", "structure", "none"]
EntityType = Literal[
    "person", "organisation", "place", "group", "event", "work", "product", "quantity", "date",
    "condition", "activity", "topic", "animal", "other",
]  # fmt: skip
LockReason = Literal[
    "target", "label_carrier", "marker", "mention", "quotation", "emoji", "pun", "anaphor"
]
Flag = Literal[
    "abuse", "self_harm", "protected_group", "crime_or_accusation", "death_or_illness",
    "sexual_violence", "minor", "private_person", "quotation",
]  # fmt: skip
Policy = Literal["allow", "neutral_only", "semantic_only", "skip"]
"""Write news; only neutral or positive news; only reword; leave the sample out of every arm."""
Pipeline = Literal["full", "lean"]
"""Whether extractor and rewriter, and replacer and composer, are asked in one call each (lean)."""
Route = Literal["compose", "replace", "evidence"]
DefectKind = Literal["facts", "label", "form", "unsafe"]
Arm = Literal["original", "semantic", "updated", "control"]
TaskKind = Literal["labels", "choice", "answer", "summary"]
"""What the gold of a task's samples is: a label, one of a sample's options, accepted short answers,
or a reference summary."""
AnswerKind = Literal["answered", "refused", "truncated", "unparsed"]
MOST_OPTIONS = 26
"""The most options of a choice: one for each letter."""
Text = Annotated[str, StringConstraints(min_length=1)]
Seed = Annotated[int, AfterValidator(lambda given: given % 2**32)]
"""The seed of all that is drawn, in the range that NumPy and scikit-learn take; any other integer
stands for its remainder, so that runs begun with one can be finished."""


class Value(BaseModel):
    """Base of all values: frozen, strict about keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Count = Annotated[int, Field(ge=0)]


def _check_zoned_time(said: str) -> str:
    if datetime.fromisoformat(said).tzinfo is None:
        raise ValueError("the time has no zone")
    return said


ZonedTime = Annotated[str, AfterValidator(_check_zoned_time)]
"""ISO time with its offset from UTC, as written."""


# -- benchmarks ---------------------------------------------------------------------------------


class Label(Value):
    """One class of a task's label space."""

    id: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    """The integer that the benchmark's files use; within 64 bits, as SQLite keeps it."""
    name: str
    """The name shown to people and models, e.g. `joy`."""
    meaning: str
    """What the label says about a text, in one clause."""
    aliases: tuple[str, ...] = ()
    """Other spellings that source files use for it, e.g. `not_equivalent`."""


class Task(Value):
    """What kind of benchmark: its fields, its label space and what each role must know of it."""

    name: str
    kind: TaskKind = "labels"
    description: str
    """One sentence a stranger understands."""
    fields: tuple[str, ...] = Field(min_length=1)
    """Names of the text fields, in reading order, e.g. `("sentence1", "sentence2")`."""
    labels: tuple[Label, ...]
    """The label space; of a choice its letters, of answers their types (`coreeval.tasks.kinds`)."""
    options: Annotated[int, Field(ge=0, le=MOST_OPTIONS)] = 0
    """The most options of a choice; 0 for the other kinds."""
    hidden_fields: tuple[str, ...] = ()
    """Fields that hold the gold: never shown to a judge or target that must find it."""
    carried_fields: tuple[str, ...] = ()
    """Fields that no role writes: a new text has those of its original."""
    question: str
    """The label question put to a blind judge; may name `$target`."""
    language: Language = ENGLISH
    """The language of the texts; news is sought, and texts are written and checked in it."""
    text_kind: Literal["tweet", "sentence"]
    """Register of the texts; decides the length and overlap tolerances (research: pilot §7)."""
    target: str | None = None
    """What a stance is about; None for tasks without a target."""
    target_terms: tuple[str, ...] = ()
    """Words that name the target in a text."""
    markers: tuple[str, ...] = ()
    """Label-carrying tokens that must survive exactly, e.g. `#irony`."""
    factual_fields: tuple[str, ...] = ()
    """Fields whose facts need evidence; empty means all of them (RTE: the premise only)."""
    symmetric: bool = False
    """True when the order of the fields does not matter for the label (MRPC)."""
    tokenised: bool = False
    """True when the texts keep spaces around punctuation (MRPC)."""
    lines: dict[RoleName, str] = {}
    """What a role must know about this task, one short paragraph for each role."""
    templates: tuple[str, ...] = Field(min_length=1)
    """Prompts that put a sample to a target model; `$name` of each field, `$labels`, `$target`."""

    @property
    def shown_fields(self) -> tuple[str, ...]:
        """Return the fields that are shown to whoever must find the gold."""
        return tuple(name for name in self.fields if name not in self.hidden_fields)

    @model_serializer(mode="wrap")
    def _omit_kind_of_labels(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out what only other kinds have, so that tasks with labels keep their hashes."""
        said: dict[str, object] = dump(self)
        if self.kind == "labels":
            for name in ("kind", "options", "hidden_fields", "carried_fields"):
                said.pop(name, None)
        return said


class Sample(Value):
    """One labelled item of a benchmark."""

    id: str
    """The source's own id, else `<task>/<split>/<line, from 1>`; stable across refreshes."""
    split: str
    fields: dict[str, str]
    label: int
    label_text: str
    cluster: str = ""
    """What samples have in common that stand or fall together, such as their document; samples of
    one cluster are resampled as one. Empty where the benchmark does not say."""


class Item(Value):
    """One question of a benchmark in any form: multiple choice, calculation, summary."""

    id: str
    """The source's own id, else `<benchmark>/<split>/<line, from 1>`."""
    split: str
    input: Text
    """What a model is given, options and all."""
    output: str
    """The reference; empty where the benchmark has none."""
    options: dict[str, str] = {}
    """Text by option letter, in the order shown; empty where it is no multiple choice."""
    cluster: str = ""
    """The document that the item is about, where others may be about it too; empty: unknown."""


class BadRow(Value):
    """A line of a benchmark's file that was no sample or item."""

    file: str
    line: int
    """Line number from 1 (row number for formats without lines)."""
    reason: str
    text: str
    """The line as found, cut to 200 characters."""


# -- knowledge ----------------------------------------------------------------------------------


class Window(Value):
    """The time span that evidence must come from: start included, end excluded, both UTC."""

    start: datetime
    end: datetime


class NamedEntity(Value):
    """An entity that a piece of evidence mentions."""

    name: str
    type: EntityType


def _depth_of(given: Mapping[str, object]) -> EvidenceDepth:
    """Return the depth of evidence that does not state it, as evidence of before does not."""
    return "description" if given.get("snippet") else "headline"


class Evidence(Value):
    """One dated piece of news."""

    id: str
    """First 16 hex digits of the sha256 of the canonical URL."""
    url: str
    domain: str
    title: str
    snippet: str = ""
    """A sentence describing the article; empty where the source gives none."""
    published_at: datetime
    published_precision: Precision
    """How the publication time is known: stated, read off the URL, from a twin, or crawl time."""
    language: str = ENGLISH
    entities: tuple[NamedEntity, ...] = ()
    cluster: str = ""
    """Shared by articles that tell the same event; empty when it stands alone."""
    origin: str
    """The backend's file and row, so that a fact can be traced to the byte."""
    instruction_like: bool = False
    """Whether its text reads like an instruction to a model; it is shown as data all the same."""
    source: EvidenceSource = "gdelt"
    """Where its text comes from."""
    licence: str = ""
    """A short name of the terms of its text, such as `CC BY-SA 4.0`; empty: the publisher's own."""
    depth: EvidenceDepth = Field(default_factory=_depth_of)
    """How much of it was there to write from: its headline, a sentence of description, a text."""
    text_sha256: str = ""
    """sha256 of the article's text, where there was one."""


class EntityQuery(Value):
    """One question to a knowledge source."""

    id: str
    text: str
    """An entity name or a few content words."""
    rung: Rung = "named"
    """The step of the knowledge ladder that this query stands for."""
    aliases: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    """Other names and content words of the sample, which settle whom an ambiguous name means."""


NoEvidence = Literal[
    "no_news", "not_covered", "throttled", "rejected", "unavailable", "reused"
]  # fmt: skip
"""Why there is nothing: the source was asked and has none; it does not hold the window; it is asked
too often; it refuses the question; it cannot be reached; what it has carries other samples."""


class Coverage(Value):
    """What a source holds inside a window."""

    articles: int | None
    """None where the source cannot tell without being paid or asked for it."""
    first: datetime | None = None
    last: datetime | None = None
    days: int = 0
    """Days of the window with at least one article."""
    gaps: tuple[str, ...] = ()
    """Spans without any article, as `2026-01-03..2026-01-09` (both included)."""


class Retrieval(Value):
    """What a source answered: evidence per query, or why there is none."""

    by_query: dict[str, tuple[Evidence, ...]]
    """Ranked evidence by query id, best first."""
    reasons: dict[str, NoEvidence] = {}
    """For each query without evidence, why."""
    notes: tuple[str, ...] = ()
    """What the user should be told, a sentence each: a source that is down, a cap that was met."""
    bytes_billed: int = 0
    cost_usd: float = 0.0


# -- what the roles say -------------------------------------------------------------------------


class Entity(Value):
    """Something a sample mentions: a name or a concept."""

    span: Text
    """Copied character by character from the field."""
    field: str
    kind: Literal["named", "concept"]
    type: EntityType
    query_name: str
    """The span written out (abbreviations expanded) for searching."""
    aliases: tuple[str, ...] = ()


class Triple(Value):
    """(head, relation, tail), as the paper's section 3.3 has it."""

    head: str
    relation: str
    tail: str


class FieldTriple(Triple):
    """A triple of the original and the field that states it."""

    field: str


class Lock(Value):
    """A span that must survive word for word."""

    span: Text
    field: str
    why: LockReason


class Sensitive(Value):
    """Something in a sample that limits what may be written about it."""

    flag: Flag
    span: str


class Extraction(Value):
    """What the extractor found in one sample (paper eq. 1, and the triples of §3.3)."""

    entities: tuple[Entity, ...] = ()
    triples: tuple[FieldTriple, ...] = ()
    locked: tuple[Lock, ...] = ()
    sensitive: tuple[Sensitive, ...] = ()
    queries: Annotated[tuple[str, ...], Field(max_length=4)] = ()
    """Searches for news on what the text is about, from specific to general."""
    siblings: Annotated[tuple[str, ...], Field(max_length=3)] = ()
    """Searches for other things of the same kind in a like relation (pilot §2)."""
    structures: Annotated[tuple[str, ...], Field(max_length=2)] = ()
    """Headline words of any news with the shape that the text needs (pilot §2)."""
    need: str = ""
    """The kind of news that the text would need, in a few words."""
    deixis_only: bool = False
    """True when the text has only pronouns and the like: nothing to search for."""


class Statement(Value):
    """One thing the chosen news says: the unit of the paper's knowledge summary (eq. 2)."""

    text: str
    evidence_ids: Annotated[tuple[str, ...], Field(min_length=1)]
    quote: Text
    """Verbatim words of the evidence."""
    translation: str = ""
    """The quote in the sample's language, where the evidence is in another one."""
    modality: Literal["asserted", "attributed", "question", "hedged"]
    speaker: str = ""


class Replacement(Value):
    """A new triple, the old one it replaces, and the statement it rests on (paper eq. 3)."""

    before: Triple | None
    """None for an insertion."""
    after: Triple
    mode: Literal["replace", "insert"]
    field: str
    statement_index: Annotated[int, Field(ge=0)]
    same_type: bool = False
    """Whether old and new are things of the same kinds; only the offline replacer says so."""


class Deletion(Value):
    """An old fact that must go."""

    span: str
    field: str
    why: str


class Person(Value):
    """A named real person in what is to be written."""

    name: str
    role: Literal["subject", "source"]
    polarity: Literal["positive", "neutral", "negative"]


class Plan(Value):
    """What the replacer decided: the knowledge in statements, and the new triples."""

    decision: Literal["use", "none_fits", "unsafe"]
    statements: Annotated[tuple[Statement, ...], Field(max_length=6)] = ()
    replacements: tuple[Replacement, ...] = ()
    claims: dict[str, str] = {}
    """By field that needs no evidence, such as a hypothesis, the sentence that it should say."""
    replaces_all: bool = False
    """Whether nothing of the old facts may be left; `delete` need not list them then."""
    delete: tuple[Deletion, ...] = ()
    persons: tuple[Person, ...] = ()
    reason: str = ""


class Rewrite(Value):
    """D^s: the same facts in other words (paper eq. 4)."""

    fields: dict[str, str]
    reworded: bool
    declined: bool = False
    """Whether the rewriter declined, since the text would harm somebody if written anew."""
    reason: str = ""


class Composition(Value):
    """D-hat: the text with new facts (paper eq. 5)."""

    fields: dict[str, str]
    used_replacements: tuple[int, ...] = ()
    dropped: tuple[str, ...] = ()


StatementClass = Literal["fact", "attributed", "opinion", "hypothetical", "personal", "question"]
FactDefect = Literal[
    "none", "unsupported", "attribution", "modality", "number", "date", "identity", "relation",
    "stale", "memory", "person",
]  # fmt: skip


class JudgedStatement(Value):
    """One atomic statement of a text and whether its evidence carries it."""

    text: str
    field: str
    words: str = ""
    """The words of the text that make the statement; empty where the judge named none."""
    kind: StatementClass
    supported: Literal["yes", "no", "not_needed"]
    evidence_id: str = ""
    quote: str = ""
    defect: FactDefect = "none"


class FactVerdict(Value):
    """What the fact judge said, statement by statement; the conjunction is made by code."""

    statements: tuple[JudgedStatement, ...]


class LabelVerdict(Value):
    """What a judge that was told nothing said about a text's label or gold."""

    label: str
    """A label name of the task, the letter of an option, an answer in words, what a summary is
    (`faithful`, `incomplete`, `unfaithful`), or `unclear`."""
    cue: str = ""
    """The words that decided it."""
    confidence: Literal["low", "medium", "high"] = "medium"
    fluency: Literal[1, 2, 3] = 3
    """How naturally the text reads, on the CoreEval paper's scale (Table 13), 3 the best."""
    odd: str = ""
    """The words that read least naturally."""


class OptionVerdict(Value):
    """What a judge said of one option of a choice."""

    letter: str
    truth: Literal["right", "wrong", "open"]
    """Whether the evidence makes it right or wrong, or leaves that open."""
    same_type: bool
    """Whether it is a thing of the kind that the question asks for."""
    plausible: bool
    """Whether somebody who has not read the news could take it for right."""
    why: str = ""


# -- how a sample fares -------------------------------------------------------------------------


class Defect(Value):
    """Something wrong with a composed text, and where the retry should go."""

    check: str
    """Name of the check or judge that found it."""
    kind: DefectKind
    message: str
    """What is wrong, quoting the offending words: it becomes the feedback."""
    route: Route


class Verdict(Value):
    """The result of one check or judge on one attempt."""

    name: str
    attempt: int
    passed: bool
    reason: str = ""


class ReplacedFact(Value):
    """One row of the provenance file: an old triple, the new one, and its evidence."""

    sample_id: str
    field: str
    before: Triple | None
    after: Triple
    evidence_id: str
    quote: str


class Freshness(Value):
    """How new the evidence is that a sample's replaced facts rest on."""

    earliest: datetime
    """Publication time of the oldest piece."""
    precision: Precision
    """The least certain way in which the publication time of a piece is known."""
    after_cutoff: dict[str, bool | None]
    """For each target that is not embedded, whether all of it was published after the target's
    cutoff and its release; None where neither is known."""


class Result(Value):
    """How a sample ended, and its texts in the arms it belongs to."""

    sample_id: str
    outcome: Outcome
    reason: str = ""
    attempts: int = 0
    rung: Rung = "none"
    semantic_status: SemanticStatus = "unchanged"
    semantic: dict[str, str] | None = None
    updated: dict[str, str] | None = None
    original_label: str = ""
    """What the blind judge said about the original: a label name, `unclear`, or empty."""
    facts: tuple[ReplacedFact, ...] = ()
    freshness: Freshness | None = None
    """None for a sample without replaced facts."""
    kept_from: str | None = None
    """Version of the release that its texts and facts were first made for; None where this run
    made them."""


class TrainEnd(Value):
    """What became of an item of the train split when it was reworded."""

    status: TrainStatus = "open"
    semantic: dict[str, str] | None = None
    """Its text in other words; kept, with another label too, as evidence."""
    reason: str = ""
    """Why it cannot be compared."""


class Prediction(Value):
    """What one target said of one sample, asked with one template."""

    target: str
    source: str
    """Which texts it was asked about: an arm, or the name of other samples beside the run's."""
    sample_id: str
    template: int = Field(ge=0)
    """Number of the task's template, from 1; 0 for a target that is shown none."""
    answer: str
    """A label name of the task, the letter of an option, what was said, or empty."""
    kind: AnswerKind = "answered"
    reason: str = ""
    """Why there is no answer."""
    version: str = ""
    """Of the words round the text; an answer to other words is none to these."""
    right: bool | None = None
    """Whether the answer is right, by a task whose answers are graded; else None."""
    score: float | None = Field(default=None, ge=0, le=1)
    """How good the answer is, by a task whose answers are graded; else None."""

    @model_validator(mode="after")
    def _answer_if_answered(self) -> Self:
        if (self.kind == "answered") != bool(self.answer):
            raise ValueError("an answered prediction has an answer, any other has none")
        if (self.right is None) != (self.score is None):
            raise ValueError("a graded prediction is right or wrong, and has a score")
        return self
