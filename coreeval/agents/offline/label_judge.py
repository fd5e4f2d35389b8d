"""The label judge by rules: word lists and, where train data is given, naive Bayes.

It sees the fields alone. Its agreement with gold is that of a small classifier; `docs/offline.md`
has the figures. It says `unclear` rather than guess.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from coreeval.agents.offline import lexicon
from coreeval.agents.offline.classifier import Bayes, fit_bayes
from coreeval.agents.offline.text import content, numbers, overlap
from coreeval.agents.roles import Fields
from coreeval.schema import LabelVerdict, Sample, Task
from coreeval.tasks.task_file import UNDECIDED

Confidence = Literal["low", "medium", "high"]
LIST_WEIGHT = 1.2
"""How much one listed word adds to a label's log probability: about threefold odds."""
MARKER_WEIGHT = 3.6
"""What a marker adds: 311 of 432 test tweets that have one are ironic (pilot §1)."""
MARGIN = 0.4
"""Lead in log probability under which the judge says `unclear`: odds of three to two."""
SURE = 2.3
"""Lead from which its confidence is medium: odds of ten to one, and both sources agree.

Where a label needs no cue (`non_irony`, `none`), words alone are never sure of another: on
TweetEval irony 78 of 211 such verdicts were wrong.
"""
SAME, OTHER = 0.6, 0.45
"""Content words shared both ways from which a pair says the same, and under which it does not."""
DERIVED, BESIDE = 0.8, 0.65
"""Share of a hypothesis found in its premise from which it follows, and under which it does not."""
_NEGATION = re.compile(r"\b(?:not|no|never|without|cannot|nobody|none|n't)\b|n't\b", re.IGNORECASE)


@dataclass(frozen=True)
class TextJudge:
    """Labels one text by what its words say of each label."""

    task: Task
    patterns: Mapping[str, re.Pattern[str]]
    bayes: Bayes | None

    async def __call__(self, fields: Fields) -> LabelVerdict:
        """Return the label with a clear lead, or `unclear`."""
        text = " ".join(fields.values())
        cues = {label: _cues(text, pattern) for label, pattern in self.patterns.items()}
        learned = self.bayes.log_probabilities(text) if self.bayes else {}
        unseen = min(learned.values(), default=0.0)
        scores = {label.name: learned.get(label.name, unseen) for label in self.task.labels}
        for label, found in cues.items():
            scores[label] += LIST_WEIGHT * len(found)
        if "irony" in scores and _has_marker(text, self.task.markers):
            scores["irony"] += MARKER_WEIGHT
        return self._verdict(scores, cues, learned)

    def _verdict(
        self,
        scores: Mapping[str, float],
        cues: Mapping[str, Sequence[str]],
        learned: Mapping[str, float],
    ) -> LabelVerdict:
        (best, first), (_, second) = sorted(scores.items(), key=lambda pair: -pair[1])[:2]
        lead, cue, plain = first - second, ", ".join(cues.get(best, ())), self._plain()
        if not learned and plain and not any(cues.values()) and lead < MARGIN:
            return LabelVerdict(label=plain, cue="no word of any other label", confidence="low")
        if lead < MARGIN:
            return LabelVerdict(label=UNDECIDED, confidence="low")
        agreed = bool(cue) and max(learned, key=learned.__getitem__, default=best) == best
        sure: Confidence = "medium" if lead >= SURE and agreed and not plain else "low"
        return LabelVerdict(label=best, cue=cue, confidence=sure)

    def _plain(self) -> str | None:
        """Return the label that needs no cue, such as `none`, if the task has one."""
        labels = [label.name for label in self.task.labels]
        return next((name for name in labels if self.patterns and name not in self.patterns), None)


@dataclass(frozen=True)
class PairJudge:
    """Labels a pair by shared words, numbers and negation."""

    task: Task

    async def __call__(self, fields: Fields) -> LabelVerdict:
        """Return whether the pair holds together, or `unclear` between the limits."""
        first, second = (fields[name] for name in self.task.fields)
        score = pair_score(first, second, symmetric=self.task.symmetric)
        high, low = (SAME, OTHER) if self.task.symmetric else (DERIVED, BESIDE)
        holds, fails = self._labels()
        cue = f"{score:.2f} of the content words are shared"
        if score >= high:
            return LabelVerdict(label=holds, cue=cue, confidence="low")
        if score <= low:
            sure: Confidence = "medium" if score < low / 3 else "low"
            return LabelVerdict(label=fails, cue=cue, confidence=sure)
        return LabelVerdict(label=UNDECIDED, cue=cue, confidence="low")

    def _labels(self) -> tuple[str, str]:
        names = [label.name for label in self.task.labels]
        fails = next(name for name in names if name.startswith(("not", "non")))
        return next(name for name in names if name != fails), fails


def pair_score(first: str, second: str, *, symmetric: bool) -> float:
    """Return how much of the second sentence, or of each, the other has; 0 where they clash.

    A number that only the second has, or a negation on one side, is taken for a difference.
    """
    one, other = content(first), content(second)
    share = overlap(other, one)
    if symmetric:
        share = min(share, overlap(one, other))
    clash = bool(numbers(second) - numbers(first)) or (
        bool(_NEGATION.search(first)) != bool(_NEGATION.search(second))
    )
    return share * 0.5 if clash else share


def label_judge(task: Task, train: Sequence[Sample], seed: int) -> TextJudge | PairJudge:
    """Return the judge for a task's kind of sample."""
    if len(task.fields) == 2:
        return PairJudge(task)
    lists = lexicon.carriers(task.name, task.target, task.target_terms)
    patterns = {
        label: re.compile(lexicon.phrase_pattern(words), re.IGNORECASE)
        for label, words in lists.items()
        if words
    }
    return TextJudge(task=task, patterns=patterns, bayes=fit_bayes(train, seed))


def _cues(text: str, pattern: re.Pattern[str]) -> list[str]:
    return list(dict.fromkeys(found.group().casefold() for found in pattern.finditer(text)))


def _has_marker(text: str, markers: Sequence[str]) -> bool:
    lowered = text.casefold()
    return any(re.search(rf"{re.escape(marker)}(?!\w)", lowered) for marker in markers)
