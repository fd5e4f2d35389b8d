"""The list of a run's samples and its figures, whatever was written in whatever order."""

import itertools
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from coreeval.schema import Result, Sample, Verdict
from coreeval.tools.stores import run_search, run_triggers
from coreeval.tools.stores.foreign_schema import SEARCH_INDEX
from coreeval.tools.stores.run_overview import CallSum, CauseSum, NodeSum, VerdictSum
from coreeval.tools.stores.run_queries import (
    SORTS,
    ListPlace,
    Neighbours,
    SampleFilter,
    SamplePage,
    SampleSort,
)
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.stores.run_tables import CallRow, ReleaseSample, StepRecord
from coreeval.tools.stores.run_triggers import MOST_CAUSE_CHARS, cause_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENDS = {
    1: ("accepted", "", 1),
    2: ("rejected_form", "length: text has 90 words; say 'less'", 3),
    3: ("failed", "openai:m at http://host: HTTP 500: again (request 81f3)", 0),
    4: ("rejected_form", "length: text has 70 words", 2),
}


def _sample(number: int) -> Sample:
    return Sample(
        id=f"emotion/test/{number}",
        split="test",
        fields={"text": f"Größe {number} 100%_sure of the café"},
        label=number % 2,
        label_text="ab"[number % 2],
    )


def _call(key: str, **changes: object) -> CallRow:
    plain = {"role": "composer", "model": "openai:m", "draw": 0, "cached": False, "usd": 0.25}
    tokens = {"prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 2}
    return CallRow(key=key, **{**plain, **tokens, **changes})  # type: ignore[arg-type]


def _step(
    number: int, node: str, *calls: CallRow, passed: bool = True, seconds: float = 1.0
) -> StepRecord:
    return StepRecord(
        sample_id=f"emotion/test/{number}",
        attempt=1,
        node=node,
        started_at="2026-03-01T12:00:00+00:00",
        seconds=seconds,
        error="" if passed else "ValueError: no",
        calls=calls,
        verdicts=(Verdict(name="checks", attempt=1, passed=passed),),
    )


def _result(number: int) -> Result:
    outcome, reason, attempts = ENDS[number]
    return Result.model_validate(
        {
            "sample_id": f"emotion/test/{number}",
            "outcome": outcome,
            "reason": reason,
            "attempts": attempts,
            "rung": "named",
            "semantic": {"text": "in other words"},
            "updated": {"text": "with a new fact"} if outcome == "accepted" else None,
        }
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with closing(RunStore.open(tmp_path / "run.db", now=lambda: NOW)) as opened:
        yield opened


@pytest.fixture
async def worked(store: RunStore) -> RunStore:
    """Five samples: four have ended, the calls of two cost something, one call is shared."""
    store.add_samples(map(_sample, range(1, 6)))
    store.history.record(_step(1, "compose", _call("k1"), _call("k2", role="replacer", usd=0.5)))
    store.history.record(_step(2, "compose", _call("k1"), _call("old", cached=True), passed=False))
    store.history.record(_step(3, "compose", _call("free", usd=None)))
    for number in ENDS:
        await store.commit(_result(number))
    return store


def _ids(store: RunStore, **chosen: object) -> list[int]:
    page = store.listing.page(SampleFilter.model_validate(chosen))
    assert page.total == len(page.rows)
    return [row.seq for row in page.rows]


async def test_a_row_says_how_a_sample_ended_and_what_it_took(worked: RunStore) -> None:
    first, second, third, fourth, fifth = worked.listing.page().rows
    assert (first.sample, first.outcome, first.cause) == ("emotion/test/1", "accepted", "")
    assert (first.calls, first.billed_calls, first.usd, first.tokens) == (2, 2, 0.75, 24)
    assert (second.cause, second.attempts, second.reason) == ("length", 3, ENDS[2][1])
    assert (second.calls, second.billed_calls, second.usd) == (2, 1, 0.25)
    assert third.usd is None
    assert (fourth.usd, fourth.seconds, fourth.ended_at[:10]) == (0.0, 0.0, "2026-03-01")
    assert (fifth.outcome, fifth.ended_at, fifth.excerpt[:5]) == ("pending", "", "Größe")


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"outcomes": ("failed", "pending")}, [3, 5]),
        ({"label": "a"}, [2, 4]),
        ({"attempts_min": 2}, [2, 4]),
        ({"usd_min": 0.5}, [1]),
        ({"rung": "none"}, []),
        ({"semantic_status": "unchanged"}, [1, 2, 3, 4]),
        ({"cause": "length"}, [2, 4]),
        ({"kept": True}, []),
        ({"text": "TEST/3"}, [3]),
        ({"text": "größe 2"}, [2]),
        ({"text": "new fact"}, [1]),
        ({"text": "other words"}, [1, 2, 3, 4]),
        ({"text": "70 words"}, [4]),
        ({"text": "100%_"}, [1, 2, 3, 4, 5]),
        ({"text": "1%"}, []),
        ({"text": "x" * 100_000}, []),
        ({"text": "words", "label": "a", "attempts_min": 3}, [2]),
    ],
)
async def test_filters(worked: RunStore, chosen: dict[str, object], expected: list[int]) -> None:
    assert _ids(worked, **chosen) == expected


async def test_every_order_has_each_sample_once_on_pages_of_any_size(worked: RunStore) -> None:
    for sort, descending in itertools.product(SORTS, (False, True)):
        whole = worked.listing.ids(SampleFilter(), sort, descending)
        paged = [
            row.sample
            for offset in range(0, 6, 2)
            for row in worked.listing.page(
                sort=sort, descending=descending, offset=offset, limit=2
            ).rows
        ]
        assert sorted(whole) == [f"emotion/test/{n}" for n in range(1, 6)]
        assert paged == whole
    assert worked.listing.page(sort="usd", descending=True).rows[0].seq == 1
    assert worked.listing.page(offset=10).total == 5


@pytest.mark.parametrize("chosen", [SampleFilter(), SampleFilter(text="größe")])
async def test_pages_follow_each_other_by_their_ends(
    worked: RunStore, chosen: SampleFilter
) -> None:
    for sort, descending in itertools.product(SORTS, (False, True)):
        read = partial(worked.listing.page, chosen, sort=sort, descending=descending, limit=2)
        whole = worked.listing.ids(chosen, sort, descending)
        pages = [read(), read(offset=2), read(offset=4)]
        assert [row.sample for page in pages for row in page.rows] == whole
        for page, following in itertools.pairwise(pages):
            places = [_again(page.last, sort), _again(following.first, sort)]
            assert read(after=places[0]) == following
            assert read(before=places[1]) == page
        assert read(after=_again(pages[-1].last, sort)).rows == ()
        assert read(before=_again(pages[0].first, sort)) == SamplePage(rows=(), total=5)


def _again(place: ListPlace | None, sort: SampleSort) -> ListPlace:
    """Return a place as an address hands it on."""
    assert place
    return ListPlace.from_text(str(place), sort)


async def test_a_page_goes_on_where_the_one_before_ended_though_samples_moved(
    worked: RunStore,
) -> None:
    first = worked.listing.page(sort="attempts", limit=2)
    assert [row.seq for row in first.rows] == [3, 5]
    assert worked.forget("failed") == 1
    await worked.commit(_result(3).model_copy(update={"attempts": 7}))
    await worked.commit(_result(1).model_copy(update={"sample_id": "emotion/test/5"}))
    following = worked.listing.page(sort="attempts", after=first.last)
    assert [row.seq for row in following.rows] == [1, 5, 4, 2, 3]


async def _end(store: RunStore, numbers: Iterable[int]) -> None:
    for number in numbers:
        reason = f"says 'a\"b' \N{KELVIN SIGN}elvin {number} \N{GRINNING FACE}x"
        changed = {"sample_id": f"emotion/test/{number}", "reason": reason}
        await store.commit(_result(4).model_copy(update=changed))


def _count_unindexed(store: RunStore) -> int:
    with store.engine.connect() as connection:
        return len(connection.exec_driver_sql("SELECT seq FROM unindexed").all())


@pytest.mark.parametrize("beating", [True, False])
@pytest.mark.parametrize("rare", [None, 5, 1])
@pytest.mark.parametrize("ended", [3, 40])
async def test_a_search_finds_the_same_with_the_index_and_without(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, beating: bool, rare: int | None, ended: int
) -> None:
    store.add_samples(map(_sample, range(1, 41)))
    await _end(store, range(2, ended))
    if beating:
        store.beat({}, None)
    await _end(store, [1, ended])
    assert _count_unindexed(store) == (2 if beating else ended)
    if rare is None:
        monkeypatch.setattr(run_search, "can_index", lambda: False)
    else:
        monkeypatch.setattr(run_search, "RARE", rare)
    every = list(range(1, 41))
    said = every[:ended]
    for text, expected in {
        "test/17": [17],
        "GRÖSSE": [],
        "GRöße 4": [4, 40],
        'a"B': said,
        "\N{KELVIN SIGN}elvin 3 ": [3],
        "kelvin": [],
        "\N{GRINNING FACE}x": said,
        "Größe 7 100%_s": [7],
        "Größe 7 100__s": [],
        "7\nGröße 7": [7],
        "öß": every,
        "é\n": said,
        "\0": [],
        "é\0n": [],
        "nobody wrote this": [],
    }.items():
        found = store.listing.page(SampleFilter(text=text))
        assert ([row.seq for row in found.rows], found.total) == (expected, len(expected)), text


def test_a_character_of_code_0_is_searched_like_any_other(store: RunStore) -> None:
    named = _sample(1).model_copy(update={"id": "emotion/Test\0One"})
    store.add_samples([named, *map(_sample, range(2, 5))])
    found = {text: _ids(store, text=text) for text in ("\0", "\0oNe", "test\0", "\0two", "\0abc")}
    assert found == {"\0": [1], "\0oNe": [1], "test\0": [1], "\0two": [], "\0abc": []}


async def test_a_result_that_changes_is_found_by_its_new_words_only(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_search, "RARE", 1)
    store.add_samples(map(_sample, range(1, 11)))
    await _end(store, [1, 2])
    store.beat({}, None)
    assert store.forget("rejected_form") == 2
    await store.commit(_result(1))
    assert _ids(store, text="elvin") == []
    assert _ids(store, text="new fact") == [1]
    store.beat({}, None)
    await _end(store, [2])
    assert _count_unindexed(store) == 1
    with store.engine.connect() as connection:
        asked = "SELECT rowid FROM sought_index WHERE sought_index MATCH '\"{}\"'"
        found = [connection.exec_driver_sql(asked.format(each)).all() for each in ("vin", "fac")]
    assert found == [[], [(1,)]]


async def test_a_rare_text_is_looked_up_and_a_frequent_one_read(worked: RunStore) -> None:
    worked.beat({}, None)
    await worked.commit(_result(1).model_copy(update={"sample_id": "emotion/test/5"}))
    engine = worked.listing._engine
    plans = {text: str(run_search.select_samples_with(text, engine)) for text in ("test/3", "test")}
    assert SEARCH_INDEX in plans["test/3"]
    assert SEARCH_INDEX not in plans["test"]


async def test_a_file_of_an_earlier_version_has_no_index(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as without:
        without.setattr(run_triggers, "can_index", lambda: False)
        RunStore.open(tmp_path / "old.db", now=lambda: NOW).close()
    with closing(RunStore.open(tmp_path / "old.db", now=lambda: NOW)) as store:
        store.beat({}, None)
        store.add_samples(map(_sample, range(1, 10)))
        await store.commit(_result(1))
        assert _ids(store, text="new fact") == [1]
        assert store.forget("accepted") == 1
        assert _ids(store, text="new fact") == []


async def test_neighbours_are_those_of_the_list(worked: RunStore) -> None:
    chosen = SampleFilter(outcomes=("rejected_form", "failed", "pending"))
    for sort, descending in itertools.product(SORTS, (False, True)):
        ids = [None, *worked.listing.ids(chosen, sort, descending), None]
        for place in range(1, len(ids) - 1):
            found = worked.listing.neighbours(
                str(ids[place]), chosen, sort=sort, descending=descending
            )
            expected = Neighbours(
                previous=ids[place - 1], next=ids[place + 1], position=place, total=4
            )
            assert found == expected
    nowhere = worked.listing.neighbours("emotion/test/1", chosen)
    assert nowhere == Neighbours(previous=None, next=None, position=None, total=4)


async def test_the_figures_of_a_run(worked: RunStore) -> None:
    found = worked.listing.overview()
    assert found.total == sum(found.outcomes.values()) == 5
    assert found.outcomes == {"rejected_form": 2, "accepted": 1, "failed": 1, "pending": 1}
    assert found.labels["b"] == {"accepted": 1, "failed": 1, "pending": 1}
    assert found.attempts == {0: 1, 1: 1, 2: 1, 3: 1}
    assert found.causes[0] == CauseSum(
        outcome="rejected_form", cause="length", samples=2, example="emotion/test/2"
    )
    assert found.nodes == (NodeSum(node="compose", steps=3, seconds=3.0, errors=1),)
    assert found.verdicts == (VerdictSum(name="checks", passed=2, failed=1),)


async def test_a_call_that_samples_share_counts_once_as_in_the_ledger(worked: RunStore) -> None:
    tokens = {"prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 2}
    twice = {name: 2 * number for name, number in tokens.items()}
    role, known = {"role": "composer", "model": "openai:m"}, {"usd": 0.25, "priced": 1}
    assert worked.listing.overview().calls == (
        CallSum(
            role="replacer", model="openai:m", cached=False, calls=1, usd=0.5, priced=1, **tokens
        ),
        CallSum(**role, cached=False, calls=2, **known, **twice),
        CallSum(**role, cached=True, calls=1, **known, **tokens),
    )
    billed, found = worked.history.call_totals()
    assert (billed["calls"], billed["usd"], billed["priced"]) == (3, 0.75, 2)
    assert (found["calls"], found["usd"]) == (1, 0.25)


async def test_steps_that_are_written_again_count_once(worked: RunStore) -> None:
    """As when a killed run is resumed."""
    before = worked.listing.overview()
    worked.history.record(_step(2, "compose", _call("k1"), _call("old", cached=True), passed=False))
    await worked.commit(_result(2))
    assert worked.listing.overview() == before
    assert worked.listing.page().rows[1].usd == 0.25


async def test_a_retried_sample_is_pending_and_its_calls_stay_paid(worked: RunStore) -> None:
    assert worked.forget("failed") == 1
    found = worked.listing.overview()
    assert (found.outcomes["pending"], found.nodes[0].steps) == (2, 2)
    assert sum(one.calls for one in found.calls) == 4
    assert worked.listing.page().rows[2].outcome == "pending"
    assert _ids(worked, text="HTTP 500") == []
    await worked.commit(_result(3).model_copy(update={"outcome": "accepted", "reason": ""}))
    assert _ids(worked, outcomes=("accepted",)) == [1, 3]
    assert worked.listing.page().rows[2].calls == 1


async def test_samples_kept_from_a_release_are_listed_as_they_enter(store: RunStore) -> None:
    result = _result(1).model_copy(update={"kept_from": "2026.1"})
    store.add_samples([ReleaseSample(sample=_sample(1), result=result, excerpts=()), _sample(2)])
    assert _ids(store, kept=True) == [1]
    assert _ids(store, text="new fact") == [1]
    assert store.listing.overview().kept == 1


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
        ("unsafe", "harm: 'a crime'; length: b", "harm"),
        ("unsafe", "the text: names a patient", "the news on offer may not be used"),
        ("label_unrecoverable", "the original was labelled joy (low confidence, by 'a')",
         "the original was labelled joy …"),
        ("failed", "m at http://h: HTTP 429: wait 17.25 s (id 8)",
         "m at http://h: HTTP 429: wait … s …"),
        ("failed", "m at http://127.0.0.1:8000/v1: HTTP 500: 2.5 s",
         "m at http://127.0.0.1:8000/v1: HTTP 500: … s"),
        ("failed", "took longer than 600 s (run.sample_timeout_s)", "took longer than 600 s …"),
    ],
)  # fmt: skip
def test_what_reasons_have_in_common(outcome: str, reason: str, cause: str) -> None:
    assert cause_of(outcome, reason) == cause


def test_a_cause_is_short() -> None:
    assert len(cause_of("failed", "word " * 100)) <= MOST_CAUSE_CHARS
