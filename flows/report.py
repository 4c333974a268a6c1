"""Writing the report of a job, and whether the last one still says all, so that it need not be written again."""

import hashlib
import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import sql
import tasks
from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.files import deletion_mark
from tasks.maintain.upkeep import store_spend
from tasks.report.rendering.site import is_whole, only_writer
from tasks.rules.errors import PipelineError
from tasks.run.run_context import LEDGER
from warehouse import Warehouse, write_atomically

if TYPE_CHECKING:
    from tasks.report.build import Written

_ALL = "all"


def write_report(
    job: Job, folder: Path | None = None, vintage: str | None = None, basis: str | None = None
) -> "Written":
    """Write the report of what is published, after those that others are writing into the folder.

    Args:
        job: what it is about.
        folder: the report folder, in which it gets one of the benchmark's name; None: the one that the job says.
        vintage: which sampling; None: the latest of each model; `all`. The latest ones, or those of a vintage that is
            named, are compared with the ones before.
        basis: what the report rests on, which is noted beside it.

    Raises:
        UsageError: the folder holds something else.
        WarehouseBusy: another machine writes the warehouse.
        WarehouseError: nothing is published yet.
    """
    # These import what draws, which takes seconds.
    from flows.nightly import changes
    from tasks.report.build import build

    warehouse = Warehouse(job.warehouse)
    with warehouse.reader():
        pass  # where nothing is published, no folder is made
    # It stores costs and reads the ledger, which two machines cannot open at once. A folder that nobody can write to is
    # only read.
    can_write = os.access(job.warehouse, os.W_OK)
    with warehouse.only_machine(notice) if can_write else nullcontext(), only_writer(folder or job.report_folder):
        _store_what_was_spent(job)
        if folder is None:
            forget_basis(job)
        found = changes(job, None if vintage == _ALL else vintage)
        written = build(job, folder or job.report_folder, vintage, found)
        if basis is not None:
            note_basis(job, basis)
        return written


def _store_what_was_spent(job: Job) -> None:
    """Publish what the ledger knows of costs, those of this run and of killed ones, which no run has stored yet."""
    warehouse = Warehouse(job.warehouse)
    try:
        if warehouse.database.exists() and store_spend(job):
            warehouse.publish()
    except PipelineError as error:
        notice(f"costs are as of the last finished run: {error}")


def report_of_run(job: Job) -> "Written":
    """Write the report at the end of a run: on everything stored, even if the run was on a part of it.

    Raises:
        UsageError: the folder holds something else.
    """
    whole = whole_of(job)
    _store_what_was_spent(job)
    # What is published from now on may be missing in it.
    return write_report(whole, basis=basis_of(whole))


def link_to(job: Job, written: "Written") -> str:
    """Return the location of the benchmark's report for people: the configured address, else the file."""
    return job.report_url or written.index.resolve().as_uri()


_WRITERS = (Path(tasks.__file__).parent / "report", Path(tasks.__file__).parent / "benchmarks", sql.FOLDER / "report")
_SOURCES = {".py", ".js", ".css", ".html", ".sql"}
_NOT_SHOWN = {"runs", "alerts", "alert_deliveries"}
"""Tables in which every run leaves rows; of the report only the list of runs shows them."""
_SAYS_NOTHING = {"alerts", "limits"}
"""Settings that change nothing in a report."""
_FILE = "report-basis.txt"
"""The file beside the report's pages that holds a hash of what it rests on."""


def is_up_to_date(job: Job) -> bool:
    """Return whether the report of the last run contains everything that is published and configured."""
    folder, above = job.report_index.parent, job.report_folder / "index.html"
    try:
        noted = (folder / _FILE).read_text(encoding="ascii").strip()
        # The files first, which takes milliseconds.
        return above.is_file() and is_whole(folder) and noted == basis_of(whole_of(job))
    except (OSError, ValueError):
        return False


def note_basis(job: Job, basis: str) -> None:
    """Note what the report rests on that was just written."""
    write_atomically(job.report_index.parent / _FILE, f"{basis}\n".encode())


def forget_basis(job: Job) -> None:
    """Note that the report is about to be written."""
    (job.report_index.parent / _FILE).unlink(missing_ok=True)


def whole_of(job: Job) -> Job:
    """Return a job whose report is of all that is stored."""
    return of_all_splits(job).model_copy(update={"named_models": None, "named_judges": None})


def of_all_splits(job: Job) -> Job:
    """Return a job whose report is of all splits that are stored: those of its configuration say what is evaluated."""
    dataset = job.settings.dataset.model_copy(update={"splits": ()})
    return job.model_copy(update={"settings": job.settings.model_copy(update={"dataset": dataset})})


def basis_of(job: Job) -> str:
    """Return a hash of the published data without runs, the configuration, and the code that writes reports."""
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
