"""Which samples a release leaves out of its arms, and why.

What the takedown list names is not in the updated arm: the reworded text has the original's facts.
What a person rejected is in neither.
"""

from collections.abc import Collection, Iterator, Mapping

from coreeval.agents.safety import Takedown
from coreeval.releases.arms import evidence_used
from coreeval.releases.release_manifest import Withheld
from coreeval.tools.stores.run_store import RunStore


def withheld_samples(
    store: RunStore, takedown: Takedown, rejected: Collection[str] = ()
) -> Mapping[str, Withheld]:
    """Return the samples that are left out: taken down, or rejected by a person."""
    by_list: dict[str, Withheld] = dict.fromkeys(taken_down(store, takedown), "takedown")
    by_person: dict[str, Withheld] = dict.fromkeys(rejected, "review")
    return by_person | by_list


def taken_down(store: RunStore, takedown: Takedown) -> set[str]:
    """Return the accepted samples that rest on listed evidence or bring in a listed name."""
    if not len(takedown):
        return set()
    return {*_by_evidence(store, takedown), *_by_text(store, takedown)}


def _by_evidence(store: RunStore, takedown: Takedown) -> Iterator[str]:
    return (sample_id for sample_id, item in evidence_used(store) if takedown.forbids(item))


def _by_text(store: RunStore, takedown: Takedown) -> Iterator[str]:
    """Yield samples whose new text has a name that their original has not."""
    for ended in store.sample_results(["accepted"]):
        old = set(takedown.names_in(" | ".join(ended.sample.fields.values())))
        new = set(takedown.names_in(" | ".join((ended.result.updated or {}).values())))
        if new - old:
            yield ended.sample.id
