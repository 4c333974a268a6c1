"""What the senders of a run are doing, in a file that other processes read while the run is in progress."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tasks.config import Job
from tasks.console import notice
from tasks.llm import SenderPool
from warehouse import Warehouse, write_atomically

_EVERY_S = 5.0
_FOLDER = "living"


@asynccontextmanager
async def states_written(job: Job, pool: SenderPool) -> AsyncIterator[None]:
    """Write the file now and then, while the block runs."""
    file, is_over = _file(job.warehouse, job.run_id), asyncio.Event()
    writing = asyncio.create_task(_write(file, pool, is_over))
    try:
        yield
    finally:
        is_over.set()
        await writing
        file.unlink(missing_ok=True)


async def _write(file: Path, pool: SenderPool, is_over: asyncio.Event) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    while not is_over.is_set():
        content = json.dumps([asdict(state) for state in pool.states]).encode()
        try:
            await asyncio.to_thread(write_atomically, file, content)
        except OSError as error:
            notice(f"`prbench status` does not show the senders of this run: {error}")
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_EVERY_S):
                await is_over.wait()


def sender_states(warehouse: Warehouse) -> list[dict[str, Any]]:
    """The senders of all runs in progress: `run_id`, and what `SenderState` has."""
    found = []
    for run_id in warehouse.living_runs():
        try:
            states = json.loads(_file(warehouse.root, run_id).read_text(encoding="utf-8"))
        except FileNotFoundError:  # a run without senders, or one that ends at this instant
            continue
        found += [{"run_id": run_id, **state} for state in states]
    return found


def _file(folder: Path, run_id: str) -> Path:
    return folder / _FOLDER / f"{quote(run_id, safe='')}.senders.json"
