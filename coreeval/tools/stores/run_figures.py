"""Figures of a run for its report: outcomes, cited evidence, and outstanding samples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, and_, case, cast, func, select

from coreeval.schema import Outcome, Precision, Rung
from coreeval.tools.stores import run_tables as t
from coreeval.tools.stores.run_file import RunFile

SampleFate = tuple[str, str, Outcome, Rung, str | None]
"""The id, label name, outcome, rung and, if it was kept, release of a sample."""
MOST_RANKED = 20
"""The most samples named as outstanding by one measure."""


@dataclass(frozen=True, kw_only=True)
class EvidenceUse:
    """A piece of evidence that accepted samples cite."""

    domain: str
    published_at: str
    precision: Precision
    samples: int
    facts: int


@dataclass(frozen=True, kw_only=True)
class SampleRank:
    """An outstanding sample, with the number or time that makes it so."""

    sample_id: str
    value: float | str


class RunFigures:
    """Totals over the samples of a run, and the top of its rankings."""

    def __init__(self, file: RunFile) -> None:
        self._file = file

    def fates(self) -> Iterator[SampleFate]:
        """Stream the outcome of each sample, in the benchmark's order."""
        return self._file.tuples(
            select(
                t.samples.c.id,
                t.samples.c.label_text,
                t.results.c.outcome,
                t.results.c.rung,
                t.results.c.kept_from,
            )
            .join(t.results, t.results.c.sample_id == t.samples.c.id)
            .order_by(t.samples.c.seq)
        )

    def attempts(self) -> dict[int, int]:
        """Return the number of accepted samples by number of attempts, without kept samples."""
        known = t.results.c
        query = select(known.attempts, func.count()).where(_ACCEPTED, known.kept_from.is_(None))
        return dict(self._file.tuples(query.group_by(known.attempts).order_by(known.attempts)))

    def evidence_uses(self) -> Iterator[EvidenceUse]:
        """Stream the evidence of the replaced facts of accepted samples, without duplicates."""
        known, full, told = t.facts.c, t.evidence.c, t.kept_evidence.c
        once = (
            select(
                known.evidence_id,
                func.count(known.sample_id.distinct()).label("samples"),
                func.count().label("facts"),
            )
            .join(t.results, t.results.c.sample_id == known.sample_id)
            .where(_ACCEPTED)
            .group_by(known.evidence_id)
            .subquery()
        )
        parts = [
            func.coalesce(full.body[part].as_string(), told.body[part].as_string())
            for part in ("domain", "published_at", "published_precision")
        ]
        rows = self._file.tuples(
            select(*parts, once.c.samples, once.c.facts)
            .join(t.evidence, full.id == once.c.evidence_id, isouter=True)
            .join(t.kept_evidence, told.id == once.c.evidence_id, isouter=True)
            .order_by(once.c.evidence_id)
        )
        for domain, published_at, precision, samples, facts in rows:
            yield EvidenceUse(
                domain=domain,
                published_at=published_at,
                precision=precision,
                samples=samples,
                facts=facts,
            )

    # -- samples that stand out -----------------------------------------------------------------

    def most_tried(self, outcome: Outcome) -> list[SampleRank]:
        """Return the samples with an outcome, most attempts first."""
        known = t.results.c
        query = select(known.sample_id, known.attempts).where(known.outcome == outcome)
        return self._top_ranks(query, known.attempts.desc())

    def most_replaced(self) -> list[SampleRank]:
        """Return the accepted samples, most replaced facts first."""
        known, number = t.facts.c.sample_id, func.count()
        query = (
            select(known, number)
            .join(t.results, t.results.c.sample_id == known)
            .where(_ACCEPTED)
            .group_by(known)
        )
        return self._top_ranks(query, number.desc())

    def oldest_cited(self) -> list[SampleRank]:
        """Return the accepted samples with the date of their oldest evidence, oldest first."""
        known = t.results.c
        earliest = known.freshness["earliest"].as_string()
        query = select(known.sample_id, earliest).where(_ACCEPTED, earliest.is_not(None))
        return self._top_ranks(query, earliest)

    def loosest_found(self, rungs: Sequence[Rung]) -> list[SampleRank]:
        """Return the accepted samples whose news was found on one of these rungs, in rung order."""
        known = t.results.c
        place = case({rung: place for place, rung in enumerate(rungs)}, value=known.rung)
        query = select(known.sample_id, place).where(_ACCEPTED, known.rung.in_(rungs))
        return self._top_ranks(query, place)

    def dearest(self) -> list[SampleRank]:
        """Return the samples by the amount paid for them, the most expensive first."""
        usd = func.sum(t.calls.c.usd)
        query = (
            select(t.calls.c.sample_id, usd)
            .join(t.samples, t.samples.c.id == t.calls.c.sample_id)
            .where(t.calls.c.cached.is_(False), t.calls.c.usd > 0)
            .group_by(t.calls.c.sample_id)
        )
        return self._top_ranks(query, usd.desc())

    def lost_by_targets(self, targets: Sequence[str]) -> list[SampleRank]:
        """Return the samples that targets get right as original and wrong as updated.

        Each comes with the number of such targets. Right and wrong must hold for every template
        that was used for both.
        """
        said = t.predictions.c
        is_label = said.answer == t.samples.c.label_text
        right = cast(func.coalesce(said.right, is_label), Integer)
        is_old, is_new = said.source == "original", said.source == "updated"
        lost = and_(
            func.min(case((is_old, right))) == 1,
            func.max(case((is_new, right))) == 0,
        )
        by_target = (
            select(said.sample_id, said.target)
            .join(t.samples, t.samples.c.id == said.sample_id)
            .where(said.target.in_(targets), is_old | is_new, said.kind != "refused")
            .group_by(said.sample_id, said.target)
            .having(lost)
            .subquery()
        )
        number = func.count()
        query = select(by_target.c.sample_id, number).group_by(by_target.c.sample_id)
        return self._top_ranks(query, number.desc())

    def _top_ranks(self, query: Select[Any], order: ColumnElement[Any]) -> list[SampleRank]:
        """Return the first rows of a query of ids and numbers; ties are ordered by id."""
        first = query.order_by(order, query.selected_columns[0]).limit(MOST_RANKED)
        return [SampleRank(sample_id=key, value=value) for key, value in self._file.tuples(first)]


_ACCEPTED = t.results.c.outcome == "accepted"
