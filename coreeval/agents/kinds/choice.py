"""Multiple choice: the right option keeps its letter, and every option is new."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from statistics import mean
from typing import Final

from coreeval.agents.defects import fact_defect, form_defect, label_defect
from coreeval.agents.kinds.base import (
    JUDGED_ANSWER,
    FactQuestion,
    ItemKind,
    WrittenItem,
    find_claimless,
    keep_unwritten,
)
from coreeval.agents.kinds.labels import is_label_of
from coreeval.agents.roles import Fields
from coreeval.agents.text.numbers import find_missing_numbers, find_source_numbers
from coreeval.agents.text.short_answers import has_answer, is_same_wording
from coreeval.agents.text.support import evidence_text, expand_words, find_unknown_names
from coreeval.agents.text.words import count_words, split_words
from coreeval.schema import Defect, Evidence, Sample, Task
from coreeval.tasks.kinds.base import CONTEXT, QUESTION
from coreeval.tasks.kinds.choice import option_fields

_LENGTH_CUE: Final = 1.5
"""The largest ratio of the right option's length to the mean distractor's, unless the original's
was larger (own choice)."""
_FEWEST_CHARACTERS: Final = 12
"""The least length of a right option that can be a cue (own choice)."""
_FEWEST_OPTIONS: Final = 3
"""The fewest options among which one can stand out."""
_CATCH_ALL: Final = re.compile(
    r"\b(?:all|none|both|neither) of (?:these|them|the (?:above|answers|following|options|others?|"
    r"rest|three|two)(?= options| answers|\W*$))\b",
    re.IGNORECASE,
)
_ANY_FIGURE: Final = re.compile(r"\d")
_AT_LEAST: Final = re.compile(r"\bat least\b", re.IGNORECASE)
_NEGATIONS: Final = frozenset(
    ("not", "except", "never", "least", "false", "incorrect", "untrue", "nicht", "kein", "keine",
     "keiner", "keines", "ausser", "außer", "falsch", "excepto", "salvo", "nunca", "falso", "falsa")
)  # fmt: skip
"""Words in questions that ask which option is wrong."""
_FIXED_OPTIONS: Final = frozenset(
    ("yes", "no", "true", "false", "maybe", "unknown", "correct", "incorrect", "positive",
     "negative", "neutral", "increase", "decrease", "higher", "lower", "both", "neither")
)  # fmt: skip
"""Options that fit any question, and so may stay the same in a new one."""


def _stem(task: Task) -> Sequence[str]:
    return [name for name in task.fields if name not in option_fields(task.fields)]


def _options(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: fields[name] for name in option_fields(list(fields))}


def _finish(task: Task, sample: Sample, written: Fields, evidence: Sequence[Evidence]) -> Fields:
    """Return all fields of a text, each option on one line."""
    fields = keep_unwritten(task, sample, written, evidence)
    return fields | {name: " ".join(text.split()) for name, text in _options(fields).items()}


def is_negated(question: str) -> bool:
    """Return whether a question is negated, so that it asks for a false option.

    `at least 39` negates nothing.
    """
    words = split_words(_AT_LEAST.sub("", question))
    return not _NEGATIONS.isdisjoint(words) or any(word.endswith("n't") for word in words)


def _ask_facts(item: WrittenItem) -> FactQuestion:
    """Ask about the stem, and about the right option as its answer.

    The news does not state what is false: for a negated question, the judge of options checks the
    answer.
    """
    texts = {name: item.fields[name] for name in _stem(item.task)}
    negated = is_negated(item.fields[QUESTION])
    texts[JUDGED_ANSWER] = "" if negated else item.fields[item.sample.label_text]
    return FactQuestion(fields=texts, evidence=item.evidence)


def _describe_gold(sample: Sample, fields: Mapping[str, str]) -> str:
    return f"option {sample.label_text}, {fields[sample.label_text]!r}"


def check_options(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect for each option that repeats another one, or was the original's right one.

    An item whose right answer is still the old one can be solved from memory; options such as a
    year range may recur as wrong ones, and those such as "yes" always do.
    """
    options, language = _options(item.fields), item.task.language
    for (one, text), (other, again) in combinations(options.items(), 2):
        if is_same_wording(text, again, language):
            yield label_defect("options", f"the options {one} and {other} are the same")
    right, before = item.sample.label_text, _options(item.sample.fields)
    fixed = {text.strip(" .").casefold() for text in before.values()} <= _FIXED_OPTIONS
    if not fixed and is_same_wording(options[right], before[right], language):
        yield label_defect("old_answer", f"option {right} is still {before[right]!r}", replan=True)


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
    """Yield a defect if only the right option, or all others, have figures; or for catch-alls.

    What also applies to the original is not a defect.
    """
    right, options = item.sample.label_text, _options(item.fields)
    before = _options(item.sample.fields)
    if _is_told_by_figures(options, right) and not _is_told_by_figures(before, right):
        what = "has" if _ANY_FIGURE.search(options[right]) else "lacks"
        yield form_defect("type_cue", f"only option {right} {what} figures; write options alike")
    for name, text in options.items():
        if _CATCH_ALL.search(text) and not any(map(_CATCH_ALL.search, before.values())):
            yield form_defect("catch_all", f"option {name} is {text!r}; the original has no such")


def _is_told_by_figures(options: Mapping[str, str], right: str) -> bool:
    """Return whether the right option is the only one with figures, or without."""
    has = {name: bool(_ANY_FIGURE.search(text)) for name, text in options.items()}
    others = {found for name, found in has.items() if name != right}
    return len(options) >= _FEWEST_OPTIONS and others == {not has[right]}


def check_stem(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the question gives the right option away, or is no longer negated."""
    right = item.fields[item.sample.label_text]
    question, old = item.fields[QUESTION], item.sample.fields
    named_before = has_answer(old[QUESTION], old[item.sample.label_text])
    named_alike = all(has_answer(question, text) for text in _options(item.fields).values())
    told = count_words(right) > 0 and has_answer(question, right)
    if told and not named_before and not named_alike:
        yield label_defect("answer_told", f"the question names the right option {right!r}")
    if is_negated(question) != is_negated(old[QUESTION]):
        what = "asks" if is_negated(old[QUESTION]) else "does not ask"
        yield form_defect("negation", f"the original {what} for what is not so; keep that form")


def check_right_option(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect for each number and name of the right option that is not in the news.

    Negated questions are not checked, since the news does not confirm their right options.
    """
    if is_negated(item.fields[QUESTION]):
        return
    letter, language = item.sample.label_text, item.task.language
    right, old = item.fields[letter], item.sample.fields[letter]
    texts = [evidence_text(one) for one in item.evidence]
    for number in find_missing_numbers(right, find_source_numbers(texts, language), language):
        yield fact_defect("numbers", f"option {letter}: {number.text!r} is in no evidence")
    known = frozenset[str]().union(*(expand_words(text, language) for text in texts))
    for name in find_unknown_names(right, like=old, known=known, language=language):
        yield fact_defect("names", f"option {letter}: {name!r} is in no evidence")


CHOICE = ItemKind(
    is_one=True,
    asks_when=True,
    judges_options=True,
    reworded=_stem,
    written=lambda task: task.fields,
    compared=_stem,
    finish=_finish,
    judged=lambda task: [*_stem(task), JUDGED_ANSWER],
    claimless=find_claimless,
    ask_facts=_ask_facts,
    is_gold=is_label_of,
    describe_gold=_describe_gold,
    needs_news=lambda task: CONTEXT not in task.fields,
    passage=lambda task: [name for name in task.fields if name == CONTEXT],
    keeps_lines=True,
    lockable=lambda task: (QUESTION,),
    keeps_form=True,
    checks=(check_options, check_length_cue, check_option_forms, check_stem, check_right_option),
)
