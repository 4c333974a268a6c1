"""What a plan needs before it can count calls: the stages that make none, as a run would begin with them."""

from tasks.assemble import assemble
from tasks.check import check
from tasks.config.job import Job
from tasks.ingest import ingest
from tasks.run.missing_work import conversations_of, missing_splits, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Warehouse


def is_prepared(job: Job) -> bool:
    """Whether the job's tasks are ingested and their conversations assembled."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return False
    with warehouse.reader() as reader:
        if missing_splits(job, reader):
            return False
        wanted = wanted_tasks(job, reader)
        return len(conversations_of(reader, wanted, wanted.task_ids)) == len(wanted.task_ids)


def prepare(job: Job) -> list[StageReport]:
    """Ingest and check the data set, and assemble its conversations; what is there already stays as it is."""
    report = ingest(job)
    report.adopt(check(job, ("ingest",), reuse=True))
    return [report, assemble(job)]
