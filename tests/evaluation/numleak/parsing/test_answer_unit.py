"""Whether answers about a series without a stated unit are in percent."""

import pytest

from coreeval.evaluation.numleak.parsing.answer_unit import are_in_percent

VALUES = [4.4, 14.8, 13.2, 11.0, 10.2, 8.4, 7.8, 6.8, 6.7, 6.6]


def written(words: str) -> list[str | None]:
    return [words.format(value, 1000 * value, value / 3, value / 100) for value in VALUES]


@pytest.mark.parametrize(
    "words",
    [
        "{0:.1f}%",
        "{0:.1f} percent",
        "{0:.1f} percentage points",
        "{0:.1f} pp",
        "{0:.1f}\uff05",
        r"$\boxed{{{0:.1f}\%}}$",
        "Die Quote lag bei {0:.1f} Prozent.",
        "{0:.1f} pour cent",
        "The S&P 500 returned {0:.1f} percent in March 2020.",
        "In March 2020, over 12 months, it was {0:.1f}%.",
        "{0:.1f}%, up from {2:.1f}%",
        "{0:.1f}% (that is, {3:.3f})",
        "-{0:.1f}% ({1:,.1f})",
        "**{0:.1f} percent** ({1:,.1f})",
    ],
)
def test_answers_that_have_no_number_beside_those_in_percent_are_in_percent(words: str) -> None:
    assert are_in_percent(written(words))


@pytest.mark.parametrize(
    "words",
    [
        "{0:.1f}",
        "{0:.1f} million",
        "{0:.1f} million ({2:.1f} percent)",
        "About {0:.1f} million people were unemployed, a rate of {2:.1f} percent.",
        "{0:.1f} billion dollars (growth of {2:.1f} percent)",
        "${0:.1f} billion, up {2:.1f}% from a year earlier",
        "The index stood at {1:,.2f} points, a change of {2:.1f} percent",
        "The index closed at {1:,.2f}, up {2:.1f}% from the previous month.",
        "The index rose {2:.1f}% to {1:,.2f}.",
        "The index rose {2:.1f}% ({1:,.2f})",
        "{2:.1f}% ({0:.1f} million)",
        "{2:.1f}% (${0:.1f})",
        "{2:.1f}% higher ({1:,.2f})",
        "{1:,.2f} ({2:.1f}%)",
        "There were {1:,.0f} unemployed people, {2:.1f} percent of the labour force.",
        "{0:.1f} (I am about 80 percent sure)",
    ],
)
def test_answers_with_other_numbers_are_not_in_percent(words: str) -> None:
    assert not are_in_percent(written(words))


def test_a_few_side_remarks_in_percent_do_not_decide() -> None:
    remark = "The index rose 3 percent in March 2020."
    assert not are_in_percent([*written("The index closed at {1:,.2f}."), remark])
    assert not are_in_percent([*written("{0:.1f} million"), remark])
    assert are_in_percent([*written("{0:.1f}%"), "4.4%, or 7.1 million people"])


def test_numbers_without_a_unit_are_read_in_percent_if_other_answers_are() -> None:
    assert are_in_percent([*written("{0:.1f}"), "4.4%"])
    assert not are_in_percent([None, ""])
