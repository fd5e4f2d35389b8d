"""What pages and `trace` say of targets' answers, sample by sample."""

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coreeval.cli import main
from coreeval.schema import Prediction, Result, Sample
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.text import unescape
from coreeval.viewer.app import create_app
from tests.viewer.kit import Finished
from tests.viewer.test_run_pages import HERE, PART, listed, words_of
from tests.viewer.test_sample_page import part

OTHER = "openai:<other>"
WORDS = "<b>none</b> of these"


@pytest.fixture(scope="module")
def run(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of which a second target got every original right and no updated text."""
    made = Path(shutil.copytree(finished.first, tmp_path_factory.mktemp("targets") / "run"))
    with closing(RunStore.open(made / "run.db", now=utc_now)) as store:
        ended = list(store.sample_results())
        store.add_predictions(
            _say(one.sample, arm, template, answer)
            for one in ended
            for arm, answer in (("original", one.sample.label_text), ("updated", WORDS))
            if arm == "original" or one.result.updated
            for template in (1, 2)
        )
    return made


def _say(sample: Sample, arm: str, template: int, answer: str) -> Prediction:
    return Prediction(
        target=OTHER, source=arm, sample_id=sample.id, template=template, answer=answer
    )


@pytest.fixture(scope="module")
def accepted(run: Path) -> list[Result]:
    """Return the results of the accepted samples, with their facts."""
    with closing(RunStore.open(run / "run.db", now=utc_now)) as store:
        results = [store.result(each) for each in store.sample_ids()]
    return [one for one in results if one and one.outcome == "accepted"]


@pytest.fixture(scope="module")
def client(run: Path) -> TestClient:
    """Return a client of the pages of the run."""
    return TestClient(create_app([run]), base_url=HERE)


@pytest.fixture(scope="module")
def address(client: TestClient) -> str:
    """Return the address of the run."""
    found: list[str] = re.findall(r'href="(/run/[^"]*)"', client.get("/").text)
    return found[0]


def follow(client: TestClient, html: str, pattern: str) -> str:
    """Return the page behind the first link of a page whose address matches."""
    address = next(
        each for each in map(unescape, re.findall(r'href="([^"]*)"', html))
        if re.search(pattern, each)
    )  # fmt: skip
    text: str = client.get(address).text
    return text


def test_from_wrong_on_updated_to_the_article_in_three_clicks(
    client: TestClient, address: str, run: Path, accepted: list[Result]
) -> None:
    targets = client.get(f"{address}/targets").text
    of_other = targets.partition("openai:&lt;other&gt;</bdi></th>")[2]
    found = follow(client, of_other, "on_original=right&on_updated=wrong")  # the first click
    assert listed(found) == [one.sample_id for one in accepted]
    sample = follow(client, found, f"/sample/{accepted[0].sample_id}")  # the second
    table = part(sample, "facts")
    with closing(RunStore.open(run / "run.db", now=utc_now)) as store:
        fact = accepted[0].facts[0]
        article = store.history.evidence([fact.evidence_id])[fact.evidence_id]
    assert f'href="{article.url}"' in unescape(table)  # the third


def test_a_sample_tells_what_each_target_answered_to_each_template(
    client: TestClient, address: str, run: Path, accepted: list[Result]
) -> None:
    html = client.get(f"{address}/sample/{accepted[0].sample_id}").text
    told = words_of(part(html, "answers")).replace("\N{EN DASH} ", "- ")
    gold = words_of(html.partition("<dt>label</dt>")[2].partition("<small>")[0])
    for template in (1, 2):
        assert f"openai:<other> {template} right {gold} wrong {WORDS}" in told.replace("- ", "")
    assert "offline:classifier - " in told
    assert "<b>none" not in html
    hidden = TestClient(create_app([run], hide_texts=True), base_url=HERE)
    html = hidden.get(f"{address}/sample/{accepted[0].sample_id}").text
    assert "of these" not in html
    assert "wrong [20 characters" in words_of(part(html, "answers"))


def test_a_list_tells_how_many_targets_are_right_and_keeps_its_filter(
    client: TestClient, address: str, accepted: list[Result]
) -> None:
    query = {"target": OTHER, "on_original": "right", "on_updated": "wrong"}
    html = client.get(f"{address}/samples", params=query).text
    assert listed(html) == [one.sample_id for one in accepted]
    assert re.search(r"[12] of 2 [01] of 2", words_of(html))
    assert '<option value="openai:&lt;other&gt;" selected>' in html
    heads = re.findall(r'class="sort" href="([^"]*)"', html)
    assert heads and all("on_updated=wrong" in each for each in heads)
    none = client.get(f"{address}/samples", params=query | {"on_updated": "right"}).text
    assert "No sample matches the filter." in none
    odd = client.get(f"{address}/samples", params={"on_updated": "nearly"})
    assert odd.status_code == 400
    assert "on_updated is" in words_of(odd.text)


def test_the_matrix_has_a_mark_for_each_arm_that_a_target_answered(
    client: TestClient, address: str, accepted: list[Result]
) -> None:
    html = client.get(f"{address}/targets", headers=PART).text
    assert "<html" not in html
    rows = dict(zip(listed(html), map(words_of, html.split("<tr>")[2:]), strict=True))
    for one in accepted:
        assert rows[one.sample_id].endswith("O ✓ original right U ✗ updated wrong")
    other = next(row for sample, row in rows.items()
                 if sample not in {one.sample_id for one in accepted})  # fmt: skip
    assert other.endswith("O ✓ original right")


def test_trace_lists_and_tells_what_targets_answered(
    run: Path, accepted: list[Result], capsys: pytest.CaptureFixture[str]
) -> None:
    lost = ["--right", "original", "--wrong", "updated"]
    assert main(["trace", str(run), "--target", OTHER, *lost]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "sample", "outcome", "attempts", "usd", "original", "updated", "reason",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines[1 : len(accepted) + 1]] == [
        one.sample_id for one in accepted
    ]
    assert re.search(r" [12] of 2 +[01] of 2", lines[1])
    assert main(["trace", str(run), accepted[0].sample_id]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"{OTHER} on original, template 1: right: " in told
    assert f"{OTHER} on updated, template 2: WRONG: {WORDS}" in told
    assert "offline:classifier on original: " in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--right", "updatd"), "did you mean 'updated'?"),
        (("--right", "original", "--wrong", "original"), "both right and wrong"),
        (("emotion/test/1", "--wrong", "updated"), "--wrong applies only to the list"),
    ],
)
def test_filters_of_targets_that_cannot_be_meant(
    run: Path, options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(run), *options]) == 2
    assert told in capsys.readouterr().err
