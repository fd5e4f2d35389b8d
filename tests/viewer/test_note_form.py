"""The form that keeps a note, and what is refused."""

import re

import pytest
from starlette.testclient import TestClient

from coreeval.releases.review.notes import open_notes
from coreeval.runs.manifest import read_manifest
from coreeval.tools.text import unescape
from coreeval.viewer.app import create_app
from coreeval.viewer.rendering import build_sample_url
from tests.releases.kit import Made
from tests.releases.people import make_people, sample_id

HERE = "http://127.0.0.1:7317"
SAMPLE = sample_id(2)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a small run."""
    return make_people(tmp_path_factory.mktemp("form"))


def client(run: Made, **options: bool) -> tuple[TestClient, str]:
    """Return a client of the run's pages, and the run's key."""
    app = create_app([run.files.root], **options)  # type: ignore[arg-type]
    key = next(iter(app.state.catalog.find_runs()))
    return TestClient(app, base_url=HERE, follow_redirects=False), key


def form_of(page: str) -> tuple[str, dict[str, str]]:
    """Return the address of the form, and its fields."""
    form = re.search(
        r'<form class="filters" method="post" action="([^"]*)">(.*?)</form>', page, re.S
    )
    assert form
    fields = re.findall(r'<input (?:type="hidden" )?name="(\w+)"(?: value="([^"]*)")?', form[2])
    return unescape(form[1]), {name: unescape(value) for name, value in fields}


def test_a_note_is_kept_shown_escaped_and_leads_back_to_its_sample(run: Made) -> None:
    reader, key = client(run)
    page = reader.get(build_sample_url(key, SAMPLE, "label=joy"))
    address, fields = form_of(page.text)
    given = fields | {"note": "<script>x</script>\nü", "tags": "price, unsure", "by": "Ada"}
    answer = reader.post(address, data=given)
    assert answer.status_code == 303
    assert answer.headers["location"] == build_sample_url(key, SAMPLE, "label=joy") + "#notes"
    shown = reader.get(answer.headers["location"]).text
    assert "&lt;script&gt;x&lt;/script&gt;\nü" in shown
    assert form_of(shown)[1]["tags"] == "price unsure"
    notes = open_notes(read_manifest(run.files.manifest))
    kept = notes.read().of(SAMPLE)
    assert (kept.tags, kept.notes[0].note) == (("price", "unsure"), "<script>x</script>\nü")
    reader.post(address, data=given | {"tags": "checked", "by": "Grace"})  # from the first page
    assert notes.read().of(SAMPLE).tags == ("checked", "price", "unsure")
    first = notes.path.read_bytes()
    notes.path.write_bytes(first + b'{"sample": "')
    damaged = reader.get(answer.headers["location"])
    notes.path.write_bytes(first)
    assert damaged.status_code == 200 and "line 3 is not a valid note" in damaged.text


def test_what_is_not_from_a_page_of_this_server_is_refused(run: Made) -> None:
    reader, key = client(run)
    log = open_notes(read_manifest(run.files.manifest)).path
    before = log.read_bytes() if log.exists() else b""
    address, fields = form_of(reader.get(build_sample_url(key, SAMPLE)).text)
    given = fields | {"note": "x", "by": "Ada"}
    _, others = form_of(client(run)[0].get(build_sample_url(key, SAMPLE)).text)
    for changes, status in (
        ({"form": others["form"]}, 403),
        ({"form": ""}, 403),
        ({"form": "ü"}, 403),
        ({"tags": "no/tag"}, 400),
        ({"by": ""}, 400),
        ({"sample": "none"}, 400),
        ({"note": "x" * 70_000}, 413),
        ({f"f{number}": "x" for number in range(21)}, 400),
    ):
        assert reader.post(address, data=given | changes).status_code == status
    strange = {"host": "evil.example"}
    assert reader.post(address, data=given, headers=strange).status_code == 421
    assert reader.post("/run/none/note", data=given).status_code == 404
    for method, path in (("POST", f"/run/{key}"), ("PUT", address), ("POST", address + "/x")):
        assert reader.request(method, path, data=given).status_code == 405
    assert (log.read_bytes() if log.exists() else b"") == before


def test_hidden_texts_hide_notes_and_a_token_is_asked_for(run: Made) -> None:
    reader, key = client(run, hide_texts=True)
    assert 'id="notes"' not in reader.get(build_sample_url(key, SAMPLE)).text
    assert reader.post(f"/run/{key}/note", data={"note": "x"}).status_code == 403
    guarded = TestClient(create_app([run.files.root], token="secret"), base_url=HERE)
    assert guarded.post(f"/run/{key}/note", data={"note": "x"}).status_code == 401
