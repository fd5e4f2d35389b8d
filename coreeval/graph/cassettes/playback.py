"""A cassette in the place of benchmark files and news: what a run was given, given once more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coreeval.errors import NotRecorded
from coreeval.evaluation.benchmarks import target_of
from coreeval.graph.job import Job
from coreeval.graph.offering import Looking, Offer, Offered
from coreeval.releases.cassettes.lines import EvidenceLine, NameLine, OfferLine, Pass, SampleLine
from coreeval.releases.cassettes.opening import Cassette
from coreeval.schema import (
    Coverage,
    EntityQuery,
    Evidence,
    NamedEntity,
    Retrieval,
    Rung,
    Sample,
    Window,
)
from coreeval.tools.knowledge import KnowledgeSource

Place = tuple[str, str, int]
"""A pass, the id of a sample, and an attempt."""


class RecordedNews:
    """Knows the names that the news mentioned; what each sample was offered is known apart."""

    name = "cassette"
    remote = False

    def __init__(self, known: Sequence[NamedEntity]) -> None:
        self._known = known

    async def fetch(self, queries: Sequence[EntityQuery], window: Window, k: int) -> Retrieval:
        """Answer nothing: nobody gathers from a source that is not remote."""
        return Retrieval(by_query={}, reasons=dict.fromkeys((q.id for q in queries), "not_covered"))

    def coverage(self, window: Window) -> Coverage:
        """Say that articles are not counted here."""
        return Coverage(articles=None, days=0)

    def names(self, window: Window) -> list[NamedEntity]:
        """Return the names."""
        return list(self._known)

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Playback:
    """The inputs of a run as a cassette has them."""

    names: Mapping[Pass, Sequence[NamedEntity]]
    """By pass."""
    offers: Mapping[Place, OfferLine]
    evidence: Mapping[tuple[str, str], bytes]
    """By pass and id, as JSON: it takes a fifth of the room."""
    learnt: list[Sample]
    stance_targets: Sequence[str]

    def news(self, job: Job) -> KnowledgeSource:
        """Return who knows the names of a pass."""
        return RecordedNews(self.names["control" if job.stage == "control" else "refresh"])

    def offer(self, job: Job, knowledge: KnowledgeSource) -> Offer:
        """Return what finds the record of an offer."""

        async def offer(looking: Looking) -> Offered:
            line = self._line(job.stage, looking)
            return Offered(
                asked=[query.model_dump(mode="json") for query in line.asked or ()],
                items=self._items(job.stage, line),
            )

        return offer

    def _line(self, stage: str, looking: Looking) -> OfferLine:
        """Return the record of what a sample was offered.

        Raises:
            NotRecorded: there is none, or it asked for something else then.
        """
        line = self.offers.get((stage, looking.sample_id, looking.attempt))
        if line is None:
            raise NotRecorded(f"no news is recorded for attempt {looking.attempt}")
        now = [query.text for query in looking.queries]
        then = None if line.asked is None else [query.text for query in line.asked]
        if then is not None and now != then:
            raise NotRecorded(f"it asks for news of {now}, and asked for {then} when recorded")
        return line

    def _items(self, stage: str, line: OfferLine) -> dict[Evidence, Rung]:
        found = {known: self.evidence.get((stage, known)) for known, _ in line.items}
        lost = [known for known, body in found.items() if body is None]
        if lost:
            raise NotRecorded(f"the evidence {lost[0]} is not recorded")
        return {
            Evidence.model_validate_json(found[known] or b""): rung for known, rung in line.items
        }

    def train(self, job: Job) -> list[Sample]:
        """Return the labelled samples."""
        return self.learnt

    def targets(self, job: Job) -> Sequence[str]:
        """Return the stance targets of the samples."""
        return self.stance_targets

    def oddity(self, job: Job, rows: int) -> str | None:
        """Say nothing beyond what the manifest says."""
        return None


def playback_of(cassette: Cassette, learnt: list[Sample]) -> Playback:
    """Return what a cassette has in the place of files and news.

    Raises:
        CassetteError: one of its lines is malformed.
    """
    names: dict[Pass, list[NamedEntity]] = {"refresh": [], "control": []}
    for name in cassette.lines(NameLine):
        names[name.stage].append(name.entity)
    targets = {target_of(line.sample.id) for line in cassette.lines(SampleLine)}
    return Playback(
        names=names,
        offers={
            (line.stage, line.sample_id, line.attempt): line for line in cassette.lines(OfferLine)
        },
        evidence={
            (line.stage, line.evidence.id): line.evidence.model_dump_json().encode()
            for line in cassette.lines(EvidenceLine)
        },
        learnt=learnt,
        stance_targets=sorted(target for target in targets if target),
    )
