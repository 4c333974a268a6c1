"""Writing the report of a job."""

import os
from contextlib import nullcontext
from pathlib import Path

from flows.nightly_changes import changes
from flows.report_basis import basis_of, forget_basis, note_basis, whole_of
from tasks.config.job import Job
from tasks.console import notice
from tasks.maintain import store_spend
from tasks.report.build import Written, build
from tasks.report.rendering.site import only_writer
from tasks.rules.errors import PipelineError
from warehouse import Warehouse

_ALL = "all"


def write_report(job: Job, folder: Path | None = None, vintage: str | None = None, basis: str | None = None) -> Written:
    """Write the report of what is published, after those that others are writing into the folder.

    Args:
        job: what it is about.
        folder: the report folder, in which it gets one of the benchmark's name; None: the one that the job says.
        vintage: which sampling; None: the latest of each model; `all`. The latest ones, or those of a vintage that is
            named, are compared with the ones before.
        basis: what the report rests on, which is noted beside it (`flows.report_basis`).

    Raises:
        UsageError: the folder holds something else.
        WarehouseBusy: another machine writes the warehouse.
        WarehouseError: nothing is published yet.
    """
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


def report_of_run(job: Job) -> Written:
    """The report that a run ends with: of all that is there, also where the run was about a part of it.

    Raises:
        UsageError: the folder holds something else.
    """
    whole = whole_of(job)
    _store_what_was_spent(job)
    # What is published from now on may be missing in it.
    return write_report(whole, basis=basis_of(whole))


def link_to(job: Job, written: Written) -> str:
    """Where people find the benchmark's report: at the configured address, else the file."""
    return job.report_url or written.index.resolve().as_uri()
