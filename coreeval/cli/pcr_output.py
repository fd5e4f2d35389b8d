"""The output of `coreeval detect pcr` as text."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from coreeval.cli.output import Document, brief, one_line
from coreeval.tools.formatting import format_interval, format_number, format_quantity
from coreeval.tools.tables import (
    Row,
    Table,
    cut_line,
    intervals,
    numbers,
    text_lines,
    texts,
)

SHOWN = 5
"""The most bad lines of a file listed; `--json` has them all."""
WIDTH = 100
_NAME = 24


def pcr_lines(document: Document) -> Iterator[str]:
    """Yield each comparison, then a line for each if there are several."""
    found, settings = document.get("comparisons", [document]), document["settings"]
    for one in found:
        yield from _comparison_lines(one, settings, len(found))
    if len(found) > 1:
        yield from _summary(found)
    yield from _reference_lines(document["references"], settings)
    yield _settings_line(settings)
    for path in document["plots"]:
        yield f"picture: {brief(Path(path))}"


def _comparison_lines(one: Document, settings: Document, count: int) -> Iterator[str]:
    yield f"-- {one_line(one['name'])} ".ljust(WIDTH, "-")
    yield from _file_lines(one)
    if one["asked"]:
        yield from _question_lines(one["asked"])
    yield from _split_table(one, settings)
    yield from _status_lines(one)
    yield from _difference_lines(one, settings, count)
    if one["adjusted"]:
        yield from _adjusted_lines(one["adjusted"])
    yield from _wrapped(f"{one['verdict'].replace('_', ' ')}: {one['reason']}", "")
    for note in one["notes"]:
        yield from _wrapped(f"note: {note}")
    yield from _baseline_lines(one, settings)
    if one["ablation"]:
        yield from _ablation_lines(one["ablation"], settings)
    yield ""


def _file_lines(one: Document) -> Iterator[str]:
    bad, file = one["bad_rows"], one_line(Path(one["pairs"]).name)
    good = sum(split["n"] for split in one["splits"].values())
    left = format_quantity(len(bad), "bad line is", "bad lines are")
    yield f"{file}: {format_quantity(good, 'pair')}" + (f"; {left} skipped" if bad else "")
    for row in bad[:SHOWN]:
        of = "" if row["file"] == Path(one["pairs"]).name else f" of {row['file']}"
        yield from _wrapped(f"bad line {row['line']}{of}: {row['reason']}")
    if len(bad) > SHOWN:
        yield f"    and {len(bad) - SHOWN} more; --json lists them all"


def _question_lines(asked: Document) -> Iterator[str]:
    """Yield each split's questions, and its answers if they are unusual."""
    for name, split in asked["splits"].items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in split["questions"].items() if count)
        parts = [
            f"{one_line(name)}: {split['drawn']} of {split['items']} items, "
            f"{asked['modification'].replace('_', ' ')}; questions: {kinds or 'none'}"
        ]
        for reason, left in split["left_out"].items():
            parts.append(f"{format_quantity(left, 'item')} skipped: {reason}")
        if split["unchanged"]:
            same = format_quantity(split["unchanged"], "modified item is", "modified items are")
            parts.append(f"{same} identical to the original")
        if split["unclear"]:
            unclear = format_quantity(split["unclear"], "answer does", "answers do")
            parts.append(f"{unclear} not clearly choose an option")
        yield from _wrapped("; ".join(parts))


def _split_table(one: Document, settings: Document) -> Iterator[str]:
    metric, consistency = settings["metric"], settings["consistency"]
    columns = (texts("split", 12, most=12), numbers("n", 7), numbers("scored", 8),
               numbers(metric, 17, gap=2), numbers(consistency, max(11, len(consistency)), gap=2),
               numbers("PCR", 9), intervals())  # fmt: skip
    rows = [
        (name, split["n"], split["scored"], _number(split["performance"]),
         _number(split["consistency"]), _number(split["pcr"]), _interval(split))
        for name, split in one["splits"].items()
    ]  # fmt: skip
    yield from text_lines(Table(columns, rows), "  ")


def _difference_lines(one: Document, settings: Document, count: int) -> Iterator[str]:
    found = one["difference"]
    p = f"p {_number(found['p_value'])} ({settings['draws']} permutations)"
    if count > 1:
        p = (
            f"{p}, adjusted for all {count} comparisons: {_number(found['p_adjusted'])} "
            "(Benjamini-Hochberg)"
        )
    if found["estimate"] is None and not any(split["n"] for split in one["splits"].values()):
        return
    yield f"  {_gap_name(settings)} {_number(found['estimate'], '+')}, {_interval(found, '+')}"
    yield f"  {p}"
    yield f"  performance {_points(found['points'])}, p {_number(found['points']['p_value'])}"
    least = _number(found["detectable"])
    yield f"  smallest PCR difference that would be detected with 80 % power: {least}"


def _adjusted_lines(found: Document) -> Iterator[str]:
    shared = ", ".join(f"{n} of {one_line(name)}" for name, n in found["shared"].items())
    how = "fitted line" if found["method"] == "line" else "mean gap"
    yield from _wrapped(
        f"relative to {len(found['references'])} references ({how}; shared items: {shared}): PCR "
        f"{_number(found['estimate'], '+')}, {_interval(found, '+')}, p "
        f"{_number(found['p_value'])}; performance {_points(found['points'])}, p "
        f"{_number(found['points']['p_value'])}",
        "  ",
    )


def _status_lines(one: Document) -> Iterator[str]:
    """Yield the unanswered questions and the number of resampled clusters, if unusual."""
    for name, split in one["splits"].items():
        kinds = Counter[str]()
        for counts in split["statuses"].values():
            kinds.update({status: n for status, n in counts.items() if status != "answered"})
        told = [f"{format_quantity(n, 'answer')} {kind}" for kind, n in kinds.items()]
        if split["unanswered"]:
            lacking = format_quantity(split["unanswered"], "item lacks", "items lack")
            told.insert(0, f"{lacking} a complete answer")
        if split["clusters"] < split["n"]:
            units = format_quantity(split["clusters"], "document or text", "documents or texts")
            told.append(f"{units}, resampled as units")
        if told:
            yield from _wrapped(f"{one_line(name)}: {', '.join(told)}")


def _reference_lines(found: Sequence[Document], settings: Document) -> Iterator[str]:
    """Yield a line for each reference, which has no verdict."""
    if not found:
        return
    yield "references, presumed to have seen neither split:"
    for one in found:
        if one["unused"]:
            yield from _wrapped(f"{one_line(one['name'])} is not used: {one['unused']}", "  ")
            continue
        each = one["difference"]
        splits = (one["splits"][settings[f"{name}_split"]] for name in ("train", "test"))
        pcr = " and ".join(_number(split["pcr"]) for split in splits)
        yield from _wrapped(
            f"{one_line(one['name'])}: PCR {pcr}, {_gap_name(settings)} "
            f"{_number(each['estimate'], '+')}, {_interval(each, '+')}; performance "
            f"{_points(each['points'])}",
            "  ",
        )
        if one["bad_rows"]:
            yield f"    {len(one['bad_rows'])} bad lines are skipped"


def _points(found: Document) -> str:
    """Return a performance difference with its interval."""
    ends = format_interval(found["ci_low"], found["ci_high"], "+.1f")
    return f"{found['estimate']:+.1f} points ({ends})" if ends else "undefined"


def _baseline_lines(one: Document, settings: Document) -> Iterator[str]:
    found = one["baselines"]
    ends = found["intervals"]
    declines = ", ".join(
        f"{one_line(name)} {_number(value, '+')} ({_interval(ends['decline'][name], '+')})"
        for name, value in found["decline"].items()
    )
    yield from _wrapped(f"baseline, loss of {settings['metric']} due to modification: {declines}")
    span = _interval(ends["discrepancy"], "+")
    yield from _wrapped(f"baseline, discrepancy: {_number(found['discrepancy'], '+')} ({span})")


def _ablation_lines(ablation: Document, settings: Document) -> Iterator[str]:
    head = f"{_gap_name(settings):<26}{'95 % interval':<20}  verdict"
    yield f"  ablation: {'scale':<9}{'alpha':>6}  {head}"
    for cell in ablation["forms"]:
        yield f"            {cell['scale']:<9}{cell['alpha']:>6g}  {_cell_words(cell)}"
    if ablation["thresholds"]:
        yield f"  ablation: {'threshold':<15}  {head}"
    for cell in ablation["thresholds"]:
        same = ", ".join(f"{name} {_number(c)}" for name, c in cell["consistency"].items())
        yield f"            {cell['threshold']:<15g}  {_cell_words(cell)}; consistency {same}"


def _cell_words(cell: Document) -> str:
    verdict = cell["verdict"].replace("_", " ")
    return f"{_number(cell['difference'], '+'):<26}{_interval(cell, '+'):<20}  {verdict}"


def _summary(found: Sequence[Document]) -> Iterator[str]:
    columns = (texts(most=_NAME), numbers("difference", 10, gap=2), intervals(20),
               numbers("adjusted p", 10, gap=2), texts("verdict", gap=2))  # fmt: skip
    rows: list[Row] = [*map(_summary_row, found)]
    if any(one["adjusted"] for one in found):
        rows.insert(0, ("", "relative to the references, if any"))
    yield from text_lines(Table(columns, rows))


def _summary_row(one: Document) -> Row:
    each, verdict = one["adjusted"] or one["difference"], one["verdict"].replace("_", " ")
    p = _number(one["test"]["p_adjusted"])
    return (one["name"], _number(each["estimate"], "+"), _interval(each, "+"), p, verdict)


def _settings_line(settings: Document) -> str:
    same = settings["consistency"]
    if settings["embeddings"]:
        same = f"{same} at {settings['threshold']:g} ({settings['embeddings']})"
    return (
        f"ratio of {settings['metric']} to {same}, alpha {settings['alpha']:g}, "
        f"{settings['scale']}; {settings['interval']} intervals from {settings['draws']} draws, "
        f"seed {settings['seed']}"
    )


def _gap_name(settings: Document) -> str:
    first, second = (cut_line(settings[f"{name}_split"], 12) for name in ("train", "test"))
    return f"PCR({first}) - PCR({second})"


def _number(value: float | None, sign: str = "") -> str:
    return format_number(value, f"{sign}.4f", "undefined")


def _interval(found: Document, sign: str = "") -> str:
    return f"{_number(found['ci_low'], sign)} to {_number(found['ci_high'], sign)}"


def _wrapped(text: str, indent: str = "    ") -> list[str]:
    inner = indent + "    "
    return textwrap.wrap(one_line(text), WIDTH, initial_indent=indent, subsequent_indent=inner)
