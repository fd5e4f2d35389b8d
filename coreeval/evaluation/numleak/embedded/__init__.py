"""Embedded personas: small models that learn what they are taught, for an audit without a key."""

from coreeval.evaluation.numleak.embedded.persona import (
    PERSONAS,
    Persona,
    PersonaQuestion,
    check_persona,
    open_persona,
)
from coreeval.evaluation.numleak.embedded.synthetic import KINDS, Kind, synthetic_series

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
