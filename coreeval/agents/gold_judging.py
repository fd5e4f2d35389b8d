"""Asks blind judges whether a new text has its gold.

Texts with a label are labelled. Questions are answered: they must be answerable with the passage or
the news, but not without it. Options are judged one by one.
"""

from typing import NamedTuple

from coreeval.agents import reflect
from coreeval.agents.kinds import WrittenItem, item_kind
from coreeval.agents.roles import Team
from coreeval.models.running_steps import gather_both
from coreeval.schema import Defect, LabelVerdict, OptionVerdict, Task


class SideVerdict(NamedTuple):
    """The result of one more question to the judge."""

    name: str
    passed: bool
    reason: str


class GoldVerdict(NamedTuple):
    """The answers of the judges of the gold about a text."""

    label: LabelVerdict
    defects: list[Defect]
    beside: list[SideVerdict]


async def judge_gold(item: WrittenItem, team: Team) -> GoldVerdict:
    """Ask the judge all questions about the gold of an item of this kind, concurrently.

    If a question fails or has to wait for a batch, the others are still asked.

    For a question without a passage, it is recorded whether the judge can answer it without the
    news: it may know the events in the window.
    """
    kind = item_kind(item.task)
    open_book = kind.passage(item.task)
    news = item.evidence if kind.needs_news(item.task) else ()
    label, (blind, options) = await gather_both(
        team.label_judge(item.fields, news),
        gather_both(_answer_blind(item, team), _judge_options(item, team)),
    )
    defects, beside = reflect.find_label_defects(item, label), list[SideVerdict]()
    if blind is not None:
        guessed = reflect.find_guessed_defects(item, blind)
        defects += guessed if open_book else []
        said = f"without it: {blind.label!r} ({blind.confidence} confidence)"
        beside.append(
            SideVerdict("needs_passage" if open_book else "new_to_judge", not guessed, said)
        )
    if options is not None:
        wrong = reflect.find_option_defects(item.sample, options)
        defects += wrong
        beside.append(SideVerdict("options", not wrong, reflect.summarise_defects(wrong)))
    return GoldVerdict(label, defects, beside)


def count_gold_questions(task: Task) -> int:
    """Return the number of questions that `judge_gold` asks about a text."""
    kind = item_kind(task)
    is_asked_blind = bool(kind.passage(task)) or kind.needs_news(task)
    return 1 + is_asked_blind + kind.judges_options


async def _answer_blind(item: WrittenItem, team: Team) -> LabelVerdict | None:
    """Return the judge's answer without passage and news; None if the item needs neither."""
    kind = item_kind(item.task)
    passage = kind.passage(item.task)
    if not passage and not kind.needs_news(item.task):
        return None
    return await team.label_judge(
        {name: text for name, text in item.fields.items() if name not in passage}
    )


async def _judge_options(item: WrittenItem, team: Team) -> list[OptionVerdict] | None:
    if team.option_judge is None:
        return None
    return await team.option_judge(item.fields, item.evidence)
