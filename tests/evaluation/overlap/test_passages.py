"""An item inside a longer text is found, with its place there; chance and other items are not."""

import pytest

from coreeval.evaluation.overlap import shingles
from coreeval.evaluation.overlap.overlap_report import overlap_document, render_overlap_page
from coreeval.evaluation.overlap.passages import encode_letters
from coreeval.evaluation.overlap.search import find_overlap
from tests.evaluation.overlap.kit import CHINESE, QUESTION, texts, unrelated

AROUND = unrelated(40, seed=5)


def inside(text: str, times: int) -> str:
    """Return a longer text with another in its middle."""
    half = times // 2
    return "\n".join([*AROUND[:half], text, *AROUND[half:times]])


@pytest.mark.parametrize("times", [5, 20])
@pytest.mark.parametrize("item", [QUESTION, f"{CHINESE},试说明其经济含义和原因"])
def test_an_item_is_found_inside_a_longer_text(times: int, item: str) -> None:
    host = inside(item, times)
    (hit,) = find_overlap(
        texts("a", *unrelated(9), item), texts("b", *unrelated(9, seed=2), host)
    ).hits
    assert (hit.kind, hit.a[0].id, hit.b[0].id, hit.similarity) == ("contained", "a10", "b10", 1.0)
    assert hit.within is not None and hit.within.side == "b"
    found = host[hit.within.start : hit.within.end]
    assert item.startswith(found) and len(item) - len(found) <= 3  # signs at the end
    assert hit.texts == (item, found)


def test_either_side_may_have_the_longer_text_and_one_benchmark_both() -> None:
    host = inside(QUESTION, 6)
    (hit,) = find_overlap(texts("a", host), texts("b", QUESTION)).hits
    assert hit.within is not None and hit.within.side == "a"
    assert hit.texts[0] == QUESTION[:-3]
    (hit,) = find_overlap(texts("a", QUESTION, host)).hits
    assert (hit.kind, hit.a[0].id, hit.b[0].id) == ("contained", "a1", "a2")


def test_an_edited_item_is_found_and_one_with_other_numbers_is_not() -> None:
    item = "The bridge at Ferrol was opened by 31 divers in 1974 and closed after storms in 1988."
    edited = item.replace("opened", "inaugurated").replace("storms", "a gale")
    other = item.replace("31", "45").replace("1974", "1951").replace("1988", "1999")
    a = texts("a", item)
    (hit,) = find_overlap(a, texts("b", inside(edited, 6))).hits
    assert hit.kind == "contained" and 0.5 < hit.similarity < 1
    assert find_overlap(a, texts("b", inside(other, 6))).hits == ()


def test_short_items_are_not_looked_for_in_longer_texts() -> None:
    assert (
        find_overlap(texts("a", "so happy today"), texts("b", inside("so happy today", 6))).hits
        == ()
    )


def test_long_texts_are_searched_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shingles, "CHUNK", 300)
    hosts = [inside(text, 6) for text in (*unrelated(3, seed=7), QUESTION)]
    found = find_overlap(texts("a", *unrelated(9), QUESTION), texts("b", *hosts))
    (hit,) = (hit for hit in found.hits if hit.kind == "contained")
    assert hit.b[0].id == "b4" and hit.texts[1] == QUESTION[:-3]


def test_vowel_signs_are_letters() -> None:
    letters = encode_letters(["दिन!", "दान"])
    assert letters.of(0).tolist() == [*map(ord, "दिन")]
    assert letters.of(1).tolist() == [*map(ord, "दान")]


def test_letters_keep_their_places() -> None:
    letters = encode_letters(["A-b, \uff23!", "", "x"])
    assert [chr(code) for code in letters.codes if code] == ["a", "b", "c", "x"]
    assert letters.sizes.tolist() == [3, 0, 1]
    assert letters.places[:3].tolist() == [0, 2, 5]


def test_documents_and_pages_show_the_passage() -> None:
    found = find_overlap(texts("a", QUESTION), texts("b", inside(QUESTION, 20)))
    (hit,) = overlap_document(found)["hits"]
    assert hit["b_text"] == QUESTION[:-3]
    start, end = hit["within"]["start"], hit["within"]["end"]
    assert (hit["within"]["side"], end - start) == ("b", len(QUESTION) - 3)
    assert f"characters {start} to {end} of the text on the right." in render_overlap_page(found)
