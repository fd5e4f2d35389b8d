"""Builds the team of a task: models through the call store, offline rules, or a mix of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from coreeval.agents.answer_judge import LLMAnswerJudge, LLMOptionJudge, LLMSummaryJudge
from coreeval.agents.composer import LLMComposer
from coreeval.agents.extractor import LLMExtractor, LLMExtractorRewriter
from coreeval.agents.fact_judge import LLMFactJudge
from coreeval.agents.kinds import item_kind
from coreeval.agents.label_judge import LLMBatchLabelJudge, LLMLabelJudge
from coreeval.agents.llm_role import LLMRole
from coreeval.agents.replacer import LLMReplacer, LLMReplacerComposer
from coreeval.agents.rewriter import LLMRewriter
from coreeval.agents.roles import Team
from coreeval.config import ROLES, ModelsConfig, RunConfig
from coreeval.models import ModelPool
from coreeval.prompts import PromptName, PromptSet
from coreeval.schema import NamedEntity, RoleName, Sample, Task, TaskKind

LLM_ROLES: dict[RoleName, type[LLMRole]] = {
    "extractor": LLMExtractor,
    "replacer": LLMReplacer,
    "rewriter": LLMRewriter,
    "composer": LLMComposer,
    "fact_judge": LLMFactJudge,
    "label_judge": LLMLabelJudge,
}


LEAN_ROLES = LLM_ROLES | {"extractor": LLMExtractorRewriter, "replacer": LLMReplacerComposer}
"""The roles of the pipeline `lean`, in which the extractor also rewords and the replacer also
writes; the rewriter and the composer are only called to correct these texts."""


JUDGES: Mapping[TaskKind, type[LLMRole]] = {
    "labels": LLMLabelJudge,
    "choice": LLMAnswerJudge,
    "answer": LLMAnswerJudge,
    "summary": LLMSummaryJudge,
}
"""The label judge for each kind of task."""


def llm_roles(run: RunConfig, task: Task) -> Mapping[RoleName, type[LLMRole]]:
    """Return the class of each role that a model plays in a run, for a task."""
    judge: dict[RoleName, type[LLMRole]] = {"label_judge": JUDGES[task.kind]}
    if run.pipeline == "full":
        return LLM_ROLES | judge
    if "semantic" not in run.arms:
        return LEAN_ROLES | judge | {"extractor": LLMExtractor}
    return LEAN_ROLES | judge


def prompt_names(
    run: RunConfig, prompts: PromptSet, task: Task
) -> Mapping[RoleName, list[PromptName]]:
    """Return the prompts of each role for a task, including those of its further questions."""
    found = {role: [player.prompt_name(task)] for role, player in llm_roles(run, task).items()}
    if labels_in_batches(run, prompts, task):
        found["label_judge"].append(LLMBatchLabelJudge.prompt_name(task))
    if not item_kind(task).plain_text and LLMExtractor.role not in found["extractor"]:
        found["extractor"].append(LLMExtractor.prompt_name(task))  # for items too long to reword
    if item_kind(task).judges_options:
        found["label_judge"].append(LLMOptionJudge.prompt_name(task))
    return found


def labels_in_batches(run: RunConfig, prompts: PromptSet, task: Task) -> bool:
    """Return whether originals are labelled together.

    They are not if the user has a prompt for one text; questions are answered one by one.
    """
    if not item_kind(task).plain_text:
        return False
    single_only = "label_judge" in prompts.own and "label_judge_batch" not in prompts.own
    return run.label_batch > 1 and not single_only


@dataclass(frozen=True, kw_only=True)
class TeamInputs:
    """The material from which a team is built."""

    models: ModelsConfig
    run: RunConfig
    prompts: PromptSet
    exchange: ModelPool
    names: Sequence[NamedEntity]
    """Entity names in the news, for the rules of the offline roles."""
    train: Sequence[Sample]
    """Labelled samples from which the offline label judge may learn."""


BuildTeam = Callable[[Task, TeamInputs], Team]
"""A function that builds the team of a task."""


def build_team(task: Task, materials: TeamInputs) -> Team:
    """Build the team that the config asks for.

    Raises:
        CredentialError: a key is missing.
    """
    clients = materials.exchange.role_clients(materials.models)
    players = llm_roles(materials.run, task)

    def player(role: RoleName) -> Any:  # noqa: ANN401 - each role has another type
        if role in clients:
            return players[role](task, clients[role], materials.prompts)
        model = materials.models.for_role(role)
        if model.is_plugin:
            from coreeval.agents.plugin_role import open_plugin_role  # for few configs

            return open_plugin_role(role, model, task, materials.run.seed)
        from coreeval.agents.offline.build import offline_role  # for few configs

        return offline_role(
            role, task, names=materials.names, seed=materials.run.seed, train=materials.train
        )

    return Team(
        **{role: player(role) for role in ROLES},
        batch_label_judge=_open_batch_judge(task, materials),
        option_judge=_open_option_judge(task, materials),
    )


def find_foreign_players(team: Team) -> dict[RoleName, str]:
    """Return the roles played by a caller's own code, each with its class or function."""
    names = {role: _name_player(getattr(team, role)) for role in ROLES}
    return {role: name for role, name in names.items() if not name.startswith("coreeval.")}


def _name_player(player: Any) -> str:  # noqa: ANN401 - each role has another type
    while isinstance(player, partial):
        player = player.func
    named = player if hasattr(player, "__qualname__") else type(player)
    return f"{named.__module__}.{named.__qualname__}"


def _open_option_judge(task: Task, materials: TeamInputs) -> LLMOptionJudge | None:
    """Return the judge of options; None for a task without options."""
    if not item_kind(task).judges_options:
        return None
    config = materials.models.for_role("label_judge")
    client = materials.exchange.open_client(config, "label_judge")
    return LLMOptionJudge(task, client, materials.prompts)


def _open_batch_judge(task: Task, materials: TeamInputs) -> LLMBatchLabelJudge | None:
    """Return the judge of several originals; None for rules or a user's own prompt.

    An answer that was invalid in all draws is not requested again by the batch's other samples.
    """
    config = materials.models.for_role("label_judge")
    if not config.is_asked or not labels_in_batches(materials.run, materials.prompts, task):
        return None
    client = materials.exchange.open_client(config, "label_judge", settle=True)
    return LLMBatchLabelJudge(task, client, materials.prompts)
