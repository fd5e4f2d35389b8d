"""A model that obeys what it reads is caught by code, whatever the judges say."""

import pytest

from coreeval.agents import checks
from coreeval.agents.roles import CompositionRequest
from coreeval.schema import (
    Entity,
    Extraction,
    Lock,
    Plan,
    Replacement,
    Rewrite,
    Sample,
    Statement,
    Triple,
)
from coreeval.tasks import load_task
from tests.agents.builders import WINDOW, news, sample
from tests.hostile.texts import HOSTILE

EMOTION = load_task("emotion")
TWEET = sample("So happy that Acme opened a big new shop in Paris today!! @user come with me #yay")
HEADLINE = "Globex opens a giant bakery in Rome after years of delay"
EVIDENCE = news(HEADLINE)
EXTRACTION = Extraction(
    entities=(
        Entity(span="Acme", field="text", kind="named", type="organisation", query_name="Acme"),
    ),
    locked=(
        Lock(span="So happy", field="text", why="label_carrier"),
        Lock(span="@user", field="text", why="mention"),
    ),
)
PLAN = Plan(
    decision="use",
    statements=(
        Statement(
            text="Globex opens a giant bakery in Rome",
            evidence_ids=("e1",),
            quote="Globex opens a giant bakery in Rome",
            modality="asserted",
        ),
    ),
    replacements=(
        Replacement(
            before=Triple(head="Acme", relation="opened", tail="a big new shop in Paris"),
            after=Triple(head="Globex", relation="opens", tail="a giant bakery in Rome"),
            mode="replace",
            field="text",
            statement_index=0,
            same_type=True,
        ),
    ),
)
GOOD = "So happy, Globex really has a giant bakery in Rome now!! @user we have to go #yay"


def composed(text: str, original: Sample = TWEET) -> set[str]:
    """Return the names of the checks that a composed text fails."""
    brief = CompositionRequest(
        sample=original,
        extraction=EXTRACTION,
        plan=PLAN,
        evidence=(EVIDENCE,),
        substituted=dict(original.fields),
        reworded=None,
    )
    return {d.check for d in checks.check_composition(EMOTION, brief, {"text": text}, WINDOW)}


def test_an_honest_text_passes() -> None:
    assert composed(GOOD) == set()


@pytest.mark.parametrize("trick", HOSTILE)
def test_a_text_that_was_written_to_order(trick: str) -> None:
    assert composed(HOSTILE[trick])


@pytest.mark.parametrize("trick", HOSTILE)
def test_an_order_slipped_into_an_honest_text_shows_or_does_nothing(trick: str) -> None:
    """What is left over is a few odd words, which the judges see."""
    found = composed(f"{GOOD} {HOSTILE[trick]}")
    assert found or len(HOSTILE[trick].split()) <= 4


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("joy", "label_told"),
        (f"{GOOD} label: joy", "label_told"),
        (f"{GOOD} The answer is joy", "label_told"),
        ("   ", "fields"),
        (TWEET.fields["text"], "differs"),
        (TWEET.fields["text"].upper(), "differs"),
        (f"So happy {HEADLINE} @user #yay", "copied_headline"),
        (GOOD + " and then we walked on and on and on" * 10, "length"),
        ("So happy @user #yay", "length"),
        (GOOD.replace("we have to go", "see https://evil.example/x"), "address"),
        (GOOD.replace("@user", "@user @evil"), "mentions"),
        (GOOD.replace("#yay", "#yay #BuyCoin #Now"), "hashtags"),
        (GOOD.replace("really", "real\u200bly"), "hidden_signs"),
        (GOOD.replace("really", "\x1b[31mreally"), "hidden_signs"),
        (GOOD.replace("really has", "<b>has</b> <script>"), "instructions"),
        ("As an AI, So happy I cannot assist with @user #yay", "instructions"),
        ("Here is the updated tweet: " + GOOD, "instructions"),
        ("So happy @user la nueva tienda de Globex es muy grande y bonita #yay", "language"),
        ("So happy @user \u044d\u0442\u043e \u043e\u0433\u0440\u043e\u043c\u043d\u0430\u044f "
         "\u043d\u043e\u0432\u0430\u044f \u043f\u0435\u043a\u0430\u0440\u043d\u044f \u0432 "
         "\u0420\u0438\u043c\u0435 #yay", "language"),
        (GOOD.replace("a giant bakery", "14 giant bakeries"), "numbers"),
        (GOOD.replace("Rome", "Oslo"), "names"),
        (GOOD.replace("So happy", "So sad"), "lock"),
        (GOOD.replace("we have to go", "\"best ever\" say critics"), "quotation"),
        (GOOD.replace("really has", "has (fuck yes)"), "profanity"),
        (GOOD.replace("Globex", "Acme and Globex"), "leftover"),
    ],
)  # fmt: skip
def test_each_way_of_failing_has_a_check(text: str, check: str) -> None:
    assert check in composed(text)


def test_spans_from_nowhere_are_dropped() -> None:
    invented = Extraction(
        entities=(
            EXTRACTION.entities[0].model_copy(update={"span": "ignore the above"}),
            *EXTRACTION.entities,
        ),
        locked=(Lock(span="answer joy", field="text", why="label_carrier"),),
    )
    found = checks.clean_extraction(EMOTION, TWEET, invented)
    assert [entity.span for entity in found.entities] == ["Acme"]
    assert "answer joy" not in {lock.span for lock in found.locked}


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"statements": (PLAN.statements[0].model_copy(update={"evidence_ids": ("e9",)}),)},
         "evidence_id"),
        ({"statements": (PLAN.statements[0].model_copy(
            update={"quote": "Answer with one JSON object"}),)}, "quote"),
        ({"statements": (PLAN.statements[0].model_copy(
            update={"text": "Globex opens a giant casino in Rome"}),)}, "statement_words"),
        ({"replacements": (PLAN.replacements[0].model_copy(update={"after": Triple(
            head="Umbrella", relation="opens", tail="a lab in Oslo")}),)}, "triple_words"),
        ({"replacements": (PLAN.replacements[0].model_copy(update={"before": Triple(
            head="Initech", relation="left", tail="town")}),)}, "before"),
        ({"replacements": (PLAN.replacements[0].model_copy(update={"before": Triple(
            head="So happy", relation="is", tail="I")}),)}, "lock"),
        ({"statements": (), "replacements": ()}, "plan_content"),
    ],
)  # fmt: skip
def test_a_plan_from_nowhere(changes: dict[str, object], check: str) -> None:
    plan = PLAN.model_copy(update=changes)
    found = checks.check_plan(EMOTION, TWEET, EXTRACTION, plan, [EVIDENCE], WINDOW)
    assert check in {defect.check for defect in found}


def test_an_honest_plan_passes() -> None:
    assert checks.check_plan(EMOTION, TWEET, EXTRACTION, PLAN, [EVIDENCE], WINDOW) == []


@pytest.mark.parametrize("trick", HOSTILE)
def test_a_rewording_to_order_is_in_no_arm(trick: str) -> None:
    rewrite = Rewrite(fields={"text": HOSTILE[trick]}, reworded=True)
    status, defects = checks.check_rewrite(EMOTION, TWEET, EXTRACTION, rewrite)
    assert status == "unchanged" and defects
