"""Where news comes from: the part of the config that the knowledge backends read."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from coreeval.config.dates import utc
from coreeval.config.remote_news import BigQueryConfig, DocConfig
from coreeval.schema import Precision, Value

Backend = Literal["local", "bigquery", "doc"]
Moment = Annotated[datetime, AfterValidator(utc)]


class WindowConfig(Value):
    """The span of publication times that evidence must come from."""

    start: Moment | Literal["auto"] = "auto"
    """`auto`: the latest of cutoff and release over all targets."""
    end: Moment | Literal["now"] = "now"


class ControlWindow(Value):
    """The span of publication times that evidence of the control arm must come from."""

    start: Moment
    end: Moment
    """Excluded; no later than the earliest cutoff of the targets."""


class KnowledgeConfig(Value):
    """Where news comes from."""

    backends: Annotated[tuple[Backend, ...], Field(min_length=1)] = ("local",)
    """Asked in this order: a query that one finds nothing for goes to the next."""
    path: str | None = None
    """For the local backend: a store of `coreeval gdelt sync`, or a folder of GDELT files. The
    workspace's own store where it is not told."""
    bigquery: BigQueryConfig = BigQueryConfig()
    doc: DocConfig = DocConfig()
    window: WindowConfig = WindowConfig()
    min_precision: Precision = "cluster"
    """Least certain kind of publication time that is accepted."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 20
    """Items of evidence shown to the replacer (research: pilot §2)."""
    cutoffs: str | None = None
    """File of model cutoffs and releases that come before the built-in ones."""
    takedown: str | None = None
    """File of names and evidence ids that nothing may rest on, one a line."""
