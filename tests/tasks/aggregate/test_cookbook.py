"""Every recipe of the cookbook has rows on a small world with everything that recipes ask for."""

from collections.abc import Iterator
from typing import Any

import pytest

from sql.cookbook import recipes
from tests.kit import aggregated
from tests.tasks.aggregate.world import small_world
from warehouse import Reader


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with aggregated(tmp_path_factory.mktemp("cookbook"), small_world(seed=7)).reader() as opened:
        yield opened


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.name)
def test_every_recipe_has_rows(reader: Reader, recipe: Any) -> None:
    columns, rows = reader.table(recipe.query)

    assert rows
    assert len(columns) == len(set(columns))
