import pytest

from coreeval.tools.gdelt.titles import clean, repair, without_outlet


@pytest.mark.parametrize(
    ("raw", "repaired"),
    [
        ("Target to eliminate 1 , 800 roles , 8 % of headquarters team",
         "Target to eliminate 1,800 roles, 8% of headquarters team"),
        ("Takeaway boss ordered to pay £1 , 750", "Takeaway boss ordered to pay £1,750"),
        ("Gold tops $4, 500 in New York", "Gold tops $4,500 in New York"),
        ("Market Size to Worth USD 1 , 549 . 36", "Market Size to Worth USD 1,549.36"),
        ("Nigeria sets 2026 oil output target at 2 . 5m barrels daily",
         "Nigeria sets 2026 oil output target at 2.5m barrels daily"),
        ("Warming of 1. 5 °C is near", "Warming of 1.5 °C is near"),
        ("Volatility on October 10 , 2025", "Volatility on October 10, 2025"),
        ("On June 10 , 100 workers left", "On June 10, 100 workers left"),
        ("What changed in 2025 . 5 ways to cope", "What changed in 2025. 5 ways to cope"),
        ("Sept . 17 : State visit", "Sept. 17: State visit"),
        ("Trees Are Getting  Chonky  But That Not Good",
         "Trees Are Getting Chonky But That Not Good"),
        ("Jerry Quits Ben & Jerry , Saying So", "Jerry Quits Ben & Jerry's, Saying So"),
        ("Q & A : the S & P 500", "Q&A: the S&P 500"),
        ("Gold rises to over two - month peak", "Gold rises to over two-month peak"),
        ("How China powers its high - speed trains", "How China powers its high-speed trains"),
        ("Over 1 , 000 High - Quality Essentials", "Over 1,000 High-Quality Essentials"),
        ("Emissions fell last year - report", "Emissions fell last year - report"),
        ("Gates calls for shift - Las Vegas News", "Gates calls for shift - Las Vegas News"),
        ("Russian Sanctions Amidst Volatile U . S .- China Trade",
         "Russian Sanctions Amidst Volatile U.S.-China Trade"),
        ("L . A . Port Energy Project to Open", "L.A. Port Energy Project to Open"),
        ("24 / 7 Power from the Sea", "24/7 Power from the Sea"),
        ("Ecosystem rise to support it ? ", "Ecosystem rise to support it?"),
        ("Response Plan ( WIP ) Meetings", "Response Plan (WIP) Meetings"),
        ("Putin ' s plan , they say", "Putin's plan, they say"),
        ("Baystreet . ca - Exxon Will Benefit", "Baystreet.ca - Exxon Will Benefit"),
        ("Legal push in united kingdom", "Legal push in United Kingdom"),
        ("GPT - 5 and the Climate - Linked Flood", "GPT-5 and the Climate-Linked Flood"),
    ],
)  # fmt: skip
def test_tokens_of_the_doc_api_are_undone(raw: str, repaired: str) -> None:
    assert repair(raw) == repaired
    assert repair(repaired) == repaired


def test_cleaning_leaves_spaced_text_alone() -> None:
    assert clean("What&#39;s on &amp;amp; off , now") == "What's on & off , now"
    assert clean('Safe Harbor for ""Beginning of\u00a0Construction""') == (
        'Safe Harbor for "Beginning of Construction"'
    )


@pytest.mark.parametrize(
    ("title", "headline"),
    [
        ("Rain at last | Town Paper", "Rain at last"),
        ("Exxon sues \u2013 KTBB News, Weather, Talk", "Exxon sues"),
        ("Costs rise - Grand Forks Herald | Grand Forks weather & sports", "Costs rise"),
        ("Cold - weather gear sells out", "Cold - weather gear sells out"),
        ("Low-carbon news: rules ease", "Low-carbon news: rules ease"),
    ],
)
def test_the_outlet_is_no_part_of_a_headline(title: str, headline: str) -> None:
    assert without_outlet(title) == headline
