"""Builds the roles that are played offline: all six as a team, or single ones beside models."""

from collections.abc import Sequence
from typing import Any

from coreeval.agents.offline.compose import OfflineComposer
from coreeval.agents.offline.extract import SpacyExtractor
from coreeval.agents.offline.judge import OfflineFactJudge, build_label_judge
from coreeval.agents.offline.replace import OfflineReplacer
from coreeval.agents.offline.rewrite import rewrite_offline
from coreeval.agents.offline.word_lists import load_all, load_words
from coreeval.agents.roles import (
    Composer,
    Extractor,
    FactJudge,
    LabelJudge,
    Replacer,
    Rewriter,
    Team,
)
from coreeval.config import ROLES
from coreeval.schema import NamedEntity, RoleName, Sample, Task

OfflineRole = Extractor | Replacer | Rewriter | Composer | FactJudge | LabelJudge


def offline_team(
    task: Task, *, names: Sequence[NamedEntity], seed: int, train: Sequence[Sample] = ()
) -> Team:
    """Return the six roles played by rules and spaCy: deterministic, without calls or keys.

    Args:
        task: The task of the benchmark.
        names: The entities of the evidence store, for which the extractor searches.
        seed: The seed that breaks ties between equally good wordings.
        train: The benchmark's train split, on which the label judge's classifier is fitted.
    """
    team: dict[str, Any] = {
        role: offline_role(role, task, names=names, seed=seed, train=train) for role in ROLES
    }
    return Team(**team)


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
    match role:
        case "extractor":
            return SpacyExtractor(task, names)
        case "replacer":
            return OfflineReplacer(task=task)
        case "rewriter":
            return rewrite_offline
        case "composer":
            return OfflineComposer(task, _find_proper_words(names), seed)
        case "fact_judge":
            return OfflineFactJudge(task)
        case "label_judge":
            return build_label_judge(task, train, seed)


def _find_proper_words(names: Sequence[NamedEntity]) -> frozenset[str]:
    """Return the capitalised words of names, without those that are also common words."""
    parts = (word for name in names for word in name.name.split() if word[:1].isupper())
    return frozenset(word for word in parts if word.casefold() not in load_words("plain"))
