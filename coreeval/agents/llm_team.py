"""Roles played by models: one by one, to be mixed with others, or all six."""

from collections.abc import Mapping
from typing import Literal, overload

from coreeval.agents.composer import LLMComposer
from coreeval.agents.extractor import LLMExtractor
from coreeval.agents.fact_judge import LLMFactJudge
from coreeval.agents.label_judge import LLMLabelJudge
from coreeval.agents.llm_role import LLMRole
from coreeval.agents.replacer import LLMReplacer
from coreeval.agents.rewriter import LLMRewriter
from coreeval.agents.roles import (
    Composer,
    Extractor,
    FactJudge,
    LabelJudge,
    Replacer,
    Rewriter,
    Team,
)
from coreeval.models import Asker
from coreeval.prompts import Prompts
from coreeval.schema import RoleName, Task

LLM_ROLES: dict[RoleName, type[LLMRole]] = {
    "extractor": LLMExtractor,
    "replacer": LLMReplacer,
    "rewriter": LLMRewriter,
    "composer": LLMComposer,
    "fact_judge": LLMFactJudge,
    "label_judge": LLMLabelJudge,
}


@overload
def llm_role(
    role: Literal["extractor"], task: Task, asker: Asker, prompts: Prompts
) -> Extractor: ...
@overload
def llm_role(role: Literal["replacer"], task: Task, asker: Asker, prompts: Prompts) -> Replacer: ...
@overload
def llm_role(role: Literal["rewriter"], task: Task, asker: Asker, prompts: Prompts) -> Rewriter: ...
@overload
def llm_role(role: Literal["composer"], task: Task, asker: Asker, prompts: Prompts) -> Composer: ...
@overload
def llm_role(
    role: Literal["fact_judge"], task: Task, asker: Asker, prompts: Prompts
) -> FactJudge: ...
@overload
def llm_role(
    role: Literal["label_judge"], task: Task, asker: Asker, prompts: Prompts
) -> LabelJudge: ...
def llm_role(role: RoleName, task: Task, asker: Asker, prompts: Prompts) -> object:
    """Return one role played by the asker's model."""
    return LLM_ROLES[role](task, asker, prompts)


def build_llm_team(task: Task, askers: Mapping[RoleName, Asker], prompts: Prompts) -> Team:
    """Return a team whose six roles are all played by models, each by its own."""
    return Team(
        extractor=LLMExtractor(task, askers["extractor"], prompts),
        replacer=LLMReplacer(task, askers["replacer"], prompts),
        rewriter=LLMRewriter(task, askers["rewriter"], prompts),
        composer=LLMComposer(task, askers["composer"], prompts),
        fact_judge=LLMFactJudge(task, askers["fact_judge"], prompts),
        label_judge=LLMLabelJudge(task, askers["label_judge"], prompts),
    )
