"""All checks of a composed text, in the order in which they are reported (pilot §7).

The checks of facts are defined here: numbers, dates, names, quotations, spans to remove, and
statements about real people (pilot §4). The checks of form are in form.py.
"""

from collections.abc import Callable, Iterator

from coreeval.agents.checks import form
from coreeval.agents.checks.context import UNRESTRAINED, CheckContext, Restraint
from coreeval.agents.defects import fact_defect, form_defect
from coreeval.agents.kinds import WrittenItem, item_kind
from coreeval.agents.roles import CompositionRequest, Fields
from coreeval.agents.text.language_checks import CONDUCT, HARM
from coreeval.agents.text.lexicon import CONDUCT_WORDS, HARM_WORDS, NO_CONDUCT
from coreeval.agents.text.numbers import find_missing_numbers
from coreeval.agents.text.support import (
    Support,
    find_calendar_words,
    find_names,
    find_unknown_names,
)
from coreeval.agents.text.voice import split_sentences
from coreeval.agents.text.words import (
    GAP,
    MOST_SPANS,
    filter_spans,
    find_quotations,
    has_span,
    mask_spans,
    normalise,
    split_words,
    stem,
)
from coreeval.schema import Defect, Task, Window


def check_window(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if evidence that the text relies on was published outside the window."""
    for item in case.request.evidence:
        if not case.window.start <= item.published_at < case.window.end:
            date = item.published_at.date().isoformat()
            yield fact_defect("window", f"{item.id} was published on {date}, outside the window")


def check_numbers(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each number without support.

    Numbers are supported by the evidence, and by the rest of the same field that the plan keeps.
    """
    for name, _, new in case.pairs():
        if name not in case.factual_fields:
            continue
        known = [*case.news_numbers, *case.remaining_numbers(name)]
        for number in find_missing_numbers(new, known, case.task.language):
            yield fact_defect("numbers", f"{name}: {number.text!r} is in no evidence")


def check_dates(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each weekday or month without support.

    They are supported by the evidence, and by the rest of the field that the plan keeps.
    """
    language = case.task.language
    told = {day for text in case.news_texts for day in find_calendar_words(text, language)}
    for name, _, new in case.pairs():
        if name not in case.factual_fields:
            continue
        for day in sorted(
            find_calendar_words(new, language)
            - told
            - find_calendar_words(case.remaining_text(name), language)
        ):
            yield fact_defect("dates", f"{name}: {day.title()!r} is in no evidence")


def check_names(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each name that is in neither the evidence nor the original."""
    for name, old, new in case.pairs():
        for unknown in find_unknown_names(
            new, like=old, known=case.known_words, language=case.task.language
        ):
            yield fact_defect("names", f"{name}: {unknown!r} is in no evidence")


def check_persons(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each person that only the news names and the plan does not list."""
    planned = [person.name for person in case.request.plan.persons]
    people = {
        entity.name
        for item in case.request.evidence
        for entity in item.entities
        if entity.type == "person" and len(split_words(entity.name)) > 1
    }
    for name, _, new in case.written_pairs():
        for person in sorted(people):
            listed = any(set(split_words(person)) & set(split_words(other)) for other in planned)
            known = any(has_span(old, person) for _, old, _ in case.written_pairs())
            if has_span(new, person) and not listed and not known:
                yield fact_defect("persons", f"{name}: {person!r} is not among the plan's persons")


def check_quotations(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each quotation that is not from the evidence or the original.

    Each is searched in all of these; a text with more than `MOST_SPANS` is not checked.
    """
    sources = [*case.news_texts, *(normalise(old) for _, old, _ in case.pairs())]
    for name, _, new in case.pairs():
        quotations = [*dict.fromkeys(find_quotations(new))]
        if len(quotations) > MOST_SPANS:
            yield fact_defect(
                "quotation",
                f"{name} has {len(quotations)} quotations; it may have {MOST_SPANS}",
            )
            continue
        for quoted in quotations:
            if not any(has_span(source, quoted.strip(" .,;:!?")) for source in sources):
                yield fact_defect("quotation", f"{name}: nobody is on record with {quoted!r}")


def check_leftovers(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each remnant of a span that should be deleted or replaced."""
    for name, _, new in case.pairs():
        text = mask_spans(new, case.locked_spans(name), by=f" {GAP} ")
        for span in filter_spans(text, case.forbidden_spans(name)):
            yield fact_defect("leftover", f"{name} still says {span!r}")


_CONDUCT_STEMS = frozenset(map(stem, CONDUCT_WORDS))
_HARM_STEMS = frozenset(map(stem, HARM_WORDS))


def check_conduct(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each unsupported act of a named person or body.

    Their alleged acts must be in the news or in the original.
    """
    if not CONDUCT.knows(case.task.language):
        return
    told = Support([*case.news_texts, *(old for _, old, _ in case.written_pairs())])
    for name, _, new in case.written_pairs():
        said = (
            word
            for sentence in split_sentences(new)
            if find_names(sentence)
            for word in split_words(sentence)
            if stem(word) in _CONDUCT_STEMS and word not in NO_CONDUCT
        )
        for word in told.missing_conduct(said):
            yield fact_defect("conduct", f"{name}: no evidence says that anybody did so: {word!r}")


def check_harm(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect if the original's harm is transferred to another person.

    Harm is an accusation, an illness, a death or an insult.
    """
    if not HARM.knows(case.task.language):
        return
    told = {stem(word) for text in case.news_texts for word in split_words(text)}
    before = {stem(word) for _, old, _ in case.written_pairs() for word in split_words(old)}
    for name, _, new in case.written_pairs():
        kept = [
            word
            for word in split_words(new)
            if stem(word) in _HARM_STEMS & before and stem(word) not in told
        ]
        people = sorted(_find_new_people(case, new))
        if kept and people:
            yield _harm_defect("harm", f"{name} says {kept[0]!r} beside {people[0]!r}, who is new")


def check_takedown(case: CheckContext) -> Iterator[Defect]:
    """Yield a defect for each person on the takedown list that the original does not name."""
    for name, old, new in case.written_pairs():
        for listed in case.restraint.takedown.find_new_names([old], [new]):
            yield _harm_defect("takedown", f"{name} names {listed!r}, who may not be named")


def _find_new_people(case: CheckContext, text: str) -> set[str]:
    """Return the people of the plan and the news that are in the text but not in the original."""
    listed = {person.name for person in case.request.plan.persons}
    known = {
        entity.name
        for item in case.request.evidence
        for entity in item.entities
        if entity.type == "person" and len(split_words(entity.name)) > 1
    }
    return {person for person in listed | known if _is_newly_named(person, text, case)}


def _is_newly_named(person: str, text: str, case: CheckContext) -> bool:
    last = person.split()[-1]
    originals = [old for _, old, _ in case.written_pairs()]
    return has_span(text, last, any_case=False) and not any(
        has_span(old, last) for old in originals
    )


def _harm_defect(check: str, message: str) -> Defect:
    """Return a defect of harm to a person, which only different news can avoid (pilot §8)."""
    return Defect(check=check, kind="facts", message=message, route="evidence")


Check = Callable[[CheckContext], Iterator[Defect]]

COMPOSITION_CHECKS: tuple[Check, ...] = (
    form.check_difference,
    form.check_locks,
    form.check_markers,
    form.check_mentions,
    form.check_hashtags,
    form.check_emoji,
    form.check_target,
    form.check_length,
    form.check_shared_words,
    check_window,
    check_numbers,
    check_dates,
    check_names,
    check_persons,
    check_quotations,
    check_leftovers,
    check_conduct,
    check_harm,
    check_takedown,
    form.check_profanity,
    form.check_original_copied,
    form.check_headline_copied,
    form.check_headline_run,
    form.check_headline_style,
    form.check_figures,
    form.check_machine_marks,
    form.check_habits,
    form.check_line_breaks,
    form.check_script,
    form.check_language,
    form.check_instructions,
    form.check_label_announced,
    form.check_links,
    form.check_hidden_characters,
)


def check_composition(
    task: Task,
    request: CompositionRequest,
    fields: Fields,
    window: Window,
    restraint: Restraint = UNRESTRAINED,
) -> list[Defect]:
    """Return the defects of a composed text, as far as code can detect them."""
    incomplete = list(check_fields(task, fields))
    if incomplete:
        return incomplete
    case = CheckContext(
        task=task, request=request, fields=fields, window=window, restraint=restraint
    )
    item = WrittenItem(task=task, sample=request.sample, fields=fields, evidence=request.evidence)
    own = item_kind(task).checks
    return [
        *(defect for check in COMPOSITION_CHECKS for defect in check(case)),
        *(defect for check in own for defect in check(item)),
    ]


def check_fields(task: Task, fields: Fields) -> Iterator[Defect]:
    """Yield a defect unless the text has exactly the task's fields and none is empty.

    All other checks require this.
    """
    for name in task.fields:
        if not fields.get(name, "").strip():
            yield form_defect("fields", f"the field {name!r} is missing or empty")
    for name in sorted(set(fields) - set(task.fields)):
        yield form_defect("fields", f"there is no field {name!r}")
