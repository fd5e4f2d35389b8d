"""The content of gates files, reading them, and the default gates of the package.

Each gate also states which part of an interval is compared.
"""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, ValidationError, create_model, field_validator, model_validator

from coreeval.config.load import read_mapping
from coreeval.config.user_files import parse_yaml
from coreeval.config.validation import explain_validation_error
from coreeval.evaluation.comparability.verdict import Verdict
from coreeval.evaluation.detectors import GATED
from coreeval.evaluation.detectors.base import Detector
from coreeval.paths import expand_home
from coreeval.schema import Value

Side = Literal["estimate", "ci_low", "ci_high"]
FiniteNumber = Annotated[float, Field(strict=True, allow_inf_nan=False)]
MissingPolicy = Literal["fail", "skip"]


class Gate(Value):
    """One gate of a file."""

    missing: MissingPolicy = "fail"
    """The action if the release does not have the value."""

    @model_validator(mode="before")
    @classmethod
    def _is_a_mapping(cls, value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError(f"a gate is a mapping such as {cls.example}, not {value!r}")
        return value

    example: ClassVar[str] = "{max: 0.1}"


class Limit(Gate):
    """Lower and upper bounds of a number."""

    min: FiniteNumber | None = None
    max: FiniteNumber | None = None
    lowest: ClassVar[float] = 0.0
    highest: ClassVar[float] = 1.0
    unit: ClassVar[str] = "a share"

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        given = [each for each in (self.min, self.max) if each is not None]
        if not given:
            raise ValueError("it has neither min nor max")
        for each in given:
            if not self.lowest <= each <= self.highest:
                raise ValueError(f"{each:g} is not possible: {self._range()}")
        if len(given) == 2 and given[0] > given[1]:
            raise ValueError(
                f"min {given[0]:g} is more than max {given[1]:g}: no value satisfies both"
            )
        return self

    def _range(self) -> str:
        if self.highest == float("inf"):
            return f"{self.unit} is {self.lowest:g} or more"
        return f"{self.unit} is between {self.lowest:g} and {self.highest:g}"

    def side(self, bound: Literal["min", "max"]) -> Side:
        """Return which part of a value is compared with the minimum or the maximum."""
        del bound
        return "estimate"


class IntervalLimit(Limit):
    """The bounds of a value that has an interval.

    By default the value itself is compared, because it covers all samples of this release; the
    interval shows the possible values of another benchmark of this kind.
    """

    by: Side | None = None

    def side(self, bound: Literal["min", "max"]) -> Side:
        """Return the part of a value to compare with a bound: `by` if set, or the value itself."""
        return self.by or super().side(bound)


class CostLimit(Limit):
    """Bounds in US dollars."""

    highest: ClassVar[float] = float("inf")
    unit: ClassVar[str] = "an amount in US dollars"


class RatioLimit(Limit):
    """Bounds of a ratio, which may exceed 1; of a median, the value itself is compared."""

    highest: ClassVar[float] = float("inf")
    unit: ClassVar[str] = "a ratio"


class CountLimit(Limit):
    """Bounds of a number of samples."""

    highest: ClassVar[float] = float("inf")
    unit: ClassVar[str] = "a number of samples"


class RankLimit(IntervalLimit):
    """Bounds of a rank correlation.

    By default the gate fails only if the whole interval is beyond the limit. With few samples,
    targets of similar quality swap ranks by chance, and users soon remove a gate that fails by
    chance.
    """

    method: Literal["kendall", "spearman"] = "kendall"
    lowest: ClassVar[float] = -1.0
    unit: ClassVar[str] = "a rank correlation"

    def side(self, bound: Literal["min", "max"]) -> Side:
        """Return the part of a value to compare with a bound: `by` if set, else the nearest end."""
        return self.by or ("ci_high" if bound == "min" else "ci_low")


class ForbiddenVerdicts(Gate):
    """Forbidden verdicts of a detector on any target or part of one."""

    forbid: Annotated[tuple[str, ...], Field(min_length=1)]
    known: ClassVar[frozenset[str]] = frozenset()
    """The verdicts that the detector can give."""

    @field_validator("forbid")
    @classmethod
    def _are_known(cls, forbid: tuple[str, ...]) -> tuple[str, ...]:
        for verdict in forbid:
            if verdict not in cls.known:
                known = ", ".join(map(repr, sorted(cls.known)))
                raise ValueError(f"{verdict!r} is not a verdict; the verdicts are {known}")
        return forbid


class ComparabilityVerdicts(ForbiddenVerdicts):
    """Forbidden verdicts of the comparison of both arms."""

    known: ClassVar[frozenset[str]] = frozenset(get_args(Verdict))
    example: ClassVar[str] = "{forbid: [not_comparable]}"


def _forbid_verdicts(detector: Detector) -> type[ForbiddenVerdicts]:
    """Return the gate class of one detector."""
    remembered = [name for name, said in detector.verdicts.items() if said == "remembered"]

    class DetectorGate(ForbiddenVerdicts):
        known = frozenset(detector.verdicts)
        example = f"{{forbid: [{remembered[-1]}]}}"

    return DetectorGate


class NumberGates(Value):
    """The numeric gates of a file."""

    label_noise: Limit | None = None
    acceptance: IntervalLimit | None = None
    label_acceptance: IntervalLimit | None = None
    balance_shift: Limit | None = None
    overlap: Limit | None = None
    evidence: IntervalLimit | None = None
    after_cutoff: IntervalLimit | None = None
    still_stale: IntervalLimit | None = None
    cost_usd: CostLimit | None = None
    cost_per_accepted_usd: CostLimit | None = None
    length_ratio: RatioLimit | None = None
    structure_share: IntervalLimit | None = None
    event_reuse: CountLimit | None = None
    rank_correlation: RankLimit | None = None

    @model_validator(mode="before")
    @classmethod
    def _names_gates(cls, value: object) -> object:
        if not value:
            raise ValueError("it contains no gates")
        if not isinstance(value, dict):
            raise ValueError("it must be a mapping of gates to limits")
        for name, said in value.items():
            if said is None:
                raise ValueError(f"{name} is empty; remove it, or set a limit")
        return value


_VERDICT_GATES: Any = {"comparability": (ComparabilityVerdicts | None, None)} | {
    name: (_forbid_verdicts(detector) | None, None) for name, detector in GATED.items()
}
Gates = create_model("Gates", __base__=NumberGates, **_VERDICT_GATES)
"""The gates of a file in the order of the report: numbers, then verdicts on arms and targets."""


class GatesFile(Value):
    """The content of a file of gates."""

    gates: Gates


DEFAULT_NAME = "default"
"""Selects the default gates instead of a file."""
GATES_PAGE = "coreeval docs gates"
PRINT_COMMAND = "coreeval gate --print-config > gates.yaml"
"""The command that prints a file to start from."""


def read_default_text() -> str:
    """Return the default gates as the text of a file that gives the reason for each limit."""
    return resources.files("coreeval.releases.gates").joinpath("defaults.yaml").read_text("utf-8")


def load_default_gates() -> Gates:
    """Return the default gates."""
    return parse_gates(parse_yaml(read_default_text()), "the default gates")


def resolve_gates(said: str | None, *, base: Path) -> Gates | None:
    """Return the requested gates: a file, relative to `base`, or `default`; None for none.

    Raises:
        ConfigError: as `load_gates`.
    """
    if said is None:
        return None
    return load_default_gates() if said == DEFAULT_NAME else load_gates(base / expand_home(said))


def load_gates(path: Path) -> Gates:
    """Read a file of gates.

    Raises:
        ConfigError: the file is missing or not YAML, a gate is unknown, or a limit is invalid.
    """
    return parse_gates(read_mapping(path, written_by=PRINT_COMMAND), str(path))


def parse_gates(raw: Mapping[str, object], where: str) -> Gates:
    """Return gates from a mapping; `where` is its name in errors.

    Raises:
        ConfigError: a gate is unknown, or a limit is invalid.
    """
    try:
        return GatesFile.model_validate(raw).gates
    except ValidationError as error:
        raise explain_validation_error(error, GatesFile, where, docs=GATES_PAGE) from None
