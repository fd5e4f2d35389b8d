from collections.abc import Iterator

import duckdb
import pytest

from tests.tools.gdelt.parts.making import functions


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

    def __call__(self, title: str, snippet: str = "", person: bool = False) -> str | None:
        query = "SELECT screened(?, ?, ?)"
        ((drop,),) = self._database.execute(query, [title, snippet, person]).fetchall()
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
