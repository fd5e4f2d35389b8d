"""Recording: a finished run, its answers and its news, becomes the lines of a cassette."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coreeval.agents.llm_role import SHOWN_SNIPPET
from coreeval.config import ROLES, load_config
from coreeval.errors import CassetteError
from coreeval.graph.cassettes.answers import answer_lines, answers_of
from coreeval.graph.cassettes.learning import learnt_of, names_note, names_of, train_of
from coreeval.graph.cassettes.portrait import made_with, players_of, portrait, settings_of
from coreeval.graph.cassettes.stating import stated_of
from coreeval.graph.run import locked, workspace_of
from coreeval.graph.setup import Setup, prompt_versions, set_up, task_fingerprint
from coreeval.graph.work import open_control, open_store
from coreeval.releases.cassettes import lines as kinds
from coreeval.releases.cassettes.comparing import files_of, rows_of
from coreeval.releases.cassettes.packing import Packed, Tally, pack
from coreeval.releases.licences import licence_of
from coreeval.releases.manifest import Manifest, read_manifest
from coreeval.releases.release import texts_sha256
from coreeval.releases.release_manifest import Licence
from coreeval.schema import Evidence, Sample
from coreeval.tasks import BUILT_IN
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_store import CallStore, open_calls
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, command

UNTOLD = "not told: the reason may quote the benchmark"
"""Why a bad row is one, where texts are left out."""
AT_A_TIME = 500
"""Pieces of evidence that are read together."""


@dataclass(frozen=True, kw_only=True)
class Original:
    """A run that is recorded."""

    files: RunFiles
    manifest: Manifest
    setup: Setup
    stores: Mapping[kinds.Pass, RunStore]
    calls: CallStore
    texts: bool
    snippet_chars: int | None
    train: list[Sample]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A cassette that was written, and what is to be told of it."""

    packed: Packed
    note: str
    licence: Licence
    """On what terms the benchmark's texts may be passed on."""


def record(run: Path | str, out: Path | str, *, texts: bool | None = None) -> Recording:
    """Write a run as a cassette.

    Args:
        run: The run's directory.
        out: The file to write.
        texts: Whether the samples' own texts go into it; None as their licence has it.

    Raises:
        RunStateError: there is no run.
        CassetteError: it is unfinished, or something that it rests on is gone or has changed.
        RunLocked: somebody works on it.
    """
    files, path = RunFiles(Path(run).resolve()), Path(out).resolve()
    manifest = read_manifest(files.manifest)
    with ExitStack() as stack:
        stack.enter_context(locked(files))
        original = _opened(files, manifest, texts, stack)
        _refuse_unfinished(original)
        _refuse_changed(original)
        return Recording(
            packed=pack(path, _lines(original), lambda tally: _head(original, tally)),
            note=names_note(original.setup, workspace_of(manifest), manifest),
            licence=licence_of(original.setup.config.dataset),
        )


def _opened(files: RunFiles, manifest: Manifest, texts: bool | None, stack: ExitStack) -> Original:
    config = load_config(files.config)
    now, workspace = datetime.fromisoformat(manifest.now), workspace_of(manifest)
    setup = set_up(config, now, manifest, workspace=workspace)
    stores: dict[kinds.Pass, RunStore] = {
        "refresh": stack.enter_context(closing(open_store(files, utc_now)))
    }
    if setup.control:
        stores["control"] = stack.enter_context(closing(open_control(files, utc_now)))
    return Original(
        files=files,
        manifest=manifest,
        setup=setup,
        stores=stores,
        calls=stack.enter_context(closing(_calls(manifest))),
        texts=licence_of(config.dataset).redistribute if texts is None else texts,
        snippet_chars=None if config.models.rule_based_roles else SHOWN_SNIPPET,
        train=train_of(setup),
    )


def _calls(manifest: Manifest) -> CallStore:
    path = workspace_of(manifest).calls
    if not path.exists():
        raise CassetteError(
            "the call store of the run's workspace is not there, and it has the answers",
            where=str(path),
            hint="put the workspace back where it was when the run was made",
        )
    return open_calls(path)


def _refuse_unfinished(original: Original) -> None:
    files = original.files
    pending = any(store.pending() for store in original.stores.values())
    if pending or original.stores["refresh"].stage("assemble") is None:
        raise CassetteError(
            "the run has not ended: only a whole dataset can be repeated",
            where=str(files.root),
            hint=command("resume", files.root),
        )


def _refuse_changed(original: Original) -> None:
    """Refuse prompts, a task or a takedown list that are not those of the run any more."""
    setup, manifest = original.setup, original.manifest
    changed = [
        f"the prompt of the {role}"
        for role, known in prompt_versions(setup).items()
        if manifest.prompts.get(role) != known
    ]
    if task_fingerprint(setup) != manifest.fingerprints.task:
        changed.append(f"the task {setup.config.task}")
    if setup.rules.takedown.fingerprint != manifest.knowledge.takedown_sha256:
        changed.append("the takedown list of its config or its workspace")
    if changed:
        raise CassetteError(
            f"this has changed since the run: {', '.join(changed)}",
            where=str(original.files.root),
            hint="put it back as it was, or record the run with the version that made it",
        )


def _head(original: Original, tally: Tally) -> kinds.Head:
    config = original.setup.config
    return kinds.Head(
        made_with=made_with(config),
        run=portrait(original.manifest, config),
        config=settings_of(config),
        models=players_of(config),
        texts=original.texts,
        snippet_chars=original.snippet_chars,
        learnt=learnt_of(original.train),
        files=files_of(original.files.dataset),
        lines=tally.lines,
        bytes=tally.bytes,
        sha256=tally.sha256,
    )


def _lines(original: Original) -> Iterator[kinds.Line]:
    stated = {
        stage: stated_of(store, original.files.root) for stage, store in original.stores.items()
    }
    yield from _rules(original)
    yield from _benchmark(original, stated)
    for stage, store in original.stores.items():
        yield from _news(original, stage, store, stated[stage])
    used = answers_of(original.stores, stated)
    yield from answer_lines(original.calls, used, texts=original.texts)
    for file in files_of(original.files.dataset):
        yield from rows_of(original.files.dataset, file)


def _rules(original: Original) -> Iterator[kinds.Line]:
    """Yield what every sample is worked on with: words, names, labelled examples."""
    setup = original.setup
    yield from (kinds.PromptLine(role=role, text=setup.prompts[role].text) for role in ROLES)
    if setup.config.task not in BUILT_IN:
        yield kinds.TaskLine(yaml=Path(setup.config.task).read_text(encoding="utf-8-sig"))
    takedown = setup.rules.takedown
    if len(takedown):
        yield kinds.TakedownLine(entries=(*takedown.names, *sorted(takedown.ids)))
    yield from names_of(setup, workspace_of(original.manifest))
    if original.texts:
        yield from (kinds.TrainLine(sample=sample) for sample in original.train)


def _benchmark(
    original: Original, stated: Mapping[kinds.Pass, Mapping[str, kinds.Stated]]
) -> Iterator[kinds.Line]:
    store, none = original.stores["refresh"], dict[str, kinds.Stated]()
    for row in store.bad_rows():
        hidden = {"text": "", "reason": UNTOLD}
        yield kinds.BadRowLine(row=row if original.texts else row.model_copy(update=hidden))
    for ended in store.sample_results():
        sample = ended.sample
        yield kinds.SampleLine(
            sample=sample if original.texts else sample.model_copy(update={"fields": {}}),
            texts_sha256=texts_sha256(sample.fields),
            stated=stated["refresh"].get(sample.id),
            control=stated.get("control", none).get(sample.id),
        )


def _news(
    original: Original, stage: kinds.Pass, store: RunStore, stated: Mapping[str, object]
) -> Iterator[kinds.Line]:
    """Yield the evidence of a pass, and what each sample was offered of it."""
    offers = [offer for offer in _offers(stage, store) if offer.sample_id not in stated]
    ids = list(dict.fromkeys(known for offer in offers for known, _ in offer.items))
    for first in range(0, len(ids), AT_A_TIME):
        wanted = ids[first : first + AT_A_TIME]
        found = store.evidence(wanted)
        yield from (
            kinds.EvidenceLine(stage=stage, evidence=_shown(found[known], original.snippet_chars))
            for known in wanted
        )
    yield from offers


def _offers(stage: kinds.Pass, store: RunStore) -> Iterator[kinds.OfferLine]:
    for sample_id, attempt, detail in store.retrieval_notes():
        if "evidence" not in detail:  # the step was cut off
            continue
        asked = detail.get("asked")
        yield kinds.OfferLine(
            stage=stage,
            sample_id=sample_id,
            attempt=attempt,
            asked=None if asked is None else tuple(map(kinds.Query.model_validate, asked)),
            items=tuple(detail["evidence"].items()),
        )


def _shown(item: Evidence, chars: int | None) -> Evidence:
    return item if chars is None else item.model_copy(update={"snippet": item.snippet[:chars]})
