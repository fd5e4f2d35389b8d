"""The findings in a run's report as a release states them: without samples that are withheld."""

from collections.abc import Collection

from coreeval.evaluation.report.report_file import read_report
from coreeval.releases.sources import ReleaseSources
from coreeval.runs.comparison import ComparedRun, compare_arms, compare_with_originals
from coreeval.runs.quality import Findings, read_findings
from coreeval.tools.stores.run_store import RunStore


def read_published_findings(
    made_of: ReleaseSources, store: RunStore, withheld: Collection[str]
) -> Findings | None:
    """Return the findings about targets in the run's report; None if there is no report.

    If the report compares other samples than the release contains, because some are withheld, the
    arms are compared again. Verdicts on targets stay those of the report.

    Raises:
        RunCorrupt: the report is damaged.
    """
    where = made_of.files.report_json
    report = read_report(made_of.files)
    if report is None:
        return None
    found = read_findings(report, where=where)
    run = ComparedRun(
        store=store,
        task=made_of.task,
        targets={str(each.get("target")): str(each.get("role")) for each in report["targets"]},
        seed=made_of.config.run.seed,
        withheld=withheld,
    )
    alike = found.comparability
    if len(run.list_accepted()) == (alike.samples if alike else made_of.run.counts["accepted"]):
        return found
    alike = compare_with_originals(run)
    again = {
        "arms": compare_arms(run).model_dump(mode="json"),
        "comparability": alike and alike.model_dump(mode="json"),
    }
    return read_findings({**report, **again}, where=where)
