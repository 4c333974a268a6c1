"""A world with everything that can happen to verdicts, its warehouse, and an independent checker's
figures.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import Rows, aggregated, shared_folder
from tests.tasks.aggregate.world import (
    MAJORITIES,
    RESAMPLES,
    figures_of,
    graded_world,
)
from tests.tasks.certify.checker import Figures
from tests.tasks.report.synthetic.resamples import few_resamples
from warehouse import Reader, Warehouse
from warehouse.locks import file_lock


@pytest.fixture(scope="session")
def world() -> Rows:
    """A world in which one model has figures of more tasks than the 50 that are no longer few."""
    return graded_world(seed=20260301, n_tasks=52)


@pytest.fixture(scope="session")
def figures(world: Rows) -> Figures:
    return figures_of(world)


@pytest.fixture(scope="session")
def root(world: Rows, tmp_path_factory) -> Path:
    """The aggregated warehouse of the world; the first process builds it, the others wait; tests
    must not change it.
    """
    folder = shared_folder(tmp_path_factory) / "aggregated-world"
    with file_lock(folder / "lock", wait=True), few_resamples(RESAMPLES):
        if not (folder / "done").exists():
            aggregated(folder / "warehouse", world, majorities=MAJORITIES)
            (folder / "done").touch()
    return folder / "warehouse"


@pytest.fixture(scope="session")
def reader(root: Path) -> Iterator[Reader]:
    with Warehouse(root).reader() as opened:
        yield opened
