import numpy as np
import pytest

from benchmarks.calibration_studies import compared, decomposed, listed, truths_of
from benchmarks.calibration_worlds import Made, Planted, scores
from coreeval.evaluation.agreement import ASKS, calibration
from coreeval.evaluation.arm_scores import ARMS

WORLD = Planted("all of it", words=0.3, strength=0.8, rewording=0.1, rewriting=0.1, mislabelled=0.1)


@pytest.mark.parametrize("planted", [WORLD, WORLD._replace(words=0.0, facts=0.3)])
def test_a_population_scores_what_many_of_its_samples_score(planted: Planted) -> None:
    made = Made(planted)
    coded = made.study(60_000, np.random.default_rng(3)).coded
    for arm, joint in made.joints.items():
        seen = np.zeros_like(joint)
        np.add.at(seen, (coded.table.due, coded.table.said[:, ARMS.index(arm)]), 1 / 60_000)
        assert seen == pytest.approx(joint, abs=0.006)
        assert scores(seen) == pytest.approx(scores(joint), abs=0.01)


def test_words_are_remembered_in_the_original_and_facts_before_the_cutoff() -> None:
    words, facts = (
        truths_of(Made(each))["accuracy"]
        for each in (Planted("words", words=0.5), Planted("facts", facts=0.5))
    )
    assert words["surface"] == words["surface_unexplained"] > 0.1
    assert words["unexplained"] == facts["surface"] == pytest.approx(0, abs=1e-12)
    assert facts["unexplained"] == facts["knowledge"] > 0.1


def test_what_is_planted_is_found_and_where_nothing_is_nothing() -> None:
    clean, known = Made(Planted("clean"), templates=3), Made(Planted("it", facts=1.0), templates=3)
    assert decomposed(known, 300, 2, 1)["remembered"].share == 1
    assert decomposed(clean, 300, 2, 1)["remembered"].share == 0
    assert listed(known, "facts", 300, 2, 1).false == 0
    assert listed(known, "facts", 300, 2, 1).found > 0.1
    assert listed(clean, "facts", 300, 2, 1).some.times == 0


def test_in_a_panel_the_one_that_remembers_stands_out() -> None:
    rates = compared(12, Planted("all", words=1.0, rewriting=0.1), 500, 4, 4)
    assert rates["found"].times >= 3
    assert rates["any"].times <= 1


def test_every_detector_of_the_matrix_has_a_calibration() -> None:
    found = calibration()
    assert found.keys() == ASKS.keys()
    assert all(each.false_positives and each.found for each in found.values())
