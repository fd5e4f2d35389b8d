"""Clusters of samples that depend on each other: the benchmark says so, or they share a text.

Questions about one passage, and hypotheses about one premise, are right or wrong together, so they
are resampled together and count as one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from coreeval.evaluation.metrics.text import find_words

FEWEST_WORDS: Final = 5
"""A shared text with fewer words may be a title, which says little about a sample (own choice)."""
MOST_SHARED: Final = 0.5
MOST_SAMPLES: Final = 30
"""A text in more than this share, or this number, of the samples may be an instruction, perhaps in
one of several wordings (own choice; SQuAD's passages have about five questions)."""
_READ: Final = 200
"""The first characters of a text are enough to count a few words."""
_DIGITS: Final = 32
ClusteredTexts = tuple[str, str, Mapping[str, str]]
"""The id of a sample, its cluster in the benchmark ("" if it has none), and its texts by field."""


def find_clusters(samples: Iterable[ClusteredTexts], fields: Sequence[str]) -> dict[str, str]:
    """Return the cluster of each sample; one that shares no text is its own cluster.

    Samples without a cluster in the benchmark form one if they share the text of the longest field
    (see `find_shared`), or if all their texts are equal, because their answers are equal too.

    Args:
        samples: The samples.
        fields: The names of the task's text fields.
    """
    found, shared = dict[str, str](), _SharedTexts(fields)
    for key, cluster, texts in samples:
        found[key] = cluster or "\x1f".join(texts.values())
        if not cluster:
            shared.add(key, texts)
    return found | shared.list_clusters()


def find_shared(samples: Iterable[ClusteredTexts], fields: Sequence[str]) -> dict[str, str]:
    """Return the clusters of the samples without one that share a passage, document or premise.

    This is the text of the field that is longest over all samples, if there are several fields. It
    has at least five words, and at most half of the samples, and at most 30, share it.
    """
    shared = _SharedTexts(fields)
    for key, cluster, texts in samples:
        if not cluster:
            shared.add(key, texts)
    return shared.list_clusters()


class _SharedTexts:
    """The texts of samples, as digests, so that large benchmarks need little memory."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = tuple(fields) if len(fields) > 1 else ()
        self._lengths = dict.fromkeys(self._fields, 0)
        self._names = dict[str, tuple[str, ...]]()

    def add(self, key: str, texts: Mapping[str, str]) -> None:
        if self._fields:
            own = [texts.get(name, "") for name in self._fields]
            for name, text in zip(self._fields, own, strict=True):
                self._lengths[name] += len(text)
            self._names[key] = tuple(map(_name, own))

    def list_clusters(self) -> dict[str, str]:
        """Return the clusters of the samples that share the text of the longest field."""
        if not self._names:
            return {}
        place = self._fields.index(max(self._fields, key=self._lengths.__getitem__))
        uses = Counter(names[place] for names in self._names.values())
        most = min(MOST_SHARED * len(self._names), MOST_SAMPLES)
        return {
            key: name
            for key, names in self._names.items()
            if (name := names[place]) and 1 < uses[name] <= most
        }


def _name(text: str) -> str:
    """Return the name of the cluster of samples with this text; "" if it may be a title."""
    if len(find_words(text[:_READ])) < FEWEST_WORDS:
        return ""
    return f"text {sha256(text.encode(errors='replace')).hexdigest()[:_DIGITS]}"
