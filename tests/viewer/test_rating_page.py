"""The sheet of a rater as a page, in a browser, from a folder and without network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from coreeval.evaluation.annotation.criteria import STUDIES, RatedText
from coreeval.evaluation.annotation.sheet_page import write_sheet_page
from coreeval.evaluation.annotation.sheets import read_sheets
from coreeval.schema import TaskKind
from tests.evaluation.annotation.test_kinds import CHOICE, NUMBER, sheet_item
from tests.evaluation.annotation.test_sheets import ITEMS
from tests.viewer.kit import NARROW, WIDE, Reader


@pytest.fixture
def reader(browser: Browser, tmp_path: Path) -> Iterator[Reader]:
    write_sheet_page(tmp_path / "rater-1.html", ITEMS, study="abc123", rater="rater-1")
    context = browser.new_context(offline=True)
    made = Reader(context.new_page(), tmp_path.as_uri())
    yield made
    context.close()
    assert not made.complaints


def test_a_rater_rates_with_keys_comes_back_and_downloads(reader: Reader, tmp_path: Path) -> None:
    page = reader.open("/rater-1.html")
    expect(page.get_by_text("Rate every text on its own")).to_be_visible()
    expect(page.locator(".words")).to_contain_text("=HYPERLINK")
    for key in "3210n":
        page.keyboard.press(key)
    expect(page.get_by_role("status")).to_have_text("1 of 3 texts rated")
    expect(page.get_by_role("heading", level=2)).to_contain_text("Text 2 of 3")
    page.get_by_role("radio", name="2 A few mistakes").check()
    page.get_by_role("textbox").fill("-n3 as it is;=1,'-2")
    page.reload()
    expect(page.get_by_role("radio", name="2 A few mistakes")).to_be_checked()
    expect(page.get_by_text("Rate every text on its own")).to_be_hidden()
    page.keyboard.press("u")
    page.get_by_role("button", name="clear").first.wait_for(state="hidden")
    page.keyboard.press("1")
    page.get_by_role("button", name="clear fluency").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download my ratings").click()
    expect(page.get_by_role("alert")).to_contain_text("2 of 3 texts are not fully rated")
    sheet = tmp_path / "back.csv"
    download.value.save_as(sheet)
    assert download.value.suggested_filename == "rater-1.csv"
    assert "\"'-n3 as it is;'=1,''-2\"" in sheet.read_text("utf-8")
    rows = [(row.item, row.rater, *row.cells.values(), row.note) for row in read_sheets([sheet])]
    assert rows == [
        ("abc123-000", "rater-1", "3", "2", "1", "0", ""),
        ("abc123-001", "rater-1", "2", "", "", "", "-n3 as it is;=1,'-2"),
        ("abc123-002", "rater-1", "", "", "", "", ""),
    ]


def test_keys_can_be_switched_off_and_wrong_ones_do_nothing(reader: Reader) -> None:
    page = reader.open("/rater-1.html")
    for key in ("9", "0", "x"):
        page.keyboard.press(key)
    expect(page.locator("input[type=radio]:checked")).to_have_count(0)
    page.get_by_label("use these keys").uncheck()
    page.keyboard.press("3")
    page.keyboard.press("n")
    expect(page.locator("input[type=radio]:checked")).to_have_count(0)
    expect(page.get_by_role("heading", level=2)).to_contain_text("Text 1 of 3")


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
def test_it_reads_well_on_any_screen(reader: Reader, scheme: str, size: dict[str, int]) -> None:
    reader.page.set_viewport_size(size)  # type: ignore[arg-type]
    reader.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page = reader.open("/rater-1.html")
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    page.keyboard.press("3")
    reader.assert_readable()


def test_a_browser_that_keeps_nothing_says_so(reader: Reader) -> None:
    reader.page.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('denied'); }})"
    )
    page = reader.open("/rater-1.html")
    expect(page.get_by_role("alert")).to_contain_text("does not save your ratings")
    page.keyboard.press("3")
    expect(page.get_by_role("radio", name="3 Correct")).to_be_checked()


def test_a_rater_picks_options_and_writes_answers(reader: Reader, tmp_path: Path) -> None:
    """Keys are for ratings and letters, and are typed where an answer is written."""
    texts: dict[TaskKind, RatedText] = {"choice": CHOICE, "answer": NUMBER}
    for kind, text in texts.items():
        design, path = STUDIES[kind], tmp_path / f"{kind}.html"
        write_sheet_page(path, [sheet_item(text)], study=kind, rater="ann", design=design)
    page = reader.open("/choice.html")
    expect(page.get_by_text("2 is B")).to_be_visible()
    for key in "3312":
        page.keyboard.press(key)
    expect(page.get_by_role("radio", name="B Ada Roe")).to_be_checked()
    expect(page.get_by_role("status")).to_have_text("1 of 1 texts rated")
    page.get_by_role("button", name="clear answer").click()
    page.keyboard.press("0")
    expect(page.get_by_role("radio", name="none")).to_be_checked()
    page = reader.open("/answer.html")
    box = page.get_by_role("textbox", name="What is the answer?")
    box.press_sequentially("n 12 km ")
    page.reload()
    expect(box).to_have_value("n 12 km")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download my ratings").click()
    download.value.save_as(tmp_path / "back.csv")
    [row] = read_sheets([tmp_path / "back.csv"], STUDIES["answer"].columns)
    assert row.cells["answer"] == "n 12 km"
