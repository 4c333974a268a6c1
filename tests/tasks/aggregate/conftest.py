"""A world with everything that can happen to verdicts, its warehouse, and an independent checker's
figures.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import Rows, aggregated, job_on, shared_folder
from tests.tasks.aggregate.world import (
    MAJORITIES,
    RESAMPLES,
    figures_of,
    graded_world,
)
from tests.tasks.certify.checker import Figures
from tests.tasks.report.synthetic.resamples import few_resamples
from tests.worlds import built_once
from warehouse import Reader, Warehouse


@pytest.fixture(scope="session")
def world() -> Rows:
    """A world in which one model has figures of more tasks than the 50 that are no longer few."""
    return graded_world(seed=20260301, n_tasks=52)


@pytest.fixture(scope="session")
def figures(world: Rows) -> Figures:
    return figures_of(world)


@pytest.fixture(scope="session")
def root(world: Rows, tmp_path_factory) -> Path:
    """The aggregated warehouse of the world; tests must not change it."""

    def aggregate_world(folder):
        with few_resamples(RESAMPLES):
            aggregated(folder / "warehouse", world, majorities=MAJORITIES)
        return job_on("sample", folder / "warehouse")

    folder = shared_folder(tmp_path_factory) / "aggregated-world"
    return built_once(folder, aggregate_world).warehouse


@pytest.fixture(scope="session")
def reader(root: Path) -> Iterator[Reader]:
    with Warehouse(root).reader() as opened:
        yield opened
