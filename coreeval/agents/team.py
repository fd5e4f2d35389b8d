"""Builds the team of a task: models through the call store, the offline rules, or a mix of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coreeval.agents.composer import LLMComposer
from coreeval.agents.extractor import LLMExtractor, LLMExtractorRewriter
from coreeval.agents.fact_judge import LLMFactJudge
from coreeval.agents.label_judge import LLMLabelJudge
from coreeval.agents.llm_role import LLMRole
from coreeval.agents.replacer import LLMReplacer, LLMReplacerComposer
from coreeval.agents.rewriter import LLMRewriter
from coreeval.agents.roles import Team
from coreeval.config import ROLES, ModelsConfig
from coreeval.models import ModelPool
from coreeval.prompts import PromptSet
from coreeval.schema import NamedEntity, Pipeline, RoleName, Sample, Task

LLM_ROLES: dict[RoleName, type[LLMRole]] = {
    "extractor": LLMExtractor,
    "replacer": LLMReplacer,
    "rewriter": LLMRewriter,
    "composer": LLMComposer,
    "fact_judge": LLMFactJudge,
    "label_judge": LLMLabelJudge,
}


LEAN_ROLES = LLM_ROLES | {"extractor": LLMExtractorRewriter, "replacer": LLMReplacerComposer}
"""Where the extractor rewords and the replacer writes too; the rewriter and the composer are asked
only to mend what they wrote."""


def llm_roles(pipeline: Pipeline) -> Mapping[RoleName, type[LLMRole]]:
    """Return the class of each role when a model plays it."""
    return LEAN_ROLES if pipeline == "lean" else LLM_ROLES


@dataclass(frozen=True, kw_only=True)
class TeamInputs:
    """The material from which a team is built."""

    models: ModelsConfig
    pipeline: Pipeline
    prompts: PromptSet
    exchange: ModelPool
    names: Sequence[NamedEntity]
    """Entity names in the news, for the rules of the offline roles."""
    train: Sequence[Sample]
    """Labelled samples from which the offline label judge may learn."""
    seed: int


BuildTeam = Callable[[Task, TeamInputs], Team]
"""A function that builds the team of a task."""


def build_team(task: Task, materials: TeamInputs) -> Team:
    """Build the team that the config asks for.

    Raises:
        CredentialError: a key is missing.
    """
    clients = materials.exchange.role_clients(materials.models)

    def player(role: RoleName) -> Any:  # noqa: ANN401 - each role has another type
        if role in clients:
            return llm_roles(materials.pipeline)[role](task, clients[role], materials.prompts)
        from coreeval.agents.offline.build import offline_role  # for few configs

        return offline_role(
            role, task, names=materials.names, seed=materials.seed, train=materials.train
        )

    return Team(**{role: player(role) for role in ROLES})
