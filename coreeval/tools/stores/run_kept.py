"""What a run took from a release: samples with their results, and what was said of their evidence.

Their evidence lies apart from what this run was offered, which is whole and comes first.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, func, select

from coreeval.schema import Evidence, ReplacedFact, Result
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.causes import cause_of
from coreeval.tools.stores.run_file import RunFile
from coreeval.tools.stores.run_rows import Excerpt, Kept
from coreeval.tools.stores.sql import Row


class RunKept(RunFile):
    """The kept samples of a run."""

    def _keep(self, connection: Connection, kept: Sequence[Kept]) -> None:
        """Write results, facts and evidence in the caller's transaction."""
        results = [result_row(one.result, self._stamp()) for one in kept]
        facts = [fact_row(n, fact) for one in kept for n, fact in enumerate(one.result.facts)]
        excerpts = {each.evidence.id: each for one in kept for each in one.excerpts}
        for table, rows in (
            (t.results, results),
            (t.facts, facts),
            (t.kept_evidence, [_excerpt_row(each) for each in excerpts.values()]),
        ):
            if rows:
                self._put[table].run(connection, rows)

    def kept_count(self) -> int:
        """Return how many samples were taken from a release."""
        known = t.results.c.kept_from
        return self._count(select(func.count()).where(known.is_not(None)))

    def kept_among(self, samples: Iterable[str]) -> set[str]:
        """Return those of some samples that were taken from a release."""
        known = t.results.c
        query = select(known.sample_id).where(
            known.sample_id.in_(set(samples)), known.kept_from.is_not(None)
        )
        return {sample_id for (sample_id,) in self._tuples(query)}

    def excerpts(self, ids: Iterable[str]) -> dict[str, Excerpt]:
        """Return what releases said of evidence, by its id."""
        wanted = set(ids)
        if not wanted:
            return {}
        query = select(t.kept_evidence).where(t.kept_evidence.c.id.in_(wanted))
        return {
            row["id"]: Excerpt(
                evidence=Evidence.model_validate(row["body"]),
                snippet_sha256=row["snippet_sha256"],
            )
            for row in self._rows(query)
        }


def result_row(result: Result, ended_at: str) -> Row:
    """Return how a sample ended as the store has it."""
    cause = cause_of(result.outcome, result.reason)
    return result.model_dump(mode="json", exclude={"facts"}) | {
        "ended_at": ended_at,
        "cause": cause,
    }


def fact_row(number: int, fact: ReplacedFact) -> Row:
    """Return a replaced fact as the store has it."""
    return fact.model_dump() | {"ord": number}


def _excerpt_row(excerpt: Excerpt) -> Row:
    evidence = excerpt.evidence
    return {
        "id": evidence.id,
        "body": evidence.model_dump(mode="json"),
        "snippet_sha256": excerpt.snippet_sha256,
    }
