"""The samples of a run: as a table with their texts, and the history of one of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coreeval.api.tables import Cell, CellKind, Result, Row, Table, parse_columns
from coreeval.runs.arms import accepted_fields, semantic_fields
from coreeval.runs.history import SampleHistory, build_history_document
from coreeval.runs.sample_reader import open_sample_reader, read_outcomes
from coreeval.schema import Arm, Evidence, ReplacedFact, Triple
from coreeval.tools.stores.run_queries import ListRow, SampleFilter
from coreeval.tools.stores.run_tables import SampleResult

if TYPE_CHECKING:
    from pydantic import JsonValue

_SAMPLE_COLUMNS: Final = parse_columns(
    "sample label outcome reason attempts:integer calls:integer usd:number seconds:number"
)
_ARMS: Final[tuple[Arm, ...]] = ("original", "semantic", "updated")


def list_samples(
    run: Path, *, outcomes: Sequence[str] = (), label: str | None = None, text: str = ""
) -> Table:
    """Return the samples of a run; the arguments and columns are those of `Run.samples`.

    Raises:
        UsageError: there is no such outcome.
        RunCorrupt: run.db is damaged or missing.
    """
    chosen = SampleFilter(outcomes=read_outcomes(outcomes), label=label, text=text)
    with open_sample_reader(run) as reader:
        total = max(1, reader.store.total())
        rows = reader.store.listing.page(
            chosen, sort="order", descending=False, offset=0, limit=total
        ).rows
        texts = {each.sample.id: _arm_texts(each) for each in reader.store.sample_results()}
    fields = dict.fromkeys(name for arms in texts.values() for name in arms["original"])
    names: dict[str, CellKind] = {f"{arm}_{name}": "text" for name in fields for arm in _ARMS}
    cells = (_sample_row(row, texts.get(row.sample, {}), list(fields)) for row in rows)
    return Table("samples", _SAMPLE_COLUMNS | names, cells)


ArmTexts = Mapping[Arm, Mapping[str, str]]


def _arm_texts(ended: SampleResult) -> ArmTexts:
    return {
        "original": ended.sample.fields,
        "semantic": semantic_fields(ended) or {},
        "updated": accepted_fields(ended) or {},
    }


def _sample_row(row: ListRow, texts: ArmTexts, fields: Sequence[str]) -> list[Cell]:
    known: list[Cell] = [getattr(row, name) for name in _SAMPLE_COLUMNS]
    return known + [texts.get(arm, {}).get(name) for name in fields for arm in _ARMS]


@dataclass(frozen=True, kw_only=True, repr=False)
class SampleTrace(Result):
    """The history of one sample in a run."""

    history: SampleHistory
    offline_roles: tuple[str, ...]
    """The roles played by rules."""

    @property
    def outcome(self) -> str:
        """The sample's outcome, or `pending`."""
        return self.history.result.outcome if self.history.result else "pending"

    @property
    def reason(self) -> str:
        """The reason that it was not accepted; empty if it was."""
        return self.history.result.reason if self.history.result else ""

    @property
    def texts(self) -> Mapping[Arm, Mapping[str, str]]:
        """The text fields of the sample by arm; an arm is missing if it has no such text."""
        result = self.history.result
        found: dict[Arm, Mapping[str, str] | None] = {
            "original": self.history.sample.fields,
            "semantic": result.semantic if result else None,
            "updated": result.updated if result else None,
        }
        return {arm: fields for arm, fields in found.items() if fields}

    @property
    def steps(self) -> Table:
        """The steps in order: `step, node, attempt, started_at, seconds, calls, usd, error`."""
        return self.table

    @property
    def facts(self) -> Table:
        """The replaced facts: `field, before, after, published_at, domain, url, snippet`."""
        result, evidence = self.history.result, self.history.evidence
        facts = result.facts if result else ()
        rows = [_fact_row(fact, evidence.get(fact.evidence_id)) for fact in facts]
        return Table("replaced facts", _FACT_COLUMNS, rows)

    @property
    def calls(self) -> Table:
        """The calls of models: `step, role, model, answer, error, cached, tokens, usd, seconds`."""
        rows: list[Row] = [
            (
                step.number,
                call.role,
                call.model,
                call.answer,
                call.error,
                call.cached,
                call.prompt_tokens + call.completion_tokens,
                call.usd,
                call.seconds,
            )
            for step in self.history.steps
            for call in step.calls
        ]
        return Table("calls", _CALL_COLUMNS, rows)

    @property
    def document(self) -> "dict[str, JsonValue]":
        """The document that `coreeval trace RUN SAMPLE --json` prints."""
        return build_history_document(self.history) | {"offline_roles": list(self.offline_roles)}

    @property
    def summary(self) -> str:
        """The sample's outcome, in a line."""
        why = f": {self.reason}" if self.reason else ""
        return f"sample {self.history.sample.id}: {self.outcome}{why}"

    @property
    def table(self) -> Table:
        """The steps."""
        rows: list[Row] = [
            (
                step.number,
                step.node,
                step.attempt,
                step.started_at,
                step.seconds,
                len(step.calls),
                _sum_usd([call.usd for call in step.calls]),
                step.error,
            )
            for step in self.history.steps
        ]
        return Table("steps", _STEP_COLUMNS, rows)


def _fact_row(fact: ReplacedFact, found: Evidence | None) -> Row:
    news = (found.published_at, found.domain, found.url, found.snippet) if found else (None,) * 4
    return (fact.field, fact.before and _join(fact.before), _join(fact.after), *news)


def _join(fact: Triple) -> str:
    return f"{fact.head} | {fact.relation} | {fact.tail}"


def _sum_usd(prices: Sequence[float | None]) -> float | None:
    known = [usd for usd in prices if usd is not None]
    return sum(known) if len(known) == len(prices) else None


_FACT_COLUMNS: Final = parse_columns("field before after published_at:time domain url snippet")
_CALL_COLUMNS: Final = parse_columns(
    "step:integer role model answer error cached:boolean tokens:integer usd:number seconds:number"
)
_STEP_COLUMNS: Final = parse_columns(
    "step:integer node attempt:integer started_at:time seconds:number calls:integer usd:number "
    "error"
)


def trace_sample(run: Path, sample: str) -> SampleTrace:
    """Return the history of a sample of a run.

    Raises:
        UsageError: there is no such sample.
        RunCorrupt: run.db is damaged or missing.
    """
    with open_sample_reader(run) as reader:
        return SampleTrace(history=reader.story(sample), offline_roles=tuple(reader.offline_roles))
