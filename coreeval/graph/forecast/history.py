"""What the workspace remembers of earlier runs: their calls, and how samples fared in them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coreeval.config import ROLES, ModelsConfig
from coreeval.errors import CoreEvalError
from coreeval.graph.forecast.learning import Seen
from coreeval.graph.forecast.sizes import size_of
from coreeval.graph.sources import ARMS
from coreeval.releases.manifest import Manifest, read_manifest
from coreeval.schema import Arm, RoleName
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.call_records import CallRecord
from coreeval.tools.stores.call_store import open_calls
from coreeval.tools.stores.run_records import SampleResult
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, Workspace

REMEMBERED = 300
"""Last calls of each role that are looked at."""
LOOKED_AT = 200
"""Samples of earlier runs that are looked at, those of the newest runs first."""
ENOUGH = 3
"""Samples from which their calls say more than the graph does."""


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore")
    body: dict[str, object] = Field(alias="schema")


class _Asked(BaseModel):
    """What of a kept request tells who was asked, and how much."""

    model_config = ConfigDict(extra="ignore")
    provider: str
    model: str
    shape: _Shape = Field(alias="schema")
    messages: tuple[dict[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """How samples fared in earlier runs of the same task."""

    runs: tuple[str, ...] = ()
    calls: Mapping[RoleName, Sequence[int]]
    """For each sample how often a role was asked; only of runs in which models played it."""
    arms: Mapping[Arm, Sequence[int]]
    """For each sample whether an arm has it."""


# -- calls ----------------------------------------------------------------------------------------


OTHERS = (
    "target", "target_text", "paraphraser", "target_series", "target_utility", "utility_judge",
)  # fmt: skip
"""Roles beside those of the team: targets asked for labels, for text and about series, twins of
items, and those who judge what defences cost."""


def remembered(workspace: Workspace) -> list[Seen]:
    """Return the last calls of each role and of targets; none where there is no call store.

    Raises:
        RunCorrupt: the call store is damaged.
    """
    if not workspace.calls.exists():
        return []
    with closing(open_calls(workspace.calls)) as store:
        return [
            seen_of(record)
            for role in (*ROLES, *OTHERS)
            for record in store.newest(role, REMEMBERED)
        ]


def seen_of(record: CallRecord) -> Seen:
    """Return what a call tells about others."""
    asked = _Asked.model_validate_json(record.request)
    return Seen(
        role=record.role,
        model=f"{asked.provider}:{asked.model}",
        size=size_of(asked.messages, asked.shape.body),
        prompt_tokens=record.prompt_tokens,
        cached_tokens=record.cached_tokens,
        completion_tokens=record.completion_tokens,
        seconds=record.seconds,
    )


# -- runs -----------------------------------------------------------------------------------------


def earlier(workspace: Workspace, task: str) -> Earlier:
    """Return how samples fared in the workspace's runs of a task, the newest runs first."""
    calls: dict[RoleName, list[int]] = {role: [] for role in ROLES}
    arms: dict[Arm, list[int]] = {arm: [] for arm in ARMS}
    looked, names = 0, list[str]()
    for files, manifest in _runs_of(workspace, task):
        if looked >= LOOKED_AT:
            break
        with suppress(CoreEvalError):  # a damaged run tells nothing
            number = _look_at(files, manifest, LOOKED_AT - looked, calls, arms)
            looked += number
            names += [manifest.run] if number else []
    return Earlier(runs=tuple(names), calls=calls, arms=arms)


def _runs_of(workspace: Workspace, task: str) -> Iterator[tuple[RunFiles, Manifest]]:
    """Yield the runs of a task in which models were asked, the newest first."""
    found = list[tuple[RunFiles, Manifest]]()
    for path in workspace.runs.glob("*/*/manifest.json"):
        with suppress(CoreEvalError, ValidationError):  # of another version
            manifest = read_manifest(path)
            if manifest.task == task and asked_roles(manifest):
                found.append((RunFiles(path.parent), manifest))
    yield from sorted(found, key=lambda one: one[1].created_at, reverse=True)


def asked_roles(manifest: Manifest) -> list[RoleName]:
    """Return the roles that models played in a run."""
    models = ModelsConfig.model_validate(manifest.models)
    return [role for role in ROLES if role not in models.rule_based_roles]


def _look_at(
    files: RunFiles,
    manifest: Manifest,
    most: int,
    calls: Mapping[RoleName, list[int]],
    arms: Mapping[Arm, list[int]],
) -> int:
    """Note how often each role was asked about the samples of a run; return how many these are."""
    roles, number = asked_roles(manifest), 0
    with closing(RunStore.open(files.require_store(), now=utc_now)) as store:
        for ended in islice(_undisturbed(store), most):
            number += 1
            asked = Counter(
                call.role for step in store.steps(ended.sample.id) for call in step.calls
            )
            for role in roles:
                calls[role].append(asked[role])
            for arm, texts in ARMS.items():
                arms[arm].append(texts(ended) is not None)
    return number


def _undisturbed(store: RunStore) -> Iterator[SampleResult]:
    """Yield the samples that went through the whole run: none that failed or was kept."""
    for ended in store.sample_results():
        if ended.result.outcome != "failed" and ended.result.kept_from is None:
            yield ended
