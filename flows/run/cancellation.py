"""Cancelling in Prefect's UI, which marks a flow run as cancelling: a command looks for that every few seconds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from flows.run.recording import be_patient, is_recorded

STOPPED = "Stopped; what was finished is kept, and the same run continues from here."
_LOOK_EVERY_S = 5.0
_watched: ContextVar[bool] = ContextVar("watched", default=False)


def is_watched() -> bool:
    """Whether this is part of a flow that is `cancellable`."""
    return _watched.get()


@asynccontextmanager
async def cancellable() -> AsyncIterator[None]:
    """Cancel the work of the block when its flow run is cancelled in Prefect.

    Inside another such block, or where Prefect does not record the work, do nothing.
    """
    if _watched.get() or not is_recorded():
        yield
        return
    here = asyncio.current_task()
    assert here is not None
    token = _watched.set(True)
    watching = asyncio.create_task(_watch(here))
    try:
        yield
    finally:
        _watched.reset(token)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(work: "asyncio.Task[None]") -> None:
    from uuid import UUID

    from httpx import HTTPError
    from prefect import get_client
    from prefect.client.schemas.objects import StateType
    from prefect.runtime import flow_run

    be_patient()
    run_id = UUID(str(flow_run.id))
    async with get_client() as client:
        while is_recorded():
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                found = await client.read_flow_run(run_id)
            except HTTPError:
                continue  # a server that fails cancels nothing
            if found.state is not None and found.state.type in {StateType.CANCELLING, StateType.CANCELLED}:
                work.cancel()
                return
