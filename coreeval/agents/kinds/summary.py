"""Summaries: the document is the news itself, and the reference summary is new."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Final

from coreeval.agents.defects import form_defect, label_defect
from coreeval.agents.events import bundle_reports
from coreeval.agents.kinds.base import FactQuestion, ItemKind, WrittenItem
from coreeval.agents.roles import Fields
from coreeval.agents.text.numbers import find_missing_numbers, find_numbers
from coreeval.agents.text.support import expand_words, find_unknown_names
from coreeval.agents.text.voice import split_sentences
from coreeval.schema import Defect, Evidence, Sample, Task
from coreeval.tasks.kinds.base import count_units
from coreeval.tasks.kinds.summary import SUMMARY

FAITHFUL: Final = "faithful"
"""The blind judge's answer for a summary that states the main points and nothing else."""
_FEWEST_RATIO: Final = 3.0
"""The smallest ratio of a document's length to its summary's (own choice)."""
_LENGTH: Final = 0.5
"""The largest difference between a summary's length and the original's (own choice)."""


def _document(task: Task) -> Sequence[str]:
    return task.shown_fields


def _finish(task: Task, sample: Sample, written: Fields, evidence: Sequence[Evidence]) -> Fields:
    """Return the reports that the plan cites, word for word, and the summary of them."""
    reports = "\n\n".join(f"{one.title}\n{one.snippet}".strip() for one in evidence)
    return {task.shown_fields[0]: reports, SUMMARY: written.get(SUMMARY, "")}


def _has_material(task: Task, sample: Sample, reports: Sequence[Evidence]) -> bool:
    """Return whether reports are long enough for the shortest summary that a sample may get."""
    sentences = sum(len(split_sentences(report.snippet)) for report in reports)
    return sum(map(_measure, reports)) >= _count_needed(sample) and sentences > 1


def _explain_no_material(task: Task, sample: Sample, evidence: Sequence[Evidence]) -> str:
    """Return why no event on offer provides a document for a summary of the original's length."""
    events = bundle_reports(dict.fromkeys(evidence, "structure"))
    if any(_has_material(task, sample, event.reports) for event in events):
        return ""
    most = max((sum(map(_measure, event.reports)) for event in events), default=0)
    return (
        f"no event has reports for a document: at most {most} words of them may be published; "
        f"{_count_needed(sample)} are needed, and more than one sentence besides the titles "
        "(knowledge.documents)"
    )


def _count_needed(sample: Sample) -> int:
    return ceil(_FEWEST_RATIO * (1 - _LENGTH) * count_units(sample.fields[SUMMARY]))


def _measure(report: Evidence) -> int:
    return count_units(f"{report.title} {report.snippet}")


def _ask_facts(item: WrittenItem) -> FactQuestion:
    """Ask whether the news supports the summary; the document is the news, word for word."""
    return FactQuestion(fields={SUMMARY: item.fields[SUMMARY]}, evidence=item.evidence)


def check_summary(item: WrittenItem) -> Iterator[Defect]:
    """Yield a defect for content of the summary that the document lacks, and for wrong lengths."""
    document = "\n\n".join(item.fields[name] for name in item.task.shown_fields)
    new, old, language = item.fields[SUMMARY], item.sample.fields[SUMMARY], item.task.language
    for number in find_missing_numbers(new, find_numbers(document, language), language):
        yield label_defect("summary_numbers", f"{number.text!r} is not in the document")
    known = expand_words(document, language)
    for name in find_unknown_names(new, like=old, known=known, language=language):
        yield label_defect("summary_names", f"{name!r} is not in the document")
    words, before = count_units(new), count_units(old)
    if not (1 - _LENGTH) * before <= words <= (1 + _LENGTH) * before + 4:
        yield form_defect("summary_length", f"the summary has {words} words; {before} before")
    length = count_units(document)
    if length < _FEWEST_RATIO * words:
        yield label_defect(
            "document_length",
            f"the news has {length} words, less than three times the summary's {words}: write a "
            "summary of fewer words, or choose an event with longer reports",
            replan=True,
        )
    if len(split_sentences(document)) <= len(split_sentences(new)):
        yield label_defect("document_length", "the news has no more sentences", replan=True)


def _is_faithful(task: Task, sample: Sample, fields: Mapping[str, str], said: str) -> bool:
    return said == FAITHFUL


SUMMARY_KIND = ItemKind(
    reworded=_document,
    written=lambda task: (SUMMARY,),
    compared=lambda task: (SUMMARY,),
    finish=_finish,
    judged=lambda task: (SUMMARY,),
    ask_facts=_ask_facts,
    is_gold=_is_faithful,
    describe_gold=lambda sample, fields: "a summary that states what matters and nothing else",
    is_one=True,
    keeps_lines=True,
    lockable=lambda task: (),
    publishes_news=True,
    needs_many_statements=lambda task: True,
    has_material=_has_material,
    explain_no_material=_explain_no_material,
    checks=(check_summary,),
)
