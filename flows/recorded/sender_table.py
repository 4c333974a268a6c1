"""A table in Prefect's UI of what the senders of a run are doing, renewed while it runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from uuid import UUID

from prefect import get_client
from prefect.artifacts import TableArtifact
from prefect.client.schemas.actions import ArtifactUpdate

from flows.recorded.artifacts import RENEWED_EVERY_S, sent, top_run
from flows.recorded.names import artifact_key
from flows.run.recording import be_patient
from tasks.config.job import Job
from tasks.llm import SenderState

States = Callable[[], Sequence[SenderState]]


@asynccontextmanager
async def senders_shown(job: Job, states: States) -> AsyncIterator[None]:
    """Show the table while the block runs, and what it came to at its end."""
    table = _Table(job, states)
    watching = asyncio.create_task(table.watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    await table.renew()


class _Table:
    def __init__(self, job: Job, states: States) -> None:
        self._job, self._states = job, states
        self._artifact_id: UUID | None = None

    async def watch(self) -> None:
        be_patient()
        while True:
            await self.renew()
            await asyncio.sleep(RENEWED_EVERY_S)

    async def renew(self) -> None:
        rows = [asdict(state) | {"calls_per_s": round(state.calls_per_s, 1)} for state in self._states()]
        if not rows:
            return
        artifact = TableArtifact(
            key=artifact_key(self._job, "senders"), table=rows, flow_run_id=top_run(),
            description=f"What makes the calls of run {self._job.run_id}",
        )  # fmt: skip
        if self._artifact_id is None:
            made = await sent(artifact.acreate())
            self._artifact_id = made.id if made else None
        else:
            await sent(_replaced(self._artifact_id, await artifact.aformat()))


async def _replaced(artifact_id: UUID, content: str) -> None:
    async with get_client() as client:
        await client.update_artifact(artifact_id, ArtifactUpdate(data=content))
