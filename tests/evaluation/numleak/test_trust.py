"""What a back-test may hope for: one sentence out of verdicts."""

import pytest

from coreeval.evaluation.numleak.trust import Backtest, Trusted, trust_in
from coreeval.evaluation.numleak.verdicts import VERDICTS, Verdict, in_words

PERIOD = Backtest(start="2015-01", end="2020-12")


@pytest.mark.parametrize(
    ("verdicts", "answer", "words"),
    [
        ({"A": "memorized", "B": "no_recall"}, "no", "the published values of A (memorized),"),
        ({"A": "partly_memorized"}, "no", "part of the published values of A (partly memorized),"),
        ({"A": "fluent"}, "no", "knows roughly the values at each date of A (fluent),"),
        (
            {"A": "memorized", "B": "refusing", "C": "fluent"},
            "no",
            "A (memorized) and knows roughly the values at each date of C (fluent),",
        ),
        ({"A": "refusing", "B": "no_recall"}, "unsettled", "its memory of A (refusing) could not"),
        ({"A": "inconclusive", "B": "fabricating"}, "unsettled", "of A (inconclusive) could not"),
        (
            {"A": "inconclusive", "B": "refusing"},
            "unsettled",
            "its memory of A (inconclusive) and B (refusing) could not",
        ),
        ({"A": "no_recall", "B": "no_recall"}, "no_memory_found", "of A and B (no recall)."),
        (
            {"A": "fabricating", "B": "no_recall"},
            "no_memory_found",
            "of B (no recall) and makes up values when asked about A (fabricating).",
        ),
    ],
)
def test_one_remembered_series_is_enough(
    verdicts: dict[str, Verdict], answer: Trusted, words: str
) -> None:
    found = trust_in("m", verdicts, PERIOD)
    assert found.answer == answer and words in found.sentence
    assert "from 2015-01 to 2020-12" in found.sentence


def test_every_verdict_leads_somewhere_and_refusing_is_never_clean() -> None:
    answers = {verdict: trust_in("m", {"A": verdict}, PERIOD).answer for verdict in VERDICTS}
    clean = {verdict for verdict, answer in answers.items() if answer == "no_memory_found"}
    assert clean == {"fabricating", "no_recall"}


def test_many_series_are_not_all_named() -> None:
    found = trust_in("m", dict.fromkeys("ABCDEF", "memorized"), PERIOD)
    assert "A, B, C and 3 more series (memorized)," in found.sentence


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_sentence_has_the_word_that_pages_and_tables_have(verdict: Verdict) -> None:
    assert f"A ({in_words(verdict)})" in trust_in("m", {"A": verdict}, PERIOD).sentence
