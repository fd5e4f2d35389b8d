"""`coreeval detect numleak` on recorded answers, without asking models.

`--responses` audits recorded answers; `--rankings` asks whether the true value is the most probable
one; `--signal [NAME=]FILE` reads the user's own signals.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from coreeval.cli.numleak_output import (
    AuditDisplay,
    bad_lines,
    left_out_lines,
    report_audits,
    wrap_line,
)
from coreeval.cli.output import Document, brief, one_line, show
from coreeval.config.dates import DateText
from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.benchmarks.files import Records
from coreeval.evaluation.numleak.audit import as_json
from coreeval.evaluation.numleak.audit_tables import audit_table, describe_settings, make_row
from coreeval.evaluation.numleak.defences.utility import UtilityReply, read_utility
from coreeval.evaluation.numleak.leak.signals import Signal, read_signal, require_common_dates
from coreeval.evaluation.numleak.recorded_answers import (
    AuditInput,
    find_known_cutoffs,
    find_last_day,
    group_dates,
    list_unused_series,
    load_series,
)
from coreeval.evaluation.numleak.replies import read_replies
from coreeval.evaluation.numleak.series import (
    Series,
    expand_families,
    open_series,
)
from coreeval.evaluation.numleak.statistics.logprobs import (
    CandidateRanking,
    RankingCandidate,
    rank_candidates,
    read_candidates,
)
from coreeval.evaluation.statistics import LEVEL
from coreeval.schema import BadRow
from coreeval.tools.formatting import format_measure, format_p_value
from coreeval.tools.tables import Row, Table, numbers, text_lines, texts
from coreeval.tools.workspace import workspace_for


def read_signals(given: Sequence[str]) -> list[Signal]:
    """Return the signals from files given as `NAME=FILE` or `FILE`.

    Raises:
        UsageError: one cannot be read, or has no usable row.
    """
    return [_read_signal_option(text) for text in given]


def _read_signal_option(text: str) -> Signal:
    name, equals, file = text.partition("=")
    if not equals or Path(text).exists():
        return read_signal(Path(text))
    if not name or not file:
        raise UsageError(f"{text!r} is not of the form NAME=FILE", where="--signal")
    return read_signal(Path(file), name)


def audit_files(
    files: Sequence[Path],
    named: Sequence[str],
    cutoffs: Sequence[str],
    shown: AuditDisplay,
    signals: Sequence[str] = (),
    *,
    utility: Path | None = None,
) -> None:
    """Audit recorded answers; series are built in, given, or defined by the truth in the files."""
    judged, judged_bad = _read_utility(utility)
    read = {path: read_replies(path) for path in files}
    replies = [reply for each in read.values() for reply in each.good]
    dates = find_cutoffs(dict.fromkeys(reply.model for reply in replies), cutoffs)
    given = read_named_series(named)
    own = read_signals(signals)
    series = load_series(replies, given, ", ".join(map(str, files)))
    require_common_dates(own, group_dates(replies, series))
    heard = AuditInput(
        sources=files,
        replies=replies,
        series=series,
        cutoffs=dates,
        bad=[row for each in read.values() for row in each.bad] + judged_bad,
        utility=judged,
        notes=[*list_unused_series(given, replies)],
        signals=own,
    )
    report_audits(heard, shown)


def _read_utility(file: Path | None) -> tuple[tuple[UtilityReply, ...], list[BadRow]]:
    """Return judged answers to ordinary questions, and the invalid lines of their file."""
    if file is None:
        return (), []
    read = read_utility(file)
    return read.good, [*read.bad]


def read_named_series(named: Sequence[str]) -> dict[str, Series]:
    """Return series from `NAME` or `NAME=FILE`, by id; a family stands for all its members.

    Raises:
        UsageError: a series does not exist, or a file is not a series.
    """
    folder, cache = Path.cwd(), workspace_for(Path.cwd()).series
    found = [
        open_series(name, base=folder, cache=cache, file=file)
        for text in named
        for name, file in _split_series_option(text)
    ]
    return {one.definition.id: one for one in found}


def split_series_options(named: Sequence[str]) -> tuple[list[str], dict[str, Path]]:
    """Return the names of series, and the files given for some of them."""
    parts = [part for text in named for part in _split_series_option(text)]
    return [name for name, _ in parts], {name: file for name, file in parts if file}


def _split_series_option(text: str) -> Iterator[tuple[str, Path | None]]:
    name, equals, file = text.partition("=")
    if not equals or Path(text).exists():
        yield from ((one, None) for one in expand_families([text]))
    elif not name or not file:
        raise UsageError(f"{text!r} is not of the form NAME=FILE", where="--series")
    else:
        yield name, Path(file)


def find_cutoffs(models: Iterable[str], stated: Sequence[str]) -> dict[str, date | None]:
    """Return the last day of each model's training data: the stated one, or else from the table.

    Raises:
        UsageError: a stated cutoff is not a date, or is not for any of the models.
    """
    names = list(models)
    found = find_known_cutoffs(names)
    for text in stated:
        model, said = parse_cutoff(text, names)
        day = find_last_day(said, "--cutoff")
        found |= dict.fromkeys([model] if model else names, day)
    return found


def parse_cutoff(text: str, models: Sequence[str]) -> tuple[str, str]:
    """Return the model, empty for all, and the date from `[MODEL=]DATE`.

    Raises:
        UsageError: it is not a date, or is not for any of the models.
    """
    model, _, said = text.rpartition("=")
    if model and model not in models:
        raise UsageError(
            f"the files contain no answers of {model!r}",
            where="--cutoff",
            hint=f"one of {', '.join(models)}",
        )
    try:
        return model, TypeAdapter(DateText).validate_python(said)
    except ValidationError:
        raise UsageError(
            f"{said!r} is not a date", where="--cutoff", hint="such as 2025-03-15 or 2025-03"
        ) from None


_NAME = 28


def rank_files(files: Sequence[Path], shown: AuditDisplay) -> None:
    """Score candidates with known log-probabilities of a model; nothing is asked."""
    read = {path: read_candidates(path) for path in files}
    _refuse_duplicates(read)
    good = [one for each in read.values() for one in each.good]
    found = rank_candidates(good, shown.settings)
    document: Document = {
        "rankings": [as_json(one) for one in found],
        "settings": {"draws": shown.draws, "seed": shown.seed, "level": LEVEL},
        "files": [str(path) for path in files],
        "bad_rows": [row.model_dump() for each in read.values() for row in each.bad],
        "other_lines": sum(each.passed_over for each in read.values()),
        "plots": _draw_rankings(found, shown.plot),
    }
    show(document, shown.as_json, lambda: "\n".join(ranking_lines(document)))


def _refuse_duplicates(read: Mapping[Path, Records[RankingCandidate]]) -> None:
    """Raise an error if files share a candidate, which would compete with itself."""
    seen: dict[tuple[str, ...], Path] = {}
    for path, found in read.items():
        for one in found.good:
            first = seen.setdefault(one.key, path)
            if first != path:
                raise DatasetError(
                    f"the candidate {one.candidate!r} for {one.date} and {one.model} is also in "
                    f"{first.name}",
                    where=str(path),
                    hint="list each candidate only once",
                )


def _draw_rankings(found: Sequence[CandidateRanking], folder: Path | None) -> list[str]:
    if folder is None:
        return []
    from coreeval.evaluation.numleak.statistics.logprobs import draw_rankings

    return [str(path) for path in draw_rankings(folder / "rankings.svg", found)]


def ranking_lines(document: Document) -> Iterator[str]:
    """Yield each ranking, then a line for each."""
    found = document["rankings"]
    for one in found:
        yield from _ranking_lines(one)
    if len(found) > 1:
        yield from _summary(found)
    yield from bad_lines(document["bad_rows"])
    if document["other_lines"]:
        yield f"skipped lines of another type: {document['other_lines']}"
    yield from wrap_line(describe_settings(document["settings"]), "")
    for path in document["plots"]:
        yield f"picture: {brief(Path(path))}"


def _ranking_lines(one: Document) -> Iterator[str]:
    yield f"-- {one_line(_ranking_name(one))} ".ljust(100, "-")
    if not one["n"]:
        yield "  no date can be ranked"
    else:
        yield from wrap_line(f"{_sentence(one)}.", "")
        rank = f"mean rank of the true value (expected by chance {one['chance_rank']:g})"
        rows = {
            "share of dates on which the true value is first": one["top1"],
            rank: one["mean_rank"],
            "log-probability minus that of the best other value, in nats per token": one[
                "mean_gap"
            ],
            **{
                f"share of the other dates on which {name} is first": lost
                for name, lost in one["lost_to"].items()
            },
        }
        table = audit_table(make_row(what, metric) for what, metric in rows.items())
        yield from text_lines(table, "  ", heads=False)
    yield from left_out_lines(one["left_out"], "dates or candidates")
    yield ""


def _sentence(one: Document) -> str:
    """Return the only conclusion that a ranking allows."""
    first = round(one["top1"]["estimate"] * one["n"])
    low = one["top1"]["ci_low"]
    above = low is not None and low > one["chance"]
    words = (
        "more often than expected by chance"
        if above
        else ("not shown to be more often than expected by chance")
    )
    return (
        f"the true value is the most probable of {one['candidates']:g} candidates on {first} of "
        f"{one['n']} dates, {words} ({one['chance']:.2f}; p {format_p_value(one['p_value'])})"
    )


def _summary(found: Sequence[Document]) -> Iterator[str]:
    heads = (numbers(head, 9) for head in ("first", "chance", "rank", "gap"))
    rows: list[Row] = []
    for one in found:
        metrics = (one["top1"]["estimate"], one["chance"], one["mean_rank"]["estimate"],
                   one["mean_gap"]["estimate"])  # fmt: skip
        rows.append((_ranking_name(one), one["n"], *map(format_measure, metrics)))
    yield from text_lines(Table((texts(most=_NAME), numbers("dates", 8), *heads), rows))
    yield ""


def _ranking_name(one: Document) -> str:
    return f"{one['model']}, {one['series']}" if one["series"] else str(one["model"])
