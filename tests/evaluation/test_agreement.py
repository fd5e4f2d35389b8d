from typing import get_args

import numpy as np
import pytest

from coreeval.evaluation import agreement as module
from coreeval.evaluation import decomposition, pcr
from coreeval.evaluation.agreement import Agreement, Said, agreement, calibration
from coreeval.evaluation.decomposition import Flagged, ItemEvidence, decompose
from coreeval.evaluation.excess import Standing
from coreeval.evaluation.numleak.verdicts import VERDICTS
from coreeval.evaluation.panel import panel
from tests.support.planted import coded, first


def _items(ids: tuple[str, ...], base: str | None = "control") -> ItemEvidence:
    flagged = Flagged(ids=ids, expected_false=0.4, highest=9, by_chance=0, least=8)
    return ItemEvidence.model_validate(
        {
            "target": "a",
            "n": 50 if base else 0,
            "templates": 3,
            "base": base,
            "false_share": 0.1,
            "kinds": {"wording": flagged} if base else {},
            "note": "how far it reaches",
        }
    )


def _matrix() -> Agreement:
    arms = {arm: first(30) for arm in ("original", "semantic", "control", "updated")}
    standings = [
        Standing(str(i), 50, np.full(3, 0.6 + 0.01 * i), np.full(3, 0.6)) for i in range(5)
    ]
    return agreement(
        ["a", "b"],
        pcr={"a": ("contaminated", "the interval is below 0")},
        decompositions={"a": decompose(coded(arms))},  # type: ignore[arg-type]
        items={"a": _items(("s1", "s2"))},
        panel=panel(standings[:4]),
        numleak={"a": [("fluent", "close but no"), ("memorized", "to the digit")]},
    )


def test_each_detector_speaks_for_itself() -> None:
    row = _matrix().rows[0]
    assert {name: (cell.said, cell.verdict) for name, cell in row.cells.items()} == {
        "pcr": ("remembered", "contaminated"),
        "decomposition": ("not_shown", "not_shown"),
        "items": ("remembered", "2 of 50 flagged"),
        "panel": ("not_measured", ""),
        "numleak": ("remembered", "memorized"),
    }
    assert row.cells["panel"].reason == "panel too small: 4 of 5 targets"
    assert row.cells["numleak"].reason == "1 of 2 series; to the digit"
    assert row.cells["items"].reason == "of them at most 0.4 falsely, on average"


def test_what_was_not_run_is_not_measured() -> None:
    row = _matrix().rows[1]
    assert {cell.said for cell in row.cells.values()} == {"not_measured"}
    assert row.cells["pcr"].reason == "was not run"


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (_items(()), "not_shown"),
        (_items((), base=None), "cannot_tell"),
    ],
)
def test_flagged_samples_count_only_against_a_control_arm(found: ItemEvidence, said: Said) -> None:
    (row,) = agreement(
        ["a"], pcr={}, decompositions={}, items={"a": found}, panel=None, numleak={}
    ).rows
    assert (row.cells["items"].said, row.cells["items"].reason) == (said, "how far it reaches")


def test_a_panel_speaks_of_its_own_targets() -> None:
    standings = [
        Standing(
            str(i),
            50,
            np.full(3, 0.1 * i + (0.4 if i == 2 else 0.001 * (i % 2))),
            np.full(3, 0.1 * i),
        )
        for i in range(7)
    ]
    rows = agreement(
        ["2", "3"], pcr={}, decompositions={}, items={}, panel=panel(standings), numleak={}
    ).rows
    assert [row.cells["panel"].said for row in rows] == ["remembered", "not_shown"]


def test_every_verdict_has_a_meaning() -> None:
    known = module._VERDICTS
    assert set(known["pcr"]) == set(get_args(pcr.Verdict))
    assert set(known["decomposition"]) == set(get_args(decomposition.Verdict))
    assert set(known["numleak"]) == set(VERDICTS)


def test_the_packaged_calibration_can_be_read() -> None:
    found = calibration()
    assert found.keys() <= module.ASKS.keys()
    assert _matrix().calibration == found
