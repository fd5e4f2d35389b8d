"""The scores of a reference beside those of a model: made studies whose truth is known."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from coreeval.evaluation.detectors.base import (
    DetectorInputs,
    Json,
    SampleTexts,
    TextAnswer,
)
from coreeval.evaluation.detectors.membership import MEMBERSHIP, make_membership
from coreeval.evaluation.whitebox.membership import Membership, judge_membership
from coreeval.evaluation.whitebox.membership_reference import ReferenceScores
from coreeval.evaluation.whitebox.membership_terms import TERMS
from coreeval.evaluation.whitebox.membership_texts import MembershipItem
from coreeval.schema import Arm, Sample
from coreeval.tasks import load_task
from coreeval.tools.tables import text_lines
from coreeval.tools.text_scores import TextScores
from tests.evaluation.whitebox.test_membership import ARMS, make_items, make_scores

Scores = dict[str, TextScores]
READ: Mapping[Arm, float] = {"original": 1.0}
FIRST: Mapping[Arm, float] = {"semantic": -1.0, "updated": -1.0, "control": -1.0}
"""A first rewriting makes a text less probable, a second one does not: as if it had been read."""
EACH: Mapping[Arm, float] = {"semantic": -1.0, "updated": -1.5, "control": -1.5}
"""Each rewriting costs a half, and the first another half."""


def widen(scores: Scores, times: float) -> Scores:
    """Return the scores of a model whose standardised log-probabilities spread more."""
    return {
        key: TextScores(
            logprobs=each.logprobs,
            tokens=each.tokens,
            means=each.means,
            deviations=tuple(one / times for one in each.deviations),
        )
        for key, each in scores.items()
    }


def judge(
    shifts: Mapping[Arm, float],
    reference: Scores | None = None,
    items: Sequence[MembershipItem] | None = None,
) -> Membership:
    some = list(items or make_items(100, *ARMS))
    given = None if reference is None else ReferenceScores(name="hf:old", scores=reference)
    return judge_membership(some, make_scores(some, dict(shifts)), reference=given)


def make_reference(shifts: Mapping[Arm, float], *, number: int = 100) -> Scores:
    return make_scores(make_items(number, *ARMS), dict(shifts), seed=1)


@pytest.mark.parametrize("times", [1.0, 4.0, 0.25])
def test_what_only_the_model_has_read_is_found(times: float) -> None:
    found = judge(READ, widen(make_reference({}), times))
    assert found.verdict == "member" and "beyond the reference" in found.reason
    assert "beyond the reference" in found.caveat and "model older than" not in found.caveat
    assert found.reference and found.reference.name == "hf:old"


def test_a_first_rewriting_that_costs_both_more_is_no_membership() -> None:
    assert judge(FIRST).verdict == "member"  # without a reference nothing tells the two apart
    found = judge(FIRST, make_reference(FIRST))
    assert found.verdict == "shifted" and found.caveat == ""
    assert "but the reference may show the same difference" in found.reason


@pytest.mark.parametrize("times", [4.0, 0.25])
def test_scales_of_models_do_not_count(times: float) -> None:
    plain, wide = (judge(FIRST, widen(make_reference(FIRST), by)) for by in (1.0, times))
    assert (plain.verdict, wide.verdict) == ("shifted", "shifted")
    assert plain.reference and wide.reference
    for term, each in plain.reference.terms.items():
        other = wide.reference.terms[term]
        assert each.difference.estimate == pytest.approx(other.difference.estimate)
        assert each.difference.ci_low == pytest.approx(other.difference.ci_low)


def test_a_model_that_minds_every_rewriting_more_is_not_accused() -> None:
    assert judge(EACH).verdict == "member"
    half: Mapping[Arm, float] = {"semantic": -0.5, "updated": -0.5, "control": -0.5}
    found = judge(EACH, make_reference(half))
    assert found.reference and found.verdict == "shifted"
    wording = found.reference.find_difference("wording")
    assert wording.ci_low and wording.ci_low > 0  # this difference alone would accuse it


def test_a_reference_that_has_read_the_originals_too_clears_nothing_and_accuses_nobody() -> None:
    assert judge(READ, make_reference(READ)).verdict == "shifted"


@pytest.mark.parametrize("shifts", [{}, {"original": 2.0, "semantic": 1.0}, {"original": -1.0}])
def test_a_reference_never_makes_a_member(shifts: Mapping[Arm, float]) -> None:
    low: Mapping[Arm, float] = {"original": -3.0}
    alone, beside = judge(shifts), judge(shifts, make_reference(low))
    assert alone.verdict != "member"
    assert beside.model_copy(update={"reference": None}) == alone


def test_terms_are_the_means_over_the_spread_of_reworded_texts() -> None:
    items, other = make_items(100, *ARMS), make_reference(FIRST)
    own = make_scores(items, dict(READ))
    del other["alone:control:7"], own["alone:original:8"]
    given = ReferenceScores(name="r", scores=other)
    found = judge_membership(items, own, reference=given).reference
    assert found and found.left_out == 1 and set(found.terms) == set(TERMS)

    def measure(scores: Scores, arms: Mapping[Arm, int], ids: Sequence[int]) -> float:
        rows = [
            {arm: scores[f"alone:{arm}:{at}"].logprobs[0] for arm in {"semantic", *arms}}
            for at in ids
        ]
        mean = fmean(sum(by * row[arm] for arm, by in arms.items()) for row in rows)
        return mean / pstdev(row["semantic"] for row in rows)

    for term, arms in TERMS.items():
        without = {8} if "original" in arms else set()
        without |= {7} if "control" in arms else set()
        ids = [at for at in range(100) if at not in without]
        each, due = found.terms[term], [measure(one, arms, ids) for one in (own, other)]
        assert each.difference.n == len(ids)
        assert each.model.estimate == pytest.approx(due[0])
        assert each.reference.estimate == pytest.approx(due[1])
        assert each.difference.estimate == pytest.approx(due[0] - due[1])


def test_both_models_are_drawn_with_the_same_samples() -> None:
    items = make_items(100, *ARMS)
    same = make_scores(items, dict(READ))
    given = ReferenceScores(name="r", scores=same)
    found = judge_membership(items, same, reference=given).reference
    assert found
    for each in found.terms.values():
        difference = each.difference
        assert difference.estimate == difference.ci_low == difference.ci_high == 0


def test_a_reference_of_an_endpoint_moves_the_verdict_to_min_k() -> None:
    plain = {
        key: TextScores(logprobs=each.logprobs, tokens=each.tokens)
        for key, each in make_reference({}).items()
    }
    found = judge(READ, plain)
    assert (found.verdict, found.method) == ("member", "min_k")
    assert found.methods[0].method == "min_k_plus"
    assert "without weights" in found.notes[-1]


def test_too_few_samples_of_the_reference_are_told() -> None:
    found = judge(READ, make_reference({}, number=40))
    assert found.verdict == "too_few"
    assert "only 40 samples can be compared with the reference, but 50 are needed" in found.reason
    assert "240 of 400 texts were not scored by the reference" in found.notes
    assert judge(READ, {}).reason.endswith("and a twin from the reference")


def test_a_reference_that_gives_every_text_the_same_score_cannot_be_compared() -> None:
    same = {key: TextScores(logprobs=(-1.0,)) for key in make_reference({})}
    found = judge(READ, same)
    assert found.verdict == "too_few" and "only 0 samples can be compared" in found.reason


# -- what is shown --------------------------------------------------------------------------------


def score_study(reference: Scores | None) -> Json:
    """Return the finding of the detector on a model that has read the originals of a run."""
    task = load_task("emotion")
    field, items = task.fields[0], make_items(60, *ARMS)

    def texts() -> Iterator[SampleTexts]:
        for item in items:
            arms = {arm: {field: text} for arm, text in item.texts.items()}
            sample = Sample(
                id=item.id, split="test", label=0, label_text="joy", fields=arms["original"]
            )
            yield SampleTexts(sample, arms)

    answers = {
        key: TextAnswer("answered", each.model_dump_json())
        for key, each in make_scores(items, dict(READ)).items()
    }
    given = None if reference is None else ReferenceScores(name="hf:old", scores=reference)
    detector = make_membership(reference=given)
    assert detector.score
    return detector.score(DetectorInputs(task=task, seed=0, texts=texts, fields=texts), answers)


def test_a_finding_shows_both_models_and_reads_back() -> None:
    found = score_study(make_reference({}, number=60))
    document = {"targets": [{"target": "hf:new", **found}]}
    tables = MEMBERSHIP.make_tables(document)
    shown = "\n".join(line for table in tables for line in text_lines(table))
    (row,) = (line for line in shown.splitlines() if line.startswith("hf:new  hf:old     wording"))
    assert row.endswith("60") and "standard deviations" in shown
    (finding,) = MEMBERSHIP.find({"detectors": {"membership": document}})
    assert finding.memory == "remembered" and "reference" in finding.caveat


def test_without_a_reference_nothing_changes() -> None:
    """The output of made studies is what it was before there were references."""
    lines = list[str]()
    once: Mapping[Arm, float] = {"original": 2.0, "semantic": 1.0}
    for shifts in (READ, once):
        found = judge(shifts, items=make_items(60, *ARMS))
        entry = {"target": "hf:m", **found.model_dump(mode="json", exclude={"reference"})}
        lines += [str(sorted(entry)), f"{found.reason} | {found.caveat}"]
        for table in MEMBERSHIP.make_tables({"targets": [entry]}):
            lines += text_lines(table)
    kept = Path(__file__).with_name("membership_output.txt").read_text("utf-8")
    assert "\n".join(lines) + "\n" == kept
    assert "reference" not in score_study(None) and "reference" in score_study({})


@pytest.mark.parametrize(("clusters", "verdict"), [(2, "too_few"), (10, "member")])
def test_samples_shared_with_a_reference_must_come_from_several_clusters(
    clusters: int, verdict: str
) -> None:
    items = [
        MembershipItem(id=item.id, texts=item.texts, cluster=str(int(item.id) % 20))
        for item in make_items(600, *ARMS)
    ]
    other = make_scores(items, {}, seed=1)
    for item in items:
        if int(item.cluster) >= clusters:
            del other[f"alone:control:{item.id}"]
    found = judge(READ, other, items)
    assert found.verdict == verdict
    assert ("the reference are from 2 clusters" in found.reason) == (verdict == "too_few")
