"""manifest.json: the settings, inputs and results of a run, for other programs to read."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
)

from coreeval.config import ROLES, ModelsConfig, TargetConfig
from coreeval.config.user_files import MOST_DATA_BYTES, read_bytes
from coreeval.errors import RunStateError
from coreeval.evaluation.benchmarks.subset import Subset
from coreeval.runs.config_source import ConfigSource, LocalPath, is_same
from coreeval.schema import Coverage, Outcome, Precision, Value, Window, ZonedTime
from coreeval.tools.cutoffs import LatestDate, TargetDates, TargetFreshness
from coreeval.tools.files import parse_json, write_json
from coreeval.tools.plugin_origin import PluginOrigin
from coreeval.tools.workspace import HOME_VARIABLE, WORKSPACE_NAME, find_workspace, name_payer

Status = Literal["running", "interrupted", "stopped", "waiting", "complete"]
OUTCOMES: tuple[str, ...] = get_args(Outcome)
_MANIFEST_HINT = "restore the file from a backup, or start a new run"


def _check_counts(said: dict[str, int]) -> dict[str, int]:
    if said and "total" not in said:
        raise ValueError("it has no total")
    for name, count in said.items():
        if count < 0:
            raise ValueError(f"{name} is below 0")
    return {"total": 0, **dict.fromkeys(OUTCOMES, 0), "pending": 0, **said}


def _check_models(said: dict[str, Any]) -> dict[str, Any]:
    try:
        ModelsConfig.model_validate(said)
    except ValidationError as error:
        raise ValueError(describe_first_problem(error)) from None
    return said


SampleCounts = Annotated[dict[str, int], AfterValidator(_check_counts)]
"""`total`, one entry per outcome, and `pending`; all but `total` add up to `total`. Missing
outcomes are 0."""
ModelSettings = Annotated[dict[str, Any], AfterValidator(_check_models)]
"""The config's `models`, with the keys set there."""


class Fingerprints(Value):
    """Hashes of everything that determines the result."""

    config: str
    task: str
    prompts: str
    data: str
    knowledge: str
    code: str
    """Version of the package; recorded, but never blocking."""
    graph: str
    """Hash of node names and prompts; a thread of another graph is restarted, not resumed."""


class KnowledgeUsed(Value):
    """The sources and the amount of news."""

    backend: str
    path: str | None
    """Path of local news; None for the workspace's own store, or if there are none."""
    min_precision: Precision
    coverage: Coverage
    gaps: tuple[str, ...] = ()
    takedown: int = 0
    """Number of entries of the takedown list that the run used."""
    takedown_sha256: str = ""
    stats: dict[str, Any] = {}
    """Statistics of the local store; empty if there is none."""
    requests: int = 0
    """Number of requests sent to remote backends."""
    bytes_billed: int = 0
    cost_usd: float = 0.0
    """Charges of remote backends in US dollars; not part of the models' budget."""
    notes: tuple[str, ...] = ()
    """Remarks of remote backends."""


class FollowedRelease(Value):
    """The release that a run follows, from which it keeps samples that are still valid."""

    version: str
    digest: str
    """sha256 of its release.json."""
    path: str
    stale_after: str | None = None
    """Maximum age of a kept sample's evidence at the run's `now`: 90d, 12w, 6m."""


class Cost(Value):
    """The paid calls of a run."""

    billed_usd: float | None = 0.0
    """Billed amount in US dollars; None if a paid call has no known price."""
    unknown_usd: float = 0.0
    """Worst-case cost in US dollars of requests with unknown outcome; counts against the budget."""
    budget_usd: float | None = None
    billed_calls: int = 0
    cached_calls: int = 0
    """Calls that were answered from the call store."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens from the providers' own caches."""
    completion_tokens: int = 0
    by_model: tuple[dict[str, Any], ...] = ()


class Evaluation(Value):
    """The settings given to `coreeval evaluate`."""

    added: tuple[dict[str, Any], ...] = ()
    """Targets in addition to the config's, in the config's format."""
    asked: tuple[str, ...] = ()
    """Names of the targets that are asked, including added ones."""


class ControlPass(Value):
    """The second pass over the samples, with news from before the targets' cutoffs."""

    window: Window
    counts: SampleCounts = {}
    knowledge: KnowledgeUsed


class Manifest(Value):
    """The manifest of one run."""

    version: Literal[1] = 1
    run: str
    """Name of the run: `<config name>/<UTC start>`, or the directory's name."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """The config's name, from which folder names in the workspace are made."""
    task: str
    status: Status
    created_at: ZonedTime
    ended_at: Literal[""] | ZonedTime = ""
    now: ZonedTime
    """The run's clock, frozen: used for `window.end: now` and everything dated."""
    window: Window
    window_start: LatestDate | None = None
    """The basis of `window.start: auto`, with its source; None if the config gives the date."""
    cutoffs: tuple[TargetDates, ...] | None = None
    """Known dates of each target; None in runs from before this was recorded."""
    after_cutoff: tuple[TargetFreshness, ...] = ()
    """For each target, how much of the evidence it cannot know."""
    counts: SampleCounts
    bad_rows: int = 0
    notes: tuple[str, ...] = ()
    """Remarks about the input, such as an incomplete benchmark."""
    arms: dict[str, int] = {}
    """Number of rows per published file: updated, semantic, provenance; control if there is one."""
    models: ModelSettings
    pipeline: str = ""
    """The spaCy pipeline, if rules play the extractor; otherwise empty."""
    prompts: dict[str, str]
    """Hash of the prompt by role."""
    cost: Cost = Cost()
    knowledge: KnowledgeUsed
    control: ControlPass | None = None
    """The second pass; None if the config wants no control arm."""
    fingerprints: Fingerprints
    source: ConfigSource
    workspace: LocalPath
    """Folder of the call store that the run shares."""
    limit: int | None = None
    subset: Subset | None = None
    """The selected part of the benchmark; None for all, or for the first `limit` samples."""
    batching: bool = False
    """Whether calls wait for batches."""
    evaluation: Evaluation | None = None
    """The questions to targets after the run; None if only the config states them."""
    plugins: tuple[PluginOrigin, ...] = ()
    """The plugins of the config and of detectors, each with its package and version."""
    parent: FollowedRelease | None = None
    """The release that the run follows; None if no samples are kept."""
    kept: int = 0
    """Number of samples kept from the parent, all of them accepted."""
    cassette: str = ""
    """Digest of the cassette that the run replays; empty if the run made its own requests."""

    def name_plugins(self, used: Iterable[PluginOrigin]) -> Self:
        """Return a manifest that also has these plugins, replacing other versions of them."""
        named = {(each.group, each.name): each for each in (*self.plugins, *used)}
        return self.model_copy(update={"plugins": tuple(named.values())})

    @property
    def payer(self) -> str:
        """Return the run's name in the call store, which identifies the run's own calls.

        It consists of frozen fields, so a run can be moved or copied. A run that replays a cassette
        has the recorded run's name and clock, but is its own payer.
        """
        return name_payer(self.run, self.now, self.cassette)

    @property
    def config_folder(self) -> Path:
        """Return the folder of the config, or of the workspace if the config was in memory."""
        return self.source.folder or Path(self.workspace).parent

    @property
    def offline_roles(self) -> list[str]:
        """Return the roles that rules play."""
        return list(ModelsConfig.model_validate(self.models).rule_based_roles)

    @property
    def asks_models(self) -> bool:
        """Return whether the run asks models for roles or targets."""
        models = ModelsConfig.model_validate(self.models)
        added = self.evaluation.added if self.evaluation else ()
        targets = (*models.targets, *map(TargetConfig.model_validate, added))
        asked = (*map(models.for_role, ROLES), *targets)
        return any(each.is_asked for each in asked)

    @property
    def failed(self) -> int:
        """Return the number of failed samples, including those of the second pass."""
        second = self.control.counts if self.control else {}
        return self.counts["failed"] + second.get("failed", 0)


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """The state of a run after its process has ended."""

    run_dir: Path
    manifest: Manifest


def full_counts(total: int, by_outcome: dict[str, int]) -> dict[str, int]:
    """Return counts with every outcome and `pending`; all but `total` add up to `total`."""
    counts = {outcome: by_outcome.get(outcome, 0) for outcome in OUTCOMES}
    return {"total": total, **counts, "pending": total - sum(counts.values())}


def read_manifest(path: Path) -> Manifest:
    """Read a manifest, with the workspace and config file of the run's present location.

    Raises:
        RunStateError: the manifest is missing or damaged.
    """
    found = read_original_manifest(path)
    run = path.resolve().parent
    workspace = find_workspace(Path(found.workspace), run, found.payer)
    source = found.source.find(found.name, recorded=Path(found.workspace), workspace=workspace)
    place = _keep_link(Path(found.workspace), source.folder, workspace)
    return found.model_copy(update={"workspace": str(place), "source": source})


def _keep_link(recorded: Path, project: Path | None, workspace: Path) -> Path:
    """Return a run's workspace as its project names it, which may be a link to another disk.

    Paths in the workspace are relative to the folder with the link.
    """
    named = (recorded, *([project / WORKSPACE_NAME] if project else []))
    links = (each for each in named if each != workspace and is_same(each, workspace))
    return next(links, workspace)


def require_workspace(manifest: Manifest) -> None:
    """Raise an error if the workspace of a run is missing, so that it is not created anew.

    Raises:
        RunStateError: it does not exist.
    """
    if not Path(manifest.workspace).exists():
        raise RunStateError(
            "the workspace of this run, which stores what people say about its texts, is missing",
            where=manifest.workspace,
            hint=f"restore it, or set its folder: {HOME_VARIABLE}=DIR",
        )


def read_original_manifest(path: Path) -> Manifest:
    """Read a manifest as written, with the workspace recorded then.

    Raises:
        RunStateError: the manifest is missing or damaged.
    """
    try:
        return Manifest.model_validate(parse_json(read_bytes(path, most_bytes=MOST_DATA_BYTES)))
    except PermissionError as error:
        raise RunStateError(
            f"cannot read the manifest: {error.strerror}",
            where=str(path),
            hint="ask the owner of the run for read access or a copy",
        ) from None
    except FileNotFoundError:
        raise RunStateError(
            "this is not a run directory: it has no manifest.json",
            where=str(path.parent),
            hint="use a run's id, `latest`, or the directory that `coreeval refresh` printed; "
            "`coreeval runs` lists the ids",
        ) from None
    except (ValueError, OSError) as error:
        raise RunStateError(
            f"the manifest is damaged: {describe_first_problem(error)}",
            where=str(path),
            hint=_MANIFEST_HINT,
        ) from None


def describe_first_problem(error: Exception) -> str:
    """Return the first validation error with its key; any other error unchanged."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    return ": ".join([".".join(map(str, first["loc"])), message]).removeprefix(": ")


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest as one atomic replacement."""
    write_json(path, manifest.model_dump(mode="json"))


def reopen_manifest(path: Path) -> None:
    """Record that a complete run is unfinished; call this before any result is deleted.

    Raises:
        RunStateError: the manifest is missing or damaged.
    """
    found = read_original_manifest(path)
    if found.status == "complete":
        write_manifest(path, found.model_copy(update={"status": "interrupted"}))
