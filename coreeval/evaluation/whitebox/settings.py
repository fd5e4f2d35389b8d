"""The training settings of a contamination test."""

from typing import Literal

from pydantic import Field

from coreeval.schema import Value


class TrainingSettings(Value):
    """The training settings; the defaults are those of the paper (appendix C.2)."""

    method: Literal["lora", "full"] = "lora"
    epochs: int = Field(default=3, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    batch: int = Field(default=8, ge=1)
    rank: int = Field(default=16, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_tokens: int = Field(default=400, ge=16)
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """The precision of the arithmetic; `auto` is bfloat16 on a GPU and float32 on a CPU."""

    @property
    def alpha(self) -> int:
        """Return the scale of the adapters: twice their rank."""
        return 2 * self.rank


class StudyHeader(Value):
    """The definition of a contamination test: the first line of its result file."""

    study: str
    """The first characters of the hash of everything that results depend on."""
    model: str
    revision: str
    """The commit of the hub, or the hash of the weights files."""
    device: str
    training: TrainingSettings
    samples: int
    """The number of samples of each arm."""
    train: int
    held_out: int
    fingerprint: str
    """The hash of all texts and labels."""
    is_encoder: bool = False
    """Whether the model is an encoder with a classification head that starts from random values."""
