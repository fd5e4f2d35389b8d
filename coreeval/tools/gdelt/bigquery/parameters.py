"""The values of a statement's parameters; what a user or a text says is only ever one of these."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from google.cloud.bigquery import ArrayQueryParameter, ScalarQueryParameter

from coreeval.tools.gdelt.bigquery.statements import COPIES, Statement

Parameter = ScalarQueryParameter | ArrayQueryParameter


def parameters(statement: Statement) -> list[Parameter]:
    """Return the parameters that a statement's SQL names."""
    window = statement.window
    decay = (window.end - window.start) / 3
    named: list[Parameter] = [
        _scalar("first_day", "TIMESTAMP", statement.start),
        _scalar("end_day", "TIMESTAMP", statement.end),
        _scalar("window_start", "STRING", _stamp(window.start)),
        _scalar("window_end", "TIMESTAMP", window.end),
        _scalar("decay", "FLOAT64", max(decay.total_seconds(), 1.0)),
        _scalar("copies", "INT64", COPIES),
        _scalar("most", "INT64", statement.rows),
        _strings("asks", [f"{ask.least} {ask.words}" for ask in statement.asks]),
        _strings("forms", [f"{form.form} {form.word}" for form in statement.forms]),
        _strings("urls", statement.urls),
    ]
    if statement.feed == "gkg":
        named.append(_scalar("first_batch", "INT64", int(_stamp(window.start))))
        named.append(_scalar("end_batch", "INT64", int(_stamp(statement.end))))
    return named


def _stamp(at: datetime) -> str:
    """Write a time as GKG does: 14 digits. With 8, DATE would match no row, and cost the same."""
    return (at - (at.utcoffset() or timedelta())).strftime("%Y%m%d%H%M%S")


def _scalar(name: str, kind: str, value: str | float | datetime) -> ScalarQueryParameter:
    return ScalarQueryParameter(name, kind, value)


def _strings(name: str, values: Sequence[str]) -> ArrayQueryParameter:
    return ArrayQueryParameter(name, "STRING", list(values))
