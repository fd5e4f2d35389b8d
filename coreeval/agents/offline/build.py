"""Builds the roles that are played offline: all six as a team, or one by one beside models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.compose import OfflineComposer
from coreeval.agents.offline.extract import SpacyExtractor
from coreeval.agents.offline.judge import OfflineFactJudge, build_label_judge
from coreeval.agents.offline.replace import OfflineReplacer
from coreeval.agents.offline.rewrite import OfflineRewriter
from coreeval.agents.offline.word_lists import load_all
from coreeval.agents.roles import (
    Composer,
    Extractor,
    FactJudge,
    LabelJudge,
    Replacer,
    Rewriter,
    Team,
)
from coreeval.schema import NamedEntity, RoleName, Sample, Task

OfflineRole = Extractor | Replacer | Rewriter | Composer | FactJudge | LabelJudge


@dataclass(frozen=True, kw_only=True)
class _RoleInputs:
    """What the roles are built from."""

    task: Task
    names: Sequence[NamedEntity]
    seed: int
    train: Sequence[Sample]


def offline_team(
    task: Task,
    *,
    names: Sequence[NamedEntity],
    seed: int,
    train: Sequence[Sample] = (),
) -> Team:
    """Return the six roles played by rules and spaCy: deterministic, without messages or key.

    Args:
        task: The task of the benchmark.
        names: The entities of the evidence store, which the extractor looks for.
        seed: The seed that breaks ties between equally good wordings.
        train: The benchmark's train split, on which the label judge's classifier is fitted.
    """
    load_all()
    means = _RoleInputs(task=task, names=names, seed=seed, train=train)
    return Team(
        extractor=_build_extractor(means),
        replacer=_build_replacer(means),
        rewriter=_build_rewriter(means),
        composer=_build_composer(means),
        fact_judge=_build_fact_judge(means),
        label_judge=_build_label_judge(means),
    )


def offline_role(
    role: RoleName,
    task: Task,
    *,
    names: Sequence[NamedEntity],
    seed: int,
    train: Sequence[Sample] = (),
) -> OfflineRole:
    """Return one role played offline, for use with roles played by models."""
    load_all()
    return _BUILDERS[role](_RoleInputs(task=task, names=names, seed=seed, train=train))


def _build_extractor(means: _RoleInputs) -> Extractor:
    return SpacyExtractor(means.task, means.names)


def _build_replacer(means: _RoleInputs) -> Replacer:
    return OfflineReplacer(task=means.task)


def _build_rewriter(means: _RoleInputs) -> Rewriter:
    return OfflineRewriter(means.task)


def _build_composer(means: _RoleInputs) -> Composer:
    parts = (word for name in means.names for word in name.name.split() if word[:1].isupper())
    proper = frozenset(
        word for word in parts if word.casefold() not in word_lists.load_words("plain")
    )
    return OfflineComposer(means.task, proper, means.seed)


def _build_fact_judge(means: _RoleInputs) -> FactJudge:
    return OfflineFactJudge(means.task)


def _build_label_judge(means: _RoleInputs) -> LabelJudge:
    return build_label_judge(means.task, means.train, means.seed)


_BUILDERS: Mapping[RoleName, Callable[[_RoleInputs], OfflineRole]] = {
    "extractor": _build_extractor,
    "replacer": _build_replacer,
    "rewriter": _build_rewriter,
    "composer": _build_composer,
    "fact_judge": _build_fact_judge,
    "label_judge": _build_label_judge,
}
