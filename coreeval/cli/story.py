"""The story of one sample in words, for `coreeval trace`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from coreeval.cli.meanings import offline_note
from coreeval.cli.output import Document, one_line, show
from coreeval.cli.story_calls import call_lines, trouble
from coreeval.cli.story_texts import differing, texts, wrapped
from coreeval.meanings import OUTCOMES, RUNGS, STEPS

if TYPE_CHECKING:
    from coreeval.schema import Evidence, Freshness, ReplacedFact, TrainEnd, Triple
    from coreeval.viewer.history import CallHistory, SampleHistory, StepHistory

NEWS_SHOWN = 3
"""Pieces of news that are shown of those a sample was offered."""
News = Mapping[str, "Evidence"]


def show_story(
    story: "SampleHistory", offline_roles: list[str], *, as_json: bool, calls: bool
) -> None:
    """Print a story, as a document or in words, with prompts and answers if they are wanted."""
    document = story_document(story) | {"offline_roles": offline_roles}
    lines = story_lines(story, offline_roles, calls=calls)
    show(document, as_json, lambda: "\n".join(lines), coloured=True)


def story_document(story: "SampleHistory") -> dict[str, Any]:
    """Return a story as programs read it; the tries of a call are lines of one text."""
    document = story.model_dump(mode="json")
    for step in document["steps"]:
        for call in step["calls"]:
            call["tries"] = "\n".join(call["tries"])
    return document


def story_lines(
    story: "SampleHistory", offline_roles: list[str], *, calls: bool = False
) -> Iterator[str]:
    """Yield the lines of a sample's story, from the original to how it ended."""
    sample = story.sample
    yield f"{one_line(sample.id)}   label: {one_line(sample.label_text)}"
    yield from texts("original", sample.fields)
    attempt = 0
    for step in story.steps:
        if step.attempt > attempt:
            attempt = step.attempt
            yield f"-- attempt {attempt} " + "-" * 60
        yield from _step_lines(step, story.evidence, calls)
    yield "-" * 73
    yield from _end_lines(story)
    yield from offline_note(offline_roles)


def _end_lines(story: "SampleHistory") -> Iterator[str]:
    result = story.result
    if story.train_item is not None:
        yield from _train_lines(story.train_item)
        return
    if result is None:
        yield "no outcome yet"
        return
    if result.kept_from:
        yield f"kept from the release {result.kept_from}, whose run has its steps"
    times = f"{result.attempts} {_plural('attempt', result.attempts)}"
    yield f"{result.outcome} after {times}: {OUTCOMES[result.outcome]}"
    yield from wrapped(result.reason)
    yield from texts("semantic", result.semantic or {})
    yield from differing(story.diffs, "original", "semantic")
    yield from texts("updated", result.updated or {})
    yield from differing(story.diffs, "original", "updated")
    yield from _facts(result.facts, story.evidence)
    yield from _newness(result.freshness)
    yield from wrapped(_cost(story))


def _cost(story: "SampleHistory") -> str:
    made = [call for step in story.steps for call in step.calls]
    if not made:
        return ""
    billed = [call for call in made if not call.cached]
    usd = "of unknown price" if story.billed_usd is None else f"for {story.billed_usd:.6f} USD"
    return f"calls: {len(billed)} billed {usd}, {len(made) - len(billed)} known already"


def _train_lines(end: "TrainEnd") -> Iterator[str]:
    yield f"item of the train split, {end.status.replace('_', ' ')}"
    yield from wrapped(end.reason)
    yield from texts("reworded", end.semantic or {})


# -- steps ----------------------------------------------------------------------------------------


def _step_lines(step: "StepHistory", evidence: News, with_calls: bool) -> Iterator[str]:
    title = STEPS.get(step.node, "")
    yield f"{step.node:<16}{title}   ({step.seconds:.2f} s{_calls(step.calls)})"
    teller = _TELLERS.get(step.node)
    if teller:
        yield from teller(step.did, evidence)
    for verdict in step.verdicts:
        mark = "ok " if verdict.passed else "NOT"
        yield from wrapped(f"{mark} {verdict.name}: {verdict.reason}".rstrip(": "))
    for call in step.calls:
        yield from call_lines(call) if with_calls else wrapped(trouble(call))
    if step.error:
        yield from wrapped(f"error: {step.error}")


def _calls(calls: "tuple[CallHistory, ...]") -> str:
    paid = sum(not call.cached for call in calls)
    known = len(calls) - paid
    asked = f", {paid} {_plural('call', paid)} asked" if paid else ""
    return asked + (f", {known} {_plural('call', known)} known already" if known else "")


def _plural(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"


def _tell_extract(did: Document, _: News) -> Iterator[str]:
    found = did.get("extraction") or {}
    yield from _listed("mentions", (each["span"] for each in found.get("entities", ())))
    yield from _listed("states", (_said(each) for each in found.get("triples", ())))
    yield from _listed("must stay", (each["span"] for each in found.get("locked", ())))
    yield from _listed("search for", found.get("queries", ()))
    yield from _listed("sensitive", (each["flag"] for each in found.get("sensitive", ())))


def _tell_reword(did: Document, _: News) -> Iterator[str]:
    yield from texts("reworded", did.get("semantic") or {})


def _tell_retrieve(did: Document, evidence: News) -> Iterator[str]:
    known = list(did.get("evidence", ()))
    for query in did.get("asked", ()):
        came = query["why_none"] or f"{query['found']} {_plural('article', query['found'])}"
        yield from wrapped(f"asked {query['rung']} {query['text']!r}: {came}")
    how = RUNGS.get(did.get("rung", "none"), "")
    yield from wrapped(f"{len(known)} {_plural('article', len(known))}, found {how}")
    for key in known[:NEWS_SHOWN]:
        yield from wrapped(_headline(evidence.get(key)))
    if len(known) > NEWS_SHOWN:
        yield from wrapped(f"… and {len(known) - NEWS_SHOWN} more (all with --json)")


def _tell_replace(did: Document, evidence: News) -> Iterator[str]:
    plan = did.get("plan") or {}
    yield from wrapped(f"decision: {plan.get('decision')}: {plan.get('reason', '')}".rstrip(": "))
    for statement in plan.get("statements", ()):
        yield from wrapped(f"the news says: {statement['text']}")
        for key in statement.get("evidence_ids", ()):
            yield from wrapped(f"  in {_source(evidence.get(key))}")
    for new in plan.get("replacements", ()):
        before = f", in place of {_said(new['before'])}" if new["before"] else " (added)"
        yield from wrapped(f"new fact: {_said(new['after'])}{before}")
    for old in plan.get("delete", ()):
        yield from wrapped(f"to go: {old['span']!r}: {old['why']}")


def _tell_compose(did: Document, _: News) -> Iterator[str]:
    yield from texts("composed", did.get("composed") or {})


def _tell_reflect(did: Document, _: News) -> Iterator[str]:
    for each in did.get("statements", ()):
        carried = {"yes": "carried", "no": "NOT carried", "not_needed": "needs no source"}
        by = f" by {each['quote']!r}" if each["quote"] else ""
        yield from wrapped(f"{carried[each['supported']]}: {each['text']}{by}")


_TELLERS: dict[str, Callable[[Document, News], Iterator[str]]] = {
    "extract": _tell_extract,
    "reword": _tell_reword,
    "retrieve": _tell_retrieve,
    "replace": _tell_replace,
    "compose": _tell_compose,
    "reflect": _tell_reflect,
}


def _listed(title: str, spans: Iterable[str]) -> Iterator[str]:
    found = ", ".join(dict.fromkeys(spans))
    if found:
        yield from wrapped(f"{title}: {found}")


def _said(triple: Document) -> str:
    return f"{triple['head']} | {triple['relation']} | {triple['tail']}"


# -- news -----------------------------------------------------------------------------------------


def _headline(item: "Evidence | None") -> str:
    if item is None:
        return "(evidence not stored)"
    mark = " [reads like an instruction]" if item.instruction_like else ""
    said = item.title or item.snippet or "(the release left the excerpt out)"
    return f"{item.published_at:%Y-%m-%d} {item.domain}: {said}{mark}"


def _source(item: "Evidence | None") -> str:
    return f"{item.published_at:%Y-%m-%d} {item.url}" if item else "(evidence not stored)"


def _facts(facts: "Iterable[ReplacedFact]", evidence: News) -> Iterator[str]:
    """Tell what replaced what, and each source after the first fact that rests on it."""
    told = set[str]()
    for fact in facts:
        before = f"{_triple(fact.before)} -> " if fact.before else "added: "
        yield from wrapped(f"fact: {before}{_triple(fact.after)}")
        yield from wrapped(f"      as the news has it: {fact.quote!r}")
        if fact.evidence_id not in told:
            item = evidence.get(fact.evidence_id)
            yield from wrapped(f"source: {_headline(item)}")
            yield from wrapped(f"        {item.url if item else ''}")
        told.add(fact.evidence_id)


def _triple(triple: "Triple") -> str:
    return f"{triple.head} | {triple.relation} | {triple.tail}"


def _newness(freshness: "Freshness | None") -> Iterator[str]:
    """Tell for which targets the sources are news."""
    for target, after in freshness.after_cutoff.items() if freshness else ():
        words = "cutoff not known" if after is None else f"{'after' if after else 'not after'} it"
        yield from wrapped(f"cutoff of {target}: the sources are {words}")
