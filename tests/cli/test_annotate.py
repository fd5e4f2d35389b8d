"""`coreeval annotate` says what it wrote, what it read, and what is wrong with either."""

import asyncio
from pathlib import Path

import pytest

from tests.cli.kit import Shell
from tests.cli.test_docs import documented
from tests.releases.exports.conftest import assemble
from tests.releases.kit import Made, make_run
from tests.releases.people import copied
from tests.releases.test_annotation import ALIKE, accept_all, fill


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Made:
    made = make_run(tmp_path_factory.mktemp("annotated"), labels=ALIKE)
    asyncio.run(accept_all(made, "\x1b[2J updated {}"))
    assemble(made)
    return made


@pytest.fixture
def run(first_run: Made, shell: Shell) -> Made:
    return copied(first_run, shell.folder)


def test_sheets_out_and_what_to_do_with_them(shell: Shell, run: Made) -> None:
    said = shell("annotate", "export", "run", "--out", "out")
    assert said.code == 0
    for words in (
        "5 texts for 3 raters: 2 original, 1 semantic, 2 updated",
        "50 texts per arm were requested, but only",
        "for raters: out/for-raters",
        "keep:       out/key.json",
        "then:       coreeval annotate score run out",
    ):
        assert words in said.out


def test_scores_in_words(shell: Shell, run: Made) -> None:
    shell("annotate", "export", "run", "--out", "out", "--raters", "2")
    wrong = {"fluency": "7", "coherence": ""}
    fill(Path("out"), {("rater-1", 0): wrong, ("rater-2", 1): {"accuracy": 0}})
    said = shell("annotate", "score", "run", "out")
    assert (said.code, said.err) == (0, "")
    for words in (
        "2 raters: rater-1 (18 ratings), rater-2 (20 ratings)",
        "values that are not allowed: 1",
        "ratings missing: 2",
        "not a rating: rater-1.csv, line 2, rater-1, ",
        "updated - original",
        "on the updated texts only",
        "raters disagree about 1 text;",
        "accuracy: rater-1 1, rater-2 0",
        "written: run/annotation.json",
    ):
        assert words in said.out
    assert "\x1b" not in said.out


def test_one_rater_is_said_to_be_one(shell: Shell, run: Made) -> None:
    shell("annotate", "export", "run", "--out", "out", "--raters", "1")
    fill(Path("out"))
    assert (
        "agreement cannot be computed from only one rater;"
        in shell("annotate", "score", "run", "out").out
    )


def test_the_keys_of_the_documents(shell: Shell, run: Made) -> None:
    exported = shell("annotate", "export", "run", "--out", "out", "--json")
    assert set(exported.document) == documented("coreeval annotate export")
    fill(Path("out"))
    scored = shell("annotate", "score", "run", "out", "--json")
    assert set(scored.document) == documented("coreeval annotate score")
    assert (scored.out.isascii(), scored.err) == (True, "")


@pytest.mark.parametrize("form", ["xlsx", "page"])
def test_other_forms(shell: Shell, run: Made, form: str) -> None:
    said = shell("annotate", "export", "run", "--out", "out", "--format", form, "--json")
    ending = {"xlsx": ".xlsx", "page": ".html"}[form]
    assert [Path(file).suffix for file in said.document["files"]] == [ending] * 3 + [".md"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["export", "run", "--out", "out", "--samples", "0"],
            "'0' is too small: it must be at least 1",
        ),
        (
            ["export", "run", "--out", "out", "--seed", "-1"],
            "'-1' is too small: it must be at least 0",
        ),
        (["export", "run", "--out", "out", "--format", "ods"], "'ods' is not one of"),
        (["export", "none", "--out", "out"], "no run or release 'none'"),
        (["export", "run"], "Missing option '--out'"),
        (["score", "run"], "Missing argument"),
        (["score", "run", "none.csv"], "does not exist"),
        (["score", "run", "run"], "no sheets were found"),
    ],
)
def test_mistakes_are_one_message(shell: Shell, run: Made, arguments: list[str], told: str) -> None:
    said = shell("annotate", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err
