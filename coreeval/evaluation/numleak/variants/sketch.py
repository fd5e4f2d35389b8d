"""The page's picture of answers after thinking beside plain ones: 300 units wide."""

from typing import Any

from coreeval.evaluation.numleak.curves import frame_of
from coreeval.evaluation.numleak.sketches import ticks, x_at, y_at
from coreeval.evaluation.numleak.statistics.beside import Pairs, pairs_of
from coreeval.evaluation.numleak.study import Audit

Sketch = dict[str, Any]


def stepped(audit: Audit) -> Pairs | None:
    """Return the dates answered plainly and step by step; None where there are none."""
    plain = [point for point in audit.points if point.variant == "value"]
    own = [point for point in audit.points if point.variant == "step_by_step"]
    pairs = pairs_of(plain, own)
    return pairs if pairs.periods else None


def value_frame(audit: Audit) -> tuple[float, float]:
    """Return the ends of both axes of values."""
    return frame_of(point for point in audit.points if point.variant == "value")


def error_frame(pairs: Pairs) -> tuple[float, float]:
    """Return the ends of both axes of errors."""
    most = max(float(each.max()) for each in pairs.errors)
    return 0.0, 1.05 * most or 1.0


def paired_sketch(audit: Audit) -> Sketch | None:
    """Return the marks of both panels; what lies beyond the axes is moved onto their ends."""
    pairs = stepped(audit)
    if pairs is None:
        return None
    frame, errors = value_frame(audit), error_frame(pairs)
    low, high = frame
    symbol = audit.definition.unit.symbol
    before, after = pairs.errors
    rows = zip(pairs.periods, pairs.truth, pairs.plain, pairs.own, before, after, strict=True)
    dots = []
    for period, truth, plain, own, first, second in rows:
        words = f"{period}: published {truth:g}, said {plain:g}, step by step {own:g} {symbol}"
        dots.append({
            "title": words.rstrip(),
            "x": x_at(truth, frame),
            "plain": y_at(min(max(plain, low), high), frame),
            "own": y_at(min(max(own, low), high), frame),
            "before": x_at(first, errors),
            "after": y_at(second, errors),
        })  # fmt: skip
    return {
        "dots": dots,
        "values": [{"x": x_at(at, frame), "y": y_at(at, frame), "label": f"{at:g}"}
                   for at in ticks(frame)],
        "errors": [{"x": x_at(at, errors), "y": y_at(at, errors), "label": f"{at:g}"}
                   for at in ticks(errors)],
        "unit": f", {symbol or audit.definition.unit.name}",
    }  # fmt: skip
