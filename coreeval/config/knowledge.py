"""Where news comes from: the part of the config that the knowledge backends read."""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from coreeval.schema import Precision, Value

Backend = Literal["local"]


def _utc(moment: datetime) -> datetime:
    """Read a time without a zone as UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_utc)]


class WindowConfig(Value):
    """The span of publication times that evidence must come from."""

    start: Moment | Literal["auto"] = "auto"
    """`auto`: the latest cutoff among the targets."""
    end: Moment | Literal["now"] = "now"


class KnowledgeConfig(Value):
    """Where news comes from."""

    backends: Annotated[tuple[Backend, ...], Field(min_length=1)] = ("local",)
    """Asked in this order: a query that one finds nothing for goes to the next."""
    path: str
    """Folder of GDELT files, for the local backend."""
    window: WindowConfig = WindowConfig()
    min_precision: Precision = "cluster"
    """Least certain kind of publication time that is accepted."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 20
    """Items of evidence shown to the replacer (research: pilot §2)."""
    takedown: str | None = None
    """File of names and evidence ids that nothing may rest on, one a line."""
