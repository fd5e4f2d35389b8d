"""No pattern takes more than time in proportion to the text that it searches."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import pytest

from coreeval.agents.marks import closed_quotations
from coreeval.agents.offline import lexicon
from coreeval.agents.offline.rewriter import reword
from coreeval.agents.screen import screen
from coreeval.agents.words import span_pattern
from coreeval.evaluation.numleak.parsing import read_choice
from coreeval.evaluation.numleak.parsing.dates import dates_in
from coreeval.evaluation.numleak.parsing.others import labelled, without_others
from coreeval.evaluation.numleak.periods import Period
from coreeval.schema import Extraction, Sample
from tests.hostile.patterns import Tried, made_elsewhere, patterns, seconds, slowest, texts

SIZE: Final = 8000
NOT_WORTH_A_LOOK_S: Final = 0.012
"""CPU seconds; what takes a step of 0.4 ns for each pair of characters takes this long."""
STEEPEST: Final = 8.0
"""Times the time for four times the text: 4 where they are in proportion, 16 where it is squared."""
MONTH: Final = Period.parse("2008-09", "monthly")
NAME: Final = "the Fama-French market excess return (Mkt-RF) factor, Mkt-RF, monthly return"
SAMPLE: Final = {"id": "1", "row": 1, "task": "emotion", "label": "joy", "label_id": 1}


def _screened(text: str) -> object:
    sample = Sample.model_construct(id="1", fields={"text": text})
    return screen(sample, Extraction.model_construct(sensitive=()), {})


def _phrases(name: str) -> Callable[[str], object]:
    import re

    return Tried(re.compile(lexicon.phrase_pattern(lexicon.words(name)), re.I), "anywhere")


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "agents.marks: pattern": closed_quotations,
    "agents.words: before + body + after": Tried(
        span_pattern("said 's not - a  b"), "anywhere"  # type: ignore[arg-type]
    ),
    "evaluation.numleak.parsing.choices: pattern": lambda text: read_choice(
        text, first=MONTH, second=MONTH.shifted(1)
    ),
    "evaluation.numleak.parsing.dates: own": lambda text: dates_in(text, MONTH),
    "evaluation.numleak.parsing.others: label": lambda text: labelled(text, NAME),
    "evaluation.numleak.parsing.others: record": lambda text: without_others(text, NAME),
}
print(made_elsewhere())
