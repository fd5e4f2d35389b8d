"""Room for an answer: a description or a chain of thought needs more tokens than a number."""

from typing import Final

from coreeval.config import TargetConfig
from coreeval.graph.numleak.plan import TARGET_ROLE

PROSE_ROLE: Final = "target_series_prose"
"""What calls are noted as whose answers are more than a number."""


def role_of(room: int) -> str:
    """Return what the calls of questions with such room are noted as."""
    return PROSE_ROLE if room else TARGET_ROLE


def roomy(target: TargetConfig, room: int) -> TargetConfig:
    """Return a target whose answers may have so many tokens, or as many as it allows itself."""
    most = max(room, target.max_tokens)
    return target if most == target.max_tokens else target.model_copy(update={"max_tokens": most})
