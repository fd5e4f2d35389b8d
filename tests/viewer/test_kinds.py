"""The pages of choices, answers and summaries, in words and in a browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient

from coreeval.graph.bundled import write_recording
from coreeval.graph.cassettes.replay import replay
from coreeval.schema import TaskKind
from coreeval.viewer.app import create_app
from tests.releases import kinds
from tests.releases.kinds import make_kind_run
from tests.viewer.kit import NARROW, WIDE, Reader, served
from tests.viewer.test_sample_page import HERE, part, words_of

SENTENCE = "Sentence {} says that the river rose by {} metres. "
LONG = "".join(SENTENCE.format(number, number % 7) for number in range(2000))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[TaskKind, Path]]:
    """Return a run of each kind; the first document has 20,000 tokens."""
    with pytest.MonkeyPatch.context() as patch:
        row, new = kinds.ROWS["summary"][0], kinds.UPDATED["summary"]
        changed = LONG.replace("Sentence 70 says", "Ada Roe said")
        patch.setitem(kinds.ROWS, "summary", [row | {"document": LONG}, *kinds.ROWS["summary"][1:]])
        patch.setitem(kinds.UPDATED, "summary", new | {"document": changed})
        found = dict[TaskKind, Path]()
        for kind in kinds.FIELDS:
            folder = tmp_path_factory.mktemp(kind)
            found[kind] = make_kind_run(folder, kind).files.root
        yield found


@pytest.fixture(scope="module")
def quiz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recorded run of the bundled choices."""
    folder = tmp_path_factory.mktemp("quiz")
    replay(write_recording("quiz", folder), folder / "run")
    return folder / "run"


def page(run: Path, address: str = "sample/q1") -> str:
    client = TestClient(create_app([run]), base_url=HERE)
    links = client.get("/").text
    key = links.partition('href="/run/')[2].partition('"')[0]
    return client.get(f"/run/{key}/{address}".rstrip("/")).text


def test_a_choice_has_its_options_in_a_table_with_the_right_one_marked(
    runs: dict[TaskKind, Path],
) -> None:
    html = page(runs["choice"])
    told = words_of(part(html, "texts"))
    assert "OptionOriginalSemanticUpdated" in told.replace(" ", "")
    assert html.count('<tr class="right">') == 1
    row = html.partition('<tr class="right">')[2].partition("</tr>")[0]
    assert words_of(row).startswith("B right")
    assert "Cy Poe" in row and "Ada Roe" in row
    assert "right option" in words_of(html)


def test_an_attempt_shows_the_options_that_it_wrote(quiz: Path) -> None:
    attempt = part(page(quiz, "sample/quiz-02"), "part-1")
    wrote = re.findall(r'<p class="wrote"><span[^>]*>(.*?)</span>', attempt)
    assert wrote == ["question", "A", "B", "C", "D"]


def test_answers_are_lines_under_their_type(runs: dict[TaskKind, Path]) -> None:
    html = part(page(runs["answer"]), "texts")
    assert "accepted answers (number, in nations, tolerance 0)" in words_of(html)
    lists = [one.partition("</ul>")[0] for one in html.split('<ul class="answers">')[1:]]
    assert [words_of(one.replace("</li>", " ")) for one in lists] == ["2 two", "2 two", "3 three"]
    assert "<h3>unit" not in html and "<h3>tolerance" not in html


def test_of_a_long_document_the_changes_stand_out(runs: dict[TaskKind, Path]) -> None:
    html = part(page(runs["summary"]), "texts")
    assert html.index("<h3>document") < html.index("<h3>summary")
    updated = html.partition("new facts")[2].partition('<div class="reading">')[0]
    assert "unchanged characters]" in updated
    assert "Ada Roe" in updated and len(updated) < 5_000


def test_the_run_says_what_its_letters_are(runs: dict[TaskKind, Path]) -> None:
    told = words_of(page(runs["choice"], ""))
    assert "Right option" in told and "not its content" in told
    assert "Answer type" in words_of(page(runs["answer"], ""))


def test_trace_tells_the_gold_and_cuts_what_is_long(
    runs: dict[TaskKind, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from coreeval.cli import main

    for run in runs.values():
        assert main(["trace", str(run), "q1"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "q1 right option: B" in told and "updated B (right): Ada Roe" in told
    assert "accepted answers (number, in nations, tolerance 0): 3 | three" in told
    assert "more characters: --json]" in told
    assert len(told) < 20_000


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", NARROW)])
@pytest.mark.parametrize("kind", kinds.FIELDS)
def test_the_page_reads_well_on_any_screen(
    runs: dict[TaskKind, Path],
    quiz: Path,
    browser: Browser,
    kind: TaskKind,
    scheme: str,
    size: dict[str, int],
) -> None:
    assert quiz.is_dir()  # no run can be made while a browser is open
    with served(create_app([runs[kind]])) as address:
        context = browser.new_context()
        reader = Reader(context.new_page(), address)
        reader.page.set_viewport_size(size)  # type: ignore[arg-type]
        reader.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        reader.open("/")
        href = reader.page.locator('a[href^="/run/"]').first.get_attribute("href")
        reader.open(f"{href}/sample/q1")
        reader.assert_readable()
        height = reader.page.evaluate("document.documentElement.scrollHeight")
        context.close()
    assert height < 6_000
    assert not reader.complaints
