"""Detectors of memory: their questions and findings, and how findings are shown and gated.

There are two kinds. Detectors with a `config_key` are part of the run graph: nodes ask their
questions, and report.json has a part for each. Every other detector has `questions` and `score`:
`coreeval detect NAME RUN` asks the run's targets through graph/campaign, and `score` turns the
answers into a document, which report, gates, findings and agreement read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from coreeval.schema import AnswerKind, Arm, Sample, Task
from coreeval.tools.tables import Foreign, Table, texts
from coreeval.tools.text_scores import TextScores

Json = Mapping[str, Any]
MemoryFinding = Literal["remembered", "not_shown", "cannot_tell", "not_measured"]
"""Memory was found; it was tested and not found; the answers are not conclusive; it was not
tested."""
Access = Literal["answers", "log_probabilities", "weights"]
"""The access to a target that a detector needs."""
ANY_OTHER: Final = ""
"""The name that stands for every target without a finding of its own."""
DOCUMENTS: Final = "detectors"
"""The key of report.json that holds the documents of detectors without a node, by name."""


PLUGIN_DOCUMENT: Final = "plugin-"
"""The prefix of the names of plugin detectors."""


class Finding(NamedTuple):
    """A detector's finding on a target, or on one part of what the target was asked."""

    target: str
    memory: MemoryFinding
    verdict: str
    """The verdict in the detector's own wording; empty if it was not run on the target."""
    reason: str
    part: str = ""
    """The part that the finding is about, such as a series."""
    caveat: str = ""
    """The condition under which the verdict holds."""


@dataclass(frozen=True, kw_only=True)
class VerdictGate:
    """A gate that forbids verdicts of a detector."""

    name: str
    """The gate's name in a file of gates and in the findings of a release."""
    asked: Literal["labelling", "audited"]
    """The targets that must have a verdict: targets that label texts, or targets asked in words."""
    none: str
    """The message if no target has a verdict."""
    some: str
    """The message before the names of targets without a verdict."""
    hint: str = ""
    """The advice to show before the advice to ask the targets."""


class ReportSection(NamedTuple):
    """A section of report.html about a detector."""

    anchor: str
    title: str
    """The title in the page's navigation."""
    template: str
    is_present: Callable[[Json], bool]
    """Whether report.json has data for the section."""
    place: int = 100
    """The position of the section: sections are sorted by place."""


class SectionTemplates(NamedTuple):
    """The filters and functions that the templates of a detector's sections use."""

    package: str
    """The package that contains the detector's templates."""
    filters: Mapping[str, Callable[..., Any]]
    functions: Mapping[str, Callable[..., Any]]


class AxisMarks(NamedTuple):
    """The values that a detector draws on its own axis, whose middle is 0."""

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
    """The data that a detector may ask about: the texts of a finished run."""

    task: Task
    seed: int
    texts: Callable[[], Iterator[SampleTexts]]
    """A function that reads the samples from the run, in the benchmark's order; each call reads
    them again. The texts are those that a target may have read somewhere, without the gold."""
    fields: Callable[[], Iterator[SampleTexts]]
    """The same function with all fields; a detector that asks about some of them leaves out the
    gold."""


def list_clusters(inputs: DetectorInputs) -> dict[str, str]:
    """Return the cluster of each sample by its id.

    Samples that share a passage have its cluster already; those with equal texts form one, too.
    """
    from coreeval.evaluation.clusters import find_clusters

    samples = (sample for sample, _ in inputs.texts())
    return find_clusters(((one.id, one.cluster, one.fields) for one in samples), fields=())


class DetectorQuestion(NamedTuple):
    """A question in words to every target."""

    key: str
    """The key of the question, unique within its detector."""
    text: str
    draw: int = 0
    """The number of a repeated answer to the same text, from 0."""
    temperature: float | None = None
    """The temperature of the answer, without a seed; None for the target's config."""


class TextAnswer(NamedTuple):
    """An answer in a model's own words."""

    kind: AnswerKind
    text: str = ""
    """The answer; if it is not a full answer, the text of a refusal or the start of a truncated
    answer."""
    logprobs: str = ""
    """The log-probabilities of the first tokens as the call recorded them; empty if there were
    none."""


def read_text_scores(answers: Mapping[str, TextAnswer]) -> dict[str, TextScores]:
    """Return the scores of texts by question key; texts without scores are left out.

    A text of one token has no scores, because no token precedes it.
    """
    found = (
        (key, TextScores.model_validate_json(answer.text))
        for key, answer in answers.items()
        if answer.kind == "answered"
    )
    return {key: scores for key, scores in found if scores.logprobs}


@dataclass(frozen=True, kw_only=True)
class Detector:
    """A method to detect whether a target remembers a benchmark."""

    name: str
    title: str
    """The name of the detector in sentences."""
    question: str
    """The question that it answers, as a sentence."""
    access: Access
    limits: str = ""
    """The limits of its findings, as sentences."""
    config_key: str = ""
    """The config key that enables it; empty if `coreeval detect NAME RUN` runs it."""
    about_targets: bool = True
    """Whether its finding is about a target; the finding of `overlap` is about two benchmarks."""
    verdicts: Mapping[str, MemoryFinding] = field(default_factory=dict)
    """The meaning of each verdict for memory; empty if `read` returns it."""
    read: Callable[[Json], Iterable[Finding]] | None = None
    """A function that reads its findings from report.json; None to read them from its document."""
    gate: VerdictGate | None = None
    parts: str = ""
    """The name of the parts of its findings, if it has several for a target."""
    column: str = ""
    """Its name in the agreement of report.json and in calibration.json, if different."""
    terms: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The terms that it adds to the report: the name of each on a page, and its definition."""
    axis: Callable[[Json], AxisMarks | None] | None = None
    """A function that returns the values to draw in report.html on the axis of its name, or None if
    the report has none."""
    report_key: str = ""
    """The key of its part of report.json, if that part is null in runs without the detector."""
    summarize: Callable[[Json], Iterator[str]] | None = None
    """A function that yields the terminal output for its part of report.json, line by line."""
    sections: Sequence[ReportSection] = ()
    """Its own sections of the report; a detector with a document has one by default."""
    open_templates: Callable[[], SectionTemplates] | None = None
    """A function that returns what the templates of its sections need beyond the report's own."""
    questions: Callable[[DetectorInputs], Iterable[DetectorQuestion]] | None = None
    """A function that yields the questions to targets; None if a node of the run graph asks, or no
    target is asked."""
    score: Callable[[DetectorInputs, Mapping[str, TextAnswer]], Json] | None = None
    """A function that returns the finding on one target from its answers by question key: at least
    `verdict`, one of `verdicts`, and `reason`."""
    scores_texts: bool = False
    """Whether its questions are texts whose tokens are scored, by an endpoint with
    log-probabilities of prompts or by weights; an answer is `TextScores` as JSON."""
    probes: Mapping[str, "Detector"] = field(default_factory=dict)
    """Other methods with the same purpose, which `coreeval detect NAME RUN --probe KEY` runs. Each
    has its own document and section of the report. The agreement of detectors, releases and gates
    read only the detector itself."""
    arguments: tuple[str, ...] = ()
    """The words after `coreeval detect` that run it; empty if only its name."""
    keeps_document: bool = False
    """Whether a run stores its document although no target is asked, as for a test of weights."""
    tables: Callable[[Json], Sequence[Table]] | None = None
    """A function that returns the tables of its document; None for a table of targets, verdicts and
    reasons."""
    plugin: Json | None = None
    """A plugin's description of itself, stored in its documents; None for a built-in detector."""

    @property
    def has_document(self) -> bool:
        """Whether a run stores a document of the detector's findings."""
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
        """Yield the detector's findings in report.json; none if it was not run."""
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
        """Return its question, the access that it needs, and its limits."""
        access = self.access.replace("_", "-")
        return f"{self.question} The detector reads {access}. {self.limits}".strip()

    @property
    def command(self) -> str:
        """Return the command that runs it on a run, for display."""
        model = ("--model", "MODEL") if self.scores_texts else ()
        return " ".join(("coreeval", *self.command_words, "RUN", *model))

    @property
    def verdict_gate(self) -> VerdictGate | None:
        """The gate that forbids its verdicts; None if it gives no verdicts."""
        if self.gate or not self.questions:
            return self.gate
        return VerdictGate(
            name=self.name,
            asked="audited",
            none=f"{self.title} was not run",
            some=f"{self.title} was not run on",
            hint=f"run {self.command}; ",
        )

    def list_sections(self) -> Sequence[ReportSection]:
        """Return its sections of the report, in the order of the page."""
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
    """Return the table of a document's verdicts with their reasons, titled with a question."""
    columns = [texts("target", most=40), texts("verdict", gap=2, most=40), texts("why", gap=2)]
    rows = [
        (Foreign(each["target"]), each["verdict"], Foreign(each["reason"]))
        for each in document["targets"]
    ]
    return Table(columns, rows, question)


def make_weights_tables(document: Json) -> list[Table]:
    """Return a table with the digests of the weights that scored texts; none without weights."""
    models = ((each["target"], each) for each in document["targets"])
    references = (each.get("reference") for each in document["targets"])
    scored = [*models, *((each["name"], each) for each in references if each)]
    digests = dict.fromkeys((name, each["revision"]) for name, each in scored
                            if each.get("revision"))  # fmt: skip
    if not digests:
        return []
    rows = [(Foreign(name), Foreign(digest)) for name, digest in digests]
    return [Table([texts("model", most=40), texts("digest of its weights", gap=2)], rows)]


def iter_part(report: Json, part: str, key: str) -> Iterator[Json]:
    """Yield the entries of a list in one part of report.json; none if the part is missing."""
    found = report.get(part)
    yield from found[key] if found else ()
