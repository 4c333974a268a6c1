"""Replies in flight when the work on another one ends with an error, or when somebody stops the
run.
"""

import asyncio
from pathlib import Path

import pytest

from tasks.config.job import Job
from tasks.rules.conversation import final_text
from tasks.run.run_context import open_run_context
from tasks.sample import plan_samples, sample_cells
from tests.faults.behaviours import HttpResponse
from tests.faults.server import FaultServer
from tests.kit import endpoint, job_on, prepared, sampled, until, values_in

pytestmark = pytest.mark.usefixtures("without_scores")
N_TASKS = 2


def by_model(request, _number: int) -> HttpResponse:
    """A response at once, or after a while."""
    if request["model"] == "quick":
        return HttpResponse("From the quick one.")
    return HttpResponse("Late.", delay_s=1.0)


def job_in(folder: Path, server: FaultServer) -> Job:
    models = [endpoint("quick", server.api_base), endpoint("slow", server.api_base)]
    return prepared(job_on("sample", folder, models=models)).model_copy(
        update={"limit": N_TASKS}
    )


def calls_of(server: FaultServer, model: str) -> int:
    return sum(request["model"] == model for request in server.book)


def test_an_error_in_the_work_on_one_model_loses_no_reply_of_another(
    tmp_path,
    monkeypatch,
):
    def fails(text, **options):
        if "quick" in text:
            raise ZeroDivisionError("unexpected")
        return final_text(text, **options)

    with FaultServer(by_model) as server:
        job = job_in(tmp_path, server)
        with monkeypatch.context() as patched:
            patched.setattr("tasks.sample.final_text", fails)
            with pytest.raises(ExceptionGroup):
                sampled(job)
        sampled(job)

    assert calls_of(server, "slow") == N_TASKS
    assert calls_of(server, "quick") == N_TASKS
    statuses = values_in(job, "select status from responses")
    assert statuses == [("ok",)] * 2 * N_TASKS


def test_a_run_that_is_stopped_does_not_wait_for_replies(tmp_path):
    async def stop_sampling(job):
        cells = plan_samples(job)["slow"]
        async with open_run_context(job) as context:
            work = asyncio.create_task(sample_cells(job, context, "slow", cells))
            await asyncio.to_thread(
                until, lambda: calls_of(server, "slow") == N_TASKS
            )
            work.cancel()
            await work

    response = HttpResponse("Late.", delay_s=60.0)
    with (
        FaultServer(lambda _request, _number: response) as server,
        pytest.raises(asyncio.CancelledError),
    ):
        asyncio.run(asyncio.wait_for(stop_sampling(job_in(tmp_path, server)), 30.0))
