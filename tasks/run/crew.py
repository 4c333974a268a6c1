"""Who runs the batches of a stage: this process, or worker processes where the calls are many."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tasks.config.settings import Job
from tasks.llm.litellm_setup import warm_up
from tasks.run.part_writer import judge_target, target_of
from tasks.run.run_context import RunDesk
from tasks.run.stage_report import StageReport
from tasks.run.workers import Batch, Worker

_MANY_CALLS = 3_000
"""From here on the seconds that a worker's start takes are worth it."""


class Crew:
    """Runs batches, each on the worker with the least in hand."""

    def __init__(self, workers: list[Worker]) -> None:
        self._workers = workers

    async def run(self, batch: Batch, *arguments: Any, **options: Any) -> StageReport:
        """Run a batch."""
        alive = [worker for worker in self._workers if worker.is_alive]
        if not alive:
            return await batch(*arguments, **options)
        return await min(alive, key=lambda worker: worker.load).run(batch, *arguments, **options)


_crews: dict[str, Crew] = {}


def crew_of(job: Job) -> Crew:
    """The crew of a run."""
    return _crews[job.run_id]


@asynccontextmanager
async def crew_for(job: Job, desk: RunDesk, n_calls: int) -> AsyncIterator[None]:
    """Have a crew for so many calls while the block lasts; an inner block shares the outer one's."""
    if job.run_id in _crews:
        yield
        return
    number = n_processes(job, n_calls)
    if n_calls and number == 1:
        await asyncio.to_thread(warm_up)
    starting = [Worker.start(job, desk.limiters, desk.ledger.marks) for _ in range(number if number > 1 else 0)]
    workers = list(await asyncio.gather(*starting))
    _crews[job.run_id] = Crew(workers)
    try:
        yield
    finally:
        del _crews[job.run_id]
        await asyncio.gather(*(worker.close() for worker in workers))


def n_processes(job: Job, n_calls: int) -> int:
    """How many processes make calls; the embedded model lives in this one."""
    targets = [*map(target_of, job.settings.models), *map(judge_target, job.settings.judges)]
    if n_calls == 0 or any(target.is_embedded for target in targets):
        return 1
    asked = job.settings.limits.processes
    if asked is not None:
        return asked
    return (os.cpu_count() or 1) if n_calls >= _MANY_CALLS else 1
