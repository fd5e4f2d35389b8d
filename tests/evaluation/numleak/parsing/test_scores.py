"""Scores from -1 to 1, read from answers."""

import pytest

from coreeval.evaluation.numleak.parsing.scores import read_score
from coreeval.evaluation.numleak.periods import Period

MARCH = Period.parse("2020-03", "monthly")


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("-0.85", -0.85),
        ("\u22120.85", -0.85),
        ("**+0.30**", 0.3),
        ("0", 0.0),
        ("+1.00", 1.0),
        ("-1", -1.0),
        ("Score: +0.45", 0.45),
        ("About -0.2.", -0.2),
        ("For March 2020: -0.92", -0.92),
        ("On a scale from -1.00 to +1.00, my estimate is -0.70.", -0.7),
        ("Sentiment (-1 to 1): 0.15", 0.15),
        ("-0.75 (very negative)", -0.75),
        ("I would say -0.6 on a scale of -1.00 (worst) to +1.00 (best).", -0.6),
    ],
)
def test_a_score_is_read(answer: str, score: float) -> None:
    read = read_score(answer, period=MARCH)
    assert (read.status, read.value) == ("parsed", score)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("-85", "unparsed"),
        ("1.5", "unparsed"),
        ("-45%", "unparsed"),
        ("7/10", "unparsed"),
        ("Very negative.", "unparsed"),
        ("-1.00 to +1.00", "unparsed"),
        ("I cannot say what the mood was.", "refused"),
        ("The mood in March 2020 was dominated by", "truncated"),
        (None, "unparsed"),
    ],
)
def test_what_is_no_score_has_its_reason(answer: str | None, status: str) -> None:
    read = read_score(answer, period=MARCH)
    assert (read.status, read.value) == (status, None)
    assert read.note


def test_what_was_cut_off_or_declined_by_its_provider_is_none() -> None:
    assert read_score("-0.", period=MARCH, kind="truncated").status == "truncated"
    assert read_score(None, period=MARCH, kind="refused").status == "refused"
