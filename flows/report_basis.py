"""What the report of a run rests on, so that a run that changed none of it need not write it again."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path, PurePath

import sql
import tasks
from tasks.config.job import Job
from tasks.llm import deletion_mark
from tasks.run.run_context import LEDGER
from warehouse import Warehouse, write_atomically

_WRITERS = (Path(tasks.__file__).parent / "report", Path(tasks.__file__).parent / "benchmarks", sql.FOLDER / "report")
_SOURCES = {".py", ".js", ".css", ".html", ".sql"}
_NOT_SHOWN = {"runs", "alerts", "alert_deliveries"}
"""Tables in which every run leaves rows; of the report only the list of runs shows them."""
_SAYS_NOTHING = {"alerts", "limits"}
"""Settings that change nothing in a report."""
_FILE = "report-basis.txt"
"""The file beside the report's pages that holds a hash of what it rests on, and one of its files' names and sizes."""
_LIST = "report-files.txt"
"""The file in which a report lists its files (`tasks.report`, whose import takes seconds)."""


def is_up_to_date(job: Job) -> bool:
    """Whether the report that the last run wrote says all that is published and configured."""
    path = job.report_index.parent / _FILE
    noted = _read(path).decode(errors="replace").split()
    # The files first, which takes milliseconds.
    return len(noted) == 2 and noted[1] == _files_of(job) and noted[0] == basis_of(whole_of(job))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _files_of(job: Job) -> str:
    """A hash of the names and sizes of the report's files that are there; of the page above it, whether it is."""
    folder = job.report_index.parent
    names = set(_read(folder / _LIST).decode(errors="replace").splitlines())
    sizes: dict[str, int] = {}
    for within in {str(PurePath(name).parent) for name in names}:
        with suppress(OSError), os.scandir(folder / within) as entries:
            found = {PurePath(within, entry.name).as_posix(): entry for entry in entries}
            sizes |= {name: found[name].stat().st_size for name in found.keys() & names}
    listed = [f"{name} {sizes.get(name)}" for name in sorted(names)]
    above = (job.report_folder / "index.html").is_file()
    return hashlib.sha256("\n".join([str(above), *listed]).encode()).hexdigest()


def note_basis(job: Job, basis: str) -> None:
    """Note what the report rests on that was just written."""
    write_atomically(job.report_index.parent / _FILE, f"{basis}\n{_files_of(job)}\n".encode())


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
    # Replies that the ledger deletes leave the report too.
    deletions = str(deletion_mark(job.warehouse / LEDGER))
    shown = job.settings.model_dump_json(exclude=_SAYS_NOTHING)
    given = [shown, job.data.revision, job.vintage, deletions, *stored]
    found = hashlib.sha256("\n".join(given).encode())
    for folder in _WRITERS:
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES):
            found.update(path.read_bytes())
    return found.hexdigest()
