"""Who plays the six roles offline, together or one by one beside models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.composer import OfflineComposer
from coreeval.agents.offline.extractor import SpacyExtractor
from coreeval.agents.offline.fact_judge import OfflineFactJudge
from coreeval.agents.offline.label_judge import label_judge
from coreeval.agents.offline.lexicon import preload
from coreeval.agents.offline.replacer import OfflineReplacer
from coreeval.agents.offline.rewriter import OfflineRewriter
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

Player = Extractor | Replacer | Rewriter | Composer | FactJudge | LabelJudge


@dataclass(frozen=True, kw_only=True)
class _Means:
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
    """Return the six roles played by rules and spaCy: deterministic, no messages, no key.

    Args:
        task: What kind of benchmark it is.
        names: The entities of the evidence store, which the extractor looks for.
        seed: Decides between equally good wordings.
        train: The benchmark's train split, on which the label judge's classifier is fitted.
    """
    preload()
    means = _Means(task=task, names=names, seed=seed, train=train)
    return Team(
        extractor=_extractor(means),
        replacer=_replacer(means),
        rewriter=_rewriter(means),
        composer=_composer(means),
        fact_judge=_fact_judge(means),
        label_judge=_label_judge(means),
    )


def offline_role(
    role: RoleName,
    task: Task,
    *,
    names: Sequence[NamedEntity],
    seed: int,
    train: Sequence[Sample] = (),
) -> Player:
    """Return one role played offline, to stand beside roles played by models."""
    preload()
    return _ROLES[role](_Means(task=task, names=names, seed=seed, train=train))


def _extractor(means: _Means) -> Extractor:
    return SpacyExtractor(means.task, means.names)


def _replacer(means: _Means) -> Replacer:
    return OfflineReplacer(task=means.task)


def _rewriter(means: _Means) -> Rewriter:
    return OfflineRewriter(means.task)


def _composer(means: _Means) -> Composer:
    parts = (word for name in means.names for word in name.name.split() if word[:1].isupper())
    proper = frozenset(word for word in parts if word.casefold() not in lexicon.words("plain"))
    return OfflineComposer(means.task, proper, means.seed)


def _fact_judge(means: _Means) -> FactJudge:
    return OfflineFactJudge(means.task)


def _label_judge(means: _Means) -> LabelJudge:
    return label_judge(means.task, means.train, means.seed)


_ROLES: Mapping[RoleName, Callable[[_Means], Player]] = {
    "extractor": _extractor,
    "replacer": _replacer,
    "rewriter": _rewriter,
    "composer": _composer,
    "fact_judge": _fact_judge,
    "label_judge": _label_judge,
}
