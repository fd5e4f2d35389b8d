"""A paraphrase by a model: what passes, what is asked for again, and what is given up."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from coreeval.config import ModelConfig
from coreeval.errors import NoValidAnswer
from coreeval.evaluation.benchmarks.item_records import find_bracketed_options, find_option_spans
from coreeval.evaluation.benchmarks.items import load_items
from coreeval.evaluation.modifications import (
    ItemTwin,
    NoTwin,
    Paraphraser,
    derange,
    shift_years,
    shuffle_label_order,
    shuffle_options,
    similarity,
)
from coreeval.evaluation.years import find_years
from coreeval.models import InvalidAnswer, OutputSchema, close_models
from coreeval.schema import Item
from coreeval.tools.embeddings import Vectors
from coreeval.tools.stores.call_store import open_calls
from tests.evaluation.recorded import CAP, beside
from tests.support.exchanges import exchange
from tests.support.llm_server import LLMServer, script

T = TypeVar("T", bound=BaseModel)
INPUT = "What did sales of 2.5 do in 2014? A. rise B. fall"
ITEM = Item(id="x", split="test", input=INPUT, output="A", options={"A": "rise", "B": "fall"})
GOOD = "In 2014, which way did sales of 2.5 go? A. rise B. fall"


class Told:
    """Gives answers in turn until one passes, as a `ModelClient` does."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers
        self.reasons: list[str] = []
        self.messages: list[dict[str, str]] = []

    async def ask(
        self,
        messages: Sequence[dict[str, str]],
        shape: OutputSchema[T],
        *,
        check: Callable[[T], None],
    ) -> T:
        self.messages = list(messages)
        for text in self._answers:
            answer = shape.parse(json.dumps({"input": text}), mend=False)
            try:
                check(answer)
            except InvalidAnswer as error:
                self.reasons.append(str(error))
            else:
                return answer
        raise NoValidAnswer(f"no valid answer; the last one: {self.reasons[-1]}")


class Near:
    """Embeds all texts alike, except those that speak of bread."""

    name = "near"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        return np.array([[1, "bread" in text] for text in texts], dtype=np.float32)


async def test_a_good_paraphrase_passes_with_all_else_as_it_was() -> None:
    client = Told(GOOD)
    found = await Paraphraser(client, Near())(ITEM)
    assert found == ItemTwin(item=ITEM.model_copy(update={"input": GOOD}), changes={})
    shown = client.messages[1]["content"]
    assert all(f'"{kept}"' in shown for kept in ("2.5", "2014", "rise", "fall"))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (f" {INPUT}\n", "it is the input itself"),
        (GOOD.replace("2.5", "3.5"), "numbers or options were changed: 2.5"),
        (GOOD.replace("2014", "2014 and 2015"), "numbers or options were changed: 2015"),
        (GOOD.replace("B. fall", "B. drop"), "numbers or options were changed: fall"),
        (
            GOOD.replace("sales", "bread"),
            "it is too far from the input: stay nearer to its words "
            "(similarity 0.707, at least 0.9)",
        ),
    ],
)
async def test_a_bad_one_is_asked_for_again(bad: str, reason: str) -> None:
    client = Told(bad, GOOD)
    found = await Paraphraser(client, Near())(ITEM)
    assert isinstance(found, ItemTwin)
    assert client.reasons == [reason]


class Broken:
    """Embeds all texts as what is no number."""

    name = "broken"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        return np.full((len(texts), 2), np.nan, dtype=np.float32)


async def test_what_has_no_similarity_is_no_paraphrase() -> None:
    client = Told(GOOD)
    assert isinstance(await Paraphraser(client, Broken())(ITEM), NoTwin)
    assert client.reasons[0].startswith("it is too far from the input")


def test_the_end_of_a_long_text_counts() -> None:
    text = "word " * 300
    assert similarity(text, text, Near()) == pytest.approx(1)
    assert similarity(text, f"{text} and bread " * 3, Near()) < 1
    assert similarity("面" * 300, "面" * 300 + "bread", Near()) < 1


async def test_a_floor_of_ones_own() -> None:
    far = GOOD.replace("sales", "bread")
    found = await Paraphraser(Told(far), Near(), floor=0.7)(ITEM)
    assert isinstance(found, ItemTwin)


async def test_without_a_valid_one_the_item_stays_unmodified() -> None:
    found = await Paraphraser(Told(INPUT), Near())(ITEM)
    assert found == NoTwin(id="x", reason="no valid answer; the last one: it is the input itself")


async def test_a_models_client_keeps_bad_ones_and_pays_once(tmp_path: Path) -> None:
    replies = script(json.dumps({"input": INPUT}), json.dumps({"input": GOOD}))
    store = open_calls(tmp_path / "calls.db")
    async with LLMServer(replies).running() as server:
        told = {"model": "openai:stub", "base_url": server.url}
        client = exchange(store).open_client(ModelConfig.model_validate(told), "paraphraser")
        found = [await Paraphraser(client, Near())(ITEM) for _ in range(2)]
        await close_models()
    assert [one.item.input for one in found if isinstance(one, ItemTwin)] == [GOOD, GOOD]
    assert len(server.requests) == 2
    assert sorted((call.valid, call.role) for call in store.records()) == [
        (False, "paraphraser"),
        (True, "paraphraser"),
    ]
    store.close()


OPTIONS = {"A": "bond", "B": "share", "C": "future", "D": "swap"}


def item(text: str, output: str = "C", options: dict[str, str] | None = None) -> Item:
    given = OPTIONS if options is None else options
    return Item(id="x", split="test", input=text, output=output, options=given)


@given(st.lists(st.sampled_from("abcd"), max_size=7), st.integers(0, 50))
def test_no_place_has_its_text_again(texts: list[str], seed: int) -> None:
    order = derange(texts, seed=seed, key="x")
    most = max(Counter(texts).values(), default=1)
    if order is None:
        assert 2 * most > len(texts)
    else:
        assert sorted(order) == [*range(len(texts))]
        assert all(texts[place] != texts[came] for place, came in enumerate(order))


def test_a_rare_order_is_found_too() -> None:
    texts = ["same"] * 13 + [str(n) for n in range(13)]
    order = derange(texts, seed=7, key="x")
    assert order is not None
    assert sorted(order) == [*range(26)]
    assert all(texts[place] != texts[came] for place, came in enumerate(order))


def test_all_orders_are_drawn_evenly() -> None:
    drawn = Counter(tuple(derange("abcd", seed=7, key=str(n)) or ()) for n in range(900))
    assert len(drawn) == 9  # the derangements of four
    assert min(drawn.values()) > 60 and max(drawn.values()) < 145


@pytest.mark.parametrize(
    "text",
    [
        "Which is a swap? ['A':bond, 'B': share, 'C':future, 'D':swap]\n Answer:",
        "Which is a swap?\nA. bond\nB. share\nC. future\nD. swap\nAnswer:",
        "Is (A) bond (B) share (C) future (D) swap right? A bond, a share.",
    ],
)
def test_the_answers_text_stays_and_its_letter_moves(text: str) -> None:
    found = shuffle_options(item(text), seed=7)
    assert isinstance(found, ItemTwin)
    twin = found.item
    assert twin.options[twin.output] == "future"
    assert all(twin.options[letter] != OPTIONS[letter] for letter in OPTIONS)
    assert found.changes["C"] == twin.output
    spans = find_option_spans(twin.input, twin.options)
    assert spans is not None
    assert [twin.input[span.start : span.end] for span in spans.values()] == [
        *twin.options.values()
    ]
    assert sorted(twin.input) == sorted(text)


def test_an_empty_answer_stays_empty() -> None:
    found = shuffle_options(item("A. bond B. share C. future D. swap", ""), seed=7)
    assert isinstance(found, ItemTwin)
    assert found.item.output == ""


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (item("What?", "x", {}), "it has no options"),
        (item("What?"), "the input does not show the options"),
        (item("A. a B. b", "E", {"A": "a", "B": "b"}), "not one of the option letters"),
        (item("A. a B. a", "A", {"A": "a", "B": "a"}), "options are equal"),
        (item("A. a B. all of the others", "A", {"A": "a", "B": "all of the others"}), "by posi"),
        (item("A. 债券 B. 以上都不对", "A", {"A": "债券", "B": "以上都不对"}), "by position"),
        (item("A. a B. A and C", "A", {"A": "a", "B": "A and C"}), "by position"),
    ],
)  # fmt: skip
def test_what_cannot_be_shuffled_says_why(one: Item, reason: str) -> None:
    found = shuffle_options(one, seed=7)
    assert isinstance(found, NoTwin)
    assert reason in found.reason


def test_an_amount_or_more_is_no_word_about_other_options() -> None:
    options = {"A": "5万元以上", "B": "50万元以下"}
    found = shuffle_options(item("A. 5万元以上 B. 50万元以下", "A", options), seed=7)
    assert isinstance(found, ItemTwin)


def test_option_a_10_is_not_found_in_100() -> None:
    assert find_option_spans("A. 100 B. 20", {"A": "10", "B": "20"}) is None
    spans = find_option_spans("A. 10 is more than B. 20?\nA. 10\nB. 20", {"A": "10", "B": "20"})
    assert spans is not None
    assert spans["A"].start == 29


@beside
@pytest.mark.parametrize(("split", "shuffled", "size"), [("dev", 169, 170), ("val", 1129, 1151)])
def test_fineval(split: str, shuffled: int, size: int) -> None:
    items = load_items("fineval", CAP / "fineval", split).items
    found = {one.id: shuffle_options(one, seed=7) for one in items}
    twins = [one.item for one in found.values() if isinstance(one, ItemTwin)]
    assert (len(items), len(twins)) == (size, shuffled)
    for one in items:
        twin = found[one.id]
        if isinstance(twin, ItemTwin):
            assert find_bracketed_options(twin.item.input) == twin.item.options
            assert twin.item.options[twin.item.output] == one.options[one.output]
            assert not {*one.options.items()} & {*twin.item.options.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Say Rise or Fall.", "Say Fall or Rise."),
        ("Rise?\n1. fall\n2. rise\nOn the Fall", "Rise?\n1. rise\n2. fall\nOn the Fall"),
        ('One of "rise", "fall".', 'One of "fall", "rise".'),
    ],
)  # fmt: skip
def test_two_labels_change_places(text: str, expected: str) -> None:
    found = shuffle_label_order(item(text, "Rise", {}), ["Rise", "Fall"], seed=7)
    assert isinstance(found, ItemTwin)
    assert (found.item.input, found.item.output) == (expected, "Rise")


def test_every_label_moves() -> None:
    labels = ["anger", "joy", "optimism", "sadness"]
    text = "Choose anger, joy, optimism or sadness.\nText: joy is all"
    found = shuffle_label_order(item(text, "joy", {}), labels, seed=7)
    assert isinstance(found, ItemTwin)
    assert all(old != new for old, new in found.changes.items())
    assert {*found.changes} == {*found.changes.values()} == {*labels}
    assert found.item.input.endswith("\nText: joy is all")


@pytest.mark.parametrize("text", ["Say Rise.", "The rise of man and the fall", "falls or rises"])
def test_a_text_that_lists_no_labels(text: str) -> None:
    found = shuffle_label_order(item(text, "Rise", {}), ["Rise", "Fall"], seed=7)
    assert isinstance(found, NoTwin)
    assert found.reason == "the input does not list Rise, Fall"


def test_label_names_within_others() -> None:
    labels = ["irony", "not irony"]
    found = shuffle_label_order(item("irony / not irony", "irony", {}), labels, seed=7)
    assert isinstance(found, ItemTwin)
    assert found.item.input == "not irony / irony"


def dated_item(text: str, output: str = "93.5%", key: str = "x") -> Item:
    return Item(id=key, split="test", input=text, output=output)


def shift_by(text: str, by: int) -> str:
    """Shift with the first key that draws this shift."""
    for key in map(str, range(200)):
        found = shift_years(dated_item(text, key=key), seed=7)
        assert isinstance(found, ItemTwin), found
        old, new = next(iter(found.changes.items()))
        if int(new) - int(old) == by:
            return found.item.input
    raise AssertionError(f"no key draws a shift by {by}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sales in 2014 , up from 2013", "sales in 2042 , up from 2041"),
        ("as of 2014-12-31.", "as of 2042-12-31."),
        ("2014-05-05,0.0,1.5,-0.1", "2042-05-05,0.0,1.5,-0.1"),
        ("due 12/31/2014 and 31.12.2015", "due 12/31/2042 and 31.12.2043"),
        ("|12/31/04|12/31/05|", "|12/31/32|12/31/33|"),
        ("[31-dec-2012 100.0 [31-dec-13 131.8", "[31-dec-2040 100.0 [31-dec-41 131.8"),
        ("on 20141231 at", "on 20421231 at"),
        ("FY14 and fy 2015", "FY42 and fy 2043"),
        ("fiscal 2014, fiscal year 2015", "fiscal 2042, fiscal year 2043"),
        ("fiscal '14 and Dec '15", "fiscal '42 and Dec '43"),
        ("2Q14, q3 2014, 2014E, 2015q1", "2Q42, q3 2042, 2042E, 2043q1"),
        ("from 2013-2014 and 2013–2015", "from 2041-2042 and 2041–2043"),  # noqa: RUF001
        ("the 2013-14 season", "the 2041-42 season"),
        ("mid-2014, post-2015", "mid-2042, post-2043"),
        ("december 31,2014", "december 31,2042"),
        ("december 31 , 2014 .see 2014.", "december 31 , 2042 .see 2042."),
        ("甲公司2014年12月20日", "甲公司2042年12月20日"),
        ("december 312014 as of 2014january 1", "december 312042 as of 2042january 1"),
        ("in 2014 shares rose", "in 2042 shares rose"),
        ("$spy falls. $ 2014-09-10: cibc", "$spy falls. $ 2042-09-10: cibc"),
    ],
)
def test_a_year_moves_however_it_is_written(text: str, expected: str) -> None:
    assert shift_by(text, 28) == expected


@pytest.mark.parametrize(
    "text",
    [
        "it paid 2,014 dollars and 12,014.5",
        "$ 2014 million, $2014, € 1,999 and usd 2014",
        "2014 million shares, 2014 %, 2014 thousand",
        "a total of 2014 employees and 2014 full-time employees",
        "a loss of -1954 ( 1954 ) or $ -1968 ( 1968 )",
        "20.14 or 2014.5 or 0.2014",
        "http://example.org/2014/05 and www.example.org/2015",
        "asu no . 2014-09 and ASU 2016-02",
        "the company 2019s assets 201cnotes201d",
        "120145 or 201 or 2114 or 1799",
        "r2014a and x_2014",
        "|in millions|now|then|\n|sales|1987|2011|\n|cost|1954|$ 2013|",
    ],
)
def test_what_only_looks_like_a_year_stays(text: str) -> None:
    assert [*find_years(text)] == []
    found = shift_years(dated_item(f"In 1999:\n{text}"), seed=7)
    assert isinstance(found, ItemTwin)
    assert found.item.input.partition("\n")[2] == text


def test_a_tables_names_move_and_its_values_stay() -> None:
    text = "|in millions|2014|2013|\n|december 31 2014|$ 3.1|1987|\n|year ended|2014|2013|"
    assert shift_by(text, -28) == (
        "|in millions|1986|1985|\n|december 31 1986|$ 3.1|1987|\n|year ended|1986|1985|"
    )


def test_decades_move_by_whole_ones() -> None:
    assert shift_by("in the 1990s, until 1998", 20) == "in the 2010s, until 2018"


def test_the_calendar_stays_right() -> None:
    """28 years on, 29 February is a day again, and the same day of the week."""
    for key in range(40):
        found = shift_years(dated_item("on 2012-02-29", key=str(key)), seed=7)
        assert isinstance(found, ItemTwin)
        assert (int(found.changes["2012"]) - 2012) % 28 == 0


def test_the_answer_stays_and_an_answer_that_is_a_year_is_left_alone() -> None:
    found = shift_years(dated_item("growth from 2013 to 2014?", "2014.5"), seed=7)
    assert isinstance(found, ItemTwin)
    assert found.item.output == "2014.5"
    refused = shift_years(dated_item("the best year of 2013 and 2014?", "2014"), seed=7)
    assert refused == NoTwin(id="x", reason="its answer is one of its years")


def test_an_item_without_years_or_without_room_says_so() -> None:
    assert shift_years(dated_item("sales of $ 2014"), seed=7) == NoTwin(
        id="x", reason="it names no year"
    )
    wide = shift_years(dated_item("from 1910 to 2090"), seed=7)
    assert isinstance(wide, NoTwin)
    assert "no shift" in wide.reason


def test_the_shift_depends_on_seed_and_item_only() -> None:
    texts = [dated_item("in 2014", key=str(key)) for key in range(40)]
    drawn = [shift_years(one, seed=7) for one in texts]
    assert drawn == [shift_years(one, seed=7) for one in reversed(texts)][::-1]
    assert len({one.item.input for one in drawn if isinstance(one, ItemTwin)}) > 1
    assert drawn != [shift_years(one, seed=8) for one in texts]


@given(st.lists(st.integers(1960, 2030), min_size=1, max_size=5), st.integers(0, 99))
def test_differences_between_years_stay(years: list[int], seed: int) -> None:
    text = " and ".join(f"in {year}" for year in years)
    found = shift_years(dated_item(text), seed=seed)
    assert isinstance(found, ItemTwin)
    moved = [int(year) for year in re.findall(r"\d{4}", found.item.input)]
    assert {new - old for new, old in zip(moved, years, strict=True)} == {moved[0] - years[0]}
    assert moved[0] != years[0]


@beside
@pytest.mark.parametrize(
    ("benchmark", "split", "name", "kept"),
    [
        ("finqa", "dev", "mod_dev.json.gz", 0),
        ("alphafin", "eval", "research_mod_eval.json.gz", 0),
    ],
)
def test_the_same_items_change_as_with_the_papers_authors(
    benchmark: str, split: str, name: str, kept: int
) -> None:
    ours = load_items(benchmark, CAP / benchmark, split).items
    theirs = load_items(benchmark, CAP / benchmark / name, split).items
    differ = [
        one.id
        for one, other in zip(ours, theirs, strict=True)
        if any(find_years(one.input)) != (one.input != other.input)
    ]
    assert len(differ) == kept
