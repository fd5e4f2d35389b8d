"""How much of the updated texts stands in their originals, word for word."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from coreeval.agents.text.words import split_words
from coreeval.releases.arms import accepted_fields
from coreeval.releases.release_manifest import Overlap
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.text import UNSPACED

GRAM = 5
"""Words of an n-gram. The checks look at three (pilot §7), which names and turns of phrase share by
chance; five in a row are seldom shared but by copying (own choice)."""
_SIGN = re.compile(f"([{UNSPACED}])")
"""A character that is about a word of its own."""
Texts = Mapping[str, str]


def copied(store: RunStore, *, withheld: Collection[str]) -> Overlap:
    """Measure the overlap of a run's updated arm with its originals; withheld samples do not count.

    It can be published where the originals may not be: it quotes nothing.
    """
    return overlap_of(
        (fields, ended.sample.fields)
        for ended in store.sample_results()
        if ended.sample.id not in withheld and (fields := accepted_fields(ended))
    )


def overlap_of(pairs: Iterable[tuple[Texts, Texts]]) -> Overlap:
    """Return the share of the new texts' n-grams that their originals have too, of all texts.

    Args:
        pairs: New texts and original texts of a sample, by field; an n-gram may stand in any field
            of the original, and counts once in a sample.
    """
    texts = grams = shared = 0
    for new, old in pairs:
        own = _of_fields(new)
        texts += 1
        grams += len(own)
        shared += len(own & _of_fields(old))
    return Overlap(size=GRAM, share=shared / grams if grams else None, grams=grams, texts=texts)


def _of_fields(fields: Texts) -> set[tuple[str, ...]]:
    return {gram for text in fields.values() for gram in _grams(text)}


def _grams(text: str) -> Iterator[tuple[str, ...]]:
    found = split_words(_SIGN.sub(r" \1 ", text))
    return zip(*(found[start:] for start in range(GRAM)), strict=False)
