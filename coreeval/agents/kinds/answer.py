"""Questions with answers: question, context and accepted answers are all new."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
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
from coreeval.agents.roles import Fields
from coreeval.agents.text.numbers import find_numbers
from coreeval.agents.text.programs import ProgramError, execute_program, find_foreign_numbers
from coreeval.agents.text.short_answers import (
    StatedValue,
    has_answer,
    is_other_unit,
    is_same_answer,
    is_same_value,
    is_same_wording,
    read_margin,
    read_scale,
    read_value,
)
from coreeval.agents.text.support import Support, evidence_text, find_calendar_words
from coreeval.schema import Defect, Evidence, Sample, Task
from coreeval.tasks import fold_name
from coreeval.tasks.kinds.answer import ANSWERS, PROGRAM, split_answers
from coreeval.tasks.kinds.base import CONTEXT, QUESTION, count_units
from coreeval.tasks.task_file import UNDECIDED
from coreeval.tools.units import name_unit, spell_units

_LONGER: Final = 2.0
"""The largest ratio of the gold answer's length to the original's (own choice)."""
_FREE_WORDS: Final = 4
"""The number of words that it may always exceed the original's by (own choice)."""
_MORE_ANSWERS: Final = 3
"""The most accepted answers of a new item beyond the original's number: each makes it easier (own
choice)."""
_YES_NO: Final = ("yes", "no")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")


def _texts(task: Task) -> Sequence[str]:
    return task.shown_fields


def _written(task: Task) -> Sequence[str]:
    return [name for name in task.fields if name not in task.carried_fields]


def _finish(task: Task, sample: Sample, written: Fields, evidence: Sequence[Evidence]) -> Fields:
    """Return all fields of a text, with each accepted answer once, one per line."""
    own = {name: text for name, text in written.items() if name not in task.carried_fields}
    fields = keep_unwritten(task, sample, own, evidence)
    lines = (" ".join(line.split()) for line in fields[ANSWERS].split("\n"))
    return fields | {ANSWERS: "\n".join(dict.fromkeys(filter(None, lines)))}


def _has_material(task: Task, sample: Sample, reports: Sequence[Evidence]) -> bool:
    """Return whether reports state what an answer of the original's type needs.

    A number needs one that is not a year, or two if it is calculated; a date needs a month or a
    year.
    """
    if sample.label_text not in ("number", "date"):
        return True
    texts, language = "\n".join(map(evidence_text, reports)), task.language
    stated = {number.text for number in find_numbers(texts, language)}
    years = set(filter(_YEAR.fullmatch, stated))
    if sample.label_text == "date":
        return bool(years or find_calendar_words(texts, language))
    needed = 2 if _is_calculated(sample) else 1
    return len(stated - years) >= needed


def _is_calculated(sample: Sample) -> bool:
    context = sample.fields.get(CONTEXT)
    return context is not None and not has_answer(context, split_answers(sample.fields)[0])


def _ask_facts(item: WrittenItem) -> FactQuestion:
    """Ask about context and question, and about the gold as the answer.

    A calculated answer is not in the news: code checks its program.
    """
    texts = {name: item.fields[name] for name in item.task.shown_fields}
    texts[JUDGED_ANSWER] = "" if PROGRAM in item.fields else split_answers(item.fields)[0]
    return FactQuestion(fields=texts, evidence=item.evidence)


_RATE = re.compile(r"\s(?:an?|per)\s\w{1,20}\.?$")
"""The end of a rate: a judge may name one although the original's unit has none."""


def is_accepted(task: Task, sample: Sample, fields: Mapping[str, str], said: str) -> bool:
    """Return whether a judge's answer is one of the accepted ones, possibly in other words."""
    if fold_name(said) in (UNDECIDED, ""):
        return False
    accepted, language = split_answers(fields), task.language
    if sample.label_text == "yes_no":
        return said.split()[0].strip(".,;:!").casefold() == accepted[0].casefold()
    if sample.label_text == "number" and read_value(said, language) is not None:
        tolerance, unit = fields.get("tolerance", ""), fields.get("unit", "")
        golds = [each for each in accepted if read_value(each, language) is not None]
        if golds:
            return any(
                is_same_value(each, read, tolerance=tolerance, unit=unit, language=language)
                for each in golds
                for read in {said, _RATE.sub("", said)}
            )
    return any(is_same_answer(each, said, language) for each in accepted)


def check_answer(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the gold is the old one, is missing where required, or is given away."""
    gold, old = split_answers(item.fields)[0], split_answers(item.sample.fields)[0]
    kind, language = item.sample.label_text, item.task.language
    if kind == "yes_no":
        return
    if is_same_wording(gold, old, language):
        yield label_defect("old_answer", f"the answer is still {old!r}", replan=True)
    if CONTEXT in item.fields and PROGRAM not in item.fields:
        stood = has_answer(item.sample.fields[CONTEXT], old)
        if stood and not has_answer(item.fields[CONTEXT], gold):
            yield label_defect(
                "answer_missing", f"the context must contain the answer {gold!r} word for word"
            )
    if has_answer(item.fields[QUESTION], gold) and not has_answer(
        item.sample.fields[QUESTION], old
    ):
        yield label_defect("answer_told", f"the question tells its answer {gold!r}")


def check_answer_form(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the gold is of another type or far longer than the original's."""
    gold, old = split_answers(item.fields)[0], split_answers(item.sample.fields)[0]
    kind, language = item.sample.label_text, item.task.language
    if kind == "number" and not find_numbers(gold, language):
        yield form_defect("answer_type", f"the answer {gold!r} must be a number, as {old!r} is")
    yield from _check_unit(item)
    if kind == "yes_no" and gold.casefold() not in _YES_NO:
        yield form_defect("answer_type", f"the answer {gold!r} must be yes or no")
    before = count_units(old)
    if count_units(gold) > max(_LONGER * before, _FREE_WORDS + before):
        yield form_defect("answer_length", f"the answer {gold!r} is much longer than {old!r}")


def _check_unit(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect for a number of another unit or scale than the item's, which must stay."""
    unit = item.fields.get("unit", "")
    for each in split_answers(item.fields) if unit and PROGRAM not in item.fields else ():
        value = read_value(spell_units(each, name_unit(unit)), item.task.language)
        if value is None:
            continue
        other_scale = value.is_scaled and read_scale(unit) not in (0, read_scale(each))
        if other_scale or is_other_unit(value.rest, unit):
            yield form_defect(
                "answer_type", f"the answer {each!r} must be in the unit of the item, {unit!r}"
            )


def check_accepted_answers(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect for accepted answers that are different numbers from the gold, or too many."""
    accepted, before = split_answers(item.fields), split_answers(item.sample.fields)
    if len(accepted) > len(before) + _MORE_ANSWERS:
        yield form_defect(
            "answers", f"there are {len(accepted)} accepted answers; the original has {len(before)}"
        )
    if item.sample.label_text != "number" or PROGRAM in item.fields:
        return
    tolerance, language = item.fields.get("tolerance", ""), item.task.language
    unit, (gold, *others) = item.fields.get("unit", ""), accepted
    for each in others:
        if not is_same_value(gold, each, tolerance=tolerance, unit=unit, language=language):
            yield label_defect("answers", f"{each!r} is another number than the gold {gold!r}")


def check_answer_support(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect if the gold of a question without a context has words not in the news."""
    if CONTEXT in item.fields or item.sample.label_text == "yes_no" or PROGRAM in item.fields:
        return
    gold, unit = split_answers(item.fields)[0], item.fields.get("unit", "")
    support = Support.from_evidence(item.evidence, language=item.task.language)
    numbers = support.missing_numbers(gold) and support.missing_numbers(f"{gold} {unit}")
    if missing := [*support.missing_words(gold), *numbers]:
        yield fact_defect(
            "answer_words", f"the answer {gold!r} is not in the news: {', '.join(missing)}"
        )


def check_program(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect unless the program computes the gold from numbers of the item's context."""
    program = item.fields.get(PROGRAM)
    if program is None:
        return
    texts = "\n".join(item.fields[name] for name in item.task.shown_fields)
    try:
        foreign = find_foreign_numbers(program, texts)
        result = execute_program(program, item.fields.get(CONTEXT, ""))
    except ProgramError as error:
        yield label_defect("program", f"the program {program[:200]!r} does not work: {error}")
        return
    for number in foreign:
        yield fact_defect("program", f"the program's number {number} is not in the context")
    accepted = split_answers(item.fields)
    if isinstance(result, bool):
        if accepted[0].casefold() != _YES_NO[not result]:
            yield label_defect("program", f"the program says {_YES_NO[not result]}")
    elif not _is_result(item, accepted, Decimal(str(result))):
        yield label_defect(
            "program", f"the program's result is {result:.5f}, and the answer {accepted[0]!r}"
        )


def _is_result(item: WrittenItem, accepted: Sequence[str], result: Decimal) -> bool:
    """Return whether the gold is the rounded result, and an accepted answer is close to the result.

    A percentage is a hundred times its ratio.
    """
    tolerance, language = item.fields.get("tolerance", ""), item.task.language
    unit = item.fields.get("unit", "")
    values = [value for each in accepted if (value := read_value(each, language))]
    if not values or len(values) < len(accepted):
        return False

    def is_close(value: StatedValue, slack: Decimal) -> bool:
        results = {result, result * 100} if value.is_percent or "%" in unit else {result}
        sign = -1 if value.is_negative else 1
        return any(
            abs(sign * stated - due) <= max(slack, read_margin(tolerance, due))
            for stated in value.readings
            for due in results
        )

    return is_close(values[0], values[0].half_place) and any(
        is_close(value, Decimal(0) if tolerance else value.half_place) for value in values
    )


ANSWER = ItemKind(
    reworded=_texts,
    written=_written,
    compared=_texts,
    finish=_finish,
    judged=lambda task: [*task.shown_fields, JUDGED_ANSWER],
    claimless=find_claimless,
    ask_facts=_ask_facts,
    is_gold=is_accepted,
    describe_gold=lambda sample, fields: repr(split_answers(fields)[0]),
    needs_news=lambda task: CONTEXT not in task.fields,
    passage=lambda task: [name for name in task.fields if name == CONTEXT],
    is_one=True,
    asks_when=True,
    keeps_lines=True,
    lockable=lambda task: (QUESTION,),
    keeps_form=True,
    has_material=_has_material,
    checks=(
        check_answer,
        check_answer_form,
        check_accepted_answers,
        check_answer_support,
        check_program,
    ),
)
