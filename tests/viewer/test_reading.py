"""The page of a sample and a comparison in a browser: by keyboard, on any screen, with malice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.viewer.addresses import compare_url, run_url, sample_url
from coreeval.viewer.app import create_app
from tests.viewer.hostile import SAMPLE, make_hostile
from tests.viewer.kit import NARROW, WIDE, Finished, Reader, served


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
    for path in (sample_url(first, accepted[0]), "/compare", compare_url(first, second)):
        page = reader.open(path)
        page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        reader.assert_readable()


def test_keys_move_through_the_list_up_again_and_tell_what_they_do(
    reader: Reader, finished: Finished, accepted: list[str]
) -> None:
    key, query = finished.key(finished.first), "outcome=accepted"
    page = reader.open(sample_url(key, accepted[0], query))
    for pressed, sample in (("j", 1), ("ArrowRight", 2), ("k", 1), ("ArrowLeft", 0), ("k", 0)):
        page.keyboard.press(pressed)
        page.wait_for_url(reader.base + sample_url(key, accepted[sample], query))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("j")  # what the dialog covers stays where it is
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("h1")).to_have_text(accepted[0])
    page.keyboard.press("Control+j")
    page.keyboard.press("u")
    expect(page).to_have_url(reader.base + run_url(key, "samples") + "?outcome=accepted")


def test_keys_that_are_typed_or_scroll_move_nothing(reader: Reader, finished: Finished) -> None:
    page = reader.open(compare_url(*(finished.key(run) for run in (finished.first,) * 2)))
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
        sample_url("bad.run", SAMPLE),
        compare_url(finished.key(finished.first), "bad.run"),
    ):
        page = attacked.open(path)
        assert _foreign(page) == 0
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
    assert not attacked.complaints


def _foreign(page: Page) -> int:
    """Count what news could have put into the page: frames, pictures, scripts, odd links."""
    foreign = "iframe, img:not(.brand img), main script, main b:has(script), a[href^='javascript']"
    return page.locator(foreign).count()
