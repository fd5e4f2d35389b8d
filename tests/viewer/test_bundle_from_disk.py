"""A bundle in a browser, opened from disk."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.viewer.hostile import make_hostile
from tests.viewer.kit import Finished, Reader, write_bundle_of


@pytest.mark.parametrize("hostile", [False, True])
def test_a_bundle_opens_from_disk_and_no_request_leaves_its_folder(
    browser: Browser, finished: Finished, tmp_path: Path, hostile: bool
) -> None:
    run, written = finished.first, tmp_path / "bundle"
    with ThreadPoolExecutor() as threads:  # Playwright's loop runs in this one
        if hostile:
            run = threads.submit(make_hostile, run, tmp_path / "bad" / "run").result()
        threads.submit(write_bundle_of, run, written).result()
    context = browser.new_context()
    reader = Reader(context.new_page(), written.as_uri())
    requested: set[str] = set()
    reader.page.on("request", lambda request: requested.add(request.url))
    waiting, seen = ["index.html"], set[str]()
    while waiting:
        seen.add(name := waiting.pop())
        page = reader.open(f"/{name}")
        assert page.evaluate("getComputedStyle(document.body).marginTop") == "0px"  # it has a style
        for address in page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)"):
            if not address.startswith("file:"):
                continue
            file = Path(address.partition("#")[0].removeprefix("file://")).relative_to(written)
            assert (written / file).is_file(), address
            if file.suffix == ".html" and str(file) not in {*seen, *waiting}:
                waiting.append(str(file))
    assert {*seen} == {str(path.relative_to(written)) for path in written.rglob("*.html")}
    assert all(address.startswith(f"{written.as_uri()}/") for address in requested)
    assert not reader.complaints
    context.close()
