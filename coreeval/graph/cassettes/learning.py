"""What roles that are played by rules know beforehand: names of the news, labelled samples."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from coreeval.graph.control import control_setup
from coreeval.graph.inputs import learnt_from
from coreeval.graph.news import News, open_news
from coreeval.graph.setup import Setup
from coreeval.releases.cassettes.lines import Learnt, NameLine, Pass
from coreeval.releases.manifest import Manifest
from coreeval.releases.release import texts_sha256
from coreeval.schema import Sample
from coreeval.tools.workspace import Workspace


def train_of(setup: Setup) -> list[Sample]:
    """Return the samples that the label judge learns from; none where a model plays it."""
    return learnt_from(setup.config, setup.task)


def learnt_of(train: Sequence[Sample]) -> Learnt | None:
    """Return by what these samples are known again; None where there are none."""
    if not train:
        return None
    digest = hashlib.sha256()
    for sample in train:
        digest.update(f"{texts_sha256(sample.fields)} {sample.label}\n".encode())
    return Learnt(count=len(train), sha256=digest.hexdigest())


def names_of(setup: Setup, workspace: Workspace) -> Iterator[NameLine]:
    """Yield the names that local news mention, for each pass, where rules play a role.

    A remote source knows none before it is asked.
    """
    if not _needs_names(setup):
        return
    with closing(_local_news(setup, workspace)) as news:
        passes: dict[Pass, Setup] = {"refresh": setup}
        if setup.control:
            passes["control"] = control_setup(setup)
        for stage, each in passes.items():
            names = news.names(each.window)
            yield from (NameLine(stage=stage, entity=entity) for entity in names)


def names_note(setup: Setup, workspace: Workspace, manifest: Manifest) -> str:
    """Return what to tell of news whose names may not be those of the run; empty where they are."""
    if not _needs_names(setup):
        return ""
    with closing(_local_news(setup, workspace)) as news:
        now, then = news.fingerprint, manifest.fingerprints.knowledge
    if now.rpartition(":")[2] == then.rpartition(":")[2]:
        return ""
    return (
        "the news have changed since the run, and roles that are played by rules know their "
        "names: repeat the cassette before you pass it on"
    )


def _needs_names(setup: Setup) -> bool:
    config = setup.config
    return bool(config.models.rule_based_roles) and "local" in config.knowledge.backends


def _local_news(setup: Setup, workspace: Workspace) -> News:
    local = setup.config.knowledge.model_copy(update={"backends": ("local",)})
    config = setup.config.model_copy(update={"knowledge": local})
    return open_news(replace(setup, config=config), workspace)
