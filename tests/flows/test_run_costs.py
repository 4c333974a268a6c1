"""The cost of a run: it is the same wherever it is shown, and includes all calls, even of a run
that was killed.
"""

import struct
from pathlib import Path
from typing import Any

import pytest

import sql
from flows.run.outcomes import RUNNING
from flows.run.record import mark_killed, run_row
from tasks.config.job import Job
from tasks.figures.scope import filled
from tasks.figures.shown import FIGURES
from tasks.maintain.upkeep import latest_runs, run_cost, run_total, spent, store_calls
from tests.flows.conftest import Run
from tests.kit import Printed, at, call_entry, job_on, recorded, row, rows_in, written
from tests.warehouse.parts import flip
from warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("without_scores")
PAID: dict[tuple[str, str], list[float | None]] = {
    # (purpose, model): the cost of each of its calls, with discarded ones
    ("sample", "m"): [0.25, 0.5],
    ("judge", "j"): [0.125, 0.125, 0.25],
    ("drift", "j"): [2.5, 2.5],
    ("derive", "w"): [0.0625],
}
TOTAL = 6.3125


def called(job: Job, run_id: str, paid: dict[tuple[str, str], list[float | None]]) -> None:
    """Store what a killed run leaves: calls in the ledger, some of which have become rows."""
    recorded(
        job,
        *(
            call_entry(
                f"{run_id} {purpose} {model}",
                run_id,
                cost_usd=cost,
                attempt=number,
                model=model,
                purpose=purpose,
            )
            for (purpose, model), costs in paid.items()
            for number, cost in enumerate(costs, start=1)
        ),
    )


def begun(run_id: str, second: float = 1.0) -> dict[str, Any]:
    return row(
        "runs",
        run_id=run_id,
        outcome=RUNNING,
        started_at=at(second),
        cost_usd=0.0,
        night="2026-01-01",
    )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_on("sample", tmp_path)


def publish(job: Job, **tables: list[dict[str, Any]]) -> None:
    written(job.warehouse, tables).publish()


def summed(rows: list[dict[str, Any]]) -> float:
    return sum(each["cost_usd"] for each in rows)


def test_every_command_page_and_table_shows_the_same_cost_of_a_run_that_was_killed(
    job: Job,
) -> None:
    ids = {
        "set_id": "s",
        "judge_vintage": "v",
        "verdict_id": "v",
        "response_id": "r",
        "criterion_id": "c",
    }
    control_verdict = row(
        "control_verdicts",
        **ids,
        status="met",
        value=1.0,
        run_id="killed",
        cost_usd=2.5,
    )
    publish(job, runs=[begun("killed")], control_verdicts=[control_verdict])
    called(job, "killed", PAID)
    costs = {"status --runs": latest_runs(job)[0]["cost_usd"], "status --spend": summed(spent(job))}
    costs["in Prefect and on the live page"] = summed(run_cost(job, "killed"))
    (killed,) = mark_killed(job)
    costs["runs.cost_usd"] = killed["cost_usd"]
    Warehouse(job.warehouse).publish()
    with Warehouse(job.warehouse).reader() as reader:
        for name in ("runs", "spend", "night_costs"):
            given = {
                "benchmark": "prbench",
                "living": [],
                "run": "another",
            }
            costs[f"report {name}"] = summed(
                reader.rows(filled(sql.read(f"figures/{FIGURES[name].query}"), given))
            )
        costs["stored"] = reader.value("select cost_usd from runs where run_id = 'killed'")
        costs["run_costs"] = reader.value(
            "select sum(cost_usd) from run_costs where run_id = 'killed'"
        )
    costs["status --runs, later"] = latest_runs(job)[0]["cost_usd"]
    assert dict.fromkeys(costs, TOTAL) == costs


@pytest.mark.parametrize(
    ("paid", "cost", "unpriced"),
    [
        ({("sample", "m"): [None, None]}, None, 2),
        ({("sample", "m"): [None], ("judge", "j"): [0.5]}, 0.5, 1),
        ({("sample", "m"): [0.0]}, 0.0, 0),
        ({("sample", "m"): [None], ("judge", "j"): [0.0]}, None, 1),
    ],
)
def test_an_unknown_cost_is_never_0(
    paid: dict[tuple[str, str], list[float | None]], cost: float | None, unpriced: int, job: Job
) -> None:
    publish(job, runs=[begun(job.run_id)])
    called(job, job.run_id, paid)
    with Warehouse(job.warehouse).living(job.run_id):
        (run,) = latest_runs(job)
    assert cost == run["cost_usd"]
    assert unpriced == run["unpriced_calls"]
    assert cost == run_total(job, job.run_id)["cost_usd"]
    assert cost == run_row(job, [], at(1), at(2), "done")["cost_usd"]
    assert at(2) == run_row(job, [], at(2), at(1), "done")["ended_at"]  # the clock was set back
    assert len(paid) == store_calls(job)
    Warehouse(job.warehouse).publish()
    (shown_run,) = rows_in(
        job,
        filled(
            sql.read("figures/history/runs"),
            {
                "benchmark": "prbench",
                "living": [],
                "run": "another",
            },
        ),
    )
    assert cost == shown_run["cost_usd"]
    assert unpriced == shown_run["unpriced_calls"]


def test_a_damaged_ledger_lets_every_run_begin(job: Job, capsys: Printed) -> None:
    publish(job, runs=[begun("killed")])
    called(job, "killed", PAID)
    with (job.warehouse / "ledger" / "calls.sqlite").open("r+b") as file:
        file.write(b"no database")
    assert [(row["run_id"], row["cost_usd"]) for row in mark_killed(job)] == [("killed", None)]
    assert "is damaged" in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "cost"), [("done", TOTAL), (RUNNING, None)])
def test_a_changed_bit_of_a_sum_is_damage_and_a_cost_that_was_not_published_at_a_run_s_end_is_unknown(
    outcome: str, cost: float | None, job: Job, run: Run
) -> None:
    publish(job, runs=[begun("a-run") | {"outcome": outcome}])
    called(job, "a-run", {("judge", "j"): [TOTAL / 4, TOTAL * 3 / 4]})
    store_calls(job)
    Warehouse(job.warehouse).publish()
    ledger = job.warehouse / "ledger" / "calls.sqlite"
    stored = struct.pack(">d", TOTAL)
    content = ledger.read_bytes()
    assert content.count(stored) == 1
    flip(ledger, content.index(stored) + 1, bit=4)
    at_warehouse = ("--warehouse", str(job.warehouse))

    run("doctor", "--no-call", "--json", *at_warehouse, code=3)
    assert "table spend: 1 row with a wrong checksum" in run.out
    assert "`prbench aggregate` repairs" in run("status", "--spend", *at_warehouse, code=1)
    printed = run("aggregate", "--no-prefect", *at_warehouse, code=3)
    assert f"{ledger}: was damaged, and is repaired" in printed
    assert "the cost of run a-run on" in printed
    (shown,) = rows_in(
        job, "select cost_usd, calls, unpriced_calls from run_costs where run_id = 'a-run'"
    )
    assert shown == {
        "cost_usd": cost,
        "calls": 2,
        "unpriced_calls": 0 if cost else 2,
    }
    run("doctor", "--no-call", *at_warehouse)
    run("aggregate", "--no-prefect", *at_warehouse)
