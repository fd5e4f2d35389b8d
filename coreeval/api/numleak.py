"""`coreeval.numleak`: does a model remember the values of a dated series? (NumLeak's audit)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pydantic import ValidationError

from coreeval.api.arguments import require_draws, require_number, require_seed
from coreeval.api.rows import (
    DATE,
    PathLike,
    Rows,
    count_bad_rows,
    is_path,
    list_rows,
    make_bad_table,
    number_rows,
    to_date_text,
)
from coreeval.api.series_values import (
    SERIES,
    Day,
    OneSeries,
    SeriesTerms,
    Values,
    read_series,
    split_series,
)
from coreeval.api.tables import Cell, CellKind, Result, Table
from coreeval.errors import UsageError
from coreeval.evaluation.benchmarks.files import Records
from coreeval.evaluation.numleak.audit import Audit
from coreeval.evaluation.numleak.memory_verdicts import Verdict, verdict_words
from coreeval.evaluation.numleak.parsing.answer_unit import are_in_percent
from coreeval.evaluation.numleak.periods import Frequency
from coreeval.evaluation.numleak.recorded_answers import (
    AuditInput,
    AuditOutcome,
    audit_answers,
    find_known_cutoffs,
    find_last_day,
    list_unused_series,
    load_series,
)
from coreeval.evaluation.numleak.replies import Reply, collect_replies, read_replies
from coreeval.evaluation.numleak.series import list_definitions
from coreeval.evaluation.numleak.series.own_values import make_series_id
from coreeval.evaluation.numleak.statistics import AuditSettings
from coreeval.schema import BadRow

if TYPE_CHECKING:
    from pydantic import JsonValue

Answers = Rows | PathLike
"""Answers to a series' questions: rows, or the path of a file of them."""
Cutoff = str | date
"""The end of a model's training data: 2025-03-15, 2025-03 or a Python date."""
SOURCE = "<answers>"
_DATES = (DATE, "other_date", "shown_date")
_METRICS = ("parse_rate", "pearson_r", "mae", "within_tolerance", "sign_accuracy")
_COLUMNS: dict[str, CellKind] = {
    "model": "text", "series": "text", "verdict": "text", "n": "integer", "dates": "integer",
    "parsed": "integer", "tolerance": "number",
    **{f"{name}{end}": "number" for name in _METRICS for end in ("", "_low", "_high")},
    "p_adjusted": "number", "cutoff": "text", "reasons": "texts", "notes": "texts",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class NumleakResult(Result):
    """The verdicts on each model's memory of each series."""

    outcome: AuditOutcome
    """The audits, as computed by the command."""
    bad: tuple[BadRow, ...] = ()
    """The rows of `values` that are not values."""

    @property
    def document(self) -> "Mapping[str, JsonValue]":
        """The document that `coreeval detect numleak --responses FILE --json` prints."""
        whole = {**self.outcome.document, "plots": [], "page": None}
        return cast("Mapping[str, JsonValue]", whole)

    @property
    def verdicts(self) -> Mapping[tuple[str, str], Verdict]:
        """The verdict by model and series."""
        return {(one.model, one.series): one.verdict for one in self.outcome.audits}

    @property
    def verdict(self) -> Verdict:
        """The verdict on the only model's memory of the only series.

        Raises:
            UsageError: there are several models or series.
        """
        return self._only.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for the only verdict, one sentence each."""
        return self._only.reasons

    @property
    def table(self) -> Table:
        """One row per model and series: the verdict, and each metric with its 95 % interval."""
        return Table.from_dicts("audits", _COLUMNS, self._rows())

    @property
    def bad_rows(self) -> Table:
        """The rows that are neither answers nor values, each with the reason."""
        read = (BadRow.model_validate(row) for row in self.outcome.document["bad_rows"])
        return make_bad_table((*read, *self.bad))

    @property
    def left_out(self) -> Table:
        """The answers that could not be counted, each with the reason."""
        cells = (
            (one.model, one.series, bad.reply.date, bad.reply.variant, bad.reason)
            for one in self.outcome.audits
            for bad in one.left_out
        )
        columns: dict[str, CellKind] = dict.fromkeys(
            ("model", "series", "date", "variant", "reason"), "text"
        )
        return Table("answers left out", columns, cells)

    @property
    def summary(self) -> str:
        """The verdicts with their first reasons, in a line."""
        said = [
            f"{one.model}, {one.series}: {verdict_words(one.verdict)}"
            + (f": {one.reasons[0]}" if one.reasons else "")
            for one in self.outcome.audits
        ]
        return "; ".join([*said, *count_bad_rows(self.bad_rows)])

    def draw(self, folder: PathLike) -> list[Path]:
        """Plot the answers and the true values to .svg files in a folder; return their paths.

        Raises:
            UsageError: matplotlib is not installed.
        """
        from coreeval.evaluation.numleak.plots import draw_audits

        return list(draw_audits(Path(folder), self.outcome.audits))

    def write_page(self, path: PathLike) -> Path:
        """Write all results to one HTML page; return its path."""
        from coreeval.evaluation.numleak.audit_page import write_page

        return write_page(Path(path), self.outcome.audits, dict(self.document))

    @property
    def _only(self) -> Audit:
        found = self.outcome.audits
        if len(found) != 1:
            names = ", ".join(f"{one.model} on {one.series}" for one in found)
            raise UsageError(
                f"there are {len(found)} audits: {names}",
                where="coreeval.numleak",
                hint="use .verdicts, .table or .document, which have all of them",
            )
        return found[0]

    def _rows(self) -> Iterator[dict[str, Cell]]:
        for one in self.outcome.document["series"]:
            row: dict[str, Cell] = {name: one.get(name) for name in _COLUMNS}
            for name in _METRICS:
                metric = one[name]
                row |= {name: metric["estimate"], f"{name}_low": metric["ci_low"]}
                row[f"{name}_high"] = metric["ci_high"]
            yield row | {name: tuple(one[name]) for name in ("reasons", "notes")}


def numleak(
    answers: Answers,
    values: Values | None = None,
    *,
    name: str | None = None,
    quantity: str = "value",
    unit: str | None = None,
    frequency: Frequency | None = None,
    tolerances: Sequence[float] = (),
    model: str = "model",
    cutoff: Cutoff | Mapping[str, Cutoff] | None = None,
    draws: int = 2_000,
    seed: int = 0,
) -> NumleakResult:
    """Find out from a model's answers whether it remembers the values of a dated series.

    This is `coreeval detect numleak --responses` for answers and values in memory; no YAML file is
    needed. Ask for the value of each date, and record the answers with their dates.

    Args:
        answers: One row per answer: `date` and `response`, and optionally `model`, `series`,
            `variant`, `truth` and the other keys of a recorded answer (coreeval docs numleak). The
            rows are a list of dicts, a data frame, an Arrow table or the path of a JSON Lines file.
        values: The true values, keyed by date: a mapping, a list of (date, number), rows with
            `date` and `value`, or a pandas series with an index of dates; the id of a built-in
            series or the YAML file of one; or a mapping from the name of each series to one of
            these. None to use the `truth` in the answers.
        name: The name of the series; by default, the name in the answers, or "series".
        quantity: The quantity that the values measure, such as "monthly return".
        unit: The name of a built-in unit, such as "percent", or a unit of your own. None: percent
            if most answers with a unit have no numbers beside those in percent, otherwise no unit.
        frequency: daily, weekly, monthly, quarterly or annual; None to infer it from the dates.
        tolerances: The tolerances of answers, in the unit, the main one first. By default 0.25,
            0.1, 0.5 and 1 for the unit "percent", otherwise a twentieth of the values' standard
            deviation.
        model: The name of the model, if the answers do not name it.
        cutoff: The end of the training data: a date for all models, or a mapping from models to
            dates. By default, the date in CoreEval's table is used, if the table has the model.
        draws: Number of bootstrap draws and permutations.
        seed: Random seed.

    Raises:
        UsageError: an argument cannot be used, or there are no values to compare with.
        DatasetError: a file cannot be read, or contains no answer.
    """
    settings = AuditSettings(draws=require_draws(draws), seed=require_seed(seed))
    read = _read_answers(answers, name, model)
    asked = list(dict.fromkeys(reply.series for reply in read.good))
    given: Mapping[str, OneSeries] = {}
    if values is not None:
        given = split_series(values, asked)
    else:
        _require_truth(read.good, asked)
        if name or unit or frequency or len(tolerances) or quantity != "value":
            given = _list_truths(read.good)
    terms = SeriesTerms(
        name=name,
        quantity=quantity,
        unit=unit,
        frequency=frequency,
        tolerances=tuple(require_number("tolerances", each, 0) for each in tolerances),
        in_percent=frozenset(
            name for name in asked if are_in_percent(_list_responses(read.good, name))
        ),
    )
    own = read_series(given, terms)
    source = str(answers) if is_path(answers) else SOURCE
    heard = AuditInput(
        sources=[source],
        replies=read.good,
        series=load_series(read.good, own.series, source),
        cutoffs=_find_cutoffs(read.good, cutoff),
        bad=read.bad,
        notes=[*list_unused_series(own.series, read.good)],
    )
    return NumleakResult(outcome=audit_answers(heard, settings), bad=own.bad)


def _read_answers(answers: Answers, name: str | None, model: str) -> Records[Reply]:
    if is_path(answers):
        return read_replies(Path(answers))
    rows = list_rows(answers, "answers", index=DATE)
    if not rows:
        raise UsageError(
            "there are no answers", where="answers", hint="pass rows with `date` and `response`"
        )
    usual = {"model": model, SERIES: make_series_id(name or SERIES)}
    return collect_replies(SOURCE, number_rows(_complete_row(row, usual) for row in rows))


def _complete_row(row: Mapping[str, object], usual: Mapping[str, str]) -> dict[str, object]:
    """Return a row in the form of a recorded answer: with model and series, and dates as text."""
    said = {key: value for key, value in row.items() if value is not None or key == "response"}
    said = {**usual, **said}
    said |= {key: to_date_text(said[key]) for key in _DATES if key in said}
    response = said.get("response")
    if isinstance(response, int | float) and not isinstance(response, bool):
        said["response"] = str(response)
    return said


def _list_responses(replies: Sequence[Reply], name: str) -> list[str | None]:
    """Return the answers about a series."""
    return [reply.response for reply in replies if reply.series == name]


def _require_truth(replies: Sequence[Reply], asked: Sequence[str]) -> None:
    built_in = {one.id for one in list_definitions()}
    known = built_in | {reply.series for reply in replies if reply.truth is not None}
    if missing := [name for name in asked if name not in known]:
        raise UsageError(
            f"there are no values to compare with the answers about {missing[0]!r}",
            where="values",
            hint="pass values={date: number}, or answers with a truth",
        )


def _list_truths(replies: Sequence[Reply]) -> dict[str, list[tuple[Day, float]]]:
    """Return the dates and true values in the answers, by series, except built-in series."""
    found = dict[str, list[tuple[Day, float]]]()
    built_in = {one.id for one in list_definitions()}
    for reply in replies:
        if reply.series in built_in or reply.other_date is not None:
            continue
        if reply.truth is not None:
            found.setdefault(reply.series, []).append((reply.date, reply.truth))
    return found


def _find_cutoffs(
    replies: Sequence[Reply], cutoff: Cutoff | Mapping[str, Cutoff] | None
) -> dict[str, date | None]:
    models = list(dict.fromkeys(reply.model for reply in replies))
    found = find_known_cutoffs(models)
    if cutoff is None:
        return found
    stated = cutoff if isinstance(cutoff, Mapping) else dict.fromkeys(models, cutoff)
    for model, said in stated.items():
        if model not in found:
            hint = f"one of {', '.join(models)}"
            raise UsageError(f"the rows contain no answers of {model!r}", where="cutoff", hint=hint)
        try:
            found[model] = find_last_day(str(to_date_text(said)), "cutoff")
        except ValidationError:
            hint = "such as 2025-03-15 or 2025-03"
            raise UsageError(f"{said!r} is not a date", where="cutoff", hint=hint) from None
    return found
