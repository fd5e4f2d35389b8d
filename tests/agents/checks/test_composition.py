"""Checks of a composed text."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from coreeval.agents.checks import check_composition, clean_extraction, composition, form
from coreeval.agents.checks.composition import Check
from coreeval.agents.checks.context import UNRESTRAINED, CheckContext, Restraint
from coreeval.agents.edits import SharedWords, count_shared_words
from coreeval.agents.safety import build_takedown
from coreeval.agents.text.words import MOST_SPANS
from coreeval.schema import (
    Defect,
    Deletion,
    Evidence,
    Extraction,
    Lock,
    Person,
    Plan,
    Sample,
    Task,
)

from ..builders import PAIRS, PREMISES, STANCE, TWEETS, WINDOW, news, replacement, request, sample
from ..builders import statement as stated

TITLE = "Heat wave hits Spain on Tuesday as crude tops $4, 500"
ORIGINAL = "@user Ford cut 900 jobs on Monday and I am so sad \U0001f62d #sad #jobs"
GOOD = "@user so sad today \U0001f62d a heat wave hits Spain this Tuesday #sad #heat"
PLAN = Plan(
    decision="use",
    statements=(stated("Heat wave hits Spain"),),
    replacements=(replacement(("Ford", "cut", "900 jobs"), ("heat wave", "hits", "Spain")),),
    delete=(Deletion(span="on Monday", field="text", why="the old day"),),
)


def check(
    new: str,
    *,
    original: str = ORIGINAL,
    task: Task = TWEETS,
    plan: Plan = PLAN,
    evidence: tuple[Evidence, ...] = (news(TITLE),),
    locked: tuple[Lock, ...] = (),
) -> list[Defect]:
    one = sample(original)
    found = clean_extraction(task, one, Extraction(locked=locked))
    given = request(one, plan=plan, evidence=evidence, extraction=found)
    return check_composition(task, given, {"text": new}, WINDOW)


def names(defects: list[Defect]) -> list[str]:
    return [defect.check for defect in defects]


def test_a_good_text_passes() -> None:
    assert check(GOOD) == []


def test_hashtags_that_are_not_locked_may_go() -> None:
    assert check(GOOD.replace("#sad #heat", "")) == []


@pytest.mark.parametrize(
    ("new", "found"),
    [
        (GOOD.replace("@user", ""), ["lock", "mentions"]),
        (f"{GOOD} @user2", ["mentions"]),
        (GOOD.replace("\U0001f62d", ""), ["lock"]),
        (f"{GOOD} \U0001f62d\U0001f62d", ["emoji"]),
        (f"{GOOD} #one #two", ["hashtags"]),
        (f"{GOOD} and it goes on for quite a bit longer", ["length"]),
        (GOOD.replace("today", "in 2026"), ["numbers"]),
        (GOOD.replace("today", "900 jobs"), ["numbers"]),
        (GOOD.replace("Tuesday", "Sunday"), ["dates"]),
        (GOOD.replace("Tuesday", "Monday"), ["dates"]),
        (GOOD.replace("Spain", "Lisbon"), ["names"]),
        (GOOD.replace("today", '"unbearable"'), ["quotation"]),
        (GOOD.replace("today", "Ford"), ["leftover"]),
        (GOOD.replace("today", "fucking"), ["profanity"]),
        (GOOD.replace("so sad", "Here is the updated text: so sad"), ["instructions"]),
        (GOOD.replace("today", "[NAME]"), ["instructions"]),
    ],
)
def test_one_fault_is_found_by_its_own_check(new: str, found: list[str]) -> None:
    defects = check(new)
    assert names(defects) == found
    assert {defect.route for defect in defects} == {"compose"}


@pytest.mark.parametrize(
    "new",
    [
        GOOD.replace("today", "at $4,500"),
        GOOD.replace("today", '"heat wave"'),
        GOOD.replace("Spain", "the Spanish"),
        GOOD.replace("today", "TODAY"),
        GOOD.replace("#heat", "#heatwave \U0001f62d"),
    ],
)
def test_what_the_evidence_or_the_tolerance_covers_passes(new: str) -> None:
    assert check(new) == []


def test_quotations_without_end_are_one_defect_and_looked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them would be looked for in every text."""
    masked = list[int]()

    def count(text: str, spans: Iterable[str]) -> str:
        masked.append(len([*spans]))
        return text

    monkeypatch.setattr(form, "mask_spans", count)
    many = " ".join(f'"w{number}"' for number in range(MOST_SPANS + 1))
    one = sample(ORIGINAL)
    evidence = (news(TITLE), news("Ford opens a plant"))
    given = request(one, plan=PLAN, evidence=evidence, extraction=Extraction())
    case = CheckContext(
        task=TWEETS, request=given, fields={"text": f"{GOOD} {many}"}, window=WINDOW
    )
    (defect,) = composition.check_quotations(case)
    assert "has 201 quotations" in defect.message
    assert list(form.check_headline_run(case)) == [] and masked == [MOST_SPANS]


def test_what_is_added_without_evidence_is_a_matter_of_facts() -> None:
    kinds = {defect.kind for defect in check(GOOD.replace("Spain", "Lisbon in 2031"))}
    assert kinds == {"facts"}


@pytest.mark.parametrize("new", [ORIGINAL, ORIGINAL.upper(), ORIGINAL.replace(" I ", "  I, ")])
def test_the_original_is_no_update(new: str) -> None:
    assert "differs" in names(check(new))


@pytest.mark.parametrize("fields", [{}, {"text": " "}, {"text": GOOD, "title": "x"}])
def test_the_fields_are_the_tasks(fields: dict[str, str]) -> None:
    given = request(sample(ORIGINAL))
    assert names(check_composition(TWEETS, given, fields, WINDOW)) == ["fields"]


def test_copied_phrases_of_the_original() -> None:
    copied = "@user Ford cut 850 jobs on Monday and I am so sad \U0001f62d #sad #jobs"
    assert "copied_original" in names(check(copied))
    carrier = Lock(span="on Monday and I am so sad", field="text", why="label_carrier")
    assert "copied_original" not in names(check(copied, locked=(carrier,)))


def test_a_headline_is_not_taken_over() -> None:
    headline = news("A heat wave hits Spain this Tuesday and nobody sleeps tonight")
    copied = "@user \U0001f62d a heat wave hits Spain this Tuesday and nobody sleeps #sad #heat"
    assert names(check(copied, evidence=(headline,))) == ["copied_headline", "headline_run"]


def test_evidence_from_outside_the_window() -> None:
    old = news(TITLE, at=datetime(2025, 1, 1, tzinfo=UTC))
    assert names(check(GOOD, evidence=(old,))) == ["window"]


def test_a_text_in_another_script() -> None:
    cyrillic = "@user \u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 " * 3
    found = names(check(f"{cyrillic} \U0001f62d #sad #heat"))
    assert "language" in found
    assert "language" not in names(check("\u4f60\u597d", original="\u4f60\u597d\u5417"))


def test_markers_are_counted() -> None:
    task = TWEETS.model_copy(update={"markers": ("#not",)})
    original = "What a lovely long queue again #not #queue"
    plan = Plan(decision="use")
    assert (
        check("Such a great hot week here #not #heat", original=original, task=task, plan=plan)
        == []
    )
    twice = check("Such a great hot week #not #not", original=original, task=task, plan=plan)
    assert names(twice) == ["markers"]
    none = check("Such a great hot week #heat", original=original, task=task, plan=plan)
    assert names(none) == ["lock", "markers"]


@pytest.mark.parametrize(
    ("original", "new", "found"),
    [
        ("They vote on abortion now #SemST", "A court rules on Abortion #SemST", []),
        ("They vote on abortion now #SemST", "A court rules on this #SemST", ["lock", "target"]),
        ("They vote on life now #SemST", "A court rules on abortion #SemST", ["target"]),
        ("They vote on life now #SemST", "A court rules on #prochoice #SemST", ["target"]),
    ],
)
def test_a_stance_names_its_target_as_before(original: str, new: str, found: list[str]) -> None:
    plan = Plan(decision="use")
    assert names(check(new, original=original, task=STANCE, plan=plan)) == found


def test_a_person_of_the_news_is_planned_for() -> None:
    item = news("Heat wave hits Spain on Tuesday, says Ana Lopez", people=("Ana Lopez",))
    new = GOOD.replace("today", "says Ana Lopez")
    assert names(check(new, evidence=(item,))) == ["persons"]
    person = Person(name="Lopez", role="source", polarity="neutral")
    planned = PLAN.model_copy(update={"persons": (person,)})
    assert check(new, evidence=(item,), plan=planned) == []


def test_a_head_that_the_news_names_again_may_stay() -> None:
    again = PLAN.model_copy(update={"statements": (stated("Heat wave stops Ford in Spain"),)})
    item = news("Heat wave stops Ford in Spain on Tuesday")
    assert check(GOOD.replace("today", "Ford"), plan=again, evidence=(item,)) == []


def pair(old: Sample, new: tuple[str, str], task: Task, plan: Plan) -> list[str]:
    given = request(old, plan=plan, evidence=(news("Target cut 70 jobs in Ohio"),))
    fields = dict(zip(("sentence1", "sentence2"), new, strict=True))
    return names(check_composition(task, given, fields, WINDOW))


def test_numbers_count_for_each_side_of_a_pair() -> None:
    old = sample("Ford fell 5 percent .", "Ford dropped by a lot .")
    plan = Plan(decision="use")
    assert pair(old, ("Target cut 70 jobs , 5 in Ohio .", "Target shed staff ."), PAIRS, plan) == []
    swapped = ("In Ohio 70 jobs were cut .", "Target shed 5 staff .")
    assert pair(old, swapped, PAIRS, plan) == ["numbers"]


def test_a_hypothesis_may_state_what_no_evidence_carries() -> None:
    old = sample("Ford fell by 5 percent last year .", "Ford closed a plant .")
    new = ("In Ohio 70 jobs were cut by Target .", "Some 80 shops shut on Friday .")
    plan = Plan(decision="use")
    assert pair(old, new, PREMISES, plan) == []
    assert pair(old, new, PAIRS, plan) == ["numbers", "dates"]
    named = ("In Ohio 70 jobs were cut by Target .", "A shop of Walmart shut .")
    assert pair(old, named, PREMISES, plan) == ["names"]


NEWS = news("Maria Lopez opens a bridge in Lima", people=("Maria Lopez",))
HARM_PLAN = Plan(
    decision="use", persons=(Person(name="Maria Lopez", role="subject", polarity="neutral"),)
)


def found(
    check: Check,
    old: str,
    new: str,
    *,
    item: Evidence = NEWS,
    restraint: Restraint = UNRESTRAINED,
) -> list[tuple[str, str]]:
    given = request(sample(old), evidence=(item,), plan=HARM_PLAN)
    case = CheckContext(
        task=TWEETS, request=given, fields={"text": new}, window=WINDOW, restraint=restraint
    )
    return [(defect.route, defect.message) for defect in check(case)]


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("Bob Ray left", "So Maria Lopez refused to open it", "refused"),
        ("Bob Ray left", "Even Lima hides the bridge now", "hides"),
        ("Bob Ray refused", "Maria Lopez refused too", None),
        ("Bob Ray left", "I refused to cross that bridge", None),
        ("Bob Ray left", "Maria Lopez opens it. I refused to go", None),
        ("Bob Ray left", "Maria Lopez opened it", None),
        ("Bob Ray left", "Maria Lopez quits", None),
        ("Bob Ray left", "Maria Lopez is fine with charging and two coffee orders", None),
        ("Bob Ray left", "Maria Lopez fined a cafe", "fined"),
        ("Bob Ray left", "Maria Lopez resigns", "resigns"),
    ],
)
def test_conduct_needs_its_verb_in_the_news(old: str, new: str, word: str | None) -> None:
    told = found(composition.check_conduct, old, new)
    assert [route for route, _ in told] == (["compose"] if word else [])
    assert not word or repr(word) in told[0][1]


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        ("Bob Ray is a liar", "Maria Lopez is a liar", True),
        ("Bob Ray is a liar", "Lopez is a liar", True),
        ("Maria Lopez is a liar", "Maria Lopez is a liar again", False),
        ("my dad died", "my dad died the day a bridge opened", False),
        ("Bob Ray is a liar", "Some liar opens a bridge", False),
        ("Bob Ray is a liar", "Maria Lopez opens a bridge", False),
    ],
)
def test_an_insult_does_not_move_to_somebody_new(old: str, new: str, moved: bool) -> None:
    told = found(composition.check_harm, old, new)
    assert [route for route, _ in told] == (["evidence"] if moved else [])


def test_what_the_news_itself_says_may_be_said() -> None:
    item = news("Maria Lopez opens cancer ward", people=("Maria Lopez",))
    assert found(composition.check_harm, "cancer took Bob", "Lopez on cancer", item=item) == []


def test_nobody_on_the_takedown_list() -> None:
    listed = Restraint(takedown=build_takedown(["Maria Lopez"]))
    new = "so MARIA LOPEZ opens a bridge"
    ((route, message),) = found(composition.check_takedown, "Bob Ray left", new, restraint=listed)
    assert route == "evidence" and "'Maria Lopez'" in message
    assert found(composition.check_takedown, "Maria Lopez left", new, restraint=listed) == []


@pytest.mark.parametrize(
    ("hypothesis", "found"),
    [
        ("Ohio lost jobs at Target stores .", []),
        ("In Ohio , Target cut 70 jobs .", ["shared_words"]),
        ("Seventy people queued outside for bread .", ["shared_words"]),
    ],
)
def test_the_fields_of_a_pair_share_about_as_many_words_as_before(
    hypothesis: str, found: list[str]
) -> None:
    old = sample(
        "Ford fell by 5 percent in Texas after it closed a plant .", "Ford shut a Texas site"
    )
    premise = "Target cut 70 jobs in Ohio , and 5 of them at night ."
    fields = {"sentence1": premise, "sentence2": hypothesis}
    given = request(old, evidence=(news("Target cut 70 jobs in Ohio"),))
    case = CheckContext(task=PREMISES, request=given, fields=fields, window=WINDOW)
    assert [one.check for one in form.check_shared_words(case)] == found


def test_shared_words_count_for_pairs_alone() -> None:
    assert count_shared_words(TWEETS, {"text": "So glad"}) is None
    assert count_shared_words(PAIRS, {"sentence1": "Ford fell", "sentence2": "of the"}) is None
    assert count_shared_words(PAIRS, {"sentence1": "Ford fell", "sentence2": "Ford rose"}) == (
        SharedWords(1, 2)
    )
