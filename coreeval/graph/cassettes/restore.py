"""Restores the inputs of a run from a cassette: config, files, samples and news.

`CassetteInputs` replaces benchmark files and news with their recording.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreeval.agents.queries import BY_MEANING
from coreeval.config import ROLES, Config
from coreeval.config.load import parse_config
from coreeval.errors import CassetteError, DatasetError, NotRecorded, UsageError
from coreeval.evaluation.benchmarks import find_target, iter_benchmark
from coreeval.graph.cassettes.contents import (
    KNOWLEDGE_KEYS,
    RUN_KEYS,
    identify_train,
    load_train,
    restore_sample,
    select_keys,
)
from coreeval.graph.node_context import RetrievalRequest, RetrievalResult, Retrieve
from coreeval.graph.run_context import RunContext
from coreeval.graph.setup import Setup
from coreeval.models.replay import hash_request
from coreeval.releases.cassettes import format as kinds
from coreeval.releases.cassettes.format import (
    CassettePass,
    EvidenceLine,
    NameLine,
    OfferLine,
    SampleLine,
)
from coreeval.releases.cassettes.read import Cassette, install_hint
from coreeval.releases.release import hash_texts
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    Retrieval,
    RoleName,
    Rung,
    Sample,
    Task,
    Window,
)
from coreeval.tasks import BUILT_IN, adapt_task
from coreeval.tools.files import write_text
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.call_records import canonical_json
from coreeval.tools.stores.run_store import BenchmarkRow
from coreeval.tools.stores.run_tables import SampleResult

if TYPE_CHECKING:
    from coreeval.tools.embeddings import Embedder

LEAST_SAMPLE_S = 900.0
"""The lowest time limit per sample in seconds; the run's own limit was not set for this machine."""


def write_files(cassette: Cassette, folder: Path) -> None:
    """Write prompts, task, takedown list and answers where a replay's config looks for them.

    No file name is taken from the cassette.

    Raises:
        CassetteError: one of its lines is malformed.
    """
    for prompt in cassette.lines(kinds.PromptLine):
        write_text(folder / "prompts" / f"{prompt.role}.md", prompt.text)
    for task in cassette.lines(kinds.TaskLine):
        write_text(folder / "task.yaml", task.yaml)
    for takedown in cassette.lines(kinds.TakedownLine):
        write_text(folder / "takedown.txt", "".join(f"{entry}\n" for entry in takedown.entries))
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        files = {
            role: stack.enter_context(_answers_file(folder, role).open("w", encoding="utf-8"))
            for role in ROLES
        }
        for line in cassette.lines(kinds.AnswerLine):
            files[line.role].write(f"{canonical_json(_hash_request(cassette, line))}\n")


def _hash_request(cassette: Cassette, line: kinds.AnswerLine) -> dict[str, Any]:
    """Return an answer with the hash of its request, which takes less space."""
    try:
        return hash_request(line.answer)
    except ValueError:
        raise CassetteError(
            f"an answer of the {line.role} is malformed",
            where=str(cassette.path),
            hint="download it again, and compare its digest with the published one",
        ) from None


def _answers_file(folder: Path, role: str) -> Path:
    return folder / "answers" / f"{role}.jsonl"


def build_replay_config(cassette: Cassette, folder: Path, dataset: Path | None) -> Config:
    """Return the config of a replay, in which every role answers from the cassette.

    Args:
        cassette: The cassette.
        folder: The folder that `write_files` has written to.
        dataset: The benchmark's own files, if they are needed.

    Raises:
        ConfigError: the recorded config is not valid.
        CassetteError: it names files that are not allowed.
    """
    told, own, listed = cassette.head.config, folder / "task.yaml", folder / "takedown.txt"
    raw = {
        "name": told.name,
        "task": told.task if told.task in BUILT_IN else str(own),
        "dataset": told.dataset | {"path": str(dataset or folder / "dataset")},
        "knowledge": select_keys(told.knowledge, KNOWLEDGE_KEYS)
        | {"path": str(folder / "news"), "takedown": str(listed) if listed.exists() else None},
        "models": _assign_players(cassette, folder),
        "run": select_keys(told.run, RUN_KEYS) | {"sample_timeout_s": LEAST_SAMPLE_S},
        "detect": {"evaluate": False},
        "safety": told.safety,
        "prompts": str(folder / "prompts"),
    }
    return parse_config(raw, where=str(cassette.path), base=folder)


def _assign_players(cassette: Cassette, folder: Path) -> dict[str, Any]:
    """Return the players of the roles: rules as in the run, recorded answers for all others."""

    def player(role: RoleName) -> str:
        model = str(cassette.head.models.get(role, {}).get("model", ""))
        ruled = model.partition(":")[0] in ("offline", "spacy")
        return model if ruled else f"replay:{_answers_file(folder, role)}"

    return {"default": player("extractor"), **{role: player(role) for role in ROLES}}


def iter_rows(
    cassette: Cassette, setup: Setup, stage: kinds.CassettePass, dataset: Path | None
) -> Iterator[BenchmarkRow]:
    """Yield the rows of the benchmark for a pass, stated results with their samples.

    Args:
        cassette: The cassette.
        setup: The setup of the replay.
        stage: The pass.
        dataset: The benchmark's own files, the source of texts that the cassette only names.

    Raises:
        DatasetError: the files have different texts.
        UsageError: texts are needed and no location was given.
    """
    if stage == "refresh":
        yield from (line.row for line in cassette.lines(kinds.BadRowLine))
    own = _load_own_texts(setup) if dataset else {}
    for line in _iter_unique_samples(cassette):
        sample = _restore_texts(
            cassette, line, own.get(line.sample.id) if dataset else None, dataset
        )
        _refuse_invalid_sample(cassette, setup.task, sample)
        stated = line.stated if stage == "refresh" else line.control
        if stated:
            _refuse_invalid_result(cassette, sample, stated)
        yield (
            restore_sample(SampleResult(sample=sample, result=stated.result), stated)
            if stated
            else sample
        )


def _iter_unique_samples(cassette: Cassette) -> Iterator[kinds.SampleLine]:
    """Yield the sample lines; raise an error if an id occurs twice."""
    seen = dict[str, int]()
    for number, line in cassette.numbered_lines(kinds.SampleLine):
        first = seen.setdefault(line.sample.id, number)
        if first != number:
            raise CassetteError(
                f"the sample {line.sample.id!r} occurs twice, first on line {first}",
                where=f"{cassette.path}, line {number}",
                hint="download it again, and compare its digest with the published one",
            )
        yield line


def _refuse_invalid_sample(cassette: Cassette, task: Task, sample: Sample) -> None:
    """Raise an error if no run would accept this sample."""
    known = {(label.id, label.name) for label in task.labels}
    fields = {*adapt_task(task, sample.fields).fields}
    if (sample.label, sample.label_text) not in known or sample.fields.keys() != fields:
        raise _invalid_cassette(cassette, f"{sample.id!r} is not a sample of the task {task.name}")


def _refuse_invalid_result(cassette: Cassette, sample: Sample, stated: kinds.FinalResult) -> None:
    """Raise an error if a result belongs to another sample, has other texts or lacks its evidence.

    Only results that cannot be reproduced are stated: failures, and samples kept from the parent.
    """
    result, fields = stated.result, sample.fields.keys()
    texts = [text for text in (result.semantic, result.updated) if text is not None]
    told = {each.evidence.id for each in stated.excerpts}
    whole = all(fact.evidence_id in told for fact in result.facts)
    kept = cassette.head.run.parent is not None and result.kept_from is not None
    if not (kept or result.outcome == "failed"):
        raise _invalid_cassette(
            cassette, f"it states a result for {sample.id!r}, which was neither kept nor failed"
        )
    if result.sample_id != sample.id or any(text.keys() != fields for text in texts) or not whole:
        raise _invalid_cassette(
            cassette, f"the stated result of {sample.id!r} does not belong to this sample"
        )


def _invalid_cassette(cassette: Cassette, why: str) -> CassetteError:
    version = cassette.head.made_with.coreeval
    return CassetteError(why, where=str(cassette.path), hint=install_hint(version))


def _load_own_texts(setup: Setup) -> dict[str, dict[str, str]]:
    rows = iter_benchmark(setup.config.dataset, setup.task)
    return {row.id: row.fields for row in rows if isinstance(row, Sample)}


def _restore_texts(
    cassette: Cassette,
    line: kinds.SampleLine,
    own: dict[str, str] | None,
    dataset: Path | None,
) -> Sample:
    if dataset is None and cassette.head.texts:
        return line.sample
    if dataset is None:
        raise UsageError(
            "the cassette has no texts of the benchmark, because they may not be redistributed",
            where=str(cassette.path),
            hint="use your own copy: --dataset PATH",
        )
    if own is None or hash_texts(own) != line.texts_sha256:
        why = "has another text" if own else "is missing"
        raise DatasetError(
            f"the sample {line.sample.id} {why}",
            where=str(dataset),
            hint="the benchmark must be the unchanged one that the run used",
        )
    return line.sample.model_copy(update={"fields": own})


def restore_train(cassette: Cassette, setup: Setup, dataset: Path | None) -> list[Sample]:
    """Return the samples that a rule-based label judge learns from.

    Raises:
        DatasetError: the train split in the benchmark's own files differs.
    """
    known = cassette.head.learnt
    if known is None:
        return []
    found = (
        load_train(setup) if dataset else [line.sample for line in cassette.lines(kinds.TrainLine)]
    )
    if identify_train(found) != known:
        raise DatasetError(
            f"the train split {setup.config.dataset.train_split!r} is not the one that the label "
            "judge learnt from",
            where=str(dataset or cassette.path),
            hint="the benchmark must be the unchanged one that the run used",
        )
    return found


OfferKey = tuple[str, str, int]
"""A pass, the id of a sample, and an attempt."""


class CassetteNews:
    """A news source that only has names; each sample's offers are stored separately."""

    name = "cassette"
    remote = False

    def __init__(self, known: Sequence[NamedEntity]) -> None:
        self._known = known

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Return nothing, because news is gathered only from remote sources."""
        return Retrieval(by_query={}, reasons=dict.fromkeys((q.id for q in queries), "not_covered"))

    def coverage(self, window: Window) -> Coverage:
        """Return a coverage without a count of articles."""
        return Coverage(articles=None, days=0)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the names."""
        return list(self._known)

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class CassetteInputs:
    """The inputs of a run as recorded in a cassette."""

    names: Mapping[CassettePass, Sequence[NamedEntity]]
    """Names in the news, by pass."""
    offers: Mapping[OfferKey, OfferLine]
    evidence: Mapping[tuple[str, str], bytes]
    """Evidence by pass and id, as JSON, which needs a fifth of the memory."""
    learnt: list[Sample]
    stance_targets: Sequence[str]

    def news(self, run: RunContext) -> KnowledgeSource:
        """Return the source of the names of a pass."""
        return CassetteNews(self.names["control" if run.stage == "control" else "refresh"])

    def retrieve(
        self, run: RunContext, knowledge: KnowledgeSource, embeds: "Embedder | None"
    ) -> Retrieve:
        """Return the function that finds the record of an offer."""

        async def offer(looking: RetrievalRequest) -> RetrievalResult:
            line = self._line(run.stage, looking)
            return RetrievalResult(
                asked=[query.model_dump(mode="json") for query in line.asked or ()],
                items=self._items(run.stage, line),
            )

        return offer

    def _line(self, stage: str, looking: RetrievalRequest) -> OfferLine:
        """Return the record of the news offered to a sample.

        Raises:
            NotRecorded: there is none, or the sample asked for something else when it was recorded.
        """
        line = self.offers.get((stage, looking.sample_id, looking.attempt))
        if line is None:
            raise NotRecorded(f"no news is recorded for attempt {looking.attempt}")
        now = [query.text for query in looking.queries]
        then = [query.text for query in line.asked or () if query.text != BY_MEANING]
        if line.asked is not None and now != then:
            raise NotRecorded(
                f"it searches for news about {now}, but the recording searched for {then}"
            )
        return line

    def _items(self, stage: str, line: OfferLine) -> dict[Evidence, Rung]:
        found = {known: self.evidence.get((stage, known)) for known, _ in line.items}
        lost = [known for known, body in found.items() if body is None]
        if lost:
            raise NotRecorded(f"the evidence {lost[0]} is not recorded")
        return {
            Evidence.model_validate_json(found[known] or b""): rung for known, rung in line.items
        }

    def train(self, run: RunContext) -> list[Sample]:
        """Return the labelled samples."""
        return self.learnt

    def targets(self, run: RunContext) -> Sequence[str]:
        """Return the stance targets of the samples."""
        return self.stance_targets

    def row_count_warning(self, run: RunContext, rows: int) -> str | None:
        """Return None: the manifest already has any warning."""
        return None


def build_cassette_inputs(cassette: Cassette, learnt: list[Sample]) -> CassetteInputs:
    """Return the inputs that a cassette provides in place of files and news.

    Raises:
        CassetteError: one of its lines is malformed.
    """
    names: dict[CassettePass, list[NamedEntity]] = {"refresh": [], "control": []}
    for name in cassette.lines(NameLine):
        names[name.stage].append(name.entity)
    targets = {find_target(line.sample.id) for line in cassette.lines(SampleLine)}
    return CassetteInputs(
        names=names,
        offers={
            (line.stage, line.sample_id, line.attempt): line for line in cassette.lines(OfferLine)
        },
        evidence={
            (line.stage, line.evidence.id): line.evidence.model_dump_json().encode()
            for line in cassette.lines(EvidenceLine)
        },
        learnt=learnt,
        stance_targets=sorted(target for target in targets if target),
    )
