"""Real benchmark texts held against themselves: what is flagged there is a false alarm."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from coreeval.agents.checks import (
    check_composition,
    check_plan,
    clean_extraction,
    restore_spacing,
)
from coreeval.agents.text.words import join_numbers, normalise
from coreeval.schema import Extraction, Plan, Sample, Task

from ..builders import PAIRS, STANCE, TWEETS, WINDOW, news, replacement, request, sample, statement

SHARED = Path(__file__).parents[3].parent / "shared" / "data"
IRONY = TWEETS.model_copy(update={"markers": ("#irony", "#sarcasm", "#not")})
TWEET_SETS = {
    "emotion": TWEETS,
    "irony": IRONY,
    "stance/abortion": STANCE,
    "stance/climate": STANCE.model_copy(update={"target_terms": ("climate", "global warming")}),
    "stance/hillary": STANCE.model_copy(update={"target_terms": ("hillary", "clinton")}),
}
OWN_TEXT = {"differs", "copied_original"}
"""What must be said of a text that is its own original."""


def _lines(path: Path) -> list[str]:
    if not path.exists():
        pytest.skip(f"no real data beside the checkout: {path}")
    return path.read_text(encoding="utf-8-sig").split("\n")[:-1]


def _tweets(name: str) -> list[Sample]:
    return [sample(line.strip()) for line in _lines(SHARED / f"tweeteval/{name}/test_text.txt")]


def _pairs() -> list[Sample]:
    rows = [line.split("\t") for line in _lines(SHARED / "mrpc/msr_paraphrase_test.txt")[1:]]
    return [sample(row[3].strip(), row[4].strip()) for row in rows]


def _alarms(task: Task, samples: list[Sample]) -> Counter[str]:
    """Count what the checks say of each text against itself, and see that they say it."""
    alarms: Counter[str] = Counter()
    for one in samples:
        given = request(one, extraction=clean_extraction(task, one, Extraction()))
        found = {d.check for d in check_composition(task, given, dict(one.fields), WINDOW)}
        assert "differs" in found
        alarms.update(found - OWN_TEXT)
    return alarms


@pytest.mark.parametrize("name", TWEET_SETS)
def test_no_real_tweet_raises_an_alarm_against_itself(name: str) -> None:
    assert _alarms(TWEET_SETS[name], _tweets(name)) == Counter()


def test_no_real_pair_raises_an_alarm_against_itself() -> None:
    assert _alarms(PAIRS, _pairs()[::3]) == Counter()


def test_nearly_every_real_pair_is_spaced_as_the_code_would() -> None:
    texts = [text for one in _pairs() for text in one.fields.values()]
    changed = [text for text in texts if restore_spacing(PAIRS, text) != text]
    assert len(changed) <= len(texts) * 0.005


def test_another_real_text_is_almost_never_taken_for_an_update() -> None:
    samples = _pairs()[::2]
    missed = 0
    for one, other in zip(samples, samples[7:], strict=False):
        given = request(one, extraction=clean_extraction(PAIRS, one, Extraction()))
        missed += not check_composition(PAIRS, given, dict(other.fields), WINDOW)
    assert missed <= len(samples) * 0.04


def test_a_plan_that_repeats_a_real_headline_passes() -> None:
    path = SHARED / "gdelt/doc_api/articles_2025_climate_companies.jsonl.gz"
    if not path.exists():
        pytest.skip(f"no real data beside the checkout: {path}")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        titles = {item["title"] for item in map(json.loads, lines) if item["title"]}
    flagged = [title for title in sorted(titles)[::5] if _plan_defects(title)]
    assert flagged == []


def _plan_defects(title: str) -> set[str]:
    """Return what is said of a plan whose words are a headline's, its numbers repaired."""
    repaired = join_numbers(normalise(title))
    plan = Plan(
        decision="use",
        statements=(statement(repaired, modality="attributed"),),
        replacements=(replacement(("day", "is", "long"), (repaired, "is", repaired)),),
    )
    found = check_plan(TWEETS, sample("a day"), Extraction(), plan, [news(title)], WINDOW)
    return {defect.check for defect in found}
