"""The config of a run: frozen values that reject invalid settings.

`TelemetryConfig` sets whether a run sends spans to an OpenTelemetry collector, and their content.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from coreeval.config.base import MOST, Count, Section, SplitName
from coreeval.config.knowledge import ControlWindow, KnowledgeConfig
from coreeval.config.models import ROLES, ModelConfig, ModelsConfig, PlainUrl
from coreeval.config.numleak import NumleakConfig
from coreeval.config.plugins import check_choice
from coreeval.config.schedule import ScheduleConfig
from coreeval.schema import Flag, Language, Pipeline, Policy, Seed


class TelemetryConfig(Section):
    """The destination of spans; by default none are sent."""

    otlp: PlainUrl | None = None
    """The base URL of a collector that accepts OTLP over HTTP. Headers with keys are read from
    `OTEL_EXPORTER_OTLP_HEADERS`. None: the standard `OTEL_*` variables apply."""
    content: bool = False
    """Whether spans contain texts, prompts, answers and news; otherwise, they contain only ids,
    names and numbers."""


class LicenceConfig(Section):
    """The terms on which a benchmark's texts may be redistributed, as stated by their owner."""

    name: str
    """The licence, such as `CC-BY-4.0`."""
    url: str | None = None
    """Where the licence can be read."""
    redistribute: bool = False
    """Whether a release may contain the original texts."""


DatasetFormat = Literal[
    "tweeteval", "mrpc", "rte", "squad", "mmlu", "finqa", "ectsum",
    "jsonl", "csv", "tsv", "parquet", "hf",
]  # fmt: skip
FormatName = Annotated[str, AfterValidator(check_choice(get_args(DatasetFormat)))]
"""The name of a built-in format, or of a plugin."""


_PATH_STARTS = ("/", "./", "../", "~")


class DatasetConfig(Section):
    """The location of the benchmark, and how to read it."""

    format: FormatName
    """The format of the benchmark (docs/datasets.md): `tweeteval`, `mrpc`, `rte`, `squad`, `mmlu`,
    `finqa`, `ectsum`, `jsonl`, `csv`, `tsv`, `parquet`, `hf` (extra `hf`), or the format of a
    plugin as `plugin:NAME` or `module:Class` (docs/plugins.md)."""
    path: str
    """A folder or file; links in the folder must not point outside it. For `hf`: the name of the
    dataset, or a folder with its files. A folder beside the config takes precedence over a dataset
    of the same name; `./FOLDER` is always a folder."""
    split: SplitName = "test"
    """The split that is refreshed."""
    train_split: SplitName = "train"
    """The split that embedded targets (docs/targets.md) and the offline label judge learn from."""
    language: Language | None = None
    """The language of the texts as an ISO 639-1 code such as `de` (docs/tasks.md). None: the
    language of the task, which is `en` if the task file does not state one."""
    target: str | None = None
    """For TweetEval stance: the folder of the target, such as `feminism`, or `all`."""
    subset: str | None = None
    """For `hf`: the dataset's configuration."""
    columns: dict[str, str] = {}
    """For `jsonl`, `csv`, `tsv`, `parquet` and `hf`: the file's column for each of CoreEval's
    fields (docs/datasets.md)."""
    licence: LicenceConfig | None = None
    """The terms on which the texts may be redistributed; they decide whether a release
    (docs/releases.md) contains the originals. You may change the licence after a run: `coreeval
    resume RUN` applies the change; a permission that you withdraw applies to the next release at
    once. None: the known licence of the format."""

    @property
    def is_on_hub(self) -> bool:
        """Return whether it is a dataset on the hub; the paths of a loaded config are absolute."""
        return self.format == "hf" and not Path(self.path).is_absolute()

    def resolve(self, at: Callable[[str], str]) -> Self:
        """Return it with an absolute path, unless it is the name of a dataset on the hub.

        A name is a path if it begins like one, or if a folder or file is there.
        """
        place = at(self.path)
        named = self.format == "hf" and not self.path.startswith(_PATH_STARTS)
        if named and not os.access(place, os.F_OK):
            return self
        return self.model_copy(update={"path": place})

    @field_validator("columns", mode="before")
    @classmethod
    def _check_columns(cls, columns: object) -> object:
        given = columns.items() if isinstance(columns, dict) else ()
        for name, column in given:
            if isinstance(column, list):
                each = ", ".join(
                    f"{letter}: {one}" for letter, one in zip(ascii_uppercase, column, strict=False)
                )
                way = f"; map each option: {{{each}}}" if name == "choices" else ""
                raise ValueError(f"{name} is a list, but a name stands for one column{way}")
        return columns

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.target == "all" and self.format != "tweeteval":
            raise ValueError("target: all is only for format: tweeteval; name one target")
        return self


_ADDRESS = r"^(auto|[^\s:/]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5})$"


class RayConfig(Section):
    """The workers of a run on a Ray cluster."""

    address: Annotated[str, Field(pattern=_ADDRESS)] = "auto"
    """The address of the cluster's head as `HOST:PORT`. `auto`: the cluster that this machine
    belongs to."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 2
    """The number of actors that refresh samples. They share `run.concurrency`, `max_in_flight` and
    the limits per minute."""
    cpus_per_worker: Annotated[float, Field(ge=0, le=1024)] = 1
    """The processors that Ray reserves for each worker; fractions are allowed."""
    resources: dict[str, Annotated[float, Field(gt=0, le=MOST)]] = {}
    """Further resources that a node must have for each worker, named as in Ray: `{news: 1}`."""


_WAIT: Final = re.compile(r"^([1-9]\d{0,3})(m|h|d)$")
_UNIT_S: Final = {"m": 60.0, "h": 3600.0, "d": 86400.0}


class BatchConfig(Section):
    """The calls sent through the providers' batch APIs, and their time limit."""

    models: tuple[str, ...] = ()
    """The models of roles and targets whose calls are sent in batches, spelt as in the config.
    Empty: all models whose provider has a batch API."""
    max_wait: Annotated[str, Field(pattern=_WAIT.pattern)] = "24h"
    """The longest time that a batch may take, in `m`, `h` or `d`. After that, the batch is
    cancelled, its answers are kept, and the remaining calls are sent without a batch."""
    live_below: Annotated[float, Field(ge=0, le=1)] = 0.01
    """When the remaining calls are fewer than this share of all calls so far, they are sent without
    a batch."""
    min_batch: Annotated[int, Field(ge=1, le=25_000)] = 50
    """A model with fewer calls than this waits for the next round, as long as another batch is
    open."""
    files: str | None = None
    """A folder to which batches are written as files; a program of yours answers them
    (docs/batches.md). None: batches are sent to the models' endpoints."""

    @property
    def max_wait_s(self) -> float:
        """Return the longest time that a batch may take, in seconds."""
        found = _WAIT.fullmatch(self.max_wait)
        assert found
        return int(found[1]) * _UNIT_S[found[2]]


def _read_batch(said: object) -> object:
    """Read `true` and `false`."""
    if isinstance(said, bool):
        return {} if said else None
    return said


class RunConfig(Section):
    """The settings of a run."""

    concurrency: Annotated[int, Field(ge=1, le=1024)] = 32
    """The maximum number of simultaneous requests to each model without `max_in_flight`. The number
    of samples in progress is a quarter higher, so that some can make calls while others are between
    two calls."""
    engine: Literal["local", "ray"] = "local"
    """Where the processes that refresh samples run: on this machine (`local`), or on a Ray cluster
    (docs/ray.md)."""
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """The number of processes on this machine that refresh samples (docs/run.md). They share
    `concurrency`, `max_in_flight` and the limits per minute."""
    ray: RayConfig = RayConfig()
    """The workers of `engine: ray`; they replace `workers`."""
    batch: Annotated[BatchConfig | None, BeforeValidator(_read_batch)] = None
    """`true` or a mapping: calls are sent to the providers' batch APIs, at half the list price
    (docs/batches.md). None: each call is sent immediately."""
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """The maximum number of times that the updated text of a sample is composed."""
    pipeline: Pipeline = "full"
    """`full`: every role makes its own call. `lean`: the extractor also rewords, and the replacer
    also writes the text (docs/pipeline.md)."""
    label_batch: Annotated[int, Field(ge=1, le=50)] = 10
    """The number of originals that the label judge labels in one call (docs/pipeline.md)."""
    arms: tuple[Literal["semantic", "updated"], ...] = ("semantic", "updated")
    """The arms to write in addition to the original one. `[updated]` saves the calls for
    rewordings; `detect.pcr` and `on_reject: semantic` need the semantic arm."""
    seed: Seed = 7
    """The seed of all random choices. An integer outside 0 to 2^32 - 1 is reduced modulo 2^32."""
    on_reject: Literal["drop", "semantic", "original"] = "drop"
    """What the updated arm contains for a rejected sample: nothing (`drop`), or its semantic or
    original text. Filled rows are marked by `outcome`, and no score uses them."""
    store: Literal["sqlite", "postgresql"] = "sqlite"
    """Where the run and its answers are stored: in files, or in the database of
    `COREEVAL_STORE_URL` (docs/postgresql.md)."""
    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """The maximum cost of the run, including all its resumes (docs/run.md)."""
    max_usd_per_sample: Annotated[float, Field(gt=0)] | None = None
    """If the calls of a sample have cost more than this, no further call is sent for the sample,
    and it fails (docs/run.md)."""
    allow_unpriced: bool = False
    """Whether a model without a price may be used under `budget_usd` or `max_usd_per_sample`; its
    cost is not counted."""
    prices: str | None = None
    """A file of prices that override the built-in ones (docs/cost.md)."""
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    """The time limit in seconds for one start or resume; the run then stops cleanly."""
    sample_timeout_s: Annotated[float, Field(gt=0)] = 900.0
    """The time limit of one sample in seconds, after which it fails; waiting in a model's queue
    does not count."""
    control_window: ControlWindow | None = None
    """`{start: DAY, end: DAY}`: the period of news that all targets may know. A second pass writes
    the control arm with this news (docs/run.md). None: no control arm."""

    def resolve(self, at: Callable[[str], str]) -> Self:
        """Return it with absolute paths."""
        changes: dict[str, object] = {"prices": at(self.prices)} if self.prices else {}
        if self.batch and self.batch.files:
            files = at(self.batch.files)
            changes["batch"] = self.batch.model_copy(update={"files": files})
        return self.model_copy(update=changes)

    @property
    def worker_count(self) -> int:
        """Return the number of processes that refresh samples."""
        return self.ray.workers if self.engine == "ray" else self.workers

    @property
    def has_workers(self) -> bool:
        """Return whether processes other than the command's refresh samples."""
        return self.engine == "ray" or self.workers > 1

    @property
    def workers_key(self) -> str:
        """Return the key of `worker_count`."""
        return "run.ray.workers" if self.engine == "ray" else "run.workers"

    @model_validator(mode="after")
    def _check_arms(self) -> Self:
        if self.batch and self.has_workers:
            raise ValueError(f"batch: only one process sends batches; remove {self.workers_key}")
        if "updated" not in self.arms or len(set(self.arms)) < len(self.arms):
            raise ValueError("arms: must be [semantic, updated] or [updated]")
        if self.on_reject == "semantic" and "semantic" not in self.arms:
            raise ValueError("on_reject: semantic needs semantic in arms")
        return self


class StandaloneRunConfig(Section):
    """The settings for asking targets without a refresh."""

    concurrency: Annotated[int, Field(ge=1, le=1024)] = 32
    """The maximum number of simultaneous requests to each model without `max_in_flight`."""
    seed: Seed = 7
    """The random seed for drawing and modifying items."""
    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """The maximum total cost of all calls made under this config's name, including earlier ones."""
    allow_unpriced: bool = False
    """Whether a model without a price may be used under a budget; its cost is not counted."""
    prices: str | None = None
    """A file of prices that override the built-in ones."""


class SafetyConfig(Section):
    """The policy for samples with each flag; a missing flag keeps its default."""

    abuse: Policy | None = None
    """An insult or a threat."""
    self_harm: Policy | None = None
    """Self-harm or suicide."""
    protected_group: Policy | None = None
    """Hostile words about people because of their religion, origin, sex, orientation or disability.
    """
    crime_or_accusation: Policy | None = None
    """A crime or an accusation."""
    death_or_illness: Policy | None = None
    """A death or an illness."""
    sexual_violence: Policy | None = None
    """Sexual violence."""
    minor: Policy | None = None
    """A particular child."""
    private_person: Policy | None = None
    """A named person who is not a public figure."""
    quotation: Policy | None = None
    """Words attributed to a named person."""

    def flag_policies(self) -> dict[Flag, Policy]:
        """Return the policy of each flag that the config names."""
        flags: tuple[Flag, ...] = get_args(Flag)
        return {flag: policy for flag in flags if (policy := getattr(self, flag))}


class PcrConfig(Section):
    """The settings of PCR, which compares the train split with the test split (CAP)."""

    train_split: SplitName | None = None
    """The train split, from which the items for the comparison are drawn; it must not be the split
    that is refreshed. None: `dataset.train_split`."""
    samples: Count = 500
    """The number of train items to draw and reword. It cannot exceed the number of samples that
    `--limit` allows."""
    metric: Literal["accuracy", "macro_f1"] = "accuracy"
    """The measure of performance."""
    consistency: Literal["exact", "same_answer", "jaccard"] | None = None
    """How the answer to an item is compared with the answer to its rewording: `exact` for labels
    and choices, `same_answer` for answers, `jaccard` for summaries. None: the measure for the kind
    of task."""
    exchangeable_splits: bool = False
    """Whether the splits are random parts of one pool; `true` is your assurance that they are
    (docs/pcr.md)."""


class DetectConfig(Section):
    """What is measured after the refresh."""

    evaluate: bool = True
    """Whether to evaluate the targets on all arms with every template of the task, and to compare
    the scores (docs/targets.md)."""
    pcr: PcrConfig | None = None
    """Compares the targets' PCR on the train split with their PCR on the test split (docs/pcr.md);
    `{}` uses the defaults. None: PCR is not measured."""
    numleak: NumleakConfig | None = None
    """Asks the targets about dated series, and reports whether they remember the values
    (docs/numleak.md). None: memory of series is not measured."""

    @property
    def judges(self) -> tuple[ModelConfig, ...]:
        """Return the models that score the utility cost of series defences."""
        defences = self.numleak.defences if self.numleak else None
        return defences.judges if defences else ()

    def resolve(self, at: Callable[[str], str]) -> Self:
        """Return it with absolute paths."""
        return self.model_copy(update={"numleak": self.numleak and self.numleak.resolve(at)})

    @property
    def compares_splits(self) -> bool:
        """Return whether PCR compares the train split with the test split."""
        return self.pcr is not None

    @property
    def asks_series(self) -> bool:
        """Return whether NumLeak asks about series."""
        return self.numleak is not None

    @property
    def asks_targets(self) -> bool:
        """Return whether any measurement requires asking targets."""
        return self.evaluate or self.compares_splits or self.asks_series


class Config(Section):
    """All settings of a run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """The name under which runs are kept: letters, digits, `.`, `_` and `-`."""
    task: str
    """A built-in task (`multiple_choice`, `reading_comprehension`, `question_answering`,
    `summarization`, `emotion`, `irony`, `stance`, `mrpc`, `rte`), or a path that ends in `.yaml`
    (docs/tasks.md)."""
    dataset: DatasetConfig
    """The benchmark."""
    knowledge: KnowledgeConfig
    """The news."""
    models: ModelsConfig
    """The model for each role, and the models to test."""
    run: RunConfig = RunConfig()
    """The settings of the run."""
    detect: DetectConfig = DetectConfig()
    """What is measured after the refresh."""
    safety: SafetyConfig = SafetyConfig()
    """The limits on what may be written into samples that concern real people or could cause harm
    (research: pilot §4)."""
    prompts: str | None = None
    """A folder whose `*.md` files replace the built-in prompts of the same names (docs/prompts.md).
    """
    schedule: ScheduleConfig | None = None
    """When `coreeval schedule` refreshes the benchmark: a cron expression or a mapping. The
    schedule does not affect a run, so you may change it while a run is unfinished."""
    telemetry: TelemetryConfig = TelemetryConfig()
    """Where the telemetry of a run is sent (docs/telemetry.md). This does not affect the run, so
    you may change it while a run is unfinished: `coreeval resume RUN` applies the change."""

    @model_validator(mode="after")
    def _check_batch_models(self) -> Self:
        asked = (*self.models.targets, *self.detect.judges)
        known = {self.models.for_role(role).model for role in ROLES}
        known |= {model.model for model in asked}
        for name in self.run.batch.models if self.run.batch else ():
            if name not in known:
                raise ValueError(f"run.batch.models: {name!r} is not a model in this config")
        return self

    @model_validator(mode="after")
    def _check_arms(self) -> Self:
        if self.detect.pcr and "semantic" not in self.run.arms:
            raise ValueError(
                "detect.pcr compares texts with their rewordings: it needs semantic in run.arms"
            )
        return self

    @property
    def pcr_train_split(self) -> str:
        """Return the train split that PCR draws from."""
        asked = self.detect.pcr
        return (asked and asked.train_split) or self.dataset.train_split

    @property
    def pcr_split_key(self) -> str:
        """Return the key that names the train split that PCR draws from."""
        asked = self.detect.pcr
        return f"{'detect.pcr' if asked and asked.train_split else 'dataset'}.train_split"

    @property
    def pcr_samples(self) -> int:
        """Return the maximum number of train items that PCR draws; 0 without PCR or targets."""
        asked = self.detect.pcr
        return asked.samples if asked and self.models.targets else 0
