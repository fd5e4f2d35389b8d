"""`coreeval detect numleak --rankings`: is the true value the most probable one?"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coreeval.cli.numleak_report import Shown
from coreeval.cli.numleak_words import bad_lines, cut, left_out_lines, row_line, wrapped
from coreeval.cli.output import Document, brief, one_line, show
from coreeval.errors import DatasetError
from coreeval.evaluation.benchmarks.files import Records
from coreeval.evaluation.numleak.audit import as_json
from coreeval.evaluation.numleak.audit_tables import describe_settings, format_value, make_row
from coreeval.evaluation.numleak.statistics.logprobs import (
    CandidateRanking,
    RankingCandidate,
    rank_candidates,
    read_candidates,
)
from coreeval.evaluation.statistics import LEVEL

_NAME = 28


def rank_files(files: Sequence[Path], shown: Shown) -> None:
    """Score candidates that a model's log-probabilities are known of; nobody is asked."""
    read = {path: read_candidates(path) for path in files}
    _refuse_twice(read)
    good = [one for each in read.values() for one in each.good]
    found = rank_candidates(good, shown.settings)
    document: Document = {
        "rankings": [as_json(one) for one in found],
        "settings": {"draws": shown.draws, "seed": shown.seed, "level": LEVEL},
        "files": [str(path) for path in files],
        "bad_rows": [row.model_dump() for each in read.values() for row in each.bad],
        "other_lines": sum(each.passed_over for each in read.values()),
        "plots": _drawn(found, shown.plot),
    }
    show(document, shown.as_json, lambda: "\n".join(ranking_lines(document)))


def _refuse_twice(read: Mapping[Path, Records[RankingCandidate]]) -> None:
    """Refuse files that have a candidate in common: it would compete with itself."""
    seen: dict[tuple[str, ...], Path] = {}
    for path, found in read.items():
        for one in found.good:
            first = seen.setdefault(one.key, path)
            if first != path:
                raise DatasetError(
                    f"{one.candidate!r} of {one.date} of {one.model} is in {first.name} as well",
                    where=str(path),
                    hint="give each candidate once",
                )


def _drawn(found: Sequence[CandidateRanking], folder: Path | None) -> list[str]:
    if folder is None:
        return []
    from coreeval.evaluation.numleak.statistics.logprobs import draw_rankings

    return [str(path) for path in draw_rankings(folder / "rankings.svg", found)]


def ranking_lines(document: Document) -> Iterator[str]:
    """Yield each ranking, then all of them on a line each."""
    found = document["rankings"]
    for one in found:
        yield from _ranking_lines(one)
    if len(found) > 1:
        yield from _summary(found)
    yield from bad_lines(document["bad_rows"])
    if document["other_lines"]:
        yield f"{document['other_lines']} lines of another type are passed over"
    yield from wrapped(describe_settings(document["settings"]), "")
    for path in document["plots"]:
        yield f"picture: {brief(Path(path))}"


def _ranking_lines(one: Document) -> Iterator[str]:
    yield f"-- {one_line(_called(one))} ".ljust(100, "-")
    if not one["n"]:
        yield "  no date can be ranked"
    else:
        yield from wrapped(f"{_sentence(one)}.", "")
        yield row_line(make_row("true value first", one["top1"]))
        rank = f"mean rank of the true value (by chance {one['chance_rank']:g})"
        yield row_line(make_row(rank, one["mean_rank"]))
        gap = "log-probability beyond the best other, nats a token"
        yield row_line(make_row(gap, one["mean_gap"]))
        for name, metric in one["lost_to"].items():
            yield row_line(make_row(f"where it is not first: {name} is", metric))
    yield from left_out_lines(one["left_out"], "dates or candidates")
    yield ""


def _sentence(one: Document) -> str:
    """Return what a ranking shows, and no more."""
    first = round(one["top1"]["estimate"] * one["n"])
    low = one["top1"]["ci_low"]
    above = low is not None and low > one["chance"]
    words = "more often than by chance" if above else "not shown to be more often than by chance"
    p = one["p_value"]
    small = "p < 0.001" if p < 0.001 else f"p {p:.3f}"
    return (
        f"the true value is the most probable of {one['candidates']:g} on {first} of {one['n']} "
        f"dates, {words} ({one['chance']:.2f}; {small})"
    )


def _summary(found: Sequence[Document]) -> Iterator[str]:
    wide = min(_NAME, max(len(_called(one)) for one in found))
    yield f"{'':<{wide}}{'dates':>8}{'first':>9}{'chance':>9}{'rank':>9}{'gap':>9}"
    for one in found:
        metrics = (one["top1"]["estimate"], one["chance"], one["mean_rank"]["estimate"],
                   one["mean_gap"]["estimate"])  # fmt: skip
        cells = "".join(f"{format_value(each):>9}" for each in metrics)
        yield f"{cut(_called(one), wide):<{wide}}{one['n']:>8}{cells}"
    yield ""


def _called(one: Document) -> str:
    return f"{one['model']}, {one['series']}" if one["series"] else str(one["model"])
