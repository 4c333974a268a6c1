"""Cancelling from Prefect: its UI marks a run as to be cancelled, and the run looks for that now and then."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from httpx import HTTPError
from prefect import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run
from prefect.states import Cancelled

from tasks.config.settings import Job
from tasks.console.progress import notice

STOPPED = "Stopped as asked; what was finished is kept, and the same run goes on from here."
_LOOK_EVERY_S = 5.0
_CANCELLING = (StateType.CANCELLING, StateType.CANCELLED)


_watched: dict[str, UUID] = {}
"""Run -> the flow run that is watched for it, the outermost one."""


@asynccontextmanager
async def cancellable(job: Job) -> AsyncIterator[None]:
    """Cancel a run when somebody cancels its flow run in Prefect; an inner block leaves that to the outer one."""
    if job.run_id in _watched:
        yield
        return
    here = asyncio.current_task()
    assert here is not None
    _watched[job.run_id] = UUID(str(flow_run.id))
    watching = asyncio.create_task(_watch(_watched[job.run_id], here))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(run_id: UUID, work: "asyncio.Task[None]") -> None:
    async with get_client() as client:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                found = await client.read_flow_run(run_id)
            except HTTPError:
                continue  # a server that is away for a while cancels nothing
            if found.state is not None and found.state.type in _CANCELLING:
                work.cancel()
                return


async def told_as_cancelled(job: Job) -> None:
    """Have Prefect show the flow run of a run that was stopped as cancelled, and not as one that crashed.

    A server that is away shows something else; that changes nothing about the run.
    """
    if job.run_id not in _watched:
        return
    try:
        await _cancelled(_watched[job.run_id])
    except (HTTPError, PrefectException) as error:
        notice(f"could not report to Prefect that the run was stopped ({type(error).__name__})")


def no_longer_watched(job: Job) -> None:
    """Forget a run that has ended."""
    _watched.pop(job.run_id, None)


async def _cancelled(run_id: UUID) -> None:
    async with get_client() as client:
        ours = [run_id]
        while ours:
            for each in ours:
                await client.set_flow_run_state(each, Cancelled(message=STOPPED), force=True)
            # Prefect calls the stages that were under way crashed.
            below = FlowRunFilter(
                parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=ours),
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CRASHED])),
            )
            ours = [run.id for run in await client.read_flow_runs(flow_run_filter=below)]
