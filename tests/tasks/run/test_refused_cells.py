"""Cells that a provider refuses: alone they are refused, and no order of cells makes progress
impossible.
"""

from collections.abc import Callable

import pytest

from tasks.config.job import Job
from tests.faults.behaviours import (
    Behaviour,
    HttpResponse,
    failed,
    prompt_of,
    well_behaved,
)
from tests.faults.server import FaultServer
from tests.kit import (
    copied,
    endpoint,
    few_published,
    good_row,
    job_on,
    judged,
    prepared,
    sampled,
    values_in,
    write_jsonl,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

N_TASKS = 6
N_CRITERIA = 10


@pytest.fixture(autouse=True)
def _many_harmless(monkeypatch):
    monkeypatch.setattr("tasks.llm.endpoint_health.BETWEEN_HARMLESS_S", 0.05)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """A warehouse with six tasks."""
    folder = tmp_path_factory.mktemp("refused")
    rows = [good_row(f"t{n}") for n in range(N_TASKS)]
    source = write_jsonl(folder / "finance.jsonl", rows)
    with few_published():
        return prepared(job_on(source, folder / "w"))


@pytest.fixture
def job(shared: Job, server: FaultServer, tmp_path) -> Callable[..., Job]:
    """Make a job with one model and one judge, which make one call at a time."""
    copy = copied(shared, tmp_path / "w")

    def job_with(**judge):
        return job_on(
            copy.settings.dataset.source,
            copy.warehouse,
            models=[endpoint("a", server.api_base)],
            judges=[endpoint("judge", server.api_base, **judge)],
            limits={"concurrency": 1, "attempts": 1},
        )

    return job_with


def refusing(*texts: str, harmless: HttpResponse | None = None) -> Behaviour:
    """Refuse prompts with one of these texts, and harmless requests with `harmless`, as xAI
    does.
    """

    def behaviour(request, number):
        prompt = prompt_of(request)
        if prompt == "Hi" and harmless is not None:
            return harmless
        if any(text in prompt for text in texts):
            return HttpResponse(
                status=403,
                raw=b'{"code": "permission-denied", "error": "Content violates usage."}',
            )
        return well_behaved(request, number)

    return behaviour


def statuses(job: Job, table: str) -> dict[str, int]:
    """The number of rows with each status."""
    query = f"select status, count(*) from {table} group by all order by all"
    return dict(values_in(job, query))


@pytest.mark.parametrize("task_id", ["t0", "t5"])
def test_a_prompt_that_is_refused_costs_no_other_response_and_is_not_sent_again(
    task_id,
    job,
    server,
):
    server.behaviour = refusing(f"What does {task_id} cost")
    configured = job()

    report = sampled(configured)

    assert report.stopped == []
    assert statuses(configured, "responses") == {"ok": N_TASKS - 1, "refused": 1}
    n_calls = len(server.book)
    sampled(configured)
    assert len(server.book) == n_calls


# In groups of four, the refused criteria are in the calls on c0 to c3, and on c8 and c9.
@pytest.mark.parametrize(("criteria_per_call", "n_refused"), [(1, 2), (4, 6)])
def test_criteria_that_are_refused_cost_no_verdict_of_another_call(
    criteria_per_call,
    n_refused,
    job,
    server,
):
    configured = job(criteria_per_call=criteria_per_call)
    sampled(configured)
    server.behaviour = refusing("States what t0-c0", "States what t3-c9")

    report = judged(configured)

    assert report.stopped == []
    counts = statuses(configured, "verdicts")
    assert counts["refused"] == n_refused
    assert sum(counts.values()) == N_TASKS * N_CRITERIA


def test_the_next_run_begins_with_other_cells_than_the_last_one_ended_with(
    job, server
):
    prompts = ["What does t0", "What does t1", "What does t2"]
    server.behaviour = refusing(*prompts, harmless=failed(403, "Not with this key."))
    configured = job()

    reports = [sampled(configured) for _ in range(4)]

    assert reports[0].stopped
    assert statuses(configured, "responses") == {
        "ok": N_TASKS - 3,
        "provider_error": 3,
    }


def test_the_next_run_begins_with_other_responses_than_the_last_one_ended_with(
    job,
    server,
):
    configured = job()
    sampled(configured)
    server.behaviour = refusing(
        "States what t0-c0",
        "States what t2-c0",
        harmless=failed(403, "Not with this key."),
    )

    reports = [judged(configured) for _ in range(6)]

    assert reports[0].stopped
    counts = statuses(configured, "verdicts")
    assert counts["provider_error"] == 2
    assert sum(counts.values()) == N_TASKS * N_CRITERIA
