"""What a detector of memory asks and finds, and how its finding is shown and gated.

There are two kinds. Those with a `config_key` are of the run graph: nodes ask for them, and
report.json has a part for each. Every other detector has `questions` and `score`: `coreeval detect
NAME RUN` puts the questions to the run's targets through graph/campaign, `score` turns the answers
into a document, and report, gates, findings and agreement take it from there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from coreeval.schema import AnswerKind, Arm, Sample, Task
from coreeval.tools.tables import Foreign, Table, texts
from coreeval.tools.text_scores import TextScores

Json = Mapping[str, Any]
MemoryFinding = Literal["remembered", "not_shown", "cannot_tell", "not_measured"]
"""Memory was found; it was looked for and not found; the answers cannot tell; nobody asked."""
Access = Literal["answers", "log_probabilities", "weights"]
"""What a detector needs of a target."""
ANY_OTHER: Final = ""
"""In place of a target: every target that no finding names."""
DOCUMENTS: Final = "detectors"
"""The key of report.json under which documents of detectors without a node are kept, by name."""


PLUGIN_DOCUMENT: Final = "plugin-"
"""The beginning of the names of detectors that are plugins."""


class Finding(NamedTuple):
    """A detector's finding on a target, or on one part of what the target was asked."""

    target: str
    memory: MemoryFinding
    verdict: str
    """The verdict in the detector's own words; empty if it was not run on the target."""
    reason: str
    part: str = ""
    """The part that it is about, such as a series."""
    caveat: str = ""
    """The condition under which the verdict holds."""


@dataclass(frozen=True, kw_only=True)
class VerdictGate:
    """How a gate forbids verdicts of a detector."""

    name: str
    """The gate's name in a file of gates and in the findings of a release."""
    asked: Literal["labelling", "audited"]
    """Which targets must have a verdict: those that label texts, or those asked in words."""
    none: str
    """The message if no target has a verdict."""
    some: str
    """The message before the names of targets without one."""
    hint: str = ""
    """What to do, before the advice to ask the targets."""


class ReportSection(NamedTuple):
    """A section of report.html that is about a detector."""

    anchor: str
    title: str
    """In the page's navigation."""
    template: str
    is_present: Callable[[Json], bool]
    """Whether report.json has anything for the section."""
    place: int = 100
    """Sections are shown in the order of their places."""


class SectionTemplates(NamedTuple):
    """What the templates of a detector's sections use."""

    package: str
    """The package beside whose modules its own templates are."""
    filters: Mapping[str, Callable[..., Any]]
    functions: Mapping[str, Callable[..., Any]]


class AxisMarks(NamedTuple):
    """What a detector draws on an axis of its own, whose middle is 0."""

    shown: Sequence[Json]
    """Values with the ends of their intervals."""
    least: float
    """The axis reaches at least this far from 0."""


class SampleTexts(NamedTuple):
    """A sample, and its texts in each arm that has it."""

    sample: Sample
    arms: Mapping[Arm, Mapping[str, str]]


@dataclass(frozen=True, kw_only=True)
class DetectorInputs:
    """What a detector may ask about: the texts of a run that has ended."""

    task: Task
    seed: int
    texts: Callable[[], Iterator[SampleTexts]]
    """Reads the samples from the run, in the benchmark's order; each call reads them anew. Their
    texts are what a target may have read somewhere, without the gold."""
    fields: Callable[[], Iterator[SampleTexts]]
    """The same with all fields; a detector that asks about some of them leaves the gold out."""


class DetectorQuestion(NamedTuple):
    """A question in words to every target."""

    key: str
    """Identifies the question within its detector."""
    text: str
    draw: int = 0
    """The number of a repeated answer to the same text, from 0."""
    temperature: float | None = None
    """The temperature to answer at, without a seed; None for what the target's config says."""


class TextAnswer(NamedTuple):
    """An answer in a model's own words."""

    kind: AnswerKind
    text: str = ""
    """The words of a refusal or the beginning of a truncated answer if it is not a full answer."""
    logprobs: str = ""
    """The log-probabilities of the first tokens as the call recorded them; empty if none came."""


def read_text_scores(answers: Mapping[str, TextAnswer]) -> dict[str, TextScores]:
    """Return the scores of texts by question key; texts that have none are left out.

    A text of one token has none: nothing stands before it.
    """
    found = (
        (key, TextScores.model_validate_json(answer.text))
        for key, answer in answers.items()
        if answer.kind == "answered"
    )
    return {key: scores for key, scores in found if scores.logprobs}


@dataclass(frozen=True, kw_only=True)
class Detector:
    """One way to tell whether a target remembers a benchmark."""

    name: str
    title: str
    """Its name in sentences."""
    question: str
    """What it asks, in a sentence."""
    access: Access
    limits: str = ""
    """What it cannot tell, in sentences."""
    config_key: str = ""
    """The key of a config that asks for it; empty if `coreeval detect NAME RUN` does."""
    about_targets: bool = True
    """Whether its finding is about a target; `overlap` is about two benchmarks."""
    verdicts: Mapping[str, MemoryFinding] = field(default_factory=dict)
    """What each verdict says of memory; empty if `read` says that itself."""
    read: Callable[[Json], Iterable[Finding]] | None = None
    """Reads its findings from report.json; None to read them from its document."""
    gate: VerdictGate | None = None
    parts: str = ""
    """What the parts of its findings are called, if it has several for a target."""
    column: str = ""
    """Its name in the agreement of report.json and in calibration.json, if it is another."""
    terms: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Terms of the report that it adds: what a page calls each, and what it is."""
    axis: Callable[[Json], AxisMarks | None] | None = None
    """Returns what report.html draws on the axis of its name; None of a report without it."""
    report_key: str = ""
    """The key of its part of report.json, if that is null where it was not asked for."""
    summarize: Callable[[Json], Iterator[str]] | None = None
    """Yields the lines that a terminal shows of its part of report.json."""
    sections: Sequence[ReportSection] = ()
    """Its own sections of the report; a detector with a document has one without saying so."""
    open_templates: Callable[[], SectionTemplates] | None = None
    """Returns what the templates of its sections need beyond those of the report."""
    questions: Callable[[DetectorInputs], Iterable[DetectorQuestion]] | None = None
    """Yields what targets are asked; None if a node of the run graph asks, or nobody is asked."""
    score: Callable[[DetectorInputs, Mapping[str, TextAnswer]], Json] | None = None
    """Returns the finding on one target from its answers by question key: at least `verdict`, one
    of `verdicts`, and `reason`."""
    scores_texts: bool = False
    """Whether its questions are texts whose tokens are scored, and an answer is `TextScores` as
    JSON: by an endpoint with log-probabilities of prompts, or by weights."""
    probes: Mapping[str, "Detector"] = field(default_factory=dict)
    """Other ways to look for the same, which `coreeval detect NAME RUN --probe KEY` runs. Each has
    its own document and section of the report. The agreement of detectors, releases and gates read
    only the detector itself."""
    arguments: tuple[str, ...] = ()
    """The words after `coreeval detect` that run it; empty for its name."""
    keeps_document: bool = False
    """Whether a run keeps a document of it although nobody is asked, as of a test of weights."""
    tables: Callable[[Json], Sequence[Table]] | None = None
    """Returns the tables that show its document; None for one of targets, verdicts and reasons."""
    plugin: Json | None = None
    """What a plugin says of itself; kept in its documents. None of a built-in detector."""

    @property
    def has_document(self) -> bool:
        """Whether a run keeps a document of the detector's findings."""
        return self.keeps_document or self.questions is not None

    @property
    def command_words(self) -> tuple[str, ...]:
        """The words of the command that runs it on a run, without the run."""
        return ("detect", *(self.arguments or (self.name,)))

    @property
    def key(self) -> str:
        """The detector's key in the agreement."""
        return self.column or self.name

    def find(self, report: Json) -> Iterator[Finding]:
        """Yield the detector's findings in report.json; nothing if it was not run."""
        yield from self.read(report) if self.read else self._read_document(report)

    def _read_document(self, report: Json) -> Iterator[Finding]:
        document = (report.get(DOCUMENTS) or {}).get(self.name)
        for each in document["targets"] if document else ():
            verdict = each["verdict"]
            caveat = each.get("caveat", "")
            memory = self.verdicts[verdict]
            yield Finding(each["target"], memory, verdict, each["reason"], caveat=caveat)

    @property
    def statement(self) -> str:
        """Return what it asks, what it needs of a target, and what it cannot tell."""
        return f"{self.question} It reads {self.access.replace('_', '-')}. {self.limits}".strip()

    @property
    def command(self) -> str:
        """Return the command that runs it on a run, as it is shown."""
        model = ("--model", "MODEL") if self.scores_texts else ()
        return " ".join(("coreeval", *self.command_words, "RUN", *model))

    @property
    def verdict_gate(self) -> VerdictGate | None:
        """The gate that forbids its verdicts; None if it gives none."""
        if self.gate or not self.questions:
            return self.gate
        return VerdictGate(
            name=self.name,
            asked="audited",
            none=f"{self.title} was not run",
            some=f"{self.title} was not run on",
            hint=f"{self.command} runs it; ",
        )

    def list_sections(self) -> Sequence[ReportSection]:
        """Return its sections of the report, in a page's order."""
        if self.sections or not self.has_document:
            return self.sections
        return [ReportSection(self.name, self.title, "detector.html.jinja", self._is_documented)]

    def _is_documented(self, report: Json) -> bool:
        return self.name in (report.get(DOCUMENTS) or {})

    def make_tables(self, document: Json) -> Sequence[Table]:
        """Return the tables that show the detector's document."""
        if self.tables:
            return self.tables(document)
        return [make_verdict_table(document, self.question)]


def make_verdict_table(document: Json, question: str) -> Table:
    """Return the table of a document's verdicts with their reasons, under a question."""
    columns = [texts("target", most=40), texts("verdict", gap=2, most=40), texts("why", gap=2)]
    rows = [
        (Foreign(each["target"]), each["verdict"], Foreign(each["reason"]))
        for each in document["targets"]
    ]
    return Table(columns, rows, question)


def iter_part(report: Json, part: str, key: str) -> Iterator[Json]:
    """Yield the entries of a list in one part of report.json; nothing if the part is not there."""
    found = report.get(part)
    yield from found[key] if found else ()
