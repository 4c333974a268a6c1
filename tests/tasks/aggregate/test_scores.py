"""Scores and leaderboards on small cases that say what the paper's equations mean."""

from typing import Any

import pytest

import sql
from tests.kit import Fill, Rows, add_responses, response, rubric_of
from tests.tasks.aggregate.world import refused
from warehouse import Reader


def value_of(reader: Reader, column: str, score_name: str = "score", table: str = "leaderboard") -> Any:
    return reader.value(f"select {column} from {table} where score_name = ?", [score_name])


def test_a_response_that_failed_leaves_its_criteria_wanted_and_open(published: Fill) -> None:
    tables = add_responses(rubric_of({"a": [5], "b": [5]}), {"a": [1]})
    tables["responses"].append(response("b", status="timeout"))
    reader = published(tables)

    statuses = reader.rows("select task_id, status from verdict_details order by task_id")

    assert [{"task_id": "a", "status": "met"}, {"task_id": "b", "status": "no_response"}] == statuses
    assert [1, 2, 0.5] == [value_of(reader, name) for name in ("n_tasks", "n_tasks_wanted", "coverage")]
    assert 1.0 == value_of(reader, "mean_score")


def of_two_trials(status: str, source: str) -> Rows:
    """Two tasks with a response each that a judge decided on, and a second trial of which it has decided nothing."""
    tables = add_responses(rubric_of({"a": [4, 4], "b": [4, 4]}), {"a": [1, 0], "b": [1, 1]}, trial=1)
    tables["verdicts"] = [each | {"source": source} for each in tables["verdicts"]]
    tables["responses"] += [response(task, trial=2, status=status) for task in "ab"]
    return tables


_OF_TRIALS = ("n_tasks", "n_tasks_full", "n_trials", "mean_score", "mean_lower", "mean_upper", "coverage")


@pytest.mark.parametrize("status", ["timeout", "ok"])
@pytest.mark.parametrize(("source", "wanted"), [
    # Nothing is known of the second trial of a judge: it could be all unmet or all met. People did not begin it.
    ("judged", [2, 0, 2, 0.75, 0.375, 0.875, 0.5]), ("imported", [2, 2, 1, 0.75, 0.75, 0.75, 1.0]),
])  # fmt: skip
def test_a_trial_without_a_decision_is_wanted_of_judges(
    published: Fill, status: str, source: str, wanted: list[float]
) -> None:
    reader = published(of_two_trials(status, source))

    assert wanted == [value_of(reader, name) for name in _OF_TRIALS]


def test_a_trial_of_a_refused_task_alone_is_not_wanted(published: Fill) -> None:
    tables = add_responses(rubric_of({"a": [4, 4], "b": [4, 4]}), {"a": [1, 0]}, trial=1) | refused("b")
    tables["responses"] += [response("b", trial=2)]
    reader = published(tables)

    assert [1, 1, 1, 0.5, 0.5, 0.5, 1.0] == [value_of(reader, name) for name in _OF_TRIALS]


def test_a_verdict_on_an_older_wording_of_a_criterion_does_not_count(published: Fill) -> None:
    tables = add_responses(rubric_of({"a": [4, 4]}), {"a": [1, 1]})
    tables["verdicts"][1]["criterion_hash"] = "an-older-wording"
    reader = published(tables)

    assert [1, 2] == [value_of(reader, name, table="scores") for name in ("n_decided", "n_wanted")]


@pytest.mark.parametrize(("prices", "wanted"), [((0.25, 0.25), 1.5), ((0.25, None), None)])
def test_the_cost_is_unknown_where_one_price_is(
    published: Fill, prices: tuple[float | None, ...], wanted: float | None
) -> None:
    tables = add_responses(rubric_of({"a": [4, 4]}), {"a": [1, 0]}, cost_usd=1.0)
    for each, price in zip(tables["verdicts"], prices, strict=True):
        each["cost_usd"] = price

    assert wanted == value_of(published(tables), "cost_usd")


def test_without_intervals_every_rank_is_possible(published: Fill) -> None:
    tables = rubric_of({task: [1, 1] for task in ("a", "b")})
    for model, value in {"best": 1.0, "last": 0.0}.items():
        add_responses(tables, {task: [value, value] for task in ("a", "b")}, model=model)

    rows = published(tables).rows("select rank, rank_low, rank_high from leaderboard where is_primary order by model")

    assert [(1, 1, 2), (2, 1, 2)] == [tuple(row.values()) for row in rows]


# responses without a verdict


def test_a_model_without_verdicts_is_on_the_leaderboard(published: Fill) -> None:
    tables = add_responses(rubric_of({"a": [4, -2], "b": [4, 4]}), {"a": [1, 0], "b": [1, 0]}, model="judged")
    tables["responses"] += [response("a", model="imported"), response("b", model="imported", trial=2)]
    reader = published(tables)

    rows = {row["model"]: row for row in reader.rows("from leaderboard where is_primary")}
    assert {"judged", "imported"} == set(rows)
    actual = rows["imported"]
    assert (0, 0, 2, 2, 0.0, False, True, False) == tuple(
        actual[name]
        for name in (
            "n_tasks", "n_tasks_full", "n_tasks_wanted", "n_trials", "coverage", "is_judged", "is_latest", "is_complete"
        )
    )  # fmt: skip
    assert {None} == {actual[name] for name in ("mean_score", "ci_low", "raw_mean_score", "rank", "latest_rank")}
    # Everything is still possible: a from -0.5 to 1, b from 0 to 1, and the lower end is clipped.
    assert (0.0, 1.0) == (actual["mean_lower"], actual["mean_upper"])
    assert (1, 1, True) == (rows["judged"]["rank"], rows["judged"]["rank_high"], rows["judged"]["is_judged"])
    assert 0 == reader.value("select count(*) from breakdown_leaderboard where model = 'imported'")


def test_a_vintage_not_judged_yet_replaces_none_that_is(published: Fill) -> None:
    tables = add_responses(rubric_of({"a": [4, 4]}), {"a": [1, 0]}, model="m", vintage="first")
    tables["responses"].append(response("a", model="m", vintage="second") | {"response_id": "second"})
    reader = published(tables)

    assert [("first", True)] == reader.table("select vintage, is_latest from leaderboard where is_primary")[1]


# one definition each


def test_what_an_equation_takes_from_its_definition_is_read_in_one_place() -> None:
    texts = {str(path.relative_to(sql.FOLDER)): path.read_text() for path in sql.FOLDER.rglob("*.sql")}

    definitions = {
        "denominator_positive": "intermediate/scores/score_bounds",
        "clips_mean": "intermediate/scores/breakdown_sizes",
        "points + offset_points": "warehouse/macros",
    }
    for factor, path in definitions.items():
        assert [f"{path}.sql"] == [name for name, text in texts.items() if factor in text]
