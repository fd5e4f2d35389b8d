"""The package's value types, such as benchmark tasks, samples, evidence and verdicts.

This module has no logic. All types are frozen, reject unknown keys and serialise to plain JSON.
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
SemanticStatus = Literal["reworded", "unchanged", "label_changed", "policy", "licence"]
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
"""Allow any news, allow only neutral or positive news, only reword, or leave the sample out of all
arms."""
Pipeline = Literal["full", "lean"]
"""Whether each role makes its own call (full), or extractor and rewriter share one, and replacer
and composer another (lean)."""
Route = Literal["compose", "replace", "evidence"]
DefectKind = Literal["facts", "label", "form", "unsafe"]
Arm = Literal["original", "semantic", "updated", "control"]
TaskKind = Literal["labels", "choice", "answer", "summary"]
"""The kind of gold of a task's samples: a label, one of a sample's options, accepted short answers,
or a reference summary."""
AnswerKind = Literal["answered", "refused", "truncated", "unparsed"]
MOST_OPTIONS = 26
"""The most options of a choice: one for each letter."""
Text = Annotated[str, StringConstraints(min_length=1)]
Seed = Annotated[int, AfterValidator(lambda given: given % 2**32)]
"""The seed of all random choices, in the range that NumPy and scikit-learn accept. Other integers
are reduced modulo 2^32, so runs that were started with one can be finished."""


class Value(BaseModel):
    """Base of all values: frozen, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Count = Annotated[int, Field(ge=0)]


def _check_zoned_time(said: str) -> str:
    if datetime.fromisoformat(said).tzinfo is None:
        raise ValueError("the time has no time zone")
    return said


ZonedTime = Annotated[str, AfterValidator(_check_zoned_time)]
"""ISO time with its offset from UTC, as written."""


# -- benchmarks ---------------------------------------------------------------------------------


class Label(Value):
    """One class of a task's label space."""

    id: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    """The integer in the benchmark's files; limited to 64 bits by SQLite."""
    name: str
    """The name shown to people and models, e.g. `joy`."""
    meaning: str
    """The meaning of the label, in one clause."""
    aliases: tuple[str, ...] = ()
    """Other spellings in source files, e.g. `not_equivalent`."""


class Task(Value):
    """The task of a benchmark: its fields, its label space and instructions for each role."""

    name: str
    kind: TaskKind = "labels"
    description: str
    """One sentence, understandable without context."""
    fields: tuple[str, ...] = Field(min_length=1)
    """Names of the text fields, in reading order, e.g. `("sentence1", "sentence2")`."""
    labels: tuple[Label, ...]
    """The label space; for choices the letters, for answers their types
    (`coreeval.tasks.kinds`)."""
    options: Annotated[int, Field(ge=0, le=MOST_OPTIONS)] = 0
    """The most options of a choice; 0 for the other kinds."""
    hidden_fields: tuple[str, ...] = ()
    """Fields with the gold, which judges and targets that must find it never see."""
    carried_fields: tuple[str, ...] = ()
    """Fields that no role writes; a new text has the original's."""
    question: str
    """The label question for a blind judge; may contain `$target`."""
    language: Language = ENGLISH
    """The language of the texts, also used to search news, and to write and check texts."""
    text_kind: Literal["tweet", "sentence"]
    """The register of the texts, which determines the tolerances for length and overlap (research:
    pilot §7)."""
    target: str | None = None
    """The target of a stance; None for tasks without one."""
    target_terms: tuple[str, ...] = ()
    """Words that refer to the target in a text."""
    markers: tuple[str, ...] = ()
    """Tokens that carry the label and must stay exactly as they are, e.g. `#irony`."""
    factual_fields: tuple[str, ...] = ()
    """Fields whose facts need evidence; empty for all fields (RTE: only the premise)."""
    symmetric: bool = False
    """Whether the label does not depend on the order of the fields (MRPC)."""
    tokenised: bool = False
    """Whether the texts have spaces around punctuation (MRPC)."""
    lines: dict[RoleName, str] = {}
    """Instructions about this task, one short paragraph for each role."""
    templates: tuple[str, ...] = Field(min_length=1)
    """Prompts that ask a target about a sample, with `$name` of each field, `$labels`,
    `$target`."""

    @property
    def shown_fields(self) -> tuple[str, ...]:
        """Return the fields that a model sees if it must find the gold."""
        return tuple(name for name in self.fields if name not in self.hidden_fields)

    @model_serializer(mode="wrap")
    def _omit_kind_of_labels(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Leave out keys of other kinds, so that the hashes of tasks with labels stay the same."""
        said: dict[str, object] = dump(self)
        if self.kind == "labels":
            for name in ("kind", "options", "hidden_fields", "carried_fields"):
                said.pop(name, None)
        return said


class Sample(Value):
    """One labelled item of a benchmark."""

    id: str
    """The source's own id, or `<task>/<split>/<line, from 1>`; stable across refreshes."""
    split: str
    fields: dict[str, str]
    label: int
    label_text: str
    cluster: str = ""
    """Identifies samples that depend on each other, such as those of one document; samples of one
    cluster are resampled together. Empty if the benchmark does not state it."""


class Item(Value):
    """One question of a benchmark in any form: multiple choice, calculation, summary."""

    id: str
    """The source's own id, or `<benchmark>/<split>/<line, from 1>`."""
    split: str
    input: Text
    """The input for a model, including the options."""
    output: str
    """The reference; empty if the benchmark has none."""
    options: dict[str, str] = {}
    """Text by option letter, in the order shown; empty if it is not multiple choice."""
    cluster: str = ""
    """The document that the item is about, which other items may share; empty if unknown."""


class BadRow(Value):
    """A line of a benchmark's file that is not a valid sample or item."""

    file: str
    line: int
    """Line number from 1 (row number for formats without lines)."""
    reason: str
    text: str
    """The unchanged line, cut to 200 characters."""


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
    """Return the depth of evidence that does not state it, such as evidence from older versions."""
    return "description" if given.get("snippet") else "headline"


class Evidence(Value):
    """One dated piece of news."""

    id: str
    """First 16 hex digits of the sha256 of the canonical URL."""
    url: str
    domain: str
    title: str
    snippet: str = ""
    """A sentence that describes the article; empty if the source has none."""
    published_at: datetime
    published_precision: Precision
    """The source of the publication time: stated, from the URL, from a twin, or the crawl time."""
    language: str = ENGLISH
    entities: tuple[NamedEntity, ...] = ()
    cluster: str = ""
    """Id shared by articles about the same event; empty if there are no others."""
    origin: str
    """The backend's file and row, for tracing facts to their source."""
    instruction_like: bool = False
    """Whether its text looks like an instruction to a model; it is still shown, as data."""
    source: EvidenceSource = "gdelt"
    """The source of its text."""
    licence: str = ""
    """The licence of its text, such as `CC BY-SA 4.0`; empty for the publisher's own terms."""
    depth: EvidenceDepth = Field(default_factory=_depth_of)
    """How much of it is available: the headline, a sentence of description, or a text."""
    text_sha256: str = ""
    """sha256 of the article's text; empty without a text."""


class EntityQuery(Value):
    """One question to a knowledge source."""

    id: str
    text: str
    """An entity name or a few content words."""
    rung: Rung = "named"
    """The rung of the knowledge ladder that this query belongs to."""
    aliases: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    """Other names and content words of the sample, which disambiguate the name."""


NoEvidence = Literal[
    "no_news", "not_covered", "throttled", "rejected", "unavailable", "reused"
]  # fmt: skip
"""The reason that there is no evidence: the source has none, does not cover the window, is asked
too often, rejects the query or cannot be reached, or its news is already used by other samples."""


class Coverage(Value):
    """The coverage of a window by a source."""

    articles: int | None
    """None if the source cannot tell without a request or a payment."""
    first: datetime | None = None
    last: datetime | None = None
    days: int = 0
    """The number of days of the window with at least one article."""
    gaps: tuple[str, ...] = ()
    """Spans without any article, such as `2026-01-03..2026-01-09` (both included)."""


class Retrieval(Value):
    """The result of a search: evidence per query, or the reason that there is none."""

    by_query: dict[str, tuple[Evidence, ...]]
    """Evidence by query id, best first."""
    reasons: dict[str, NoEvidence] = {}
    """The reason for each query without evidence."""
    notes: tuple[str, ...] = ()
    """Notes for the user, one sentence each, such as an unavailable source or a reached limit."""
    bytes_billed: int = 0
    cost_usd: float = 0.0


# -- what the roles say -------------------------------------------------------------------------


class Entity(Value):
    """A name or a concept that a sample mentions."""

    span: Text
    """Copied character by character from the field."""
    field: str
    kind: Literal["named", "concept"]
    type: EntityType
    query_name: str
    """The span with abbreviations expanded, for searching."""
    aliases: tuple[str, ...] = ()


class Triple(Value):
    """(head, relation, tail), as in section 3.3 of the paper."""

    head: str
    relation: str
    tail: str


class FieldTriple(Triple):
    """A triple of the original and the field that states it."""

    field: str


class Lock(Value):
    """A span that must stay word for word."""

    span: Text
    field: str
    why: LockReason


class Sensitive(Value):
    """A property of a sample that restricts what may be written about it."""

    flag: Flag
    span: str


class Extraction(Value):
    """The extractor's findings in one sample (paper eq. 1, and the triples of §3.3)."""

    entities: tuple[Entity, ...] = ()
    triples: tuple[FieldTriple, ...] = ()
    locked: tuple[Lock, ...] = ()
    sensitive: tuple[Sensitive, ...] = ()
    queries: Annotated[tuple[str, ...], Field(max_length=4)] = ()
    """Searches for news on the topic of the text, from specific to general."""
    siblings: Annotated[tuple[str, ...], Field(max_length=3)] = ()
    """Searches for other things of the same kind in a similar relation (pilot §2)."""
    structures: Annotated[tuple[str, ...], Field(max_length=2)] = ()
    """Headline words of any news of the kind that the text needs (pilot §2)."""
    need: str = ""
    """The kind of news that the text needs, in a few words."""
    deixis_only: bool = False
    """Whether the text has nothing to search for, such as only pronouns."""


class Statement(Value):
    """One statement of the chosen news: the unit of the paper's knowledge summary (eq. 2)."""

    text: str
    evidence_ids: Annotated[tuple[str, ...], Field(min_length=1)]
    quote: Text
    """Verbatim words of the evidence."""
    translation: str = ""
    """The quote in the sample's language, if the evidence is in another one."""
    modality: Literal["asserted", "attributed", "question", "hedged"]
    speaker: str = ""


class Replacement(Value):
    """A new triple, the old one that it replaces, and the supporting statement (paper eq. 3)."""

    before: Triple | None
    """None for an insertion."""
    after: Triple
    mode: Literal["replace", "insert"]
    field: str
    statement_index: Annotated[int, Field(ge=0)]
    same_type: bool = False
    """Whether old and new are of the same kinds; set only by the offline replacer."""


class Deletion(Value):
    """An old fact to remove."""

    span: str
    field: str
    why: str


class Person(Value):
    """A real person named in the text to write."""

    name: str
    role: Literal["subject", "source"]
    polarity: Literal["positive", "neutral", "negative"]


class Plan(Value):
    """The replacer's plan: the knowledge as statements, and the new triples."""

    decision: Literal["use", "none_fits", "unsafe"]
    statements: Annotated[tuple[Statement, ...], Field(max_length=6)] = ()
    replacements: tuple[Replacement, ...] = ()
    claims: dict[str, str] = {}
    """The new sentence of each field that needs no evidence, such as a hypothesis."""
    replaces_all: bool = False
    """Whether no old fact may remain; `delete` need not list them then."""
    delete: tuple[Deletion, ...] = ()
    persons: tuple[Person, ...] = ()
    reason: str = ""


class Rewrite(Value):
    """D^s: the same facts in other words (paper eq. 4)."""

    fields: dict[str, str]
    reworded: bool
    declined: bool = False
    """Whether the rewriter declined because a new text would harm somebody."""
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
    """One atomic statement of a text, and whether the evidence supports it."""

    text: str
    field: str
    words: str = ""
    """The words of the text that make the statement; empty if the judge named none."""
    kind: StatementClass
    supported: Literal["yes", "no", "not_needed"]
    evidence_id: str = ""
    quote: str = ""
    defect: FactDefect = "none"


class FactVerdict(Value):
    """The fact judge's verdict on each statement; code combines them."""

    statements: tuple[JudgedStatement, ...]


Confidence = Literal["low", "medium", "high"]
"""How certain a judge is of a label or gold."""
Certainty = Literal["unclear", "low", "medium", "high"]
"""How certain a judge was of an original's label; `unclear`: it did not find it."""


class LabelVerdict(Value):
    """A blind judge's verdict on a text's label or gold."""

    label: str
    """A label name of the task, the letter of an option, an answer in words, the judgement of a
    summary (`faithful`, `incomplete`, `unfaithful`), or `unclear`."""
    cue: str = ""
    """The decisive words."""
    confidence: Confidence = "medium"
    fluency: Literal[1, 2, 3] = 3
    """The naturalness of the text on the CoreEval paper's scale (Table 13); 3 is best."""
    odd: str = ""
    """The least natural words."""


class OptionVerdict(Value):
    """A judge's verdict on one option of a choice."""

    letter: str
    truth: Literal["right", "wrong", "open"]
    """Whether the evidence makes it right or wrong, or leaves this open."""
    same_type: bool
    """Whether it is of the kind that the question asks for."""
    plausible: bool
    """Whether somebody who has not read the news could consider it right."""
    why: str = ""


# -- how a sample fares -------------------------------------------------------------------------


class Defect(Value):
    """A defect of a composed text, and the role that a retry should start with."""

    check: str
    """The name of the check or judge that found it."""
    kind: DefectKind
    message: str
    """A description that quotes the wrong words; it is the feedback for the retry."""
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
    """The age of the evidence for a sample's replaced facts."""

    earliest: datetime
    """The publication time of the oldest piece."""
    precision: Precision
    """The least certain precision of a piece's publication time."""
    after_cutoff: dict[str, bool | None]
    """For each target that is not embedded, whether all of it was published after the target's
    cutoff and release; None if neither is known."""


class Result(Value):
    """The outcome of a sample, and its texts by arm."""

    sample_id: str
    outcome: Outcome
    reason: str = ""
    attempts: int = 0
    rung: Rung = "none"
    semantic_status: SemanticStatus = "unchanged"
    semantic: dict[str, str] | None = None
    updated: dict[str, str] | None = None
    original_label: str = ""
    """The blind judge's verdict on the original: a label name, `unclear`, or empty."""
    facts: tuple[ReplacedFact, ...] = ()
    freshness: Freshness | None = None
    """None for a sample without replaced facts."""
    kept_from: str | None = None
    """The version of the release that its texts and facts were first made for; None if this run
    made them."""


class TrainEnd(Value):
    """The outcome of rewording an item of the train split."""

    status: TrainStatus = "open"
    semantic: dict[str, str] | None = None
    """The reworded text; also kept as evidence if its label differs."""
    reason: str = ""
    """The reason that it cannot be compared."""


class Prediction(Value):
    """One target's answer about one sample, asked with one template."""

    target: str
    source: str
    """The texts that it was asked about: an arm, or the name of another set of samples."""
    sample_id: str
    template: int = Field(ge=0)
    """The number of the task's template, from 1; 0 for a target without templates."""
    answer: str
    """A label name of the task, the letter of an option, the answer's words, or empty."""
    kind: AnswerKind = "answered"
    reason: str = ""
    """The reason that there is no answer."""
    version: str = ""
    """Hash of the words around the text; an answer to other words is not reused."""
    right: bool | None = None
    """Whether the answer is right; None if the task does not grade answers."""
    score: float | None = Field(default=None, ge=0, le=1)
    """The score of the answer; None if the task does not grade answers."""

    @model_validator(mode="after")
    def _answer_if_answered(self) -> Self:
        if (self.kind == "answered") != bool(self.answer):
            raise ValueError("an answered prediction has an answer, any other has none")
        if (self.right is None) != (self.score is None):
            raise ValueError("a graded prediction is right or wrong, and has a score")
        return self
