import re

import pytest
import yaml

from coreeval.agents.offline import word_lists
from coreeval.agents.offline.word_lists import DATA, compile_phrases
from tests.agents.offline.made import IRONY, MRPC, STANCE


@pytest.mark.parametrize(
    ("base", "third", "past", "participle"),
    [
        ("hit", "hits", "hit", "hit"),
        ("rise", "rises", "rose", "risen"),
        ("carry", "carries", "carried", "carried"),
        ("launch", "launches", "launched", "launched"),
        ("delay", "delays", "delayed", "delayed"),
        ("cancel", "cancels", "cancelled", "cancelled"),
        ("close", "closes", "closed", "closed"),
    ],
)
def test_verb_forms(base: str, third: str, past: str, participle: str) -> None:
    verb = next(verb for verb in word_lists.load_verb_forms().values() if verb.base == base)
    assert (verb.third, verb.past, verb.participle) == (third, past, participle)


def test_no_verb_stands_twice() -> None:
    lines = (DATA / "verbs.txt").read_text(encoding="utf-8").splitlines()
    bases = [line.split()[0] for line in lines if not line.startswith("#")]
    assert len(bases) == len(set(bases))


def test_flags_of_verbs_are_known() -> None:
    words = (DATA / "verbs.txt").read_text(encoding="utf-8")
    assert not re.search(r"(?m)^[^#].*\b(?:trans|verb|adj)\b", words)


def test_topics_ask_short_questions() -> None:
    for topic in word_lists.load_topics().values():
        assert topic.words and topic.queries, topic.name
        assert all(1 <= len(query.split()) <= 3 for query in topic.queries), topic.name


def test_no_word_carries_two_labels_of_a_task() -> None:
    lists = yaml.safe_load((DATA / "labels.yaml").read_text(encoding="utf-8"))
    for task, labels in lists.items():
        words = [word for found in labels.values() for word in found]
        twice = {word for word in words if words.count(word) > 1}
        assert not twice, f"{task}: {twice}"


def test_stance_words_are_found_by_target() -> None:
    found = word_lists.load_label_patterns(STANCE)
    assert found["against"].search("what a hoax")
    unlisted = {"target": "a target nobody listed", "target_terms": ()}
    assert word_lists.load_label_patterns(STANCE.model_copy(update=unlisted)) == {}


def test_a_label_without_words_has_no_pattern() -> None:
    assert set(word_lists.load_label_patterns(IRONY)) == {"irony"}
    assert word_lists.load_label_patterns(MRPC) == {}


def test_synonyms_go_both_ways_and_share_one_canonical_word() -> None:
    both = word_lists.load_synonyms()
    assert both["biggest"] == "largest"
    assert both["largest"] == "biggest"
    assert "hits" not in both and word_lists.load_canonical_words()["hits"] == "hits"
    assert "again" not in both and word_lists.load_synonyms(loose=True)["again"] == "once more"
    canonical = word_lists.load_canonical_words()
    assert canonical["biggest"] == canonical["largest"]


@pytest.mark.parametrize(
    ("phrases", "text", "found"),
    [
        (["hate"], "I hate it", ["hate"]),
        (["hate"], "whatever", []),
        (["irritat*"], "so irritating", ["irritating"]),
        (["best * ever"], "best day ever", ["best day ever"]),
        (["can't wait"], "can\u2019t wait", ["can\u2019t wait"]),
        (["god"], "#god", []),
        (["#god"], "praise #god now", ["#god"]),
    ],
)
def test_phrase_pattern(phrases: list[str], text: str, found: list[str]) -> None:
    assert compile_phrases(phrases).findall(text) == found
