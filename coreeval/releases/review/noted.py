"""What a run noted of its samples that bears on real people."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coreeval.schema import Person, Verdict
from coreeval.tasks.task_file import UNDECIDED
from coreeval.tools.stores.run_store import RunStore

_HARM = re.compile(r"(?:^|; )(?:facts_person|harm|persons|takedown|conduct): [^;]*")
"""What checks and judges object to that concerns a real person, as their verdicts name it."""
_UNSURE = "(low confidence"
_ORIGINAL, _LABEL = "original_label", "label_preserved"
_CHECKED = ("plan", "checks", "facts_supported")
Json = dict[str, Any]


@dataclass
class Noted:
    """What is known of one sample."""

    policy: str = "allow"
    sensitive: list[str] = field(default_factory=list)
    """What the screen flagged, as `flag: 'span'`."""
    mentioned: list[str] = field(default_factory=list)
    """Spellings of the persons whom the original names."""
    persons: list[Person] = field(default_factory=list)
    """Of the last plan."""
    translated: bool = False
    """Whether the last plan rests on words in another language."""
    harm: str = ""
    """What was wrong with an earlier attempt that concerns a real person."""
    unsure: str = ""
    """What the blind judge said of the new text, where it was less sure than of the original."""
    original_unsure: bool = False


def noted(store: RunStore) -> Mapping[str, Noted]:
    """Return what a run noted, by the samples' ids."""
    known: dict[str, Noted] = {}
    for sample_id, node, detail in store.notes(("extract", "replace")):
        about = known.setdefault(sample_id, Noted())
        (_read_extraction if node == "extract" else _read_plan)(about, detail)
    for sample_id, verdict in store.verdicts((*_CHECKED, _ORIGINAL, _LABEL)):
        if sample_id in known:
            _read_verdict(known[sample_id], verdict)
    return known


def _read_extraction(about: Noted, detail: Json) -> None:
    found = detail.get("extraction") or {}
    about.policy = detail.get("policy", "allow")
    about.sensitive = [
        f"{each['flag']}: {each['span']!r}" if each["span"] else each["flag"]
        for each in found.get("sensitive", ())
    ]
    about.mentioned = [
        spelling
        for entity in found.get("entities", ())
        if entity["type"] == "person" and entity["kind"] == "named"
        for spelling in (entity["span"], entity["query_name"], *entity["aliases"])
    ]


def _read_plan(about: Noted, detail: Json) -> None:
    """Take over a plan; a step that failed has none."""
    if plan := detail.get("plan"):
        about.persons = [Person.model_validate(each) for each in plan.get("persons", ())]
        about.translated = any(each["translation"] for each in plan.get("statements", ()))


def _read_verdict(about: Noted, verdict: Verdict) -> None:
    """Take over a verdict; one about a later attempt takes the place of what was known."""
    unsure = _UNSURE in verdict.reason or verdict.reason.startswith(UNDECIDED)
    if verdict.name == _ORIGINAL:
        about.original_unsure = unsure
    elif verdict.name == _LABEL:
        about.unsure = verdict.reason if unsure and not about.original_unsure else ""
    elif not verdict.passed and (found := _HARM.search(verdict.reason)):
        about.harm = f"attempt {verdict.attempt}: {found.group().removeprefix('; ')}"
