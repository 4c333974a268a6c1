"""What was spent, from the ledger into a table: every run's, killed ones included, written when it is news."""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.llm.budget import Budget
from tasks.llm.calls.batches import Batching, BatchOutcome
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.replies import Reply
from tasks.llm.request import Call
from tasks.maintain.spending import spend_of_all, store_spend
from tasks.run.judgings import judge_target
from tests.faults.server import Answer, FaultServer, Request, is_judging, well_behaved
from tests.kit import criterion, job_on, judged, prepared, rows_in, sampled
from warehouse import Warehouse

pytestmark = pytest.mark.slow

N_CRITERIA = 98
FIGURES = "select run_id, purpose, called_model, calls, failed_calls, unpriced_calls, cost_usd from spend order by all"


def job_at(server: FaultServer, folder: Path, **judge: Any) -> Job:
    at = {"api_base": server.api_base, "max_tokens": 1000, "price": {
        "input_usd_per_mtok": 1.0, "cached_usd_per_mtok": 1.0, "output_usd_per_mtok": 1.0,
    }}  # fmt: skip
    return job_on(
        "sample", folder, models=[{"name": "hosted_vllm/a", "label": "a", **at}],
        judges=[{"name": "openai/judge", "label": "judge", **at, **judge}], limits={"attempts": 2},
    )  # fmt: skip


def stored(job: Job) -> list[dict[str, Any]]:
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    return rows_in(warehouse.root, FIGURES)


def record(job: Job, run_id: str, number: int) -> None:
    async def write() -> None:
        ledger = Ledger(job.warehouse / "ledger")
        reply = Reply("ok", "x", prompt_tokens=1, completion_tokens=1, cost_usd=0.5)
        await ledger.record(Entry(f"{run_id}-{number}", 1, "c", run_id, "m", "", "{}", reply, True, purpose="drift"))
        ledger.close()

    asyncio.run(write())


def test_each_purpose_has_its_row_with_discarded_attempts_and_table_sums(server: FaultServer, tmp_path: Path) -> None:
    def fails_first(request: Request, number: int) -> Answer:
        is_struck = not is_judging(request) and number == 0
        return Answer("", usage={"prompt_tokens": 7, "completion_tokens": 0}) if is_struck else well_behaved(request, 1)

    server.behaviour = fails_first
    job = job_at(server, tmp_path, mode="batch")
    sampled(prepared(job))
    judged(job)
    assert store_spend(job) == 2
    judging, sampling = stored(job)
    with Warehouse(job.warehouse).reader() as reader:
        paid = reader.rows("select (select sum(cost_usd) from responses) r, (select sum(cost_usd) from verdicts) v")[0]
        n_responses = reader.value("select count(*) from responses")
    assert (judging["purpose"], judging["called_model"]) == ("judge", "openai/judge")
    assert (judging["calls"], judging["failed_calls"], judging["unpriced_calls"]) == (N_CRITERIA, 0, 0)
    assert (sampling["purpose"], sampling["called_model"]) == ("sample", "hosted_vllm/a")
    assert (sampling["calls"], sampling["failed_calls"]) == (2 * n_responses, n_responses)
    assert (judging["cost_usd"], sampling["cost_usd"]) == pytest.approx((paid["v"], paid["r"]))
    assert paid["v"] > 0
    assert store_spend(job) == 0


def test_rows_are_written_for_every_run_and_only_when_they_are_news(server: FaultServer, tmp_path: Path) -> None:
    job = job_at(server, tmp_path)
    Warehouse(job.warehouse).write("criteria", [criterion("t", 0, 1.0)])
    Warehouse(job.warehouse).publish()
    assert store_spend(job) == 0
    record(job, "killed", 1)
    assert store_spend(job) == 1
    assert [(row["run_id"], row["calls"], row["cost_usd"]) for row in stored(job)] == [("killed", 1, 0.5)]
    record(job, "killed", 2)
    record(job, "next", 1)
    assert store_spend(job) == 2
    known = [(row["run_id"], row["calls"], row["cost_usd"]) for row in stored(job)]
    assert known == [("killed", 2, 1.0), ("next", 1, 0.5)]
    shutil.rmtree(job.warehouse / "ledger")
    record(job, "killed", 3)
    assert store_spend(job) == 0
    assert [row["calls"] for row in stored(job)] == [2, 1]


def test_a_run_whose_time_is_up_makes_no_call_and_says_so(server: FaultServer, tmp_path: Path) -> None:
    job = prepared(job_at(server, tmp_path, mode="batch"))
    late = job.model_copy(update={"stop_at": datetime.now(UTC) - timedelta(minutes=1)})
    report = sampled(late)
    assert (report.rows, report.is_at_stop_time, len(server.book)) == (0, True, 0)
    assert report.skipped > 0
    sampled(job)
    n_calls = len(server.book)
    report = judged(late)
    assert (report.rows, report.is_at_stop_time, len(server.book)) == (0, True, n_calls)
    assert judged(job).rows == N_CRITERIA


def test_two_runs_submit_the_same_calls_in_one_batch_and_collect_it_once(server: FaultServer, tmp_path: Path) -> None:
    server.polls_until_done = 1
    target = judge_target(job_at(server, tmp_path, mode="batch").settings.judges[0])
    calls = [
        Call(target, [{"role": "user", "content": f"question {number}"}], f"cell {number}", is_batched=True)
        for number in range(30)
    ]

    async def both() -> tuple[BatchOutcome, BatchOutcome]:
        ledgers = [Ledger(tmp_path / "ledger") for _ in range(2)]
        runs = [Batching(target, ledger, Budget(None, None), f"run {n}") for n, ledger in enumerate(ledgers)]
        one, other = await asyncio.gather(*(run.submit_and_collect(calls, 30.0) for run in runs))
        for ledger in ledgers:
            answers = [ledger.history(call.key(call.parameters(target.parameters))) for call in calls]
            assert [len(history.entries) for history in answers] == [1] * 30
            ledger.close()
        return one, other

    one, other = asyncio.run(both())
    assert sorted([one.n_submitted, other.n_submitted]) == [0, 30]
    assert sorted([len(one.replies), len(other.replies)]) == [0, 30]
    assert len(server.paid) == 30
    assert [(row["calls"], row["purpose"]) for row in spend_in(tmp_path / "ledger")] == [(30, "judge")]


def test_while_another_machine_writes_its_ledger_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_on("sample", tmp_path)
    Warehouse(job.warehouse).write("criteria", [criterion("t", 0, 1.0)])
    Warehouse(job.warehouse).publish()
    record(job, "r", 1)
    store_spend(job)
    Warehouse(job.warehouse).publish()
    record(job, "r", 2)
    assert [row["calls"] for row in spend_of_all(job)] == [2]
    monkeypatch.setattr(Warehouse, "elsewhere", lambda _: "node7")

    assert [row["calls"] for row in spend_of_all(job)] == [1]
    assert store_spend(job) == 0
