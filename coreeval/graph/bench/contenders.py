"""Who is tried: models and wordings as a command line names them."""

from collections.abc import Sequence
from itertools import product

from pydantic import ValidationError

from coreeval.config import ModelConfig
from coreeval.config.credentials import hide_credentials, refuse_credentials
from coreeval.config.user_files import YamlError, parse_yaml
from coreeval.errors import UsageError
from coreeval.graph.bench.opening import BUILT_IN, Bench, prompts_in
from coreeval.graph.bench.trial import Contender
from coreeval.graph.setup import check_reached
from coreeval.schema import RoleName


def contenders(
    bench: Bench, role: RoleName, models: Sequence[str], folders: Sequence[str]
) -> list[Contender]:
    """Return each model with each wording; the config's own where none is named.

    Raises:
        UsageError: one is played by rules, or is no model.
        PromptError: a folder of prompts cannot be used.
        CredentialError: a key is missing.
        ModelUnusable: an endpoint does not answer.
    """
    usual = bench.setup.config.models.for_role(role)
    asked = [model_named(text, usual) for text in models] or [usual]
    for model in asked:
        _check(bench, model, role, how=", or with --model provider:name")
    own = bench.setup.config.prompts or BUILT_IN
    worded = [(folder, prompts_in(folder)) for folder in folders] or [(own, bench.setup.prompts)]
    return [
        Contender(name=f"{model.model}, prompts {folder}", model=model, prompts=prompts)
        for model, (folder, prompts) in product(asked, worded)
    ]


def model_named(text: str, usual: ModelConfig) -> ModelConfig:
    """Return a model: `provider:name` with the usual endpoint and parameters, or a whole mapping.

    Raises:
        UsageError: it is neither, or holds what looks like a credential.
    """
    try:
        raw = parse_yaml(text)
        if isinstance(raw, dict):
            refuse_credentials(raw, where="--model")
            return ModelConfig.model_validate(raw)
    except (YamlError, ValidationError) as error:
        raise UsageError(
            f"this is no model: {hide_credentials(_short(error))}",
            where=f"--model {hide_credentials(text)}",
            hint='for example \'{model: "openai:qwen3", base_url: "http://127.0.0.1:8000/v1"}\'',
        ) from None
    return usual.model_copy(update={"model": text})


def check_judges(bench: Bench, role: RoleName) -> None:
    """Check that a composed text can be put to the config's judges.

    Raises:
        UsageError: another role than the composer is tried, or a judge is played by rules.
    """
    if role != "composer":
        raise UsageError(f"--judge is for the composer: the {role} writes nothing to be judged")
    for judge in ("fact_judge", "label_judge"):
        _check(bench, bench.setup.config.models.for_role(judge), judge)


def _check(bench: Bench, model: ModelConfig, role: RoleName, *, how: str = "") -> None:
    """Check that a model can be asked, as far as that is free."""
    if model.is_rule_based:
        raise UsageError(
            f"the {role} is played by rules here ({model.model}), and rules have no prompt",
            where=f"models.{role}",
            hint=f"name a model for it in the config{how}",
        )
    check_reached(bench.setup.config, [model], bench.workspace)


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".lstrip(": ")
    return " ".join(str(error).split())
