"""How spans name things.

Names of attributes are OpenInference's (its semantic conventions 0.1) and, where it is cheap, those
of OpenTelemetry's GenAI conventions (1.41, in development); `coreeval.*` are our own.
"""

import json
from collections.abc import Mapping
from typing import Literal

from coreeval.tools.telemetry import Attribute, Attributes

Kind = Literal["AGENT", "CHAIN", "RETRIEVER", "LLM", "EVALUATOR", "GUARDRAIL"]
JSON = "application/json"


def of_kind(kind: Kind, run: str) -> Attributes:
    """Return what every span of a run says, by its kind."""
    return {"openinference.span.kind": kind, "session.id": run, "gen_ai.conversation.id": run}


def own(said: Mapping[str, Attribute]) -> Attributes:
    """Return our own facts twice: for viewers of metadata, and for queries by attribute."""
    named = {f"coreeval.{name}": value for name, value in said.items()}
    return {"metadata": json.dumps(said), **named}
