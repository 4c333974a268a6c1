"""Failures that no later run tries again: redirects, and replies that are too large."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.llm.replies import MOST_TEXT_BYTES
from tasks.run.writing import StageReport
from tests.faults.server import Answer, Behaviour, FaultServer, Request, is_judging, well_behaved
from tests.kit import job_on, judged, prepared, rows_in, sampled

pytestmark = pytest.mark.slow

AWAY = Answer(status=307, raw=b"", headers={"Location": "http://elsewhere.example/v1/chat/completions"})
LARGE = Answer("x" * (MOST_TEXT_BYTES + 1))


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
    return rows_in(job, f"select status, error, attempts from {table}")


def first_fails(answer: Answer, *, is_judge: bool) -> Behaviour:
    """A provider whose first reply to a judge, or to a model, is a failure."""
    failed: list[int] = []

    def behaviour(request: Request, number: int) -> Answer:
        is_first = is_judging(request) == is_judge and not failed
        failed.extend([1] * is_first)
        return answer if is_first else well_behaved(request, number)

    return behaviour


@pytest.mark.parametrize(("answer", "status"), [(AWAY, "redirected"), (LARGE, "too_large")])
@pytest.mark.parametrize(("table", "stage"), [("responses", sampled), ("verdicts", judged)])
def test_what_failed_so_is_a_row_that_only_retry_failed_asks_for_again(
    table: str, stage: Callable[..., StageReport], answer: Answer, status: str, server: FaultServer, tmp_path: Path
) -> None:
    server.behaviour = first_fails(answer, is_judge=stage is judged)
    job = job_at(server, tmp_path)
    sampled(job)
    stage(job)
    stage(job)  # a redirect stops the model for its run, so the others come now
    n_asked = len(server.book)
    (row,) = [row for row in rows_of(job, table) if row["error"]]
    assert (row["status"], row["attempts"]) == (status, 1)
    if answer is AWAY:
        assert "HTTP 307" in row["error"]
        assert "elsewhere.example" in row["error"]
    stage(job)
    assert len(server.book) == n_asked
    stage(job, retry_failed=True)
    assert len(server.book) == n_asked + 1
    assert not any(row["error"] for row in rows_of(job, table))
