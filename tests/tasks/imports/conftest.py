"""Data sets with the tasks that imported rows name."""

from pathlib import Path

from tasks.config.job import Job
from tasks.ingest import ingest
from tests.kit import few_published, good_row, job_on, write_jsonl


def job_with_tasks(folder: Path, *task_ids: str) -> Job:
    """A job with valid tasks, ingested."""
    job = job_on(
        write_jsonl(folder / "finance.jsonl", map(good_row, task_ids)),
        folder / "warehouse",
    )
    with few_published():
        ingest(job)
    return job
