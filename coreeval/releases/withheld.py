"""Finds the samples of a run that a release leaves out of both new arms and of provenance.

A person rejected them, the takedown list has their evidence, or their new texts or facts have a
listed name that their original does not have. An earlier release with such samples is not
published any more.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from coreeval.agents.safety import Takedown, load_active_takedown
from coreeval.config.load import read_takedown_path
from coreeval.errors import ReleaseError
from coreeval.releases.release import Release, ReleasedArm
from coreeval.releases.release_manifest import Withheld
from coreeval.releases.review.review import find_run_of_release
from coreeval.runs.arms import (
    TRIPLE_COLUMNS,
    accepted_fields,
    fact_rows,
    iter_used_evidence,
    semantic_fields,
)
from coreeval.runs.config_source import find_configs
from coreeval.runs.manifest import read_manifest
from coreeval.runs.own_config import load_own_config, name_takedown_lists
from coreeval.tools.formatting import format_quantity, list_first
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace, find_own_workspaces

_NEW_ARMS: tuple[ReleasedArm, ...] = ("semantic", "updated")
_MOST_TOLD = 3


def find_withheld_samples(
    store: RunStore, takedown: Takedown, rejected: Collection[str] = ()
) -> Mapping[str, Withheld]:
    """Return the samples to leave out: taken down, or rejected by a person."""
    by_list: dict[str, Withheld] = dict.fromkeys(_find_taken_down(store, takedown), "takedown")
    by_person: dict[str, Withheld] = dict.fromkeys(rejected, "review")
    return by_person | by_list


def _find_taken_down(store: RunStore, takedown: Takedown) -> set[str]:
    if not len(takedown):
        return set()
    return {
        *_find_by_evidence(store, takedown),
        *_find_by_text(store, takedown),
        *_find_by_fact(store, takedown),
    }


def _find_by_evidence(store: RunStore, takedown: Takedown) -> Iterator[str]:
    return (sample_id for sample_id, item in iter_used_evidence(store) if takedown.forbids(item))


def _find_by_text(store: RunStore, takedown: Takedown) -> Iterator[str]:
    """Yield the samples with any outcome whose new texts add a name to their original."""
    for ended in store.sample_results():
        new = filter(None, (accepted_fields(ended), semantic_fields(ended)))
        texts = [text for fields in new for text in fields.values()]
        if takedown.find_new_names(ended.sample.fields.values(), texts):
            yield ended.sample.id


def _find_by_fact(store: RunStore, takedown: Takedown) -> Iterator[str]:
    """Yield the samples of rows of provenance that quote a name, or add one to the original."""
    for row in fact_rows(store):
        sample_id, triples = str(row["id"]), [str(row[name]) for name in TRIPLE_COLUMNS]
        quoted = any(takedown.names_in(str(row["snippet"])))
        named = any(takedown.names_in(" | ".join(triples)))  # read the original only if needed
        if quoted or (
            named and takedown.find_new_names(store.sample(sample_id).fields.values(), triples)
        ):
            yield sample_id


def refuse_listed_samples(release: Release) -> None:
    """Refuse to publish a release that was made before its workspace's takedown list grew.

    Raises:
        ReleaseError: it has listed news, or names that a new version would leave out.
        ConfigError: a takedown list cannot be read.
    """
    places = find_own_workspaces(release.path)
    named = [*_name_lists_of_run(release), *_name_lists_of_configs(release, places)]
    takedown = load_active_takedown(named, *(Workspace(place).takedown for place in places))
    listed = _find_listed(release, takedown) if len(takedown) else []
    if listed:
        samples = format_quantity(len(listed), "sample")
        raise ReleaseError(
            f"the release has names or news on the takedown list, in {samples}: "
            f"{list_first(listed, _MOST_TOLD)}",
            where=str(release.path),
            hint="publish a new version, which leaves them out: coreeval resume RUN, then coreeval "
            "release RUN --version VERSION; withdraw this version wherever it is published",
        )


def _name_lists_of_run(release: Release) -> list[str]:
    """Return the takedown lists that the config of a release's run names, if the run is there."""
    run = find_run_of_release(release)
    if run is None or not RunFiles(run).config.exists():
        return []
    files = RunFiles(run)
    manifest = read_manifest(files.manifest)
    return name_takedown_lists(load_own_config(files, manifest), manifest.source)


def _name_lists_of_configs(release: Release, workspaces: Iterable[Path]) -> Iterator[str]:
    """Yield the lists that configs for a release's benchmark beside its workspaces name.

    The release's run may have been deleted, or may be elsewhere.
    """
    for workspace in workspaces:
        for config in find_configs(workspace.parent, release.manifest.name):
            if listed := read_takedown_path(config, ()):
                yield listed


def _find_listed(release: Release, takedown: Takedown) -> list[str]:
    """Return the samples that a new version would leave out.

    If the release does not have the originals, only facts are tested: an old one stands for them.
    """
    has_originals = release.manifest.licence.redistribute
    listed, known = set[str](), defaultdict[str, list[str]](list)
    new = defaultdict[str, list[str]](list)
    for fact in release.facts():
        triples = [str(getattr(fact, name)) for name in TRIPLE_COLUMNS]
        if fact.evidence_id in takedown.ids or any(
            takedown.names_in(f"{fact.snippet} | {fact.url}")
        ):
            listed.add(fact.id)
        elif any(takedown.names_in(" | ".join(triples))):
            new[fact.id] += triples
            known[fact.id] += () if has_originals else triples[:3]
    for arm in _NEW_ARMS if has_originals else ():
        for row in release.arm(arm):
            if any(takedown.names_in(" | ".join(row.fields.values()))):
                new[row.id] += row.fields.values()
    for row in release.arm("original", list(new)):
        known[row.id] += row.fields.values()
    listed.update(key for key, texts in new.items() if takedown.find_new_names(known[key], texts))
    return sorted(listed)
