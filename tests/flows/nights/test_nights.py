"""Nights and backfills as a user starts them: calls, stored rows, and alerts."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.flows.conftest import CONCURRENCY, N_CRITERIA, N_TASKS
from tests.flows.nights.night_world import (
    N_CONTROL,
    NightRun,
    NightWorld,
    night_world,
)

pytestmark = pytest.mark.slow


@dataclass
class Nights:
    """Five nights in a row: the third runs twice, the last fails."""

    world: NightWorld
    first: NightRun
    second: NightRun
    regressed: NightRun
    regressed_again: NightRun
    drifted: NightRun
    failed: NightRun


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> Iterator[Nights]:
    with night_world(tmp_path_factory.mktemp("nights")) as world:
        folder = world.command.folder
        gate = (
            "--fail-if",
            "worse",
            "--summary",
            str(folder / "summary.md"),
        )
        first = world.night("2026-11-01", *gate, code=1)
        second = world.night("2026-11-02", *gate)
        regressed = world.night("2026-11-03", "--json", has_regressed=True)
        regressed_again = world.night("2026-11-03", *gate, code=3)
        drifted = world.night("2026-11-04", judge_drifts=True)
        (folder / "tasks.jsonl").rename(folder / "away.jsonl")
        failed = world.night("2026-11-05", code=2)
        (folder / "away.jsonl").rename(folder / "tasks.jsonl")
        yield Nights(
            world, first, second, regressed, regressed_again, drifted, failed
        )


def test_the_first_night_samples_and_judges_all_models(nights):
    assert Counter(nights.first.sampled_models) == {
        "pinned": N_TASKS,
        "fresh": N_TASKS,
    }
    assert nights.first.n_judge_calls == 2 * N_CRITERIA + N_CONTROL


def test_a_later_night_calls_for_nightly_models_and_controls_alone(nights):
    assert nights.second.sampled_models == ["fresh"] * N_TASKS
    assert nights.second.n_judge_calls == N_CRITERIA + N_CONTROL


def test_a_night_without_a_change_alerts_nobody(nights):
    assert nights.first.messages == []
    assert nights.second.messages == []


def test_a_night_tidies_up_the_ledger_that_it_wrote_itself(nights):
    [line] = nights.second.lines("compact: ")

    assert "0 raw replies older than 1 days deleted" in line
    assert "ledger files skipped" not in line


def test_a_regression_is_an_alert_with_the_numbers_of_the_comparison(nights):
    [alert] = nights.regressed.alerts.values()
    arguments = "diff 2026-11-02 2026-11-03 --model fresh --warehouse data"
    diff = nights.world.command.json(*arguments.split())
    [comparison] = diff["comparisons"]

    assert alert["kind"] == "score_drop"
    assert alert["subject"] == "fresh"
    facts = alert["facts"]
    assert facts["first_vintage"] == "2026-11-02"
    assert facts["second_vintage"] == "2026-11-03"
    assert facts["n_tasks"] == N_TASKS
    assert not facts["judge_drifted"]
    for name in (
        "first_mean",
        "second_mean",
        "difference",
        "ci_low",
        "ci_high",
        "p_value",
    ):
        assert facts[name] == pytest.approx(comparison[name]), name


def test_a_regression_is_significant_and_its_line_names_no_drift(nights):
    [alert] = nights.regressed.alerts.values()

    facts = alert["facts"]
    assert facts["p_value"] == facts["p_adjusted"] < 0.05
    assert facts["ci_low"] < facts["difference"] < facts["ci_high"] < 0
    assert f"fresh fell by {-facts['difference']:.3f} on tasks" in alert["line"]
    assert "drifted" not in alert["line"]


def test_a_night_whose_scores_fell_fails_a_job_with_a_gate(nights):
    [without_earlier_night] = nights.first.lines("exit code")
    [without_change] = nights.second.lines("exit code")
    [with_regression] = nights.regressed_again.lines("exit code")

    assert without_earlier_night == (
        "exit code 1 (not compared): no score of the night of 2026-11-01 can be compared with an"
        " earlier one"
    )
    assert without_change == "exit code 0 (done)"
    assert with_regression.startswith("exit code 3 (worse): fresh fell by ")


def test_each_night_with_a_gate_adds_to_the_summary(nights):
    summary = (nights.world.command.folder / "summary.md").read_text()

    assert [line for line in summary.splitlines() if line.startswith("## ")] == [
        "## prbench, night 2026-11-01",
        "## prbench, night 2026-11-02",
        "## prbench, night 2026-11-03",
    ]
    assert "| fresh 2026-11-02 → fresh 2026-11-03 | tasks | judge | " in summary


def test_a_finished_night_that_is_started_again_sends_only_what_was_not_delivered(
    nights,
):
    stored_alerts = nights.world.command.sql("from alerts where night = '2026-11-03'")

    assert nights.regressed_again.calls == []
    assert nights.regressed_again.messages == []
    assert nights.regressed_again.n_pings == 1
    assert "alert: fresh fell on tasks: " in nights.regressed_again.output.stderr
    assert len(stored_alerts) == 1


def test_a_drifting_judge_is_an_alert(nights):
    alert = nights.drifted.alerts["judge_drift"]

    assert alert["subject"] == "judge"
    # At first half of the control set was met, now none of it.
    assert alert["facts"]["n_decided"] == N_CONTROL
    assert alert["facts"]["agreement"] == 0.5
    assert alert["facts"]["met_share"] == 0.0


def test_a_drop_in_a_night_with_a_drifting_judge_names_the_judge(nights):
    assert set(nights.drifted.alerts) == {"judge_drift", "score_drop"}
    alert = nights.drifted.alerts["score_drop"]
    assert alert["facts"]["judge_drifted"] is True
    assert "so the judge may be the cause, not the model" in alert["line"]


def test_a_receiver_that_fails_fails_no_night_and_is_recorded(nights):
    deliveries = nights.world.command.sql(
        "select night, receiver, status, n_alerts, error from alert_deliveries"
        " where night <= '2026-11-05' and receiver <> 'ping' order by night, receiver"
    )
    outcomes = nights.world.command.sql(
        "select distinct outcome from runs where night < '2026-11-05'"
    )

    failure = "the server responded with status 500"
    assert [tuple(row.values()) for row in deliveries] == [
        ("2026-11-03", "webhook 1", "sent", 1, None),
        ("2026-11-03", "webhook 2", "failed", 1, failure),
        ("2026-11-03", "webhook 2", "failed", 1, failure),
        ("2026-11-04", "webhook 1", "sent", 2, None),
        ("2026-11-04", "webhook 2", "failed", 2, failure),
        ("2026-11-05", "webhook 1", "sent", 1, None),
        ("2026-11-05", "webhook 2", "failed", 1, failure),
    ]
    assert outcomes == [{"outcome": "done"}]


def test_what_follows_the_host_of_a_receivers_address_is_neither_stored_nor_shown(
    nights,
):
    stored_configs = nights.world.command.sql("select config from runs")
    stored_deliveries = nights.world.command.sql("from alert_deliveries")
    outputs = (
        nights.regressed.output,
        nights.drifted.output,
        nights.failed.output,
    )

    assert "127.0.0.1" in str(stored_configs)
    assert "a-secret-path" in nights.world.receiver.address
    assert "a-secret-path" not in f"{stored_configs} {stored_deliveries} {outputs}"


def test_a_night_that_fails_sends_one_line_that_says_why(nights):
    [alert] = nights.failed.alerts.values()

    assert alert["kind"] == "failure"
    assert alert["line"].startswith("the night of 2026-11-05 failed: ")
    assert "tasks.jsonl is not a file" in alert["line"]
    assert nights.failed.calls == []
    assert nights.failed.output.stderr.count("prbench: ") == 1


def test_the_dead_man_s_switch_is_called_after_each_night_that_finished(nights):
    assert nights.first.n_pings == 1
    assert nights.second.n_pings == 1
    assert nights.regressed.n_pings == 1
    assert nights.drifted.n_pings == 1
    assert nights.failed.n_pings == 0


@pytest.fixture(scope="module")
def enlarged_world(nights: Nights) -> NightWorld:
    """The world after these nights, with two more models that have no rows yet."""
    nights.world.configure(
        models=[
            nights.world.endpoint(label) for label in ("pinned", "late", "locked")
        ]
    )
    return nights.world


LATE_AND_LOCKED = ("backfill", "--model", "late", "--model", "locked")


def test_a_dry_run_shows_the_plan_and_calls_nothing(enlarged_world):
    dry_run = enlarged_world.watched(*LATE_AND_LOCKED, "--dry-run")
    json_run = enlarged_world.watched(*LATE_AND_LOCKED, "--dry-run", "--json")

    assert dry_run.calls == []
    assert json_run.calls == []
    assert n_planned_calls(json_run) == {
        "late": N_TASKS,
        "locked": N_TASKS,
        "judge": 2 * N_CRITERIA,
    }
    for label in ("late", "locked", "judge"):
        assert label in dry_run.output.stdout


def test_a_dry_run_of_one_cell_plans_its_calls_alone(enlarged_world):
    cell = ("--model", "late", "--task", "sample-leg-1", "--trial", "2")

    dry_run = enlarged_world.watched("backfill", *cell, "--dry-run", "--json")

    [task] = enlarged_world.command.sql(
        "select n_criteria from tasks where task_id = 'sample-leg-1'"
    )
    assert n_planned_calls(dry_run) == {"late": 1, "judge": task["n_criteria"]}
    assert dry_run.calls == []


@dataclass
class Backfills:
    """A backfill in which the calls of one model are refused, and its repetition.

    The selections of hard tasks are those before the first and after the second one.
    """

    earlier_selections: list[dict[str, Any]]
    refused: NightRun
    repeated: NightRun
    selections: list[dict[str, Any]]


@pytest.fixture(scope="module")
def backfills(enlarged_world: NightWorld) -> Backfills:
    selections = "select distinct selection_id, task_id from hard_subset"
    return Backfills(
        earlier_selections=enlarged_world.command.sql(selections),
        refused=enlarged_world.watched(*LATE_AND_LOCKED, code=3, refused="locked"),
        repeated=enlarged_world.watched(*LATE_AND_LOCKED),
        selections=enlarged_world.command.sql(selections),
    )


def test_a_model_that_fails_holds_up_no_other_in_a_backfill(backfills):
    n_sampled = Counter(backfills.refused.sampled_models)

    assert n_sampled["late"] == N_TASKS
    # The last call is a harmless request.
    assert 1 <= n_sampled["locked"] <= CONCURRENCY + 1
    assert backfills.refused.n_judge_calls == N_CRITERIA


def test_a_backfill_names_the_model_that_fails_and_its_cause(backfills):
    [stop_line] = backfills.refused.lines("stopped for this run")

    assert stop_line.strip().startswith("hosted_vllm/locked at ")
    assert "wrong key" in stop_line
    assert backfills.refused.lines("responses of locked, trial 1: 0 of 8 are done")


def test_the_next_backfill_makes_the_missing_calls_alone(backfills):
    assert backfills.repeated.sampled_models == ["locked"] * N_TASKS
    assert backfills.repeated.n_judge_calls == N_CRITERIA


def test_a_backfill_adds_selections_of_hard_tasks_and_keeps_earlier_ones(backfills):
    earlier_ids = {row["selection_id"] for row in backfills.earlier_selections}
    ids = {row["selection_id"] for row in backfills.selections}

    assert earlier_ids
    assert earlier_ids < ids
    for row in backfills.earlier_selections:
        assert row in backfills.selections


def test_a_backfill_ranks_the_new_models(nights, backfills):
    assert backfills.repeated.calls
    leaderboard = nights.world.command.json("leaderboard", "--warehouse", "data")
    assert {"pinned", "late", "locked"} <= {row["model"] for row in leaderboard}


def n_planned_calls(dry_run: NightRun) -> Counter[str]:
    """The numbers of planned calls by label; there is a row for each judge and model."""
    n_calls = Counter[str]()
    for row in json.loads(dry_run.output.stdout)["calls"]:
        n_calls[row["label"]] += row["calls"]
    return n_calls
