"""The list of runs and releases, and the pages of one run: overview, detection, report.

The overview summarises costs by role, results by label, and label noise. The detection page and the
report only show files of the run; nothing is computed or fetched for them.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from jinja2 import TemplateRuntimeError
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from coreeval.config import ModelsConfig
from coreeval.errors import CoreEvalError, RunCorrupt
from coreeval.evaluation.report.report_file import read_report
from coreeval.evaluation.report.report_page import detection_part
from coreeval.evaluation.scores import NO_SCORE, Score, score_proportion
from coreeval.meanings import OUTCOMES, RUNGS, STATES, STEPS
from coreeval.releases.release import read_release
from coreeval.releases.release_manifest import ReleaseManifest
from coreeval.runs.history import leave_out_messages
from coreeval.runs.manifest import Manifest
from coreeval.runs.quality import estimate_noise_bound, measure_balance_shift
from coreeval.runs.status import RunStatus, read_status
from coreeval.schema import RoleName
from coreeval.tasks.kinds import Display, find_display
from coreeval.tasks.kinds.labels import LABELS
from coreeval.tools.clock import utc_now
from coreeval.tools.stores.places import has_store
from coreeval.tools.stores.run_overview import CallSum, Overview
from coreeval.tools.stores.run_store import RunStore
from coreeval.tools.workspace import RunFiles, command
from coreeval.viewer.catalog import RunCatalog, find_run_path, open_requested_run
from coreeval.viewer.downloads import list_report_files
from coreeval.viewer.rendering import render_page
from coreeval.viewer.results import read_results


@dataclass(frozen=True, kw_only=True)
class RunEntry:
    """A run in the list: its status, or the reason that it cannot be read."""

    key: str
    name: str
    now: RunStatus | None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class ReleaseEntry:
    """A release in the list, or the reason that it cannot be read."""

    key: str
    """Its key in URLs; a prefix distinguishes it from a run's."""
    folder: str
    """The folder of all releases of its benchmark."""
    manifest: ReleaseManifest | None
    parent: str = ""
    """The key of the release that it is based on; empty if that release is not listed."""
    problem: str = ""


def show_runs(request: Request) -> Response:
    """List the runs, newest first, and the releases."""
    catalog: RunCatalog = request.app.state.catalog
    runs = [_list_run(key, path) for key, path in catalog.find_runs().items()]
    runs.sort(key=lambda one: one.now.created_at if one.now else "", reverse=True)
    return render_page(request, "runs.html", runs=runs, releases=_list_releases(catalog))


def _list_run(key: str, path: Path) -> RunEntry:
    name = "/".join(path.parts[-2:])
    try:
        return RunEntry(key=key, name=name, now=read_status(path))
    except CoreEvalError as error:
        return RunEntry(key=key, name=name, now=None, problem=error.message)


def _list_releases(catalog: RunCatalog) -> list[ReleaseEntry]:
    """Return the releases, each with the key of the release that it is based on."""
    found = [_list_release(key, path) for key, path in catalog.find_releases().items()]
    keys = {(one.manifest.name, one.manifest.version): one.key for one in found if one.manifest}
    return [
        replace(one, parent=keys.get((one.manifest.name, one.manifest.parent.version), ""))
        if one.manifest and one.manifest.parent
        else one
        for one in found
    ]


def _list_release(key: str, path: Path) -> ReleaseEntry:
    try:
        return ReleaseEntry(key=key, folder=path.parent.name, manifest=read_release(path).manifest)
    except CoreEvalError as error:
        return ReleaseEntry(key=key, folder=path.parent.name, manifest=None, problem=error.message)


def show_detection(request: Request) -> Response:
    """Show the detection results from the report; compute and fetch nothing.

    Raises:
        RunCorrupt: the report is damaged, or not in the form that a run writes.
    """
    with open_requested_run(request) as run:
        report = read_report(run.files)
        part = Markup(_render_detection(report, run.files)) if report else None
        return render_page(request, "detection.html", run=run, part=part)


def _render_detection(report: dict[str, Any], files: RunFiles) -> str:
    try:
        return detection_part(report)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
            TemplateRuntimeError) as error:  # fmt: skip
        raise RunCorrupt(
            f"{files.report_json.name} is not in the format that a run writes: "
            f"{type(error).__name__}: {error}",
            where=str(files.report_json),
            hint=f"write it again: {command('evaluate', files.root)}",
        ) from None


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """The calls of one role to one model, and their cost."""

    role: str
    model: str
    billed_calls: int
    cached_calls: int
    """Calls answered from the call store, which this run did not pay for."""
    prompt_tokens: int
    """Prompt tokens of billed calls only, like the answer tokens."""
    provider_tokens: int
    """The prompt tokens that the provider read from its cache."""
    completion_tokens: int
    usd: float
    """The total cost of billed calls with a known price."""
    unpriced: int
    """The number of billed calls without a known price."""

    def __add__(self, other: "CostRow") -> "CostRow":
        return CostRow(
            role=self.role if self.role == other.role else "",
            model=self.model if self.model == other.model else "",
            billed_calls=self.billed_calls + other.billed_calls,
            cached_calls=self.cached_calls + other.cached_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            provider_tokens=self.provider_tokens + other.provider_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            usd=self.usd + other.usd,
            unpriced=self.unpriced + other.unpriced,
        )


def sum_costs(calls: Sequence[CallSum]) -> list[CostRow]:
    """Return a cost row for each role and model, the most expensive first."""
    rows: dict[tuple[str, str], CostRow] = {}
    for each in calls:
        row, at = _build_cost_row(each), (each.role, each.model)
        rows[at] = rows[at] + row if at in rows else row
    return sorted(rows.values(), key=lambda row: (-row.usd, -row.billed_calls, -row.cached_calls))


def _build_cost_row(calls: CallSum) -> CostRow:
    billed = not calls.cached
    return CostRow(
        role=calls.role,
        model=calls.model,
        billed_calls=calls.calls if billed else 0,
        cached_calls=0 if billed else calls.calls,
        prompt_tokens=calls.prompt_tokens if billed else 0,
        provider_tokens=calls.cached_tokens if billed else 0,
        completion_tokens=calls.completion_tokens if billed else 0,
        usd=(calls.usd or 0.0) if billed else 0.0,
        unpriced=calls.calls - calls.priced if billed else 0,
    )


def add_costs(rows: Sequence[CostRow]) -> CostRow | None:
    """Return the sum of all rows; None if there are none."""
    return sum(rows[1:], rows[0]) if rows else None


@dataclass(frozen=True, kw_only=True)
class LabelRow:
    """The outcomes of the samples with one label."""

    label: str
    total: int
    accepted: int

    @property
    def share(self) -> float:
        """Return the share of samples that were accepted."""
        return self.accepted / self.total


@dataclass(frozen=True, kw_only=True)
class RunQuality:
    """The quality of the updated arm, as far as the run shows it."""

    acceptance: Score
    labels: tuple[LabelRow, ...]
    balance_shift: float | None
    """The total variation distance between the label distributions of benchmark and updated arm."""
    noise: float | None
    """The bound of `estimate_noise_bound` for texts that this run judged; None without any."""


def measure_quality(overview: Overview) -> RunQuality:
    """Return the quality of a run, from the samples that have ended."""
    before = Counter({label: sum(ends.values()) for label, ends in overview.labels.items()})
    after = Counter({label: ends.get("accepted", 0) for label, ends in overview.labels.items()})
    ended = overview.total - overview.outcomes.get("pending", 0)
    noise = estimate_noise_bound(
        _measure_rejections(overview, "original_label"),
        _measure_rejections(overview, "label_preserved"),
    )
    return RunQuality(
        acceptance=score_proportion(after.total(), ended),
        labels=tuple(
            LabelRow(label=label, total=before[label], accepted=after[label])
            for label in sorted(before)
        ),
        balance_shift=measure_balance_shift(before, after),
        noise=noise if after.total() else None,
    )


def find_run_display(store: RunStore) -> Display:
    """Return how the samples of a run are shown to people, based on its first sample."""
    samples = [store.sample(row.sample) for row in store.listing.page(limit=1).rows]
    return find_display(samples[0].fields, samples[0].label_text) if samples else LABELS.display


def _measure_rejections(overview: Overview, name: str) -> Score:
    """Return the share of a judge's verdicts that were rejections."""
    for said in overview.verdicts:
        if said.name == name:
            return score_proportion(said.failed, said.passed + said.failed)
    return NO_SCORE


MEANINGS = {"outcomes": OUTCOMES, "rungs": RUNGS, "states": STATES, "steps": STEPS}
REPORT_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "base-uri 'none'"
)
"""The policy of a report, which has inline styles but no scripts, and fetches nothing."""
REPORT_POLICY = f"{REPORT_PAGE_POLICY}; frame-ancestors 'none'"
"""The same policy as a header; only a header can forbid frames."""


def show_run(request: Request) -> Response:
    """Show a run; without texts, or for a release, no cause quotes an endpoint or a text."""
    state = request.app.state
    narrow = state.hide_texts or (state.bundle and state.bundle.release)
    with open_requested_run(request) as run:
        overview = run.store.listing.overview()
        costs = sum_costs([*overview.calls, *_list_control_calls(run.files)])
        return render_page(
            request,
            "run.html",
            run=run,
            now=read_status(run.files.root),
            overview=overview,
            causes=leave_out_messages(overview.causes) if narrow else overview.causes,
            costs=costs,
            cost=add_costs(costs),
            quality=measure_quality(overview),
            results=read_results(run.files),
            lost={one.target: one.lost for one in run.store.target_answers.tally()},
            display=find_run_display(run.store),
            roles=_list_models(run.manifest),
            report_files=list(list_report_files(run.files)),
            meanings=MEANINGS,
        )


def _list_control_calls(files: RunFiles) -> Sequence[CallSum]:
    """Return the calls of the pass that writes the control arm; none if it cannot be read."""
    if not has_store(files.control.store):
        return ()
    try:
        with RunStore.open(files.control.store, now=utc_now) as store:
            return store.listing.overview().calls
    except RunCorrupt:  # the page shows the run without it
        return ()


def _list_models(manifest: Manifest) -> dict[str, tuple[str, bool]]:
    """Return the model of each role, and whether our rules play the role."""
    models = ModelsConfig.model_validate(manifest.models)
    roles: tuple[RoleName, ...] = get_args(RoleName)
    return {
        role: (models.for_role(role).model, models.for_role(role).is_rule_based) for role in roles
    }


def show_progress(request: Request) -> Response:
    """Show the changing part of a running run's page; reload the whole page when it has ended."""
    key = request.path_params["key"]
    now = read_status(find_run_path(request, key))
    part = render_page(request, "run_now.html", key=key, now=now, meanings=MEANINGS)
    if now.status != "running":
        part.headers["HX-Refresh"] = "true"
    return part


def send_report(request: Request) -> Response:
    """Send the report file of the run.

    Raises:
        HTTPException: 404, there is no report yet; 403, it would show hidden texts.
    """
    if request.app.state.hide_texts:
        raise HTTPException(403, "Texts are hidden here, but the report quotes some of them.")
    found = RunFiles(find_run_path(request, request.path_params["key"])).report_html
    if not found.exists():
        raise HTTPException(
            404, "This run has no report yet; the report is written when the run is complete."
        )
    return FileResponse(
        found, media_type="text/html", headers={"content-security-policy": REPORT_POLICY}
    )
