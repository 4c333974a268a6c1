"""What the report of a run rests on, so that a run that changed none of it need not write it again."""

import hashlib
from pathlib import Path

import sql
import tasks
from tasks.config import Job
from warehouse import Warehouse, write_atomically

_WRITERS = (Path(tasks.__file__).parent / "report", Path(tasks.__file__).parent / "benchmarks", sql.FOLDER / "report")
_SOURCES = {".py", ".js", ".css", ".html", ".sql"}
_NOT_SHOWN = {"runs", "alerts", "alert_deliveries"}
"""Tables in which every run leaves rows; of the report only the list of runs shows them."""
_SAYS_NOTHING = {"alerts", "limits"}
"""Settings that change nothing in a report."""
_FILE = "report-basis.txt"
"""The file beside the report's pages that holds the hash."""


def is_up_to_date(job: Job) -> bool:
    """Whether the report that the last run wrote says all that is published and configured."""
    path = job.report_index.parent / _FILE
    return job.report_index.is_file() and _read(path) == basis_of(whole_of(job)).encode()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def note_basis(job: Job, basis: str) -> None:
    """Note what the report rests on that was just written."""
    write_atomically(job.report_index.parent / _FILE, basis.encode())


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


def basis_of(job: Job) -> str:
    """A hash of what is published, save for the record of runs, of the configuration, and of what writes reports."""
    stored = Warehouse(job.warehouse).published_parts(but=_NOT_SHOWN)
    given = [job.settings.model_dump_json(exclude=_SAYS_NOTHING), job.data.revision, job.vintage, *stored]
    found = hashlib.sha256("\n".join(given).encode())
    for folder in _WRITERS:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES):
            found.update(path.read_bytes())
    return found.hexdigest()
