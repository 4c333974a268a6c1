"""Failures that no later run tries again: redirects, and replies that are too large."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.replies import MOST_TEXT_BYTES
from tasks.settings import Job
from tests.builders import job_on
from tests.faults.server import Answer, FaultServer, Request, is_judging, well_behaved
from tests.stages.runs import judged, prepared, sampled
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
            limits={"processes": 1, "concurrency": 1, "attempts": 3},
        )
    )  # fmt: skip


def rows_of(job: Job, table: str) -> list[dict[str, Any]]:
    with Warehouse(job.warehouse).reader() as reader:
        return reader.rows(f"select status, error, attempts from {table}")


@pytest.mark.parametrize(("answer", "status"), [(AWAY, "redirected"), (LARGE, "too_large")])
def test_a_response_that_failed_so_is_a_row_that_only_retry_failed_asks_for_again(
    answer: Answer, status: str, server: FaultServer, tmp_path: Path
) -> None:
    server.behaviour = lambda _request, _number: answer
    job = job_at(server, tmp_path)
    sampled(job)
    rows, asked = rows_of(job, "responses"), len(server.book)
    assert {(row["status"], row["attempts"]) for row in rows} == {(status, 1)}
    assert asked == len(rows)
    if answer is AWAY:
        assert "HTTP 307" in rows[0]["error"]
        assert "elsewhere.example" in rows[0]["error"]
    server.behaviour = well_behaved
    n_wanted = sampled(job).rows + len(rows)
    assert {row["status"] for row in rows_of(job, "responses")} == (
        {"ok", status} if n_wanted > len(rows) else {status}
    )
    assert len(server.book) == n_wanted
    sampled(job, retry_failed=True)
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
