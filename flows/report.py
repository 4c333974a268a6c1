"""Writing the report of a job, unless the last one is up to date."""

import os
from contextlib import nullcontext
from importlib import import_module
from inspect import getsource
from pathlib import Path
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.files import deletion_mark
from tasks.maintain.spend import store_calls
from tasks.report.rendering.program import hash_of_program
from tasks.report.rendering.site import (
    RESULTS,
    is_whole,
    only_writer,
    size_if_undamaged,
    stored_inputs,
)
from tasks.rules.errors import PipelineError
from tasks.run.judge_configs import judge_configs, model_hash
from tasks.run.run_context import LEDGER
from warehouse import Warehouse
from warehouse.files import hash_of_document

_RUN_TABLES = frozenset({"runs", "alerts", "alert_deliveries"})
"""Tables that only lists of runs and alerts show: new rows in them do not make a report's results
outdated. The names of nights do, so they are hashed separately.
"""


def write_report(job: Job, folder: Path | None = None, vintage: str | None = None) -> int:
    """Write the report of the published data, unless it is there already, and return its size in
    bytes.

    It waits for other writers of the folder to finish.

    Args:
        job: the job whose benchmark is reported on.
        folder: the report folder, in which each benchmark has a folder of its name; None: the
            configured one.
        vintage: the vintage to show; None: the current one of each model; `all`: every one. The
            shown vintage of a model, with `all` the current one, is compared with the one before.

    Raises:
        UsageError: the folder holds something other than a report.
        WarehouseBusy: another machine writes the warehouse.
        WarehouseError: nothing is published yet.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader():
        pass  # refuses a warehouse without published data before a folder is created
    report_folder = folder or job.report_folder
    site_folder = report_folder / job.benchmark
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
        inputs = inputs_of(job, vintage)  # data published after this moment may be missing
        if stored_inputs(site_folder) == inputs and size_if_undamaged(report_folder) is not None:
            n_bytes = size_if_undamaged(site_folder)
            if n_bytes is not None:
                return n_bytes
        # Importing these takes seconds.
        from tasks.compare.vintages import changes
        from tasks.report.build import build

        vintage_changes = changes(job, None if vintage == "all" else vintage)
        return build(job, report_folder, vintage, vintage_changes, inputs)


def is_up_to_date(job: Job) -> bool:
    """Return whether the configured folder has a report on everything stored that shows all
    published results, as it is configured now.

    Runs since then may be missing: every run adds rows to the tables of runs, but only the list of
    runs shows them.
    """
    folder = job.report_index.parent
    results = stored_inputs(folder).get(RESULTS)
    try:
        # Checked first, because the hash of all inputs takes seconds.
        if results is None or not is_whole(job.report_folder) or not is_whole(folder):
            return False
        return results == inputs_of(on_everything(job))[RESULTS]
    except OSError:  # writing the report says what cannot be read
        return False


def on_everything(job: Job) -> Job:
    """Return a job whose report covers everything stored."""
    return job.on_splits(()).model_copy(update={"named_models": None, "named_judges": None})


def inputs_of(job: Job, vintage: str | None = None) -> dict[str, str]:
    """Return hashes of what a report is made from: of the published `results` with the
    configuration, the benchmark and this program, and of the `runs`.
    """
    warehouse = Warehouse(job.warehouse)
    benchmark = load_benchmark(job.benchmark)
    # The settings lack addresses from the environment and templates from files.
    configs: list[Any] = [model_hash(model) for model in job.settings.models]
    configs += [judge_config.columns for judge_config in judge_configs(job, benchmark)]
    module = import_module(f"tasks.benchmarks.{benchmark.name}")
    with warehouse.reader() as reader:
        nights = reader.rows("select distinct night from runs where night is not null order by all")
    results = [
        # These settings change nothing in a report.
        job.settings.model_dump_json(exclude={"alerts", "limits"}),
        job.data.revision,
        job.vintage,
        vintage,
        job.named_models,
        job.named_judges,
        configs,
        # A report no longer shows replies that were deleted from the ledger.
        str(deletion_mark(job.warehouse / LEDGER)),
        warehouse.published_state(excluded_tables=_RUN_TABLES),
        nights,
        hash_of_program(),
        getsource(module),
    ]
    runs = [warehouse.published_state(), sorted(warehouse.living_runs())]
    return {RESULTS: hash_of_document(results), "runs": hash_of_document(runs)}
