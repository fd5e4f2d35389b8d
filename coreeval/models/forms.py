"""How one answer is to be given, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from coreeval.config import Method

Finish = Literal["stop", "length", "refusal", "content_filter"]
"""Why an answer ended, whatever the provider calls it: only `stop` is a whole answer."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """How one answer is to be given."""

    schema: Mapping[str, object]
    """Strict JSON schema of the answer; empty where it may have any form."""
    name: str
    """What the schema is called on the wire."""
    method: Method
    """How the endpoint is asked to keep to the schema."""
    max_tokens: int
    plain_limit: bool = True
    """Whether the length is called `max_tokens`, where a protocol has several names for it."""
    draw: int = 0
    """Number of the draw, for models that have recorded answers."""
    logprobs: int = 0
    """How many of the most probable tokens are to be told at each place; 0: none."""
