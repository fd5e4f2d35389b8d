"""All checks of a composed text, in the order in which they are reported (pilot §7)."""

from collections.abc import Callable, Iterator

from coreeval.agents.checks import facts, form, harm, language, voice
from coreeval.agents.checks.case import Case
from coreeval.agents.checks.case import form as form_defect
from coreeval.agents.checks.restraint import UNRESTRAINED, Restraint
from coreeval.agents.roles import Brief, Fields
from coreeval.schema import Defect, Task, Window

Check = Callable[[Case], Iterator[Defect]]

CHECKS: tuple[Check, ...] = (
    form.differs,
    form.locks_kept,
    form.markers_kept,
    form.mentions_kept,
    form.hashtags_counted,
    form.emoji_counted,
    form.target_as_before,
    form.length_kept,
    facts.evidence_in_window,
    facts.numbers_supported,
    facts.dates_supported,
    facts.names_supported,
    facts.persons_planned,
    facts.quotations_occur,
    facts.nothing_left,
    harm.conduct_supported,
    harm.harm_not_moved,
    harm.nobody_listed,
    form.no_new_profanity,
    form.original_not_copied,
    form.headline_not_copied,
    voice.headline_not_quoted,
    voice.no_headline_style,
    voice.figures_few,
    voice.no_machine_marks,
    voice.habits_kept,
    voice.line_breaks_kept,
    language.same_script,
    language.same_language,
    language.no_instructions,
    language.label_not_told,
    language.no_new_address,
    language.no_hidden_signs,
)


def check_composition(
    task: Task,
    brief: Brief,
    fields: Fields,
    window: Window,
    restraint: Restraint = UNRESTRAINED,
) -> list[Defect]:
    """Return what is wrong with a composed text, as far as code can tell."""
    incomplete = list(missing_fields(task, fields))
    if incomplete:
        return incomplete
    case = Case(task=task, brief=brief, fields=fields, window=window, restraint=restraint)
    return [defect for check in CHECKS for defect in check(case)]


def missing_fields(task: Task, fields: Fields) -> Iterator[Defect]:
    """Exactly the task's fields, none of them empty; without that nothing else can be asked."""
    for name in task.fields:
        if not fields.get(name, "").strip():
            yield form_defect("fields", f"the field {name!r} is missing or empty")
    for name in sorted(set(fields) - set(task.fields)):
        yield form_defect("fields", f"there is no field {name!r}")
