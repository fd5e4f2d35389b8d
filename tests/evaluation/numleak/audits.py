"""Answers that are made up, of models whose memory is known, and the audits of them."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from coreeval.evaluation.numleak.audit import Audit, audit_replies
from coreeval.evaluation.numleak.periods import Period
from coreeval.evaluation.numleak.replies import Reply
from coreeval.evaluation.numleak.series import Series, SeriesDefinition
from coreeval.evaluation.numleak.statistics import AuditSettings

SETTINGS = AuditSettings(draws=200, seed=1)
CUTOFF = date(2018, 6, 30)
MONTHS = [Period.parse("2000-01", "monthly").shift(n) for n in range(240)]
HOSTILE = 'replay:<script>alert("$x$")</script>'


def series(name: str = "tides", seed: int = 3, family: str | None = "seas") -> Series:
    """Return a series of monthly changes without any pattern."""
    values = np.random.default_rng(seed).normal(0.4, 4.0, len(MONTHS)).round(2)
    definition = SeriesDefinition.model_validate(
        {
            "id": name,
            "name": f"the {name} of Port <b>Arthur</b>",
            "quantity": "monthly change",
            "unit": "percent",
            "sign": "signed",
            "decimals": 2,
            "frequency": "monthly",
            "source": {"path": f"{name}.csv"},
            "release_lag_days": 30,
            "family": family,
        }
    )
    return Series(definition=definition, values=dict(zip(MONTHS, values.tolist(), strict=True)))


def said(model: str, about: Series, dates: Sequence[Period], texts: Sequence[str]) -> list[Reply]:
    """Return answers for these dates."""
    return [
        Reply(model=model, series=about.definition.id, date=str(month), response=text)
        for month, text in zip(dates, texts, strict=True)
    ]


def knows(model: str, about: Series) -> list[Reply]:
    """Return the answers of a model that has the series by heart."""
    dates = list(about.values)[:240:4]
    return said(model, about, dates, [f"{about.values[month]:+.2f}%" for month in dates])


def guesses(model: str, about: Series) -> list[Reply]:
    """Return the answers of a model that makes numbers up, for names that do not exist as well."""
    numbers = [40.0, *np.random.default_rng(14).normal(0.4, 4.0, 59)]
    invented = [
        Reply(model=model, series=about.definition.id, date=str(month), variant="fictitious",
              name="the Gray index", response="+1.20%")
        for month in list(about.values)[:30]
    ]  # fmt: skip
    dates = list(about.values)[:240:4]
    return said(model, about, dates, [f"{n:+.2f}%" for n in numbers]) + invented


def refuses(model: str, about: Series) -> list[Reply]:
    """Return the answers of a model that declines."""
    dates = list(about.values)[:240:4]
    return said(model, about, dates, ["I do not have access to that data."] * len(dates))


def audits() -> tuple[Audit, ...]:
    """Return audits of a model that knows one series, one that guesses, one that refuses."""
    tides, winds = series(), series("winds", 4)
    replies = [
        *knows("openai:<one> & $two$", tides),
        *guesses("openai:<one> & $two$", winds),
        *refuses(HOSTILE, tides),
    ]
    known = {one.definition.id: one for one in (tides, winds)}
    return audit_replies(replies, known, SETTINGS, {"openai:<one> & $two$": CUTOFF})


def write(path: Path, replies: Sequence[Reply]) -> Path:
    """Write answers to a file."""
    path.write_text("".join(f"{reply.model_dump_json()}\n" for reply in replies), encoding="utf-8")
    return path
