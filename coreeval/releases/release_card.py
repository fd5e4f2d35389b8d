"""README.md of a release: the dataset card with its origin, limits and licences.

If people rated its texts, the card has a section with their findings.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from coreeval.evaluation.annotation.rating_study import RatedArm
from coreeval.evaluation.annotation.ratings import CriterionResult
from coreeval.evaluation.scores import Score
from coreeval.project import name_in_markdown
from coreeval.releases.release_manifest import Changelog, PublishedRatings, ReleaseManifest
from coreeval.runs.card import (
    SYNTHETIC,
    count_table,
    describe_comparability,
    describe_cost,
    describe_fill,
    describe_freshness,
    describe_gold,
    describe_offline_roles,
    describe_precision,
    describe_start,
    describe_unchecked,
    front_matter,
    model_table,
)
from coreeval.runs.quality import LabelShare, Overlap, Quality
from coreeval.runs.sources import describe_sources
from coreeval.schema import Task
from coreeval.tasks import kind_of
from coreeval.tools.formatting import (
    NOT_MEASURED,
    format_estimate,
    format_number,
    format_quantity,
    format_share,
    plural,
)
from coreeval.tools.knowledge import describe_coverage
from coreeval.tools.markdown import code_table_cell, dump_front_matter, escape, web_address
from coreeval.tools.tables import Foreign, Row, markdown_table
from coreeval.tools.text import visible_line


def format_ratings(said: PublishedRatings | None) -> Iterator[str]:
    """Yield the section on human ratings; nothing if there are none."""
    if said is None:
        return
    heads = ("", *_ARMS, "updated minus original")
    notes = "\n".join(
        f"- {escape(one.criterion)}: {escape(note)}" for one in said.criteria for note in one.notes
    )
    rows = map(_agreement_row, said.criteria)
    agreement = markdown_table(*_AGREEMENT, rows=rows) if said.raters > 1 else _ONE_RATER
    told = f"""## Ratings by people

{format_quantity(said.raters, "person", "people")} rated {said.items} texts from all arms, in random
order and without knowing the arm of a text. Means have 95 % intervals. The study
{escape(said.study)} was scored on {said.scored_at[:10]}.{_omitted(said.omitted)}

{escape(said.scale)}

{markdown_table(*heads, rows=map(_mean_row, said.criteria))}

{agreement}"""
    yield f"{told}\n\n{notes}" if notes else told


def _omitted(texts: int) -> str:
    if not texts:
        return ""
    told = "1 other rated text is" if texts == 1 else f"{texts} other rated texts are"
    return f" {told} not in this release\nand not counted."


_ARMS: Final[tuple[RatedArm, ...]] = ("original", "semantic", "updated")
_AGREEMENT = ("agreement", "pairs that agree", "Fleiss' kappa", "Krippendorff's alpha")
_ONE_RATER = "There was only one rater, so agreement cannot be measured."


def _mean_row(one: CriterionResult) -> Row:
    scale = f"{escape(one.criterion)}, {one.values[0]} to {one.values[-1]}"
    arms = (_mean(one.arms.get(arm)) for arm in _ARMS)
    return (scale, *arms, format_estimate(one.difference, "+.2f"))


def _mean(score: Score | None) -> str:
    return format_estimate(score, ".2f", n=score.n if score else None, undefined="not rated")


def _agreement_row(one: CriterionResult) -> Row:
    found = one.reliability
    pairs = format_number(found.agreement.estimate, ".1%", NOT_MEASURED)
    kappa, alpha = (
        format_estimate(score, ".3f", ends=".2f", n=score.n, undefined="not defined")
        for score in (found.kappa, found.alpha)
    )
    return (Foreign(one.criterion), pairs, kappa, alpha)


def release_card(task: Task, manifest: ReleaseManifest) -> str:
    """Return the dataset card, which is read by people and by `datasets`."""
    head = dump_front_matter(_head(manifest, task)).strip()
    parts = (
        _contents(task, manifest),
        *_comparability(manifest),
        _quality(manifest.quality, task),
        *format_ratings(manifest.annotation),
        _origin(manifest),
        *_cost(manifest),
        _limits(manifest),
        _terms(manifest),
        _lineage(manifest),
    )
    return "\n\n".join((f"---\n{head}\n---", *parts)) + "\n"


def _head(manifest: ReleaseManifest, task: Task) -> dict[str, object]:
    arms = ("updated", "semantic", "provenance", "samples", "original")
    held = [arm for arm in arms if manifest.arms[arm]]
    front = front_matter(manifest.name, manifest.split, held, task)
    terms = {"license": "other", "license_name": visible_line(manifest.licence.name)}
    if address := web_address(manifest.licence.url):
        terms["license_link"] = address
    return {**front, **terms}


def _contents(task: Task, manifest: ReleaseManifest) -> str:
    rows, fill = manifest.arms, describe_fill(manifest.on_reject)
    quoted = "" if manifest.snippets else " (the news is identified by digest, not quoted)"
    return f"""# {manifest.name} {manifest.version}

{escape(task.description)} Refreshed by {name_in_markdown()} {manifest.fingerprints.code}.

{SYNTHETIC}
{describe_offline_roles(manifest.ruled)}\
{describe_unchecked(task.language)}
| folder | rows | contents |
|---|---|---|
| updated | {rows["updated"]} | rewritten with recent facts, checked and judged{fill} |
| semantic | {rows["semantic"]} | samples reworded with the same facts{_left_out(manifest)} |
| provenance | {rows["provenance"]} | one row per replaced fact, with its evidence{quoted} |
| samples | {rows["samples"]} | one row per benchmark sample: its outcome, digests and dates |
| original | {rows["original"]} | {_originals(manifest)} |

Compare arms only on the samples that both arms contain, matched by `id`.

{describe_gold(task)}"""


def _left_out(manifest: ReleaseManifest) -> str:
    left_out = manifest.semantic_left_out
    if not left_out:
        return ""
    others = format_quantity(left_out, "other is", "others are")
    return (
        f"; {others} left out, because part of the original was not reworded and may not be "
        "redistributed"
    )


def _originals(manifest: ReleaseManifest) -> str:
    if manifest.licence.redistribute:
        return "the benchmark's own texts"
    return "ids, labels and digests of the benchmark's own texts, which may not be redistributed"


def _comparability(manifest: ReleaseManifest) -> Iterator[str]:
    """Yield the section on the similarity of the arms; nothing if it was not measured."""
    found = manifest.findings.comparability if manifest.findings else None
    if found:
        yield describe_comparability(found).strip()


def _quality(quality: Quality, task: Task) -> str:
    noise, display = quality.label_noise, kind_of(task).display
    word, title = display.gold_word, display.label_title
    refused = f"new texts that were retried or rejected because a blind judge gave another {word}"
    shift, bound = (
        format_number(value, undefined=NOT_MEASURED)
        for value in (quality.balance_shift, noise.bound)
    )
    heads = (title, "accepted", "of the benchmark", "of the updated arm")
    rungs = ((one.rung, one.samples, one.accepted) for one in quality.rungs)
    return f"""## Quality

Shares have 95 % Wilson intervals.

| | |
|---|---|
| samples accepted | {format_share(quality.acceptance)} |
| samples for which news was found | {format_share(quality.evidence)} |
| shift of the {title}s' balance, 0 to 1 | {shift} |
| originals to which a blind judge gave another {word} | {format_share(noise.original)} |
| {refused} | {format_share(noise.updated)} |
| upper bound for the share of updated texts with a wrong {word} | {bound} |
| word 5-grams of updated texts that also occur in their original | {_overlap(quality.overlap)} |

The upper bound assumes that the judge errs on new texts no more often than it disagrees with the
originals.

{_label_table(heads, quality, task)}

{markdown_table("news found by", "samples", "accepted", rows=rungs)}"""


def _label_table(heads: Sequence[str], quality: Quality, task: Task) -> str:
    """Return the table of shares by label; unused labels are listed only if the task names them."""
    display = kind_of(task).display
    rows = (one for one in quality.by_label if one.total or not display.columns)
    table = markdown_table(*heads, rows=map(_label_row, rows))
    return f"{table}\n\n{display.label_note}" if display.label_note else table


def _label_row(one: LabelShare) -> Row:
    after = format_number(one.updated_share, ".1%", "")
    return (Foreign(one.label), format_share(one.accepted), f"{one.original_share:.1%}", after)


def _overlap(found: Overlap | None) -> str:
    if found is None or found.share is None:
        return "not measured"
    return f"{found.share:.1%} of {found.grams}"


def _origin(manifest: ReleaseManifest) -> str:
    window, news = manifest.window, manifest.knowledge
    precision, start = describe_precision(news.min_precision), describe_start(manifest.window_start)
    fresh = describe_freshness(manifest.after_cutoff)
    prompts = ((role, code_table_cell(known)) for role, known in manifest.prompts.items())
    return f"""## How it was made

| | |
|---|---|
| run | {code_table_cell(manifest.run)}; its clock showed {manifest.now} |
| news window | {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} (end excluded){start} |
| news | {escape(describe_coverage(news.coverage))} ({news.backend}) |
| least certain publication time accepted | {precision} |
| bad rows of the benchmark | {manifest.bad_rows} |

{model_table(manifest.models)}

{markdown_table("role", "prompt", rows=prompts)}

{count_table(manifest.counts)}

{fresh}`config.yaml` is the config of the run, and `release.json` has all fingerprints."""


def _cost(manifest: ReleaseManifest) -> Iterator[str]:
    """Yield the section on the cost of calls; nothing if no call was paid for."""
    if told := describe_cost(manifest.cost):
        yield told.strip()


def _limits(manifest: ReleaseManifest) -> str:
    excluded = manifest.counts["accepted"] - manifest.published
    return f"""## Limits

- A new fact is only as true as the news that it rests on. Nobody has checked that the news is true.
- The judges are models or rules, so texts that they passed can still be wrong (see Quality).
- The updated arm is not a random part of the benchmark: it lacks samples without matching news.
- A model trained after {manifest.window.end:%Y-%m-%d} may know these facts and these texts.
- Accepted samples excluded by the takedown list or by a person: {excluded}. The list excluded
  {format_quantity(manifest.takedown.withheld, "sample")}, accepted or not.
{_still_stale(manifest)}\
- {_reviewed(manifest)}"""


def _still_stale(manifest: ReleaseManifest) -> str:
    """Return the line about samples that could not be renewed; empty if there are none."""
    if not manifest.still_stale:
        return ""
    return (
        f"- Updated samples that are still stale: {manifest.still_stale}. Their evidence is older "
        "than the run allowed, or from before a new target's cutoff. No sufficiently recent "
        "news was found to renew them.\n"
    )


def _reviewed(manifest: ReleaseManifest) -> str:
    state = manifest.review
    if not state.listed:
        return "No sample names real people or is otherwise doubtful."
    return (
        f"Of {state.listed} {plural(state.listed, 'sample that names', 'samples that name')} real "
        f"people or {plural(state.listed, 'is', 'are')} otherwise doubtful, a person "
        f"approved {state.approved} and rejected {state.rejected}; "
        f"{state.pending} {plural(state.pending, 'is', 'are')} undecided."
    )


def _terms(manifest: ReleaseManifest) -> str:
    licence = manifest.licence
    address = web_address(licence.url)
    url = f" (<{address}>)" if address else ""
    return f"""## Licences

Licence of the benchmark: {escape(licence.name)}{url}; {escape(licence.source)}.
The updated and semantic texts are derived from the benchmark, so its terms may apply to them too.
{_loader(manifest)}
### The news

{describe_sources(manifest.sources)}"""


def _loader(manifest: ReleaseManifest) -> str:
    if manifest.licence.redistribute:
        return ""
    return """
The benchmark's texts are not in this release. Download them from their publisher, then run:

```python
from coreeval import load_originals

originals = load_originals("RELEASE", "FOLDER OR FILE OF THE BENCHMARK")
```

This call checks each text against its digest in `original/`.
"""


def _lineage(manifest: ReleaseManifest) -> str:
    parent = manifest.parent
    follows = (
        f"This release follows {parent.version} (`{parent.digest}`)."
        if parent
        else "This is the first release."
    )
    return f"""## Lineage

{follows} {_changed(manifest.changelog)} See `CHANGELOG.md` for details.
`coreeval verify RELEASE` checks that no byte has changed."""


def _changed(changelog: Changelog) -> str:
    found = changelog.samples
    return (
        f"In the updated arm, {format_quantity(found.added, 'sample is', 'samples are')} new, "
        f"{found.changed} changed and {found.kept} kept; "
        f"{format_quantity(found.removed, 'sample was', 'samples were')} removed."
    )
