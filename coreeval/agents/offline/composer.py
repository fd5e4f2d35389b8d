"""The composer by rules: it writes candidates and hands in the first that passes the free checks.

The checks are the same that follow it in a run; asking them first spares an attempt. A text that
passes none of them is handed in too, so that the run can say what is wrong with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from coreeval.agents import checks
from coreeval.agents.offline.compose_pair import pair_candidates
from coreeval.agents.offline.compose_tweet import tweet_candidates
from coreeval.agents.offline.text import words_of
from coreeval.agents.roles import Brief, Fields
from coreeval.agents.thresholds import thresholds_of
from coreeval.schema import Composition, Evidence, Task, Window

MOST_CHECKED = 8
"""Candidates put through the checks, which take most of the time."""


@dataclass(frozen=True)
class OfflineComposer:
    """Writes D-hat from the plan's statements and what the original locks."""

    task: Task
    names: frozenset[str]
    """Words of known names: what keeps its capital in running text."""
    seed: int = 0

    async def __call__(self, brief: Brief) -> Composition:
        """Return the first candidate without a defect, else the one with the fewest.

        Where the rules find no words for the plan, the original comes back with all dropped: the
        checks will call it unchanged, so that no half-made text can pass.
        """
        proper = self.names | proper_words(brief.evidence)
        written = [fields for fields in self._candidates(brief, proper) if fields != brief.previous]
        fitting = [fields for fields in written if self._fits(brief, fields)]
        fields = self._best(brief, fitting or written[:1])
        if fields is None:
            told = tuple(statement.text for statement in brief.plan.statements)
            return Composition(fields=dict(brief.sample.fields), dropped=told)
        return Composition(
            fields=fields, used_replacements=tuple(range(len(brief.plan.replacements)))
        )

    def _candidates(self, brief: Brief, proper: frozenset[str]) -> Iterator[Fields]:
        if len(self.task.fields) > 1:
            return pair_candidates(self.task, brief, proper)
        return tweet_candidates(self.task, brief, proper, self.seed)

    def _fits(self, brief: Brief, fields: Fields) -> bool:
        """Tell whether every field has about the original's length: the cheapest check."""
        limits = thresholds_of(self.task)
        for name, text in fields.items():
            old, new = len(words_of(brief.sample.fields[name])), len(words_of(text))
            if abs(old - new) > max(limits.length_words, limits.length_share * old):
                return False
        return True

    def _best(self, brief: Brief, candidates: Sequence[Fields]) -> Fields | None:
        window = _window_of(brief.evidence)
        fewest: tuple[int, Fields] | None = None
        for fields in islice(candidates, MOST_CHECKED):
            spaced = {
                name: checks.restore_spacing(self.task, text) for name, text in fields.items()
            }
            defects = checks.check_composition(self.task, brief, spaced, window)
            if not defects:
                return fields
            if fewest is None or len(defects) < fewest[0]:
                fewest = (len(defects), fields)
        return fewest[1] if fewest else None


def proper_words(evidence: Sequence[Evidence]) -> frozenset[str]:
    """Return the words that the evidence itself shows to be names."""
    named = (e.name for item in evidence for e in item.entities if e.type != "other")
    inside = (word for item in evidence for word in item.snippet.split()[1:] if word[:1].isupper())
    return frozenset(
        word.strip(",.()").removesuffix("'s").removesuffix("\u2019s")
        for phrase in [*named, *inside]
        for word in phrase.split()
    )


def _window_of(evidence: Sequence[Evidence]) -> Window:
    """Return the span of the evidence: the run has already kept to its own window."""
    moments = [item.published_at for item in evidence]
    return Window(start=min(moments), end=max(moments) + timedelta(seconds=1))
