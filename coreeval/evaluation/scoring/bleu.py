"""Corpus BLEU from the counts of each item, so that it can be resampled."""

from collections.abc import Sequence

import numpy as np

from coreeval.evaluation.scoring.items import Floats, PerItem
from coreeval.evaluation.scoring.text import foreign, script

ORDER = 4


def bleu(references: Sequence[str], outputs: Sequence[str]) -> PerItem:
    """Return BLEU over all items, 0 to 1: sacrebleu's, with its default smoothing.

    Tokens are sacrebleu's `13a`; `zh` where most references are in Han characters. Items with an
    empty reference are not counted.
    """
    from sacrebleu.metrics.bleu import BLEU  # slow to import

    east = sum(script(text) == "CJK" for text in references) * 2 > len(references)
    counter = BLEU(tokenize="zh" if east else "13a", effective_order=True)
    sums = np.zeros((len(references), 2 + 2 * ORDER))
    for place, (reference, output) in enumerate(zip(references, outputs, strict=True)):
        if reference.strip():
            found = counter.sentence_score(output, [reference])
            sums[place] = (found.sys_len, found.ref_len, *found.counts, *found.totals)
    return PerItem(sums, _from_counts, foreign(references, outputs))


def _from_counts(sums: Floats) -> Floats:
    """Return BLEU from summed lengths, matches and totals (Papineni 2002, `exp` smoothing)."""
    said, due = sums[..., 0], sums[..., 1]
    hits, total = sums[..., 2 : 2 + ORDER], sums[..., 2 + ORDER :]
    halvings = np.cumsum(hits == 0, axis=-1)
    top = np.where(hits == 0, 0.5**halvings, hits)
    precision = np.divide(top, total, out=np.zeros_like(top), where=total > 0)
    some = np.asarray(hits.any(axis=-1) & (total > 0).all(axis=-1))
    logs = np.log(np.where(some[..., None], precision, 1))
    short = np.minimum(0, 1 - np.divide(due, said, out=np.ones_like(due), where=said > 0))
    score = np.where(some, np.exp(logs.mean(axis=-1) + short), 0.0)
    return np.asarray(np.where(due > 0, score, np.nan))
