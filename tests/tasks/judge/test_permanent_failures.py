"""Failures that no later run tries again: redirects, and replies that are too large."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.llm.replies import MOST_TEXT_BYTES
from tests.builders import job_on
from tests.faults.server import Answer, FaultServer, Request, is_judging, well_behaved
from tests.tasks.run.runs import judged, prepared, sampled
from warehouse import Warehouse

pytestmark = pytest.mark.slow

AWAY = Answer(status=307, raw=b"", headers={"Location": "http://elsewhere.example/v1/chat/completions"})
LARGE = Answer("x" * (MOST_TEXT_BYTES + 1))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer() as running:
        yield running


def job_at(server: FaultServer, folder: Path) -> Job:
    at = {"api_base": server.api_base}
    return prepared(
        job_on(
            "sample", folder, models=[{"name": "hosted_vllm/a", "label": "a", **at}],
            judges=[{"name": "hosted_vllm/judge", "label": "judge", **at}],
            limits={"concurrency": 1, "attempts": 3},
        )
    )  # fmt: skip


def rows_of(job: Job, table: str) -> list[dict[str, Any]]:
    with Warehouse(job.warehouse).reader() as reader:
        return reader.rows(f"select status, error, attempts from {table}")


@pytest.mark.parametrize(("answer", "status"), [(AWAY, "redirected"), (LARGE, "too_large")])
def test_a_response_that_failed_so_is_a_row_that_only_retry_failed_asks_for_again(
    answer: Answer, status: str, server: FaultServer, tmp_path: Path
) -> None:
    def first_fails(request: Request, number: int) -> Answer:
        is_first = not failed
        failed.extend([1] * is_first)
        return answer if is_first else well_behaved(request, number)

    failed: list[int] = []
    server.behaviour = first_fails
    job = job_at(server, tmp_path)
    sampled(job)
    sampled(job)  # a redirect stops the model for its run, so the others come now
    n_asked = len(server.book)
    (row,) = [row for row in rows_of(job, "responses") if row["status"] != "ok"]
    assert (row["status"], row["attempts"]) == (status, 1)
    if answer is AWAY:
        assert "HTTP 307" in row["error"]
        assert "elsewhere.example" in row["error"]
    sampled(job)
    assert len(server.book) == n_asked
    sampled(job, retry_failed=True)
    assert len(server.book) == n_asked + 1
    assert {row["status"] for row in rows_of(job, "responses")} == {"ok"}


@pytest.mark.parametrize(("answer", "status"), [(AWAY, "redirected"), (LARGE, "too_large")])
def test_a_verdict_that_failed_so_is_a_row_that_only_retry_failed_asks_for_again(
    answer: Answer, status: str, server: FaultServer, tmp_path: Path
) -> None:
    def first_fails(request: Request, number: int) -> Answer:
        is_first = is_judging(request) and not failed
        failed.extend([1] * is_first)
        return answer if is_first else well_behaved(request, number)

    failed: list[int] = []
    server.behaviour = first_fails
    job = job_at(server, tmp_path)
    sampled(job)
    judged(job)
    judged(job)
    assert sum(row["status"] == status for row in rows_of(job, "verdicts")) == 1
    asked = len(server.book)
    judged(job)
    assert len(server.book) == asked
    judged(job, retry_failed=True)
    assert len(server.book) == asked + 1
    assert {row["status"] for row in rows_of(job, "verdicts")} == {"met", "unmet"}
