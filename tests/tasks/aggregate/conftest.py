"""A world with all that happens to verdicts, its warehouse, and what an independent checker makes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import Rows, aggregated
from tests.tasks.aggregate.world import figures_of, random_world
from tests.tasks.certify.checker import Figures
from warehouse import Reader, Warehouse


@pytest.fixture(scope="session")
def world() -> Rows:
    return random_world(seed=20260301)


@pytest.fixture(scope="session")
def figures(world: Rows) -> Figures:
    return figures_of(world)


@pytest.fixture(scope="session")
def root(world: Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The aggregated warehouse of the world, which no test changes."""
    return aggregated(tmp_path_factory.mktemp("world") / "warehouse", world).root


@pytest.fixture(scope="session")
def reader(root: Path) -> Iterator[Reader]:
    with Warehouse(root).reader() as opened:
        yield opened
