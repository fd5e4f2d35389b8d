"""The history of one sample in words, for `coreeval trace`.

Also prints the calls of a step: the model, its messages and its answer.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from coreeval.cli.output import (
    Document,
    difference_lines,
    offline_lines,
    one_line,
    show,
    text_lines,
    wrap_text,
)
from coreeval.meanings import OUTCOMES, RUNGS, STEPS, describe_reason
from coreeval.tasks.kinds import find_display, title_fields
from coreeval.tools.formatting import describe_price, format_price

if TYPE_CHECKING:
    from coreeval.runs.history import CallHistory, SampleHistory, StepHistory
    from coreeval.schema import Arm, Evidence, Freshness, ReplacedFact, TrainEnd, Triple
    from coreeval.tools.text import DiffPiece


def describe_trouble(call: "CallHistory") -> str:
    """Return the errors of a call before its answer, and whether there was no answer."""
    told = [f"sent again: {reason}" for reason in call.tries]
    told += [f"no answer: {call.error}"] if call.error else []
    return f"{call.role}: {'; '.join(told)}" if told else ""


def call_lines(call: "CallHistory") -> Iterator[str]:
    """Yield a call with its messages and its answer."""
    yield from wrap_text(_call_heading(call))
    yield from wrap_text(describe_trouble(call))
    if call.gone:
        yield from wrap_text("its messages are no longer in the call store")
        return
    for message in call.messages:
        yield from _block_lines(message.role, message.content)
    yield from _block_lines("answer", call.answer)


def _call_heading(call: "CallHistory") -> str:
    prompt = f", prompt {call.prompt} {call.prompt_version[:8]}" if call.prompt else ""
    tokens = f"{call.prompt_tokens} + {call.completion_tokens} tokens"
    usd = format_price(call.usd, 6)
    paid = "from the store" if call.cached else "billed"
    draw = f", draw {call.draw}" if call.draw else ""
    shared = f" for {call.samples} samples" if call.samples > 1 else ""
    return (
        f"call {call.key[:12]} {call.role}: {call.model}{prompt}{draw}, {tokens}, {usd}, "
        f"{paid}{shared}, {call.seconds:.2f} s"
    )


def _block_lines(title: str, text: str) -> Iterator[str]:
    """Yield a text line by line after a bar, so that no line looks like our own output."""
    yield f"    {title}"
    for line in text.splitlines():
        for part in wrap_text(line) or [""]:
            yield f"    | {part.strip()}"


MOST_CHARACTERS = 3000
"""The most characters shown of a text, and of a piece of a difference."""
PIECE_END = 200
"""The characters shown at each end of a longer unchanged piece."""
NEWS_SHOWN = 3
"""The most pieces of news shown of those offered to a sample."""
EvidenceById = Mapping[str, "Evidence"]


def show_story(
    story: "SampleHistory", offline_roles: list[str], *, as_json: bool, calls: bool
) -> None:
    """Print a history as a document or in words, with prompts and answers if requested."""
    from coreeval.runs.history import build_history_document

    document = build_history_document(story) | {"offline_roles": offline_roles}
    lines = story_lines(story, offline_roles, calls=calls)
    show(document, as_json, lambda: "\n".join(lines), coloured=True)


def story_lines(
    story: "SampleHistory", offline_roles: list[str], *, calls: bool = False
) -> Iterator[str]:
    """Yield the lines of a sample's history, from the original to the outcome."""
    sample = story.sample
    display = find_display(sample.fields, sample.label_text)
    yield f"{one_line(sample.id)}   {display.label_title}: {one_line(sample.label_text)}"
    yield from text_lines("original", _cut_texts(sample.fields, sample.label_text))
    attempt = 0
    for step in story.steps:
        if step.attempt > attempt:
            attempt = step.attempt
            yield f"-- attempt {attempt} " + "-" * 60
        yield from _step_lines(step, story.evidence, calls)
    yield "-" * 73
    yield from _end_lines(story)
    yield from offline_lines(offline_roles)


def _end_lines(story: "SampleHistory") -> Iterator[str]:
    result = story.result
    if story.train_item is not None:
        yield from _train_lines(story.train_item)
        return
    if result is None:
        yield "no outcome yet"
        return
    if result.kept_from:
        yield f"kept from release {result.kept_from}; its steps are in the run of that release"
    times = f"{result.attempts} {_plural('attempt', result.attempts)}"
    yield f"{result.outcome} after {times}: {OUTCOMES[result.outcome]}"
    yield from wrap_text(describe_reason(result.reason))
    yield from _arm_lines(story, "semantic", result.semantic or {})
    yield from _arm_lines(story, "updated", result.updated or {})
    yield from _fact_lines(result.facts, story.evidence)
    yield from _freshness_lines(result.freshness)
    yield from _answer_lines(story)
    yield from wrap_text(_format_cost(story))


def _answer_lines(story: "SampleHistory") -> Iterator[str]:
    """Yield the targets' answers, one line for each arm and template."""
    for one in story.answers:
        ended = "refused" if one.right is None else "right" if one.right else "WRONG"
        template = f", template {one.template}" if one.template else ""
        said = one.answer or f"({one.kind}{f': {one.reason}' if one.reason else ''})"
        shown = said if len(said) <= MOST_CHARACTERS else _cut_text(said, MOST_CHARACTERS, 0)
        yield from wrap_text(f"{one.target} on {one.arm}{template}: {ended}: {shown}")


def _arm_lines(story: "SampleHistory", arm: "Arm", fields: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts of an arm, then the differences from the original in the shown fields."""
    sample = story.sample
    display = find_display(sample.fields, sample.label_text)
    yield from text_lines(arm, _cut_texts(fields, sample.label_text))
    titles = display.titles(fields, sample.label_text)
    shown = [
        one.model_copy(
            update={"field": titles[one.field], "pieces": tuple(map(_cut_piece, one.pieces))}
        )
        for one in story.diffs
        if one.field in titles
    ]
    yield from difference_lines(shown, "original", arm)


def _cut_texts(fields: Mapping[str, str], label: str) -> dict[str, str]:
    """Return the texts by title, with long ones cut."""
    return {
        title: text if len(text) <= MOST_CHARACTERS else _cut_text(text, MOST_CHARACTERS, 0)
        for title, text in title_fields(fields, label).items()
    }


def _cut_piece(piece: "DiffPiece") -> "DiffPiece":
    """Return a piece of a difference; of a long piece, only both ends."""
    if len(piece.text) <= MOST_CHARACTERS:
        return piece
    end = PIECE_END if piece.op == "same" else MOST_CHARACTERS // 2
    return piece.model_copy(update={"text": _cut_text(piece.text, end, end)})


def _cut_text(text: str, begin: int, end: int) -> str:
    """Return both ends of a text, with the number of omitted characters between them."""
    left_out = f" [{len(text) - begin - end:,} more characters: --json] "
    return text[:begin] + left_out + text[len(text) - end :]


def _format_cost(story: "SampleHistory") -> str:
    made = [call for step in story.steps for call in step.calls]
    if not made:
        return ""
    billed = [call for call in made if not call.cached]
    usd = describe_price(story.billed_usd)
    return f"calls: {len(billed)} billed {usd}, {len(made) - len(billed)} from the store"


def _train_lines(end: "TrainEnd") -> Iterator[str]:
    yield f"item of the train split, {end.status.replace('_', ' ')}"
    yield from wrap_text(end.reason)
    yield from text_lines("reworded", end.semantic or {})


# -- steps ----------------------------------------------------------------------------------------


def _step_lines(step: "StepHistory", evidence: EvidenceById, with_calls: bool) -> Iterator[str]:
    title = STEPS.get(step.node, "")
    yield f"{step.node:<16}{title}   ({step.seconds:.2f} s{_format_calls(step.calls)})"
    teller = _TELLERS.get(step.node)
    if teller:
        yield from teller(step.did, evidence)
    for verdict in step.verdicts:
        mark = "ok " if verdict.passed else "NOT"
        yield from wrap_text(f"{mark} {verdict.name}: {verdict.reason}".rstrip(": "))
    for call in step.calls:
        yield from call_lines(call) if with_calls else wrap_text(describe_trouble(call))
    if step.error:
        yield from wrap_text(f"error: {step.error}")


def _format_calls(calls: "tuple[CallHistory, ...]") -> str:
    paid = sum(not call.cached for call in calls)
    known = len(calls) - paid
    asked = f", {paid} {_plural('call', paid)} sent" if paid else ""
    return asked + (f", {known} {_plural('call', known)} from the store" if known else "")


def _plural(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"


def _extract_lines(did: Document, _: EvidenceById) -> Iterator[str]:
    found = did.get("extraction") or {}
    yield from _list_lines("mentions", (each["span"] for each in found.get("entities", ())))
    yield from _list_lines("states", (_format_change(each) for each in found.get("triples", ())))
    yield from _list_lines("must stay", (each["span"] for each in found.get("locked", ())))
    yield from _list_lines("search for", found.get("queries", ()))
    yield from _list_lines("sensitive", (each["flag"] for each in found.get("sensitive", ())))


def _original_label_lines(did: Document, _: EvidenceById) -> Iterator[str]:
    if failed := did.get("batch_failed"):
        yield from wrap_text(f"labelled individually, because the batch call failed: {failed}")


def _reword_lines(did: Document, _: EvidenceById) -> Iterator[str]:
    yield from text_lines("reworded", did.get("semantic") or {})


def _retrieve_lines(did: Document, evidence: EvidenceById) -> Iterator[str]:
    known = list(did.get("evidence", ()))
    for query in did.get("asked", ()):
        came = query["why_none"] or f"{query['found']} {_plural('article', query['found'])}"
        yield from wrap_text(f"searched {query['rung']} {query['text']!r}: {came}")
    how = RUNGS.get(did.get("rung", "none"), "")
    yield from wrap_text(f"{len(known)} {_plural('article', len(known))}, found {how}")
    for key in known[:NEWS_SHOWN]:
        yield from wrap_text(_format_headline(evidence.get(key)))
    if len(known) > NEWS_SHOWN:
        yield from wrap_text(f"… and {len(known) - NEWS_SHOWN} more (all with --json)")


def _replace_lines(did: Document, evidence: EvidenceById) -> Iterator[str]:
    plan = did.get("plan") or {}
    yield from wrap_text(f"decision: {plan.get('decision')}: {plan.get('reason', '')}".rstrip(": "))
    for statement in plan.get("statements", ()):
        yield from wrap_text(f"the news says: {statement['text']}")
        for key in statement.get("evidence_ids", ()):
            yield from wrap_text(f"  in {_format_source(evidence.get(key))}")
    for new in plan.get("replacements", ()):
        before = f", replacing {_format_change(new['before'])}" if new["before"] else " (added)"
        yield from wrap_text(f"new fact: {_format_change(new['after'])}{before}")
    for old in plan.get("delete", ()):
        yield from wrap_text(f"to delete: {old['span']!r}: {old['why']}")


def _compose_lines(did: Document, _: EvidenceById) -> Iterator[str]:
    yield from text_lines("composed", did.get("composed") or {})


def _reflect_lines(did: Document, _: EvidenceById) -> Iterator[str]:
    for each in did.get("statements", ()):
        carried = {"yes": "supported", "no": "NOT supported", "not_needed": "needs no source"}
        by = f" by {each['quote']!r}" if each["quote"] else ""
        yield from wrap_text(f"{carried[each['supported']]}: {each['text']}{by}")


_TELLERS: dict[str, Callable[[Document, EvidenceById], Iterator[str]]] = {
    "extract": _extract_lines,
    "judge_original": _original_label_lines,
    "reword": _reword_lines,
    "retrieve": _retrieve_lines,
    "replace": _replace_lines,
    "compose": _compose_lines,
    "reflect": _reflect_lines,
}


def _list_lines(title: str, spans: Iterable[str]) -> Iterator[str]:
    found = ", ".join(dict.fromkeys(spans))
    if found:
        yield from wrap_text(f"{title}: {found}")


def _format_change(triple: Document) -> str:
    return f"{triple['head']} | {triple['relation']} | {triple['tail']}"


# -- news -----------------------------------------------------------------------------------------


def _format_headline(item: "Evidence | None") -> str:
    if item is None:
        return "(evidence not stored)"
    mark = " [reads like an instruction]" if item.instruction_like else ""
    said = item.title or item.snippet or "(the release omits the excerpt)"
    return f"{item.published_at:%Y-%m-%d} {item.domain}: {said}{mark}"


def _format_source(item: "Evidence | None") -> str:
    return f"{item.published_at:%Y-%m-%d} {item.url}" if item else "(evidence not stored)"


def _fact_lines(facts: "Iterable[ReplacedFact]", evidence: EvidenceById) -> Iterator[str]:
    """Yield the replaced facts, with each source after the first fact that it supports."""
    told = set[str]()
    for fact in facts:
        before = f"{_format_triple(fact.before)} -> " if fact.before else "added: "
        yield from wrap_text(f"fact: {before}{_format_triple(fact.after)}")
        yield from wrap_text(f"      in the news: {fact.quote!r}")
        if fact.evidence_id not in told:
            item = evidence.get(fact.evidence_id)
            yield from wrap_text(f"source: {_format_headline(item)}")
            yield from wrap_text(f"        {item.url if item else ''}")
        told.add(fact.evidence_id)


def _format_triple(triple: "Triple") -> str:
    return f"{triple.head} | {triple.relation} | {triple.tail}"


def _freshness_lines(freshness: "Freshness | None") -> Iterator[str]:
    """Yield the targets for which the sources are new."""
    for target, after in freshness.after_cutoff.items() if freshness else ():
        words = "unknown"
        if after is not None:
            words = f"{'all' if after else 'not all'} sources were published after it"
        yield from wrap_text(f"cutoff of {target}: {words}")
