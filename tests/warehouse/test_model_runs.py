"""The law of incremental scores: a publication that computes only the model runs that changed has
the rows of a build from all parts.
"""

import dataclasses
import shutil
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sql
from tests.kit import (
    Row,
    Rows,
    admitted,
    at,
    criterion,
    response,
    row,
    verdict,
    written,
)
from tests.warehouse.conftest import SLOW_EXAMPLES
from warehouse import Warehouse

TASKS = ["t1", "t2"]
MODELS = ["ada", "bell"]
RESPONSES = [
    response(task_id, model, trial, import_batch=f"import-{model}")
    for task_id, model, trial in product(TASKS, MODELS, (1, 2))
]
CRITERIA = [
    criterion(task_id, position, weight)
    for task_id in TASKS
    for position, weight in enumerate([5.0, 3.0, -4.0])
]


def world() -> Rows:
    """Two tasks, all responses, and the verdicts of one judge on the first trial."""
    verdicts = [
        verdict(response_row, criterion_row, 1.0)
        for response_row, criterion_row in product(RESPONSES, CRITERIA)
        if response_row["task_id"] == criterion_row["task_id"]
        and response_row["trial"] == 1
    ]
    rows = admitted(TASKS)
    return {
        **rows,
        "criteria": CRITERIA,
        "responses": RESPONSES,
        "verdicts": verdicts,
    }


def judged(number: int, cell: tuple[Any, ...]) -> tuple[str, Row]:
    """A verdict, new or of a judging again."""
    response_row, position, judge, value = cell
    criterion_row = CRITERIA[3 * TASKS.index(response_row["task_id"]) + position]
    columns = {"judge": judge, "created_at": at(number)}
    if value is not None:
        columns["probability"] = 0.25 + value / 2
    return "verdicts", verdict(response_row, criterion_row, value, **columns)


def resampled(number: int, cell: tuple[Any, ...]) -> tuple[str, Row]:
    task_id, model, status = cell
    return "responses", response(task_id, model, 3, status, created_at=at(number))


def changed_criterion(number: int, cell: tuple[int, str, float]) -> tuple[str, Row]:
    """A criterion with another weight, category or wording."""
    position, column, weight = cell
    values = {
        "weight": weight,
        "category": f"c{weight}",
        "content_hash": f"h{weight}",
    }
    return "criteria", CRITERIA[position] | {column: values[column]}


def labelled(number: int, cell: tuple[int, str]) -> tuple[str, Row]:
    position, label = cell
    criterion_row = CRITERIA[position]
    names = {name: criterion_row[name] for name in ("task_id", "criterion_id")}
    return "criterion_labels", row(
        "criterion_labels", kind="theme", label=label, **names
    )


def retracted(number: int, cell: tuple[str, bool]) -> tuple[str, Row]:
    batch, is_retracted = cell
    return "retractions", row(
        "retractions",
        import_batch=batch,
        is_retracted=is_retracted,
        created_at=at(number),
    )


def removed(number: int, response_row: Row) -> tuple[str, Row]:
    return "removals", row(
        "removals", response_id=response_row["response_id"], created_at=at(number)
    )


def wanted(number: int, cell: tuple[str, int]) -> tuple[str, Row]:
    model, n_trials = cell
    return "coverage_rules", row(
        "coverage_rules",
        model=model,
        wanted_trials=n_trials,
        min_coverage=0.5,
        created_at=at(number),
    )


def moved(number: int, cell: tuple[str, str]) -> tuple[str, Row]:
    """A task with another topic."""
    task_id, topic = cell
    (task_row,) = admitted([task_id])["task_rows"]
    return "task_rows", task_row | {"topic": topic}


def selected(number: int, task_id: str) -> tuple[str, Row]:
    return "hard_subset", row(
        "hard_subset",
        selection_id=str(number),
        field="Finance",
        task_id=task_id,
        rank=1,
        selected_at=at(number),
    )


values = st.sampled_from([1.0, 0.0, None])
positions = st.integers(0, len(CRITERIA) - 1)
additions = st.one_of(
    st.tuples(
        st.just(judged),
        st.tuples(
            st.sampled_from(RESPONSES),
            st.integers(0, 2),
            st.sampled_from(["a-judge", "another"]),
            values,
        ),
    ),
    st.tuples(
        st.just(resampled),
        st.tuples(
            st.sampled_from(TASKS),
            st.sampled_from([*MODELS, "cleo"]),
            st.sampled_from(["ok", "timeout"]),
        ),
    ),
    st.tuples(
        st.just(changed_criterion),
        st.tuples(
            positions,
            st.sampled_from(["weight", "category", "content_hash"]),
            st.sampled_from([2.0, -7.0]),
        ),
    ),
    st.tuples(st.just(labelled), st.tuples(positions, st.sampled_from("xy"))),
    st.tuples(
        st.just(retracted),
        st.tuples(
            st.sampled_from([f"import-{name}" for name in MODELS]), st.booleans()
        ),
    ),
    st.tuples(st.just(removed), st.sampled_from(RESPONSES)),
    st.tuples(
        st.just(wanted),
        st.tuples(st.sampled_from(MODELS), st.integers(1, 3)),
    ),
    st.tuples(
        st.just(moved), st.tuples(st.sampled_from(TASKS), st.sampled_from("xy"))
    ),
    st.tuples(st.just(selected), st.sampled_from(TASKS)),
)


def rows_by_model(warehouse: Warehouse) -> dict[str, list[Row]]:
    """Return the rows of each model that is stored or a view."""
    with warehouse.reader() as reader:
        return {
            model.name: reader.rows(f"from {model.name} order by all")
            for model in sql.models()
            if model.kind != "step"
        }


EACH_ADDITION = [
    (judged, (RESPONSES[2], 1, "another", 0.0)),
    (resampled, ("t1", "cleo", "ok")),
    (changed_criterion, (0, "weight", 2.0)),
    (labelled, (1, "x")),
    (judged, (RESPONSES[2], 0, "another", None)),
    (retracted, ("import-ada", True)),
    (retracted, ("import-ada", False)),
    (removed, RESPONSES[6]),
    (wanted, ("bell", 3)),
    (moved, ("t2", "x")),
    (selected, "t1"),
]


@pytest.mark.slow
@settings(SLOW_EXAMPLES, max_examples=2)
@example(history=EACH_ADDITION)
@given(history=st.lists(additions, min_size=2, max_size=6))
def test_scores_after_any_additions_are_those_of_a_build_from_scratch(history):
    with tempfile.TemporaryDirectory() as folder:
        extended = written(Path(folder) / "extended", world())
        extended.publish()
        for number, (add, content) in enumerate(history, start=1):
            table_name, table_row = add(number, content)
            extended.write(table_name, [table_row])
            extended.publish()
        rebuilt = Warehouse(Path(folder) / "rebuilt")
        shutil.copytree(extended.store.root, rebuilt.store.root)
        rebuilt.publish()

        assert rows_by_model(extended) == rows_by_model(rebuilt)


def test_a_publication_computes_the_scores_of_changed_model_runs_only(
    tmp_path, monkeypatch
):
    warehouse = written(tmp_path, world())
    warehouse.publish()
    models = []
    for model in sql.models():
        query = model.query
        if model.name == "intermediate.task_values":
            query = query.replace(
                "    n_decided,\n    n_met", "    -1 as n_decided,\n    n_met"
            )
        models.append(dataclasses.replace(model, query=query))
    monkeypatch.setattr(sql, "models_above", lambda changed: models)
    (name, table_row) = judged(1, (RESPONSES[-1], 0, "a-judge", 0.0))
    warehouse.write(name, [table_row])

    warehouse.publish()

    with warehouse.reader() as reader:
        rows = reader.rows(
            "select distinct model from task_scores where n_decided = -1"
        )
    assert rows == [{"model": "bell"}]
