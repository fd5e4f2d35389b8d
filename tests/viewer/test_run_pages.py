"""What the pages of runs say, without a browser: figures, lists, mistakes."""

import json
import re
import shutil
from pathlib import Path

import pytest
from filelock import FileLock
from starlette.testclient import TestClient

from coreeval.meanings import OUTCOMES
from coreeval.runs.manifest import ControlPass, read_manifest, write_manifest
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.heartbeat import CostForecast, ProgressSnapshot
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.text import unescape
from coreeval.viewer.app import create_app
from tests.viewer.kit import Finished

HERE = "http://127.0.0.1:7317"
PART = {"hx-request": "true"}


@pytest.fixture(scope="module")
def client(finished: Finished) -> TestClient:
    """Return a client of the pages of both runs."""
    return TestClient(create_app([], workspace=finished.workspace), base_url=HERE)


def words_of(html: str) -> str:
    """Return what a page says, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def listed(html: str) -> list[str]:
    """Return the ids of the samples in a list."""
    return re.findall(r'class="cut"><a href="[^"]*"><bdi>([^<]*)</bdi>', html)


def test_the_first_page_lists_runs_newest_first(client: TestClient, finished: Finished) -> None:
    text = client.get("/").text
    first, second = (
        text.index(f'href="/run/{finished.key(run)}"') for run in (finished.first, finished.second)
    )
    assert second < first
    assert text.count("complete</span>") == 2


def test_a_release_leads_to_what_is_different_from_the_one_before(client: TestClient) -> None:
    text = client.get("/").text
    assert words_of(text.partition("Releases")[2]).count("survival 1.") == 2
    before, after = "release%3Asurvival.1.0", "release%3Asurvival.1.1"
    assert unescape(text).count(f'href="/compare?a={before}&b={after}"') == 1


def test_a_run_shows_its_outcomes_and_what_it_paid_for(
    client: TestClient, finished: Finished
) -> None:
    manifest = read_manifest(finished.first / "manifest.json")
    said = words_of(client.get(f"/run/{finished.key(finished.first)}").text)
    for outcome, number in manifest.counts.items():
        if number and outcome != "total":
            assert outcome.replace("_", " ") in said
    assert f"All {manifest.counts['total']} " in said
    cost = manifest.cost
    assert cost.billed_usd
    assert f"All {cost.billed_usd:.4f} USD {cost.billed_calls} {cost.cached_calls} " in said


def test_calls_without_a_price_are_not_shown_as_free(finished: Finished, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished.first, tmp_path / "run"))
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    for row in manifest["cost"]["by_model"]:
        row |= {"usd": None, "priced": 0}
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    said = words_of(TestClient(create_app([run]), base_url=HERE).get("/").text)
    assert f"unknown price {manifest['cost']['billed_calls']} calls" in said


def test_a_run_shows_how_samples_ended_in_its_second_pass(
    finished: Finished, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished.first, tmp_path / "run"))
    (run / "control").mkdir()
    shutil.copy(run / "run.db", run / "control" / "run.db")
    manifest = read_manifest(run / "manifest.json")
    second = ControlPass(window=manifest.window, knowledge=manifest.knowledge)
    write_manifest(run / "manifest.json", manifest.model_copy(update={"control": second}))
    client = TestClient(create_app([run]), base_url=HERE)
    said = words_of(client.get(re.findall(r'href="(/run/[^"]*)"', client.get("/").text)[0]).text)
    ends = [f"{name.replace('_', ' ')} {manifest.counts[name]}" for name in OUTCOMES
            if manifest.counts.get(name)]  # fmt: skip
    assert "A second pass over the same samples writes the control arm." in said
    assert f"Its outcomes: {' '.join(ends)} of 14 samples." in said


def test_a_run_tells_found_calls_from_paid_ones(client: TestClient, finished: Finished) -> None:
    manifest = read_manifest(finished.second / "manifest.json")
    assert manifest.cost.cached_calls
    said = words_of(client.get(f"/run/{finished.key(finished.second)}").text)
    composer = re.search(r"composer openai:another (\d\.\d{4}) USD (\d+) (\d+) ", said)
    extractor = re.search(r"extractor openai:scripted (\d\.\d\d) USD (\d+) (\d+) ", said)
    assert composer
    assert extractor
    assert (float(composer[1]) > 0, int(composer[3])) == (True, 0)
    assert (float(extractor[1]), int(extractor[2]), int(extractor[3]) > 0) == (0, 0, True)


def test_every_link_of_a_run_leads_to_the_samples_that_it_counts(
    client: TestClient, finished: Finished
) -> None:
    text = client.get(f"/run/{finished.key(finished.first)}").text
    rows = re.findall(
        r'href="([^"]*/samples\?[^"]*outcome=[^"]*)".*?<td class="n"[^>]*>(\d+)', text, re.S
    )
    assert len(rows) > 4
    for address, number in rows:
        found = client.get(unescape(address), headers=PART).text
        assert words_of(found).startswith(("Cause", f"{number} sample"))
        assert len(listed(found)) == int(number)


def test_a_list_is_sorted_and_turned_round_by_its_heads(
    client: TestClient, finished: Finished
) -> None:
    samples = f"/run/{finished.key(finished.first)}/samples"
    dear = client.get(samples, params={"sort": "-usd"}, headers=PART).text
    cheap = client.get(samples, params={"sort": "usd"}, headers=PART).text
    assert len(listed(dear)) == 14
    assert listed(dear) == listed(cheap)[::-1]
    assert 'aria-sort="descending"' in dear
    assert f'href="{samples}?sort=usd"' in dear
    assert f'href="{samples}?sort=-attempts"' in dear


def test_pages_lead_to_each_other_by_what_stands_on_their_ends(
    client: TestClient, finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreeval.viewer.sample_list.PAGE_SIZE", 3)
    samples = f"/run/{finished.key(finished.first)}/samples?sort=-usd"
    pages = [client.get(samples, headers=PART).text]
    while following := re.search(r'rel="next" href="([^"]*)"', pages[-1]):
        pages.append(client.get(unescape(following[1]), headers=PART).text)
        assert "&after=" in unescape(following[1])
    for number, page in enumerate(pages, start=1):
        assert listed(page) == listed(client.get(f"{samples}&page={number}", headers=PART).text)
    assert len({each for page in pages for each in listed(page)}) == 14
    before = unescape(re.findall(r'rel="prev" href="([^"]*)"', pages[3])[0])
    assert "&before=" in before
    assert listed(client.get(before, headers=PART).text) == listed(pages[2])
    assert "7 to 9 of 14" in words_of(client.get(before, headers=PART).text)


def test_the_conditions_of_a_list_go_along_with_every_link(
    client: TestClient, finished: Finished
) -> None:
    run = f"/run/{finished.key(finished.first)}"
    causes = re.findall(r'href="([^"]*&amp;cause=[^"]*)"', client.get(run).text)
    address = unescape(causes[0])
    text = unescape(client.get(f"{address}&sort=-usd").text)
    query = address.partition("?")[2]
    outcome = query.partition("&")[0]
    assert f'href="{run}/samples?{query}&sort=usd"' in text
    assert f'href="{run}/samples?{outcome}&sort=-usd"' in text
    assert listed(text)
    for sample in listed(text):
        assert f'/sample/{sample}?{query}&sort=-usd"' in text
    assert f'<option value="{outcome.removeprefix("outcome=")}" selected>' in text


def test_several_outcomes_are_listed_together_and_can_be_left_again(
    client: TestClient, finished: Finished
) -> None:
    samples = f"/run/{finished.key(finished.first)}/samples"
    counts = read_manifest(finished.first / "manifest.json").counts
    both = client.get(f"{samples}?outcome=accepted&outcome=no_knowledge").text
    assert len(listed(both)) == counts["accepted"] + counts["no_knowledge"]
    assert both.count('type="hidden" form="filters" name="outcome"') == 2
    assert f'<a href="{samples}" hx-get' in both


def test_htmx_is_given_the_list_alone_and_a_reader_who_goes_back_all_of_it(
    client: TestClient, finished: Finished
) -> None:
    samples = f"/run/{finished.key(finished.first)}/samples"
    assert "<html" not in client.get(samples, headers=PART).text
    back = PART | {"hx-history-restore-request": "true"}
    assert "<html" in client.get(samples, headers=back).text


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("sort=price", "sort is 'price'"),
        ("attempts=many", "attempts is 'many'"),
        ("page=0", "page is '0'"),
        ("usd=1e", "usd is '1e'"),
        ("kept=perhaps", "kept is 'perhaps'"),
        ("after=1", "after is '1'. It must be a number, a colon and a value of order"),
        ("before=x:1", "before is 'x:1'"),
        ("sort=usd&after=1:nan", "after is '1:nan'"),
        ("after=9223372036854775808:1", "after is '9223372036854775808:1'"),
        ("after=1:" + "9" * 5000, "after is '1:999"),
    ],
)
def test_an_address_that_cannot_be_read_says_what_is_wrong(
    client: TestClient, finished: Finished, query: str, told: str
) -> None:
    answer = client.get(f"/run/{finished.key(finished.first)}/samples?{query}")
    assert answer.status_code == 400
    assert told in words_of(answer.text)


def test_where_texts_are_hidden_none_is_shown_searched_or_reported(finished: Finished) -> None:
    client = TestClient(create_app([finished.first], hide_texts=True), base_url=HERE)
    run = f"/run/{finished.key(finished.first)}"
    store = RunStore.open(finished.first / "run.db", now=utc_now)
    texts = [text for ended in store.sample_results() for text in ended.sample.fields.values()]
    store.close()
    listing = words_of(client.get(f"{run}/samples").text)
    assert "characters, sha256" in listing
    assert not [text for text in texts if " ".join(text.split())[:20] in listing]
    assert client.get(f"{run}/samples?text=a").status_code == 400
    assert client.get(f"{run}/report").status_code == 403


def test_the_report_may_style_itself_and_nothing_else(
    client: TestClient, finished: Finished
) -> None:
    answer = client.get(f"/run/{finished.key(finished.first)}/report")
    assert answer.text == (finished.first / "report.html").read_text()
    assert (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:;"
        in (answer.headers["content-security-policy"])
    )


def test_a_run_that_goes_on_says_when_it_ends_and_what_it_will_have_cost(
    finished: Finished, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finished.first, tmp_path / "run"))
    cost = CostForecast(usd=12.5, low_usd=11.0, high_usd=14.0, exceeds_budget=True)
    pulse = ProgressSnapshot(
        stage="refresh", per_minute=14.0, left_s=130.0, ends_at="2026-03-01T14:05+00:00", cost=cost
    )
    with RunStore.open(run / "run.db", now=utc_now) as store:
        store.beat({}, pulse)
    with FileLock(run / "run.lock"):
        client = TestClient(create_app([run]), base_url=HERE)
        words = words_of(client.get(f"/run/{tmp_path.name}.run").text)
    assert "at this rate; ends at about 2026-03-01 14:05 UTC" in words
    assert "Cost at the end of the stage 12.50 USD likely range: 11.00 USD to 14.00 USD; " in words
    assert "14.00 USD; the cost exceeds the budget" in words


def test_a_damaged_run_is_one_message_and_its_neighbours_are_shown(
    finished: Finished, tmp_path: Path
) -> None:
    broken, gone = tmp_path / "broken", tmp_path / "gone"
    for copy in (broken, gone):
        shutil.copytree(finished.first, copy)
    (broken / "run.db").write_bytes(b"no database" * 1000)
    (gone / "run.db").unlink()
    client = TestClient(create_app([broken, gone, finished.first]), base_url=HERE)
    listing = words_of(client.get("/").text)
    assert listing.count("not readable") == 2
    assert "complete" in listing
    for run, told in ((broken, "run.db is damaged"), (gone, "run.db is missing")):
        answer = client.get(f"/run/{tmp_path.name}.{run.name}")
        assert answer.status_code == 500
        assert told in words_of(answer.text)
        assert "To do:" in answer.text


def test_a_mistake_of_the_pages_is_a_page_too(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("coreeval.viewer.run_pages.sum_costs", fail)
    app = create_app([finished.first])
    client = TestClient(app, base_url=HERE, raise_server_exceptions=False)
    answer = client.get(f"/run/{finished.key(finished.first)}")
    assert answer.status_code == 500
    assert "ZeroDivisionError" in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_runs_of_one_name_are_told_apart(finished: Finished, tmp_path: Path) -> None:
    same = [tmp_path / place / "a" / "run" for place in ("one", "two")]
    for copy in same:
        shutil.copytree(finished.first, copy)
    client = TestClient(create_app(same), base_url=HERE)
    keys = set(re.findall(r'href="/run/([^"]*)"', client.get("/").text))
    assert len(keys) == 2
    assert all(re.fullmatch(r"a\.run-[0-9a-f]{6}", key) for key in keys)
    assert {client.get(f"/run/{key}").status_code for key in keys} == {200}


@pytest.mark.parametrize(
    "query",
    ["page=99999999999999999999", "page=" + "9" * 5000, "page=-1", "attempts=9223372036854775808",
     "attempts=" + "9" * 5000, "attempts=-1", "usd=nan", "usd=inf", "usd=1e999"],
)  # fmt: skip
def test_a_number_that_no_store_takes_is_a_mistake_of_the_address(
    client: TestClient, finished: Finished, query: str
) -> None:
    answer = client.get(f"/run/{finished.key(finished.first)}/samples?{query}")
    assert answer.status_code == 400
    assert "The address is not valid" in answer.text
    assert len(answer.text) < 10_000


def test_the_largest_numbers_are_read(client: TestClient, finished: Finished) -> None:
    query = "page=1000000000&attempts=9223372036854775807&usd=1e300"
    assert client.get(f"/run/{finished.key(finished.first)}/samples?{query}").status_code == 200
