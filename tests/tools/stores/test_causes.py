import pytest

from coreeval.tools.stores.causes import MOST, cause_of


@pytest.mark.parametrize(
    ("outcome", "reason", "cause"),
    [
        ("accepted", "", ""),
        ("rejected_form", "length: 'a: b'; locks: 'c' is gone", "length"),
        ("rejected_facts", "facts_unsupported: x", "facts_unsupported"),
        ("no_knowledge", "no_news, throttled for 'oil', 'gas'", "no_news, throttled"),
        ("no_knowledge", "no other news after: facts_stale: y", "no other news after"),
        ("no_knowledge", "The article is about tennis, not anger.", "no news on offer fits"),
        ("unsafe", "self_harm: 'end it'", "self_harm"),
        ("unsafe", "self_harm", "self_harm"),
        ("unsafe", "the text: names a patient", "the news on offer may not be used"),
        ("label_unrecoverable", "the original reads as joy (low confidence, by 'a')",
         "the original reads as joy …"),
        ("failed", "m at http://h: HTTP 429: wait 17.25 s (id 8)",
         "m at http://h: HTTP 429: wait … s …"),
        ("failed", "took longer than 600 s (run.sample_timeout_s)", "took longer than 600 s …"),
    ],
)  # fmt: skip
def test_what_reasons_have_in_common(outcome: str, reason: str, cause: str) -> None:
    assert cause_of(outcome, reason) == cause


def test_a_cause_is_short() -> None:
    assert len(cause_of("failed", "word " * 100)) <= MOST
