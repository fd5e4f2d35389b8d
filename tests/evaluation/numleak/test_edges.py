"""Audits of hardly anything: one date, a series that never moves, answers that say nothing."""

import json
import re
from pathlib import Path

import pytest

from coreeval.cli.numleak_words import told_lines
from coreeval.evaluation.numleak.defences.document import found_document
from coreeval.evaluation.numleak.document import audits_document
from coreeval.evaluation.numleak.leak.signals import Signal
from coreeval.evaluation.numleak.page import write_page
from coreeval.evaluation.numleak.plots import draw_audits
from coreeval.evaluation.numleak.replies import Reply, Variant
from coreeval.evaluation.numleak.series import Series
from coreeval.evaluation.numleak.study import audited
from tests.evaluation.numleak.audits import MONTHS, SETTINGS, series

NO_NUMBER = re.compile(r"(?<![\w-])[+-]?(?:nan|inf)(?![\w-])")
ONE_MOVE = [50.0 if at == 3 else 1.0 for at in range(30)]
VALUES = {
    "one date": [3.0],
    "two dates": [1.0, 2.0],
    "never moves": [2.0] * 30,
    "only zeros": [0.0] * 30,
    "moves once": ONE_MOVE,
}
SAID = {
    "the truth": "{:.2f}%",
    "its opposite": "{:.2f}% below zero",
    "one number": "1.00%",
    "no number": "what a month",
    "a refusal": "I cannot say.",
}


def report(folder: Path, replies: list[Reply], about: Series) -> str:
    """Return all that a report says, in words and on its page."""
    known = {about.definition.id: about}
    rows = {str(month): float(at % 3) for at, month in enumerate(about.values)}
    tone = Signal(name="tone", path=Path("tone.csv"), rows=rows)
    found = audited(replies, known, SETTINGS, {}, [tone])
    document = {
        **audits_document(found, SETTINGS),
        "defences": found_document(replies, (), known, {}),
        **{"backtest": None, "bad_rows": [], "plots": [], "page": None},
    }
    json.dumps(document, allow_nan=False)
    page = write_page(folder / "page.html", found, document)
    return "\n".join([*told_lines(document), page.read_text("utf-8")])


def asked(about: Series, said: str, variants: tuple[Variant, ...]) -> list[Reply]:
    return [
        Reply(model="m", series="tides", date=str(month), variant=variant,
              response=said.format(value))
        for variant in variants for month, value in about.values.items()
    ]  # fmt: skip


def short(values: list[float]) -> Series:
    return Series(definition=series().definition, values=dict(zip(MONTHS, values, strict=False)))


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("values", VALUES)
def test_a_report_of_hardly_anything_is_made_without_a_number_that_is_none(
    tmp_path: Path, values: str, said: str
) -> None:
    about = short(VALUES[values])
    replies = asked(about, SAID[said], ("value", "sentiment", "placebo"))
    assert NO_NUMBER.findall(report(tmp_path, replies, about)) == []


def test_a_gain_that_rests_on_one_date_has_no_interval(tmp_path: Path) -> None:
    about = short(ONE_MOVE)
    text = report(tmp_path, asked(about, "-{:.2f}%", ("value",))[:24], about)
    assert "larger (no interval, n 23) than that of one who knows" in " ".join(text.split())


@pytest.mark.parametrize("variant", ["sentiment", "placebo", "blind", "repeated", "description"])
def test_without_a_question_for_a_value_there_is_a_report_and_no_verdict(
    tmp_path: Path, variant: Variant
) -> None:
    about = short([2.0, 4.0])
    text = report(tmp_path, asked(about, "1%", (variant,)), about)
    assert "No date was asked for its value." in text and NO_NUMBER.findall(text) == []


def test_pictures_of_hardly_anything_are_drawn(tmp_path: Path) -> None:
    about = short([3.0])
    found = audited(asked(about, "3.00%", ("value",)), {"tides": about}, SETTINGS, {})
    assert len(draw_audits(tmp_path, found)) == 3
