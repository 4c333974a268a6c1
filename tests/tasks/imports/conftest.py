"""Data sets with the tasks that imported rows name, and refusals of imports."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError
from tests.kit import few_published, good_row, job_on, one_line, write_jsonl


def job_with_tasks(folder: Path, *task_ids: str) -> Job:
    """A job with valid tasks, ingested."""
    job = job_on(
        write_jsonl(folder / "finance.jsonl", map(good_row, task_ids)),
        folder / "warehouse",
    )
    with few_published():
        ingest(job)
    return job


def refusal(
    import_file: Callable[..., object],
    job: Job,
    *source: Any,
    error_type: type[PipelineError] = PipelineError,
    **options: Any,
) -> str:
    """The one line with which an import is refused, after which nothing of it is stored."""
    parts = set((job.warehouse / "parts").rglob("*.parquet"))
    with pytest.raises(error_type, match=one_line()) as caught:
        import_file(job, *source, **options)
    assert set((job.warehouse / "parts").rglob("*.parquet")) == parts
    return str(caught.value)
