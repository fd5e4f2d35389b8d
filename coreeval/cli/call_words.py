"""What `coreeval calls` prints: as documents, and in words."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coreeval.cli.output import Document, brief, one_line, size_words
from coreeval.tools.stores.call_admin import CallStats, CallTally, size_on_disk
from coreeval.tools.stores.call_store import describe_damage

if TYPE_CHECKING:
    from coreeval.tools.stores.call_admin import Garbage

WIDEST_MODEL = 32
SHOWN = 10
"""Payers that are listed; `--json` has them all."""
NOBODY = "(nobody said)"


# -- stats ----------------------------------------------------------------------------------------


def stats_document(
    path: Path, stats: CallStats, reserved: Mapping[str, float], damaged: int
) -> Document:
    """Return what a store holds."""
    payers = {
        **stats.by_payer,
        **{one: CallTally() for one in reserved if one not in stats.by_payer},
    }
    return {
        "store": str(path),
        "bytes": size_on_disk(path),
        "damaged": damaged,
        **_tally(stats.total),
        "models": [
            {"model": model, "role": role, **_tally(tally)}
            for (model, role), tally in sorted(stats.by_player.items())
        ],
        "payers": [
            {
                "payer": payer,
                "calls": tally.calls,
                "usd": tally.total_usd,
                "reserved_usd": reserved.get(payer, 0.0),
            }
            for payer, tally in sorted(payers.items())
        ],
    }


def _tally(tally: CallTally) -> Document:
    share = tally.cache_share
    return {
        "calls": tally.calls,
        "valid": tally.valid,
        "invalid": dict(sorted(tally.invalid.items())),
        "prompt_tokens": tally.prompt_tokens,
        "cached_tokens": tally.cached_tokens,
        "cached_share": None if share is None else round(share, 4),
        "completion_tokens": tally.completion_tokens,
        "usd": tally.total_usd,
        "unpriced": tally.unpriced,
    }


def stats_lines(document: Document) -> Iterator[str]:
    """Yield a line for each model and role, then who paid."""
    damaged = document["damaged"]
    where = brief(Path(document["store"]).resolve())
    yield f"{where}: {document['calls']:,} calls, {size_words(document['bytes'])}"
    if document["models"]:
        yield from _table(document)
    yield from _payers(document["payers"])
    if damaged:
        yield describe_damage(damaged)


def _table(document: Document) -> Iterator[str]:
    rows = document["models"]
    wide = min(WIDEST_MODEL, max(len(row["model"]) for row in rows))
    yield (
        f"{'model':<{wide}}  {'role':<12}{'calls':>9}{'answers':>9}{'tokens in':>13}"
        f"{'cached':>8}{'out':>11}{'USD':>12}  no answers"
    )
    total = {**document, "model": "all", "role": ""}
    for row in (*rows, *([total] if len(rows) > 1 else [])):
        share = "" if row["cached_share"] is None else f"{row['cached_share']:.0%}"
        wrong = ", ".join(f"{kind} {number}" for kind, number in row["invalid"].items())
        line = (
            f"{_cut(row['model'], wide):<{wide}}  {row['role']:<12}{row['calls']:>9,}"
            f"{row['valid']:>9,}{row['prompt_tokens']:>13,}{share:>8}"
            f"{row['completion_tokens']:>11,}{_usd(row):>12}  {wrong}"
        )
        yield line.rstrip()


def _usd(row: Document) -> str:
    """Return a sum of money; a plus sign says that there are calls whose price is not known."""
    if row["usd"] is None:
        return "unknown"
    return f"{row['usd']:.4f}{'+' if row['unpriced'] else ''}"


def _payers(payers: Sequence[Document]) -> Iterator[str]:
    yield from (f"paid by {_payer(one)}" for one in payers[:SHOWN])
    if len(payers) > SHOWN:
        yield f"paid by {len(payers) - SHOWN} more; --json lists them all"


def _payer(one: Document) -> str:
    usd = "of unknown price" if one["usd"] is None else f"{one['usd']:.4f} USD"
    told = f"{one_line(one['payer']) or NOBODY}: {one['calls']:,} calls, {usd}"
    open_ = one["reserved_usd"]
    return f"{told}, {open_:.4f} USD of requests that nobody knows the end of" if open_ else told


# -- export ---------------------------------------------------------------------------------------


def export_document(model: str, out: Path, answers: int, missing: int, damaged: int) -> Document:
    """Return what was written."""
    return {
        "model": model,
        "file": str(out),
        "answers": answers,
        "missing": missing,
        "damaged": damaged,
    }


def export_lines(document: Document) -> Iterator[str]:
    """Yield what was written and what is lacking."""
    yield f"{document['answers']:,} answers of {document['model']} in {document['file']}"
    if document["missing"]:
        yield f"{document['missing']:,} calls of the run are not in the call store any more"
    if document["damaged"]:
        yield describe_damage(document["damaged"])
    yield f'take it in place of the model: "replay:{document["file"]}"'


# -- gc -------------------------------------------------------------------------------------------


def gc_document(
    path: Path, waste: "Garbage", deleted: bool, *, before: int, after: int
) -> Document:
    """Return what went, or would go."""
    return {
        "store": str(path),
        "deleted": deleted,
        "calls": len(waste.calls),
        "damaged": len(waste.damaged),
        "texts": len(waste.texts),
        "reservations": sum(waste.payers.values()),
        "payers": waste.by_payer,
        "bytes_before": before,
        "bytes_after": after,
    }


def gc_lines(document: Document, waste: "Garbage") -> Iterator[str]:
    """Yield what went, or would go."""
    if not waste:
        yield "nothing to delete"
        return
    yield "deleted:" if document["deleted"] else "not deleted:"
    yield from waste_lines(waste)
    before, after = size_words(document["bytes_before"]), size_words(document["bytes_after"])
    yield f"{before} before, {after} after" if document["deleted"] else f"{before} on disk"


def waste_lines(waste: "Garbage") -> Iterator[str]:
    """Yield what is not needed any more."""
    yield f"  {len(waste.calls):>9,} calls that no run refers to"
    listed = sorted(waste.by_payer.items(), key=lambda pair: (-pair[1], pair[0]))
    for payer, number in listed[:SHOWN]:
        yield f"  {number:>9,}   of them paid by {one_line(payer) or NOBODY}"
    yield f"  {len(waste.damaged):>9,} damaged rows"
    yield f"  {len(waste.texts):>9,} shared texts that no call refers to"
    yield f"  {sum(waste.payers.values()):>9,} reservations of runs that are gone"


def _cut(text: str, wide: int) -> str:
    line = one_line(text)
    return line if len(line) <= wide else f"{line[: wide - 1]}…"
