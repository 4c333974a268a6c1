"""A world with all that happens to verdicts, its warehouse, and what an independent checker makes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import Rows, aggregated, response
from tests.tasks.aggregate.world import JUDGES, REFUSED, figures_of, random_world
from tests.tasks.certify.checker import Figures
from warehouse import Reader, Warehouse


@pytest.fixture(scope="session")
def world() -> Rows:
    """Beside two judges people who labelled first trials alone, some verdicts on wordings that are no more.

    One model has a second trial with a response to the refused task alone.
    """
    rows = random_world(seed=20260301)
    people = [
        each | {"verdict_id": f"{each['verdict_id']}/people", "judge": "people", "source": "imported"}
        for each in rows["verdicts"] if each["judge"] == JUDGES[1]
    ]  # fmt: skip
    older = [each | {"criterion_hash": "an-older-wording"} for each in rows["verdicts"][::101]]
    changed = {each["verdict_id"]: each for each in (*rows["verdicts"], *older, *people)}
    again = response(REFUSED, "dirac", 2, vintage="2026-11-20")
    return rows | {"verdicts": [*changed.values()], "responses": [*rows["responses"], again]}


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
