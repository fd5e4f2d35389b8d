"""The config of a run: frozen values that refuse what cannot work.

`TelemetryConfig` says whether a run sends spans to an OpenTelemetry collector, and how much
they hold.
"""

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from coreeval.config.knowledge import ControlWindow, KnowledgeConfig
from coreeval.config.models import ModelConfig, ModelsConfig, PlainUrl
from coreeval.config.numleak import NumleakConfig
from coreeval.config.schedule import ScheduleConfig
from coreeval.schema import Flag, Policy, Value


class TelemetryConfig(Value):
    """Where spans go; nowhere by default."""

    otlp: PlainUrl | None = None
    """Base URL of a collector that takes OTLP over HTTP; the OTEL_* variables where it is absent.
    Headers with keys come from OTEL_EXPORTER_OTLP_HEADERS."""
    content: bool = False
    """Whether spans hold texts, prompts, answers and news; ids, names and numbers only otherwise.
    """


class LicenceConfig(Value):
    """On what terms a benchmark's texts may be passed on, as their owner has it."""

    name: str
    url: str | None = None
    redistribute: bool = False
    """Whether a release may hold the originals' texts."""


class DatasetConfig(Value):
    """Where the benchmark is and how to read it."""

    format: Literal["tweeteval", "mrpc", "rte", "jsonl", "csv", "tsv", "parquet", "hf"]
    path: str
    """Folder or file, relative to the config; a dataset name for `hf`."""
    split: str = "test"
    train_split: str = "train"
    """Split that embedded targets are fitted on."""
    target: str | None = None
    """TweetEval stance: the target's folder, or `all`."""
    subset: str | None = None
    """Configuration name of an `hf` dataset."""
    columns: dict[str, str] = {}
    """Our field name -> the file's column, for jsonl, csv, tsv, parquet and hf."""
    licence: LicenceConfig | None = None
    """Comes before what is known of the format's benchmark."""

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.target == "all" and self.format != "tweeteval":
            raise ValueError("target: all is for format: tweeteval; here name the one target")
        return self


class RunConfig(Value):
    """How the run behaves."""

    concurrency: Annotated[int, Field(ge=1, le=1024)] = 32
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    seed: int = 7
    on_reject: Literal["drop", "semantic", "original"] = "drop"
    store: Literal["sqlite"] = "sqlite"
    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """Most that the run may cost, all its resumes included."""
    allow_unpriced: bool = False
    """Whether a model without a price may be asked under a budget; what it costs is not counted."""
    prices: str | None = None
    """File of prices that come before the built-in ones."""
    timeout_s: Annotated[float, Field(gt=0)] | None = None
    """Wall clock that one start or resume may take before it stops cleanly."""
    sample_timeout_s: Annotated[float, Field(gt=0)] = 900.0
    """Wall clock that one sample may take before it ends as failed; waiting for its turn at a model
    does not count."""
    control_window: ControlWindow | None = None
    """News that all targets may know: a second pass writes the control arm with it. Off where it is
    absent."""


class StandaloneRunConfig(Value):
    """How asking targets behaves where nothing is refreshed."""

    concurrency: Annotated[int, Field(ge=1, le=1024)] = 32
    seed: int = 7
    """Of what is drawn, and of how items are modified."""
    budget_usd: Annotated[float, Field(gt=0)] | None = None
    """Most that asking under this config's name may cost, all that it has cost so far included."""
    allow_unpriced: bool = False
    """Whether a model without a price may be asked under a budget; what it costs is not counted."""
    prices: str | None = None
    """File of prices that come before the built-in ones."""


class SafetyConfig(Value):
    """What may be done with a sample that is flagged; a flag that is absent keeps its default."""

    abuse: Policy | None = None
    self_harm: Policy | None = None
    protected_group: Policy | None = None
    crime_or_accusation: Policy | None = None
    death_or_illness: Policy | None = None
    sexual_violence: Policy | None = None
    minor: Policy | None = None
    private_person: Policy | None = None
    quotation: Policy | None = None

    def flag_policies(self) -> dict[Flag, Policy]:
        """Return the policy of each flag that the config names."""
        flags: tuple[Flag, ...] = get_args(Flag)
        return {flag: policy for flag in flags if (policy := getattr(self, flag))}


class PcrConfig(Value):
    """Whether a score is memory: CAP's PCR of the train split beside that of the test split."""

    train_split: str | None = None
    """None: the dataset's."""
    samples: Annotated[int, Field(ge=1)] = 500
    """Train items that are drawn and reworded."""
    metric: Literal["accuracy", "macro_f1"] = "accuracy"
    """What counts as performance."""
    exchangeable_splits: bool = False
    """Whether the splits are random parts of one pool: a gap in difficulty is then ruled out."""


class DetectConfig(Value):
    """What is measured after the refresh."""

    evaluate: bool = True
    pcr: PcrConfig | None = None
    """Off where it is absent."""
    numleak: NumleakConfig | None = None
    """Likewise."""

    @property
    def judges(self) -> tuple[ModelConfig, ...]:
        """Return the models that score the utility cost of series defences."""
        defences = self.numleak.defences if self.numleak else None
        return defences.judges if defences else ()

    @property
    def asks_targets(self) -> bool:
        """Return whether anything is measured that requires asking targets."""
        return self.evaluate or self.pcr is not None or self.numleak is not None


class Config(Value):
    """Everything a run may vary."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    task: str
    """A built-in task or the path of a task file."""
    dataset: DatasetConfig
    knowledge: KnowledgeConfig
    models: ModelsConfig
    run: RunConfig = RunConfig()
    detect: DetectConfig = DetectConfig()
    safety: SafetyConfig = SafetyConfig()
    """What may be written into samples that touch real people or do harm (research: pilot §4)."""
    prompts: str | None = None
    """Folder whose *.md files replace the built-in prompts of the same name."""
    schedule: ScheduleConfig | None = None
    """When `coreeval schedule` renews the benchmark; decides nothing about a run."""
    telemetry: TelemetryConfig = TelemetryConfig()
    """Who is told what the run does; decides nothing about it either."""

    @property
    def pcr_train_split(self) -> str:
        """Return the train split that PCR draws from."""
        asked = self.detect.pcr
        return (asked and asked.train_split) or self.dataset.train_split
