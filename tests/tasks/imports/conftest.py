"""Data sets with the tasks that imported rows name."""

from pathlib import Path

from tasks.config.job import Job
from tasks.ingest import ingest
from tests.kit import good_row, job_on, write_jsonl


def ingested(folder: Path, *task_ids: str) -> Job:
    """A job with valid tasks, ingested."""
    job = job_on(
        write_jsonl(folder / "finance.jsonl", map(good_row, task_ids)),
        folder / "warehouse",
    )
    ingest(job)
    return job
