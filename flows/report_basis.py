"""What the report of a run rests on, so that a run that changed none of it need not write it again."""

import hashlib

from tasks.config import Job
from warehouse import Warehouse, write_atomically

_FILE = "report-basis.txt"
"""The file beside the report's pages that holds the hash."""


def is_up_to_date(job: Job) -> bool:
    """Whether the report that the last run wrote says all that is published and configured."""
    path = job.report_index.parent / _FILE
    return job.report_index.is_file() and path.is_file() and path.read_text(encoding="utf-8") == _basis(whole_of(job))


def note_basis(job: Job) -> None:
    """Note that the report was just written by what is published."""
    write_atomically(job.report_index.parent / _FILE, _basis(job).encode())


def forget_basis(job: Job) -> None:
    """Note that the report is about to be written."""
    (job.report_index.parent / _FILE).unlink(missing_ok=True)


def whole_of(job: Job) -> Job:
    """A job whose report is of all that is stored."""
    return of_all_splits(job).model_copy(update={"named_models": None, "named_judges": None})


def of_all_splits(job: Job) -> Job:
    """A job whose report is of all splits that are stored: those of its configuration say what is evaluated."""
    dataset = job.settings.dataset.model_copy(update={"splits": ()})
    return job.model_copy(update={"settings": job.settings.model_copy(update={"dataset": dataset})})


def _basis(job: Job) -> str:
    """A hash of what is published, save for the record of runs, and of the configuration."""
    stored = Warehouse(job.warehouse).published_parts(but={"runs"})
    given = [job.settings.model_dump_json(), job.data.revision, job.vintage, *stored]
    return hashlib.sha256("\n".join(given).encode()).hexdigest()
