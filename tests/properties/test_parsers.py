"""What holds for every parser of foreign text, whatever the text."""

import csv
import io
import json
import tempfile
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreeval.agents.offline.tokens import find_tags_start, split_segments, strip_edges
from coreeval.config.user_files import MOST_DEPTH, YamlError, parse_yaml
from coreeval.evaluation.numleak.parsing.answer_text import normalise_text
from coreeval.evaluation.overlap.shingles import normalise_words
from coreeval.models.answer_text import (
    extract_final_answer,
    extract_json,
    is_too_deep,
    iter_objects,
    strip_thoughts,
)
from coreeval.tools.gdelt import page_text
from coreeval.tools.text import escape_formula, format_sheet, iter_sheet_rows, unescape_formula
from tests.hostile.parsers import PARSERS

SIGNS = st.text(alphabet=st.sampled_from("{}[]:,\"'\\/* \na1-.%()<>|&;#@`\u201c\u00e9\u4e2d\0"))
WORDS = st.lists(
    st.sampled_from(
        ("<think>", "</think>", "<answer>", "</answer>", "```json\n", "```", '{"label":', "joy",
         "not ", "is ", "1 , 000", "4.4% ", "September 2008", "&amp;", "<!--", "-->", "U . S . ",
         "- ", "a: ", "&a ", "*a", "!!int ", "\t", "\r\n", " | ", "\u202e", "20260610033000")
    )
).map("".join)  # fmt: skip
TEXTS = st.text() | SIGNS | WORDS
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FORMULAS = st.text(alphabet=st.sampled_from("a=+-@\uff1d,;\t\r\n'\""), max_size=12)
CELLS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"))


@pytest.mark.filterwarnings("ignore::UserWarning")  # openpyxl's, of odd workbooks
@pytest.mark.parametrize("parser", PARSERS)
@given(st.binary(max_size=300) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_nothing_but_messages_comes_of_any_text(parser: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        PARSERS[parser](content, Path(folder))


# -- answers --------------------------------------------------------------------------------------


@given(TEXTS)
def test_an_answer_is_read_out_of_a_text_and_no_text_is_added(text: str) -> None:
    for read in (strip_thoughts, extract_json):
        assert len(read(text)) <= len(text) and read(text).strip() in text
    assert len(extract_final_answer(text)) <= len(text)


@given(st.dictionaries(st.text(), VALUES, min_size=1, max_size=4))
def test_an_object_is_found_among_words(value: dict[str, object]) -> None:
    text = json.dumps(value)
    (found,) = iter_objects(f"Here it is: {text} as you asked")
    assert found[0] == value
    assert f"Here it is: {text} as you asked"[found[1] : found[2]] == text


@given(st.integers(1, 3 * MOST_DEPTH), st.booleans())
def test_an_object_is_too_deep_from_one_level_on(levels: int, lists: bool) -> None:
    value: object = {}
    for _ in range(levels - 1):
        value = [value] if lists else {"a": value}
    assert is_too_deep(value) == (levels > MOST_DEPTH)
    if not lists:
        assert bool([*iter_objects(json.dumps({"a": value}))]) == (levels < MOST_DEPTH)


@given(TEXTS)
def test_a_plain_answer_is_as_long_as_what_was_said_or_a_few_times_so(text: str) -> None:
    assert len(normalise_text(text)) <= 40 * (len(text) + 1)


# -- news -----------------------------------------------------------------------------------------


@given(TEXTS)
def test_a_cleaned_title_stays_as_it_is(text: str) -> None:
    once = page_text.clean_text(text)
    assert len(once) <= page_text.LONGEST_TITLE
    assert page_text.without_unseen(once) == once
    assert "\n" not in once and "\x1b" not in once


@given(TEXTS)
def test_a_repaired_title_is_one_line_of_single_spaces(text: str) -> None:
    repaired = page_text.repair_title(text)
    assert repaired == " ".join(repaired.split())
    assert page_text.without_outlet(repaired) in repaired


@given(TEXTS)
def test_plain_words_stay_as_they_are(text: str) -> None:
    once = normalise_words(text)
    assert normalise_words(once) == once or not once.isascii()


# -- samples --------------------------------------------------------------------------------------


@given(TEXTS)
def test_segments_are_where_they_say(text: str) -> None:
    ends = [0]
    for part in split_segments(text):
        assert text[part.start : part.end] == part.text and part.start >= ends[-1]
        ends.append(part.end)


@given(TEXTS, st.sampled_from(("", " #tag", " @name #a1 ", "\U0001f600\U0001f600", " #a @b\n")))
def test_tags_at_the_end_are_cut_off(text: str, tags: str) -> None:
    at = find_tags_start(f"{text}.{tags}")
    assert at <= len(text) + 1 or not tags
    assert strip_edges(text) in text


# -- files ----------------------------------------------------------------------------------------


PLAIN = st.text(alphabet=st.characters(codec="ascii", categories=("L", "N", "P", "Zs")))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | PLAIN,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PLAIN, inner),
    )
)
def test_yaml_reads_what_is_written_as_json(value: object) -> None:
    assert parse_yaml(json.dumps(value)) == value


@given(st.sampled_from(("int", "float", "bool", "timestamp", "binary", "null", "set", "omap",
                        "pairs", "map", "seq", "str", "merge", "value")), TEXTS)  # fmt: skip
def test_a_value_that_is_not_what_its_tag_says_is_a_mistake(tag: str, text: str) -> None:
    for content in (
        f"a: !!{tag}",
        f"a: !!{tag} {text}",
        f"!!{tag} [{text}]",
        f"!!{tag} {{a: {text}",
    ):
        with suppress(YamlError):
            parse_yaml(content)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=5))
def test_a_sheet_comes_back_as_it_was_written(rows: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(format_sheet(("a", "b"), rows), encoding="utf-8", newline="")
        read = [[unescape_formula(cell) for cell in cells] for _, cells in iter_sheet_rows(path)]
    assert read == [["a", "b"], *rows]


@given(st.text())
def test_a_harmless_cell_is_no_formula(cell: str) -> None:
    made = escape_formula(cell)
    assert not made.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert unescape_formula(made) == cell.replace("\0", "\N{REPLACEMENT CHARACTER}")


@given(st.lists(st.lists(FORMULAS, min_size=2, max_size=2), max_size=3))
def test_no_cell_is_a_formula_whatever_the_separator(rows: list[list[str]]) -> None:
    escaped = [[escape_formula(cell) for cell in row] for row in rows]
    assert [[unescape_formula(cell) for cell in row] for row in escaped] == rows
    made = io.StringIO(newline="")
    csv.writer(made).writerows(escaped)
    for sheet, separator in product((format_sheet(("a", "b"), rows), made.getvalue()), ",;\t"):
        quoted = csv.reader(io.StringIO(sheet, newline=""), delimiter=separator)
        cells = [cell for row in quoted for cell in row]
        cells += [cell for line in sheet.splitlines() for cell in line.split(separator)]
        assert not [cell for cell in cells if cell.lstrip().startswith((*"=+-@\uff1d",))]
