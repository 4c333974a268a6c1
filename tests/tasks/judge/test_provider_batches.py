"""Judging in `mode: batch` against a server that speaks the batch protocol over a real socket."""

import asyncio
import contextlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tasks.config.job import Job
from tasks.config.settings import Limits
from tasks.llm.calls.batches import Batching, Submissions
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.limiter import Budget, Limiter
from tasks.llm.request import Call, Target
from tasks.run.judge_configs import judge_target
from tests.faults.behaviours import prompt_of
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.kit import (
    endpoint,
    few_published,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
)
from tests.tasks.judge.values import StoredResponses, distinct

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

LIMIT = 2
"""A quarter of the sample's tasks."""
N_CRITERIA = 23
"""The criteria of these tasks."""
LOSE_RESPONSE = 0
CHAT = "/v1/chat/completions"
BATCH = "/v1/batches"


@pytest.fixture(scope="module")
def responses(tmp_path_factory) -> StoredResponses:
    with few_published(), FaultServer() as server:
        models = [endpoint("a", server.api_base, max_tokens=1000)]
        job = prepared(
            job_on("sample", tmp_path_factory.mktemp("sampled"), models=models)
        )
        sampled(job.model_copy(update={"limit": LIMIT}))
        return StoredResponses(job.warehouse, urlsplit(server.api_base).port or 0)


@pytest.fixture
def server(responses: StoredResponses, monkeypatch) -> Iterator[FaultServer]:
    """A new provider on the same port, and a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr("tasks.llm.calls.batches._FIRST_POLL_S", 0.01)
    with FaultServer(port=responses.port) as server:
        yield server


MakeJob = Callable[..., Job]


@pytest.fixture
def make(responses: StoredResponses, server: FaultServer, tmp_path) -> MakeJob:
    """Make jobs on a quarter of the sample with all responses and one judge."""

    def make_job(
        name="warehouse",
        mode="batch",
        *,
        allow_live=False,
        batch_wait_s=0.0,
    ):
        judge = {
            "name": "openai/judge",
            "mode": mode,
            "max_tokens": 1000,
            "allow_live": allow_live,
        }
        job = job_on(
            "sample",
            Path(shutil.copytree(responses.warehouse, tmp_path / name)),
            models=[endpoint("a", server.api_base, max_tokens=1000)],
            judges=[endpoint("judge", server.api_base, **judge)],
            limits={"batch_wait_s": batch_wait_s, "attempts": 2},
        )
        return job.model_copy(update={"limit": LIMIT})

    return make_job


def verdicts_of(job: Job) -> list[dict[str, Any]]:
    return rows_in(
        job,
        "select verdict_id, status, value, explanation from verdicts order by verdict_id",
    )


def paid_verdicts(server: FaultServer) -> Counter[str]:
    """The number of paid calls for verdicts, by path."""
    return Counter(
        entry.path for entry in server.paid if is_judge_request(entry.request)
    )


def test_a_batch_is_submitted_once_and_collected_by_a_later_run(server, make):
    server.polls_until_done = 2
    job = make()

    reports = [judged(job) for _ in range(4)]

    assert [report.rows for report in reports] == [0, 0, N_CRITERIA, 0]
    assert reports[0].skipped == N_CRITERIA
    assert f"{N_CRITERIA} calls" in reports[0].warnings[0]
    assert paid_verdicts(server) == {BATCH: N_CRITERIA}


def test_a_batch_gives_the_same_verdicts_under_the_same_keys_as_calls_do(make):
    batched = make("batched")
    live = make("live", mode="live")

    judged(batched)
    judged(live)

    assert verdicts_of(batched) == verdicts_of(live)
    assert len(verdicts_of(batched)) == N_CRITERIA


def striking_once(status: int) -> tuple[Callable[[str], int | None], Counter[str]]:
    """A fault for the first request to each method and path, and the number of requests to each so
    far; a status, or `LOSE_RESPONSE`.
    """
    n_requests = Counter()

    def strikes(request):
        n_requests[request] += 1
        return status if n_requests[request] == 1 else None

    return strikes, n_requests


def test_each_request_that_a_provider_refuses_at_first_is_repeated(server, make):
    server.strikes, n_requests = striking_once(503)

    report = judged(make(batch_wait_s=60.0))

    assert report.rows == N_CRITERIA
    assert min(n_requests.values()) > 1
    assert paid_verdicts(server) == {BATCH: N_CRITERIA}


def test_if_only_responses_are_lost_the_provider_has_the_batch_and_nothing_is_paid_twice(
    server,
    make,
):
    server.strikes, n_requests = striking_once(LOSE_RESPONSE)

    report = judged(make(batch_wait_s=60.0))

    repeated = [request for request in n_requests if n_requests[request] > 1]
    assert report.rows == N_CRITERIA
    # Requests look like "POST /v1/files".
    assert {request.split("/")[2] for request in repeated} == {"batches", "files"}
    assert paid_verdicts(server) == {BATCH: N_CRITERIA}


def test_a_provider_that_stays_away_keeps_its_batch_until_a_later_run(server, make):
    job = make()
    server.strikes = lambda request: 503 if "GET /v1/batches/" in request else None
    first_report = judged(job)
    server.strikes = lambda _: None

    report = judged(job)

    warning = first_report.warnings[0]
    assert first_report.rows == 0
    assert first_report.skipped == N_CRITERIA
    assert f"batch batch_000001 is still running, with {N_CRITERIA} calls" in warning
    assert "Struck" in warning
    assert report.rows == N_CRITERIA


UNREADABLE = {6: b"[]\n", 7: b"[" * 100_000 + b"\n"}


def test_a_line_that_cannot_be_read_is_the_failure_of_its_call_alone(server, make):
    def broken(line, number):
        if number == 5:
            return line[: line.index(b"response")] + b"\n"
        return UNREADABLE.get(number, line)

    server.change_line = broken
    job = make()

    report = judged(job)

    rows = rows_in(job, "from verdicts where error is not null order by error")
    assert report.rows == N_CRITERIA
    assert report.failures == {"provider_error": 3}
    for number, row in zip((5, 6, 7), rows, strict=True):
        line = f"batch batch_000001, file-000002, line {number}"
        assert f"{line}: cannot be read" in row["error"]
    server.change_line = lambda line, _: line
    assert judged(job).rows == 3
    assert paid_verdicts(server) == {BATCH: N_CRITERIA + 3}


def fails_at_first(request, number: int) -> HttpResponse:
    # About every fifth prompt.
    is_struck = (
        is_judge_request(request) and sum(map(ord, prompt_of(request))) % 5 == 0
    )
    if is_struck and number == 0:
        return HttpResponse(status=500)
    return well_behaved(request, number)


def talks_at_first(request, number: int) -> HttpResponse:
    is_reminded = len(request["messages"]) > 1
    if is_judge_request(request) and not is_reminded and number == 0:
        return HttpResponse("Certainly!")
    return well_behaved(request, number)


@pytest.mark.parametrize(
    ("behaviour", "status", "warning"),
    [
        (
            fails_at_first,
            "provider_error",
            "{} calls failed in a batch; the next run submits them again",
        ),
        (talks_at_first, "parse_error", ""),
    ],
)
def test_calls_that_fail_in_a_batch_are_failures_until_the_next_run_submits_them(
    behaviour,
    status,
    warning,
    server,
    make,
):
    server.behaviour = behaviour
    job = make()
    first_report = judged(job)
    n_attempts = distinct(rows_in(job, "from verdicts"), "attempts")

    report = judged(job)

    n_failed = first_report.failures.total()
    assert n_failed > 0
    assert first_report.failures == {status: n_failed}
    assert "\n".join(first_report.warnings) == warning.format(n_failed)
    assert n_attempts == {1}
    assert report.rows == n_failed
    assert report.failures == {}
    assert set(paid_verdicts(server)) == {BATCH}


@pytest.mark.parametrize("behaviour", [fails_at_first, talks_at_first])
def test_calls_that_fail_in_a_batch_are_made_live_if_allowed_and_counted(
    behaviour,
    server,
    make,
):
    server.behaviour = behaviour

    report = judged(make(allow_live=True))

    n_live = paid_verdicts(server)[CHAT]
    warning = f"{n_live} calls of `mode: batch` were made live, at the live price (`allow_live`)"
    assert report.rows == N_CRITERIA
    assert report.failures == {}
    assert n_live > 0
    assert warning in report.warnings


def test_a_crash_between_submitting_a_batch_and_recording_it_pays_nothing_twice(
    server,
    make,
    monkeypatch,
):
    async def crash(*_):
        raise KeyboardInterrupt

    job = make()
    with monkeypatch.context() as patch:
        patch.setattr(Submissions, "record_submitted", crash)
        with pytest.raises(KeyboardInterrupt):
            judged(job)

    report = judged(job)

    assert report.rows == N_CRITERIA
    assert paid_verdicts(server) == {BATCH: N_CRITERIA}


@pytest.mark.parametrize(
    ("end", "n_responses", "warning"),
    [
        ("failed", 0, "ended as failed"),
        ("expired", 10, "13 of 23 calls have no result"),
    ],
)
def test_a_batch_that_fails_or_expires_gives_its_results_and_the_next_run_submits_the_rest(
    end,
    n_responses,
    warning,
    server,
    make,
):
    server.batch_end = end
    server.responses_before_end = n_responses
    job = make()
    first_report = judged(job)
    server.batch_end = "completed"

    report = judged(job)

    assert warning in first_report.warnings[0]
    assert first_report.rows == n_responses
    assert report.rows == N_CRITERIA - n_responses
    assert paid_verdicts(server).total() == N_CRITERIA


def test_no_batch_is_submitted_that_could_pass_the_cap(server, make):
    job = make()
    limits = Limits(max_tokens=10_000, batch_wait_s=120.0)
    capped = job.settings.model_copy(update={"limits": limits})

    report = judged(job.model_copy(update={"settings": capped}))

    assert report.is_at_budget
    assert 0 < report.rows < N_CRITERIA
    assert report.rows == paid_verdicts(server).total()


def batched_calls(target: Target) -> list[Call]:
    """Thirty calls for a batch."""
    calls = []
    for number in range(30):
        messages = [{"role": "user", "content": f"prompt {number}"}]
        calls.append(Call(target, messages, f"cell {number}", is_batched=True))
    return calls


def test_two_runs_submit_the_same_calls_in_one_batch_and_collect_it_once(
    server,
    make,
    tmp_path,
):
    server.polls_until_done = 1
    target = judge_target(make().settings.judges[0])
    calls = batched_calls(target)
    limiter = Limiter(4, Budget(None, None))

    async def run(run_id):
        with contextlib.closing(Ledger(tmp_path / "ledger")) as ledger:
            batching = Batching(target, ledger, limiter, run_id, "judge")
            await batching.submit_and_collect(calls, 30.0)
            return batching

    async def both():
        return await asyncio.gather(run("first"), run("second"))

    runs = asyncio.run(both())

    with contextlib.closing(Ledger(tmp_path / "ledger")) as ledger:
        for call in calls:
            history = ledger.history(call.key(call.parameters()))
            assert len(history.entries) == 1
    spends = [(row["calls"], row["purpose"]) for row in spend_in(tmp_path / "ledger")]
    assert sorted(run.n_submitted for run in runs) == [0, 30]
    assert sorted(len(run.replies) for run in runs) == [0, 30]
    assert len(server.paid) == 30
    assert (30, "judge") in spends
