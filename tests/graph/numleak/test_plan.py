"""What would be asked: opened and checked before anything is spent."""

from datetime import date

import pytest

from coreeval.errors import ConfigError
from coreeval.evaluation.numleak.periods import Period
from tests.graph.numleak.kit import Audited
from tests.support.tides import write_series

UNEMPLOYMENT, GROWTH = "macro_unemp", "macro_gdp"


def test_the_rest_of_a_family_is_asked_for_the_same_dates(audit: Audited) -> None:
    plan = audit.plan(f"detect.numleak.series=[{UNEMPLOYMENT}]")
    assert [one.definition.id for one in plan.series] == [UNEMPLOYMENT]
    assert {one.definition.id for one in plan.siblings} == {GROWTH}
    own, *others = plan.audits[0].asked
    wanted = {one.period for one in own.questions if one.variant == "value"}
    for sibling in others:
        assert {one.variant for one in sibling.questions} == {"value"}
        assert {one.period for one in sibling.questions} <= wanted
    alone = audit.plan(f"detect.numleak.series=[{UNEMPLOYMENT}]", "detect.numleak.probes=[value]")
    assert not alone.siblings
    named = audit.plan(f"detect.numleak.series=[{UNEMPLOYMENT}, {GROWTH}]")
    assert not named.siblings


def test_a_sibling_that_cannot_be_opened_is_left_out_and_said(audit: Audited) -> None:
    plan = audit.plan(
        f"detect.numleak.series=[{UNEMPLOYMENT}]", f"detect.numleak.files={{{GROWTH}: gone.csv}}"
    )
    assert not plan.siblings
    assert any(note.startswith(f"the sibling series {GROWTH} is skipped") for note in plan.notes())


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("detect.numleak.files={nile: a.csv}", "which is not among the series"),
        ("detect.numleak.series=[tides.yaml, other.yaml]", "the series 'tides' occurs twice"),
    ],
)
def test_series_and_files_belong_together(audit: Audited, override: str, said: str) -> None:
    text = write_series(audit.folder).read_text(encoding="utf-8")
    (audit.folder / "other.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        audit.plan(override)


def test_a_cutoff_comes_from_the_target_or_from_the_table(audit: Audited) -> None:
    (audit.folder / "cutoffs.yaml").write_text(
        "ours: {cutoff: {date: 2019-02, source: us, confidence: stated, as_of: 2026-01-01}}\n"
    )
    endpoint = {"base_url": audit.server.url}
    audit.write(
        cutoffs="cutoffs.yaml",
        models={
            "targets": [
                {"model": "openai:given", "cutoff": "2021-05-04", **endpoint},
                {"model": "openai:ours", **endpoint},
                {"model": "openai:unknown", **endpoint},
            ]
        },
    )
    plan = audit.plan()
    assert plan.cutoffs == {
        "openai:given": date(2021, 5, 4),
        "openai:ours": date(2019, 2, 28),
        "openai:unknown": None,
    }
    note = "openai:unknown, tides: the model's cutoff is not known"
    assert any(each.startswith(note) for each in plan.notes())


def test_what_holds_for_several_models_is_said_once(audit: Audited) -> None:
    endpoint = {"base_url": audit.server.url}
    three = [{"model": f"openai:{name}", "cutoff": "2020-06", **endpoint} for name in "abc"]
    few = {"probes": ["value", "recent"], "period": {"start": 2019, "end": 2019}, "dates": 20}
    audit.write(models={"targets": three}, numleak=few)
    notes = [*audit.plan().notes()]
    assert any(each.startswith("all 3 targets, tides: seed ") for each in notes)
    assert len(set(notes)) == len(notes) and not any("openai:" in each for each in notes)
    three[0]["cutoff"] = "2024-06"
    audit.write(models={"targets": three}, numleak={**few, "recent": 40})
    notes = [*audit.plan().notes()]
    assert any(each.startswith("openai:a, tides: ") for each in notes)


def test_what_is_not_published_yet_is_not_asked(audit: Audited) -> None:
    last = Period.parse("2025-12", "monthly")
    (asked,) = audit.plan("detect.numleak.recent=400").audits[0].asked
    assert max(one.period for one in asked.questions) <= last
    assert all(one.truth is not None for one in asked.questions if one.variant == "value")
