"""Judging in `mode: batch` against a server that speaks the batch protocol over a real socket."""

import asyncio
import atexit
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.config.settings import Limits
from tasks.llm.calls.batches import Batching, Submissions
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.limiter import Budget, Limiter
from tasks.llm.request import Call
from tasks.run.judge_configs import judge_target
from tests.faults.server import (
    Behaviour,
    FaultServer,
    HttpResponse,
    Request,
    is_judge_request,
    well_behaved,
)
from tests.kit import endpoint, job_on, judged, prepared, rows_in, sampled

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

LIMIT = 4
N_CRITERIA = 47
"""Half of the sample."""
CHAT = "/v1/chat/completions"
BATCH = "/v1/batches"


@cache
def responded() -> tuple[Path, int]:
    """A warehouse with the responses to half of the sample, made once, and the port of their
    provider.
    """
    folder = Path(tempfile.mkdtemp(prefix="responded-"))
    atexit.register(shutil.rmtree, folder)
    with FaultServer() as server:
        job = prepared(
            job_on("sample", folder, models=[endpoint("a", server.api_base, max_tokens=1000)])
        )
        sampled(job.model_copy(update={"limit": LIMIT}))
        return folder, int(server.api_base.rpartition(":")[2].partition("/")[0])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A new provider on the same port, and a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer(port=responded()[1]) as running:
        yield running


def job_at(
    server: FaultServer,
    folder: Path,
    mode: str = "batch",
    judge: dict[str, Any] | None = None,
    **limits: Any,
) -> Job:
    """A job on half of the sample with all responses and one judge."""
    own = {
        "name": "openai/judge",
        "mode": mode,
        "max_tokens": 1000,
        **(judge or {}),
    }
    judges = [endpoint("judge", server.api_base, **own)]
    shutil.copytree(responded()[0], folder, dirs_exist_ok=True)
    limits = {
        "batch_wait_s": 0.0,
        "attempts": 2,
        **limits,
    }
    models = [endpoint("a", server.api_base, max_tokens=1000)]
    job = job_on(
        "sample",
        folder,
        models=models,
        judges=judges,
        limits=limits,
    )
    return job.model_copy(update={"limit": LIMIT})


def rows_of(job: Job) -> list[dict[str, Any]]:
    return rows_in(
        job, "select verdict_id, status, value, explanation, error, attempts from verdicts"
    )


def verdicts_of(job: Job) -> dict[str, tuple[Any, ...]]:
    return {
        row["verdict_id"]: (row["status"], row["value"], row["explanation"]) for row in rows_of(job)
    }


def paid_verdicts(server: FaultServer) -> Counter[str]:
    return Counter(entry.path for entry in server.paid if is_judge_request(entry.request))


def test_a_batch_is_submitted_once_and_collected_by_a_later_run(
    server: FaultServer, tmp_path: Path
) -> None:
    server.polls_until_done = 2
    job = job_at(server, tmp_path)
    first = judged(job)
    assert first.rows == 0
    assert first.skipped == N_CRITERIA
    assert "47 calls" in first.warnings[0]
    assert judged(job).rows == 0
    assert judged(job).rows == N_CRITERIA
    assert judged(job).rows == 0
    assert paid_verdicts(server) == {BATCH: N_CRITERIA}


def test_a_batch_gives_the_same_verdicts_under_the_same_keys_as_calls_do(
    server: FaultServer, tmp_path: Path
) -> None:
    batched = job_at(server, tmp_path / "batched")
    judged(batched)
    one_by_one = job_at(server, tmp_path / "live", mode="live")
    judged(one_by_one)
    assert verdicts_of(batched) == verdicts_of(one_by_one)
    assert len(verdicts_of(batched)) == N_CRITERIA


@pytest.mark.parametrize("kind", [503, 0])
def test_what_a_provider_does_not_do_at_once_is_asked_again(
    kind: int, server: FaultServer, tmp_path: Path
) -> None:
    """If only its response was lost (0), the provider has the batch, and nothing is paid twice."""
    job = job_at(server, tmp_path, batch_wait_s=60.0)
    requested: Counter[str] = Counter()

    def strikes(request: str) -> int | None:
        requested[request] += 1
        return kind if requested[request] == 1 else None

    server.strikes = strikes
    assert judged(job).rows == N_CRITERIA
    assert {request.split("/")[2] for request in requested if requested[request] > 1} == {
        "batches",
        "files",
    }
    assert min(requested.values()) > 1 or kind == 0
    assert paid_verdicts(server) == {BATCH: N_CRITERIA}


def test_a_provider_that_stays_away_keeps_its_batch_until_a_later_run(
    server: FaultServer, tmp_path: Path
) -> None:
    job = job_at(server, tmp_path)
    server.strikes = lambda seen: 503 if seen.startswith("GET /v1/batches/") else None
    report = judged(job)
    assert report.rows == 0
    assert report.skipped == N_CRITERIA
    assert "batch batch_000001 is still running, with 47 calls" in report.warnings[0]
    assert "Struck" in report.warnings[0]
    server.strikes = lambda _: None
    assert judged(job).rows == N_CRITERIA


@pytest.mark.parametrize("broken", [None, b"[]\n", b"[" * 100_000 + b"\n"])
def test_a_line_that_cannot_be_read_is_the_failure_of_its_call_alone(
    broken: bytes | None, server: FaultServer, tmp_path: Path
) -> None:
    def written(line: bytes, number: int) -> bytes:
        return line if number != 5 else broken or line[: line.index(b"response")] + b"\n"

    server.written = written
    job = job_at(server, tmp_path)
    report = judged(job)
    assert report.rows == N_CRITERIA
    assert report.failures == {"provider_error": 1}
    (cause,) = [row["error"] for row in rows_of(job) if row["error"]]
    assert "batch batch_000001, file-000002, line 5: cannot be read" in cause
    server.written = lambda line, _: line
    assert judged(job).rows == 1
    assert paid_verdicts(server) == {BATCH: N_CRITERIA + 1}


def fails_at_first(request: Request, number: int) -> HttpResponse:
    is_struck = (
        is_judge_request(request) and sum(map(ord, request["messages"][0]["content"])) % 5 == 0
    )
    return HttpResponse(status=500) if is_struck and number == 0 else well_behaved(request, number)


def talks_at_first(request: Request, number: int) -> HttpResponse:
    is_first = is_judge_request(request) and len(request["messages"]) == 1 and number == 0
    return HttpResponse("Certainly!") if is_first else well_behaved(request, number)


@pytest.mark.parametrize(
    ("behaviour", "status"), [(fails_at_first, "provider_error"), (talks_at_first, "parse_error")]
)
def test_calls_that_fail_in_a_batch_are_failures_until_the_next_run_s_batch(
    behaviour: Behaviour, status: str, server: FaultServer, tmp_path: Path
) -> None:
    server.behaviour = behaviour
    job = job_at(server, tmp_path)
    report = judged(job)
    failed = report.failures[status]
    assert 0 < failed == report.failures.total()
    again = [f"{failed} calls failed in a batch; the next run submits them again"]
    assert report.warnings == again * (status == "provider_error")
    assert {row["attempts"] for row in rows_of(job)} == {1}
    second = judged(job)
    assert second.rows == failed
    assert second.failures == {}
    assert set(paid_verdicts(server)) == {BATCH}


@pytest.mark.parametrize("behaviour", [fails_at_first, talks_at_first])
def test_they_are_made_live_if_allowed_and_counted(
    behaviour: Behaviour, server: FaultServer, tmp_path: Path
) -> None:
    server.behaviour = behaviour
    job = job_at(server, tmp_path, judge={"allow_live": True})
    report = judged(job)
    assert report.rows == N_CRITERIA
    assert report.failures == {}
    n_live = paid_verdicts(server)[CHAT]
    assert n_live > 0
    assert (
        f"{n_live} calls of `mode: batch` were made live, at the live price (`allow_live`)"
        in report.warnings
    )


def test_a_crash_between_handing_in_and_writing_it_down_pays_nothing_twice(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(*_: object) -> None:
        raise KeyboardInterrupt

    job = job_at(server, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Submissions, "submitted", crash)
        with pytest.raises(KeyboardInterrupt):
            judged(job)
    assert judged(job).rows == N_CRITERIA
    assert paid_verdicts(server) == {BATCH: N_CRITERIA}


@pytest.mark.parametrize(
    ("end", "n_responses", "status"),
    [("failed", 0, "ended as failed"), ("expired", 20, "27 of 47 calls have no result")],
)
def test_what_a_batch_that_fails_or_expires_has_is_taken_and_the_rest_submitted_by_the_next_run(
    end: str, n_responses: int, status: str, server: FaultServer, tmp_path: Path
) -> None:
    server.batch_end = end
    server.responses_before_end = n_responses
    job = job_at(server, tmp_path)
    first = judged(job)
    assert status in first.warnings[0]
    server.batch_end = "completed"
    assert first.rows + judged(job).rows == sum(paid_verdicts(server).values()) == N_CRITERIA


def test_no_batch_is_submitted_that_could_pass_the_cap(server: FaultServer, tmp_path: Path) -> None:
    job = job_at(server, tmp_path)
    capped = job.settings.model_copy(
        update={"limits": Limits(max_tokens=10_000, batch_wait_s=120.0)}
    )
    report = judged(job.model_copy(update={"settings": capped}))
    assert report.is_at_budget
    assert 0 < report.rows < N_CRITERIA
    assert report.rows == sum(paid_verdicts(server).values())


def test_two_runs_submit_the_same_calls_in_one_batch_and_collect_it_once(
    server: FaultServer, tmp_path: Path
) -> None:
    server.polls_until_done = 1
    target = judge_target(job_at(server, tmp_path).settings.judges[0])
    n_before = len(server.paid)
    calls = [
        Call(
            target,
            [{"role": "user", "content": f"prompt {number}"}],
            f"cell {number}",
            is_batched=True,
        )
        for number in range(30)
    ]

    async def both() -> list[Batching]:
        ledgers = [Ledger(tmp_path / "ledger") for _ in range(2)]
        limiter = Limiter(4, Budget(None, None))
        runs = [
            Batching(target, ledger, limiter, f"run {n}", "judge")
            for n, ledger in enumerate(ledgers)
        ]
        await asyncio.gather(*(run.submit_and_collect(calls, 30.0) for run in runs))
        for ledger in ledgers:
            histories = [
                ledger.history(call.key(call.parameters(target.parameters))) for call in calls
            ]
            assert [len(history.entries) for history in histories] == [1] * 30
            ledger.close()
        return runs

    one, other = asyncio.run(both())
    assert sorted([one.n_submitted, other.n_submitted]) == [0, 30]
    assert sorted([len(one.replies), len(other.replies)]) == [0, 30]
    assert len(server.paid) - n_before == 30
    assert (30, "judge") in [
        (row["calls"], row["purpose"]) for row in spend_in(tmp_path / "ledger")
    ]
