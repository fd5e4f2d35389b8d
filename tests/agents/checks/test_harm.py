"""What a text may say about real people."""

import pytest

from coreeval.agents.checks import harm
from coreeval.agents.checks.case import Case
from coreeval.agents.checks.composition import Check
from coreeval.agents.checks.restraint import UNRESTRAINED, Restraint
from coreeval.agents.takedown import takedown_of
from coreeval.schema import Evidence, Person, Plan

from ..builders import TWEETS, WINDOW, brief, news, sample

NEWS = news("Maria Lopez opens a bridge in Lima", people=("Maria Lopez",))
PLAN = Plan(
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
    given = brief(sample(old), evidence=(item,), plan=PLAN)
    case = Case(task=TWEETS, brief=given, fields={"text": new}, window=WINDOW, restraint=restraint)
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
        ("Bob Ray left", "Maria Lopez resigns", "resigns"),
    ],
)
def test_conduct_needs_its_verb_in_the_news(old: str, new: str, word: str | None) -> None:
    told = found(harm.conduct_supported, old, new)
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
    told = found(harm.harm_not_moved, old, new)
    assert [route for route, _ in told] == (["evidence"] if moved else [])


def test_what_the_news_itself_says_may_be_said() -> None:
    item = news("Maria Lopez opens cancer ward", people=("Maria Lopez",))
    assert found(harm.harm_not_moved, "cancer took Bob", "Lopez on cancer", item=item) == []


def test_nobody_on_the_takedown_list() -> None:
    listed = Restraint(takedown=takedown_of(["Maria Lopez"]))
    new = "so MARIA LOPEZ opens a bridge"
    ((route, message),) = found(harm.nobody_listed, "Bob Ray left", new, restraint=listed)
    assert route == "evidence" and "'Maria Lopez'" in message
    assert found(harm.nobody_listed, "Maria Lopez left", new, restraint=listed) == []
