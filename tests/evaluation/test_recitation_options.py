"""A wrong option is masked and asked for: who knows those of originals has read or guessed them."""

from collections.abc import Iterator

import pytest

from coreeval.evaluation.detectors.base import DetectorInputs, SampleTexts
from coreeval.evaluation.detectors.recitation_probes import OPTIONS
from coreeval.evaluation.recitation import FEWEST_ITEMS
from coreeval.evaluation.recitation_options import CAVEAT, choose_options, judge_options
from coreeval.evaluation.recitation_shares import Answers, TextPair, list_places
from coreeval.schema import Arm, Sample
from coreeval.tasks import load_task

OLD = {"question": "Who built it?", "A": "Acme Ltd", "B": "Hooli", "C": "Stark and Sons"}
NEW = {"question": "Who opens it?", "A": "Globex", "B": "Norvik", "C": "Initech"}


def choose(
    old: dict[str, str], new: dict[str, str] | None, right: str = "B", number: int = 1
) -> list[TextPair]:
    arms: dict[Arm, dict[str, str]] = {"original": old}
    arms |= {"updated": new} if new else {}
    ids = [f"q{n:02}" for n in range(number)]
    return choose_options(
        [(each, right, arms) for each in ids], {each: each for each in ids}, seed=7
    )


def test_a_wrong_option_is_masked_in_both_texts() -> None:
    pairs = choose(OLD, NEW, number=20)
    hidden = {pair.texts["original"][0].rest for pair in pairs}
    assert hidden == {"Acme Ltd", "Stark and Sons"}, "any wrong one, never the right one"
    for pair in pairs:
        (original,), (twin,) = pair.texts["original"], pair.texts["twin"]
        letter = {"Acme Ltd": "A", "Stark and Sons": "C"}[original.rest]
        assert twin.rest == NEW[letter] and pair.arm == "updated"
        for text in (original, twin):
            assert f"{letter}. [MASK]" in text.beginning and text.rest not in text.beginning


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        (OLD, None, "B"),
        ({"question": "?", "A": "Acme", "B": "Hooli"}, {"question": "?", "A": "x", "B": "y"}, "B"),
        (OLD | {"A": "none of these", "C": "1,200"}, NEW, "B"),
        (OLD | {"A": "the old Hooli firm", "C": "the old Hooli firms"}, NEW, "B"),
        (OLD, NEW | {"A": "Acme Ltd", "C": "stark and sons"}, "B"),
        ({"text": "What a day", "A": "one", "B": "two", "C": "three"}, NEW, "joy"),
    ],
)
def test_what_has_no_option_to_mask(
    old: dict[str, str], new: dict[str, str] | None, right: str
) -> None:
    assert choose(old, new, right) == []


def test_one_question_of_a_cluster_is_asked() -> None:
    samples = [(f"q{n}", "B", {"original": OLD, "updated": NEW}) for n in range(6)]
    clusters = {name: name if name == "q5" else "one passage" for name, *_ in samples}
    asked = {pair.id for pair in choose_options(samples, clusters, seed=7)}  # type: ignore[arg-type]
    assert "q5" in asked and len(asked) == 2

    def read() -> Iterator[SampleTexts]:
        for name, cluster in clusters.items():
            sample = Sample(
                id=name, split="test", fields=OLD, label=1, label_text="B", cluster=cluster
            )
            yield SampleTexts(sample, {"original": OLD, "updated": NEW})

    assert OPTIONS.questions
    task = load_task("multiple_choice")
    inputs = DetectorInputs(task=task, seed=7, texts=read, fields=read)
    assert len(list(OPTIONS.questions(inputs))) == 2 * len(asked)


def said(pairs: list[TextPair], known: dict[str, int]) -> Answers:
    """Return answers that know the first items of each side."""
    ids = [pair.id for pair in pairs]
    return {
        place: (
            "answered",
            f"A. {text.rest.upper()}" if ids.index(place.id) < known[place.side] else "Acme Inc",
        )
        for place, text in list_places(pairs)
    }


def test_options_of_originals_alone_are_suggestive() -> None:
    pairs = choose(OLD, NEW, number=FEWEST_ITEMS)
    found = judge_options(pairs, said(pairs, {"original": 12, "twin": 2}))
    assert (found.verdict, found.items, found.higher, found.lower) == ("suggestive", 20, 10, 0)
    assert found.reason.endswith(CAVEAT) and "p = 0.00098" in found.reason
    assert OPTIONS.verdicts[found.verdict] == "cannot_tell"
    assert (found.original.estimate, found.twin.estimate) == (0.6, 0.1)
    assert found.rouge_l.estimate and found.rouge_l.estimate > 0.6, "Acme Inc is half Acme Ltd"
    assert found.rouge_l_twin.estimate == pytest.approx(0.1)
    both = judge_options(pairs, said(pairs, {"original": 12, "twin": 12}))
    assert both.verdict == "no_recitation" and CAVEAT not in both.reason


CLOSED_SETS = (
    "Spring Summer Autumn Winter",
    "Spades Hearts Diamonds Clubs",
    "East West North South",
    "Ringo John Paul George",
)


def test_who_completes_closed_sets_is_not_said_to_recite() -> None:
    samples = list[tuple[str, str, dict[Arm, dict[str, str]]]]()
    for n in range(24):
        options = CLOSED_SETS[n % len(CLOSED_SETS)].split()
        news = [options[0], *(f"Newsname{n}{k}" for k in "pqr")]
        old, new = (
            {"question": "Which?"} | dict(zip("ABCD", each, strict=False))
            for each in (options, news)
        )
        samples.append((f"q{n:02}", "A", {"original": old, "updated": new}))
    pairs = choose_options(samples, {each[0]: each[0] for each in samples}, seed=1)
    found = judge_options(pairs, said(pairs, {"original": 17, "twin": 0}))
    assert (found.items, found.higher, found.lower) == (24, 17, 0) and found.p_value < 1e-5
    assert OPTIONS.verdicts[found.verdict] == "cannot_tell"


def test_too_few_and_refusing() -> None:
    few = choose(OLD, NEW, number=FEWEST_ITEMS - 1)
    assert judge_options(few, said(few, {"original": 19, "twin": 0})).verdict == "too_few"
    pairs = choose(OLD, NEW, number=FEWEST_ITEMS)
    refused: Answers = {place: ("answered", "I cannot help") for place, _ in list_places(pairs)}
    assert judge_options(pairs, refused).verdict == "refusing"
    assert judge_options([], {}).reason.startswith("0 choices have")
