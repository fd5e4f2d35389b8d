import pytest

from coreeval.agents.queries import (
    MOST_QUERIES,
    RUNG_PLACES,
    find_best_rung,
    merge_results,
    plan_queries,
)
from coreeval.schema import Entity, EntityQuery, EntityType, Evidence, Extraction, Retrieval, Rung

from .builders import STANCE, TWEETS, news


def named(span: str, type_: EntityType = "organisation", **changes: object) -> Entity:
    values = {"span": span, "field": "text", "kind": "named", "type": type_, "query_name": span}
    return Entity.model_validate(values | changes)


def concept(span: str, type_: EntityType = "topic") -> Entity:
    return named(span, type_, kind="concept")


def planned(*entities: Entity, queries: tuple[str, ...] = ()) -> list[tuple[str, Rung]]:
    extraction = Extraction(entities=entities, queries=queries)
    return [(query.text, query.rung) for query in plan_queries(extraction, TWEETS)]


def test_names_come_first_then_spellings_then_concepts() -> None:
    trump = named("DJT", "person", query_name="Donald Trump", aliases=("President Trump",))
    extraction = Extraction(
        entities=(concept("anxiety"), trump, named("Chevron")), queries=("oil company job cuts",)
    )
    found = plan_queries(extraction, TWEETS)
    assert [(query.id, query.text, query.rung) for query in found] == [
        ("q1", "Donald Trump", "named"),
        ("q2", "Chevron", "named"),
        ("q3", "President Trump", "alias"),
        ("q4", "oil company job cuts", "concept"),
        ("q5", "anxiety", "concept"),
    ]


def test_other_spellings_go_along_as_aliases() -> None:
    works = named("BBC", query_name="British Broadcasting Corporation", aliases=("Beeb",))
    found = plan_queries(Extraction(entities=(works,)), TWEETS)
    assert [(query.text, query.aliases) for query in found] == [
        ("British Broadcasting Corporation", ()),
        ("BBC", ("Beeb",)),
    ]


def test_a_name_goes_with_what_else_the_sample_is_about() -> None:
    extraction = Extraction(
        entities=(named("Amazon"), concept("rainforest fires")), queries=("Amazon fires smoke",)
    )
    context = {query.text: query.context for query in plan_queries(extraction, TWEETS)}
    assert context["Amazon"] == ("rainforest", "fires", "smoke")
    assert context["rainforest fires"] == ()


@pytest.mark.parametrize(
    "entity",
    [
        named("Frankel", "person"),
        named("Monday", "event"),
        named("June", "event"),
        named("25 percent", "quantity"),
        named("last week", "date"),
        named("@user", "person"),
        concept("it"),
        concept("on Sunday"),
        concept("2019"),
        concept("..."),
    ],
)
def test_what_finds_nothing_in_particular_is_not_asked(entity: Entity) -> None:
    assert planned(entity) == []


def test_a_lone_surname_is_no_query_wherever_it_stands() -> None:
    trainer = named("Bobby Frankel", "person", aliases=("Frankel",))
    assert planned(trainer, queries=("Frankel", "horse racing")) == [
        ("Bobby Frankel", "named"),
        ("horse racing", "concept"),
    ]


def test_a_hashtag_is_asked_as_its_word_and_short_names_stay() -> None:
    assert planned(concept("#anxiety"), named("EU"), named("US")) == [
        ("EU", "named"),
        ("US", "named"),
        ("anxiety", "concept"),
    ]


def test_the_target_is_asked_as_a_concept_only() -> None:
    target = named("Abortion", aliases=("abortion rights",))
    found = plan_queries(Extraction(entities=(target,)), STANCE)
    assert [(query.text, query.rung) for query in found] == [("Abortion", "concept")]


def test_the_same_words_are_asked_once_on_the_best_rung() -> None:
    assert planned(named("Gold"), concept("gold!"), queries=("GOLD",)) == [("Gold", "named")]


def test_names_leave_room_for_concepts() -> None:
    many = [named(f"Company {letter}x") for letter in "abcdefghij"]
    ideas = [concept(f"topic {letter}x") for letter in "abcdefghij"]
    rungs = [rung for _, rung in planned(*many, *ideas)]
    assert len(rungs) == MOST_QUERIES
    assert rungs.count("concept") == RUNG_PLACES["concept"]
    assert [rung for _, rung in planned(*many)] == ["named"] * MOST_QUERIES
    assert [rung for _, rung in planned(*ideas)] == ["concept"] * MOST_QUERIES


def test_each_rung_keeps_its_places() -> None:
    many = tuple(named(f"Company {letter}x") for letter in "abcdefghij")
    found = Extraction(
        entities=many,
        queries=("gold price record",),
        siblings=("silver price", "copper price", "zinc price"),
        structures=("shares fall percent", "company cuts jobs"),
    )
    rungs = [query.rung for query in plan_queries(found, TWEETS)]
    assert rungs == ["named"] * 5 + ["concept"] + ["sibling"] * 2 + ["structure"] * 2


def test_without_names_the_other_rungs_use_their_places() -> None:
    found = Extraction(
        queries=("gold price",), siblings=("silver price", "zinc price", "tin price")
    )
    assert [query.rung for query in plan_queries(found, TWEETS)] == ["concept"] + ["sibling"] * 3


def query(key: str, rung: Rung, text: str = "headline") -> EntityQuery:
    return EntityQuery(id=key, text=text, rung=rung)


def items(*keys: str) -> tuple[Evidence, ...]:
    return tuple(news(f"Headline {key}", key=key) for key in keys)


def test_queries_take_turns_in_the_order_of_their_rungs() -> None:
    asked = [query("q1", "concept"), query("q2", "named")]
    answer = Retrieval(by_query={"q1": items("a", "b", "c"), "q2": items("x")})
    found = merge_results(answer, asked, limit=3, exclude=())
    assert [(item.id, rung) for item, rung in found.items()] == [
        ("x", "named"),
        ("a", "concept"),
        ("b", "concept"),
    ]


def test_an_item_has_the_best_rung_that_found_it() -> None:
    asked = [query("q1", "sibling"), query("q2", "alias"), query("q3", "structure")]
    answer = Retrieval(by_query={"q1": items("a", "b"), "q2": items("b"), "q3": items("a", "b")})
    found = merge_results(answer, asked, limit=9, exclude=())
    assert {item.id: rung for item, rung in found.items()} == {"b": "alias", "a": "sibling"}
    assert find_best_rung(found.values()) == "alias"
    assert find_best_rung([]) == "none"


def test_repeats_and_items_tried_before_are_left_out() -> None:
    asked = [query("q1", "named"), query("q2", "concept")]
    twin = news("headline A!", key="twin")
    answer = Retrieval(by_query={"q1": items("tried"), "q2": (*items("a", "tried"), twin)})
    found = merge_results(answer, asked, limit=9, exclude={"tried"})
    assert [item.id for item in found] == ["a"]


def test_nothing_found_is_nothing_offered() -> None:
    asked = [query("q1", "named")]
    assert merge_results(Retrieval(by_query={}), asked, limit=5, exclude=()) == {}
    assert (
        merge_results(Retrieval(by_query={"q1": items("a")}), asked, limit=5, exclude={"a"}) == {}
    )


def test_what_shares_few_words_comes_last_and_stands_for_its_shape() -> None:
    asked = [query("q1", "concept", "noisy party"), query("q2", "sibling", "rain")]
    loose, near = news("Party wins seats", key="l"), news("Noisy party keeps town up", key="n")
    rain = news("Rain again", key="r")
    answer = Retrieval(by_query={"q1": (loose, near), "q2": (rain,)})
    found = merge_results(answer, asked, limit=9, exclude=())
    assert [(item.id, rung) for item, rung in found.items()] == [
        ("n", "concept"),
        ("r", "sibling"),
        ("l", "structure"),
    ]


def test_few_tellings_of_one_event_are_offered() -> None:
    asked = [query("q1", "concept", "gold")]
    told = [news(f"Gold price hits record high in {place}", key=place) for place in "abcde"]
    other = news("Gold mine opens", key="mine")
    found = merge_results(Retrieval(by_query={"q1": (*told, other)}), asked, limit=9, exclude=())
    assert [item.id for item in found] == ["a", "b", "c", "mine"]


def test_what_meaning_finds_counts_as_one_more_query_about_the_topic() -> None:
    asked = [EntityQuery(id="q1", text="console", rung="sibling")]
    by_words, by_both = news("Console fair opens", key="e1"), news("Console servers fail", key="e2")
    near, far = news("Web services see an outage", key="e3"), news("Bread prices", key="e4")
    found = merge_results(
        Retrieval(by_query={"q1": (by_words, by_both)}),
        asked,
        limit=9,
        exclude=(),
        forbids=lambda item: item.id == "e5",
        nearest=[(near, 0.6), (news("Taken down", key="e5"), 0.59), (by_both, 0.5), (far, 0.3)],
    )
    assert {item.id: rung for item, rung in found.items()} == {
        "e3": "concept", "e1": "sibling", "e2": "concept", "e4": "structure",
    }  # fmt: skip
    assert list(found)[-1] is far
