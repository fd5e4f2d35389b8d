"""What the page of a sample says, without a browser."""

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from coreeval.schema import Outcome, Result
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.text import unescape
from coreeval.viewer.app import create_app
from coreeval.viewer.rendering import build_sample_url
from coreeval.viewer.sample_page import indent_json
from tests.viewer.hostile import ADDRESSES, SAMPLE, make_hostile
from tests.viewer.kit import Finished

HERE = "http://127.0.0.1:7317"


@pytest.fixture(scope="module")
def client(finished: Finished) -> TestClient:
    """Return a client of the pages of both runs."""
    return TestClient(create_app([], workspace=finished.workspace), base_url=HERE)


@pytest.fixture(scope="module")
def results(finished: Finished) -> list[Result]:
    """Return how the samples of the first run ended, with their facts."""
    with closing(RunStore.open(finished.first / "run.db", now=utc_now)) as store:
        ids = [ended.sample.id for ended in store.sample_results()]
        return [result for each in ids if (result := store.result(each))]


def ended_as(results: list[Result], outcome: Outcome) -> Result:
    """Return the first sample that ended so."""
    return next(each for each in results if each.outcome == outcome)


def words_of(html: str) -> str:
    """Return what a page says, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())


def part(html: str, heading: str) -> str:
    """Return the section of a page under a heading."""
    return html.partition(f'id="{heading}"')[2].partition("</section>")[0]


def test_a_rejected_sample_tells_why(
    client: TestClient, finished: Finished, results: list[Result]
) -> None:
    rejected = ended_as(results, "rejected_form")
    text = client.get(build_sample_url(finished.key(finished.first), rejected.sample_id)).text
    reason = " ".join(rejected.reason.partition(": ")[2].split())
    assert f"Why: many words of a headline in the same order: {reason}" in words_of(text)
    against = words_of(part(text, "against"))
    assert "not passed" in against
    assert " ".join(rejected.reason.split()) in against
    assert "not accepted" in words_of(part(text, "texts"))
    assert text.count('id="part-') == rejected.attempts + 1


def test_an_accepted_sample_tells_which_fact_rests_on_which_article(
    client: TestClient, finished: Finished, results: list[Result]
) -> None:
    accepted = ended_as(results, "accepted")
    with closing(RunStore.open(finished.first / "run.db", now=utc_now)) as store:
        news = store.history.evidence([fact.evidence_id for fact in accepted.facts])
    text = client.get(build_sample_url(finished.key(finished.first), accepted.sample_id)).text
    table = part(text, "facts")
    for fact in accepted.facts:
        item = news[fact.evidence_id]
        assert f'href="{item.url}"' in unescape(table)
        assert f'datetime="{item.published_at.isoformat()}"' in table
        assert f"{fact.after.head} {fact.after.relation} {fact.after.tail}" in words_of(table)
        assert fact.quote in words_of(table)


def test_a_difference_read_without_what_is_gone_is_the_new_text(
    client: TestClient, finished: Finished, results: list[Result]
) -> None:
    accepted = ended_as(results, "accepted")
    text = client.get(build_sample_url(finished.key(finished.first), accepted.sample_id)).text
    arm = part(text, "texts").partition("<h3>updated")[2].partition("</p>")[0]
    new = re.sub(r"<del>.*?</del>", "", arm, flags=re.S).replace("[added: ", "").replace("]", "")
    assert accepted.updated
    assert words_of(new).endswith(" ".join(accepted.updated["text"].split()))


def test_calls_are_told_with_their_prompts_answers_and_cost(
    client: TestClient, finished: Finished, results: list[Result]
) -> None:
    sample = ended_as(results, "accepted").sample_id
    first, second = (
        client.get(build_sample_url(finished.key(run), sample)).text
        for run in (finished.first, finished.second)
    )
    calls = re.findall(r'<details class="call">.*?</details>', first, re.S)
    assert calls
    for call in map(words_of, calls):
        assert re.search(r"billed", call)
        assert re.search(r"prompt\w+ [0-9a-f]{12}", call)
        assert "system" in call
        assert "answer" in call
    assert "from the store, not billed" in words_of(second)


def test_neighbours_are_those_of_the_list_that_it_was_opened_from(
    client: TestClient, finished: Finished, results: list[Result]
) -> None:
    key = finished.key(finished.first)
    accepted = [each.sample_id for each in results if each.outcome == "accepted"]
    text = unescape(client.get(build_sample_url(key, accepted[1], "outcome=accepted")).text)
    links = dict(re.findall(r'rel="(\w+)" data-keys="[^"]*" href="([^"]*)"', text))
    assert links == {
        "prev": build_sample_url(key, accepted[0], "outcome=accepted"),
        "next": build_sample_url(key, accepted[2], "outcome=accepted"),
    }
    assert f"Sample 2 of {len(accepted)} in this list" in words_of(text)
    assert f'href="/run/{key}/samples?outcome=accepted" data-keys="u"' in text
    other = next(each.sample_id for each in results if each.outcome != "accepted")
    assert (
        "This sample is not in this list"
        in client.get(build_sample_url(key, other, "outcome=accepted")).text
    )


def test_calls_that_are_gone_say_so_and_the_rest_is_told(
    finished: Finished, results: list[Result], tmp_path: Path
) -> None:
    run = shutil.copytree(finished.first, tmp_path / "moved")
    manifest = run / "manifest.json"
    manifest.write_text(
        manifest.read_text().replace(str(finished.workspace.root), str(tmp_path / "nowhere"))
    )
    client = TestClient(create_app([run]), base_url=HERE)
    text = client.get(
        build_sample_url(
            f"{tmp_path.name}.moved".replace("_", "_"), ended_as(results, "accepted").sample_id
        )
    ).text
    assert "The call store no longer has this call" in text
    assert "Replaced facts" in text
    assert not (tmp_path / "nowhere").exists()


def test_hidden_texts_are_nowhere_on_the_page(finished: Finished, results: list[Result]) -> None:
    client = TestClient(create_app([finished.first], hide_texts=True), base_url=HERE)
    for each in (ended_as(results, "accepted"), ended_as(results, "rejected_form")):
        said = words_of(
            client.get(build_sample_url(finished.key(finished.first), each.sample_id)).text
        )
        with closing(RunStore.open(finished.first / "run.db", now=utc_now)) as store:
            fields = store.sample(each.sample_id).fields
        assert "characters, sha256" in said
        for text in (*fields.values(), *(each.updated or {}).values(), each.reason):
            words = " ".join(text.split())
            assert not words or words not in said


def test_an_unknown_sample_is_not_found(client: TestClient, finished: Finished) -> None:
    answer = client.get(build_sample_url(finished.key(finished.first), "<b>none</b>"))
    assert answer.status_code == 404
    assert "&lt;b&gt;none&lt;/b&gt;" in answer.text


def test_words_from_outside_make_no_markup_and_no_links(finished: Finished, tmp_path: Path) -> None:
    run = make_hostile(finished.first, tmp_path / "bad" / "run")
    client = TestClient(create_app([run]), base_url=HERE)
    for address in ("/run/bad.run/samples", build_sample_url("bad.run", SAMPLE)):
        answer = client.get(address)
        assert answer.status_code == 200
        assert not re.search(r"<script>|<img src=x|<b>bold|<i>nobody", answer.text)
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in answer.text
        assert ">U+202E</span>" in answer.text
    links = [unescape(each) for each in re.findall(r'href="([^"]*)"', answer.text)]
    assert "https://news.example/a" in links
    assert not [each for each in links if each.startswith(ADDRESSES)]
    assert "not a web address: javascript:alert(1)" in words_of(answer.text)


def test_an_answer_is_indented_where_it_is_json() -> None:
    assert indent_json('{"a": ["\u00e9"]}') == '{\n  "a": [\n    "\u00e9"\n  ]\n}'
    assert indent_json("{not json") == "{not json"
