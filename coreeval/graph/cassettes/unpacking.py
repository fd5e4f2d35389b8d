"""From a cassette to what a run starts from: a config, the files that it names, its samples."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from coreeval.config import ROLES, Config
from coreeval.config.load import parse_config
from coreeval.errors import CassetteError, DatasetError, UsageError
from coreeval.evaluation.benchmarks import iter_benchmark
from coreeval.graph.cassettes.learning import learnt_of, train_of
from coreeval.graph.cassettes.portrait import KNOWLEDGE_KEYS, RUN_KEYS, chosen
from coreeval.graph.cassettes.stating import as_kept
from coreeval.graph.setup import Setup
from coreeval.models.replay import hash_request
from coreeval.releases.cassettes import lines as kinds
from coreeval.releases.cassettes.opening import Cassette, made_by
from coreeval.releases.release import texts_sha256
from coreeval.schema import RoleName, Sample, Task
from coreeval.tasks import BUILT_IN
from coreeval.tools.files import write_text
from coreeval.tools.stores.call_records import canonical_json
from coreeval.tools.stores.run_records import SampleResult
from coreeval.tools.stores.run_store import BenchmarkRow

LEAST_SAMPLE_S = 900.0
"""Seconds that a sample has at least: the run's own limit was for models, not for this machine."""


def write_files(cassette: Cassette, folder: Path) -> None:
    """Write prompts, task, takedown list and answers where the config of a replay looks for them.

    No name of a file comes out of the cassette.

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
            role: stack.enter_context(_answers(folder, role).open("w", encoding="utf-8"))
            for role in ROLES
        }
        for line in cassette.lines(kinds.AnswerLine):
            files[line.role].write(f"{canonical_json(_hashed(cassette, line))}\n")


def _hashed(cassette: Cassette, line: kinds.AnswerLine) -> dict[str, Any]:
    """Return an answer with the hash of its request, which takes less room."""
    try:
        return hash_request(line.answer)
    except ValueError:
        raise CassetteError(
            f"an answer of the {line.role} is malformed",
            where=str(cassette.path),
            hint="fetch it again, and compare its digest with the one that was published",
        ) from None


def _answers(folder: Path, role: str) -> Path:
    return folder / "answers" / f"{role}.jsonl"


def config_of(cassette: Cassette, folder: Path, dataset: Path | None) -> Config:
    """Return the config of a replay: every role out of the cassette, and nothing else asked.

    Args:
        cassette: The cassette.
        folder: Where `write_files` has written.
        dataset: The benchmark's own files, where they are needed.

    Raises:
        ConfigError: the recorded config cannot be one.
        CassetteError: it names files that it may not name.
    """
    told, own, listed = cassette.head.config, folder / "task.yaml", folder / "takedown.txt"
    raw = {
        "name": told.name,
        "task": told.task if told.task in BUILT_IN else str(own),
        "dataset": told.dataset | {"path": str(dataset or folder / "dataset")},
        "knowledge": chosen(told.knowledge, KNOWLEDGE_KEYS)
        | {"path": str(folder / "news"), "takedown": str(listed) if listed.exists() else None},
        "models": _players(cassette, folder),
        "run": chosen(told.run, RUN_KEYS) | {"sample_timeout_s": LEAST_SAMPLE_S},
        "detect": {"evaluate": False},
        "safety": told.safety,
        "prompts": str(folder / "prompts"),
    }
    config = parse_config(raw, where=str(cassette.path), base=folder)
    if Path(config.dataset.split).name != config.dataset.split:
        raise CassetteError(
            f"the split {config.dataset.split!r} is no name", where=str(cassette.path)
        )
    return config


def _players(cassette: Cassette, folder: Path) -> dict[str, Any]:
    """Return who plays the roles: rules as they did, and the recorded answers of all others."""

    def player(role: RoleName) -> str:
        model = str(cassette.head.models.get(role, {}).get("model", ""))
        ruled = model.partition(":")[0] in ("offline", "spacy")
        return model if ruled else f"replay:{_answers(folder, role)}"

    return {"default": player("extractor"), **{role: player(role) for role in ROLES}}


def rows_for(
    cassette: Cassette, setup: Setup, stage: kinds.Pass, dataset: Path | None
) -> Iterator[BenchmarkRow]:
    """Yield the benchmark as a pass takes it in, stated results with their samples.

    Args:
        cassette: The cassette.
        setup: Of the replay.
        stage: The pass.
        dataset: The benchmark's own files, from which texts are taken where they are named.

    Raises:
        DatasetError: the files there have other texts.
        UsageError: texts are wanted and nobody said where they are.
    """
    if stage == "refresh":
        yield from (line.row for line in cassette.lines(kinds.BadRowLine))
    own = _own_texts(setup) if dataset else {}
    for line in _samples_once(cassette):
        sample = _with_texts(cassette, line, own.get(line.sample.id) if dataset else None, dataset)
        _refuse_odd(cassette, setup.task, sample)
        stated = line.stated if stage == "refresh" else line.control
        if stated:
            _refuse_odd_result(cassette, sample, stated)
        yield (
            as_kept(SampleResult(sample=sample, result=stated.result), stated) if stated else sample
        )


def _samples_once(cassette: Cassette) -> Iterator[kinds.SampleLine]:
    """Yield the lines of samples, and refuse an id that is there twice."""
    seen = dict[str, int]()
    for number, line in cassette.numbered_lines(kinds.SampleLine):
        first = seen.setdefault(line.sample.id, number)
        if first != number:
            raise CassetteError(
                f"the sample {line.sample.id!r} is there twice, first on line {first}",
                where=f"{cassette.path}, line {number}",
                hint="fetch it again, and compare its digest with the one that was published",
            )
        yield line


def _refuse_odd(cassette: Cassette, task: Task, sample: Sample) -> None:
    """Refuse what no run would have taken for a sample."""
    known = {(label.id, label.name) for label in task.labels}
    if (sample.label, sample.label_text) not in known or sample.fields.keys() != {*task.fields}:
        raise _odd(cassette, f"{sample.id!r} is no sample of the task {task.name}")


def _refuse_odd_result(cassette: Cassette, sample: Sample, stated: kinds.Stated) -> None:
    """Refuse a result of another sample, or one with other texts or without its evidence."""
    result, fields = stated.result, sample.fields.keys()
    texts = [text for text in (result.semantic, result.updated) if text is not None]
    told = {each.evidence.id for each in stated.excerpts}
    whole = all(fact.evidence_id in told for fact in result.facts)
    if result.sample_id != sample.id or any(text.keys() != fields for text in texts) or not whole:
        raise _odd(cassette, f"the stated result of {sample.id!r} is none of this sample")


def _odd(cassette: Cassette, why: str) -> CassetteError:
    version = cassette.head.made_with.coreeval
    return CassetteError(why, where=str(cassette.path), hint=made_by(version))


def _own_texts(setup: Setup) -> dict[str, dict[str, str]]:
    rows = iter_benchmark(setup.config.dataset, setup.task)
    return {row.id: row.fields for row in rows if isinstance(row, Sample)}


def _with_texts(
    cassette: Cassette,
    line: kinds.SampleLine,
    own: dict[str, str] | None,
    dataset: Path | None,
) -> Sample:
    if dataset is None and cassette.head.texts:
        return line.sample
    if dataset is None:
        raise UsageError(
            "the cassette has no texts of the benchmark: they may not be passed on",
            where=str(cassette.path),
            hint="name your own copy of it: --dataset PATH",
        )
    if own is None or texts_sha256(own) != line.texts_sha256:
        why = "has another text" if own else "is not there"
        raise DatasetError(
            f"the sample {line.sample.id} {why}",
            where=str(dataset),
            hint="the benchmark must be the one that the run was made from, unchanged",
        )
    return line.sample.model_copy(update={"fields": own})


def learnt(cassette: Cassette, setup: Setup, dataset: Path | None) -> list[Sample]:
    """Return the samples that a label judge by rules learns from.

    Raises:
        DatasetError: the train split in the benchmark's own files is another one.
    """
    known = cassette.head.learnt
    if known is None:
        return []
    found = (
        train_of(setup) if dataset else [line.sample for line in cassette.lines(kinds.TrainLine)]
    )
    if learnt_of(found) != known:
        raise DatasetError(
            f"the train split {setup.config.dataset.train_split!r} is not the one that the label "
            "judge learnt from",
            where=str(dataset or cassette.path),
            hint="the benchmark must be the one that the run was made from, unchanged",
        )
    return found
