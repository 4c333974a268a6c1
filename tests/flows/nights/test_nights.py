"""Nights and backfills as a user starts them: calls, stored rows, and alerts."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.flows.conftest import CONCURRENCY, N_CRITERIA, N_TASKS
from tests.flows.nights.night_world import N_CONTROL, NightWorld, Seen, night_world

pytestmark = pytest.mark.slow


@dataclass
class Nights:
    """Five nights in a row: the third runs twice, the last fails."""

    world: NightWorld
    first: Seen
    second: Seen
    regressed: Seen
    regressed_again: Seen
    drifted: Seen
    failed: Seen


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    with night_world(tmp_path_factory.mktemp("nights")) as world:
        data = world.command.folder / "tasks.jsonl"
        away = world.command.folder / "away.jsonl"
        gate = ("--fail-if", "worse", "--summary", str(world.command.folder / "summary.md"))
        first = world.night("2026-11-01", *gate, code=1)
        second = world.night("2026-11-02", *gate)
        regressed = world.night("2026-11-03", "--json", has_regressed=True)
        regressed_again = world.night("2026-11-03", *gate, code=3)
        drifted = world.night("2026-11-04", judge_drifts=True)
        data.rename(away)
        failed = world.night("2026-11-05", code=2)
        away.rename(data)
        yield Nights(world, first, second, regressed, regressed_again, drifted, failed)


def test_a_night_without_a_change_calls_for_nightly_models_and_controls_and_alerts_nobody(
    nights: Nights,
) -> None:
    assert [night.messages for night in (nights.first, nights.second)] == [[], []]
    assert Counter(nights.first.sampled) == {"pinned": N_TASKS, "fresh": N_TASKS}
    assert nights.first.n_judged == 2 * N_CRITERIA + N_CONTROL
    assert nights.second.sampled == ["fresh"] * N_TASKS
    assert nights.second.n_judged == N_CRITERIA + N_CONTROL


def test_a_night_tidies_up_the_ledger_that_it_wrote_itself(nights: Nights) -> None:
    (line,) = [
        line for line in nights.second.output.stderr.splitlines() if line.startswith("compact: ")
    ]
    assert "0 raw replies older than 1 days deleted" in line
    assert "ledger files skipped" not in line


def test_a_regression_is_sent_with_the_right_numbers(nights: Nights) -> None:
    (alert,) = nights.regressed.alerts.values()
    facts = alert["facts"]
    compared = ("diff", "2026-11-02", "2026-11-03", "--model", "fresh", "--warehouse", "data")
    (shown,) = nights.world.command.json(*compared)["comparisons"]

    assert alert["kind"] == "score_drop"
    assert alert["subject"] == "fresh"
    assert facts["first_vintage"] == "2026-11-02"
    assert facts["second_vintage"] == "2026-11-03"
    for name in ("first_mean", "second_mean", "difference", "ci_low", "ci_high", "p_value"):
        assert pytest.approx(shown[name]) == facts[name], name
    assert facts["p_value"] == facts["p_adjusted"] < 0.05
    assert facts["ci_low"] < facts["difference"] < facts["ci_high"] < 0
    assert facts["n_tasks"] == N_TASKS
    assert not facts["judge_drifted"]
    assert f"fresh fell by {-facts['difference']:.3f} on tasks" in alert["line"]
    assert "drifted" not in alert["line"]


def test_a_night_whose_scores_fell_fails_a_job_that_asks_for_it(nights: Nights) -> None:
    reasons = [
        [line for line in night.output.stderr.splitlines() if line.startswith("exit code")]
        for night in (nights.first, nights.second, nights.regressed_again)
    ]
    summary = (nights.world.command.folder / "summary.md").read_text(encoding="utf-8")
    titles = [line for line in summary.splitlines() if line.startswith("## ")]

    assert reasons[:2] == [
        ["exit code 1 (not compared): the night of 2026-11-01 has no earlier one to compare with"],
        ["exit code 0 (done)"],
    ]
    assert reasons[2][0].startswith("exit code 3 (worse): fresh fell by ")
    assert titles == [f"## prbench, night 2026-11-0{day}" for day in (1, 2, 3)]
    assert "| fresh 2026-11-02 → fresh 2026-11-03 | tasks | judge | " in summary


def test_a_finished_night_that_is_started_again_sends_only_what_was_not_delivered(
    nights: Nights,
) -> None:
    again = nights.regressed_again
    assert again.calls == []
    assert again.messages == []
    assert again.n_pings == 1
    assert "alert: fresh fell on tasks: " in again.output.stderr
    assert nights.world.command.sql(
        "select count(*) as n from alerts where night = '2026-11-03'"
    ) == [{"n": 1}]


def test_a_drifting_judge_is_an_alert_and_the_drop_of_its_night_names_it(nights: Nights) -> None:
    alerts = nights.drifted.alerts

    assert set(alerts) == {"judge_drift", "score_drop"}
    assert alerts["judge_drift"]["subject"] == "judge"
    facts = alerts["judge_drift"]["facts"]
    # At first half of the control set was met, now none of it.
    assert facts["n_decided"] == N_CONTROL
    assert facts["agreement"] == 0.5
    assert facts["met_share"] == 0.0
    assert alerts["score_drop"]["facts"]["judge_drifted"] is True
    assert "so the judge may be the cause, not the model" in alerts["score_drop"]["line"]


def test_a_receiver_that_fails_fails_no_night_and_stands_in_the_table(nights: Nights) -> None:
    of_nights = "night <= '2026-11-05' and receiver <> 'ping'"
    delivered = nights.world.command.sql(
        f"from alert_deliveries where {of_nights} order by night, receiver"
    )
    outcomes = nights.world.command.sql(
        "select distinct outcome from runs where night < '2026-11-05'"
    )

    assert [
        ("2026-11-03", "webhook 1", "sent", 1),
        *[("2026-11-03", "webhook 2", "failed", 1)] * 2,
        ("2026-11-04", "webhook 1", "sent", 2),
        ("2026-11-04", "webhook 2", "failed", 2),
        ("2026-11-05", "webhook 1", "sent", 1),
        ("2026-11-05", "webhook 2", "failed", 1),
    ] == [(row["night"], row["receiver"], row["status"], row["n_alerts"]) for row in delivered]
    assert {row["error"] for row in delivered} == {None, "the server responded with status 500"}
    assert outcomes == [{"outcome": "done"}]


def test_what_follows_the_host_of_a_receivers_address_is_neither_stored_nor_shown(
    nights: Nights,
) -> None:
    stored = (
        nights.world.command.sql("select config from runs"),
        nights.world.command.sql("from alert_deliveries"),
    )
    shown = [
        night.output.stdout + night.output.stderr
        for night in (nights.regressed, nights.drifted, nights.failed)
    ]
    assert "127.0.0.1" in str(stored)
    assert "a-secret-path" in nights.world.receiver.address
    assert "a-secret-path" not in str(stored) + str(shown)


def test_a_night_that_fails_sends_one_line_that_says_why(nights: Nights) -> None:
    (alert,) = nights.failed.alerts.values()

    assert alert["kind"] == "failure"
    assert alert["line"].startswith("the night of 2026-11-05 failed: ")
    assert "tasks.jsonl is not a file" in alert["line"]
    assert nights.failed.calls == []
    assert nights.failed.output.stderr.count("prbench: ") == 1
    # The dead-man's switch is called after each night that finished.
    ended = (nights.first, nights.second, nights.regressed, nights.drifted, nights.failed)
    assert [night.n_pings for night in ended] == [1, 1, 1, 1, 0]


@pytest.fixture(scope="module")
def filled(nights: Nights) -> NightWorld:
    """The world after these nights, with two more models that have no rows yet."""
    nights.world.configure(
        models=[nights.world.endpoint(label) for label in ("pinned", "late", "locked")]
    )
    return nights.world


LATE_AND_LOCKED = ("backfill", "--model", "late", "--model", "locked")


def test_a_dry_run_shows_the_plan_and_calls_nothing(filled: NightWorld) -> None:
    shown = filled.watched(*LATE_AND_LOCKED, "--dry-run")
    planned = filled.watched(*LATE_AND_LOCKED, "--dry-run", "--json")
    one = ("--model", "late", "--task", "sample-leg-1", "--trial", "2")
    narrow = filled.watched("backfill", *one, "--dry-run", "--json")
    (n_criteria,) = filled.command.sql(
        "select n_criteria as n from tasks where task_id = 'sample-leg-1'"
    )

    assert shown.calls == planned.calls == narrow.calls == []
    assert calls_of(planned) == {
        "late": N_TASKS,
        "locked": N_TASKS,
        "judge": 2 * N_CRITERIA,
    }
    assert {"late": 1, "judge": n_criteria["n"]} == calls_of(narrow)
    assert all(label in shown.output.stdout for label in calls_of(planned))


def test_a_backfill_fills_in_what_is_missing_and_a_model_that_fails_holds_up_no_other(
    filled: NightWorld,
) -> None:
    selections = "select selection_id, task_id from hard_subset order by all"
    selected = filled.command.sql(selections)

    rest = filled.watched(*LATE_AND_LOCKED, code=3, refused="locked")
    sampled = Counter(rest.sampled)
    assert sampled["late"] == N_TASKS
    assert 1 <= sampled["locked"] <= CONCURRENCY + 1  # the last one is a harmless request
    assert rest.n_judged == N_CRITERIA
    (stopped,) = [
        line for line in rest.output.stderr.splitlines() if "stopped for this run" in line
    ]
    assert stopped.strip().startswith("hosted_vllm/locked at ")
    assert "wrong key" in stopped
    assert "responses of locked, trial 1: 0 of 8 are done" in rest.output.stderr

    healed = filled.watched(*LATE_AND_LOCKED)
    assert healed.sampled == ["locked"] * N_TASKS
    assert healed.n_judged == N_CRITERIA
    both = filled.command.sql(selections)
    assert selected
    assert all(row in both for row in selected)
    assert len({row["selection_id"] for row in both}) > len(
        {row["selection_id"] for row in selected}
    )
    ranked = {row["model"] for row in filled.command.json("leaderboard", "--warehouse", "data")}
    assert {"pinned", "late", "locked"} <= ranked


@pytest.mark.long
def test_a_night_and_a_backfill_with_a_decision_model_make_one_call_for_each_rubric(
    tmp_path: Path,
) -> None:
    pieces = (
        "select distinct verdicts.response_id from control_set inner join verdicts using"
        " (verdict_id)"
    )
    with night_world(tmp_path) as world:
        world.configure(judges=[world.endpoint("judge", kind="decisions", criteria_per_call="all")])
        night = world.night("2026-11-01")
        assert 2 * N_TASKS + len(world.command.sql(pieces)) == night.n_judged
        world.configure(models=[world.endpoint("late")])
        planned = world.watched("backfill", "--model", "late", "--dry-run", "--json")
        assert calls_of(planned) == {"late": N_TASKS, "judge": N_TASKS}
        assert world.watched("backfill", "--model", "late").n_judged == N_TASKS


def calls_of(planned: Seen) -> dict[str, int]:
    """The planned calls by label."""
    calls = [(each["label"], each["calls"]) for each in json.loads(planned.output.stdout)["calls"]]
    return {
        label: sum(n for of, n in calls if of == label) for label, _ in calls
    }  # a row for each judge and model
