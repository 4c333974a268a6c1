"""A world with everything that can happen to verdicts, its warehouse, and an independent checker's
figures.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tasks.measures.agreement as measuring
from tasks.rules.statistics.intervals import draws
from tests.kit import Rows, aggregated
from tests.tasks.aggregate.world import MAJORITIES, figures_of, graded_world
from tests.tasks.certify.checker import Figures
from warehouse import Reader, Warehouse


@pytest.fixture(scope="session")
def world() -> Rows:
    return graded_world(seed=20260301)


@pytest.fixture(scope="session")
def figures(world: Rows) -> Figures:
    return figures_of(world)


@pytest.fixture(scope="session")
def few_draws() -> Iterator[None]:
    """Draw few resamples for agreement: no tested figure depends on them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(measuring, "draws", lambda n_tasks: draws(n_tasks, 200))
        yield


@pytest.fixture(scope="session")
def root(world: Rows, few_draws: None, tmp_path_factory) -> Path:
    """The aggregated warehouse of the world; tests must not change it."""
    return aggregated(
        tmp_path_factory.mktemp("world") / "warehouse",
        world,
        majorities=MAJORITIES,
    ).root


@pytest.fixture(scope="session")
def reader(root: Path) -> Iterator[Reader]:
    with Warehouse(root).reader() as opened:
        yield opened
