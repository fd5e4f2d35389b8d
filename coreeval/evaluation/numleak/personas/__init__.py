"""Embedded personas: small models that learn given statements, for an audit without a key."""

from coreeval.evaluation.numleak.personas.memory import KINDS, Kind, synthetic_series
from coreeval.evaluation.numleak.personas.persona import (
    PERSONAS,
    Persona,
    check_persona,
    open_persona,
)
from coreeval.evaluation.numleak.probes.wording import PersonaQuestion

__all__ = [
    "KINDS",
    "PERSONAS",
    "Kind",
    "Persona",
    "PersonaQuestion",
    "check_persona",
    "open_persona",
    "synthetic_series",
]
