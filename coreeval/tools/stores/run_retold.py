"""What a run used on its samples, as somebody needs it who repeats the run."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select

from coreeval.schema import RoleName
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_file import RunFile

Used = tuple[str, RoleName, str]
"""Id of a sample, a role, the key of a call that it made in the role."""
Look = tuple[str, int, dict[str, Any]]
"""Id of a sample, an attempt, and what the step that looked for news noted."""
Trouble = tuple[str, str, str]
"""Id of a sample, a node, and how its step went wrong."""


class RunRetold(RunFile):
    """Calls, news and troubles of the samples, those of train items left out."""

    def used_calls(self) -> Iterator[Used]:
        """Stream the calls of samples, by role and key."""
        known = t.calls.c
        query = select(known.sample_id, known.role, known.key).join(
            t.samples, t.samples.c.id == known.sample_id
        )
        return self._tuples(query.order_by(known.role, known.key, known.sample_id))

    def looks(self) -> Iterator[Look]:
        """Stream what samples were offered, in the benchmark's order and that of their attempts."""
        known = t.steps.c
        query = select(known.sample_id, known.attempt, known.detail).join(
            t.samples, t.samples.c.id == known.sample_id
        )
        chosen = query.where(known.node == "retrieve")
        return self._tuples(chosen.order_by(t.samples.c.seq, known.attempt))

    def troubles(self) -> Iterator[Trouble]:
        """Stream the steps of samples that came to nothing, in the benchmark's order."""
        known = t.steps.c
        query = select(known.sample_id, known.node, known.error).join(
            t.samples, t.samples.c.id == known.sample_id
        )
        return self._tuples(
            query.where(known.error != "").order_by(t.samples.c.seq, known.started_at)
        )
