"""Finds the samples of a run that a release leaves out of both new arms and of provenance.

A person rejected them, the takedown list has their evidence, or their new texts or facts have a
listed name that their original does not have.
"""

from collections.abc import Collection, Iterator, Mapping

from coreeval.agents.safety import Takedown
from coreeval.releases.release_manifest import Withheld
from coreeval.runs.arms import (
    TRIPLE_COLUMNS,
    accepted_fields,
    fact_rows,
    iter_used_evidence,
    semantic_fields,
)
from coreeval.tools.stores.run_store import RunStore


def find_withheld_samples(
    store: RunStore, takedown: Takedown, rejected: Collection[str] = ()
) -> Mapping[str, Withheld]:
    """Return the samples to leave out: taken down, or rejected by a person."""
    by_list: dict[str, Withheld] = dict.fromkeys(_find_taken_down(store, takedown), "takedown")
    by_person: dict[str, Withheld] = dict.fromkeys(rejected, "review")
    return by_person | by_list


def _find_taken_down(store: RunStore, takedown: Takedown) -> set[str]:
    if not len(takedown):
        return set()
    return {
        *_find_by_evidence(store, takedown),
        *_find_by_text(store, takedown),
        *_find_by_fact(store, takedown),
    }


def _find_by_evidence(store: RunStore, takedown: Takedown) -> Iterator[str]:
    return (sample_id for sample_id, item in iter_used_evidence(store) if takedown.forbids(item))


def _find_by_text(store: RunStore, takedown: Takedown) -> Iterator[str]:
    """Yield the samples with any outcome whose new texts add a name to their original."""
    for ended in store.sample_results():
        new = filter(None, (accepted_fields(ended), semantic_fields(ended)))
        texts = [text for fields in new for text in fields.values()]
        if takedown.find_new_names(ended.sample.fields.values(), texts):
            yield ended.sample.id


def _find_by_fact(store: RunStore, takedown: Takedown) -> Iterator[str]:
    """Yield the samples of rows of provenance that quote a name, or add one to the original."""
    for row in fact_rows(store):
        sample_id, triples = str(row["id"]), [str(row[name]) for name in TRIPLE_COLUMNS]
        quoted = any(takedown.names_in(str(row["snippet"])))
        named = any(takedown.names_in(" | ".join(triples)))  # read the original only if needed
        if quoted or (
            named and takedown.find_new_names(store.sample(sample_id).fields.values(), triples)
        ):
            yield sample_id
