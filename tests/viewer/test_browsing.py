"""The pages in a browser: layout, keys, filters, a run that goes on, scripts off, hostile texts."""

import asyncio
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page, expect

from coreeval.schema import Result
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles
from coreeval.viewer.app import create_app
from coreeval.viewer.rendering import build_compare_url, build_run_url, build_sample_url
from tests.viewer.hostile import OVERRIDE, SAMPLE, SCRIPT, make_hostile
from tests.viewer.kit import NARROW, WIDE, Finished, Reader, served


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
def test_every_page_reads_well_on_any_screen(
    reader: Reader, finished: Finished, scheme: str, size: dict[str, int]
) -> None:
    key = finished.key(finished.first)
    reader.expected.add(404)
    reader.page.set_viewport_size(size)  # type: ignore[arg-type]
    reader.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in ("/", f"/run/{key}", f"/run/{key}/samples?sort=-usd", "/run/none"):
        reader.open(path)
        reader.assert_readable()
        if size == NARROW and path != "/run/none":
            reader.assert_cells_seen()


def test_a_reader_filters_sorts_and_goes_back(reader: Reader, finished: Finished) -> None:
    samples = f"/run/{finished.key(finished.first)}/samples"
    page = reader.open(samples)
    rows = page.locator("#list tbody tr")
    expect(rows).to_have_count(14)
    page.get_by_label("Outcome").select_option("accepted")
    expect(page).to_have_url(re.compile(r"outcome=accepted"))
    expect(rows.locator(".pill:text('accepted')")).to_have_count(rows.count())
    page.get_by_role("link", name="Cost").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Cost")
    page.get_by_role("searchbox").fill("nothing is like this")
    expect(page.get_by_text("No sample matches the filter.")).to_be_visible()
    assert re.search(r"outcome=accepted.*sort=-usd|sort=-usd.*outcome=accepted", page.url)
    for expected in (r"sort=-usd$", r"outcome=accepted[^-]*$"):
        with page.expect_event("load"):  # going back loads the page again
            page.evaluate("setTimeout(() => history.back())")
        expect(page).to_have_url(re.compile(expected))
    expect(page.get_by_label("Outcome")).to_have_value("accepted")
    expect(rows.first).to_contain_text("accepted")


def test_a_keyboard_reaches_the_content_first_and_shows_where_it_is(
    reader: Reader, finished: Finished
) -> None:
    page = reader.open(f"/run/{finished.key(finished.first)}")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    assert skip.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_a_reader_without_scripts_filters_and_turns_pages(
    browser: Browser, pages: str, finished: Finished
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{pages}/run/{finished.key(finished.first)}/samples")
    page.locator("select[name=outcome]").select_option("no_knowledge")
    page.get_by_role("button", name="Show").click()
    assert "outcome=no_knowledge" in page.url
    assert (
        page.locator("#list tbody tr").count() == page.locator("#list td.cut > .pill").count() > 0
    )
    context.close()


@dataclass
class GoingOn:
    """A run that seems to be worked on: what was accepted is open again."""

    run: Path
    lock: FileLock
    open: list[Result]

    def end_one(self) -> None:
        """Let one more sample be accepted."""
        with closing(RunStore.open(self.run / "run.db", now=utc_now)) as store:
            asyncio.run(store.commit(self.open.pop()))


@pytest.fixture
def going_on(finished: Finished, tmp_path: Path) -> Iterator[GoingOn]:
    """Return a copy of a run whose lock is held."""
    files = RunFiles(shutil.copytree(finished.first, tmp_path / "live" / "run"))
    with closing(RunStore.open(files.store, now=utc_now)) as store:
        ended = [one.result for one in store.sample_results(["accepted"])]
        store.forget("accepted")
    with FileLock(files.lock) as lock:
        yield GoingOn(files.root, lock, ended)


def test_a_run_is_followed_while_it_goes_on_and_shown_whole_when_it_ends(
    browser: Browser, going_on: GoingOn
) -> None:
    open_ = len(going_on.open)
    with served(create_app([going_on.run])) as base, ThreadPoolExecutor() as threads:
        context = browser.new_context()
        reader = Reader(context.new_page(), base)
        page = reader.open("/run/live.run")
        expect(page.locator("#now .pill").first).to_have_text("running")
        pending = page.locator("#now tr", has_text="pending").locator("td.n")
        expect(pending).to_have_text(str(open_))
        page.evaluate("window.loaded = 'once'")
        threads.submit(going_on.end_one).result()
        expect(pending).to_have_text(str(open_ - 1))
        expect(page.locator("#now tr", has_text="accepted").locator("td.n")).to_have_text("1")
        assert page.evaluate("window.loaded") == "once"
        going_on.lock.release()
        expect(page.locator("#now .pill").first).to_have_text("complete")
        assert page.evaluate("window.loaded") is None
        context.close()
    assert not reader.complaints


@pytest.fixture(scope="module")
def accepted(finished: Finished) -> list[str]:
    """Return the accepted samples of the first run."""
    with closing(RunStore.open(finished.first / "run.db", now=utc_now)) as store:
        return [ended.sample.id for ended in store.sample_results(["accepted"])]


@pytest.mark.parametrize(("scheme", "size"), [("light", NARROW), ("dark", WIDE)])
def test_a_sample_and_a_comparison_read_well_with_all_folds_open(
    reader: Reader, finished: Finished, accepted: list[str], scheme: str, size: dict[str, int]
) -> None:
    first, second = finished.key(finished.first), finished.key(finished.second)
    reader.page.set_viewport_size(size)  # type: ignore[arg-type]
    reader.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in (
        build_sample_url(first, accepted[0]),
        "/compare",
        build_compare_url(first, second),
    ):
        page = reader.open(path)
        page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        reader.assert_readable()
        if size == NARROW and "/sample/" in path:
            reader.assert_cells_seen()


def test_keys_move_through_the_list_up_again_and_tell_what_they_do(
    reader: Reader, finished: Finished, accepted: list[str]
) -> None:
    key, query = finished.key(finished.first), "outcome=accepted"
    page = reader.open(build_sample_url(key, accepted[0], query))
    for pressed, sample in (("j", 1), ("ArrowRight", 2), ("k", 1), ("ArrowLeft", 0), ("k", 0)):
        page.keyboard.press(pressed)
        page.wait_for_url(reader.base + build_sample_url(key, accepted[sample], query))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("j")  # what the dialog covers stays where it is
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("h1")).to_have_text(accepted[0])
    page.keyboard.press("Control+j")
    page.keyboard.press("u")
    expect(page).to_have_url(reader.base + build_run_url(key, "samples") + "?outcome=accepted")


def test_keys_that_are_typed_or_scroll_move_nothing(reader: Reader, finished: Finished) -> None:
    page = reader.open(build_compare_url(*(finished.key(run) for run in (finished.first,) * 2)))
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend',"
        ' \'<a data-keys="j ArrowRight" href="/">next</a><input id=typing>\')'
    )
    page.locator("#typing").press("j")
    page.locator("#typing").press("?")
    expect(page.locator("#typing")).to_have_value("j?")
    page.get_by_role("region", name="Outcomes and cost").press("ArrowRight")
    assert "/compare" in page.url


@pytest.fixture
def attacked(browser: Browser, finished: Finished, tmp_path: Path) -> Iterator[Reader]:
    """Return a reader of a run that is out to get him."""
    with ThreadPoolExecutor() as threads:  # Playwright's loop runs in this one
        run = threads.submit(make_hostile, finished.first, tmp_path / "bad" / "run").result()
    with served(create_app([run, finished.first])) as base:
        context = browser.new_context()
        yield Reader(context.new_page(), base)
        context.close()


def test_what_a_hostile_run_says_stays_text(attacked: Reader, finished: Finished) -> None:
    for path in (
        build_sample_url("bad.run", SAMPLE),
        build_compare_url(finished.key(finished.first), "bad.run"),
    ):
        page = attacked.open(path)
        assert _foreign(page) == 0
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    assert not attacked.complaints


def test_a_copied_text_has_its_invisible_characters_and_no_marks(attacked: Reader) -> None:
    attacked.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = attacked.open(build_sample_url("bad.run", SAMPLE))
    page.get_by_role("button", name="Copy the new text").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{SCRIPT} {OVERRIDE}"
    read = page.locator(".reading").first
    assert read.locator(".unseen").count() == 2
    assert read.locator("ins, del").count() == 0


def test_a_narrow_screen_folds_what_the_report_explains(reader: Reader, finished: Finished) -> None:
    page = reader.open(f"/run/{finished.key(finished.first)}/report")
    reader.page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    expect(page.locator("#evidence > p").first).to_be_visible()
    reader.page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    reader.assert_readable()
    for section in ("how", "evidence", "limits", "definitions"):
        expect(page.locator(f"#{section} > *").first).to_be_hidden()
        page.locator(f"nav a[href='#{section}']").click()
        expect(page.locator(f"#{section} > *").first).to_be_visible()


def _foreign(page: Page) -> int:
    """Count what news could have put into the page: frames, pictures, scripts, odd links."""
    foreign = "iframe, img:not(.brand img), main script, main b:has(script), a[href^='javascript']"
    return page.locator(foreign).count()
