"""`coreeval review` shows a few at a time, takes decisions, and says what to do next."""

import csv
from pathlib import Path

import pytest

from coreeval.cli.review import PAGE
from coreeval.releases.review.notes import add_note
from tests.cli.kit import Shell
from tests.cli.test_docs import documented
from tests.releases.kit import Made
from tests.releases.people import copied, make_people, rewrite, sample_id

FIRST, SECOND = sample_id(0), sample_id(1)


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_people(tmp_path_factory.mktemp("people"))


@pytest.fixture
def run(first_run: Made, shell: Shell) -> Made:
    return copied(first_run, shell.folder)


def test_the_list_has_all_that_decides(shell: Shell, run: Made) -> None:
    said = shell("review", "run")
    assert said.code == 0
    for text in (
        "person: names Ada Roe (new)",
        "original    old tweet number 0",
        "new         Ada Roe opened it",
        "2026-11-02 (exact) example.org: A title … Monday",
        "https://example.org/0",
        "2 samples are listed: 2 open",
        "decide:    coreeval review run --by NAME --approve ID",
    ):
        assert text in said.out


def test_decisions_by_id_and_of_the_rest(shell: Shell, run: Made) -> None:
    said = shell("review", "run", "--by", "Ada", "--reject", FIRST, "--all", "approve")
    assert f"rejected: {FIRST}\napproved: {SECOND}\n" in said.out
    assert "publish:   coreeval release" in said.out
    shown = shell("review", "run", "--decided").out
    assert f"{FIRST}   label: anger   rejected by Ada, " in shown
    assert "open" not in shell("review", "run").out.partition("listed")[0]


def test_a_class_is_decided_without_what_has_another_reason_too(shell: Shell, run: Made) -> None:
    asked = ("review", "run", "--by", "Ada", "--all", "approve", "--only")
    assert shell(*asked, "flag", "--json").document["pending"] == 1
    assert shell(*asked, "flag", "--json").document["recorded"] == []
    wrong = shell(*asked, "flags")
    assert (wrong.code, "'flags' is not a reason" in wrong.err) == (2, True)


def test_a_sheet_there_and_back(shell: Shell, run: Made) -> None:
    assert "written: list.csv" in shell("review", "run", "--csv", "list.csv").out
    sheet = shell.folder / "list.csv"
    rows = sheet.read_text("utf-8-sig")
    sheet.write_text(rows.replace('"emotion/test/1",""', '"emotion/test/1","reject"'))
    done = shell("review", "run", "--from-csv", "list.csv", "--by", "Ada", "--note", "no", "--json")
    [decision] = done.document["recorded"]
    assert (decision["verdict"], decision["by"], decision["note"]) == ("rejected", "Ada", "no")


def test_a_filled_in_sheet_is_replaced_only_after_its_decisions_are_recorded(
    shell: Shell, run: Made
) -> None:
    again = ("review", "run", "--csv", "list.csv")
    assert (shell(*again).code, shell(*again).code) == (0, 0)  # nothing is filled in yet
    sheet = shell.folder / "list.csv"
    empty = sheet.read_text("utf-8-sig")
    for filled in ('"aprove",""', '"","ask Ben"', '"reject","ask Ben"'):
        sheet.write_text(empty.replace(f'"{SECOND}","",""', f'"{SECOND}",{filled}'))
        before = sheet.read_bytes()
        for other in ((), ("--by", "Ada", "--approve", FIRST)):
            said = shell(*again, *other, "--json")
            assert (said.code, said.error["kind"]) == (2, "usage")
            assert "a decision or a note that is not recorded" in said.error["message"]
            assert "list.csv, line " in said.error["where"]
        assert sheet.read_bytes() == before
        assert shell("review", "run", "--json").document["pending"] == 2
    assert shell(*again, "--from-csv", "list.csv", "--by", "Ada").code == 0
    assert SECOND not in sheet.read_text("utf-8-sig")
    sheet.write_bytes(before)
    shell("review", "run", "--by", "Ben", "--approve", SECOND)
    assert shell(*again).code == 0  # the decision was recorded, and is overridden
    sheet.write_text("text,label\nx,joy\n")
    assert "this file exists, and the sheet cannot be read" in shell(*again).err


async def test_a_long_list_is_shown_a_page_at_a_time(shell: Shell, run: Made) -> None:
    for number in range(6):
        changes = {"outcome": "accepted", "updated": {"text": f"@person{number} came"}}
        await rewrite(run, number, **changes)
    first, last = shell("review", "run").out, shell("review", "run", "--page", "2").out
    assert first.count(" of 6 ---") == PAGE
    assert "next page: coreeval review run --page 2" in first
    assert "-- 6 of 6 " in last and "next page" not in last
    assert "this page does not exist" in shell("review", "run", "--page", "9").out
    filters = "--only flag --only person --only unnamed --decided"
    shown = shell("review", "run", *filters.split()).out
    assert f"next page: coreeval review run {filters} --page 2" in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--approve", FIRST], "a decision needs a name"),
        (["--by", "Ada"], "no decision was made"),
        (["--by", "Ada", "--approve", "emotion/test/0"], "no new text for sample"),
        (["--by", "Ada", "--from-csv", "none.csv"], "cannot be read"),
    ],
)
def test_mistakes_are_one_message(shell: Shell, run: Made, options: list[str], told: str) -> None:
    said = shell("review", "run", *options)
    assert (said.code, said.out) == (2, "")
    assert told in said.err


def test_a_release_that_waits_says_how_to_go_on(shell: Shell, run: Made) -> None:
    asked = ("release", "run", "--version", "1", "--require-review")
    said = shell(*asked, "--json")
    assert (said.code, said.error["kind"]) == (1, "review")
    assert "2 of 2 listed samples" in said.error["message"]
    command = said.error["hint"].removeprefix("list them: coreeval ").split()
    assert "2 open" in shell(*command).out
    shell("review", "run", "--by", "Ada", "--all", "approve")
    assert shell(*asked).code == 0


async def test_hostile_texts_do_nothing_to_a_terminal(shell: Shell, run: Made) -> None:
    await rewrite(run, 0, updated={"text": "\x1b[2J@someone\npublish:   rm -rf"})
    said = shell("review", "run")
    assert "\x1b" not in said.out
    assert "\npublish" not in said.out


def test_the_keys_of_its_document(shell: Shell, run: Made) -> None:
    said = shell("review", "run", "--html", "list.html", "--json")
    assert set(said.document) == documented("coreeval review")
    assert Path(said.document["html"]).exists()
    assert (said.out.isascii(), said.err) == (True, "")


def test_notes_and_tags_are_shown_and_exported(shell: Shell, run: Made) -> None:
    add_note(run.files.root, FIRST, "\x1b[2J=1+1 is the price right?", ["price"], by="Grace")
    add_note(run.files.root, sample_id(2), "", ["odd"], by="Grace")
    said = shell("review", "run", "--csv", "list.csv", "--html", "list.html", "--json")
    assert said.document["remarks"][FIRST]["tags"] == ["price"]
    assert said.document["listed"] == 3
    shown = shell("review", "run").out
    assert "tags        price" in shown
    assert "Grace, " in shown
    assert "\x1b" not in shown
    assert "is the price right?" in (shell.folder / "list.html").read_text()
    with (shell.folder / "list.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows[FIRST]["tags"] == "price"
    assert rows[FIRST]["notes"].endswith("is the price right?")
    odd = shell("review", "run", "--only", "noted", "--json").document["samples"]
    assert [each["sample"] for each in odd] == [sample_id(2)]
