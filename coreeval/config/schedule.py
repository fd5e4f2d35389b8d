"""When a benchmark is renewed, what its releases are called, and who is told."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from coreeval.config.ages import age_of
from coreeval.config.cron import Cron, read_cron
from coreeval.config.secrecy import VariableName
from coreeval.config.versions import check_pattern, coarsest_pattern
from coreeval.schema import Value


class HookConfig(Value):
    """Somebody who is told: a command, or a web address that takes JSON."""

    command: Annotated[str, Field(min_length=1)] | None = None
    """Run by /bin/sh in the config's folder, with what happened in COREEVAL_… variables."""
    webhook_env: VariableName | None = None
    """Name of the environment variable that holds the address, which may be secret."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Longest that one try may take."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"command": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.command is None) == (self.webhook_env is None):
            raise ValueError("a hook is a command or a webhook_env, one of both")
        return self

    @property
    def words(self) -> str:
        """What the hook is, without what may be secret."""
        return self.command or f"the webhook in {self.webhook_env}"


class HooksConfig(Value):
    """Who is told of what."""

    success: tuple[HookConfig, ...] = ()
    """A release was made."""
    failure: tuple[HookConfig, ...] = ()
    """It could not be made; told once for each period and kind of trouble."""
    gate: tuple[HookConfig, ...] = ()
    """It waits for something: a review, samples that failed, a gate; told once as well."""

    @property
    def all(self) -> tuple[HookConfig, ...]:
        """All hooks, whatever they are told of."""
        return (*self.success, *self.failure, *self.gate)


class ScheduleConfig(Value):
    """When a benchmark is renewed: a cron expression, or a mapping that says more."""

    cron: str
    """minute, hour, day of month, month, day of week, as cron has them."""
    timezone: str = "UTC"
    """IANA name of the zone whose wall clock counts."""
    version: str | None = None
    """strftime pattern of a release's version, filled with the time at which it was due; None: the
    coarsest of week, day and minute that tells all times apart."""
    stale_after: Annotated[str, AfterValidator(lambda stated: str(age_of(stated)))] | None = None
    """Keep samples of the last release whose evidence is younger, such as 90d; None: all are made
    anew."""
    max_failed: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Share of the samples that may have failed in what is released. Our choice: a release stays
    as it is for good, so an outage of its models should not be part of it."""
    require_review: bool = False
    """Whether a person decides about samples that name living persons before it is released."""
    gates: Annotated[str, Field(min_length=1)] | None = None
    """A file of gates that a release must keep before it is made and anybody is told of it, from
    the config's folder, or `default`; None: it is not held against any."""
    hooks: HooksConfig = HooksConfig()

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {"cron": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _falls_due(self) -> Self:
        times = self.times
        if self.version is not None:
            check_pattern(times, self.version)
        return self

    @property
    def times(self) -> Cron:
        """When it falls due."""
        return read_cron(self.cron, self.timezone)

    @property
    def webhooks(self) -> frozenset[str]:
        """The variables that hold addresses of webhooks."""
        return frozenset(hook.webhook_env for hook in self.hooks.all if hook.webhook_env)

    @property
    def pattern(self) -> str:
        """The strftime pattern of a version."""
        return self.version or coarsest_pattern(self.times)
