"""How the samples of a run stand, for laying two runs side by side."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Engine, Select, Text, case, cast, func, select

from coreeval.schema import ReplacedFact, Result, Sample
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_rows import Ended

_SAMPLE = [t.samples.c[name] for name in Sample.model_fields]
_RESULT = [t.results.c[name] for name in Result.model_fields if name != "facts"]


Standing = tuple[str, str, str, str | None, str | None]
"""Of a sample its id, label, outcome, updated and semantic text; a text as the JSON that the file
has, None where it is in no arm. It is no class, since there are many."""


class RunStandings:
    """The ended samples of a run, all of them lightly or a few with all they have."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def stamp(self) -> tuple[int, str]:
        """Return the number of samples that have ended and when the last did: it tells a change."""
        query = select(func.count(), func.coalesce(func.max(t.results.c.ended_at), ""))
        with self._engine.connect() as connection:
            number, last = connection.execute(query).one()
        return number, last

    def all(self) -> Iterable[Standing]:
        """Return the samples that have ended, in the benchmark's order."""
        ended = t.results.c
        updated = case((ended.outcome == "accepted", cast(ended.updated, Text)))
        semantic = case((ended.semantic_status == "reworded", cast(ended.semantic, Text)))
        query = (
            select(t.samples.c.id, t.samples.c.label_text, ended.outcome, updated, semantic)
            .join(t.results, ended.sample_id == t.samples.c.id)
            .order_by(t.samples.c.seq)
        )
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def some(self, ids: Sequence[str]) -> dict[str, Ended]:
        """Return those of these samples that have ended, with their replaced facts, by id."""
        facts = self._facts(ids)
        query = (
            select(*_SAMPLE, *_RESULT)
            .join(t.results, t.results.c.sample_id == t.samples.c.id)
            .where(t.samples.c.id.in_(ids))
        )
        return {row["id"]: _ended(row, facts.get(row["id"], [])) for row in self._rows(query)}

    def _facts(self, ids: Sequence[str]) -> dict[str, list[ReplacedFact]]:
        query = select(t.facts).where(t.facts.c.sample_id.in_(ids))
        found = dict[str, list[ReplacedFact]]()
        for row in self._rows(query.order_by(t.facts.c.sample_id, t.facts.c.ord)):
            fact = {name: row[name] for name in ReplacedFact.model_fields}
            found.setdefault(row["sample_id"], []).append(ReplacedFact.model_validate(fact))
        return found

    def _rows(self, query: Select[Any]) -> list[Mapping[str, Any]]:
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]


def _ended(row: Mapping[str, Any], facts: Sequence[ReplacedFact]) -> Ended:
    rest = {column.name: row[column.name] for column in _RESULT}
    return Ended(
        sample=Sample.model_validate({name: row[name] for name in Sample.model_fields}),
        result=Result.model_validate({**rest, "facts": tuple(facts)}),
    )
