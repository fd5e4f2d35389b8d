"""The nodes of the sample graph: each reads the state and calls one role or check."""

import asyncio
from collections.abc import Sequence

from coreeval.agents import checks, queries, reflect, safety
from coreeval.agents.document_terms import cut_to_terms
from coreeval.agents.edits import explain_no_rewording, substitute
from coreeval.agents.gold_judging import judge_gold
from coreeval.agents.kinds import WrittenItem, item_kind
from coreeval.agents.llm_role import cut_text
from coreeval.agents.reflect import FinalOutcome, decide_next, summarise_defects
from coreeval.agents.roles import (
    CompositionRequest,
    ExtractionWithRewrite,
    Fields,
    PlanWithText,
    Team,
)
from coreeval.errors import ModelCallError
from coreeval.graph.node_context import HasMaterial, NodeContext, RetrievalRequest, log_detail
from coreeval.graph.state import Json, SampleState, SampleUpdate
from coreeval.models.running_steps import gather_both
from coreeval.models.sample_cost import has_spent_half, share_cost
from coreeval.schema import (
    Defect,
    EntityQuery,
    Evidence,
    Extraction,
    LabelVerdict,
    Outcome,
    Plan,
    Rewrite,
    Route,
    Sample,
    Task,
    Verdict,
)

START_OF: dict[Route, str] = {"evidence": "retrieve", "replace": "replace", "compose": "compose"}
"""The node where a retry of each route begins."""
END = "end"


class SampleNodes:
    """The node functions, bound to a context."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context

    # -- before any news ------------------------------------------------------------------------

    async def extract(self, state: SampleState) -> SampleUpdate:
        """Find entities, triples, locks and queries (paper eq. 1), and screen the sample."""
        sample, task, team = await self._sample(state)
        found = await asyncio.to_thread(
            checks.clean_extraction, task, sample, await team.extractor(sample)
        )
        policy = self._context.rules.policy
        screened = safety.screen_sample(sample, found, policy, task.language)
        extraction = found.model_dump(mode="json", exclude={"rewrite"})
        update = SampleUpdate(extraction=extraction, policy=screened.policy)
        if isinstance(found, ExtractionWithRewrite):
            update |= SampleUpdate(rewrite=found.rewrite.model_dump(mode="json"))
        update |= SampleUpdate(route=self._after_extract(state))
        if screened.policy in ("skip", "semantic_only"):
            update |= _end_with("unsafe", screened.reason)
        if screened.policy == "skip":
            update |= SampleUpdate(semantic_status="policy")
        return update

    def _after_extract(self, state: SampleState) -> str:
        """Return the next node: news first for a text that is kept unless there is newer news."""
        return "retrieve" if state["sample_id"] in self._context.newest else "judge_original"

    async def judge_original(self, state: SampleState) -> SampleUpdate:
        """Label the original blind: a definite contrary label makes the sample unrecoverable."""
        sample, task, team = await self._sample(state)
        verdict = await self._label_original(sample, team)
        contrary = reflect.is_contrary(task, sample, verdict)
        found = item_kind(task).is_gold(task, sample, sample.fields, verdict.label)
        update = SampleUpdate(
            original_label=verdict.label,
            original_fluency=verdict.fluency,
            read_by=verdict.cue if found else "",
            certainty=verdict.confidence if found else "unclear",
            verdicts=[_make_verdict("original_label", 0, not contrary, _describe_label(verdict))],
        )
        if contrary and "outcome" not in state:
            update |= _end_with(
                "label_unrecoverable", f"the original was labelled {_describe_label(verdict)}"
            )
        return update

    async def _label_original(self, sample: Sample, team: Team) -> LabelVerdict:
        """Label an original, with others in one call if the judge does so.

        If that call has no usable answer, the original gets a call of its own.
        """
        batches = self._context.label_batches
        if batches is not None and team.batch_label_judge is not None:
            batch = await batches.find(sample.id)
            if batch is not None:
                place, texts = batch
                try:
                    with share_cost(len(texts)):
                        return (await team.batch_label_judge(texts))[place]
                except ModelCallError as error:
                    batches.mark_failed(sample.id, str(error))
            if failure := batches.find_failure(sample.id):
                log_detail("batch_failed", failure)
        return await team.label_judge(sample.fields)

    # -- D^s ------------------------------------------------------------------------------------

    async def reword(self, state: SampleState) -> SampleUpdate:
        """Reword the text (paper eq. 4), with one retry that names the defects.

        The first text is the extractor's if it wrote one.
        """
        if not self._context.writes_semantic:
            return SampleUpdate()
        sample, task, team = await self._sample(state)
        extraction, listed = _parse_extraction(state), self._context.rules.takedown
        if "rewrite" in state:
            rewrite = Rewrite.model_validate(state["rewrite"])
        elif reason := explain_no_rewording(task, sample, extraction):
            rewrite = Rewrite(fields=sample.fields, reworded=False, reason=reason)
        else:
            rewrite = await team.rewriter(sample, extraction)
        status, defects = await asyncio.to_thread(
            checks.check_rewrite, task, sample, extraction, rewrite, listed
        )
        found = list(defects)
        if defects:
            rewrite = await team.rewriter(
                sample, extraction, feedback=defects, previous=rewrite.fields
            )
            status, defects = await asyncio.to_thread(
                checks.check_rewrite, task, sample, extraction, rewrite, listed
            )
            found += defects
        passed = status == "reworded" and not defects
        update = SampleUpdate(semantic_status="policy") if rewrite.declined else SampleUpdate()
        return update | SampleUpdate(
            semantic=_find_spacing_defects(task, rewrite.fields) if passed else None,
            semantic_feedback=_dump_defects(found),
            verdicts=[
                _make_verdict("reworded", 0, passed, summarise_defects(defects) or rewrite.reason)
            ],
        )

    async def judge_semantic(self, state: SampleState) -> SampleUpdate:
        """Label D^s blind: it stays in the semantic arm only with the label of the original."""
        sample, task, team = await self._sample(state)
        fields = state.get("semantic")
        if fields is None:
            return SampleUpdate()
        verdict = await team.label_judge(fields)
        item = WrittenItem(task=task, sample=sample, fields=fields)
        same = reflect.is_same_gold(item, verdict, state["original_label"])
        return SampleUpdate(
            semantic_status="reworded" if same else "label_changed",
            verdicts=[_make_verdict("semantic_label", 0, same, _describe_label(verdict))],
        )

    # -- D-hat ----------------------------------------------------------------------------------

    async def retrieve(self, state: SampleState) -> SampleUpdate:
        """Search dated news (paper eq. 2); a retry searches news that was not used before."""
        context, tried = self._context, [*state.get("tried", ()), *_list_failed_evidence(state)]
        asked = await self.build_queries(state)
        offered = await context.retrieve(
            RetrievalRequest(
                sample_id=state["sample_id"],
                attempt=state.get("attempt", 1),
                queries=asked,
                tried=tried,
            )
        )
        log_detail("asked", list(offered.asked))
        await context.store.history.add_evidence(offered.items)
        rungs = {item.id: rung for item, rung in offered.items.items()}
        first = "original_label" not in state
        route = "judge_original" if first else "replace"
        update = SampleUpdate(evidence=rungs, tried=tried, route=route)
        newest = context.newest.get(state["sample_id"])
        if rungs and newest and all(item.published_at <= newest for item in offered.items):
            return update | _end_with("no_knowledge", f"no news after {newest:%Y-%m-%d %H:%M}")
        if rungs:
            return update | SampleUpdate(rung=queries.find_best_rung(rungs.values()))
        return update | _end_with("no_knowledge", _explain_no_news(offered.asked, state))

    async def build_queries(self, state: SampleState) -> list[EntityQuery]:
        """Return a sample's queries, without names on the takedown list."""
        _, task, _ = await self._sample(state)
        taken_down = self._context.rules.takedown.names_in
        drafts = queries.plan_queries(_parse_extraction(state), task)
        return [query for query in drafts if not any(taken_down(query.text))]

    async def describe_need(self, state: SampleState) -> tuple[str, str]:
        """Return a sample's text, and the kind of news that it needs."""
        sample, _, _ = await self._sample(state)
        return "\n".join(map(cut_text, sample.fields.values())), _parse_extraction(state).need

    async def make_material_check(self, state: SampleState) -> HasMaterial:
        """Return a function that says whether an event's reports can make an item.

        If the run reads articles, they may: their texts are not known before the search.
        """
        sample, task, _ = await self._sample(state)
        kind, context = item_kind(task), self._context
        if context.reads_articles:
            return lambda reports: True
        if kind.publishes_news:
            return lambda reports: kind.has_material(
                task, sample, cut_to_terms(reports, context.documents)
            )
        return lambda reports: kind.has_material(task, sample, reports)

    async def replace(self, state: SampleState) -> SampleUpdate:
        """Choose the news and plan the new triples (paper eq. 3); the replacer may write D-hat too.

        With a new plan the composer starts from scratch: the defects were those of another text.
        """
        sample, task, team = await self._sample(state)
        offered, attempt = state["evidence"], state.get("attempt", 1)
        evidence = await self._evidence(state, task, list(offered))
        if nothing := item_kind(task).explain_no_material(task, sample, evidence):
            return _end_with("no_knowledge", nothing)
        previous = _parse_plan(state) if "plan" in state else None
        plan = await team.replacer(
            sample,
            _parse_extraction(state),
            evidence,
            read_by=state.get("read_by", ""),
            certainty=state.get("certainty", "high"),
            feedback=_parse_feedback(state),
            previous=previous,
            previous_fields=state.get("composed") or None,
        )
        planned = plan.model_dump(mode="json", exclude={"text"})
        update = SampleUpdate(plan=planned, attempt=attempt, route="compose")
        if plan.decision == "unsafe":
            return update | _end_with("unsafe", plan.reason)
        if plan.decision == "none_fits":
            return update | _end_with(
                "no_knowledge", plan.reason or "none of the offered news fits the sample"
            )
        used = (offered[known] for known in _list_evidence(plan) if known in offered)
        update |= SampleUpdate(rung=queries.find_best_rung(used))
        defects = await asyncio.to_thread(
            checks.check_plan,
            task,
            sample,
            _parse_extraction(state),
            plan,
            evidence,
            self._context.window,
            restraint=self._restraint(state),
        )
        if not defects:
            update |= SampleUpdate(feedback=[], composed={})
        after = "compose"
        if isinstance(plan, PlanWithText):
            fields = _find_spacing_defects(task, plan.text.fields)
            update, after = update | SampleUpdate(composed=fields, used=[]), "check"
        return update | self._record_verdict(state, attempt, "plan", defects, otherwise=after)

    async def compose(self, state: SampleState) -> SampleUpdate:
        """Write D-hat from the original, the new triples and D^s (paper eq. 5)."""
        sample, task, team = await self._sample(state)
        written = await team.composer(await self._build_request(state, task, sample))
        fields = _find_spacing_defects(task, written.fields)
        return SampleUpdate(composed=fields, used=list(written.used_replacements))

    async def check(self, state: SampleState) -> SampleUpdate:
        """Check D-hat by code before any judge is paid (research: pilot §7)."""
        sample, task, _ = await self._sample(state)
        request = await self._build_request(state, task, sample)
        defects = await asyncio.to_thread(
            checks.check_composition,
            task,
            request,
            state["composed"],
            self._context.window,
            restraint=self._restraint(state),
        )
        return self._record_verdict(state, state["attempt"], "checks", defects, otherwise="reflect")

    async def reflect(self, state: SampleState) -> SampleUpdate:
        """Judge facts and label of D-hat, each blind to the other (paper §3.4)."""
        sample, task, team = await self._sample(state)
        fields, plan = state["composed"], _parse_plan(state)
        evidence = await self._evidence(state, task, _list_evidence(plan))
        item = WrittenItem(task=task, sample=sample, fields=fields, evidence=evidence)
        asked = item_kind(task).ask_facts(item)
        facts, (label, wrong_label, beside) = await gather_both(
            team.fact_judge(asked.fields, asked.evidence), judge_gold(item, team)
        )
        log_detail("statements", [each.model_dump(mode="json") for each in facts.statements])
        wrong_facts = reflect.find_fact_defects(asked, fields, facts, plan)
        clumsy = reflect.find_fluency_defects(label, state.get("original_fluency", label.fluency))
        attempt = state["attempt"]
        plainer = (
            reflect.find_ease_defects(item, label, state.get("certainty", "high"))
            if attempt == 1 < self._context.max_attempts and not has_spent_half()
            else []
        )
        said = [
            _make_verdict(
                "facts_supported", attempt, not wrong_facts, summarise_defects(wrong_facts)
            ),
            _make_verdict("label_preserved", attempt, not wrong_label, _describe_label(label)),
            _make_verdict("fluency", attempt, not clumsy, summarise_defects(clumsy)),
            *(_make_verdict(name, attempt, passed, reason) for name, passed, reason in beside),
        ]
        if task.kind == "labels":
            said.append(
                _make_verdict("difficulty", attempt, not plainer, summarise_defects(plainer))
            )
        defects = [*wrong_facts, *wrong_label, *clumsy, *plainer]
        if not defects:
            return _end_with("accepted", "") | SampleUpdate(verdicts=said)
        return self._next(state, attempt, defects) | SampleUpdate(verdicts=said)

    # -- shared ---------------------------------------------------------------------------------

    def _record_verdict(
        self,
        state: SampleState,
        attempt: int,
        name: str,
        defects: Sequence[Defect],
        *,
        otherwise: str,
    ) -> SampleUpdate:
        """Record one verdict of the code, and continue or retry."""
        said = [_make_verdict(name, attempt, not defects, summarise_defects(defects))]
        after = SampleUpdate(route=otherwise)
        if defects:
            after = self._next(state, attempt, defects)
        return after | SampleUpdate(verdicts=said)

    def _next(self, state: SampleState, attempt: int, defects: Sequence[Defect]) -> SampleUpdate:
        """Return the next node of a text with defects: another attempt or the end."""
        limit, previous = self._context.max_attempts, _parse_feedback(state)
        decision = decide_next(defects, previous=previous, attempt=attempt, max_attempts=limit)
        feedback = SampleUpdate(feedback=_dump_defects(defects))
        if isinstance(decision, FinalOutcome):
            return _end_with(decision.outcome, decision.reason) | feedback
        again = SampleUpdate(route=START_OF[decision.route], attempt=attempt + 1)
        return again | feedback

    async def _sample(self, state: SampleState) -> tuple[Sample, Task, Team]:
        sample = await self._context.store.load_sample(state["sample_id"])
        part = self._context.find_team(sample)
        return sample, part.task, part.team

    async def _evidence(self, state: SampleState, task: Task, ids: Sequence[str]) -> list[Evidence]:
        """Return stored evidence, with the passages that the sample is shown of its articles.

        Text that is copied verbatim into the sample is cut to what may be published.
        """
        store = self._context.store
        stored = await store.history.load_evidence(ids)
        passages = (
            await asyncio.to_thread(store.events.passages, state["sample_id"])
            if self._context.reads_articles
            else {}
        )
        items = [
            stored[known].model_copy(update={"snippet": passages[known]})
            if known in passages
            else stored[known]
            for known in ids
            if known in stored
        ]
        allowed = [item for item in items if not self._context.rules.takedown.forbids(item)]
        if item_kind(task).publishes_news:
            return cut_to_terms(allowed, self._context.documents)
        return allowed

    def _restraint(self, state: SampleState) -> checks.Restraint:
        neutral = state.get("policy") == "neutral_only"
        return checks.Restraint(neutral_only=neutral, takedown=self._context.rules.takedown)

    async def _build_request(
        self, state: SampleState, task: Task, sample: Sample
    ) -> CompositionRequest:
        plan = _parse_plan(state)
        return CompositionRequest(
            sample=sample,
            extraction=_parse_extraction(state),
            plan=plan,
            evidence=tuple(await self._evidence(state, task, _list_evidence(plan))),
            substituted=substitute(sample, plan),
            reworded=state.get("semantic"),
            read_by=state.get("read_by", ""),
            certainty=state.get("certainty", "high"),
            feedback=_parse_feedback(state),
            previous=state.get("composed") or None,
        )


def _find_spacing_defects(task: Task, fields: Fields) -> Fields:
    return {name: checks.restore_spacing(task, text) for name, text in fields.items()}


def _dump_defects(defects: Sequence[Defect]) -> list[Json]:
    return [defect.model_dump(mode="json") for defect in defects]


def _end_with(outcome: Outcome, reason: str) -> SampleUpdate:
    return SampleUpdate(outcome=outcome, reason=reason, route=END)


def _make_verdict(name: str, attempt: int, passed: bool, reason: str) -> Json:
    verdict = Verdict(name=name, attempt=attempt, passed=passed, reason=reason)
    return verdict.model_dump(mode="json")


def _describe_label(verdict: LabelVerdict) -> str:
    """Return a label verdict as one clause."""
    cue = f", by {verdict.cue!r}" if verdict.cue else ""
    read = "" if verdict.fluency == 3 else f", fluency {verdict.fluency}"
    return f"{verdict.label} ({verdict.confidence} confidence{cue}{read})"


def _parse_extraction(state: SampleState) -> Extraction:
    return Extraction.model_validate(state["extraction"])


def _parse_plan(state: SampleState) -> Plan:
    return Plan.model_validate(state["plan"])


def _parse_feedback(state: SampleState) -> tuple[Defect, ...]:
    return tuple(Defect.model_validate(defect) for defect in state.get("feedback", ()))


def _list_evidence(plan: Plan) -> list[str]:
    """Return the ids of the evidence that a plan's statements name, once each."""
    named = (known for statement in plan.statements for known in statement.evidence_ids)
    return list(dict.fromkeys(named))


def _list_failed_evidence(state: SampleState) -> list[str]:
    """Return the evidence of a plan that failed; empty on the first try."""
    return _list_evidence(_parse_plan(state)) if "plan" in state else []


def _explain_no_news(asked: Sequence[Json], state: SampleState) -> str:
    """Return the reason that there is no news, for the trace."""
    if not asked:
        return "the text mentions nothing to search for"
    if "plan" in state:
        return f"no other news after: {summarise_defects(_parse_feedback(state))}"
    reasons = sorted({row["why_none"] for row in asked if row["why_none"]}) or ["no_news"]
    return f"{', '.join(reasons)} for {', '.join(repr(row['text']) for row in asked)}"
