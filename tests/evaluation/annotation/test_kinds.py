"""Raters of choices and answers are not shown the gold and answer; summaries are rated."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from openpyxl import load_workbook

from coreeval.evaluation.annotation.criteria import STUDIES, RatedText
from coreeval.evaluation.annotation.rating_scores import score_part, score_ratings
from coreeval.evaluation.annotation.rating_study import (
    KeyItem,
    RatedArm,
    RatingCandidate,
    StudyItem,
    StudyKey,
    StudySource,
)
from coreeval.evaluation.annotation.ratings import Annotation, SheetRow, collect_ratings
from coreeval.evaluation.annotation.sheet_page import write_sheet_page
from coreeval.evaluation.annotation.sheets import (
    SheetItem,
    make_sheet_item,
    read_sheets,
    write_sheet_csv,
    write_sheet_xlsx,
)
from coreeval.schema import TaskKind

CHOICE = RatedText({"question": "Who?", "A": "Bo Li", "B": "Ada Roe"}, "B")
NUMBER = RatedText(
    {"question": "How far?", "answers": "12\ntwelve", "unit": "km", "tolerance": "1"}, "number"
)
SUMMARY = RatedText({"document": "It rained.", "summary": "Rain."}, "summary")
LABEL = RatedText({"text": "What a day"}, "joy")


def sheet_item(text: RatedText) -> SheetItem:
    fields = dict(text.fields)
    candidate = RatingCandidate(
        sample="q1",
        label=text.label,
        meaning="what it means",
        question="What is right?",
        texts={"original": dict.fromkeys(fields, "old"), "updated": fields},
        evidence=(),
    )
    return make_sheet_item(StudyItem(item="x-001", arm="updated", candidate=candidate))


@pytest.mark.parametrize(
    ("text", "shown", "gold", "meaning"),
    [
        (CHOICE, ["question", "A", "B"], "", ""),
        (NUMBER, ["question"], "", ""),
        (SUMMARY, ["document"], "Rain.", ""),
        (LABEL, ["text"], "joy", "what it means"),
    ],
)
def test_the_gold_that_raters_look_for_is_not_shown(
    text: RatedText, shown: list[str], gold: str, meaning: str
) -> None:
    item = sheet_item(text)
    assert [*item.fields] == shown
    assert (item.label, item.meaning) == (gold, meaning)


def scored(kind: TaskKind, texts: Sequence[RatedText], given: Mapping[str, str]) -> Annotation:
    """Return the scores of a study; `given` has the last criterion's cell of each item by rater."""
    items = [f"i{n}" for n, _ in enumerate(texts)]
    design = STUDIES[kind]
    worst: dict[str, str] = {each.name: str(each.values[0]) for each in design.criteria}
    rows = [
        SheetRow(
            where="a.csv, line 2",
            item=item,
            rater=rater,
            cells={**worst, design.criteria[-1].name: said},
        )
        for rater, cells in given.items()
        for item, said in zip(items, cells.split("|"), strict=True)
    ]
    arms: Sequence[RatedArm] = ("original", "updated")
    key = StudyKey(
        study="abc123",
        made_of=StudySource(kind="run", name="weekly", version="1"),
        seed=7,
        asked=1,
        raters=tuple(given),
        scale=design.source,
        items=tuple(
            KeyItem(item=item, sample=item, arm=arms[n % 2], label=text.label, text_sha256="")
            for n, (item, text) in enumerate(zip(items, texts, strict=True))
        ),
    )
    known = dict(zip(items, texts, strict=True))
    found = collect_ratings(rows, items, design=design, texts=known)
    shown = {item: text.fields["question"] for item, text in known.items()}
    return score_ratings(found, key, shown, run="weekly/1", at="", design=design, draws=20)


def test_the_ratings_of_some_texts_are_scored_as_if_only_these_had_been_rated() -> None:
    whole = scored("choice", [CHOICE] * 4, {"ann": "B|b|(A)|C", "bob": "B.|none|A|B"})
    items = [each.item for each in whole.ratings]
    design = STUDIES["choice"]
    every = score_part(whole, dict.fromkeys(items, CHOICE), design)
    assert every and every.criteria == whole.criteria and every.ratings == whole.ratings
    some = score_part(whole, dict.fromkeys(items[:2], CHOICE), design)
    alone = scored("choice", [CHOICE] * 2, {"ann": "B|b", "bob": "B.|none"})
    assert some and (some.items, some.criteria) == (2, alone.criteria)
    assert score_part(whole, {}, design) is None


def test_letters_are_right_or_not_and_agree_as_letters() -> None:
    found = scored("choice", [CHOICE] * 4, {"ann": "B|b|(A)|C", "bob": "B.|none|A|B"})
    result = found.criteria[-1]
    assert (result.criterion, result.values, result.ratings) == ("answer", (0, 1), 7)
    assert result.arms["original"].estimate == 0.5, "two items: both raters right, and both wrong"
    assert result.arms["updated"].estimate == 0.75, "one right of two raters, and one of one"
    assert result.reliability.agreement.estimate == pytest.approx(2 / 3)
    assert result.reliability.kappa.estimate == pytest.approx(10 / 22), "of letters"
    assert [(each.kind, each.said) for each in found.problems if each.kind != "missing"] == [
        ("not_a_rating", "C")
    ]
    assert found.ratings[1].ratings["answer"] == {"ann": "B", "bob": "none"}
    assert [(each.item, each.ratings) for each in found.disagreements] == [
        ("i1", {"ann": "B", "bob": "none"})
    ]


def test_answers_are_graded_as_those_of_targets_and_compared_with_each_other() -> None:
    given = {"ann": "12|12.5 km|90|nine", "bob": "twelve km|30 km|ninety|40"}
    found = scored("answer", [NUMBER] * 4, given)
    result = found.criteria[-1]
    assert result.arms["original"].estimate == 0.5
    assert result.arms["updated"].estimate == 0.25
    same = result.reliability
    assert same.agreement.estimate == 0.5, "12 and twelve, 90 and ninety"
    assert same.kappa.n == 4
    assert found.raters[0].means["answer"] == 0.5
    assert [(each.item, each.ratings) for each in found.disagreements] == [
        ("i1", {"ann": "12.5 km", "bob": "30 km"}),
        ("i3", {"ann": "nine", "bob": "40"}),
    ]
    assert Annotation.model_validate_json(found.model_dump_json()) == found


def test_an_answer_given_twice_counts_if_both_say_the_same() -> None:
    design = STUDIES["answer"]
    told = [("12", "12 km"), ("12", "13.5"), ("7", "seven")]
    rows = [
        SheetRow(where=f"{n}", item=f"i{n}", rater="ann", cells={"answer": said})
        for n, pair in enumerate(told)
        for said in pair
    ]
    texts = {f"i{n}": NUMBER for n, _ in enumerate(told)}
    found = collect_ratings(rows, list(texts), design=design, texts=texts)
    assert [each.kind for each in found.problems if each.kind != "missing"] == [
        "double",
        "contradiction",
        "double",
    ]
    assert found.ratings["answer"] == {"i0": {"ann": 1}, "i1": {}, "i2": {"ann": 0}}


def test_all_right_answers_have_no_kappa_and_wrong_ones_no_agreement() -> None:
    right = scored("answer", [NUMBER] * 2, {"ann": "12|12", "bob": "12|12"}).criteria[-1]
    assert right.notes == (
        "all ratings are right answers: the raters agree, and kappa and alpha are not defined",
    )
    wrong = scored("answer", [NUMBER] * 2, {"ann": "1|2", "bob": "5|6"}).criteria[-1]
    assert wrong.notes == ("all ratings are wrong answers: kappa and alpha are not defined",)
    assert wrong.reliability.agreement.estimate == 0


def test_a_workbook_gives_answers_as_they_were_typed(tmp_path: Path) -> None:
    """A spreadsheet keeps what is typed into a text cell, and 0.145 for 14.5% in any other."""
    design, path = STUDIES["answer"], tmp_path / "a.xlsx"
    items = [replace(sheet_item(NUMBER), item=f"i{number}") for number in range(5)]
    write_sheet_xlsx(path, items, study="abc123", rater="ann", design=design)
    book = load_workbook(path)
    page = book["ratings"]
    names = [cell.value for cell in page[1]]
    formats = {name: page.cell(2, names.index(name) + 1).number_format for name in names}
    assert (formats["answer"], formats["note"], formats["item"]) == ("@", "@", "General")
    typed = [(0.145, "0.0%"), (1, "0%"), (14.5, '0.0"%"'), (14.5, "0.0\\%"), (7, "General")]
    for line, (value, form) in enumerate(typed, start=2):
        cell = page.cell(line, names.index("answer") + 1)
        cell.value, cell.number_format = value, form
    book.save(path)
    rows = read_sheets([path], design.columns)
    assert [row.cells["answer"] for row in rows] == ["14.5%", "100%", "14.5", "14.5", "7"]


@pytest.mark.parametrize(
    ("kind", "text"), [("choice", CHOICE), ("answer", NUMBER), ("summary", SUMMARY)]
)
def test_sheets_of_each_kind(tmp_path: Path, kind: TaskKind, text: RatedText) -> None:
    design, items = STUDIES[kind], [sheet_item(text)]
    how = {"study": "abc123", "rater": "ann", "design": design}
    write_sheet_csv(tmp_path / "a.csv", items, **how)  # type: ignore[arg-type]
    write_sheet_xlsx(tmp_path / "a.xlsx", items, **how)  # type: ignore[arg-type]
    write_sheet_page(tmp_path / "a.html", items, **how)  # type: ignore[arg-type]
    rows = list(read_sheets([tmp_path / "a.csv", tmp_path / "a.xlsx"], design.columns))
    assert [[*row.cells] for row in rows] == [[*design.columns]] * 2
    with (tmp_path / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        [cells] = csv.DictReader(file)
    assert cells["label"] == {"summary": "Rain."}.get(kind, "")
    offers = load_workbook(tmp_path / "a.xlsx")["ratings"].data_validations.dataValidation
    assert (
        offers[-1].formula1
        == {
            "choice": '"A,B,none"',
            "answer": '"0,1"',  # of factuality: an answer in words has no list
            "summary": '"1,2,3"',
        }[kind]
    )
    data = re.search(r'id="data">(.*?)</script>', (tmp_path / "a.html").read_text(), re.DOTALL)
    assert data
    told = json.loads(data[1])
    assert [each["form"] for each in told["criteria"]][-1] == {
        "choice": "option",
        "answer": "text",
    }.get(kind, "scale")
    assert "twelve" not in data[1] and told["items"][0]["options"] == {"choice": ["A", "B"]}.get(
        kind, []
    )
