"""Which sentences of a summary a document supports."""

import pytest

from coreeval.evaluation.metrics.support import LEAST_SHARE, split_sentences, support_share

DOCUMENT = (
    "Good morning. Acme Corp. reported revenue of $4,512 million for the fourth quarter of 2020, "
    "an increase of 34 percent. Chief executive Jane Miller said that the plant in Leeds would "
    "close in March. Net loss was (12.4) million."
)


@pytest.mark.parametrize(
    ("sentence", "supported"),
    [
        ("Revenue increased 34% to $4.5 billion.", True),  # 4,512 million, rounded
        ("Revenue increased 34% to $4.6 billion.", False),
        ("Revenue increased 35% in the fourth quarter.", False),
        ("The plant in Leeds will close.", True),
        ("The plant in London will close.", False),  # another name
        ("The executive Jane Miller said so.", True),
        ("The net loss was 12.4 million.", True),
        ("Dividends were raised and buybacks resumed.", False),  # its words are not there
        ("- Revenue of $4.512 billion", True),
        ("REVENUE INCREASED 34 PERCENT IN LEEDS", True),
        ("THE PLANT IN LONDON WOULD CLOSE", True),  # capitals mark no names, 2 of 3 words are there
    ],
)
def test_a_sentence(sentence: str, supported: bool) -> None:
    assert support_share(DOCUMENT, sentence) == float(supported)


def test_the_share_is_of_sentences_and_points() -> None:
    assert support_share(DOCUMENT, "Revenue increased 34%. Dividends resumed.") == 0.5
    assert support_share(DOCUMENT, "1. The plant would close\n* Margins widened\n\n") == 0.5
    assert support_share(DOCUMENT, "") == support_share(DOCUMENT, " . \n-") == 0.0
    assert support_share("", "The plant will close.") == 0.0


def test_a_sentence_that_says_nothing_does_not_count() -> None:
    for empty in ("It is so.", "No.", "a", "We will not.", "It was about that and it was there"):
        assert support_share(DOCUMENT, empty) == 0.0, empty
    assert support_share(DOCUMENT, "It is so. Revenue increased 34%.") == 1.0
    assert support_share(DOCUMENT, "It is so. Dividends resumed.") == 0.0


def test_sentences_end_at_stops_and_lines() -> None:
    points = "\u2022 Sales rose 1.5% to $2.3bn. U.S. sales fell!\n(2) No change\n---\n"
    text = f"{points}\u4f60\u597d\u3002\u518d\u89c1"
    assert split_sentences(text) == [
        *("Sales rose 1.5% to $2.3bn.", "U.S.", "sales fell!", "No change"),
        *("\u4f60\u597d\u3002", "\u518d\u89c1"),
    ]


def test_half_of_the_words_are_needed() -> None:
    assert LEAST_SHARE == 0.5
    assert support_share("apples pears", "apples pears plums figs") == 1.0
    assert support_share("apples pears", "apples pears plums figs kiwis") == 0.0


def test_scripts_without_spaces_count_by_character() -> None:
    document = "\u516c\u53f8\u7b2c\u56db\u5b63\u5ea6\u6536\u5165\u589e\u957f34%\u3002"
    assert support_share(document, "\u6536\u5165\u589e\u957f34%") == 1.0
    assert support_share(document, "\u5229\u6da6\u4e0b\u964d34%") == 0.0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["9", "1,", "(", "a.", "x. ", "- ", "5% ", "A'", "\u4e00"])
def test_a_long_text_is_read_in_time(piece: str) -> None:
    long = piece * (250_000 // len(piece))
    support_share(long, "Sales rose 5%.")
    support_share(DOCUMENT, long)
