"""The loop over measures: what is stale, in which blocks it is computed, and how a measure is
added.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace

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
from tests.kit import ROOT, aggregated, combined, rows_in, values_in
from tests.tasks.compare.comparisons import judged, tasks_of
from warehouse import Warehouse

RUBRICS = {
    f"t{i:02d}": [(5, "Accuracy"), (3, "Accuracy"), (-2, "Accuracy")]
    for i in range(8)
}


def most_met(figures: Sequence[FigureRow], values: ValueColumns) -> Iterator[Results]:
    """Yield the largest number of criteria met on a task; the note is the number of figures that
    are computed together.
    """
    for index in range(len(figures)):
        n_met = values["n_met"][values["figure"] == index]
        yield {"most_met": MeasureResult(float(n_met.max()), note=f"{len(figures)}")}


MOST_MET = Measure(
    "most_met",
    most_met,
    figures="intermediate.mean_scores",
    values="intermediate.figure_values",
    columns="task, n_met",
    method="max-1",
    group_by=("task_set_id", "breakdown"),
)
"""A measure for this test only."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Warehouse:
    """Two models with two scores; in each second task the first criterion is met, and the second
    one by bob.
    """
    decisions = {}
    for second_criterion in (0, 1):
        decisions[second_criterion] = {
            task: [index % 2, second_criterion, 1]
            for index, task in enumerate(RUBRICS)
        }
    rows = combined(
        tasks_of(RUBRICS),
        judged(decisions[0], "ada", rubrics=RUBRICS),
        judged(decisions[1], "bob", rubrics=RUBRICS),
    )
    return aggregated(tmp_path_factory.mktemp("measured"), rows)


@pytest.fixture
def warehouse(measured: Warehouse, tmp_path) -> Warehouse:
    """A copy of that warehouse, which a test may change."""
    return Warehouse(shutil.copytree(measured.root, tmp_path / "warehouse"))


def renewed(warehouse: Warehouse, measure: Measure) -> list[MeasureRow]:
    """Recompute the stale figures of a measure, store their rows, and return them."""
    with warehouse.reader() as reader:
        rows = measure.fresh(reader)
    warehouse.write("measures", rows)
    warehouse.publish()
    return rows


def test_a_measure_is_computed_once_for_each_figure(warehouse):
    rows = renewed(warehouse, MOST_MET)

    figures = rows_in(
        warehouse.root, "from intermediate.mean_scores where basis is not null"
    )
    assert {row["figure_id"] for row in rows} == {row["figure_id"] for row in figures}
    # A breakdown of two models' two scores has four figures for each of its labels.
    assert {row["value"] for row in rows if row["note"] == "4"} == {2.0, 3.0}
    assert renewed(warehouse, MOST_MET) == []


def test_figures_of_another_method_are_computed_again(warehouse):
    rows = renewed(warehouse, MOST_MET)

    rows_of_second_method = renewed(warehouse, replace(MOST_MET, method="max-2"))

    query = "select distinct method from measures where measure = 'most_met'"
    assert len(rows_of_second_method) == len(rows)
    assert values_in(warehouse.root, query) == [("max-2",)]


def test_figures_are_narrowed_by_their_columns_and_computed_in_whole_groups(measured):
    with measured.reader() as reader:
        rows_of_score = MOST_MET.fresh(reader, breakdown="all", score_name="score")
        rows = MOST_MET.fresh(reader, breakdown="all")

    values = {row["figure_id"]: row["value"] for row in rows}
    # Two models have one of the scores, or both.
    assert [row["note"] for row in rows_of_score] == ["2", "2"]
    assert [row["note"] for row in rows] == ["4", "4", "4", "4"]
    assert [row["value"] for row in rows_of_score] == [
        values[row["figure_id"]] for row in rows_of_score
    ]


def test_every_measure_has_its_columns_beside_the_others(measured):
    columns = {
        row["column_name"]
        for row in rows_in(measured.root, "describe intermediate.measured")
    }
    names = {row["measure"] for row in rows_in(measured.root, "from measures")}
    names |= {measure.name for measure in MEASURES}

    # `source:quantity` is a row of a source, not a column.
    assert {name for name in names if ":" not in name} <= columns


def test_every_measure_that_a_model_reads_is_named_in_the_code_that_computes_it():
    column = re.compile(
        r"\bmeasured\.([a-z]\w*?)(?:_ci_low|_ci_high|_p_value|_n|_is_small|_note)?\b"
    )
    names = set(column.findall("\n".join(model.query for model in sql.models())))
    files = [
        *(ROOT / "tasks/measures").rglob("*.py"),
        *(ROOT / "tasks/rules").rglob("*.py"),
    ]
    code = "".join(path.read_text(encoding="utf-8") for path in files)

    assert len(names) > 20
    assert [
        name for name in names if not re.search(rf'\b{name}"|\b{name}=', code)
    ] == []
