"""Made-up samples and news that the tests of the offline team share."""

from datetime import UTC, datetime

from coreeval.schema import Evidence, NamedEntity, Sample, Window
from coreeval.tasks import load_task

EMOTION = load_task("emotion")
IRONY = load_task("irony")
STANCE = load_task("stance", "climate")
MRPC = load_task("mrpc")
RTE = load_task("rte")
WINDOW = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 9, 1, tzinfo=UTC))


def item(
    title: str, snippet: str = "", *, known: tuple[NamedEntity, ...] = (), key: str = ""
) -> Evidence:
    """Return a piece of news published inside the window."""
    name = key or title.casefold().replace(" ", "-")[:40]
    return Evidence(
        id=name,
        url=f"https://news.example/{name}",
        domain="news.example",
        title=title,
        snippet=snippet,
        published_at=datetime(2026, 6, 1, tzinfo=UTC),
        published_precision="exact",
        entities=known,
        origin="made",
    )


def tweet(text: str, label: str) -> Sample:
    """Return a sample with one text."""
    numbers = {"anger": 0, "joy": 1, "optimism": 2, "sadness": 3, "non_irony": 0, "irony": 1}
    numbers |= {"none": 0, "against": 1, "favor": 2}
    return Sample(
        id=f"t/{text[:12]}",
        split="test",
        fields={"text": text},
        label=numbers[label],
        label_text=label,
    )


def pair(first: str, second: str, label: str, *, task: str = "mrpc") -> Sample:
    """Return a sample with two texts."""
    names = ("sentence1", "sentence2") if task == "mrpc" else ("premise", "hypothesis")
    number = {"not_equivalent": 0, "equivalent": 1, "entailment": 0, "not_entailment": 1}[label]
    fields = dict(zip(names, (first, second), strict=True))
    return Sample(id=f"p/{first[:12]}", split="test", fields=fields, label=number, label_text=label)


HEAT = item(
    "Heatwave closes schools in northern Spain",
    "Schools in northern Spain stay closed because of the heatwave, officials say.",
)
ZOO = item(
    "Harbour Zoo welcomes rare penguin chicks",
    "The zoo is celebrating the arrival of rare penguin chicks, which came out of the egg in May.",
)
BRIDGE = item(
    "Council delays repair of Harbour Bridge",
    "The council has put off the repair of the bridge in the harbour until next spring.",
)
FERRY = item(
    "Harbour ferry to run on batteries",
    "The ferry across the harbour will run on batteries, with two chargers at the pier.",
)
