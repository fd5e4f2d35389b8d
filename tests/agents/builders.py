"""Small values that the tests of this folder are written with."""

from datetime import UTC, datetime

from coreeval.agents.roles import CompositionRequest, Fields
from coreeval.schema import (
    Evidence,
    Extraction,
    Label,
    NamedEntity,
    Plan,
    Replacement,
    Sample,
    Statement,
    Task,
    Triple,
    Window,
)

WINDOW = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 7, 1, tzinfo=UTC))
INSIDE = datetime(2026, 3, 4, tzinfo=UTC)
LABELS = (
    Label(id=0, name="sadness", meaning="the author is sad"),
    Label(id=1, name="joy", meaning="the author is glad", aliases=("happy", "happiness")),
)
TWEETS = Task(
    name="emotion",
    description="What a tweet feels.",
    fields=("text",),
    labels=LABELS,
    question="What does it feel?",
    text_kind="tweet",
    templates=("$text",),
)
STANCE = TWEETS.model_copy(
    update={
        "name": "stance",
        "markers": ("#SemST",),
        "target": "legalization of abortion",
        "target_terms": ("abortion", "pro-choice"),
    }
)
PAIRS = TWEETS.model_copy(
    update={
        "name": "mrpc",
        "fields": ("sentence1", "sentence2"),
        "text_kind": "sentence",
        "tokenised": True,
        "symmetric": True,
    }
)
PREMISES = PAIRS.model_copy(
    update={"name": "rte", "tokenised": False, "factual_fields": ("sentence1",)}
)


def sample(text: str, *more: str) -> Sample:
    """Return a tweet, or a pair where two texts are given."""
    names = ("sentence1", "sentence2") if more else ("text",)
    fields = dict(zip(names, (text, *more), strict=True))
    return Sample(id="s1", split="test", fields=fields, label=1, label_text="joy")


def news(
    title: str,
    *,
    key: str = "e1",
    snippet: str = "",
    at: datetime = INSIDE,
    people: tuple[str, ...] = (),
) -> Evidence:
    """Return a piece of evidence."""
    return Evidence(
        id=key,
        url=f"https://example.org/{key}",
        domain="example.org",
        title=title,
        snippet=snippet,
        published_at=at,
        published_precision="exact",
        entities=tuple(NamedEntity(name=name, type="person") for name in people),
        origin="test:1",
    )


def statement(text: str, **changes: object) -> Statement:
    """Return an asserted statement that quotes itself and rests on `e1`."""
    values = {"text": text, "evidence_ids": ("e1",), "quote": text, "modality": "asserted"}
    return Statement.model_validate(values | changes)


def replacement(
    before: tuple[str, str, str] | None, after: tuple[str, str, str], **changes: object
) -> Replacement:
    """Return the change of one triple into another, in the tweet's only field."""
    values: dict[str, object] = {
        "before": None if before is None else _triple(before),
        "after": _triple(after),
        "mode": "insert" if before is None else "replace",
        "field": "text",
        "statement_index": 0,
        "same_type": True,
    }
    return Replacement.model_validate(values | changes)


def _triple(parts: tuple[str, str, str]) -> Triple:
    return Triple(head=parts[0], relation=parts[1], tail=parts[2])


def request(
    original: Sample,
    *,
    plan: Plan | None = None,
    evidence: tuple[Evidence, ...] = (),
    extraction: Extraction | None = None,
) -> CompositionRequest:
    """Return what a composer of the sample would be given."""
    fields: Fields = dict(original.fields)
    return CompositionRequest(
        sample=original,
        extraction=extraction or Extraction(),
        plan=plan or Plan(decision="use"),
        evidence=evidence,
        substituted=fields,
        reworded=None,
    )
