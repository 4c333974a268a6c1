"""The loop over measures: what is stale, in which blocks it is computed, and how a measure is
added.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

import sql
from tasks.measures import MEASURES
from tasks.measures.measure import (
    FigureRow,
    Measure,
    MeasureResult,
    MeasureRow,
    Results,
    ValueColumns,
)
from tests.kit import aggregated, combined, rows_in
from tests.tasks.compare.comparisons import judged, tasks_of
from warehouse import Warehouse

RUBRICS = {f"t{i:02d}": [(weight, "Accuracy") for weight in (5, 3, -2)] for i in range(8)}


def most_met(figures: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    for index in range(len(figures)):
        n_met = values["n_met"][values["figure"] == index]
        yield {"most_met": MeasureResult(float(n_met.max()), note=f"{len(figures)}")}


OWN = Measure(
    "most_met",
    "intermediate.mean_scores",
    "intermediate.figure_values",
    "task, n_met",
    most_met,
    "max-1",
    group_by=("task_set_id", "breakdown"),
)
"""The largest number of criteria met on a task: a measure for this test only."""


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    decided = {
        model: {t: [i % 2, model == "bob", 1] for i, t in enumerate(RUBRICS)}
        for model in ("ada", "bob")
    }
    responses = [judged(of_model, model, rubrics=RUBRICS) for model, of_model in decided.items()]
    return aggregated(tmp_path, combined(tasks_of(RUBRICS), *responses))


def renewed(warehouse: Warehouse, measure: Measure) -> list[MeasureRow]:
    """Recompute the stale figures of a measure, store their rows, and return them."""
    with warehouse.reader() as reader:
        rows = measure.fresh(reader)
    warehouse.write("measures", rows)
    warehouse.publish()
    return rows


def test_a_measure_is_computed_once_for_each_figure_and_again_only_by_another_method(
    warehouse: Warehouse,
) -> None:
    first = renewed(warehouse, OWN)
    query = "select count(*) as n from intermediate.mean_scores where basis is not null"

    assert len(first) == rows_in(warehouse.root, query)[0]["n"] > 0
    assert {row["value"] for row in first if row["note"] == "4"} == {2.0, 3.0}
    assert renewed(warehouse, OWN) == []
    assert len(first) == len(renewed(warehouse, replace(OWN, method="max-2")))
    assert {
        row["method"] for row in rows_in(warehouse.root, "from measures where measure = 'most_met'")
    } == {"max-2"}


def test_figures_are_narrowed_by_their_columns_and_computed_in_whole_groups(
    warehouse: Warehouse,
) -> None:
    with warehouse.reader() as reader:
        of_score = OWN.fresh(reader, breakdown="all", score_name="score")
        everything = OWN.fresh(reader, breakdown="all")

    assert [row["note"] for row in of_score] == ["2"] * 2
    assert [row["note"] for row in everything] == ["4"] * 4
    assert {row["figure_id"]: row["value"] for row in everything}.items() >= {
        row["figure_id"]: row["value"] for row in of_score
    }.items()


def test_every_measure_has_its_columns_beside_the_others(warehouse: Warehouse) -> None:
    columns = {
        row["column_name"] for row in rows_in(warehouse.root, "describe intermediate.measured")
    }
    stored = {row["measure"] for row in rows_in(warehouse.root, "from measures")} | {
        each.name for each in MEASURES
    }

    assert stored <= columns


def test_every_measure_that_a_model_reads_is_named_in_the_code_that_computes_it() -> None:
    read = re.compile(r"\bmeasured\.([a-z]\w*?)(?:_ci_low|_ci_high|_p_value|_n|_is_small|_note)?\b")
    names = {name for model in sql.models() for name in read.findall(model.query)}
    files = chain(Path("tasks/measures").rglob("*.py"), Path("tasks/rules").rglob("*.py"))
    code = "".join(path.read_text() for path in files)

    assert len(names) > 20
    assert sorted(name for name in names if not re.search(rf'\b{name}"|\b{name}=', code)) == []
