"""The cost of a run: it is the same wherever it is shown, and includes all calls, even of a run
that was killed.
"""

import struct

import pytest

import sql
from flows.run.outcomes import RUNNING
from flows.run.record import mark_killed, run_row
from tasks.config.job import Job
from tasks.figures.scope import with_literals
from tasks.figures.shown import FIGURES
from tasks.maintain.spend import (
    daily_spend,
    latest_runs,
    run_cost,
    run_total,
    store_calls,
)
from tests.kit import Row, add_calls, at, call_entry, job_on, row, rows_in, written
from tests.warehouse.parts import flip
from warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("without_scores")
Costs = dict[tuple[str, str], list[float | None]]
PAID: Costs = {
    # (purpose, model): the cost of each of its calls, with discarded ones
    ("sample", "m"): [0.25, 0.5],
    ("judge", "j"): [0.125, 0.125, 0.25],
    ("drift", "j"): [2.5, 2.5],
    ("derive", "w"): [0.0625],
}
TOTAL = 6.3125


def record_calls(
    job: Job,
    run_id: str,
    costs_by_caller: Costs,
):
    """Store what a killed run leaves: calls in the ledger, some of which have become rows."""
    for (purpose, model), costs in costs_by_caller.items():
        for number, cost in enumerate(costs, start=1):
            entry = call_entry(
                f"{run_id} {purpose} {model}",
                run_id,
                cost_usd=cost,
                attempt=number,
                model=model,
                purpose=purpose,
            )
            add_calls(job, entry)


def run_in_progress(run_id: str) -> Row:
    return row(
        "runs",
        run_id=run_id,
        outcome=RUNNING,
        started_at=at(1),
        cost_usd=0.0,
        night="2026-01-01",
        config='{"benchmark": "prbench"}',
    )


@pytest.fixture
def job(tmp_path) -> Job:
    return job_on("sample", tmp_path)


def publish(job: Job, **tables: list[Row]):
    written(job.warehouse, tables).publish()


def sum_usd(rows: list[Row]) -> float:
    return sum(row["cost_usd"] for row in rows)


FIGURE_PARAMETERS = {
    "benchmark": "prbench",
    "living": [],
    "run": "another",
}


@pytest.fixture
def killed_job(job: Job) -> Job:
    """A job with a killed run, whose calls are in the ledger and partly in rows."""
    control_verdict = row(
        "control_verdicts",
        set_id="s",
        judge_vintage="v",
        verdict_id="v",
        response_id="r",
        criterion_id="c",
        status="met",
        value=1.0,
        run_id="killed",
        cost_usd=2.5,
    )
    publish(
        job,
        runs=[run_in_progress("killed")],
        control_verdicts=[control_verdict],
    )
    record_calls(job, "killed", PAID)
    return job


def test_every_command_shows_the_same_cost_of_a_killed_run(killed_job):
    assert latest_runs(killed_job)[0]["cost_usd"] == TOTAL
    assert sum_usd(daily_spend(killed_job)) == TOTAL
    assert sum_usd(run_cost(killed_job, "killed")) == TOTAL


def test_a_killed_run_of_another_benchmark_is_left_to_the_next_run_of_that(job):
    config = '{"benchmark": "researchrubrics"}'
    publish(job, runs=[run_in_progress("killed") | {"config": config}])

    assert mark_killed(job) == []


def test_the_row_of_a_killed_run_gets_its_calls_and_their_cost(killed_job):
    [killed_run] = mark_killed(killed_job)
    Warehouse(killed_job.warehouse).publish()

    assert killed_run["cost_usd"] == TOTAL
    stored_run = {"calls": 8, "cost_usd": TOTAL}
    assert rows_in(killed_job, "select calls, cost_usd from runs") == [stored_run]
    cost_rows = rows_in(killed_job, "from run_costs where run_id = 'killed'")
    assert sum_usd(cost_rows) == TOTAL
    assert latest_runs(killed_job)[0]["cost_usd"] == TOTAL


@pytest.mark.parametrize("name", ["runs", "spend", "night_costs"])
def test_every_page_shows_the_same_cost_of_a_killed_run(name, killed_job):
    mark_killed(killed_job)
    Warehouse(killed_job.warehouse).publish()

    query = with_literals(
        sql.read(f"figures/{FIGURES[name].query}"), FIGURE_PARAMETERS
    )

    assert sum_usd(rows_in(killed_job, query)) == TOTAL


@pytest.mark.parametrize(
    ("costs_by_caller", "cost", "n_unpriced"),
    [
        ({("sample", "m"): [None, None]}, None, 2),
        ({("sample", "m"): [None], ("judge", "j"): [0.5]}, 0.5, 1),
        ({("sample", "m"): [0.0]}, 0.0, 0),
        ({("sample", "m"): [None], ("judge", "j"): [0.0]}, None, 1),
    ],
)
def test_an_unknown_cost_is_never_0(costs_by_caller, cost, n_unpriced, job):
    publish(job, runs=[run_in_progress(job.run_id)])
    record_calls(job, job.run_id, costs_by_caller)

    with Warehouse(job.warehouse).living(job.run_id):
        [run] = latest_runs(job)
    store_calls(job)
    Warehouse(job.warehouse).publish()
    query = with_literals(sql.read("figures/history/runs"), FIGURE_PARAMETERS)
    [page_row] = rows_in(job, query)

    assert run["cost_usd"] == cost
    assert run["unpriced_calls"] == n_unpriced
    assert run_total(job, job.run_id)["cost_usd"] == cost
    assert run_row(job, [], at(1), at(2), "done")["cost_usd"] == cost
    assert page_row["cost_usd"] == cost
    assert page_row["unpriced_calls"] == n_unpriced


def test_a_run_never_ends_before_it_began(job):
    publish(job)

    # The clock was set back.
    assert run_row(job, [], at(2), at(1), "done")["ended_at"] == at(2)


def test_a_damaged_ledger_lets_every_run_begin(killed_job, capsys):
    with (killed_job.warehouse / "ledger" / "calls.sqlite").open("r+b") as file:
        file.write(b"no database")

    [killed_run] = mark_killed(killed_job)

    assert killed_run["run_id"] == "killed"
    assert killed_run["cost_usd"] is None
    assert "is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "cost"), [("done", TOTAL), (RUNNING, None)])
def test_a_damaged_sum_is_restored_from_the_published_one_of_an_ended_run(
    outcome,
    cost,
    job,
    run,
):
    publish(job, runs=[run_in_progress("a-run") | {"outcome": outcome}])
    record_calls(
        job,
        "a-run",
        {("judge", "j"): [TOTAL / 4, TOTAL * 3 / 4]},
    )
    store_calls(job)
    Warehouse(job.warehouse).publish()
    ledger = job.warehouse / "ledger" / "calls.sqlite"
    sum_bytes = struct.pack(">d", TOTAL)
    content = ledger.read_bytes()
    assert content.count(sum_bytes) == 1
    flip(ledger, content.index(sum_bytes) + 1, bit=4)
    location = ("--warehouse", str(job.warehouse))

    run("doctor", "--no-call", "--json", *location, code=3)
    assert "table spend: 1 row with a wrong checksum" in run.out
    assert "`prbench aggregate` repairs" in run(
        "status", "--spend", *location, code=1
    )
    repair_notices = run("aggregate", "--no-prefect", *location, code=3)
    assert f"{ledger}: was damaged, and is repaired" in repair_notices
    assert "the cost of run a-run on" in repair_notices
    [run_costs] = rows_in(
        job,
        "select cost_usd, calls, unpriced_calls from run_costs where run_id = 'a-run'",
    )
    assert run_costs == {
        "cost_usd": cost,
        "calls": 2,
        "unpriced_calls": 0 if cost else 2,
    }
    run("doctor", "--no-call", *location)
    run("aggregate", "--no-prefect", *location)
