"""Multiple choice: the right option keeps its letter, and every option is written anew."""

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Final

from coreeval.agents.defects import form_defect, label_defect
from coreeval.agents.kinds.base import (
    JUDGED_ANSWER,
    FactQuestion,
    ItemKind,
    WrittenItem,
    keep_unwritten,
)
from coreeval.agents.kinds.labels import is_label_of
from coreeval.agents.text.words import count_words, has_span, is_same_text
from coreeval.schema import Defect, Sample, Task
from coreeval.tasks.kinds.choice import option_fields

CONTEXT: Final = "context"
_LENGTH_CUE: Final = 1.5
"""How many times as long as the mean distractor the right option may be, if the original's was not
(own choice)."""
_FEWEST_CHARACTERS: Final = 12
"""The shortest right option whose length can be a cue (own choice)."""
_CATCH_ALL: Final = re.compile(
    r"\b(?:all|none|both|neither) of (?:the|these|them)\b", re.IGNORECASE
)
_ANY_FIGURE: Final = re.compile(r"\d")


def _stem(task: Task) -> Sequence[str]:
    return [name for name in task.fields if name not in option_fields(task.fields)]


def _options(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: fields[name] for name in option_fields(list(fields))}


def _ask_facts(item: WrittenItem) -> FactQuestion:
    """Ask about the stem, and about the right option as its answer."""
    texts = {name: item.fields[name] for name in _stem(item.task)}
    texts[JUDGED_ANSWER] = item.fields[item.sample.label_text]
    return FactQuestion(fields=texts, evidence=item.evidence)


def _describe_gold(sample: Sample, fields: Mapping[str, str]) -> str:
    return f"option {sample.label_text}, {fields[sample.label_text]!r}"


def check_options(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect for each option that another one repeats, or that the original had as right.

    An item whose right answer is still the old one can be solved from memory; options such as "yes"
    or a year range may recur as wrong ones.
    """
    options = _options(item.fields)
    letters = list(options)
    for place, letter in enumerate(letters):
        for other in letters[:place]:
            if is_same_text(options[letter], options[other]):
                yield label_defect("options", f"the options {other} and {letter} are the same")
    right = item.sample.label_text
    old = item.sample.fields[right]
    if is_same_text(options[right], old):
        yield label_defect("old_answer", f"option {right} is still {old!r}", replan=True)


def check_length_cue(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the right option stands out by its length and the original's did not."""
    right = item.sample.label_text
    new, old = (_length_ratio(fields, right) for fields in (item.fields, item.sample.fields))
    if len(item.fields[right]) >= _FEWEST_CHARACTERS and new > max(_LENGTH_CUE, old):
        yield form_defect(
            "length_cue",
            f"option {right} is {new:.1f} times as long as the others; make them equally long",
        )


def _length_ratio(fields: Mapping[str, str], right: str) -> float:
    others = [len(text) for name, text in _options(fields).items() if name != right]
    return len(fields[right]) / max(1.0, mean(others))


def check_option_forms(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if only the right option, or all but it, has figures; or for catch-alls."""
    right, options = item.sample.label_text, _options(item.fields)
    figures = {name: bool(_ANY_FIGURE.search(text)) for name, text in options.items()}
    others = {found for name, found in figures.items() if name != right}
    if others == {not figures[right]} and len(options) > len("ab"):
        what = "has" if figures[right] else "lacks"
        yield form_defect("type_cue", f"only option {right} {what} figures; write options alike")
    old = _options(item.sample.fields)
    for name, text in options.items():
        if _CATCH_ALL.search(text) and not any(map(_CATCH_ALL.search, old.values())):
            yield form_defect("catch_all", f"option {name} is {text!r}; the original has no such")


def check_stem(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the question gives the right option away word for word."""
    right = item.fields[item.sample.label_text]
    question, old = item.fields["question"], item.sample.fields
    named_before = has_span(old["question"], old[item.sample.label_text])
    named_alike = all(has_span(question, text) for text in _options(item.fields).values())
    told = count_words(right) > 0 and has_span(question, right)
    if told and not named_before and not named_alike:
        yield label_defect("answer_told", f"the question names the right option {right!r}")


CHOICE = ItemKind(
    judges_options=True,
    reworded=_stem,
    written=lambda task: task.fields,
    compared=_stem,
    finish=keep_unwritten,
    judged=lambda task: [*_stem(task), JUDGED_ANSWER],
    ask_facts=_ask_facts,
    is_gold=is_label_of,
    describe_gold=_describe_gold,
    needs_news=lambda task: CONTEXT not in task.fields,
    passage=lambda task: [name for name in task.fields if name == CONTEXT],
    checks=(check_options, check_length_cue, check_option_forms, check_stem),
)
