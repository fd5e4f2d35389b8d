"""What news text may do: nothing."""

import gzip
import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.tools.gdelt.page_text import (
    _ORDER,
    LONGEST_TITLE,
    _plain,
    clean_text,
    clean_title,
    is_instruction_like,
    repair_title,
    without_outlet,
)
from tests.hostile.texts import HOSTILE
from tests.tools.gdelt.index.part_samples import functions


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
    assert repair_title(raw) == repaired
    assert repair_title(repaired) == repaired


def test_cleaning_leaves_spaced_text_alone() -> None:
    assert clean_title("What&#39;s on &amp;amp; off , now") == "What's on & off , now"
    assert clean_title('Safe Harbor for ""Beginning of\u00a0Construction""') == (
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


SHARED = Path(__file__).parents[3].parent / "shared" / "data" / "gdelt"
NO_ORDER = {  # tricks that no reader of one headline could tell from news
    "bribe", "threat", "link", "mention", "sql", "shell", "path", "coded", "reversed", "German",
    "Spanish", "French", "Russian", "Chinese", "Arabic", "spoof of a rule", "fake evidence id",
    "fake quote", "zero width", "direction", "unicode tags", "control signs", "terminal", "html",
    "markdown", "html comment", "newline flood", "emoji flood", "closing braces", "quote break",
}  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("Tom &amp;amp; Jerry&#8217;s", "Tom & Jerry\u2019s"),
        ("<b>Bridge</b> opens<br/>today", "Bridge opens today"),
        ("Shares < 5 and > 3", "Shares < 5 and > 3"),
        ("Bridge \u202eneprow\u202c opens\u200b", "Bridge neprow opens"),
        ("a\x00b\x1b[2Jc\td\r\ne", "ab[2Jc d e"),
        (
            "family \U0001f468\u200d\U0001f469\u200d\U0001f467 day",
            "family \U0001f468\u200d\U0001f469\u200d\U0001f467 day",
        ),
        ("line\u2028break", "linebreak"),
        ("caf\u00e9 \u0645\u0631\u062d\u0628\u0627", "caf\u00e9 \u0645\u0631\u062d\u0628\u0627"),
    ],
)
def test_what_no_reader_sees_goes(raw: str, seen: str) -> None:
    assert clean_text(raw) == seen


def test_a_long_text_is_cut_at_a_word() -> None:
    cut = clean_text("word " * 500)
    assert len(cut) <= LONGEST_TITLE
    assert cut.endswith("word\u2026")
    assert len(clean_text("x" * 5000)) == LONGEST_TITLE


@given(st.text(max_size=400))
def test_whatever_comes_is_one_bounded_line_of_text(raw: str) -> None:
    text = clean_text(raw)
    assert len(text) <= LONGEST_TITLE
    assert not any(unicodedata.category(letter) == "Cc" for letter in text)
    assert "  " not in text and text == text.strip()


@pytest.mark.parametrize("trick", [name for name in HOSTILE if name not in NO_ORDER])
def test_an_order_is_flagged(trick: str) -> None:
    assert is_instruction_like(HOSTILE[trick])


def test_real_headlines_are_not_flagged() -> None:
    if not SHARED.exists():
        pytest.skip("the development data is not beside this checkout")
    with gzip.open(SHARED / "doc_api" / "articles_2025_climate_companies.jsonl.gz", "rt") as lines:
        titles = {json.loads(line)["title"] for line in lines}
    flagged = [title for title in titles if is_instruction_like(title)]
    assert len(titles) > 5000
    assert flagged == []


@given(st.from_regex(_ORDER))
def test_no_order_is_passed_over_for_want_of_its_words(text: str) -> None:
    assert is_instruction_like(text) == bool(_ORDER.search(_plain(text)))


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with functions() as opened:
        yield opened


@pytest.fixture
def screened(database: duckdb.DuckDBPyConnection) -> "Screened":
    return Screened(database)


class Screened:
    """Asks why a title is not offered."""

    def __init__(self, database: duckdb.DuckDBPyConnection) -> None:
        self._database = database

    def __call__(
        self, title: str, snippet: str = "", person: bool = False, language: str = "en"
    ) -> str | None:
        query = "SELECT screened(?, ?, ?, ?)"
        ((drop,),) = self._database.execute(query, [language, title, snippet, person]).fetchall()
        return str(drop) if drop else None


@pytest.mark.parametrize(
    ("title", "drop"),
    [
        ("Bill Gates Fast Facts", "short"),
        ("Caf\ufffd owners fear a hard winter", "garbled"),
        ("META FUNDS WATER PROJECT IN WYOMING", "all_caps"),
        ("4 Things You Can Do With Your Old Apple Lightning Cables", "listicle"),
        ("Top 10 hair care products to battle monsoon blues", "listicle"),
        ("Your weekly horoscope for all signs", "horoscope"),
        ("Citizens Bancorp (OTCMKTS:CZBT) Sees Large Decline in Short Interest", "market_report"),
        ("Polyols Market worth $21.59 billion by 2030, at a CAGR of", "market_report"),
        ("Stocks to Watch Today: five names in focus", "market_report"),
        ("Jackery Solar Generator 2000 Plus is 48% off", "advert"),
        ("Wild plant is the answer to antibiotic resistance, study says", "health_claim"),
        ("Five home remedies that work for a dry cough", "health_claim"),
        ("This superfood boosts your immunity in winter", "health_claim"),
        ("Police look into claims of sexual assault at camp", "sexual_violence"),
        ("Report on suicide among farmers is late", "self_harm"),
        ("A 16-year-old wins the national chess title", "minor"),
        ("Virginia Tech manager pleads no contest to embezzlement", "named_crime"),
        ("Latham on the hook for Anna Price payout as appeal quashed", "named_crime"),
        ("Actor Ann Lee diagnosed with rare illness", "named_health_or_grief"),
    ],
)
def test_titles_that_are_left_out(screened: Screened, title: str, drop: str) -> None:
    assert screened(title) == drop


@pytest.mark.parametrize(
    "title",
    [
        "Microsoft, Nebius sign $17.4B AI data center deal",
        "Should You Upgrade to the iPhone 17 Pro Max?",
        "Push towards stone fruits to supplement shrinking apple income",
        "Hospital opens ward for infections after flood",
        "Plan cuts red tape for clinics in the north",
        "Court lets the pipeline go ahead after nine years",
        "Storm deaths rise as floods reach the coast",
        "ExxonMobil to cut 2,000 jobs worldwide amid restructuring plans",
        "Deadline for boycott of teenage market passes",
    ],
)
def test_titles_that_stay(screened: Screened, title: str) -> None:
    assert screened(title) is None


def test_a_person_known_from_the_entities_counts_as_named(screened: Screened) -> None:
    assert screened("Two arrested after protest at the port") is None
    assert screened("Two arrested after protest at the port", person=True) == "named_crime"


def test_the_snippet_is_read_too(screened: Screened) -> None:
    told = screened("What the mayor said on Tuesday", "Ann Lee was charged with theft.")
    assert told == "named_crime"


def test_accents_hide_nobody(screened: Screened) -> None:
    assert screened("Ver\u00f3nica Garc\u00eda accused of fraud by her own bank") == "named_crime"
    assert screened("A caf\u00e9 \u00e9lan arrested the eye of the town") is None


def test_questions_are_seen(database: duckdb.DuckDBPyConnection) -> None:
    asks = "SELECT asks('Is gold safe?'), asks('Gold is safe')"
    assert database.execute(asks).fetchall() == [(True, False)]


@pytest.mark.parametrize(
    ("language", "title", "drop"),
    [
        ("de", "Fähre zur Nordinsel fährt wieder nach Fahrplan", None),
        ("de", "Das große Horoskop für die neue Woche", "horoscope"),
        ("de", "Drei Männer nach Überfall auf Tankstelle", "named_crime"),
        ("de", "Max Muster nach Überfall auf Tankstelle verhaftet", "named_crime"),
        ("de", "Bürgermeisterin Eva Muster überraschend gestorben", "named_health_or_grief"),
        ("de", "Zwölf Schüler gewinnen Preis für ihre Rakete", "minor"),
        ("es", "El barco a la isla vuelve a salir", None),
        ("es", "Juan Ejemplo condenado por fraude en Toledo", "named_crime"),
        ("es", "Dos niños ganan un premio de ajedrez", "minor"),
        ("fr", "Un horoscope pour la semaine qui vient", None),
        ("fr", "Trop court", "short"),
    ],
)
def test_titles_are_screened_by_the_words_of_their_language(
    screened: Screened, language: str, title: str, drop: str | None
) -> None:
    assert screened(title, language=language) == drop
