"""Embedded personas: small models that learn what they are taught, for an audit without a key."""

from coreeval.evaluation.numleak.personas.memory import KINDS, Kind, synthetic_series
from coreeval.evaluation.numleak.personas.persona import (
    PERSONAS,
    Persona,
    PersonaQuestion,
    check_persona,
    open_persona,
)

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
