"""Exchangeability as a detector: does a target prefer the published order of the texts?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from coreeval.evaluation.detectors.base import (
    Detector,
    DetectorInputs,
    DetectorQuestion,
    Json,
    TextAnswer,
    list_clusters,
    make_verdict_table,
    make_weights_tables,
    read_text_scores,
)
from coreeval.tools.tables import Foreign, Table, numbers, texts

if TYPE_CHECKING:
    from coreeval.evaluation.whitebox.exchangeability import ExchangeabilitySettings, Shard


def make_exchangeability(settings: "ExchangeabilitySettings | None" = None) -> Detector:
    """Return the detector with a user's settings, or with the default settings."""

    def cut(inputs: DetectorInputs) -> "tuple[list[Shard], int]":
        """Return the shards of the originals, and the number of texts."""
        from coreeval.evaluation.whitebox.exchangeability import (
            ExchangeabilitySettings,
            join_neighbours,
            make_shards,
        )

        chosen = settings or ExchangeabilitySettings()
        clusters = list_clusters(inputs)
        originals = join_neighbours(
            (clusters[sample.id], tuple(arms["original"].values()))
            for sample, arms in inputs.texts()
            if "original" in arms
        )
        shards = make_shards(originals, chosen, seed=inputs.seed)
        return shards, min(len(originals), chosen.texts)

    def ask(inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
        from coreeval.evaluation.whitebox.exchangeability import list_orders

        for request in list_orders(cut(inputs)[0]):
            yield DetectorQuestion(request.key, request.text)

    def score(inputs: DetectorInputs, answers: Mapping[str, TextAnswer]) -> Json:
        from coreeval.evaluation.whitebox.exchangeability import judge_exchangeability

        shards, number = cut(inputs)
        found = judge_exchangeability(shards, read_text_scores(answers), number)
        return found.model_dump(mode="json")

    return Detector(
        name="exchangeability",
        title="exchangeability",
        question="Does the target prefer the published order of the texts to random orders?",
        access="log_probabilities",
        limits="It cannot distinguish memory from sorted texts, and detects nothing if the model "
        "read the texts in another order.",
        verdicts={
            "ordered": "remembered",
            "exchangeable": "not_shown",
            "too_few": "cannot_tell",
        },
        questions=ask,
        score=score,
        scores_texts=True,
        tables=_make_tables,
    )


def _make_tables(document: Json) -> Sequence[Table]:
    columns = [
        texts("target", most=40),
        *(numbers(head, gap=2, most=40) for head in ("texts", "shards", "orders")),
        *(numbers(head, gap=2, most=40) for head in ("gain", "exact p", "t-test p")),
    ]
    rows = [
        (
            Foreign(each["target"]),
            str(each["texts"]),
            str(len(each["shards"])),
            str(each["shuffles"] + 1),
            _format(each["mean_gain"], ".2f"),
            _format(each["exact_p"], ".2g"),
            _format(each["t_p"], ".2g"),
        )
        for each in document["targets"]
    ]
    title = (
        "Gain: the mean log-probability of a shard in its published order, minus that in random "
        "orders. Both p-values are one-sided: the exact one compares the published orders with "
        "combinations of one order from each shard, and the other comes from a t-test over shards."
    )
    return [
        make_verdict_table(document, EXCHANGEABILITY.statement),
        Table(columns, rows, title),
        *make_weights_tables(document),
    ]


def _format(value: float | None, digits: str) -> str:
    return "" if value is None else format(value, digits)


EXCHANGEABILITY: Final = make_exchangeability()
