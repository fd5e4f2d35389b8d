"""One release for each period: whoever looks, how often, and whatever happens in between."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from coreeval.errors import (
    BudgetSpent,
    GateNotMet,
    ModelUnusable,
    ReviewOpen,
    RunLocked,
    UsageError,
)
from coreeval.schedule.done import Done
from coreeval.schedule.due import due
from coreeval.schedule.plan import planned
from tests.schedule.kit import MONDAY, WEEK, Office

EVERY = {"success": ["s"], "failure": ["f"], "gate": ["g"]}
WITH_HOOKS = {"cron": "0 3 * * MON", "hooks": EVERY}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path, schedule=WITH_HOOKS)


def test_what_is_due_is_done_once(office: Office) -> None:
    first = office.look_once()
    assert (first.ending, first.exit_code) == ("released", 0)
    assert first.next_due == MONDAY + WEEK
    assert office.did == ["refresh", "release 2026.47"]
    before = office.state
    for hours in (0, 1, 100):
        office.now += timedelta(hours=hours)
        again = office.look_once()
        assert (again.ending, again.exit_code, office.did) == ("nothing", 0, [])
    assert office.state == before
    assert [news.outcome for news in office.told] == ["released"]


def test_it_falls_due_to_the_second(office: Office) -> None:
    office.look()
    office.now = MONDAY + WEEK - timedelta(seconds=1)
    assert office.look_once().ending == "nothing"
    office.now += timedelta(seconds=1)
    assert office.look_once().ending == "released"
    assert office.releases == ["2026.47", "2026.48"]


def test_missed_periods_are_made_up_once(office: Office) -> None:
    office.look()
    office.now += 3 * WEEK
    done = office.look_once()
    assert (done.ending, done.missed) == ("released", 2)
    assert office.releases == ["2026.47", "2026.50"]
    assert office.look_once().ending == "nothing"


def test_the_clock_that_jumps_back_does_nothing(office: Office) -> None:
    office.look()
    office.now -= 5 * WEEK
    back = office.look_once()
    assert (back.ending, back.exit_code, office.did) == ("clock_back", 0, [])
    assert "the clock says 2026-10-12" in back.note


def test_a_run_that_fails_is_gone_on_with(office: Office) -> None:
    office.error = ModelUnusable("no quota")
    failed = office.look_once()
    assert (failed.ending, failed.exit_code, office.did) == ("failed", 1, ["refresh"])
    begun = office.state.begun
    assert begun and begun.trouble
    assert (begun.outcome, begun.tries, begun.trouble.message) == ("failed", 1, "no quota")
    assert office.look_once().ending == "failed"
    assert office.did == ["resume"]
    office.error = None
    assert office.look_once().ending == "released"
    assert office.did == ["resume", "release 2026.47"]
    assert office.releases == ["2026.47"]
    assert [news.outcome for news in office.told] == ["failed", "released"]


def test_another_kind_of_trouble_is_told_again(office: Office) -> None:
    for error in (ModelUnusable("a"), ModelUnusable("b"), BudgetSpent("c"), ModelUnusable("d")):
        office.error = error
        assert office.look_once().exit_code == error.exit_code
    kinds = [news.trouble["kind"] for news in office.told if news.trouble]
    assert kinds == ["model", "budget"]


def test_each_violation_of_a_gate_is_told_once(office: Office) -> None:
    low, costly = "acceptance: 0.2 is less than 0.5", "cost_usd: 60 is more than 50"
    for message in (low, low, costly, low, costly):
        office.refused = GateNotMet(message)
        assert office.look_once().ending == "gate"
    messages = [news.trouble["message"] for news in office.told if news.trouble]
    assert messages == [low, costly]


def test_a_violation_is_told_once_though_its_numbers_differ_at_each_look(office: Office) -> None:
    for failed in (31, 29, 33):
        office.refused = GateNotMet(f"{failed} of 900 samples failed")
        assert office.look_once().ending == "gate"
    assert [news.outcome for news in office.told] == ["gate"]


def test_a_review_is_told_of_once_though_fewer_and_fewer_are_open(office: Office) -> None:
    for left in (3, 2, 1):
        office.refused = ReviewOpen(f"{left} samples are not decided")
        assert office.look_once().ending == "gate"
    assert [news.outcome for news in office.told] == ["gate"]


def test_a_run_that_never_came_about_is_begun_anew(office: Office) -> None:
    with planned(office.config) as plan:
        runs = plan.workspace.runs
    office.meanwhile = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        office.look()
    begun = office.state.begun
    assert begun
    assert begun.outcome == "running"
    next(runs.rglob("manifest.json")).unlink()  # killed before the run was there
    Path(begun.run).rmdir()
    office.meanwhile = lambda: None
    assert office.look_once().ending == "released"
    assert office.did == ["refresh", "release 2026.47"]


def test_killed_between_release_and_record(office: Office) -> None:
    """The release is there, and nobody was told yet: it is told of, not made again."""
    office.refused = ModelUnusable("killed here")
    office.look()
    office.told.clear()
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    done = office.look_once()
    assert (done.ending, office.did) == ("released", [])
    assert [news.outcome for news in office.told] == ["released"]
    assert office.look_once().ending == "nothing"


def test_a_release_that_somebody_made_by_hand_is_left_alone(office: Office) -> None:
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    done = office.look_once()
    assert (done.ending, office.did, office.told) == ("nothing", [], [])
    assert done.period
    assert done.period.version == "2026.47"


def test_a_release_that_does_not_keep_a_gate_waits_and_is_tried_again(office: Office) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    (office.folder / "gates.yaml").write_text("gates: {acceptance: {min: 0.5}}")
    office.refused = GateNotMet("gates not met: 1 of 1: acceptance: 0.2 is less than 0.5")
    held = office.look_once()
    assert (held.ending, held.exit_code, office.releases) == ("gate", 4, [])
    assert office.did == ["refresh", "release 2026.47 gated"]
    assert [news.outcome for news in office.told] == ["gate"]
    office.refused = None
    assert office.look_once().ending == "released"
    assert office.did == ["resume", "release 2026.47 gated"]
    assert [news.outcome for news in office.told] == ["gate", "released"]


def test_a_release_made_by_hand_meanwhile_is_gated_before_it_is_told_of(office: Office) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    (office.folder / "gates.yaml").write_text("gates: {acceptance: {min: 0.5}}")
    office.refused = GateNotMet("gates not met: 1 of 1: acceptance: 0.2 is less than 0.5")
    office.look()
    (office.workspace.releases / "n" / "2026.47").mkdir(parents=True)
    held = office.look_once()
    assert (held.ending, held.exit_code, office.did) == ("gate", 4, ["gate 2026.47"])
    assert [news.outcome for news in office.told] == ["gate"]
    office.refused = None
    done = office.look_once()
    assert (done.ending, office.did) == ("released", ["gate 2026.47"])
    assert [news.outcome for news in office.told] == ["gate", "released"]


@pytest.mark.parametrize(
    ("text", "message"), [(None, "no such config file"), ("x: 1", "gates: Field required")]
)
def test_gates_that_are_none_are_found_before_anything_is_spent(
    office: Office, text: str | None, message: str
) -> None:
    office.schedule = {**WITH_HOOKS, "gates": "gates.yaml"}
    office.write()
    if text is not None:
        (office.folder / "gates.yaml").write_text(text)
    done = office.look_once()
    assert (done.ending, done.exit_code, office.did) == ("failed", 2, [])
    assert done.trouble and message in done.trouble.message


def test_what_was_begun_is_finished_before_the_next_period(office: Office) -> None:
    office.error = ModelUnusable("no quota")
    office.look()
    office.error, office.now = None, office.now + WEEK
    first, second = office.look()
    assert first.period
    assert second.period
    assert (first.period.version, second.period.version) == ("2026.47", "2026.48")
    assert office.did == ["resume", "release 2026.47", "refresh", "release 2026.48"]


def test_what_cannot_be_finished_gives_way_to_the_next_period(office: Office) -> None:
    office.refused = ReviewOpen("2 samples are not decided")
    assert office.look_once().ending == "gate"
    office.now += WEEK
    first, second = office.look()
    assert (first.ending, second.ending) == ("gate", "gate")
    office.refused = None
    assert office.look_once().ending == "released"
    assert office.releases == ["2026.48"]


def test_an_interrupted_run_stops_everything_and_goes_on_later(
    office: Office, tmp_path: Path
) -> None:
    office.finishes = False
    other = Office(tmp_path, name="other")
    [done] = due([office.config, other.config], office.hands())
    assert (done.ending, done.exit_code, office.told) == ("interrupted", 130, [])
    assert office.state.begun
    assert office.state.begun.outcome == "interrupted"
    office.finishes = True
    assert office.look_once().ending == "released"
    assert office.did == ["resume", "release 2026.47"]


def test_only_one_is_at_work(office: Office) -> None:
    seen = list[Done]()
    office.meanwhile = lambda: seen.extend(due([office.config], office.hands()))
    assert office.look_once().ending == "released"
    [held] = seen
    assert (held.ending, held.exit_code) == ("held", 0)
    assert held.note.startswith(f"process {os.getpid()} on ")
    assert office.did == ["refresh", "release 2026.47"]


def test_somebody_who_works_on_the_run_by_hand_is_not_disturbed(office: Office) -> None:
    office.error = RunLocked("another process works on this run")
    held = office.look_once()
    assert (held.ending, held.exit_code, office.told) == ("held", 0, [])


def test_failed_samples_are_tried_again_and_hold_the_release(office: Office) -> None:
    office.counts["failed"] = 2
    done = office.look_once()
    assert (done.ending, done.exit_code) == ("gate", 4)
    assert done.trouble
    assert "2 of 20 samples failed" in done.trouble.message
    assert office.did == ["refresh", "retry"]
    office.look()
    office.counts["failed"] = 1
    done = office.look_once()
    assert office.did == ["resume", "retry", "release 2026.47"]
    assert (done.ending, done.exit_code) == ("released", 1), "some samples failed: exit code 1"
    assert [news.outcome for news in office.told] == ["gate", "released"]


def test_a_hook_that_was_not_reached_undoes_nothing(office: Office) -> None:
    office.problem = "answered 500"
    done = office.look_once()
    assert (done.ending, done.exit_code, office.releases) == ("released", 1, ["2026.47"])
    assert office.look_once().ending == "nothing"


def test_a_hook_without_an_address_is_found_before_anything_is_spent(tmp_path: Path) -> None:
    hooks = {"success": [{"webhook_env": "NO_SUCH_HOOK"}]}
    office = Office(tmp_path, schedule={"cron": "0 3 * * MON", "hooks": hooks})
    done = office.look_once()
    assert (done.ending, done.exit_code, office.did) == ("failed", 2, [])
    (tmp_path / ".env").write_text("NO_SUCH_HOOK=http://127.0.0.1:9/\n")
    assert office.look_once().ending == "released"
    assert "NO_SUCH_HOOK" not in os.environ, "another config must not see it"


def test_samples_are_kept_where_the_schedule_says_so(tmp_path: Path) -> None:
    schedule = {"cron": "0 3 * * MON", "stale_after": "90d", "require_review": True}
    office = Office(tmp_path, schedule=schedule)
    office.look()
    assert office.did == ["refresh", "release 2026.47 reviewed"]
    office.now += WEEK
    office.look()
    assert office.did == ["refresh from 2026.47, 90d", "release 2026.48 reviewed"]


def test_trouble_with_one_config_keeps_no_other_waiting(office: Office, tmp_path: Path) -> None:
    broken = Office(tmp_path, name="broken", schedule="0 3 * * MONN")
    none = Office(tmp_path, name="none", schedule=None)
    first, second, third = due([broken.config, none.config, office.config], office.hands())
    assert [first.exit_code, second.exit_code, third.ending] == [2, 2, "released"]
    assert second.trouble
    assert "has no schedule" in second.trouble.message


def test_two_configs_of_one_name_are_refused(office: Office, tmp_path: Path) -> None:
    twin = tmp_path / "twin.yaml"
    twin.write_text(office.config.read_text())
    with pytest.raises(UsageError, match="two configs are named 'n'"):
        list(due([office.config, twin], office.hands()))
    assert office.did == []


def test_a_damaged_state_is_told_and_not_overwritten(office: Office) -> None:
    office.look()
    with planned(office.config) as plan:
        path = plan.book.path
    path.write_text('{"schema_version": 1')
    done = office.look_once()
    assert (done.exit_code, done.trouble and done.trouble.kind) == (1, "corrupt")
    assert path.read_text() == '{"schema_version": 1'
    path.unlink()
    assert office.look_once().ending == "nothing", "the release itself says that it is there"


def test_another_schedule_goes_on_where_the_last_one_ended(office: Office) -> None:
    office.look()
    office.schedule = {"cron": "0 3 * * *", "timezone": "Europe/Berlin"}
    office.write()
    assert office.look_once().ending == "nothing"
    office.now += timedelta(days=1)
    assert office.look_once().ending == "released"
    assert office.releases == ["2026-11-17", "2026.47"]
    assert json.loads(office.state.model_dump_json())["finished"]["version"] == "2026-11-17"
