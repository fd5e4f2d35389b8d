"""The configs of asking targets about items or dated series alone, without a run."""

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from coreeval.config.models import (
    ModelConfig,
    TargetConfig,
    require_distinct_targets,
    require_tested_target,
)
from coreeval.config.numleak import NumleakConfig
from coreeval.config.run import StandaloneRunConfig
from coreeval.schema import Value

ItemFormat = Literal["fineval", "finqa", "alphafin", "ectsum", "jsonl"]
ITEM_FORMATS: tuple[ItemFormat, ...] = get_args(ItemFormat)


class ItemDatasetConfig(Value):
    """Where the items are and how to read them."""

    format: ItemFormat
    path: str
    """Folder with a file for each split, relative to the config."""


class ItemModelsConfig(Value):
    """Who is asked, and who puts items into other words."""

    targets: Annotated[tuple[TargetConfig, ...], Field(min_length=1)]
    rewriter: ModelConfig | None = None
    """Writes paraphrases; needed for no other modification."""

    @model_validator(mode="after")
    def _check_models(self) -> Self:
        require_distinct_targets(self.targets)
        require_tested_target(self.targets)
        embedded = [target.model for target in self.targets if target.is_embedded]
        if embedded:
            raise ValueError(
                f"{embedded[0]} cannot be asked: it is a small classifier of labelled samples, and "
                "items want an answer in words; coreeval evaluate RUN asks it"
            )
        if self.rewriter and self.rewriter.is_rule_based:
            raise ValueError(
                f"rewriter: only a model writes paraphrases, not {self.rewriter.model}"
            )
        return self


class ItemPcrConfig(Value):
    """What is compared; what is absent is the benchmark's own, as in the CAP paper."""

    train_split: str | None = None
    test_split: str | None = None
    samples: Annotated[int, Field(ge=1)] = 500
    """Most items of each split that are asked about."""
    modification: Literal["option_shuffle", "year_shift", "paraphrase"] | None = None
    modified: str | None = None
    """Folder of recorded modified items, in place of a modification."""
    floor: Annotated[float, Field(ge=0, le=1)] | None = None
    """Least similarity of a paraphrase to its item."""
    answer: Literal["text", "letter"] = "text"
    """What is scored where there are options: the whole answer, as in the CAP paper, or the letter
    that it chooses; an answer that chooses none clearly stays as it is."""
    metric: str | None = None
    consistency: str | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """Cosine similarity from which two answers mean the same."""
    embeddings: str = "minilm"
    """For paraphrases, and for cosine consistency."""
    alpha: Annotated[float, Field(ge=0)] | None = None
    scale: Literal["tanh", "linear", "sigmoid"] = "tanh"
    exchangeable_splits: bool = False
    """Whether the splits are random parts of one pool: a gap in difficulty is then ruled out."""

    @model_validator(mode="after")
    def _check_modification(self) -> Self:
        if self.modified and self.modification:
            raise ValueError("modified items are recorded or made: give modified or modification")
        return self


class ItemDetectConfig(Value):
    """What is measured."""

    pcr: ItemPcrConfig = ItemPcrConfig()


class ItemConfig(Value):
    """Everything that asking about items may vary."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    dataset: ItemDatasetConfig
    models: ItemModelsConfig
    run: StandaloneRunConfig = StandaloneRunConfig()
    detect: ItemDetectConfig = ItemDetectConfig()


class SeriesModelsConfig(Value):
    """Who is asked."""

    targets: Annotated[tuple[TargetConfig, ...], Field(min_length=1)]
    """Models, and `offline:NAME` of the embedded personas."""

    @model_validator(mode="after")
    def _check_targets(self) -> Self:
        require_distinct_targets(self.targets)
        return self


class SeriesDetectConfig(Value):
    """What is measured."""

    numleak: NumleakConfig


class SeriesConfig(Value):
    """Everything that asking about series may vary."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    models: SeriesModelsConfig
    run: StandaloneRunConfig = StandaloneRunConfig()
    detect: SeriesDetectConfig
    cutoffs: str | None = None
    """File of training cutoffs that come before the built-in ones."""
