"""Gates: limits that a release must meet before it is published."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.places import ReleaseLike, find_release
from coreeval.api.tables import Result, Row, Table, parse_columns
from coreeval.releases.gates.check import GateFinding, GateResult, check_release, format_verdict
from coreeval.releases.gates.limits import (
    Gates,
    load_default_gates,
    load_gates,
    parse_gates,
    resolve_gates,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

GatesLike = Path | str | Mapping[str, object] | Gates
"""Limits: the path of a file, `default`, a mapping with the same keys, or the value itself."""


class GateReport(Result, GateResult):
    """The findings of the gates of a release: `passed`, and `gates` with each finding."""

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval gate --json` prints, without the paths of files."""
        return {**self.model_dump(mode="json"), "passed": self.passed}

    @property
    def summary(self) -> str:
        """Whether the release may be published, in a line."""
        return format_verdict(self)

    @property
    def table(self) -> Table:
        """A row for each gate: its status, value, limit, and what to do."""
        return Table("gates", _GATE_COLUMNS, map(_gate_row, self.gates))


def _gate_row(found: GateFinding) -> Row:
    score = found.score
    value = (score.estimate, score.ci_low, score.ci_high) if score else (None,) * 3
    where = (found.limit, found.reason, found.hint)
    return (found.gate, found.status, found.of, found.verdict, *value, *where)


_GATE_COLUMNS: Final = parse_columns(
    "gate status of verdict estimate:number ci_low:number ci_high:number limit reason hint"
)


def gate(
    release: ReleaseLike,
    *,
    gates: GatesLike | None = None,
    report: Path | str | None = None,
    chain: bool = True,
) -> GateReport:
    """Check whether a release meets its gates.

    Args:
        release: The release: its directory, the id of its run, or a `Release`.
        gates: The gates; by default, those that `coreeval gate --print-config` prints.
        report: The run's report.json, if targets were evaluated after the release.
        chain: Whether the earlier releases must exist and be unchanged.

    Raises:
        ConfigError: the gates cannot be read.
        ReleaseError: there is no release, or it cannot be read.
        RunStateError: the report is missing, or belongs to another run.
    """
    found = check_release(
        find_release(release),
        load_default_gates() if gates is None else read_gates(gates),
        report=None if report is None else Path(report),
        chain=chain,
    )
    return GateReport.model_validate(found.model_dump())


def read_gates(gates: GatesLike) -> Gates:
    """Return the limits, which may be given in several forms.

    Raises:
        ConfigError: the file is missing or not YAML, a gate is unknown, or a limit is invalid.
    """
    if isinstance(gates, Gates):
        return gates
    if isinstance(gates, Mapping):
        return parse_gates(gates, "<gates>")
    found = resolve_gates(gates, base=Path()) if isinstance(gates, str) else load_gates(gates)
    assert found is not None, "a name of gates is given"
    return found
