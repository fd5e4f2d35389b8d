"""A table is aligned on a terminal, and texts of others format nothing in any form of it."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from coreeval.tools.tables import (
    Cell,
    Foreign,
    Table,
    cut_line,
    format_html,
    format_markdown,
    intervals,
    numbers,
    text_lines,
    texts,
)

COLUMNS = (texts("name", most=8), numbers("n", 4), intervals(12))
ROWS = [("one", 1, "0.1 to 0.2"), ("a longer name", 12345, ""), ("short",)]


def test_a_terminal_aligns_cells_and_cuts_only_where_it_may() -> None:
    assert [*text_lines(Table(COLUMNS, ROWS), "  ")] == [
        "  name       n  95 % interval",
        "  one        1  0.1 to 0.2",
        "  a longe…12345",
        "  short",
    ]


def test_a_column_is_as_wide_as_it_must_be_and_no_wider_than_it_may() -> None:
    rows: list[tuple[Cell, ...]] = [("ab", 1)]
    fitted = [*text_lines(Table((texts("x", most=9), numbers("n", 3)), rows))]
    assert fitted == ["x   n", "ab  1"]
    fixed = [*text_lines(Table((texts("x", 5, most=5), numbers("n", 3)), rows))]
    assert fixed == ["x      n", "ab     1"]


def test_heads_may_be_left_out_and_title_and_note_stand_around() -> None:
    table = Table((texts("x", 3), numbers("y", 2)), [("a", 0), ("b", -1)], "Title:", "A note.")
    assert [*text_lines(table, heads=False)] == ["Title:", "a   0", "b  -1", "A note."]
    assert [*text_lines(Table((texts("x"),), []))] == ["x"]


def test_wide_characters_count_as_one() -> None:
    assert [*text_lines(Table((texts(width=4), numbers(width=2)), [("漢字", 1)]), heads=False)] == [
        "漢字   1"
    ]
    assert cut_line("漢字漢字漢字", 4) == "漢字漢…"


def test_a_text_of_others_stays_on_its_line() -> None:
    table = Table((texts("x", 4), numbers("y", 2)), [(Foreign("a\nb\tc"), 1)])
    assert [*text_lines(table)] == ["x    y", "a b c 1"]
    assert cut_line(" a\n\nb ", 9) == "a b"


def test_markdown_escapes_texts_of_others_alone() -> None:
    table = Table(
        (texts(), numbers("n"), texts("text")),
        [("`x`", 0, Foreign("a|b *c*\n# d")), ("", -1, "**ours**")],
        note="A note.",
    )
    assert format_markdown(table) == (
        "| | n | text |\n|---|---|---|\n"
        "| `x` | 0 | a\\|b \\*c\\* \\# d |\n|  | -1 | **ours** |\n\nA note."
    )
    assert format_markdown(Table((texts("x"),), [])) == "| x |\n|---|\n"


def test_a_page_gets_escaped_cells_and_sets_numbers_apart() -> None:
    table = Table((texts("<x>"), numbers("n"), intervals()), [("a & 'b'", 1, "0 to 1")], "T<i>")
    assert format_html(table, "small") == (
        '<table class="small">\n<caption>T&lt;i&gt;</caption>\n'
        '<tr><th>&lt;x&gt;</th><th class="n">n</th><th class="n">95 % interval</th></tr>\n'
        '<tr><td>a &amp; &#39;b&#39;</td><td class="n">1</td><td class="n">0 to 1</td></tr>\n'
        "</table>"
    )
    noted = format_html(Table((texts("x"),), [("\u202ea",)], note="<b>"))
    assert noted.endswith("<td>\N{REPLACEMENT CHARACTER}a</td></tr>\n</table>\n<p>&lt;b&gt;</p>")


class Elements(HTMLParser):
    """Collects the names of elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.add(tag)


@given(st.text(max_size=30), st.integers(1, 12))
def test_no_text_breaks_out_of_its_cell(text: str, most: int) -> None:
    table = Table((texts("x", most=most), numbers("n", 2)), [(Foreign(text), 7)])
    lines = [*text_lines(table)]
    assert len(lines) == 2
    assert all(len(line) <= most + 2 for line in lines)
    made = format_markdown(table).split("\n")
    assert len(made) == 3
    assert made[2].replace("\\|", "").count("|") == 3
    page = Elements()
    page.feed(format_html(table))
    assert page.found == {"table", "tr", "th", "td"}
