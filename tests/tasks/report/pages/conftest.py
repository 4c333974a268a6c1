"""The scope of the made-up warehouse."""

from collections.abc import Iterator

import pytest

from flows.nightly import changes
from tasks.config.job import Job
from tasks.figures.scope import Scope, open_scope
from warehouse import Warehouse


@pytest.fixture(scope="module")
def scope(world_job: Job) -> Iterator[Scope]:
    """The scope of the world's report, with the changes since earlier nights."""
    with Warehouse(world_job.warehouse).reader() as reader:
        yield open_scope(world_job, reader, None, changes(world_job))
