"""One release for each period: whoever looks, how often, and whatever happens in between."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from coreeval.config import Config, load_config
from coreeval.errors import (
    BudgetSpent,
    GateNotMet,
    ModelUnusable,
    ReviewOpen,
    RunError,
    RunLocked,
    UsageError,
)
from coreeval.schedule.due import ScheduleResult, run_due
from coreeval.schedule.hooks import HookResult
from coreeval.schedule.plan import open_plan
from tests.schedule.kit import MONDAY, WEEK, FakeSchedule

EVERY = {"success": ["s"], "failure": ["f"], "gate": ["g"]}
WITH_HOOKS = {"cron": "0 3 * * MON", "hooks": EVERY}


@pytest.fixture
def office(tmp_path: Path) -> FakeSchedule:
    return FakeSchedule(tmp_path, schedule=WITH_HOOKS)


def test_what_is_due_is_done_once(office: FakeSchedule) -> None:
    first = office.check_once()
    assert (first.ending, first.exit_code) == ("released", 0)
    assert first.next_due == MONDAY + WEEK
    assert office.did == ["refresh", "release 2026.47"]
    before = office.state
    for hours in (0, 1, 100):
        office.now += timedelta(hours=hours)
        again = office.check_once()
        assert (again.ending, again.exit_code, office.did) == ("nothing", 0, [])
    assert office.state == before
    assert [news.outcome for news in office.told] == ["released"]


def test_it_falls_due_to_the_second(office: FakeSchedule) -> None:
    office.check()
    office.now = MONDAY + WEEK - timedelta(seconds=1)
    assert office.check_once().ending == "nothing"
    office.now += timedelta(seconds=1)
    assert office.check_once().ending == "released"
    assert office.releases == ["2026.47", "2026.48"]


def test_missed_periods_are_made_up_once(office: FakeSchedule) -> None:
    office.check()
    office.now += 3 * WEEK
    done = office.check_once()
    assert (done.ending, done.missed) == ("released", 2)
    assert office.releases == ["2026.47", "2026.50"]
    assert office.check_once().ending == "nothing"


def test_the_clock_that_jumps_back_does_nothing(office: FakeSchedule) -> None:
    office.check()
    office.now -= 5 * WEEK
    back = office.check_once()
    assert (back.ending, back.exit_code, office.did) == ("clock_back", 0, [])
    assert "the clock shows" in back.note


def test_a_run_that_fails_is_gone_on_with(office: FakeSchedule) -> None:
    office.error = ModelUnusable("no quota")
    failed = office.check_once()
    assert (failed.ending, failed.exit_code, office.did) == ("failed", 1, ["refresh"])
    begun = office.state.begun
    assert begun and begun.trouble
    assert (begun.outcome, begun.tries, begun.trouble.message) == ("failed", 1, "no quota")
    assert office.check_once().ending == "failed"
    assert office.did == ["resume"]
    office.error = None
    assert office.check_once().ending == "released"
    assert office.did == ["resume", "release 2026.47"]
    assert office.releases == ["2026.47"]
    assert [news.outcome for news in office.told] == ["failed", "released"]


def test_a_version_that_no_release_can_have_is_made_anew(office: FakeSchedule) -> None:
    """A pattern of before blank-padded hours were refused may have given one."""
    office.error = ModelUnusable("no quota")
    office.check()
    state, file = office.state, office.workspace.root / "schedule" / "n.json"
    assert state.begun
    wrong = state.begun.model_copy(update={"version": "2026-11-16T 3"})
    file.write_text(state.model_copy(update={"begun": wrong}).model_dump_json())
    office.error = None
    assert office.check_once().ending == "released"
    assert office.did == ["resume", "release 2026.47"]


def test_another_kind_of_trouble_is_told_again(office: FakeSchedule) -> None:
    for error in (ModelUnusable("a"), ModelUnusable("b"), BudgetSpent("c"), ModelUnusable("d")):
        office.error = error
        assert office.check_once().exit_code == error.exit_code
    kinds = [news.trouble["kind"] for news in office.told if news.trouble]
    assert kinds == ["model", "budget"]


def test_each_violation_of_a_gate_is_told_once(office: FakeSchedule) -> None:
    low, costly = "acceptance: 0.2 is less than 0.5", "cost_usd: 60 is more than 50"
    for message in (low, low, costly, low, costly):
        office.refused = GateNotMet(message)
        assert office.check_once().ending == "gate"
    messages = [news.trouble["message"] for news in office.told if news.trouble]
    assert messages == [low, costly]


def test_a_violation_is_told_once_though_its_numbers_differ_at_each_look(
    office: FakeSchedule,
) -> None:
    for failed in (31, 29, 33):
        office.refused = GateNotMet(f"{failed} of 900 samples failed")
        assert office.check_once().ending == "gate"
    assert [news.outcome for news in office.told] == ["gate"]


def test_a_review_is_told_of_once_though_fewer_and_fewer_are_open(office: FakeSchedule) -> None:
    for left in (3, 2, 1):
        office.refused = ReviewOpen(f"{left} samples are not decided")
        assert office.check_once().ending == "gate"
    assert [news.outcome for news in office.told] == ["gate"]


def test_a_run_that_never_came_about_is_begun_anew(office: FakeSchedule) -> None:
    with open_plan(office.config) as plan:
        runs = plan.workspace.runs
    office.meanwhile = lambda: (_ for _ in ()).throw(SystemExit)
    with pytest.raises(SystemExit):
        office.check()
    begun = office.state.begun
    assert begun
    assert begun.outcome == "running"
    next(runs.rglob("manifest.json")).unlink()  # killed before the run was there
    Path(begun.run).rmdir()
    office.meanwhile = lambda: None
    assert office.check_once().ending == "released"
    assert office.did == ["refresh", "release 2026.47"]


def test_a_signal_while_hooks_are_told_has_them_told_again(office: FakeSchedule) -> None:
    def interrupted(*_: object) -> tuple[HookResult, ...]:
        raise KeyboardInterrupt

    for error, ending in ((ModelUnusable("no quota"), "failed"), (None, "released")):
        office.error = error
        stopped = replace(office.dependencies(), run_hooks=interrupted)
        [done] = run_due([office.config], stopped)
        assert (done.ending, done.exit_code) == ("interrupted", 130)
        assert office.state.begun and office.state.begun.outcome == "interrupted"
        assert [each.ending for each in office.check()] == [ending]
    assert [news.outcome for news in office.told] == ["failed", "released"]


def test_killed_between_release_and_record(office: FakeSchedule) -> None:
    """The release is there, and nobody was told yet: it is told of, not made again."""
    office.refused = ModelUnusable("killed here")
    office.check()
    office.told.clear()
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    done = office.check_once()
    assert (done.ending, office.did) == ("released", [])
    assert [news.outcome for news in office.told] == ["released"]
    assert office.check_once().ending == "nothing"


def test_a_release_that_somebody_made_by_hand_is_left_alone(office: FakeSchedule) -> None:
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    done = office.check_once()
    assert (done.ending, office.did, office.told) == ("nothing", [], [])
    assert done.period
    assert done.period.version == "2026.47"


def test_a_release_that_does_not_keep_a_gate_waits_and_is_tried_again(office: FakeSchedule) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    (office.folder / "gates.yaml").write_text("gates: {acceptance: {min: 0.5}}")
    office.refused = GateNotMet("1 of 1 gates not met: acceptance: 0.2 is less than 0.5")
    held = office.check_once()
    assert (held.ending, held.exit_code, office.releases) == ("gate", 4, [])
    assert office.did == ["refresh", "release 2026.47 gated"]
    assert [news.outcome for news in office.told] == ["gate"]
    office.refused = None
    assert office.check_once().ending == "released"
    assert office.did == ["resume", "release 2026.47 gated"]
    assert [news.outcome for news in office.told] == ["gate", "released"]


def test_a_release_made_by_hand_is_gated_once(office: FakeSchedule) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    (office.folder / "gates.yaml").write_text("gates: {acceptance: {min: 0.5}}")
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    done = office.check_once()
    assert (done.ending, done.exit_code, office.did) == ("nothing", 0, ["gate 2026.47"])
    assert done.period and done.period.version == "2026.47" and done.next_due == MONDAY + WEEK
    assert (office.check_once().ending, office.did, office.told) == ("nothing", [], [])


def test_a_release_made_by_hand_that_fails_a_gate_waits(office: FakeSchedule) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    (office.folder / "gates.yaml").write_text("gates: {acceptance: {min: 0.5}}")
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    office.refused = GateNotMet("1 of 1 gates not met: acceptance: 0.2 is less than 0.5")
    for _ in range(2):
        held = office.check_once()
        assert (held.ending, held.exit_code, office.did) == ("gate", 4, ["gate 2026.47"])
    assert [news.outcome for news in office.told] == ["gate"]
    office.refused = None
    assert office.check_once().ending == "released"


def test_a_release_made_by_hand_meanwhile_is_gated_before_it_is_told_of(
    office: FakeSchedule,
) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    (office.folder / "gates.yaml").write_text("gates: {acceptance: {min: 0.5}}")
    office.refused = GateNotMet("1 of 1 gates not met: acceptance: 0.2 is less than 0.5")
    office.check()
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    held = office.check_once()
    assert (held.ending, held.exit_code, office.did) == ("gate", 4, ["gate 2026.47"])
    assert [news.outcome for news in office.told] == ["gate"]
    office.refused = None
    done = office.check_once()
    assert (done.ending, office.did) == ("released", ["gate 2026.47"])
    assert [news.outcome for news in office.told] == ["gate", "released"]


@pytest.mark.parametrize(
    ("text", "message"), [(None, "config file not found"), ("x: 1", "gates: this key is required")]
)
def test_gates_that_are_none_are_found_before_anything_is_spent(
    office: FakeSchedule, text: str | None, message: str
) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    if text is not None:
        (office.folder / "gates.yaml").write_text(text)
    done = office.check_once()
    assert (done.ending, done.exit_code, office.did) == ("failed", 2, [])
    assert done.trouble and message in done.trouble.message


def test_what_was_begun_is_finished_before_the_next_period(office: FakeSchedule) -> None:
    office.error = ModelUnusable("no quota")
    office.check()
    office.error, office.now = None, office.now + WEEK
    first, second = office.check()
    assert first.period
    assert second.period
    assert (first.period.version, second.period.version) == ("2026.47", "2026.48")
    assert office.did == ["resume", "release 2026.47", "refresh", "release 2026.48"]


def test_what_cannot_be_finished_gives_way_to_the_next_period(office: FakeSchedule) -> None:
    office.refused = ReviewOpen("2 samples are not decided")
    assert office.check_once().ending == "gate"
    office.now += WEEK
    first, second = office.check()
    assert (first.ending, second.ending) == ("gate", "gate")
    office.refused = None
    assert office.check_once().ending == "released"
    assert office.releases == ["2026.48"]


def test_an_interrupted_run_stops_everything_and_goes_on_later(
    office: FakeSchedule, tmp_path: Path
) -> None:
    office.finishes = False
    other = FakeSchedule(tmp_path, name="other")
    [done] = run_due([office.config, other.config], office.dependencies())
    assert (done.ending, done.exit_code, office.told) == ("interrupted", 130, [])
    assert office.state.begun
    assert office.state.begun.outcome == "interrupted"
    office.finishes = True
    assert office.check_once().ending == "released"
    assert office.did == ["resume", "release 2026.47"]


def test_a_run_that_waits_for_batches_is_no_failure_and_holds_up_no_other_config(
    office: FakeSchedule, tmp_path: Path
) -> None:
    office.finishes, office.waits = False, True
    other = FakeSchedule(tmp_path, name="other")
    first, second = run_due([office.config, other.config], office.dependencies())
    assert (first.ending, first.exit_code, office.told) == ("waiting", 5, [])
    assert second.ending == "waiting"
    assert office.state.begun and office.state.begun.outcome == "waiting"
    office.finishes = True
    assert office.check_once().ending == "released"
    assert office.did == ["resume", "release 2026.47"]


def test_a_period_whose_run_waits_for_batches_is_finished_before_the_next(
    office: FakeSchedule,
) -> None:
    office.finishes, office.waits = False, True
    office.check_once()
    office.now += WEEK
    assert [each.ending for each in office.check()] == ["waiting"]
    office.finishes = True
    assert [each.ending for each in office.check()] == ["released", "released"]
    assert office.releases == ["2026.47", "2026.48"]


def test_failed_samples_are_retried_once_even_if_that_waits_for_batches(
    office: FakeSchedule,
) -> None:
    office.counts = {"total": 20, "accepted": 19, "failed": 1}
    office.schedule = {"cron": "0 3 * * MON", "max_failed": 0.5}
    office.write()
    office.retry_waits = True
    assert office.check_once().ending == "waiting"
    assert office.did == ["refresh", "retry"]
    assert office.check_once().ending == "released"
    assert office.did == ["resume", "release 2026.47"]


def test_only_one_is_at_work(office: FakeSchedule) -> None:
    seen = list[ScheduleResult]()
    office.meanwhile = lambda: seen.extend(run_due([office.config], office.dependencies()))
    assert office.check_once().ending == "released"
    [held] = seen
    assert (held.ending, held.exit_code) == ("held", 0)
    assert held.note.startswith(f"process {os.getpid()} on ")
    assert office.did == ["refresh", "release 2026.47"]


def test_somebody_who_works_on_the_run_by_hand_is_not_disturbed(office: FakeSchedule) -> None:
    office.error = RunLocked("another process is using this run")
    held = office.check_once()
    assert (held.ending, held.exit_code, office.told) == ("held", 0, [])


def test_failed_samples_are_tried_again_and_hold_the_release(office: FakeSchedule) -> None:
    office.counts["failed"] = 2
    done = office.check_once()
    assert (done.ending, done.exit_code) == ("gate", 4)
    assert done.trouble
    assert "2 of 20 samples failed" in done.trouble.message
    assert office.did == ["refresh", "retry"]
    office.check()
    office.counts["failed"] = 1
    done = office.check_once()
    assert office.did == ["resume", "retry", "release 2026.47"]
    assert (done.ending, done.exit_code) == ("released", 1), "some samples failed: exit code 1"
    assert [news.outcome for news in office.told] == ["gate", "released"]


def test_failures_of_the_control_pass_count_as_those_of_the_first(office: FakeSchedule) -> None:
    office.control = {"total": 20, "accepted": 15, "failed": 5}
    done = office.check_once()
    assert (done.ending, done.exit_code, office.did) == ("gate", 4, ["refresh", "retry"])
    assert done.trouble
    assert "5 of 20 samples failed while writing the control arm" in done.trouble.message
    office.control["failed"] = 1
    done = office.check_once()
    assert office.did == ["resume", "retry", "release 2026.47"]
    assert (done.ending, done.exit_code, done.control) == ("released", 1, office.control)


def test_a_waiting_run_whose_config_has_changed_is_replaced(office: FakeSchedule) -> None:
    """The new run is the period's from then on, also where it waits in its turn."""
    office.refused = GateNotMet("gates not met")
    first = office.check_once()
    office.changed.append("window.start")
    office.now += timedelta(minutes=1)
    second = office.check_once()
    assert (second.ending, office.did) == ("gate", ["refresh", "release 2026.47"])
    replaced = f"a new run replaces {first.run}, because the following has changed since it began"
    assert second.note == f"{replaced}: window.start"
    assert second.run != first.run
    assert office.state.begun and office.state.begun.run == second.run
    third = office.check_once()
    assert (third.run, third.note, office.did) == (second.run, "", ["resume", "release 2026.47"])
    office.error = ModelUnusable("no quota")
    office.changed.append("run.seed")
    failed = office.check_once()
    assert (failed.ending, office.did) == ("failed", ["refresh"])
    assert failed.run != second.run and "run.seed" in failed.note
    office.error = office.refused = None
    done = office.check_once()
    assert (done.ending, done.run, office.did) == (
        "released",
        failed.run,
        ["resume", "release 2026.47"],
    )


def test_a_period_with_a_release_keeps_its_run(office: FakeSchedule) -> None:
    office.refused = GateNotMet("gates not met")
    office.check()
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    office.changed.append("window.start")
    done = office.check_once()
    assert (done.ending, done.note, office.did) == ("released", "", [])


def test_a_hook_that_was_not_reached_undoes_nothing(office: FakeSchedule) -> None:
    office.problem = "answered 500"
    done = office.check_once()
    assert (done.ending, done.exit_code, office.releases) == ("released", 1, ["2026.47"])
    assert office.check_once().ending == "nothing"


def test_a_hook_that_was_not_reached_is_tried_again_at_the_next_look(tmp_path: Path) -> None:
    hooks = {"failure": ["mail", "alert"]}
    office = FakeSchedule(tmp_path, schedule={"cron": "0 3 * * MON", "hooks": hooks})
    office.error = ModelUnusable("no quota")
    office.problem, office.unreached = "answered 500", {"alert"}
    assert [each.problem for each in office.check_once().told] == ["", "answered 500"]
    assert [each.hook for each in office.check_once().told] == ["alert"], "mail was told"
    office.problem = ""
    assert [each.hook for each in office.check_once().told] == ["alert"]
    assert office.check_once().told == ()
    office.error = BudgetSpent("no money")
    assert [each.hook for each in office.check_once().told] == ["mail", "alert"]


def test_a_hook_without_an_address_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    hooks = {"success": [{"webhook_env": "NO_SUCH_HOOK"}]}
    office = FakeSchedule(tmp_path, schedule={"cron": "0 3 * * MON", "hooks": hooks})
    done = office.check_once()
    assert (done.ending, done.exit_code, office.did) == ("failed", 2, [])
    (tmp_path / ".env").write_text("NO_SUCH_HOOK=http://127.0.0.1:9/\n")
    assert office.check_once().ending == "released"
    assert "NO_SUCH_HOOK" not in os.environ, "another config must not see it"


def test_samples_are_kept_where_the_schedule_says_so(tmp_path: Path) -> None:
    schedule = {"cron": "0 3 * * MON", "stale_after": "90d", "require_review": True}
    office = FakeSchedule(tmp_path, schedule=schedule)
    office.check()
    assert office.did == ["refresh", "release 2026.47 reviewed"]
    office.now += WEEK
    office.check()
    assert office.did == ["refresh from 2026.47, 90d", "release 2026.48 reviewed"]


def test_trouble_with_one_config_keeps_no_other_waiting(
    office: FakeSchedule, tmp_path: Path
) -> None:
    broken = FakeSchedule(tmp_path, name="broken", schedule="0 3 * * MONN")
    none = FakeSchedule(tmp_path, name="none", schedule=None)
    first, second, third = run_due(
        [broken.config, none.config, office.config], office.dependencies()
    )
    assert [first.exit_code, second.exit_code, third.ending] == [2, 2, "released"]
    assert second.trouble
    assert "has no schedule" in second.trouble.message


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (ValueError("odd"), "this is a bug in CoreEval, not your mistake: ValueError: odd"),
        (RecursionError(), "a bug in CoreEval"),
        (PermissionError(13, "refused", "/store"), "refused"),
    ],
)
def test_a_fault_of_ours_is_told_and_keeps_no_other_waiting(
    office: FakeSchedule, tmp_path: Path, fault: Exception, said: str
) -> None:
    broken = FakeSchedule(tmp_path, name="broken", schedule=WITH_HOOKS)
    endings = iter([fault, None, fault])

    def work() -> None:
        if error := next(endings):
            raise error

    office.meanwhile = work
    for outcomes in (["failed", "released"], ["failed", "nothing"]):
        done = list(run_due([broken.config, office.config], office.dependencies()))
        assert [each.ending for each in done] == outcomes
        assert (done[0].exit_code, done[0].error) == (1, fault)
    begun = broken.state.begun
    assert begun and begun.trouble
    assert (begun.outcome, begun.tries) == ("failed", 2)
    assert said in begun.trouble.message
    assert [(news.name, news.outcome) for news in office.told] == [
        ("broken", "failed"),
        ("n", "released"),
    ]


def test_a_fault_while_a_config_is_read_keeps_no_other_waiting(
    office: FakeSchedule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FakeSchedule(tmp_path, name="other")

    def load(path: Path) -> Config:
        if path == other.config:
            raise RecursionError
        return load_config(path)

    monkeypatch.setattr("coreeval.schedule.plan.load_config", load)
    done = list(run_due([other.config, office.config], office.dependencies()))
    assert [each.ending for each in done] == ["failed", "released"]
    assert done[0].trouble and "bug in CoreEval" in done[0].trouble.message
    assert str(other.config) in done[0].trouble.where


def test_two_configs_of_one_name_are_refused(office: FakeSchedule, tmp_path: Path) -> None:
    twin = tmp_path / "twin.yaml"
    twin.write_text(office.config.read_text())
    with pytest.raises(UsageError, match="two configs in this workspace are named"):
        list(run_due([office.config, twin], office.dependencies()))
    assert office.did == []


def test_so_they_are_in_two_commands_but_a_config_may_be_renamed(
    office: FakeSchedule, tmp_path: Path
) -> None:
    twin = tmp_path / "twin.yaml"
    twin.write_text(office.config.read_text())
    assert office.check_once().ending == "released"
    (done,) = run_due([twin], office.dependencies())
    assert (done.ending, done.exit_code) == ("failed", UsageError.exit_code)
    assert done.trouble and "two configs in this workspace are named" in done.trouble.message
    office.config.unlink()
    (done,) = run_due([twin], office.dependencies())
    assert done.ending == "nothing"


def test_a_damaged_state_is_told_and_not_overwritten(office: FakeSchedule) -> None:
    office.check()
    with open_plan(office.config) as plan:
        path = plan.state_file.path
    path.write_text('{"schema_version": 1')
    done = office.check_once()
    assert (done.exit_code, done.trouble and done.trouble.kind) == (1, "corrupt")
    assert path.read_text() == '{"schema_version": 1'
    path.unlink()
    assert office.check_once().ending == "nothing", "the release itself says that it is there"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (os.mkfifo, "it is a named pipe"),
        (os.mkdir, "Is a directory"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a device"),
    ],
)
def test_what_stands_in_place_of_the_state_is_told_without_waiting(
    office: FakeSchedule, make: Callable[[Path], None], kind: str
) -> None:
    path = office.workspace.root / "schedule" / "n.json"
    path.parent.mkdir(parents=True)
    make(path)
    done = office.check_once()
    assert (done.exit_code, office.did) == (1, [])
    assert done.trouble
    assert done.trouble.message == f"cannot read the schedule's state: {kind}"
    assert done.trouble.where == str(path)
    assert "remove it" in done.trouble.hint


def test_another_schedule_goes_on_where_the_last_one_ended(office: FakeSchedule) -> None:
    office.check()
    office.schedule = {"cron": "0 3 * * *", "timezone": "Europe/Berlin"}
    office.write()
    assert office.check_once().ending == "nothing"
    office.now += timedelta(days=1)
    assert office.check_once().ending == "released"
    assert office.releases == ["2026-11-17", "2026.47"]
    assert json.loads(office.state.model_dump_json())["finished"]["version"] == "2026-11-17"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize(
    "now", ["9999-12-31T23:59:59.999999+00:00", "9999-12-29T23:00:00+00:00", "0001-01-01T00:00Z"]
)
@pytest.mark.parametrize("cron", ["0 3 * * MON", "* * * * *", "0 0 29 2 *"])
def test_the_ends_of_the_calendar_are_no_fault(
    cron: str, now: str, zone: str, tmp_path: Path
) -> None:
    office = FakeSchedule(tmp_path, schedule={"cron": cron, "timezone": zone})
    office.now = datetime.fromisoformat(now)
    assert office.check_once().ending in ("released", "nothing")
    assert office.check_once().ending == "nothing"


def _write_state(office: FakeSchedule, **state: object) -> None:
    path = office.state_path
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"name": office.name, **state}))


def _begun_in(run: str) -> dict[str, object]:
    at = MONDAY.isoformat()
    who = {"pid": 1, "host": "elsewhere", "tries": 1}
    return {"due_at": at, "version": "2026.47", "run": run, "began_at": at, "tried_at": at} | who


@pytest.mark.parametrize("run", ["{victim}/stamp", "{runs}/..", "", "/", "a\0b", "{runs}/linked"])
def test_a_strangers_state_names_no_run_outside_of_the_workspace(run: str, tmp_path: Path) -> None:
    office, victim = FakeSchedule(tmp_path / "mine"), tmp_path / "victim"
    (victim / "stamp").mkdir(parents=True)
    (victim / "stamp" / "manifest.json").touch()
    runs = office.workspace.runs / office.name
    runs.mkdir(parents=True)
    (runs / "linked").symlink_to(victim / "stamp")
    _write_state(office, begun=_begun_in(run.format(victim=victim, runs=runs)))
    done = office.check_once()
    assert (done.ending, office.did[0]) == ("released", "refresh")
    assert Path(done.run).resolve().parent == runs
    assert [path.name for path in victim.rglob("*")] == ["stamp", "manifest.json"]


def test_a_run_moved_with_its_workspace_is_resumed(tmp_path: Path) -> None:
    office = FakeSchedule(tmp_path / "old", error=RunError("the endpoint is down"))
    assert office.check_once().ending == "failed"
    run = Path(office.state.begun.run if office.state.begun else "")
    shutil.move(tmp_path / "old", tmp_path / "new")
    office = FakeSchedule(tmp_path / "new")
    done = office.check_once()
    assert (done.ending, office.did) == ("released", ["resume", "release 2026.47"])
    assert Path(done.run) == office.workspace.runs / office.name / run.name
    assert not (tmp_path / "old").exists()


def test_a_release_of_the_future_is_told(tmp_path: Path) -> None:
    office, at = FakeSchedule(tmp_path / "mine"), MONDAY.isoformat()
    release = {"version": "v", "run": "r", "release": "r", "ended_at": at}
    _write_state(office, finished={"due_at": "9000-01-01T00:00:00Z", **release})
    done = office.check_once()
    assert done.ending == "clock_back" and "9000-01-01" in done.note


def test_a_state_of_the_last_year_is_told(tmp_path: Path) -> None:
    office = FakeSchedule(tmp_path)
    assert office.check_once().ending == "released"
    path = tmp_path / ".coreeval" / "schedule" / "n.json"
    state = json.loads(path.read_text())
    state["finished"]["ended_at"] = "9999-12-31T23:30:00-05:00"
    path.write_text(json.dumps(state))
    assert office.check_once().ending == "clock_back"
    state["finished"]["due_at"] = "9999-12-31T23:30:00-05:00"
    path.write_text(json.dumps(state))
    done = office.check_once()
    assert done.trouble and "cannot read the schedule's state" in done.trouble.message
