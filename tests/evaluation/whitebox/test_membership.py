"""Membership scores against numbers made by hand, and the verdicts of made studies."""

import random
import zlib
from collections.abc import Iterator
from math import exp, log

import pytest
from pydantic import ValidationError
from sklearn.metrics import roc_auc_score  # type: ignore[import-untyped]

from coreeval.errors import DatasetError
from coreeval.evaluation.detectors.base import (
    DetectorInputs,
    SampleTexts,
    TextAnswer,
    read_text_scores,
)
from coreeval.evaluation.detectors.membership import MEMBERSHIP
from coreeval.evaluation.whitebox.membership import FEWEST, judge_membership
from coreeval.evaluation.whitebox.membership_scores import (
    LARGEST_DIVERGENCE,
    TokenFrequencies,
    context_loss,
    dc_pdd,
    min_k,
    min_k_plus,
    zlib_ratio,
)
from coreeval.evaluation.whitebox.membership_texts import (
    MembershipItem,
    MembershipSettings,
    choose_items,
    list_texts,
)
from coreeval.schema import Arm, Sample
from coreeval.tasks import load_task
from coreeval.tools.text_scores import TextScores

ARMS: tuple[Arm, ...] = ("original", "semantic", "updated", "control")
HAND = TextScores(
    logprobs=(-1.0, -4.0, -2.0, -3.0, -0.5, -6.0),
    tokens=("a", "b", "a", "c", "d", "e"),
    means=(-2.0, -4.0, -3.0, -5.0, -1.0, -7.0),
    deviations=(1.0, 2.0, 0.5, 4.0, 1.0, 0.5),
)


def test_min_k_is_the_mean_of_the_lowest_fifth() -> None:
    assert min_k(HAND) == pytest.approx((-6.0 - 4.0) / 2)  # ceil(0.2 * 6) = 2
    assert min_k(TextScores(logprobs=(-3.0,))) == -3.0


def test_min_k_plus_standardises_each_token_by_its_place() -> None:
    # (lp - mean) / deviation: 1, 0, 2, 0.5, 0.5, 2
    assert min_k_plus(HAND) == pytest.approx((0.0 + 0.5) / 2)
    assert min_k_plus(TextScores(logprobs=(-1.0,))) is None


def test_zlib_ratio_is_the_mean_over_the_compressed_bytes() -> None:
    text = "some words, some words"
    assert zlib_ratio(HAND, text) == pytest.approx(-2.75 / len(zlib.compress(text.encode())))


def test_dc_pdd_counts_first_occurrences_and_cuts_them_off() -> None:
    known = TokenFrequencies([("a", "a", "b")])
    assert known.find("a") == pytest.approx(3 / 6) and known.find("z") == pytest.approx(1 / 6)
    scores = TextScores(logprobs=(-9.0, -1.0, -7.0), tokens=("a", "z", "a"))
    due = (min(-exp(-9) * log(3 / 6), LARGEST_DIVERGENCE) + LARGEST_DIVERGENCE) / 2
    assert dc_pdd(scores, known) == pytest.approx(due)
    assert dc_pdd(TextScores(logprobs=(-1.0,)), known) is None


def test_context_loss_compares_the_same_tokens() -> None:
    alone = TextScores(logprobs=(-2.0, -4.0))
    within = TextScores(logprobs=(-9.0, -9.0, -9.0, -1.0, -2.0))
    assert context_loss(alone, within) == pytest.approx(-3.0 - -1.5)
    assert context_loss(alone, TextScores(logprobs=(-1.0, -1.0))) is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 0.5])
def test_a_number_that_is_no_log_probability_is_refused(bad: float) -> None:
    with pytest.raises(ValidationError, match="is not a log-probability"):
        TextScores(logprobs=(-1.0, bad))


def test_scores_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValidationError, match="1 values for 2 tokens"):
        TextScores(logprobs=(-1.0, -2.0), tokens=("a",))


# -- studies --------------------------------------------------------------------------------------


def make_items(number: int, *arms: Arm) -> list[MembershipItem]:
    return [
        MembershipItem(id=str(at), texts={arm: f"{arm} text {at}" for arm in arms})
        for at in range(number)
    ]


def make_scores(
    items: list[MembershipItem], shifts: dict[Arm, float], *, seed: int = 0
) -> dict[str, TextScores]:
    """Return scores of one token, the same luck for all texts of a sample, and a shift by arm."""
    chance, found = random.Random(seed), dict[str, TextScores]()
    for item in items:
        ease = chance.gauss(-5, 1)
        for arm in item.texts:
            logprob = min(0.0, ease + shifts.get(arm, 0.0) + chance.gauss(0, 0.5))
            found[f"alone:{arm}:{item.id}"] = TextScores(
                logprobs=(logprob,), tokens=(arm,), means=(-6.0,), deviations=(1.0,)
            )
    return found


@pytest.mark.parametrize(
    ("shifts", "verdict"),
    [
        ({}, "no_membership"),
        ({"original": 1.0}, "member"),
        ({"original": 1.0, "control": 1.5, "semantic": 0.0}, "shifted"),  # other news shift as much
        ({"original": 2.0, "semantic": 1.0}, "shifted"),  # so does one rewriting
        ({"original": -1.0}, "no_membership"),
    ],
)
def test_a_verdict_needs_more_than_a_shift_explains(shifts: dict[Arm, float], verdict: str) -> None:
    items = make_items(100, *ARMS)
    found = judge_membership(items, make_scores(items, shifts))
    assert (found.verdict, found.method, found.samples) == (verdict, "min_k_plus", 100)
    assert found.verdict in MEMBERSHIP.verdicts
    assert (found.caveat != "") == (verdict == "member")


def test_the_condition_of_a_verdict_goes_with_it() -> None:
    items = make_items(100, *ARMS)
    found = judge_membership(items, make_scores(items, {"original": 1.0}))
    entry = {"target": "hf:m", **found.model_dump(mode="json")}
    (finding,) = MEMBERSHIP.find({"detectors": {"membership": {"targets": [entry]}}})
    assert finding.memory == "remembered" and "first rewriting" in finding.caveat


def test_a_run_without_a_control_arm_cannot_tell_and_says_so() -> None:
    items = make_items(100, "original", "semantic", "updated")
    found = judge_membership(items, make_scores(items, {"original": 1.0}))
    assert found.verdict == "no_control"
    assert "no control arm" in found.notes[0]
    assert "0 samples have a control text" in found.reason


def test_twenty_samples_are_too_few_and_their_figures_are_shown() -> None:
    items = make_items(20, *ARMS)
    found = judge_membership(items, make_scores(items, {"original": 1.0}))
    assert found.verdict == "too_few"
    assert found.reason == f"20 samples have scores for both texts, but {FEWEST} are needed"
    assert found.methods[0].terms["wording"].n == 20


@pytest.mark.parametrize(("clusters", "verdict"), [(1, "too_few"), (9, "too_few"), (10, "member")])
def test_a_verdict_needs_several_clusters(clusters: int, verdict: str) -> None:
    items = [
        MembershipItem(id=item.id, texts=item.texts, cluster=str(int(item.id) % clusters))
        for item in make_items(100, *ARMS)
    ]
    found = judge_membership(items, make_scores(items, {"original": 2.0}))
    assert found.verdict == verdict
    assert (f"from {clusters} clusters, but 10 are needed" in found.reason) == (
        verdict == "too_few"
    )


@pytest.mark.parametrize(("clusters", "verdict"), [(2, "no_control"), (10, "member")])
def test_control_texts_must_come_from_several_clusters(clusters: int, verdict: str) -> None:
    items = [
        MembershipItem(id=item.id, texts=item.texts, cluster=str(int(item.id) % 20))
        for item in make_items(600, *ARMS)
    ]
    scores = make_scores(items, {"original": 2.0})
    for item in items:
        if int(item.cluster) >= clusters:
            del scores[f"alone:control:{item.id}"]
    found = judge_membership(items, scores)
    assert found.verdict == verdict
    assert ("a control text are from 2 clusters" in found.reason) == (verdict == "no_control")


def test_scores_that_are_all_the_same_say_nothing() -> None:
    items = make_items(60, *ARMS)
    same = {key: TextScores(logprobs=(0.0, 0.0)) for key in make_scores(items, {})}
    found = judge_membership(items, same)
    assert (found.verdict, found.reason) == (
        "too_few",
        "the model gives every text the same score",
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("column", ["means", "deviations"])
def test_a_mean_that_is_no_number_is_refused(column: str, bad: float) -> None:
    with pytest.raises(ValidationError, match="is not a number"):
        TextScores.model_validate({"logprobs": (-1.0,), column: (bad,)})


def test_a_text_of_one_token_has_no_scores() -> None:
    answers = {
        "one": TextAnswer("answered", TextScores(logprobs=()).model_dump_json()),
        "two": TextAnswer("answered", TextScores(logprobs=(-1.0,)).model_dump_json()),
    }
    assert [*read_text_scores(answers)] == ["two"]


def test_nothing_scored_is_too_few() -> None:
    found = judge_membership(make_items(60, *ARMS), {})
    assert (found.verdict, found.left_out) == ("too_few", 240)


def test_terms_are_differences_of_means_and_the_auc_is_that_of_others() -> None:
    items = make_items(80, *ARMS)
    scores = make_scores(items, {"original": 0.3})
    found = next(each for each in judge_membership(items, scores).methods if each.method == "min_k")
    values = {arm: [scores[f"alone:{arm}:{item.id}"].logprobs[0] for item in items] for arm in ARMS}
    mean = {arm: sum(each) / 80 for arm, each in values.items()}
    terms = {name: term.estimate or 0.0 for name, term in found.terms.items()}
    assert terms["wording"] == pytest.approx(mean["original"] - mean["semantic"])
    shift = mean["control"] - mean["updated"]
    assert terms["beyond_news_shift"] == pytest.approx(terms["wording"] - shift)
    rewriting = mean["semantic"] - mean["control"]
    assert terms["beyond_rewriting"] == pytest.approx(terms["wording"] - rewriting)
    due = roc_auc_score([1] * 80 + [0] * 80, values["original"] + values["semantic"])
    (pair, _) = found.aucs
    assert pair.auc.estimate == pytest.approx(due)
    assert pair.auc.ci_low and pair.auc.ci_high and pair.auc.ci_low < due < pair.auc.ci_high


def test_clusters_are_drawn_as_one() -> None:
    alone = make_items(100, *ARMS)
    scores = make_scores(alone, {"original": 0.1})
    for at, item in enumerate(alone):  # ten samples of a cluster have the same luck
        for arm in ARMS:
            scores[f"alone:{arm}:{item.id}"] = scores[f"alone:{arm}:{at // 10 * 10}"]
    together = [
        MembershipItem(id=item.id, texts=item.texts, cluster=str(at // 10))
        for at, item in enumerate(alone)
    ]
    wide, narrow = (
        judge_membership(items, scores).methods[0].terms["wording"] for items in (together, alone)
    )
    assert wide.ci_low is not None and wide.ci_high is not None
    assert narrow.ci_low is not None and narrow.ci_high is not None
    assert wide.ci_high - wide.ci_low > 2 * (narrow.ci_high - narrow.ci_low)


def test_without_weights_the_verdict_rests_on_min_k() -> None:
    items = make_items(100, *ARMS)
    scores = {
        key: TextScores(logprobs=each.logprobs, tokens=each.tokens)
        for key, each in make_scores(items, {"original": 1.0}).items()
    }
    found = judge_membership(items, scores)
    assert (found.verdict, found.method) == ("member", "min_k")
    assert "without weights" in found.notes[-1]


# -- which texts ----------------------------------------------------------------------------------


def test_samples_with_all_arms_come_first_and_empty_texts_do_not_count() -> None:
    whole = [(f"w{at}", "", {arm: f"{arm} {at}" for arm in ARMS}) for at in range(5)]
    some = [(f"s{at}", "", {"original": "one", "semantic": "two"}) for at in range(5)]
    empty = [("e", "", {"original": "one", "semantic": " \n"})]
    samples: list[tuple[str, str, dict[Arm, str]]] = [*some, *empty, *whole]  # type: ignore[list-item]
    drawn = choose_items(samples, MembershipSettings(samples=6), seed=1)
    assert {item.id for item in drawn[:5]} == {"w0", "w1", "w2", "w3", "w4"}
    assert len(drawn) == 6 and drawn[5].id.startswith("s")


def test_arms_that_share_nothing_are_one_error() -> None:
    samples: list[tuple[str, str, dict[Arm, str]]] = [
        ("a", "", {"original": "one"}),
        ("b", "", {"semantic": "two"}),
    ]
    with pytest.raises(DatasetError, match="no sample has an original and a reworded text"):
        choose_items(samples, MembershipSettings(), seed=1)


def test_context_is_of_the_same_arm_and_not_the_text_itself() -> None:
    samples = [(str(at), "", {arm: f"{arm} {at}." for arm in ARMS}) for at in range(6)]
    items = choose_items(samples, MembershipSettings(context=2), seed=1)
    texts = {request.key: request.text for request in list_texts(items)}
    assert len(texts) == 2 * 4 * 6
    for item in items:
        *before, own = texts[f"context:updated:{item.id}"].split("\n\n")
        assert own == texts[f"alone:updated:{item.id}"]
        assert len(before) == 2 and own not in before
        assert all(each.startswith("updated ") for each in before)
    shared = [(name, str(int(name) // 3), texts) for name, _, texts in samples]
    for item in choose_items(shared, MembershipSettings(context=5), seed=1):
        assert len(item.context) == 3, "a text of the same passage would give the text away"
        assert not any(int(other) // 3 == int(item.id) // 3 for other in item.context)
    none = choose_items(samples, MembershipSettings(context=0), seed=1)
    assert len(list_texts(none)) == 4 * 6


def test_a_text_that_occurs_twice_is_one_cluster_without_a_column_for_it() -> None:
    def read() -> Iterator[SampleTexts]:
        for at in range(8):
            fields = {"text": f"text {at // 2}"}
            sample = Sample(id=str(at), split="test", fields=fields, label=0, label_text="joy")
            yield SampleTexts(sample, {"original": fields, "semantic": {"text": f"reworded {at}"}})

    assert MEMBERSHIP.questions
    inputs = DetectorInputs(task=load_task("emotion"), seed=1, texts=read, fields=read)
    said = [each.text for each in MEMBERSHIP.questions(inputs) if "context:original" in each.key]
    assert len(said) == 8
    for *before, own in (text.split("\n\n") for text in said):
        assert before and own not in before
