"""What a night that stops when its comparisons are settled found out about each nightly model."""

from typing import Any

import sql
from tasks.config.job import Job
from tasks.config.settings import EARLIER_NIGHTS
from tasks.run.missing_work import wanted_tasks
from tasks.run.stopped_work import EARLIER, stopping_plan
from warehouse import Warehouse


def last_looks(job: Job) -> list[dict[str, Any]]:
    """The last look at each nightly model beside its earlier nights; none where nights are not stopped so.

    Of a model with a look, other comparisons of the night rest on tasks whose number depends on what they show: the
    look alone holds.
    """
    stopping = job.settings.stopping
    if stopping is None or stopping.pairs != EARLIER_NIGHTS:
        return []
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        plan = stopping_plan(job, wanted.benchmark, wanted.dataset_revision, wanted.task_ids, reader)
        if plan is None:
            return []
        given = {"stopping_id": plan.stopping_id, "compared_vintage": EARLIER}
        return reader.rows(sql.read("questions/stopping/looks_of_night"), given)
