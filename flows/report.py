"""Writing the report of a job, unless the last one is up to date."""

import os
from contextlib import nullcontext
from pathlib import Path

from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.files import deletion_mark
from tasks.maintain.upkeep import store_calls
from tasks.report.rendering.program import hash_of_program
from tasks.report.rendering.site import is_whole, only_writer
from tasks.rules.errors import PipelineError
from tasks.run.run_context import LEDGER
from warehouse import Warehouse, write_atomically
from warehouse.files import hash_of_document


def write_report(
    job: Job, folder: Path | None = None, vintage: str | None = None, *, is_of_run: bool = False
) -> int:
    """Write the report of the published data, after waiting for other writers of the folder; return
    its size in bytes.

    Args:
        job: the job whose benchmark is reported on.
        folder: the report folder, in which each benchmark has a folder of its name; None: the
            configured one.
        vintage: the vintage to show; None: the current one of each model; `all`. The shown ones, or
            the current ones, are compared with the ones before.
        is_of_run: true for the report on everything stored, at the end of a run; the hash of its
            inputs is stored too.

    Raises:
        UsageError: the folder holds something other than a report.
        WarehouseBusy: another machine writes the warehouse.
        WarehouseError: nothing is published yet.
    """
    # Importing these takes seconds.
    from tasks.compare.vintages import changes
    from tasks.report.build import build

    warehouse = Warehouse(job.warehouse)
    noted = job.report_index.parent / _FILE
    with warehouse.reader():
        pass  # refuses a warehouse without published data before a folder is created
    # Storing costs opens the ledger, which two machines must not do at once. A read-only folder is
    # only read.
    can_write = os.access(job.warehouse, os.W_OK)
    with (
        warehouse.only_machine(notice) if can_write else nullcontext(),
        only_writer(folder or job.report_folder),
    ):
        try:
            if store_calls(job):  # the costs of this run, and of killed ones
                warehouse.publish()
        except PipelineError as error:
            notice(f"costs are as of the last finished run: {error}")
        if folder is None:
            noted.unlink(missing_ok=True)
        basis = basis_of(job)  # data published after this moment may be missing in the report
        changed = changes(job, None if vintage == "all" else vintage)
        n_bytes = build(job, folder or job.report_folder, vintage, changed)
        if is_of_run:
            write_atomically(noted, f"{basis}\n".encode())
        return n_bytes


_FILE = "report-basis.txt"
"""The file in the report folder with the hash of the report's inputs."""


def is_up_to_date(job: Job) -> bool:
    """Return whether the report of the last run contains everything that is published and
    configured.
    """
    folder = job.report_index.parent
    above = job.report_folder / "index.html"
    try:
        noted = (folder / _FILE).read_text(encoding="ascii").strip()
        # Check the files first: that takes milliseconds.
        return above.is_file() and is_whole(folder) and noted == basis_of(whole_of(job))
    except (OSError, ValueError):
        return False


def whole_of(job: Job) -> Job:
    """Return a job whose report covers everything stored."""
    return job.on_splits(()).model_copy(update={"named_models": None, "named_judges": None})


def basis_of(job: Job) -> str:
    """Return a hash of the published data without runs, the configuration, and this program."""
    # Every run adds rows to these tables, but only the list of runs shows them.
    stored = Warehouse(job.warehouse).published_parts(but={"runs", "alerts", "alert_deliveries"})
    # A report no longer shows replies that were deleted from the ledger.
    deletions = str(deletion_mark(job.warehouse / LEDGER))
    shown = job.settings.model_dump_json(
        exclude={"alerts", "limits"}
    )  # these change nothing in a report
    return hash_of_document(
        [shown, job.data.revision, job.vintage, deletions, stored, hash_of_program()]
    )
