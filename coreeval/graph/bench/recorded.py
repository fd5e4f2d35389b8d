"""Situations of a run: what a role was given on a sample's last attempt, from the run's records."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from coreeval.agents.roles import Team
from coreeval.config import ROLES
from coreeval.errors import RunStateError
from coreeval.graph.bench.situations import Missed, Reached, Situation, StandIn, task_for
from coreeval.graph.crew import Crew, Part
from coreeval.graph.nodes import SampleNodes
from coreeval.graph.setup import Setup
from coreeval.graph.state import SampleState, fresh_sample
from coreeval.schema import RoleName, Sample
from coreeval.tools.knowledge import KnowledgeSource
from coreeval.tools.stores.run_records import StepRecord
from coreeval.tools.stores.run_store import RunStore

ASKED_IN: Mapping[RoleName, Sequence[str]] = {
    "extractor": ("extract",),
    "replacer": ("replace",),
    "rewriter": ("reword",),
    "composer": ("compose",),
    "fact_judge": ("reflect",),
    "label_judge": ("judge_original", "judge_semantic", "reflect"),
}
"""The nodes that ask each role."""


class Recorded:
    """A finished or running run, looked at and not changed.

    A node's arguments are not recorded, but what each node changed is: the state before a step is
    the sum of the steps before it, and the node is taken through it again up to the role's call.
    """

    def __init__(self, store: RunStore, setup: Setup, role: RoleName) -> None:
        self._store, self._setup, self._role = store, setup, role
        stand_ins: dict[str, Any] = {each: _silent for each in ROLES}
        self._team = Team(**(stand_ins | {role: StandIn(role)}))
        self._nodes = SampleNodes(
            Crew(
                part_of=lambda sample: Part(task=task_for(setup, sample), team=self._team),
                knowledge=cast(KnowledgeSource, None),  # no node that asks a role looks for news
                offer=_silent,
                window=setup.window,
                store=store,
                rules=setup.rules,
                candidates=setup.config.knowledge.candidates,
                max_attempts=setup.config.run.max_attempts,
            )
        )

    def samples(self) -> Iterator[Sample]:
        """Yield the run's samples: those that have ended, then those that have not."""
        yield from (one.sample for one in self._store.sample_results())
        yield from map(self._store.sample, self._store.pending())

    async def situation(self, sample: Sample) -> Situation | Missed:
        """Return what the role was given last."""
        steps = self._store.steps(sample.id)
        for place, step in reversed(list(enumerate(steps))):
            if step.node not in ASKED_IN[self._role]:
                continue
            given = await self._given(step, _state(sample, steps[:place]))
            if given is not None:
                task = task_for(self._setup, sample)
                calls = tuple(call for call in step.calls if call.role == self._role)
                return Situation(
                    role=self._role, sample=sample, task=task, given=given, calls=calls
                )
        result = self._store.result(sample.id)
        how = f"it ended as {result.outcome}" if result else "it has not ended"
        return Missed(sample_id=sample.id, reason=f"the run did not ask the {self._role}: {how}")

    async def _given(self, step: StepRecord, state: SampleState) -> Mapping[str, Any] | None:
        try:
            await getattr(self._nodes, step.node)(state)
        except Reached as reached:
            return reached.given
        except KeyError as error:
            raise RunStateError(
                f"the record of {step.sample_id} lacks {error} before the step {step.node}",
                hint="it was written by another version; refresh again, or leave --run out",
            ) from None
        return None


async def _silent(*_values: object, **_named: object) -> Any:  # noqa: ANN401 - for any of them
    """Stand beside the role that is listened to, in the one node that asks two."""


def _state(sample: Sample, steps: Sequence[StepRecord]) -> SampleState:
    state: dict[str, Any] = dict(fresh_sample(sample.id))
    for step in steps:
        state |= step.detail
    return cast(SampleState, state)
