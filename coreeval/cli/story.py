"""The story of one sample in words, for `coreeval trace`."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping

from coreeval.cli.meanings import offline_note
from coreeval.cli.output import Document, one_line
from coreeval.meanings import OUTCOMES, RUNGS, STEPS

WIDTH = 100
NEWS_SHOWN = 3
"""Pieces of news that are shown of those a sample was offered."""


def story_lines(story: Document) -> Iterator[str]:
    """Yield the lines of a sample's story, from the original to how it ended."""
    sample = story["sample"]
    yield f"{one_line(sample['id'])}   label: {sample['label_text']}"
    yield from _texts("original", sample["fields"])
    attempt = 0
    for step in story["steps"]:
        if step["attempt"] > attempt:
            attempt = step["attempt"]
            yield f"-- attempt {attempt} " + "-" * 60
        yield from _step_lines(step, story["evidence"])
    yield "-" * 73
    yield from _end_lines(story)
    yield from offline_note(story["offline_roles"])


def _end_lines(story: Document) -> Iterator[str]:
    result = story["result"]
    if story["train_item"] is not None:
        yield from _train_lines(story["train_item"])
        return
    if result is None:
        yield "no outcome yet"
        return
    outcome, attempts = result["outcome"], result["attempts"]
    if result["kept_from"]:
        yield f"kept from the release {result['kept_from']}, whose run has its steps"
    yield f"{outcome} after {attempts} {_plural('attempt', attempts)}: {OUTCOMES[outcome]}"
    yield from _wrapped(result["reason"])
    yield from _texts("semantic", result["semantic"] or {})
    yield from _texts("updated", result["updated"] or {})
    yield from _sources(result["facts"], story["evidence"])
    yield from _newness(result["freshness"])


def _train_lines(end: Document) -> Iterator[str]:
    yield f"item of the train split, {end['status'].replace('_', ' ')}"
    yield from _wrapped(end["reason"])
    yield from _texts("reworded", end["semantic"] or {})


def _step_lines(step: Document, evidence: Document) -> Iterator[str]:
    title = STEPS.get(step["node"], "")
    yield f"{step['node']:<16}{title}   ({step['seconds']:.2f} s{_calls(step['calls'])})"
    teller = _TELLERS.get(step["node"])
    if teller:
        yield from teller(step["did"], evidence)
    for verdict in step["verdicts"]:
        mark = "ok " if verdict["passed"] else "NOT"
        yield from _wrapped(f"{mark} {verdict['name']}: {verdict['reason']}".rstrip(": "))
    for call in step["calls"]:
        yield from _wrapped(_trouble(call))
    if step["error"]:
        yield from _wrapped(f"error: {step['error']}")


def _calls(calls: list[Document]) -> str:
    paid = sum(not call["cached"] for call in calls)
    known = len(calls) - paid
    asked = f", {paid} {_plural('call', paid)} asked" if paid else ""
    return asked + (f", {known} {_plural('call', known)} known already" if known else "")


def _trouble(call: Document) -> str:
    """Tell what went wrong with a call before it brought an answer, and if it brought none."""
    again = [f"sent again: {reason}" for reason in call["tries"].splitlines()]
    no_answer = [f"no answer: {call['error']}"] if call["error"] else []
    return f"{call['role']}: {'; '.join(again + no_answer)}" if again or no_answer else ""


def _plural(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"


def _tell_extract(did: Document, _: Document) -> Iterator[str]:
    found = did.get("extraction") or {}
    yield from _listed("mentions", (each["span"] for each in found.get("entities", ())))
    yield from _listed("must stay", (each["span"] for each in found.get("locked", ())))
    yield from _listed("search for", found.get("queries", ()))
    yield from _listed("sensitive", (each["flag"] for each in found.get("sensitive", ())))


def _tell_reword(did: Document, _: Document) -> Iterator[str]:
    yield from _texts("reworded", did.get("semantic") or {})


def _tell_retrieve(did: Document, evidence: Document) -> Iterator[str]:
    known = list(did.get("evidence", ()))
    how = RUNGS.get(did.get("rung", "none"), "")
    yield from _wrapped(f"{len(known)} {_plural('article', len(known))}, found {how}")
    for key in known[:NEWS_SHOWN]:
        yield from _wrapped(_headline(evidence.get(key)))
    if len(known) > NEWS_SHOWN:
        yield from _wrapped(f"… and {len(known) - NEWS_SHOWN} more (all with --json)")


def _tell_replace(did: Document, _: Document) -> Iterator[str]:
    plan = did.get("plan") or {}
    yield from _wrapped(f"decision: {plan.get('decision')}: {plan.get('reason', '')}".rstrip(": "))
    for statement in plan.get("statements", ()):
        yield from _wrapped(f"the news says: {statement['text']}")
    for new in plan.get("replacements", ()):
        before = f", in place of {_triple(new['before'])}" if new["before"] else " (added)"
        yield from _wrapped(f"new fact: {_triple(new['after'])}{before}")


def _tell_compose(did: Document, _: Document) -> Iterator[str]:
    yield from _texts("composed", did.get("composed") or {})


_TELLERS: dict[str, Callable[[Document, Document], Iterator[str]]] = {
    "extract": _tell_extract,
    "reword": _tell_reword,
    "retrieve": _tell_retrieve,
    "replace": _tell_replace,
    "compose": _tell_compose,
}


def _triple(triple: Document) -> str:
    return f"{triple['head']} | {triple['relation']} | {triple['tail']}"


def _headline(item: Document | None) -> str:
    if item is None:
        return "(evidence not stored)"
    mark = " [reads like an instruction]" if item.get("instruction_like") else ""
    said = item["title"] or item["snippet"] or "(the release left the excerpt out)"
    return f"{item['published_at'][:10]} {item['domain']}: {said}{mark}"


def _sources(facts: list[Document], evidence: Document) -> Iterator[str]:
    for key in dict.fromkeys(fact["evidence_id"] for fact in facts):
        yield from _wrapped(f"source: {_headline(evidence.get(key))}")
        yield from _wrapped(f"        {evidence.get(key, {}).get('url', '')}")


def _newness(freshness: Document | None) -> Iterator[str]:
    """Tell for which targets the sources are news."""
    for target, after in (freshness or {"after_cutoff": {}})["after_cutoff"].items():
        words = "cutoff not known" if after is None else f"{'after' if after else 'not after'} it"
        yield from _wrapped(f"cutoff of {target}: the sources are {words}")


def _listed(title: str, spans: Iterable[str]) -> Iterator[str]:
    found = ", ".join(dict.fromkeys(spans))
    if found:
        yield from _wrapped(f"{title}: {found}")


def _texts(title: str, fields: Mapping[str, str]) -> Iterator[str]:
    for name, text in fields.items():
        yield from _wrapped(f"{title} {name}: {text}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent="    ",
        subsequent_indent="      ",
        break_long_words=False,  # an address must stay one that can be clicked
        break_on_hyphens=False,
    )
