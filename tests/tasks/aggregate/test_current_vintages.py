"""The current vintage of a model: the latest whose coverage reaches the bar, under a judge and on a
split.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate, has_stale_measures
from tasks.config.job import Job
from tests.kit import (
    EPOCH,
    Rows,
    admitted,
    few_published,
    job_on,
    row,
    values_in,
)
from tests.tasks.compare.comparisons import Rubrics, judged, tasks_of
from warehouse import Reader, Warehouse

N_TASKS = 10
FINANCE: Rubrics = {f"f{i}": ((5, "Accuracy"),) for i in range(N_TASKS)}
LEGAL: Rubrics = {f"l{i}": ((5, "Accuracy"),) for i in range(N_TASKS)}
FINANCE_IDS = list(FINANCE)
ALL_IDS = [*FINANCE, *LEGAL]
NIGHT = "2026-11-28"


@pytest.fixture(scope="module", autouse=True)
def _few_published() -> Iterator[None]:
    """Publish only the models that the tests of this module read."""
    with few_published(
        "failure_rates", "leaderboard", "scores", "task_scores", "verdict_details"
    ):
        yield


def sampled(
    vintage: str,
    days: int,
    tasks: Sequence[str],
    *,
    model: str = "a",
    trial: int = 1,
    judge: str = "a-judge",
) -> Rows:
    """Responses in a vintage with a verdict on each."""
    columns = {"vintage": vintage, "created_at": EPOCH + timedelta(days=days)}
    decisions = {task: [1.0] for task in tasks}
    return judged(
        decisions,
        model,
        rubrics=FINANCE | LEGAL,
        trial=trial,
        of_response=columns,
        judge=judge,
    )


def tasks_of_both() -> Rows:
    """The tasks of both splits."""
    tasks = tasks_of(FINANCE | LEGAL)
    for member in tasks["split_members"]:
        member["split"] = "legal" if member["task_id"] in LEGAL else "finance"
    return tasks


def rule(min_coverage: float, wanted_trials: int = 1, **model_columns: Any) -> Rows:
    """A stored rule of coverage, by default of all models without one of their own; without any
    rule the bar is 0.99.
    """
    identity = {"model": "", "model_config_hash": "", "vintage": ""} | model_columns
    return {
        "coverage_rules": [
            row(
                "coverage_rules",
                min_coverage=min_coverage,
                wanted_trials=wanted_trials,
                **identity,
            )
        ]
    }


def current(reader: Reader, relation: str = "leaderboard") -> dict[str, str]:
    """Split -> the current vintage there."""
    query = f"select split, vintage from {relation} where is_latest and is_primary order by all"
    rows = reader.rows(query)
    vintages = {board_row["split"]: board_row["vintage"] for board_row in rows}
    assert len(rows) == len(vintages)
    return vintages


def test_a_partial_backfill_does_not_replace_a_complete_night(published):
    full = sampled("base", 1, FINANCE_IDS)
    stopped_at_budget = sampled(NIGHT, 2, FINANCE_IDS[:4])

    reader = published(tasks_of(FINANCE), full, stopped_at_budget)

    assert current(reader) == {"finance": "base"}
    ranks = (
        "select vintage, latest_rank from leaderboard "
        "where is_primary and latest_rank is not null"
    )
    assert reader.rows(ranks) == [{"vintage": "base", "latest_rank": 1}]


def test_a_later_night_at_the_bar_is_the_current_one(published):
    reader = published(
        tasks_of(FINANCE),
        rule(0.9),
        sampled("base", 1, FINANCE_IDS),
        sampled(NIGHT, 2, FINANCE_IDS[:9]),
    )

    assert current(reader) == {"finance": NIGHT}


def test_without_a_vintage_at_the_bar_the_one_with_most_coverage_is_current(
    published,
):
    reader = published(
        tasks_of(FINANCE),
        sampled("base", 1, FINANCE_IDS[:6]),
        sampled(NIGHT, 2, FINANCE_IDS[:4]),
    )

    assert current(reader) == {"finance": "base"}


def test_of_vintages_with_equal_coverage_below_the_bar_the_later_is_current(
    published,
):
    reader = published(
        tasks_of(FINANCE),
        sampled("base", 1, FINANCE_IDS[:4]),
        sampled(NIGHT, 2, FINANCE_IDS[4:8]),
    )

    assert current(reader) == {"finance": NIGHT}


def test_each_split_and_judge_has_a_current_vintage_of_its_own(published):
    reader = published(
        tasks_of_both(),
        sampled("base", 1, ALL_IDS),
        sampled(NIGHT, 2, ALL_IDS[:12]),
        sampled("base", 1, ALL_IDS, judge="another"),
    )

    query = (
        "select judge, split, vintage from leaderboard where is_latest and is_primary and is_judged"
        " order by all"
    )
    _, rows = reader.table(query)
    assert rows == [
        ("a-judge", "finance", NIGHT),
        ("a-judge", "legal", "base"),
        ("another", "finance", "base"),
        ("another", "legal", "base"),
    ]
    rates = (
        "select distinct split, vintage from failure_rates where is_latest and judge = 'a-judge'"
        " order by all"
    )
    assert reader.rows(rates) == [
        {"split": "finance", "vintage": NIGHT},
        {"split": "legal", "vintage": "base"},
    ]


STOPPED = row(
    "stopping_scores",
    split="finance",
    vintage=NIGHT,
    model="a",
    score_name="score",
    n_tasks=4,
    n_tasks_evaluated=4,
    n_tasks_skipped=6,
)


def test_tasks_that_stopping_left_out_count_as_covered(published):
    reader = published(
        tasks_of(FINANCE),
        sampled("base", 1, FINANCE_IDS),
        sampled(NIGHT, 2, FINANCE_IDS[:4]),
        sampled(NIGHT, 2, FINANCE_IDS[:4], judge="another"),
        {"stopping_scores": [STOPPED]},
    )

    for judge in ("a-judge", "another"):
        relation = f"(from leaderboard where judge = '{judge}')"
        assert current(reader, relation) == {"finance": NIGHT}


def test_a_split_that_stopping_did_not_see_is_not_covered(published):
    reader = published(
        tasks_of_both(),
        sampled("base", 1, ALL_IDS),
        sampled(NIGHT, 2, ["f0", "f1", "f2", "f3", "l0"]),
        {"stopping_scores": [STOPPED]},
    )

    assert current(reader) == {"finance": NIGHT, "legal": "base"}


def means_on_latest_splits(
    reader: Reader, relation: str, score: str
) -> list[tuple[Any, ...]]:
    """Split, vintage, and the mean score of the rows that are in the current vintage on the split."""
    query = f"""
        select split, any_value(vintage), avg({score})
        from (select *, unnest(latest_splits) as split from {relation})
        group by split
        order by split
    """
    return reader.table(query)[1]


def test_the_means_of_the_rows_that_are_latest_on_a_split_are_those_of_the_leaderboard(
    published,
):
    tasks = tasks_of_both()
    tasks["split_members"] += admitted(FINANCE_IDS[:3], "hard")["split_members"]
    night = sampled(NIGHT, 2, ["f0", "f1", "f2", *LEGAL])
    for verdict in night["verdicts"]:
        verdict |= {"value": 0.0, "status": "unmet"}

    reader = published(tasks, sampled("base", 1, ALL_IDS), night)

    primary_scores = "(from task_scores where is_primary)"
    task_means = means_on_latest_splits(reader, primary_scores, "mean_score")
    verdict_means = means_on_latest_splits(reader, "verdict_details", "value")
    _, leaderboard_means = reader.table(
        "select split, vintage, mean_score from leaderboard where is_latest and is_primary order"
        " by 1"
    )
    assert leaderboard_means == [
        ("finance", "base", 1.0),
        ("hard", NIGHT, 0.0),
        ("legal", NIGHT, 0.0),
    ]
    assert task_means == leaderboard_means
    assert verdict_means == leaderboard_means
    tasks_with_two_latest_rows = (
        "select task_id from task_scores where is_primary and is_latest group by task_id having"
        " count(*) > 1"
    )
    assert reader.rows(tasks_with_two_latest_rows) == []


def test_each_configuration_on_a_warehouse_has_a_bar_of_its_own(published):
    rule_of_b = rule(
        0.3, model="b", model_config_hash="a-configuration", vintage=NIGHT
    )
    samplings = []
    for model in ("a", "b"):
        samplings.append(sampled("base", 1, FINANCE_IDS, model=model))
        samplings.append(sampled(NIGHT, 2, FINANCE_IDS[:4], model=model))

    reader = published(tasks_of(FINANCE), rule(0.9), rule_of_b, *samplings)

    vintages_of_a = current(reader, "(from leaderboard where model = 'a')")
    vintages_of_b = current(reader, "(from leaderboard where model = 'b')")
    assert vintages_of_a == {"finance": "base"}
    assert vintages_of_b == {"finance": NIGHT}


def board(reader: Reader) -> dict[str, Any]:
    """The only row of the leaderboard by the primary score."""
    (only,) = reader.rows(
        "select n_trials, coverage, n_tasks, mean_score from leaderboard where is_primary"
    )
    return only


MODEL_A = {"model": "a", "model_config_hash": "a-configuration", "vintage": "base"}


def test_a_trial_begun_beyond_the_configured_ones_does_not_lower_the_coverage(
    published,
):
    two_trials = [sampled("base", 1, FINANCE_IDS, trial=trial) for trial in (1, 2)]
    third = sampled("base", 2, FINANCE_IDS[:2], trial=3)
    failed_verdict, unmet_verdict = third["verdicts"]
    failed_verdict |= {"value": None, "status": "provider_error"}
    unmet_verdict |= {"value": 0.0, "status": "unmet"}

    reader = published(
        tasks_of(FINANCE), rule(0.99, 2, **MODEL_A), *two_trials, third
    )

    assert board(reader) == {
        "n_trials": 2,
        "coverage": 1.0,
        "n_tasks": N_TASKS,
        "mean_score": 1.0,
    }
    # The third trial has scores, which do not count yet.
    query = "select count(*) from scores where score_name = 'score' and trial = 3"
    assert reader.value(query) == 2
    assert reader.value("select sum(n_failed) from failure_rates") == 0


def test_a_further_trial_counts_once_it_is_as_full_as_the_configured_ones(published):
    three_trials = [
        sampled("base", 1, FINANCE_IDS, trial=trial) for trial in (1, 2, 3)
    ]

    reader = published(tasks_of(FINANCE), rule(0.99, 2, **MODEL_A), *three_trials)

    assert board(reader)["n_trials"] == 3


def test_a_configured_trial_that_is_not_begun_lowers_the_coverage(published):
    reader = published(
        tasks_of(FINANCE), rule(0.99, 2, **MODEL_A), sampled("base", 1, FINANCE_IDS)
    )

    assert board(reader)["coverage"] == 0.5


def configured(
    folder: Path, model: str, *, trials: int, bar: float, vintage: str = "base"
) -> Job:
    """A job of a configuration with one model."""
    settings = {"trials": trials, "coverage": {"min": bar}}
    models = [{"name": f"openai/{model}", "label": model}]
    job = job_on("sample", folder, models=models, **settings)
    return job.model_copy(update={"vintage": vintage})


def test_aggregating_stores_the_rules_of_a_configuration_and_leaves_those_of_others(
    tmp_path,
):
    aggregate(configured(tmp_path, "a", trials=3, bar=0.9))
    job = configured(tmp_path, "b", trials=1, bar=0.4, vintage=NIGHT)
    aggregate(job)

    query = "select model, vintage, wanted_trials, min_coverage from coverage_rules order by all"
    assert values_in(job, query) == [
        ("", "", 1, 0.4),
        ("a", "base", 3, 0.9),
        ("b", NIGHT, 1, 0.4),
    ]


def test_measures_are_stale_once_the_rule_in_the_configuration_differs_from_the_stored(
    tmp_path,
):
    job = configured(tmp_path, "a", trials=3, bar=0.9)
    changed_job = configured(tmp_path, "a", trials=2, bar=0.9)

    aggregate(job)

    with Warehouse(tmp_path).reader() as reader:
        assert not has_stale_measures(job, reader)
        assert has_stale_measures(changed_job, reader)
