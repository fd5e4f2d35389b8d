"""Configs and estimates: reading a config, and estimating the cost of its run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.tables import Result, Row, Table, parse_columns
from coreeval.config import Config, ConfigLike, read_config
from coreeval.errors import UsageError
from coreeval.evaluation.benchmarks.subset import SampleOrder, build_subset
from coreeval.graph.estimate.model import CostEstimate, EstimateLine, Range
from coreeval.graph.estimate.preview import preview as preview_run
from coreeval.graph.estimate.run_estimate import estimate as estimate_run
from coreeval.tools.env_file import hold_env_file
from coreeval.tools.formatting import format_amount, format_expected_usd, format_quantity
from coreeval.tools.trust import retry_with_trust

if TYPE_CHECKING:
    from pydantic import JsonValue


def load_config(config: ConfigLike, *, overrides: Sequence[str] = ()) -> Config:
    """Return a checked config with absolute paths.

    Args:
        config: The path of a YAML config, or a mapping with the same keys; its relative paths start
            at the current folder.
        overrides: `key.path=value` settings that override the config's.

    Raises:
        ConfigError: the file does not exist or is not YAML, or the config has an unknown key or a
            value of the wrong kind.
    """
    return read_config(config, overrides).config


class Estimate(Result, CostEstimate):
    """The cost of a run as a range, with a line for each role and model."""

    @property
    def usd(self) -> Range | None:
        """The cost in US dollars as a range; None if a model that is asked has no known price."""
        return self.totals.usd

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval estimate --json` prints."""
        return self.model_dump(mode="json")

    @property
    def summary(self) -> str:
        """The likely totals, in a line."""
        return summarize_estimate(self)

    @property
    def table(self) -> Table:
        """A row for each role and model: likely calls and tokens, and the cost as a range."""
        return Table(f"estimate of {self.name}", _COLUMNS, map(_line_row, self.lines))

    def _remarks(self) -> tuple[str, ...]:
        return tuple(f"note: {note}" for note in self.notes)


_COLUMNS: Final = parse_columns(
    "role stage model calls:number prompt_tokens:number cached_tokens:number "
    "completion_tokens:number usd_low:number usd:number usd_high:number"
)


def _line_row(line: EstimateLine) -> Row:
    usd = line.usd
    return (
        line.role,
        line.stage,
        line.model,
        line.calls.likely,
        line.prompt_tokens.likely,
        line.cached_tokens.likely,
        line.completion_tokens.likely,
        *((usd.low, usd.likely, usd.high) if usd else (None, None, None)),
    )


def summarize_estimate(estimate: CostEstimate) -> str:
    """Return the likely totals on one line, to show before models are asked."""
    totals = estimate.totals
    if totals.usd is None:
        money = f"at an unknown price ({', '.join(one.model for one in estimate.unpriced)})"
    else:
        ends = (totals.usd.low, totals.usd.likely, totals.usd.high)
        low, likely, high = map(format_expected_usd, ends)
        money = f"{likely} USD ({low} to {high})"
    return (
        f"{estimate.name}: {format_quantity(estimate.samples, 'item')}, "
        f"{format_quantity(totals.calls.likely, 'call')}, "
        f"{format_amount(totals.prompt_tokens.likely)} prompt tokens, "
        f"{format_amount(totals.completion_tokens.likely)} answer tokens, {money}"
    )


@hold_env_file()
def estimate(
    config: ConfigLike,
    *,
    limit: int | None = None,
    sample: SampleOrder = "first",
    ids: Sequence[str] = (),
    labels: Sequence[str] = (),
    rows: int | None = None,
    preview: int | None = None,
    overrides: Sequence[str] = (),
    parent: Path | str | None = None,
    stale_after: str | None = None,
    trust_endpoints: bool = False,
) -> Estimate:
    """Estimate the calls, tokens, cost and time of a run; nothing is spent without `preview`.

    Args:
        config: The path of a YAML config, or a config in memory.
        limit: Take only this many samples.
        sample: With `limit`, the way samples are selected.
        ids: Take only the samples with these ids.
        labels: Take only the samples with these labels.
        rows: Make the estimate for this many samples similar to those in the config's benchmark.
        preview: Refresh this many samples, and base the estimate on them.
        overrides: `key.path=value` settings that override the config's.
        parent: The release whose samples are kept if they are still valid, or `latest`.
        stale_after: The maximum age of a kept sample's evidence: `90d`, `12w`, `6m`.
        trust_endpoints: With `preview`: send keys and texts to the config's endpoints without
            confirmation, and remember this choice.

    Raises:
        UsageError: the config, the benchmark, the prices or the release cannot be used, or two
            arguments cannot be used together.
        RunError: a preview could not continue; it can be resumed.
    """
    if preview is not None and parent is not None:
        raise UsageError("preview and parent cannot be used together", where="estimate()")
    if rows is not None and (limit or ids or labels or parent):
        raise UsageError(
            "rows cannot be used with limit, ids, labels or parent", where="estimate()"
        )
    subset = build_subset(limit, sample, ids, labels)
    first = None if subset else limit

    def make() -> CostEstimate:
        if preview is not None:
            return preview_run(
                config, preview, limit=first, subset=subset, rows=rows, overrides=overrides
            )
        return estimate_run(
            config,
            limit=first,
            subset=subset,
            rows=rows,
            overrides=overrides,
            parent=parent,
            stale_after=stale_after,
        )

    made = retry_with_trust(make, lambda _: trust_endpoints)
    return Estimate.model_validate(made.model_dump())
