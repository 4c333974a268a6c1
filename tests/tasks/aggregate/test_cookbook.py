"""Every recipe of the cookbook has rows on a small world with everything that recipes ask for."""

from collections.abc import Iterator
from typing import Any

import pytest

import sql
from sql.cookbook import recipes
from tests.kit import admitted, aggregated, at, combined, row
from tests.tasks.aggregate.test_current_vintages import (
    FINANCE,
    LEGAL,
    NIGHT,
    sampled,
    tasks_of_both,
)
from tests.tasks.aggregate.world import small_world
from tests.warehouse.test_models import tables_in
from warehouse import Reader

BELL_NIGHT = "2026-11-20"
RECIPES = {recipe.name: recipe for recipe in recipes()}
WITHOUT_VINTAGE = {
    "judges-and-people",
    "wordings",
    "hard-tasks",
    "retries",
    "spend-by-night",
}
"""Recipes about pairs of graders, about tasks, or about calls."""


def attempt(number: int, **values: Any) -> dict[str, Any]:
    columns = {"status": "provider_error", "attempt": 1, "cost_usd": 0.0, **values}
    return row(
        "attempt_rows",
        attempt_id=f"attempt-{number}",
        run_id="night",
        purpose="sample",
        called_model="openai/bell",
        finished_at=at(60 * number),
        latency_s=2.0,
        **columns,
    )


CALLS = {
    "runs": [
        row(
            "runs",
            run_id="night",
            night=BELL_NIGHT,
            outcome="done",
            started_at=at(0),
            ended_at=at(9),
            config="{}",
        )
    ],
    "spend": [
        row(
            "spend",
            run_id="night",
            day=BELL_NIGHT,
            purpose="sample",
            called_model="openai/bell",
            calls=4,
            cost_usd=0.5,
        )
    ],
    "attempt_rows": [
        attempt(1, http_status=429),
        attempt(2, http_status=429, attempt=2),
        attempt(3, status="timeout"),
        attempt(4, status="ok", row_id="t000/bell/1/2026-11-20", cost_usd=0.5),
    ],
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Iterator[Reader]:
    world = combined(small_world(seed=7), CALLS)
    with aggregated(tmp_path_factory.mktemp("cookbook"), world).reader() as opened:
        yield opened


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_rows(reader, name):
    columns, rows = reader.table(RECIPES[name].query)

    assert rows
    assert len(columns) == len(set(columns))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_reads_only_tables_that_describe_lists(name):
    assert tables_in(RECIPES[name].query) <= sql.public_tables().keys()


@pytest.mark.parametrize("name", sorted(RECIPES.keys() - WITHOUT_VINTAGE))
def test_a_recipe_shows_the_vintage_and_the_judge_of_what_it_is_about(reader, name):
    columns, _ = reader.table(RECIPES[name].query)

    assert [column for column in columns if "vintage" in column or "night" in column]
    assert [column for column in columns if "judge" in column]


@pytest.mark.parametrize(
    "name",
    [
        "ranking",
        "categories",
        "risk",
        "cost",
        "failures",
        "critical-mistakes",
        "length",
    ],
)
def test_a_recipe_is_about_one_judge_and_the_current_vintage_of_each_model(
    reader, name
):
    rows = reader.rows(RECIPES[name].query)

    for recipe_row in rows:
        names = {recipe_row.get(column) for column in ("model", "vintage", "judge")}
        assert "judge-b" not in names
        assert not names >= {"bell", "base"}


def test_flips_are_the_verdicts_that_changed_between_a_model_s_last_two_nights(
    reader,
):
    flips = reader.rows(RECIPES["flips"].query)

    assert {flip["model"] for flip in flips} == {"bell"}
    assert {flip["first_night"] for flip in flips} == {"base"}
    assert {flip["second_night"] for flip in flips} == {BELL_NIGHT}
    assert {flip["judge"] for flip in flips} == {"a-judge"}
    assert not [
        flip for flip in flips if flip["first_status"] == flip["second_status"]
    ]
    criteria = {(flip["task_id"], flip["trial"], flip["title"]) for flip in flips}
    assert len(criteria) == len(flips)


def test_a_flip_is_shown_once_though_the_nights_of_other_splits_are_others(published):
    tasks = tasks_of_both()
    tasks["split_members"] += admitted(["f0"], "hard")["split_members"]
    task_ids = [*FINANCE, *LEGAL]
    second_night = sampled("2026-11-27", 2, task_ids)
    for verdict in second_night["verdicts"]:
        verdict |= {"value": 0.0, "status": "unmet"}

    reader = published(
        tasks,
        sampled("base", 1, task_ids),
        second_night,
        sampled(NIGHT, 3, [*FINANCE, "l0"]),
    )

    flips = reader.rows(RECIPES["flips"].query)
    nights = {
        (flip["task_id"], flip["first_night"], flip["second_night"]) for flip in flips
    }
    expected = {(task, "2026-11-27", NIGHT) for task in FINANCE}
    expected |= {(task, "base", "2026-11-27") for task in LEGAL}
    assert nights == expected
    assert len(flips) == len(task_ids)


def test_failed_requests_are_counted_by_night_and_cause(reader):
    retries = reader.rows(RECIPES["retries"].query)

    counts = [
        (retry["night"], retry["cause"], retry["failed_requests"])
        for retry in retries
    ]
    assert counts == [(BELL_NIGHT, "HTTP 429", 2), (BELL_NIGHT, "timeout", 1)]


def test_the_spend_of_a_night_is_that_of_its_runs(reader):
    spend = reader.rows(RECIPES["spend-by-night"].query)[0]

    assert spend["night"] == BELL_NIGHT
    assert spend["called_model"] == "openai/bell"
    assert spend["cost_usd"] == 0.5
