"""A list leaves as a sheet and a page, comes back as decisions, and nothing in it can act."""

import csv
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from coreeval.errors import UsageError
from coreeval.releases.review import Review, load_review
from coreeval.releases.review.decisions import (
    Decision,
    ListingReason,
    NewFact,
    PersonMention,
    ReviewEntry,
    Verdict,
)
from coreeval.releases.review.output import (
    read_sheet,
    refuse_unrecorded,
    write_review_page,
    write_sheet,
)
from coreeval.releases.review.review import Choice, record_choices
from coreeval.schema import Triple
from tests.releases.kit import Made
from tests.releases.people import sample_id

HOSTILE = "=HYPERLINK(\"http://x\")<script>alert('x')</script>\x00"


@pytest.fixture
def sheet(people: Made) -> Path:
    path = people.folder / "list.csv"
    write_sheet(path, load_review(people.files.root).samples)
    return path


def fill(sheet: Path, *decisions: str, change: Callable[[str], str] = lambda text: text) -> None:
    """Fill in the decisions of the first rows, as a spreadsheet would."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    for row, decision in zip(rows, decisions, strict=False):
        row[header.index("decision")] = decision
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    sheet.write_text(change(sheet.read_text()))


def hostile() -> ReviewEntry:
    """Return a sample that is as bad as a benchmark and the news can make it."""
    return ReviewEntry(
        sample="+1\nforged",
        label=HOSTILE,
        outcome="accepted",
        arm="updated",
        original={"text": HOSTILE},
        new={"text": f"{HOSTILE} Ann Oak"},
        digest="d" * 64,
        names=tuple(
            PersonMention(name=name, new=True, known="plan") for name in ("Ann Oak", "</dd>")
        ),
        why=(ListingReason(reason="person", detail=HOSTILE),),
        facts=(
            NewFact(
                field="text",
                before=None,
                after=Triple(head=HOSTILE, relation="is", tail="x"),
                quote=HOSTILE,
                evidence_id="e" * 16,
                url="javascript:alert(1)",
                domain=HOSTILE,
                title="A title",
                published_at="2026-11-02T00:00:00+00:00",
                published_precision="exact",
            ),
        ),
        decision=Decision(
            sample="+1\nforged",
            digest="d" * 64,
            verdict="approved",
            by="@Ada",
            at="2026",
            note="-1",
        ),
    )


# -- there and back -----------------------------------------------------------------------------


def test_a_sheet_that_is_filled_in_comes_back_as_decisions(people: Made, sheet: Path) -> None:
    fill(sheet, "Reject", "APPROVED")
    choices = read_sheet(sheet)
    record_choices(people.files.root, choices, by="Ada")
    said = {each.sample: each.decision for each in load_review(people.files.root).samples}
    verdicts = {key: each.verdict for key, each in said.items() if each}
    assert verdicts == {sample_id(0): "rejected", sample_id(1): "approved"}


def test_a_sheet_that_nobody_touched_decides_nothing_new(people: Made, sheet: Path) -> None:
    assert read_sheet(sheet) == []
    fill(sheet, "approve")
    record_choices(people.files.root, read_sheet(sheet), by="Ada")
    write_sheet(sheet, load_review(people.files.root).samples)
    again = record_choices(people.files.root, read_sheet(sheet), by="Bo")
    assert (again.new, again.unchanged) == ((), 1)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_are_understood(people: Made, sheet: Path, separator: str) -> None:
    fill(sheet, "approve", "reject")
    with sheet.open(newline="") as file:
        rows = list(csv.reader(file))
    with sheet.open("w", newline="") as file:
        csv.writer(file, delimiter=separator).writerows(rows)
    assert [choice.verdict for choice in read_sheet(sheet)] == ["approved", "rejected"]


@pytest.mark.parametrize("before", ["sep=;\r\n", "\r\n", ",,,,\r\n", "sep=,\r\n\r\n"])
def test_lines_before_the_header_are_skipped(people: Made, sheet: Path, before: str) -> None:
    fill(sheet, "approve", "perhaps", change=lambda text: before + text)
    with pytest.raises(UsageError, match="'perhaps' is not a decision") as error:
        read_sheet(sheet)
    assert error.value.where.endswith(f"line {3 + before.count(chr(10))}")


def test_spaces_around_an_id_and_a_digest_in_upper_case_are_read(people: Made, sheet: Path) -> None:
    fill(
        sheet,
        "reject",
        "approve",
        change=lambda text: text.replace(sample_id(0), f" {sample_id(0)} "),
    )
    fill(sheet, change=lambda t: re.sub("[0-9a-f]{64}", lambda found: found[0].upper(), t))
    made = record_choices(people.files.root, read_sheet(sheet), by="Ada")
    assert [each.sample for each in made.new] == [sample_id(0), sample_id(1)]
    refuse_unrecorded(sheet, people.files.root, [])


# -- what was decided since ----------------------------------------------------------------------


def decide(made: Made, verdict: Verdict, by: str, at: str) -> None:
    choice = Choice(sample=sample_id(0), verdict=verdict)
    record_choices(made.files.root, [choice], by=by, now=lambda: datetime.fromisoformat(at))


def import_sheet(made: Made, sheet: Path, by: str = "Ada") -> Verdict | None:
    record_choices(made.files.root, read_sheet(sheet), by=by)
    decision = load_review(made.files.root).samples[0].decision
    return decision.verdict if decision else None


@pytest.mark.parametrize("by", ["Ada", "Bob"])
def test_a_sheet_that_is_imported_again_reverses_nothing(
    people: Made, sheet: Path, by: str
) -> None:
    fill(sheet, "approve")
    assert import_sheet(people, sheet) == "approved"
    decide(people, "rejected", by, "2026-11-20T10:00:00+00:00")
    fill(sheet, "approve", "approve")
    with pytest.raises(UsageError) as error:
        import_sheet(people, sheet)
    assert f"{by} rejected '{sample_id(0)}' on 2026-11-20" in error.value.message
    assert error.value.where.endswith("list.csv, line 2")
    review = load_review(people.files.root)
    assert (review.rejected, len(review.open)) == (frozenset({sample_id(0)}), 1)
    named = Choice(sample=sample_id(0), verdict="approved")
    record_choices(people.files.root, [*read_sheet(sheet), named], by="Ada")
    assert load_review(people.files.root).rejected == frozenset()


def test_a_sheet_from_before_a_decision_of_somebody_else_does_not_reverse_it(
    people: Made, sheet: Path
) -> None:
    decide(people, "rejected", "Bob", "2026-11-20T10:00:00+00:00")
    fill(sheet, "approve")
    with pytest.raises(UsageError, match="Bob rejected"):
        import_sheet(people, sheet)
    fill(sheet, "reject")
    assert import_sheet(people, sheet) == "rejected"


def test_a_person_can_change_their_mind_in_the_sheet(people: Made, sheet: Path) -> None:
    fill(sheet, "approve")
    assert import_sheet(people, sheet) == "approved"
    fill(sheet, "reject")
    assert import_sheet(people, sheet) == "rejected"


def test_a_decision_that_the_sheet_shows_can_be_changed_in_it(people: Made, sheet: Path) -> None:
    decide(people, "approved", "Ada", "2026-11-19T10:00:00+00:00")
    decide(people, "rejected", "Bob", "2026-11-20T10:00:00+00:00")
    write_sheet(sheet, load_review(people.files.root).samples)
    fill(sheet, "approve")
    assert import_sheet(people, sheet) == "approved"
    decide(people, "rejected", "Bob", "2026-11-21T10:00:00+00:00")
    with pytest.raises(UsageError, match="Bob rejected"):
        import_sheet(people, sheet)


def test_no_cell_is_a_formula_and_ids_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    write_sheet(path, [hostile()])
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, row = csv.reader(file)
    assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    assert row[header.index("id")] == "'+1\nforged"
    [choice] = read_sheet(path)
    assert (choice.sample, choice.note, choice.verdict) == ("+1\nforged", "-1", "approved")


# -- mistakes, each named by its line -----------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told", "line"),
    [
        (lambda text: text.replace("perhaps", "maybe"), "'maybe' is not a decision", 3),
        (lambda text: text.replace("emotion/test/1", "emotion/test/9"), "'emotion/test/9'", 2),
        (lambda text: re.sub(r"[0-9a-f]{64}", "f" * 64, text), "has changed since the decision", 2),
        (lambda text: text + "emotion/test/2,approve\n", "a row is incomplete", 6),
        (lambda text: text.replace("text_sha256", "sha"), "'text_sha256'", 0),
        (lambda text: text + '"never closed', "unexpected end of data", 0),
        (lambda text: "", "'id'", 0),
    ],
)
def test_a_sheet_with_a_mistake_is_refused_whole(
    people: Made, sheet: Path, change: Callable[[str], str], told: str, line: int
) -> None:
    second = "perhaps" if "maybe" in told else "reject"
    fill(sheet, "approve", second, change=change)
    with pytest.raises(UsageError) as error:
        record_choices(people.files.root, read_sheet(sheet), by="Ada")
    assert told in error.value.message
    assert error.value.where.endswith(f"list.csv, line {line}" if line else "list.csv")
    assert len(load_review(people.files.root).open) == 2


def test_both_lines_of_a_contradiction_are_named(people: Made, sheet: Path) -> None:
    fill(sheet, "approve", "reject", change=lambda t: t.replace("emotion/test/2", "emotion/test/1"))
    with pytest.raises(UsageError, match="both approved and rejected") as error:
        record_choices(people.files.root, read_sheet(sheet), by="Ada")
    assert re.search(r"line 2, .*line 3", error.value.where)


@pytest.mark.parametrize("content", ["id,decision\nä".encode("cp1252"), None])
def test_a_sheet_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "list.csv"
    if content:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read"):
        read_sheet(path)


# -- the page -----------------------------------------------------------------------------------


def test_the_page_is_whole_in_itself_and_everything_in_it_is_escaped(tmp_path: Path) -> None:
    each, path = hostile(), tmp_path / "list.html"
    write_review_page(
        path, Review(run=tmp_path / "<b>", samples=(each,), rejected=frozenset()), [each]
    )
    page = path.read_text()
    assert "<script" not in page and "<b>" not in page
    assert "href" not in page, "an address that is none of the web is no link"
    assert not re.search(r"(?:\bsrc=|@import|\burl\()", page)
    assert "<mark>Ann Oak</mark>" in page
    assert "prefers-color-scheme: dark" in page


def test_the_page_shows_what_decides(people: Made) -> None:
    review = load_review(people.files.root)
    path = people.folder / "list.html"
    write_review_page(path, review, review.samples)
    page = path.read_text()
    for text in ("old tweet number 0", '<a href="https://example.org/0"', "2 of 2 listed"):
        assert text in page
    assert page.count("<article") == 2
    write_review_page(path, review, [])
    assert "No sample awaits" in path.read_text()
