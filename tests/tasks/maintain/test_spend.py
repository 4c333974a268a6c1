"""The spend of every run, also of killed ones."""

import shutil

import pytest

from tasks.config.job import Job
from tasks.maintain.spend import run_cost, store_calls
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.kit import (
    Row,
    add_calls,
    call_entry,
    criterion,
    judged,
    prepared,
    rows_in,
    sampled,
    values_in,
)
from tests.tasks.maintain.conftest import job_at
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

N_TASKS = 8
N_CRITERIA = 98


def published_spend(job: Job) -> list[Row]:
    Warehouse(job.warehouse).publish()
    return rows_in(job, "from spend order by run_id, purpose")


def spend_by_run(job: Job) -> list[tuple[str, int, float]]:
    return [
        (row["run_id"], row["calls"], row["cost_usd"]) for row in published_spend(job)
    ]


def record(job: Job, run_id: str, number: int):
    add_calls(job, call_entry(f"{run_id}-{number}", run_id, purpose="drift"))


def test_each_purpose_has_its_row_with_discarded_attempts_and_table_sums(
    server, tmp_path
):
    def reply_nothing_first(request, number):
        if is_judge_request(request) or number > 0:
            return well_behaved(request, 1)
        return HttpResponse("", usage={"prompt_tokens": 7, "completion_tokens": 0})

    server.behaviour = reply_nothing_first
    job = job_at(server, tmp_path, mode="batch")
    sampled(prepared(job))
    judged(job)

    assert store_calls(job) == 2
    judge_spend, model_spend = published_spend(job)
    assert judge_spend["purpose"] == "judge"
    assert judge_spend["called_model"] == "openai/judge"
    assert judge_spend["calls"] == N_CRITERIA
    assert judge_spend["failed_calls"] == 0
    assert judge_spend["unpriced_calls"] == 0
    assert model_spend["purpose"] == "sample"
    assert model_spend["called_model"] == "hosted_vllm/a"
    assert model_spend["calls"] == 2 * N_TASKS
    assert model_spend["failed_calls"] == N_TASKS
    ((verdicts_usd, responses_usd),) = values_in(
        job,
        "select (select sum(cost_usd) from verdicts), (select sum(cost_usd) from responses)",
    )
    assert judge_spend["cost_usd"] == pytest.approx(verdicts_usd)
    assert judge_spend["cost_usd"] > 0
    assert model_spend["cost_usd"] == pytest.approx(responses_usd)
    assert store_calls(job) == 0


def test_every_request_is_an_attempt_with_its_labels_and_costs_add_up(
    server, tmp_path
):
    def be_busy_first(request, number):
        if number == 0 and not is_judge_request(request):
            return HttpResponse(status=503, raw=b"busy")
        return well_behaved(request, number)

    server.behaviour = be_busy_first
    job = job_at(server, tmp_path)
    sampled(prepared(job))
    judged(job)
    store_calls(job)
    Warehouse(job.warehouse).publish()

    query = """
        select
            purpose, model, judge, http_status,
            count(*), count(distinct coalesce(verdict_id, response_id))
        from attempts
        group by all
        order by purpose desc, http_status nulls last
    """
    assert values_in(job, query) == [
        ("sample", "a", None, 503, N_TASKS, N_TASKS),
        ("sample", "a", None, None, N_TASKS, N_TASKS),
        ("judge", "a", "judge", None, N_CRITERIA, N_CRITERIA),
    ]
    ((attempts_usd, costs_usd),) = values_in(
        job,
        "select (select sum(cost_usd) from attempts), (select sum(cost_usd) from run_costs)",
    )
    assert attempts_usd == pytest.approx(costs_usd)
    assert attempts_usd > 0


@pytest.fixture
def empty_job(server: FaultServer, tmp_path) -> Job:
    job = job_at(server, tmp_path)
    Warehouse(job.warehouse).write("criteria", [criterion("t", 0, 1.0)])
    Warehouse(job.warehouse).publish()
    return job


def test_spend_is_written_only_when_it_is_new(empty_job):
    assert store_calls(empty_job) == 0

    record(empty_job, "killed", 1)
    assert store_calls(empty_job) == 1
    assert spend_by_run(empty_job) == [("killed", 1, 0.5)]

    record(empty_job, "killed", 2)
    record(empty_job, "next", 1)
    assert store_calls(empty_job) == 2
    assert spend_by_run(empty_job) == [("killed", 2, 1.0), ("next", 1, 0.5)]


def test_the_ledger_is_read_unless_another_machine_writes(empty_job, monkeypatch):
    record(empty_job, "run", 1)
    store_calls(empty_job)
    Warehouse(empty_job.warehouse).publish()
    record(empty_job, "run", 2)

    assert [row["calls"] for row in run_cost(empty_job, "run")] == [2]
    # Two machines that open the same ledger damage it.
    monkeypatch.setattr(Warehouse, "other_host", lambda _: "node7")
    assert [row["calls"] for row in run_cost(empty_job, "run")] == [1]
    assert store_calls(empty_job) == 0


def test_spend_stays_where_the_ledger_is_lost(empty_job):
    record(empty_job, "killed", 1)
    record(empty_job, "killed", 2)
    store_calls(empty_job)
    Warehouse(empty_job.warehouse).publish()

    shutil.rmtree(empty_job.warehouse / "ledger")
    record(empty_job, "killed", 3)

    assert store_calls(empty_job) == 0
    assert spend_by_run(empty_job) == [("killed", 2, 1.0)]
