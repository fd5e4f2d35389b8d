"""Answers of the six roles over the wire, given by the offline team.

So a run over HTTP can be held against a run of the same rules in process: what differs is the
fault of prompts, parsing, stores or wire. Nothing is remembered but what a prompt can be answered
from again, so that a server may be started anew at any time.
"""

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from coreeval.agents import checks, queries
from coreeval.agents.edits import substitute
from coreeval.agents.llm_role import unchecked_fields
from coreeval.agents.offline.build import offline_team
from coreeval.agents.roles import CompositionRequest
from coreeval.config import Config
from coreeval.evaluation.benchmarks import iter_benchmark, list_splits
from coreeval.graph.event_offers import REPORTS_PER_QUERY
from coreeval.graph.inputs import open_news
from coreeval.graph.setup import set_up
from coreeval.schema import (
    Defect,
    Evidence,
    Extraction,
    Plan,
    Replacement,
    RoleName,
    Sample,
    Statement,
)
from coreeval.tools.workspace import Workspace
from tests.support.llm_server import Reply, Request
from tests.support.wire import (
    Complaint,
    Fields,
    LastPlan,
    LastTry,
    Prompted,
    ShownChange,
    ShownItem,
    ShownNews,
    ShownPlan,
)

SHAPE_OF: Mapping[RoleName, str] = {
    "extractor": "extraction",
    "replacer": "plan",
    "rewriter": "rewrite",
    "composer": "composition",
    "fact_judge": "fact_check",
    "label_judge": "label",
}
"""The schema name by which a role's request is known."""
assert set(SHAPE_OF) == set(get_args(RoleName))
Said = Mapping[str, object]
Player = Callable[[Prompted], Awaitable[Said]]


class OfflineAnswers:
    """Plays every role of one benchmark; an answer is made once for a request body.

    Args:
        config: The config of the run that will ask: its task, dataset and news.
        cache: Where the news is made ready for searching.
    """

    def __init__(self, config: Config, cache: Path) -> None:
        setup = set_up(config, datetime.now(UTC))
        self._task, self._window = setup.task, setup.window
        self._knowledge = open_news(setup, Workspace(cache))
        self._team = offline_team(
            setup.task,
            names=self._knowledge.names(setup.window),
            seed=config.run.seed,
            train=_samples(config, config.dataset.train_split),
        )
        both = [
            *_samples(config, config.dataset.split),
            *_samples(config, config.dataset.train_split),
        ]
        self._known = {
            _text_key(sample.fields, sample.label_text): sample for sample in reversed(both)
        }
        self._extractions: dict[str, Extraction] = {}
        self._answers: dict[str, asyncio.Task[Said]] = {}
        self._players: dict[str, Player] = {
            "extraction": self._extract,
            "extraction_and_rewrite": self._extract_and_rewrite,
            "plan": self._plan,
            "plan_and_text": self._plan_and_write,
            "rewrite": self._rewrite,
            "composition": self._compose,
            "fact_check": self._check_facts,
            "label": self._label,
            "labels": self._label_each,
            "LabelAnswer": self._guess,
        }

    async def __call__(self, request: Request) -> str | Reply:
        """Answer a request, or refuse it with the reason why it cannot be answered."""
        body = json.dumps(request, sort_keys=True)
        if body not in self._answers:
            prompted = Prompted(request)
            self._answers[body] = asyncio.ensure_future(self._play(prompted))
        try:
            return json.dumps(await asyncio.shield(self._answers[body]), ensure_ascii=False)
        except Exception as error:  # noqa: BLE001 - told to the client, so that the test shows it
            said = f"the test server cannot answer: {type(error).__name__}: {error}"
            return Reply(status=400, error={"message": said})

    def close(self) -> None:
        """Free the news."""
        self._knowledge.close()

    async def _play(self, prompted: Prompted) -> Said:
        return await self._players[prompted.shape](prompted)

    # -- the roles ------------------------------------------------------------------------------

    async def _extract(self, prompted: Prompted) -> Said:
        return (await self._found(self._sample(prompted))).model_dump(mode="json")

    async def _extract_and_rewrite(self, prompted: Prompted) -> Said:
        sample = self._sample(prompted)
        found = await self._found(sample)
        rewrite = await self._team.rewriter(sample, found)
        return found.model_dump(mode="json") | rewrite.model_dump(mode="json")

    async def _plan(self, prompted: Prompted) -> Said:
        sample = self._sample(prompted)
        news = await self._news(sample, prompted)
        plan = await self._planned(sample, news, prompted.block("feedback", LastPlan).defects)
        return {**_plan_answer(plan, news), "sketch": "", "claims": self._no_claims()}

    async def _plan_and_write(self, prompted: Prompted) -> Said:
        sample = self._sample(prompted)
        news = await self._news(sample, prompted)
        plan = await self._planned(sample, news, prompted.block("feedback", LastPlan).defects)
        fields = sample.fields
        if plan.decision == "use":
            request = CompositionRequest(
                sample=sample,
                extraction=await self._found(sample),
                plan=plan,
                evidence=tuple(news),
                substituted=substitute(sample, plan),
                reworded=None,
            )
            fields = (await self._team.composer(request)).fields
        tweet = self._task.text_kind == "tweet"
        rest: Said = {"moment": "", "drafts": [], "stumble": ""} if tweet else {}
        return {**_plan_answer(plan, news), **rest, "fields": fields}

    async def _planned(
        self, sample: Sample, news: Sequence[Evidence], complaints: Sequence[Complaint]
    ) -> Plan:
        found = await self._found(sample)
        return await self._team.replacer(sample, found, news, feedback=_defects(complaints))

    def _no_claims(self) -> dict[str, str]:
        return dict.fromkeys(unchecked_fields(self._task), "")

    async def _rewrite(self, prompted: Prompted) -> Said:
        sample = self._sample(prompted)
        complaints = prompted.block("feedback", LastTry).defects
        found = await self._found(sample)
        rewrite = await self._team.rewriter(sample, found, feedback=_defects(complaints))
        return rewrite.model_dump(mode="json")

    async def _compose(self, prompted: Prompted) -> Said:
        sample = self._sample(prompted)
        news = await self._news(sample, prompted)
        plan = _plan_of(prompted.block("plan", ShownPlan), news, pair=len(self._task.fields) > 1)
        reworded = prompted.reworded()
        last = prompted.block("feedback", LastTry)
        brief = CompositionRequest(
            sample=sample,
            extraction=await self._found(sample),
            plan=plan,
            evidence=tuple(news),
            substituted=substitute(sample, plan),
            reworded=reworded,
            feedback=_defects(last.defects),
            previous=last.previous,
        )
        said = (await self._team.composer(brief)).model_dump(mode="json")
        used = [number + 1 for number in said["used_replacements"]]
        rest = {"moment": "", "draft": "", "stumble": ""}
        return said | rest | {"used_replacements": used}

    async def _check_facts(self, prompted: Prompted) -> Said:
        shown = prompted.block("news", tuple[ShownNews, ...])
        news = [_as_evidence(item) for item in shown]
        verdict = await self._team.fact_judge(prompted.block("text", Fields), news)
        number = {item.id: place for place, item in enumerate(news, start=1)}
        return {
            "statements": [
                one.model_dump(exclude={"evidence_id"})
                | {"evidence": number[one.evidence_id] if one.evidence_id else None}
                for one in verdict.statements
            ]
        }

    async def _label(self, prompted: Prompted) -> Said:
        verdict = await self._team.label_judge(prompted.block("text", Fields))
        return verdict.model_dump(mode="json")

    async def _label_each(self, prompted: Prompted) -> Said:
        texts = prompted.block("texts", list[dict[str, object]])
        return {
            "texts": [
                {"number": text["number"]}
                | (
                    await self._team.label_judge(
                        {name: str(text[name]) for name in self._task.fields}
                    )
                ).model_dump(mode="json")
                for text in texts
            ]
        }

    async def _guess(self, prompted: Prompted) -> Said:
        """Play a target that knows nothing: its label follows from the text by chance."""
        names = [label.name for label in self._task.labels]
        return {"label": names[zlib.crc32(prompted.user.encode()) % len(names)]}

    # -- what a prompt does not show ------------------------------------------------------------

    def _sample(self, prompted: Prompted) -> Sample:
        item = prompted.block("item", ShownItem)
        return self._known[_text_key(item.fields, item.label)]

    async def _found(self, sample: Sample) -> Extraction:
        if sample.id not in self._extractions:
            found = await self._team.extractor(sample)
            few = [one.model_copy(update={"aliases": one.aliases[:4]}) for one in found.entities]
            found = found.model_copy(update={"entities": tuple(few)})
            self._extractions[sample.id] = checks.clean_extraction(self._task, sample, found)
        return self._extractions[sample.id]

    async def _news(self, sample: Sample, prompted: Prompted) -> list[Evidence]:
        """Return the shown news as the store has it, with its names and ids."""
        asked = queries.plan_queries(await self._found(sample), self._task)
        found = await self._knowledge.fetch(asked, self._window, REPORTS_PER_QUERY)
        stored = {_news_key(item): item for items in found.by_query.values() for item in items}
        shown = prompted.block("news", tuple[ShownNews, ...])
        return [stored[_shown_key(item)] for item in shown]


def _samples(config: Config, split: str) -> list[Sample]:
    """Return a split's samples, none where there is no such split."""
    task = set_up(config, datetime.now(UTC)).task
    if split not in list_splits(config.dataset):
        return []
    rows = iter_benchmark(config.dataset, task, split=split)
    return [row for row in rows if isinstance(row, Sample)]


def _text_key(fields: Fields, label: str) -> str:
    return json.dumps([fields, label], sort_keys=True)


def _news_key(item: Evidence) -> tuple[object, ...]:
    return item.title, item.domain, item.published_at.date()


def _shown_key(item: ShownNews) -> tuple[object, ...]:
    return item.title, item.domain, item.published


def _as_evidence(item: ShownNews) -> Evidence:
    return Evidence(
        id=f"{item.number:016x}",
        url=f"https://{item.domain}/{item.number}",
        domain=item.domain,
        title=item.title,
        snippet=item.snippet,
        published_at=datetime(item.published.year, item.published.month, item.published.day),
        published_precision="exact",
        origin="prompt",
    )


def _defects(complaints: Sequence[Complaint]) -> tuple[Defect, ...]:
    """Return complaints as defects; the rules look at their messages only."""
    return tuple(
        Defect(check=one.check, kind="form", message=one.message, route="compose")
        for one in complaints
    )


def _plan_answer(plan: Plan, news: Sequence[Evidence]) -> Said:
    number = {item.id: place for place, item in enumerate(news, start=1)}
    statements = [
        one.model_dump(exclude={"evidence_ids"})
        | {"evidence": [number[known] for known in one.evidence_ids]}
        for one in plan.statements
    ]
    replacements = [
        one.model_dump(exclude={"mode", "statement_index", "same_type"})
        | {"statement": one.statement_index + 1}
        for one in plan.replacements
    ]
    rest = plan.model_dump(include={"reason", "decision", "replaces_all", "delete", "persons"})
    return rest | {"statements": statements, "replacements": replacements}


def _plan_of(shown: ShownPlan, news: Sequence[Evidence], *, pair: bool) -> Plan:
    """Return the plan that a composer is shown, with what is left out for it put back."""
    statements = [
        Statement.model_validate(one.model_dump() | {"evidence_ids": [_source(one.quote, news)]})
        for one in shown.statements
    ]
    return Plan(
        decision="use",
        statements=tuple(statements),
        replacements=tuple(_replacement(one, statements, pair=pair) for one in shown.replacements),
        delete=shown.delete,
        persons=shown.persons,
    )


def _source(quote: str, news: Sequence[Evidence]) -> str:
    return next(item.id for item in news if quote in item.title or quote in item.snippet)


def _replacement(
    change: ShownChange, statements: Sequence[Statement], *, pair: bool
) -> Replacement:
    """Put back what a change rests on; for a tweet the rules swap names after the first change."""
    parts = (change.after.head, change.after.relation, change.after.tail)
    held = [i for i, one in enumerate(statements) if all(part in one.text for part in parts)]
    return Replacement(
        before=change.before,
        after=change.after,
        mode="replace" if change.before else "insert",
        field=change.field,
        statement_index=min(held, key=lambda i: len(statements[i].text), default=0),
        same_type=not pair and change.number > 0,
    )
