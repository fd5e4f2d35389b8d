"""Detectors that ask the targets of a finished run."""

from collections.abc import Sequence

from coreeval.api.arguments import require_choice
from coreeval.api.places import RunLike, find_run
from coreeval.api.progress import show_progress_to_viewer
from coreeval.api.tables import CommandResult, Table, parse_columns
from coreeval.evaluation.detectors import ASKED, find_detector
from coreeval.graph.detect import Detection, plan_detection, run_detector
from coreeval.graph.execute import RunHooks
from coreeval.tools.env_file import hold_env_file
from coreeval.tools.trust import retry_with_trust


@hold_env_file()
def detect(
    run: RunLike,
    detector: str,
    *,
    targets: Sequence[str] = (),
    probe: str | None = None,
    budget_usd: float | None = None,
    progress: bool = True,
    trust_endpoints: bool = False,
) -> CommandResult:
    """Send a detector's questions to the targets of a run, and return its findings.

    Args:
        run: The run: its directory, its id, its benchmark's name, `latest`, or a `Run`.
        detector: The detector, such as `recitation`, or one from an allowed plugin.
        targets: The targets to test; by default, all that answer in text.
        probe: An additional type of question, if the detector has one.
        budget_usd: The run's new total budget, including its cost so far.
        progress: Show a progress bar on a terminal and in a notebook.
        trust_endpoints: Send keys and texts to the config's endpoints without confirmation, and
            remember this choice.

    Returns:
        A result whose table has a row for each target: its verdict and the reason.

    Raises:
        UsageError: there is no such detector or probe.
        RunStateError: there is no such run, or it has not ended.
        ConfigError: the run has no such target, or none that answers in text.
        UntrustedEndpoint: a variable would be sent to an endpoint that was not approved.
    """
    known = [name for name, each in ASKED.items() if not each.scores_texts]
    chosen = find_detector(detector) or ASKED[require_choice("detector", detector, known)]
    if probe is not None:
        chosen = chosen.probes[require_choice("probe", probe, list(chosen.probes))]
    plan = plan_detection(chosen, find_run(run), targets, budget_usd)

    def ask() -> Detection:
        with show_progress_to_viewer(progress) as watch:
            return run_detector(plan, around=RunHooks(watch=watch))

    found = retry_with_trust(ask, lambda _: trust_endpoints)
    rows = found.document["targets"]
    said = ", ".join(f"{row['target']}: {row['verdict']}" for row in rows)
    table = Table.from_dicts(detector, parse_columns("target verdict reason"), rows)
    return CommandResult(found.document, said, table)
