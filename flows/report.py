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

_BASIS_FILE = "report-basis.txt"
"""The file in the report folder with the hash of the report's inputs."""


def write_report(
    job: Job,
    folder: Path | None = None,
    vintage: str | None = None,
    *,
    is_of_run: bool = False,
) -> int:
    """Write the report of the published data, and return its size in bytes.

    It waits for other writers of the folder to finish.

    Args:
        job: the job whose benchmark is reported on.
        folder: the report folder, in which each benchmark has a folder of its name; None: the
            configured one.
        vintage: the vintage to show; None: the current one of each model; `all`: every one. The
            shown vintage of a model, with `all` the current one, is compared with the one before.
        is_of_run: true for the report on everything stored, at the end of a run, in the configured
            folder; the job is `on_everything` then. The hash of its inputs is stored too, for
            `is_up_to_date`.

    Raises:
        UsageError: the folder holds something other than a report.
        WarehouseBusy: another machine writes the warehouse.
        WarehouseError: nothing is published yet.
    """
    # Importing these takes seconds.
    from tasks.compare.vintages import changes
    from tasks.report.build import build

    warehouse = Warehouse(job.warehouse)
    with warehouse.reader():
        pass  # refuses a warehouse without published data before a folder is created
    report_folder = folder or job.report_folder
    basis_file = job.report_index.parent / _BASIS_FILE
    # Storing costs opens the ledger, which only one machine may do; a read-only folder is only
    # read.
    is_writable = os.access(warehouse.root, os.W_OK)
    one_machine = warehouse.only_machine(notice) if is_writable else nullcontext()
    with one_machine, only_writer(report_folder):
        try:
            if store_calls(job):  # the costs of this run, and of killed ones
                warehouse.publish()
        except PipelineError as error:
            notice(f"costs are as of the last finished run: {error}")
        if folder is None:
            # The report that the hash is about is replaced.
            basis_file.unlink(missing_ok=True)
        basis = basis_of(job)  # data published after this moment may be missing in the report
        vintage_changes = changes(job, None if vintage == "all" else vintage)
        n_bytes = build(job, report_folder, vintage, vintage_changes)
        if is_of_run:
            write_atomically(basis_file, f"{basis}\n".encode())
        return n_bytes


def is_up_to_date(job: Job) -> bool:
    """Return whether the last run's report shows all published data, as it is configured now."""
    folder = job.report_index.parent
    index_of_benchmarks = job.report_folder / "index.html"
    try:
        stored_basis = (folder / _BASIS_FILE).read_text(encoding="ascii").strip()
        # Before the hash of all inputs, which takes seconds.
        if not index_of_benchmarks.is_file() or not is_whole(folder):
            return False
        return stored_basis == basis_of(on_everything(job))
    except (OSError, ValueError):
        return False


def on_everything(job: Job) -> Job:
    """Return a job whose report covers everything stored."""
    return job.on_splits(()).model_copy(update={"named_models": None, "named_judges": None})


def basis_of(job: Job) -> str:
    """Return a hash of the published data without runs, the configuration, and this program."""
    # Every run adds rows to these tables, but only the list of runs shows them.
    parts = Warehouse(job.warehouse).published_parts(but={"runs", "alerts", "alert_deliveries"})
    # A report no longer shows replies that were deleted from the ledger.
    deletions = str(deletion_mark(job.warehouse / LEDGER))
    # These settings change nothing in a report.
    settings = job.settings.model_dump_json(exclude={"alerts", "limits"})
    return hash_of_document(
        [settings, job.data.revision, job.vintage, deletions, parts, hash_of_program()],
    )
