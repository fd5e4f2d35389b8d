from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from coreeval.agents.events import (
    LEAST_MATERIAL,
    bundle_reports,
    choose_passages,
    deal_events,
    rank_events,
    split_passages,
)
from coreeval.agents.text.words import count_words
from coreeval.schema import Evidence, Rung

DAY = datetime(2026, 5, 1, tzinfo=UTC)


def news(number: int, title: str, *, day: int = 0, cluster: str = "") -> Evidence:
    return Evidence(
        id=f"e{number}",
        url=f"https://example.org/{number}",
        domain="example.org",
        title=title,
        published_at=DAY + timedelta(days=day),
        published_precision="exact",
        cluster=cluster,
        origin="test",
    )


FIRE = news(1, "Fire destroys harbour warehouse in Oslo")
FIRE_AGAIN = news(2, "Harbour warehouse in Oslo destroyed by fire", day=1)
FIRE_LATER = news(3, "Harbour warehouse in Oslo destroyed by fire", day=30)
STRIKE = news(4, "Rail strike stops trains in Portugal", cluster="c9")
STRIKE_OTHER_WORDS = news(5, "No services today as drivers walk out", cluster="c9")


def test_reports_of_one_event_are_one_bundle_across_outlets_and_days() -> None:
    found: dict[Evidence, Rung] = dict.fromkeys(
        [FIRE, STRIKE, FIRE_AGAIN, FIRE_LATER, STRIKE_OTHER_WORDS], "structure"
    )
    events = bundle_reports(found | {FIRE_AGAIN: "concept"})
    assert [event.reports for event in events] == [
        (FIRE, FIRE_AGAIN),
        (STRIKE, STRIKE_OTHER_WORDS),
        (FIRE_LATER,),
    ]
    assert [event.rung for event in events] == ["concept", "structure", "structure"]
    assert [event.key for event in events] == ["e1", "c9", "e3"]


def test_a_shared_word_makes_no_event() -> None:
    found: dict[Evidence, Rung] = {FIRE: "named", news(9, "Fire sale"): "named"}
    assert len(bundle_reports(found)) == 2


def test_events_near_in_meaning_come_first_and_without_meaning_the_order_stays() -> None:
    events = bundle_reports(dict.fromkeys([FIRE, STRIKE], "concept"))

    def near(texts: Sequence[str], text: str) -> list[float]:
        return [float("strike" in one) for one in texts]

    assert rank_events(events, "late train") == events
    assert rank_events(events, "late train", similarity=near) == events[::-1]


ARTICLE = (
    "A fire destroyed a warehouse in the harbour of Oslo. Nobody was hurt. The owner, a fish "
    "trader, put the damage at 12 million kroner.\nFirefighters from three towns needed nine "
    "hours. The harbour stayed open to ferries."
)


def test_passages_keep_the_lead_and_what_the_sample_is_about_in_the_order_of_the_text() -> None:
    assert len(split_passages(ARTICLE)) == 5
    longer = (
        ARTICLE + " " + " ".join(f"Filler number {n} speaks of other matters." for n in range(99))
    )
    chosen = choose_passages({"e1": longer, "e2": ARTICLE}, "How much damage did the trader have?")
    assert chosen["e1"].startswith("A fire destroyed a warehouse")
    assert "12 million kroner" in chosen["e1"]
    assert chosen["e2"] == ""  # it says nothing that the first does not
    assert count_words(chosen["e1"]) <= LEAST_MATERIAL


NOUNS = [
    "bakery",
    "mill",
    "school",
    "bridge",
    "ferry",
    "chapel",
    "library",
    "station",
    "orchard",
    "quarry",
    "museum",
    "market",
    "tannery",
    "brewery",
    "theatre",
    "stable",
    "forge",
    "dairy",
    "cannery",
    "shipyard",
]


def test_long_originals_get_more_material() -> None:
    text = " ".join(f"The old {noun} was reopened near {noun}ville." for noun in NOUNS)
    few, many = (
        count_words(choose_passages({"e": text}, "word " * length)["e"]) for length in (5, 50)
    )
    assert few <= LEAST_MATERIAL < many <= 125


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3),
        st.lists(st.sampled_from("uvwxyz"), unique=True),
        max_size=12,
    ),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 5),
)
def test_no_event_is_dealt_to_more_samples_than_allowed(
    wanted: dict[str, list[str]], reuse: int, each: int, seed: int
) -> None:
    dealt = deal_events(wanted, reuse=reuse, each=each, seed=seed)
    counts = Counter(key for keys in dealt.values() for key in keys)
    assert all(number <= reuse for number in counts.values())
    assert dealt.keys() == wanted.keys()
    for sample, keys in dealt.items():
        assert len(keys) <= each
        assert set(keys) <= set(wanted[sample])
        if len(keys) < min(each, len(wanted[sample])):
            left = set(wanted[sample]) - set(keys)
            assert all(counts[key] == reuse for key in left)
    again = deal_events(dict(reversed(wanted.items())), reuse=reuse, each=each, seed=seed)
    assert again == dealt


def test_a_thousand_samples_share_one_event_only_as_often_as_allowed() -> None:
    dealt = deal_events({f"s{n}": ["e"] for n in range(1000)}, reuse=2, each=8, seed=7)
    assert sum(map(bool, dealt.values())) == 2
