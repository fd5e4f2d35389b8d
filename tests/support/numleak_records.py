"""The answers that NumLeak's authors recorded, as replies (data README: numleak, responses/)."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import pytest

from coreeval.evaluation.numleak.replies import Reply, Variant
from tests.support.numleak_data import NUMLEAK

RESPONSES: Final = NUMLEAK / "responses"
beside_records = pytest.mark.skipif(
    not RESPONSES.is_dir(), reason="NumLeak's recorded answers are not beside this checkout"
)
Row = Mapping[str, Any]
SERIES: Final = {
    "Mkt-RF": "mkt_rf", "SMB": "smb", "HML": "hml", "RMW": "rmw", "CMA": "cma", "Mom": "mom",
}  # fmt: skip
_SWEEP: Final[dict[str, Variant]] = {"A": "value", "B": "value", "C": "pair"}
_LIMITS: Final = {
    "blind_query": 48, "controls": 48, "coverage_matched": 24, "cpi_baseline": 24,
    "fabricated_expanded": 64, "noaa_temperature": 32, "post_cutoff_holdout": 64,
    "sweep/A": 48, "sweep/B": 384, "sweep/C": 48,
}  # fmt: skip
"""Output tokens allowed, seen as the number at which replies stop in mid-sentence."""


@cache
def rows(name: str) -> list[Row]:
    """Return the lines of `responses/NAME.jsonl`, compressed or not."""
    plain = RESPONSES / f"{name}.jsonl"
    packed = RESPONSES / f"{name}.jsonl.gz"
    text = plain.read_text("utf-8") if plain.exists() else gzip.decompress(packed.read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def _said(row: Row, file: str) -> dict[str, Any]:
    """Return what all files have: the answer, and whether it was cut off at its limit."""
    cut = row["output_tokens"] >= _LIMITS.get(file, float("inf"))
    return {"response": row["response"], "kind": "truncated" if cut else "answered"}


def sweep(letter: str) -> list[Reply]:
    """Return the main sweep's variant A (a value), B (a value in prose) or C (a pair)."""
    return [
        Reply(
            model=(query := row["query"])["model_name"],
            series=SERIES[query["factor"]],
            date=query["month"],
            other_date=query["month2"],
            variant=_SWEEP[letter],
            **_said(row, f"sweep/{letter}"),
        )
        for row in rows("sweep")
        if row["query"]["variant"] == letter
    ]


def values(
    name: str, series: str | Callable[[Row], str], variant: Variant = "value"
) -> list[Reply]:
    """Return a file of questions for values, its own truth with them where it has one."""
    return [
        Reply(
            model=row["model_name"],
            series=series if isinstance(series, str) else series(row),
            date=row["month"],
            variant=variant,
            truth=row.get("truth", row.get("truth_f")),
            name=row.get("name") if variant == "fictitious" else None,
            **_said(row, name),
        )
        for row in rows(name)
    ]


def gpt_siblings() -> list[Reply]:
    """Return GPT-5.4's answers for five factors."""
    return values("gpt54_factors", lambda row: SERIES[row["factor"]])


def contradictions() -> list[Reply]:
    """Return the answers after a return of -42 % was stated, and those to the plain question."""
    return [
        Reply(
            model=row["model_name"],
            series="mkt_rf",
            date=row["month"],
            variant="contradiction" if (told := row["condition"] == "V_contradicted") else "value",
            truth=row["truth"],
            stated=row["injected"] if told else None,
            response=row["response"],
        )
        for row in rows("in_context_contradiction")
    ]


def forced_choices() -> list[Reply]:
    """Return the answers to a choice of one of two months."""
    return [
        Reply(
            model=row["model_name"],
            series="mkt_rf",
            date=row["month1"],
            other_date=row["month2"],
            variant="forced_choice",
            **_said(row, "variantc_forced_choice"),
        )
        for row in rows("variantc_forced_choice")
    ]


def of(replies: list[Reply], model: str, series: str | None = None) -> Iterator[Reply]:
    """Yield the answers of a model whose name begins so, on one series."""
    for reply in replies:
        if reply.model.startswith(model) and series in (None, reply.series):
            yield reply
