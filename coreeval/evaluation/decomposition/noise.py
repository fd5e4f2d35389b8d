"""How much of macro-F1 wrong labels can cost; accuracy loses at most their share."""

import numpy as np

from coreeval.evaluation.scoring.answers import Floats, Mask, Table, View


def macro_f1_cost(table: Table, view: View, share: float) -> float:
    """Return a bound on what wrong labels cost macro-F1, the mean over templates.

    A wrong label costs what correcting it adds: an answer counted as wrong becomes a hit of the
    label given, and is no longer due for another. Hits are given to the labels that gain most,
    which is exact since each gain shrinks; every label loses as many that were due as it can, which
    is more than all can lose together.
    """
    costs = [
        _corrected(table, way, view.counted[:, place], share)
        for place, way in enumerate(view.ways)
        if view.counted[:, place].any()
    ]
    return float(np.mean(costs)) if costs else 0.0


def _corrected(table: Table, way: int, counted: Mask, share: float) -> float:
    due, said = table.due[counted], table.said[counted, way]
    hits, dues, given = (
        np.bincount(each[each < table.labels], minlength=table.labels).astype(np.float64)
        for each in (due[due == said], due, said)
    )
    wrong = int(np.ceil(share * len(due)))
    size = dues + given
    fewer = size - np.minimum(wrong, dues - hits)
    best = _filled(hits, fewer, given - hits, wrong)
    return float(np.mean(best - 2 * hits / np.maximum(size, 1)))


def _filled(hits: Floats, size: Floats, room: Floats, wrong: int) -> Floats:
    """Return the F1 of each label after hits were given, one by one, to where they add most."""
    hits, size, room = hits.copy(), size.copy(), room.copy()
    for _ in range(min(wrong, int(room.sum()))):
        gain = 2 * (hits + 1) / (size + 1) - 2 * hits / np.maximum(size, 1)
        best = int(np.argmax(np.where(room > 0, gain, -1.0)))
        hits[best], size[best], room[best] = hits[best] + 1, size[best] + 1, room[best] - 1
    return 2 * hits / np.maximum(size, 1)
