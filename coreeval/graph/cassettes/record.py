"""Records a finished run as a cassette: its samples, answers and news become lines."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coreeval.agents.llm_role import SHOWN_SNIPPET
from coreeval.config import ROLES, Config
from coreeval.errors import CassetteError
from coreeval.graph.cassettes.contents import (
    describe_players,
    find_fixed_results,
    find_names_note,
    identify_train,
    iter_news_names,
    list_versions,
    load_train,
    redact_manifest,
    select_settings,
)
from coreeval.graph.execute import open_control, open_store
from coreeval.graph.run import lock_run, open_workspace
from coreeval.graph.setup import Setup, prompt_versions, set_up, task_fingerprint
from coreeval.models.replay import hash_request, line_key, to_answer_line
from coreeval.releases.cassettes import format as kinds
from coreeval.releases.cassettes.format import (
    AnswerLine,
    BodyTally,
    CassettePass,
    CassetteSummary,
    write_cassette,
)
from coreeval.releases.cassettes.read import hash_files, hash_rows
from coreeval.releases.release import hash_texts
from coreeval.releases.release_manifest import Licence
from coreeval.releases.sources import find_licence, load_published_config
from coreeval.runs.copying import refuse_unfinished_takedown
from coreeval.runs.manifest import Manifest, read_manifest
from coreeval.runs.own_config import iter_config_remarks
from coreeval.runs.own_task import find_task_file
from coreeval.schema import Evidence, RoleName, Sample
from coreeval.tasks import BUILT_IN
from coreeval.tools.clock import utc_now
from coreeval.tools.local_paths import shorten_name
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, command

AnswerKeys = Mapping[RoleName, list[str]]


def collect_answer_keys(
    stores: Mapping[CassettePass, RunStore], stated: Mapping[CassettePass, Mapping[str, object]]
) -> AnswerKeys:
    """Return the keys of the samples' calls by role, without calls of stated results."""
    found: dict[RoleName, set[str]] = {role: set() for role in ROLES}
    for stage, store in stores.items():
        for sample_id, role, key in store.inputs.call_uses():
            if sample_id not in stated[stage]:
                found[role].add(key)
    return {role: sorted(keys) for role, keys in found.items()}


def iter_answer_lines(calls: CallStore, used: AnswerKeys, *, texts: bool) -> Iterator[AnswerLine]:
    """Yield the answers with their requests, or with the hashes of the requests.

    Raises:
        CassetteError: the call store lacks some answers, or has two answers to one request.
    """
    for role, keys in used.items():
        found, known = 0, dict[str, tuple[str, object]]()
        for record in calls.records_of(keys):
            line = to_answer_line(record)
            found += 1
            key, said = line_key(line), (line["content"], line.get("method"))
            before = known.get(key)
            if before == said:
                continue
            if before is not None:
                raise CassetteError(
                    f"the {role} gave two answers to the same request",
                    hint="its parameters were changed during the run: refresh again",
                )
            known[key] = said
            yield AnswerLine(role=role, answer=line if texts else hash_request(line))
        if found < len(keys):
            raise CassetteError(
                f"{len(keys) - found} of {len(keys)} answers of the {role} are no longer in the "
                "call store of the run's workspace",
                hint="restore calls.db from a backup: coreeval calls gc may have deleted them",
            )


REDACTED_REASON = "withheld, because the reason may quote the benchmark"
"""Placeholder for the reason of a bad row if texts are left out."""
SAMPLE_BATCH = 500
"""Pieces of evidence read at a time."""


@dataclass(frozen=True, kw_only=True)
class SourceRun:
    """A run to record."""

    files: RunFiles
    manifest: Manifest
    setup: Setup
    stores: Mapping[kinds.CassettePass, RunStore]
    calls: CallStore
    texts: bool
    snippet_chars: int | None
    train: list[Sample]


@dataclass(frozen=True, kw_only=True)
class RecordResult:
    """A written cassette, with the figures to report."""

    packed: CassetteSummary
    notes: tuple[str, ...]
    licence: Licence
    """The terms on which the benchmark's texts may be redistributed."""


def record(run: Path | str, out: Path | str, *, texts: bool | None = None) -> RecordResult:
    """Write a run as a cassette.

    Args:
        run: The run's directory.
        out: The file to write.
        texts: Whether to include the samples' own texts; None follows their licence.

    Raises:
        RunStateError: there is no run, or a takedown of it has not finished.
        CassetteError: it is unfinished, or one of its inputs is missing or has changed.
        RunLocked: another process is using it.
    """
    files, path = RunFiles(Path(run).resolve()), Path(out).resolve()
    manifest = read_manifest(files.manifest)
    with ExitStack() as stack:
        stack.enter_context(lock_run(files))
        refuse_unfinished_takedown(files)
        original = _open_run(files, manifest, texts, stack)
        _refuse_articles(original)
        _refuse_unfinished(original)
        _refuse_changed(original)
        return RecordResult(
            packed=write_cassette(
                path, _iter_lines(original), lambda tally: _build_head(original, tally)
            ),
            notes=tuple(_iter_notes(original.setup, manifest)),
            licence=find_licence(original.setup.config.dataset),
        )


def _iter_notes(setup: Setup, manifest: Manifest) -> Iterator[str]:
    if changed := find_names_note(setup, open_workspace(manifest), manifest):
        yield changed
    yield from iter_config_remarks(manifest.source)


def _open_run(
    files: RunFiles, manifest: Manifest, texts: bool | None, stack: ExitStack
) -> SourceRun:
    config = load_published_config(files, manifest)
    now, workspace = datetime.fromisoformat(manifest.now), open_workspace(manifest)
    _refuse_plugins(config)
    task_file = find_task_file(files, config)
    setup = set_up(config, now, manifest, workspace=workspace, task_file=task_file)
    stores: dict[kinds.CassettePass, RunStore] = {
        "refresh": stack.enter_context(open_store(files, utc_now))
    }
    if setup.control:
        stores["control"] = stack.enter_context(open_control(files, utc_now))
    return SourceRun(
        files=files,
        manifest=manifest,
        setup=setup,
        stores=stores,
        calls=stack.enter_context(closing(_open_run_calls(manifest))),
        texts=find_licence(config.dataset).redistribute if texts is None else texts,
        snippet_chars=None if config.models.rule_based_roles else SHOWN_SNIPPET,
        train=load_train(setup),
    )


def _refuse_plugins(config: Config) -> None:
    """Refuse a run with a role played by a plugin, whose answers are not in the call store.

    Raises:
        CassetteError: there is such a role.
    """
    models = config.models
    for role in (role for role in models.unasked_roles if models.for_role(role).is_plugin):
        raise CassetteError(
            f"a cassette cannot contain the answers of {models.for_role(role).model}",
            where=f"models.{role}",
            hint="a cassette replays answers of models, and the work of built-in rules",
        )


def _open_run_calls(manifest: Manifest) -> CallStore:
    path = open_workspace(manifest).calls
    if not has_store(path):
        raise CassetteError(
            "the call store of the run's workspace, which has the answers, is missing",
            where=str(path),
            hint="move the workspace back to where it was during the run",
        )
    return open_calls(path)


def _refuse_articles(original: SourceRun) -> None:
    """Raise an error if the run's prompts contain articles, which must not be redistributed."""
    if original.setup.config.knowledge.text == "article":
        raise CassetteError(
            "the run showed passages of articles to its roles, which a cassette may not share",
            where=str(original.files.root),
            hint="record a run with knowledge.text: description",
        )
    if original.setup.config.knowledge.documents == "private":
        raise CassetteError(
            "the run's documents contain publishers' texts, which must stay private",
            where=str(original.files.root),
            hint="record a run with knowledge.documents: excerpts",
        )


def _refuse_unfinished(original: SourceRun) -> None:
    files = original.files
    pending = any(store.pending() for store in original.stores.values())
    if pending or original.stores["refresh"].stage("assemble") is None:
        raise CassetteError(
            "the run is unfinished: only a complete dataset can be replayed",
            where=str(files.root),
            hint=command("resume", files.root),
        )


def _refuse_changed(original: SourceRun) -> None:
    """Raise an error if the prompts, task or takedown list differ from those of the run."""
    setup, manifest = original.setup, original.manifest
    changed = [
        f"the prompt of the {role}"
        for role, known in prompt_versions(setup).items()
        if manifest.prompts.get(role) != known
    ]
    if task_fingerprint(setup) != manifest.fingerprints.task:
        changed.append(f"the task {setup.config.task}")
    if changed:
        raise CassetteError(
            f"the following has changed since the run: {', '.join(changed)}",
            where=str(original.files.root),
            hint="restore it, or record the run with the version that made it",
        )
    _refuse_local_names(original)
    if setup.rules.takedown.fingerprint != manifest.knowledge.takedown_sha256:
        raise CassetteError(
            "the takedown list of its config or its workspace has changed since the run",
            where=str(original.files.root),
            hint="refresh the benchmark again, and record that run",
        )


def _refuse_local_names(original: SourceRun) -> None:
    """Raise an error if provenance has the folder of a target, as in runs of earlier versions."""
    manifest = original.manifest
    named = [each.target for each in manifest.after_cutoff if each.after]
    if any(name != shorten_name(name, *manifest.source.bases) for name in named):
        raise CassetteError(
            "the run's provenance names the folder of a target that is a local file",
            where=str(original.files.dataset),
            hint="refresh the benchmark again with this version, and record that run",
        )


def _build_head(original: SourceRun, tally: BodyTally) -> kinds.CassetteHead:
    config = original.setup.config
    return kinds.CassetteHead(
        made_with=list_versions(config),
        run=redact_manifest(original.manifest, config),
        config=select_settings(config),
        models=describe_players(config),
        texts=original.texts,
        snippet_chars=original.snippet_chars,
        learnt=identify_train(original.train),
        files=hash_files(original.files.dataset),
        lines=tally.lines,
        bytes=tally.bytes,
        sha256=tally.sha256,
    )


def _iter_lines(original: SourceRun) -> Iterator[kinds.CassetteLine]:
    stated = {
        stage: find_fixed_results(store, original.files.root)
        for stage, store in original.stores.items()
    }
    yield from _iter_rule_lines(original)
    yield from _iter_sample_lines(original, stated)
    for stage, store in original.stores.items():
        yield from _iter_news_lines(original, stage, store, stated[stage])
    used = collect_answer_keys(original.stores, stated)
    yield from iter_answer_lines(original.calls, used, texts=original.texts)
    for file in hash_files(original.files.dataset):
        yield from hash_rows(original.files.dataset, file)


def _iter_rule_lines(original: SourceRun) -> Iterator[kinds.CassetteLine]:
    """Yield the lines that apply to every sample: words, names and labelled examples."""
    setup = original.setup
    for name, prompt in setup.prompts.by_name.items():
        yield kinds.PromptLine(role=name, text=prompt.text)
    if setup.config.task not in BUILT_IN:
        yield kinds.TaskLine(yaml=Path(setup.task_file).read_text(encoding="utf-8-sig"))
    takedown = setup.rules.takedown
    if len(takedown):
        yield kinds.TakedownLine(entries=(*takedown.names, *sorted(takedown.ids)))
    yield from iter_news_names(setup, open_workspace(original.manifest))
    if original.texts:
        yield from (kinds.TrainLine(sample=sample) for sample in original.train)


def _iter_sample_lines(
    original: SourceRun, stated: Mapping[kinds.CassettePass, Mapping[str, kinds.FinalResult]]
) -> Iterator[kinds.CassetteLine]:
    store, none = original.stores["refresh"], dict[str, kinds.FinalResult]()
    for row in store.bad_rows():
        hidden = {"text": "", "reason": REDACTED_REASON}
        yield kinds.BadRowLine(row=row if original.texts else row.model_copy(update=hidden))
    for ended in store.sample_results():
        sample = ended.sample
        yield kinds.SampleLine(
            sample=sample if original.texts else sample.model_copy(update={"fields": {}}),
            texts_sha256=hash_texts(sample.fields),
            stated=stated["refresh"].get(sample.id),
            control=stated.get("control", none).get(sample.id),
        )


def _iter_news_lines(
    original: SourceRun, stage: kinds.CassettePass, store: RunStore, stated: Mapping[str, object]
) -> Iterator[kinds.CassetteLine]:
    """Yield the evidence of a pass and the evidence offered to each sample."""
    offers = [offer for offer in _iter_offers(stage, store) if offer.sample_id not in stated]
    ids = list(dict.fromkeys(known for offer in offers for known, _ in offer.items))
    for first in range(0, len(ids), SAMPLE_BATCH):
        wanted = ids[first : first + SAMPLE_BATCH]
        found = store.history.evidence(wanted)
        yield from (
            kinds.EvidenceLine(
                stage=stage, evidence=_shorten_evidence(found[known], original.snippet_chars)
            )
            for known in wanted
        )
    yield from offers


def _iter_offers(stage: kinds.CassettePass, store: RunStore) -> Iterator[kinds.OfferLine]:
    for sample_id, attempt, detail in store.inputs.retrieval_notes():
        if "evidence" not in detail:  # the step was interrupted
            continue
        asked = detail.get("asked")
        yield kinds.OfferLine(
            stage=stage,
            sample_id=sample_id,
            attempt=attempt,
            asked=None if asked is None else tuple(map(kinds.NewsQuery.model_validate, asked)),
            items=tuple(detail["evidence"].items()),
        )


def _shorten_evidence(item: Evidence, chars: int | None) -> Evidence:
    return item if chars is None else item.model_copy(update={"snippet": item.snippet[:chars]})
